//! What is known before the first text: which format, in which type, and what is in the way.

use super::file::EmbedSettings;
use super::finish::{name_companions, ranges_name};
use super::journal::Journal;
use super::made_with::MadeWith;
use super::manifest::Manifest;
use super::output_type::{OutputType, check_ranges};
use weighbridge_codec::DType;
use weighbridge_format::model::MATRIX;
use weighbridge_format::plan::{Keeps, RowLayout};
use weighbridge_format::{
    Advice, Container, Encoding, Error, FormatInfo, Formats, Options, Output, Tensor, View,
    Vocabulary,
};

/// The type that a format's rows have by themselves.
pub(super) fn own_type(info: &FormatInfo) -> OutputType {
    match info.row_layout.map(|layout| (layout.encoding)().stored()) {
        Some(DType::I8) => OutputType::Int8,
        _ => OutputType::F32,
    }
}

/// Whether a format can hold vectors of a type.
fn holds(info: &FormatInfo, to: OutputType) -> bool {
    let own = own_type(info);
    to == own || (own == OutputType::F32 && info.holds.dtypes.contains(&to.dtype()))
}

pub(super) fn check_type(settings: &EmbedSettings, dimensions: usize) -> Result<(), Error> {
    let info = settings.format.info();
    let Some(to) = settings.output_type.filter(|to| *to != own_type(info)) else {
        if settings.ranges.is_some() {
            let what = format!("vectors of {} take no ranges", info.id);
            return Err(Error::refused(what, Advice::LeaveOut { option: "ranges" }));
        }
        return Ok(());
    };
    if !holds(info, to) {
        let others = Formats::builtin().iter().filter(|f| f.writes() && !f.info().is_folder);
        let others = others.map(|f| f.info()).filter(|info| holds(info, to));
        let list: Vec<_> = others.map(|info| info.id).collect();
        let what = format!("{} can't hold vectors as {}", info.id, to.name());
        return Err(Error::refused(what, Advice::one_of("to", list)));
    }
    if settings.shard.is_some() {
        let what = format!("a shard can't hold vectors as {}", to.name());
        let advice = Advice::LeaveOut { option: "output-type" };
        return Err(Error::refused(what, advice.and("merging makes them so, of all shards alike")));
    }
    match &settings.ranges {
        Some(_) if !to.needs_ranges() => {
            let what = format!("{} takes no ranges", to.name());
            Err(Error::refused(what, Advice::LeaveOut { option: "ranges" }))
        }
        Some(ranges) => check_ranges(ranges, dimensions),
        None => Ok(()),
    }
}

/// What an earlier run made of the same shard: it may be replaced without being asked for, and the run
/// goes on where one was interrupted.
pub(super) fn replaceable(settings: &mut EmbedSettings, made_with: &MadeWith) -> Option<Manifest> {
    if settings.shard.is_none() || settings.output.overwrite {
        return None;
    }
    settings.resume = true;
    let manifest = Manifest::of(&settings.output.path).ok().filter(|manifest| {
        manifest.shard == settings.shard && made_with.difference(&manifest.made_with).is_none()
    });
    // Whoever began a journal was allowed to write the file.
    if manifest.is_some() || Journal::exists(&settings.output.path) {
        settings.output.overwrite = true;
    }
    manifest
}

/// How rows are kept: as the format stores them where it can be written row by row. A journal of
/// plain values is gone on with for any format; other rows can't be had back.
pub(super) fn row_layout(settings: &EmbedSettings) -> RowLayout {
    let own = settings.format.info().row_layout.filter(|_| settings.coded().is_none());
    let own = own.unwrap_or(RowLayout::PLAIN);
    let earlier = Journal::layout_of(&settings.output.path).filter(|_| settings.resume);
    let of_formats = Formats::builtin().iter().filter_map(|f| f.info().row_layout);
    let plain = Encoding::Plain(DType::F32);
    let mut known = of_formats.chain([RowLayout::PLAIN]).filter(|l| (l.encoding)() == plain);
    earlier.and_then(|name| known.find(|l| l.name == name)).unwrap_or(own)
}

/// What would be in the way of the output, found before hours of work: a row is planned.
pub(super) fn check(
    settings: &EmbedSettings,
    dimensions: usize,
    options: &Options,
) -> Result<(), Error> {
    let mut values = vec![0f32; dimensions];
    values[..1].fill(1.0);
    let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let shape = vec![1, dimensions as u64];
    let tensor = Tensor::stored(MATRIX, Encoding::Plain(DType::F32), shape, View::owned(bytes))?;
    let mut container = Container::builder().tensor(tensor).build()?;
    if settings.format.info().holds.words_only() {
        container.vocabulary = Some(Vocabulary::from_tokens(["a"]));
    }
    let mut plan = settings.format.plan(&container, options)?.accept_losses(true);
    let (output, mut beside) = (&settings.output.path, Vec::new());
    if settings.manifest {
        name_companions(&mut plan, output);
        beside.extend([Manifest::path_for(output), Manifest::hashes_for(output)]);
    }
    let has_metadata = settings.format.info().holds.metadata != Keeps::Nothing;
    if settings.coded().is_some_and(OutputType::needs_ranges) && !has_metadata {
        beside.push(output.with_file_name(ranges_name(output)));
    }
    for path in beside {
        let output = Output::new(path).overwrite(settings.output.overwrite);
        output.obstacle().map_or(Ok(()), Err)?;
    }
    plan.obstacle(&settings.output).map_or(Ok(()), Err)
}

pub(super) fn has_unit_length(vector: &[f32]) -> bool {
    let square: f64 = vector.iter().map(|v| f64::from(*v) * f64::from(*v)).sum();
    (square.sqrt() - 1.0).abs() < 5e-4
}
