//! What is asked of quantizing, and what can't be asked together.

use super::{Calibration, Domain, Importance, Method, ProductSettings};
use weighbridge_codec::block::BlockEncoder;
use weighbridge_format::{Advice, Error, Format, Formats, Options, QuantizedContent};

/// What to quantize and how.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QuantizeSettings {
    /// How values are stored.
    pub method: Method,
    /// Which encoder finds the codes of blocks.
    pub encoder: BlockEncoder,
    /// What the values are.
    pub domain: Domain,
    /// Patterns of the tensors to quantize; all when there are none. The others are kept.
    pub select: Vec<String>,
    /// Patterns of tensors to keep.
    pub exclude: Vec<String>,
    /// Patterns with the method that tensors of fitting names get instead; the last that fits counts.
    pub overrides: Vec<(String, Method)>,
    /// Tensors of fewer bytes are kept.
    pub min_bytes: u64,
    /// Bounds that values are clamped to; else what each tensor has.
    pub clip: Option<(f32, f32)>,
    /// How much the error of each column counts.
    pub importance: Option<Importance>,
    /// Texts to watch a model with, so that its vectors stay close rather than its weights.
    pub calibration: Calibration,
    /// For `pq` and `opq`.
    pub product: ProductSettings,
    /// Options of the format that is written.
    pub options: Options,
    /// The formats among which the one that is written is found.
    pub formats: Formats,
}

/// The methods that store blocks, for advice.
const BLOCK_METHODS: &str = "it goes with q8, q4, k6, k4, k3 and k2 and the best encoder";

impl QuantizeSettings {
    /// A method, with what is usual for it.
    pub fn new(method: Method) -> QuantizeSettings {
        QuantizeSettings {
            method,
            encoder: BlockEncoder::Best,
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
            formats: Formats::default(),
        }
    }

    fn methods(&self) -> impl Iterator<Item = Method> {
        self.overrides.iter().map(|(_, m)| *m).chain([self.method])
    }

    fn uses_blocks(&self) -> bool {
        self.methods().any(|m| matches!(m, Method::Blocks(_)))
    }

    fn is_product(&self) -> bool {
        matches!(self.method, Method::Product { .. })
    }

    /// Whether weights of a model are quantized, rather than rows of vectors.
    pub(super) fn is_of_weights(&self) -> bool {
        self.method.content() == QuantizedContent::Weights && self.domain == Domain::Weights
    }

    /// Whether calibrating goes with all else that is asked for.
    pub(super) fn can_calibrate(&self) -> bool {
        let signed = |m: Method| matches!(m, Method::Blocks(codec) if codec.as_signed().is_some());
        self.methods().any(signed)
            && self.encoder == BlockEncoder::Best
            && self.clip.is_none()
            && self.importance.is_none()
            && self.domain == Domain::Weights
    }

    /// Refuses what can't be asked for together.
    pub(super) fn check(&self, format: &Format) -> Result<(), Error> {
        self.check_encoder()?;
        self.check_method()?;
        let of_file = |m: &Method| matches!(m, Method::UnitRows | Method::Product { .. });
        if let Some((_, method)) = self.overrides.iter().find(|(_, m)| of_file(m)) {
            let name = method.name();
            let advice = Advice::set_to("method", name, "quantizes a whole file");
            return Err(Error::refused(format!("{name} is a method for a whole file"), advice));
        }
        if let Some((low, high)) = self.clip
            && !(low.is_finite() && high.is_finite() && low < high)
        {
            let advice = Advice::set_to("clip", "MIN,MAX", "is how they are given");
            return Err(Error::refused(format!("{low},{high} are not bounds"), advice));
        }
        if let Some(method) = self.methods().find(|method| !method.is_held_by(format)) {
            let what = format!("{} can't hold {}", format.info().name, method.name());
            return Err(Error::refused(what, ""));
        }
        Ok(())
    }

    /// Encoder, importance, calibration and domain.
    fn check_encoder(&self) -> Result<(), Error> {
        let reference = self.encoder == BlockEncoder::Reference;
        if self.methods().any(|m| matches!(m, Method::PerTensor(_))) && reference {
            let advice = Advice::set_to("encoder", "best", "does it");
            return Err(Error::refused("int8 and int4 have no reference encoder", advice));
        }
        let meaningless = |option: &'static str, advice: Advice| {
            let message = format!("the option {option} has no meaning here");
            Err(Error::refused(message, advice.and(Advice::LeaveOut { option })))
        };
        if self.importance.is_some() && (!self.uses_blocks() || reference) {
            return meaningless("importance", BLOCK_METHODS.into());
        }
        if matches!(self.calibration, Calibration::Texts(_)) && !self.can_calibrate() {
            let advice = format!("{BLOCK_METHODS}, without importance and bounds");
            return meaningless("calibration", advice.into());
        }
        if self.domain == Domain::Activations && self.uses_blocks() {
            let advice = Advice::set_to("domain", "activations", "goes with int8 and int4");
            return Err(Error::refused("blocks are for weights only", advice));
        }
        Ok(())
    }

    /// What the methods for whole files have no use for.
    fn check_method(&self) -> Result<(), Error> {
        let usual = QuantizeSettings::new(Method::UnitRows);
        let only_for_weights = self.clip.is_some()
            || !self.overrides.is_empty()
            || self.domain != usual.domain
            || self.encoder != usual.encoder;
        if self.method == Method::UnitRows && only_for_weights {
            return Err(Error::refused(
                "i8 has no bounds, overrides, domains or encoders",
                Advice::from("it goes with the options normalize and rounding"),
            ));
        }
        let chooses = !self.select.is_empty() || !self.exclude.is_empty();
        if self.is_product() && (only_for_weights || chooses || self.min_bytes > 0) {
            return Err(Error::refused(
                "pq and opq quantize the one matrix of words, without choices, bounds or encoders",
                "they go with the options subquantizers, bits and seed",
            ));
        }
        if !self.is_product() && self.product != usual.product {
            return Err(Error::refused(
                "the options subquantizers, bits and seed have no meaning here",
                "they go with pq and opq",
            ));
        }
        Ok(())
    }
}
