//! Storing weights in fewer bits, with the error that this makes measured.

mod blocks;
mod calibrate;
mod choice;
mod error;
mod importance;
mod method;
mod parts;
mod product;
mod report;
mod rows;
mod whole;

pub use calibrate::{Calibration, Vectors};
pub use error::{ErrorSums, Loss};
pub use method::Method;
pub use product::ProductSettings;
pub use report::{Kept, QuantizeReport, Quantized};
pub use whole::Domain;

use crate::convert::{Conversion, check_options, in_the_way, target_format};
use blocks::Order;
use choice::Chosen;
use importance::Importance;
use parts::{Part, parts};
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use weighbridge_codec::block::Encoder;
use weighbridge_format::model::{Report, Target};
use weighbridge_format::sink::Progress;
use weighbridge_format::{Container, Error, Input, Options, Tensor, open};

/// What to quantize and how.
#[derive(Clone, Debug)]
pub struct QuantizeRequest {
    pub method: Method,
    pub encoder: Encoder,
    pub domain: Domain,
    /// Globs of the tensors to quantize; all when there are none. The others are kept.
    pub select: Vec<String>,
    /// Globs of tensors to keep.
    pub exclude: Vec<String>,
    /// Globs with the method that tensors of fitting names get instead; the last that fits counts.
    pub overrides: Vec<(String, Method)>,
    /// Tensors of fewer bytes are kept.
    pub min_bytes: u64,
    /// Bounds that values are clamped to; else what each tensor has.
    pub clip: Option<(f32, f32)>,
    /// A file with a weight for every column.
    pub importance: Option<PathBuf>,
    /// Texts to watch a model with, so that its vectors stay close rather than its weights.
    pub calibration: Calibration,
    /// For `pq` and `opq`.
    pub product: ProductSettings,
    /// Options of the formats.
    pub options: Options,
    pub allow_loss: bool,
    pub force: bool,
}

impl QuantizeRequest {
    pub fn new(method: Method) -> QuantizeRequest {
        QuantizeRequest {
            method,
            encoder: Encoder::Best,
            domain: Domain::Weights,
            select: Vec::new(),
            exclude: Vec::new(),
            overrides: Vec::new(),
            min_bytes: 0,
            clip: None,
            importance: None,
            calibration: Calibration::default(),
            product: ProductSettings::default(),
            options: Options::default(),
            allow_loss: false,
            force: false,
        }
    }
}

/// A file that is to be quantized, with its tensors chosen.
#[derive(Debug)]
pub struct Quantization<'a> {
    request: &'a QuantizeRequest,
    container: Container,
    output: PathBuf,
    chosen: Vec<Chosen>,
    kept: Vec<Kept>,
    importance: Importance,
    /// The model to watch, if it is calibrated.
    model: Option<weighbridge_encoder::Encoder>,
    /// What the format has no idea of.
    narrowing: Report,
}

/// Opens the input and chooses its tensors. Without an output only the report can be had.
pub fn quantize<'a>(
    input: &Path,
    output: Option<&Path>,
    request: &'a QuantizeRequest,
) -> Result<Quantization<'a>, Error> {
    let mut container = open(&Input::open(input)?, &request.options)?;
    let importance = Importance::open(request.importance.as_deref())?;
    let format = request.method.format();
    let target = target_format(Path::new(""), Some(format))?;
    check_options(&request.options, container.format, target)?;
    // What the format has no idea of goes first, so that what is measured is what is written.
    let mut narrowing = Report::default();
    container = container.narrowed_to(target.info(), &mut narrowing).into_owned();
    choice::check(request)?;
    let model = calibrate::model(&container, request)?;
    let (chosen, kept) = choice::choose(&container, request)?;
    // Said before the work rather than after it.
    if let Some(obstacle) = output.and_then(|o| in_the_way(o, request.force)) {
        return Err(obstacle);
    }
    if output.is_some() && !request.allow_loss && request.method != Method::Rows {
        let mut losses = narrowing.losses.clone();
        losses.extend(target.plan(&container, &request.options)?.report.losses);
        if !losses.is_empty() {
            return Err(Error::Loss(losses));
        }
    }
    let output = match output {
        Some(output) if target_format(output, None).is_ok_and(|f| f.info().id != format) => {
            return Err(Error::refused(
                format!(
                    "{} writes {format}, not {:?}",
                    request.method.name(),
                    output.display().to_string()
                ),
                format!("name the output something.{}", extension(format)),
            ));
        }
        output => output
            .map_or_else(|| PathBuf::from(format!("out.{}", extension(format))), Path::to_owned),
    };
    Ok(Quantization { request, container, output, chosen, kept, importance, model, narrowing })
}

fn extension(format: &'static str) -> &'static str {
    let info = weighbridge_format::find(format).map(|f| f.info());
    info.and_then(|i| i.extensions.first()).copied().unwrap_or(format)
}

impl Quantization<'_> {
    /// Values to quantize, for a progress bar.
    pub fn work(&self) -> u64 {
        let values: u64 =
            self.chosen.iter().map(|c| self.container.tensors[c.tensor].count()).sum();
        // Training counts as much as encoding.
        if matches!(self.request.method, Method::Product { .. }) { 2 * values } else { values }
    }

    /// Quantizes, and plans the file.
    pub fn run(mut self, progress: Progress) -> Result<(Conversion, QuantizeReport), Error> {
        let narrowing = std::mem::take(&mut self.narrowing);
        let (mut conversion, report) = self.run_narrowed(progress)?;
        conversion.plan.report.losses.splice(0..0, narrowing.losses);
        conversion.plan.report.ignored.extend(narrowing.ignored);
        Ok((conversion, report))
    }

    fn run_narrowed(mut self, progress: Progress) -> Result<(Conversion, QuantizeReport), Error> {
        if self.request.method == Method::Rows {
            return rows::run(self.container, &self.output, self.request, self.kept, progress);
        }
        if let Method::Product { rotate } = self.request.method {
            let (container, kept) = (self.container, self.kept);
            let index = self.chosen.first().map_or(0, |c| c.tensor);
            let request = self.request;
            return product::run(container, index, rotate, &self.output, request, kept, progress);
        }
        let mut container = self.container.clone();
        let mut done = Vec::with_capacity(self.chosen.len());
        for (index, target, errors) in self.targets(progress)? {
            done.push((index, errors));
            container.tensors[index].target = Some(target);
        }
        self.importance.check_used()?;
        let mut options = self.request.options.clone();
        if self.request.encoder == Encoder::Reference {
            options.set("reference-order", "true");
        }
        let format = target_format(&self.output, Some("mcf"))?;
        let plan = format.plan(&container, &options)?;
        let mut report = QuantizeReport::new(&container, &plan, &done, self.kept);
        if let Some(model) = &self.model {
            report.calibrated = Some(calibrate::compare(&container, model)?);
        }
        let (allow_loss, force) = (self.request.allow_loss, self.request.force);
        let conversion =
            Conversion { container, format, plan, output: self.output, allow_loss, force };
        Ok((conversion, report))
    }

    /// What each chosen tensor becomes.
    fn targets(&mut self, progress: Progress) -> Result<Vec<(usize, Target, ErrorSums)>, Error> {
        let mut orders = Vec::new();
        let mut whole = Vec::new();
        for chosen in &self.chosen {
            let tensor = &self.container.tensors[chosen.tensor];
            let clip = bounds(tensor, self.request)?;
            match chosen.method {
                Method::Blocks(method) => {
                    let importance = self.importance.of(tensor)?;
                    let order = Order { method, encoder: self.request.encoder, clip, importance };
                    orders.push((chosen.tensor, order));
                }
                Method::Whole(width) => whole.push((chosen.tensor, width, clip)),
                Method::Rows | Method::Product { .. } | Method::Keep => {}
            }
        }
        let mut list = Vec::new();
        if let Some(model) = &self.model {
            let texts = &self.request.calibration;
            match calibrate::targets(&self.container, model, &orders, texts, progress) {
                Ok(targets) => list = targets,
                // Nobody asked for it.
                Err(Error::Refused { .. }) if *texts == Calibration::Automatic => self.model = None,
                Err(other) => return Err(other),
            }
        }
        orders.retain(|(index, _)| !list.iter().any(|(done, ..)| done == index));
        for (index, width, clip) in whole {
            let tensor = &self.container.tensors[index];
            let (target, errors) = whole::target(tensor, width, self.request.domain, clip);
            progress(tensor.count());
            list.push((index, target, errors));
        }
        // The parts of all tensors in one list, so that small tensors keep all cores busy too.
        let all: Vec<(usize, Part)> = orders
            .iter()
            .enumerate()
            .flat_map(|(i, (tensor, _))| {
                let shape = &self.container.tensors[*tensor].shape;
                parts(shape[0], shape[1]).into_iter().map(move |part| (i, part))
            })
            .collect();
        let mut surveyed: Vec<Vec<_>> = orders.iter().map(|_| Vec::new()).collect();
        // A few at a time, so that the bar moves.
        for some in all.chunks(16 * rayon::current_num_threads()) {
            let survey = |(i, part): &(usize, Part)| {
                let (tensor, order) = &orders[*i];
                order.survey(&self.container.tensors[*tensor], *part)
            };
            let made = some.par_iter().map(survey).collect::<Result<Vec<_>, _>>()?;
            progress(some.iter().map(|(_, part)| part.count()).sum());
            some.iter().zip(made).for_each(|((i, _), made)| surveyed[*i].push(made));
        }
        for ((index, order), surveyed) in orders.into_iter().zip(surveyed) {
            let tensor = &self.container.tensors[index];
            let errors =
                surveyed.iter().map(|s| s.errors).fold(ErrorSums::default(), ErrorSums::plus);
            let too_large = || Error::refused(format!("{:?} is too large", tensor.name), "");
            let target = order.target(tensor, surveyed).ok_or_else(too_large)?;
            list.push((index, target, errors));
        }
        Ok(list)
    }
}

/// The bounds of a tensor's values: as asked for, else from the values, which must all be numbers.
fn bounds(tensor: &Tensor, request: &QuantizeRequest) -> Result<(f32, f32), Error> {
    let cols = tensor.shape.last().copied().unwrap_or(1);
    let rows = tensor.count() / cols.max(1);
    let of_part = |part: &Part| {
        let values = part.values(tensor, cols);
        let (mut low, mut high, mut odd) = (f32::INFINITY, f32::NEG_INFINITY, 0.0);
        for &v in &values {
            low = low.min(v);
            high = high.max(v);
            // Not zero exactly when some value is no number.
            odd += v * 0.0;
        }
        if odd == 0.0 {
            return Ok((low, high));
        }
        let at = values.iter().position(|v| !v.is_finite()).unwrap_or(0);
        Err((part.start(cols) + at as u64, values[at]))
    };
    let wider = |a: (f32, f32), b: (f32, f32)| Ok((a.0.min(b.0), a.1.max(b.1)));
    let none = || (f32::INFINITY, f32::NEG_INFINITY);
    let found = parts(rows, cols).par_iter().map(of_part).try_reduce(none, wider);
    let (low, high) = found.map_err(|(index, value)| {
        Error::refused(
            format!("tensor {:?} has {value} at index {index} and can't be quantized", tensor.name),
            "--exclude keeps the tensor as it is",
        )
    })?;
    let most = low.abs().max(high.abs());
    Ok(request.clip.unwrap_or(match request.domain {
        Domain::Weights => (-most, most),
        Domain::Activations => (low, high),
    }))
}
