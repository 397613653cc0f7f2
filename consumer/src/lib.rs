//! A format of one's own: a line for each tensor, with its name, its shape and its values as decimal
//! numbers.
//!
//! ```text
//! #toy
//! w 2x2 1 2 3 4
//! b 2 0.5 -1
//! ```

use weighbridge::codec::DType;
use weighbridge::formats::Stop;
use weighbridge::plan::{FilePlan, Holds, Piece, Report, fit};
use weighbridge::wire::{Rule, Severity};
use weighbridge::{Container, Error, Findings, Format, FormatInfo, Input, Options, Plan, Tensor};

const NUMBERS: Rule =
    Rule { id: "TOY-01", severity: Severity::Error, title: "a line is not a tensor" };

const INFO: FormatInfo = {
    let mut holds = Holds::NOTHING;
    holds.dtypes = &[DType::F32];
    let mut info = FormatInfo::new("toy", "toy text");
    info.summary = "a line for each tensor";
    info.extensions = &["toy"];
    info.magic = b"#toy\n";
    info.open_ended = true;
    info.holds = holds;
    info.rules = &[NUMBERS];
    info
};

/// The format, to be added with `Formats::with`.
pub static TOY: Format = {
    let mut format = Format::new(INFO);
    format.read = Some(read);
    format.lay_out = Some(lay_out);
    format
};

fn read(input: &Input, _: &Options, _: &mut Findings) -> Result<Container, Stop> {
    let bytes = input.source.bytes(0..input.source.len())?;
    let text = String::from_utf8_lossy(&bytes);
    let mut builder = Container::builder();
    let mut start = INFO.magic.len() as u64;
    for line in text.lines().skip(1) {
        let end = start + line.len() as u64;
        let bad = || NUMBERS.at(start..end).field(format!("line {line:?}"));
        let mut words = line.split_whitespace();
        let (name, shape) = words.next().zip(words.next()).ok_or_else(bad)?;
        let shape: Result<Vec<u64>, _> = shape.split('x').map(str::parse).collect();
        let values: Result<Vec<f32>, _> = words.map(str::parse).collect();
        let (Ok(shape), Ok(values)) = (shape, values) else { return Err(bad().into()) };
        builder = builder.values(name, &shape, values);
        start = end + 1;
    }
    let mut container = builder.build()?;
    container.format = INFO.id;
    container.size = input.source.len();
    Ok(container)
}

fn lay_out(container: &Container, _: &Options, info: &FormatInfo) -> Result<Plan, Error> {
    let mut report = Report::new();
    let mut file = FilePlan::default();
    file.push(Piece::Bytes(info.magic.to_vec()));
    for placement in fit(container, &info.holds, &mut report)? {
        file.push(Piece::Bytes(line(&container.tensors[placement.tensor])?.into_bytes()));
    }
    Ok(Plan::single(file, report))
}

fn line(tensor: &Tensor) -> Result<String, Error> {
    let shape: Vec<_> = tensor.shape.iter().map(u64::to_string).collect();
    let count = usize::try_from(tensor.count()).unwrap_or(0);
    let values = tensor.values_f32(0, count)?.into_iter().map(|v| format!(" {v}"));
    Ok(format!("{} {}{}\n", tensor.name, shape.join("x"), values.collect::<String>()))
}
