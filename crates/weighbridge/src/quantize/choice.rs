//! Which tensors are quantized, and how.

use super::{Domain, Kept, KeptReason, Method, QuantizeSettings};
use crate::pattern::{Pattern, patterns};
use weighbridge_codec::DType;
use weighbridge_codec::block::BlockEncoder;
use weighbridge_format::{Container, Encoding, Error, Tensor};

/// A tensor that is quantized.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chosen {
    pub tensor: usize,
    pub method: Method,
}

/// The tensors to quantize, and why the others are kept.
pub(super) fn choose(
    container: &Container,
    settings: &QuantizeSettings,
) -> Result<(Vec<Chosen>, Vec<Kept>), Error> {
    let select = patterns(&settings.select, container)?;
    let exclude = patterns(&settings.exclude, container)?;
    let (names, methods): (Vec<_>, Vec<_>) = settings.overrides.iter().cloned().unzip();
    let overrides: Vec<_> = patterns(&names, container)?.into_iter().zip(methods).collect();
    if let Method::Product { .. } = settings.method {
        let (tensor, kept) = super::product::choose(container)?;
        return Ok((vec![Chosen { tensor, method: settings.method }], kept));
    }
    let (mut chosen, mut kept) = (Vec::new(), Vec::new());
    for (index, tensor) in container.tensors.iter().enumerate() {
        let fits = |list: &[Pattern]| list.iter().any(|p| p.matches(&tensor.name));
        let overridden = overrides.iter().rev().find(|(p, _)| p.matches(&tensor.name));
        let method = overridden.map_or(settings.method, |(_, method)| *method);
        let reason = if fits(&exclude) {
            Some((KeptReason::Excluded, "excluded".to_owned()))
        } else if method == Method::Keep {
            Some((KeptReason::Overridden, "is kept by an override".to_owned()))
        } else if overridden.is_none() && !select.is_empty() && !fits(&select) {
            Some((KeptReason::NotSelected, "not selected".to_owned()))
        } else {
            obstacle(tensor, method, settings).map(|why| (KeptReason::Unsuitable, why))
        };
        match reason {
            None => chosen.push(Chosen { tensor: index, method }),
            Some((reason, why)) => kept.push(Kept { name: tensor.name.clone(), reason, why }),
        }
    }
    if chosen.is_empty() {
        // The reason of one that was meant says more than that others were not.
        let meant = |k: &&Kept| !matches!(k.reason, KeptReason::NotSelected | KeptReason::Excluded);
        let example = kept.iter().find(meant).or(kept.first());
        let why = example.map(|k| format!(": {:?} {}", k.name, k.why)).unwrap_or_default();
        return Err(Error::refused(format!("there is nothing to quantize{why}"), ""));
    }
    Ok((chosen, kept))
}

/// Why a tensor can't be quantized.
fn obstacle(tensor: &Tensor, method: Method, settings: &QuantizeSettings) -> Option<String> {
    let Some(bytes) = tensor.stored_len() else {
        return Some("has no data".to_owned());
    };
    let dtype = match tensor.encoding {
        Encoding::Plain(dtype) => dtype,
        _ => return Some(format!("is quantized already ({})", tensor.encoding.name())),
    };
    let known = [DType::F32, DType::F16, DType::BF16];
    let any_rank = matches!(method, Method::PerTensor(_)) && settings.domain == Domain::Activations;
    if !dtype.is_float() || (settings.encoder == BlockEncoder::Reference && !known.contains(&dtype))
    {
        Some(format!("is {dtype}"))
    } else if tensor.shape.len() != 2 && !any_rank {
        let n = tensor.shape.len();
        Some(format!("has {n} dimension{}", if n == 1 { "" } else { "s" }))
    } else if tensor.count() == 0 {
        Some("is empty".to_owned())
    } else if bytes < settings.min_bytes {
        Some(format!("has {bytes} bytes, fewer than {}", settings.min_bytes))
    } else {
        None
    }
}
