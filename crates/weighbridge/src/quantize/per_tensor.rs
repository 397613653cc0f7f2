//! One scale for a whole tensor.

use super::error::ErrorSums;
use super::tiles::in_order;
use super::{Method, QuantizeSettings};
use std::sync::Arc;
use weighbridge_codec::DType;
use weighbridge_codec::integer::{Magnitudes, Mapping, Width, largest_magnitude};
use weighbridge_codec::parallel::*;
use weighbridge_format::model::{
    BLOCK, Encoding, Note, NoteKind, Produce, Scaled, Scaling, Target,
};
use weighbridge_format::wire::to_len;
use weighbridge_format::{Advice, Error, Tensor};

/// What the values are: weights around zero, or activations anywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Domain {
    /// Weights, around zero.
    #[default]
    Weights,
    /// Activations, anywhere.
    Activations,
}

/// What to know of one scale for weights: by `int8` most people mean something finer.
pub(super) fn note(settings: &QuantizeSettings) -> Option<Note> {
    let Method::PerTensor(width) = settings.method else { return None };
    let finer = match width {
        Width::Int8 => "q8",
        Width::Int4 => "q4",
    };
    let name = settings.method.name();
    let text = format!(
        "{name} has one scale for a whole tensor: a few large weights make the others coarse"
    );
    let advice = Advice::set_to("method", finer, "has one for every 32 weights");
    (settings.domain == Domain::Weights).then(|| Note::new(NoteKind::Unusual, text).advice(advice))
}

/// Chooses the scale of a tensor and measures what comes of it.
pub(super) fn target(
    tensor: &Tensor,
    width: Width,
    domain: Domain,
    clip: (f32, f32),
) -> Result<(Target, ErrorSums), Error> {
    let mapping = match domain {
        Domain::Activations => Mapping::for_activations(width, clip),
        Domain::Weights => Mapping::for_weights(width, clip, &magnitudes(tensor, clip)?),
    };
    let (scale, zero) = (mapping.scale, mapping.zero);
    let codes = match width {
        Width::Int8 => DType::I8,
        Width::Int4 => DType::I4,
    };
    let zero = (domain == Domain::Activations).then_some(zero);
    let scaling = Scaling::per_tensor(scale, zero);
    let encoding = Encoding::Scaled(Arc::new(Scaled { codes, scaling }));
    let data = Codes { tensor: tensor.clone(), mapping };
    let errors = starts(tensor).into_par_iter().map(|start| data.errors(start));
    let errors = errors.collect::<Result<Vec<_>, Error>>()?;
    let errors = errors.into_iter().fold(ErrorSums::default(), ErrorSums::plus);
    Ok((Target { encoding, data: Arc::new(data), bounds: clip }, errors))
}

/// The magnitudes of a tensor's values, counted on all cores and added up in order, so that any
/// number of threads gives the same sums.
fn magnitudes(tensor: &Tensor, clip: (f32, f32)) -> Result<Magnitudes, Error> {
    let starts = starts(tensor);
    let largest = starts.par_iter().map(|s| Ok(largest_magnitude(&values(tensor, *s)?, clip)));
    let largest = largest.collect::<Result<Vec<f32>, Error>>()?.into_iter().fold(0.0, f32::max);
    let mut all = Magnitudes::up_to(largest);
    // So many parts at a time that making a table for each does not matter.
    const TOGETHER: usize = 8;
    for some in starts.chunks(4 * TOGETHER * current_num_threads()) {
        let count = |starts: &[u64]| {
            let mut part = Magnitudes::up_to(largest);
            for start in starts {
                part.add(&values(tensor, *start)?, clip);
            }
            Ok(part)
        };
        let parts = some.par_chunks(TOGETHER).map(count).collect::<Result<Vec<_>, Error>>()?;
        parts.iter().for_each(|part| all.merge(part));
    }
    Ok(all)
}

/// Where the parts of a tensor begin.
fn starts(tensor: &Tensor) -> Vec<u64> {
    (0..tensor.count()).step_by(BLOCK).collect()
}

fn values(tensor: &Tensor, start: u64) -> Result<Vec<f32>, Error> {
    tensor.values_f32(start, to_len(tensor.count() - start).min(BLOCK))
}

/// Makes the codes of a tensor while they are written.
#[derive(Debug)]
struct Codes {
    tensor: Tensor,
    mapping: Mapping,
}

impl Codes {
    fn make(&self, start: u64) -> Result<(Vec<f32>, Vec<u8>), Error> {
        let values = values(&self.tensor, start)?;
        let mut codes = vec![0; self.mapping.width.byte_len(values.len())];
        self.mapping.encode(&values, &mut codes);
        Ok((values, codes))
    }

    fn errors(&self, start: u64) -> Result<ErrorSums, Error> {
        let (values, codes) = self.make(start)?;
        let code = |i: usize| match self.mapping.width {
            Width::Int8 => codes[i].cast_signed(),
            // To the top of the byte, and back with the sign.
            Width::Int4 => (codes[i / 2] << (4 * (1 - i % 2))).cast_signed() >> 4,
        };
        let decoded: Vec<_> = (0..values.len()).map(|i| self.mapping.value(code(i))).collect();
        Ok(ErrorSums::of(&values, &decoded))
    }
}

impl Produce for Codes {
    fn produce(&self, out: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        in_order(&starts(&self.tensor), |start| Ok(self.make(start)?.1), out)
    }
}
