//! Storing weights in fewer bits, with the error that this makes measured.

mod blocks;
mod calibrate;
mod choice;
mod error;
mod importance;
mod method;
mod per_tensor;
mod product;
mod report;
mod settings;
mod targets;
mod tiles;
mod unit_rows;

pub use calibrate::{Calibration, VectorChange};
pub use error::{ErrorFigures, ErrorSums};
pub use importance::Importance;
pub use method::Method;
pub use per_tensor::Domain;
pub use product::ProductSettings;
pub use report::{Kept, KeptReason, QuantizeReport, QuantizedTensor};
pub use settings::QuantizeSettings;

use choice::Chosen;
use weighbridge_codec::block::BlockEncoder;
use weighbridge_format::plan::{Loss, Report};
use weighbridge_format::{Container, Error, Format, Plan, Progress};

/// Quantizes a container, and plans the file that holds the result.
///
/// # Errors
/// What [`Quantization::new`] and [`Quantization::run`] refuse.
pub fn quantize(
    container: &Container,
    settings: &QuantizeSettings,
    progress: &mut Progress,
) -> Result<Quantized, Error> {
    Quantization::new(container, settings)?.run(progress)
}

/// A container that was quantized.
#[derive(Debug)]
#[non_exhaustive]
pub struct Quantized {
    /// The tensors with their new encodings as what they shall be stored as.
    pub container: Container,
    /// The file that holds it, in the format that the method writes.
    pub plan: Plan,
    /// What became smaller, and what it cost.
    pub report: QuantizeReport,
}

/// A container that is to be quantized, with its tensors chosen.
#[derive(Debug)]
pub struct Quantization<'a> {
    settings: &'a QuantizeSettings,
    format: &'static Format,
    container: Container,
    chosen: Vec<Chosen>,
    kept: Vec<Kept>,
    /// The model, if it can be run.
    model: Option<weighbridge_encoder::Encoder>,
    /// It is watched while its weights are rounded.
    calibrates: bool,
    /// What the format has no idea of.
    narrowing: Report,
}

impl<'a> Quantization<'a> {
    /// Chooses the tensors.
    ///
    /// # Errors
    /// [`Error::Refused`] for settings that do not go together, patterns that fit nothing, and if
    /// there is nothing to quantize.
    pub fn new(container: &Container, settings: &'a QuantizeSettings) -> Result<Self, Error> {
        let format = settings.method.format(&settings.formats)?;
        settings.formats.check_options(&settings.options, container.format, format)?;
        // What the format has no idea of goes first, so that what is measured is what is written.
        let mut narrowing = Report::new();
        let container = container.narrowed_to(format.info(), &mut narrowing)?.into_owned();
        settings.check(format)?;
        let model = calibrate::model(&container, settings)?;
        let (chosen, kept) = choice::choose(&container, settings)?;
        let calibrates = settings.can_calibrate();
        Ok(Quantization { settings, format, container, chosen, kept, model, calibrates, narrowing })
    }

    /// The format that the result is written in.
    pub fn format(&self) -> &'static Format {
        self.format
    }

    /// What else is lost besides precision, known before the work is done.
    ///
    /// # Errors
    /// Where the container does not fit the format.
    pub fn losses(&self) -> Result<Vec<Loss>, Error> {
        let mut losses = self.narrowing.losses.clone();
        if self.settings.method != Method::UnitRows {
            losses.extend(self.format.plan(&self.container, &self.settings.options)?.report.losses);
        }
        Ok(losses)
    }

    /// Quantizes, and plans the file.
    ///
    /// # Errors
    /// [`Error::Refused`] for values that can't be quantized, [`Error::Cancelled`].
    pub fn run(mut self, progress: &mut Progress) -> Result<Quantized, Error> {
        let narrowing = std::mem::take(&mut self.narrowing);
        let mut quantized = match self.settings.method {
            Method::UnitRows => unit_rows::run(self, progress)?,
            Method::Product { rotate } => product::run(self, rotate, progress)?,
            _ => self.run_weights(progress)?,
        };
        let report = &mut quantized.plan.report;
        report.losses.splice(0..0, narrowing.losses);
        report.ignored.extend(narrowing.ignored);
        Ok(quantized)
    }

    fn run_weights(mut self, progress: &mut Progress) -> Result<Quantized, Error> {
        let mut container = self.container.clone();
        let mut done = Vec::with_capacity(self.chosen.len());
        let calibrated = self.targets(progress)?;
        for (index, target, errors) in calibrated.targets {
            done.push((index, errors));
            container.tensors[index].target = Some(target);
        }
        let mut adjusted = Vec::new();
        for (index, bias) in calibrated.biases {
            adjusted.push(bias.name.clone());
            container.tensors[index] = bias;
        }
        self.kept.retain(|kept| !adjusted.contains(&kept.name));
        let mut options = self.settings.options.clone();
        if self.settings.encoder == BlockEncoder::Reference {
            options.set("reference-order", "true");
        }
        let mut plan = self.format.plan(&container, &options)?;
        plan.report.warnings.extend(per_tensor::note(self.settings));
        let mut report = QuantizeReport::new(&container, &plan, &done, self.kept);
        report.adjusted = adjusted;
        if let Some(model) = &self.model {
            report.vectors = match calibrate::compare(&container, model, progress) {
                Ok(change) => Some(change),
                // A model that makes no vectors has none to compare.
                Err(Error::Refused(_)) if !self.calibrates => None,
                Err(other) => return Err(other),
            };
            report.calibrated = report.vectors.clone().filter(|_| self.calibrates);
        }
        Ok(Quantized { container, plan, report })
    }
}
