//! Which tensors are quantized, and how.

use super::{Calibration, Domain, Kept, Method, QuantizeRequest};
use crate::convert::pattern;
use weighbridge_codec::DType;
use weighbridge_codec::block::Encoder;
use weighbridge_format::{Container, Encoding, Error, Tensor};

const EXCLUDED: &str = "excluded";
const NOT_SELECTED: &str = "not selected";

/// A tensor that is quantized.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chosen {
    pub tensor: usize,
    pub method: Method,
}

pub(super) fn choose(
    container: &Container,
    request: &QuantizeRequest,
) -> Result<(Vec<Chosen>, Vec<Kept>), Error> {
    if let Method::Product { .. } = request.method {
        let (tensor, kept) = super::product::choose(container)?;
        return Ok((vec![Chosen { tensor, method: request.method }], kept));
    }
    let globs = |list: &[String]| list.iter().map(|t| pattern(t)).collect::<Result<Vec<_>, _>>();
    let (select, exclude) = (globs(&request.select)?, globs(&request.exclude)?);
    let names = request.overrides.iter().map(|(glob, method)| Ok((pattern(glob)?, *method)));
    let overrides = names.collect::<Result<Vec<_>, Error>>()?;
    for pattern in select.iter().chain(&exclude).chain(overrides.iter().map(|(p, _)| p)) {
        if !container.tensors.iter().any(|t| pattern.matches(&t.name)) {
            return Err(Error::refused(
                format!("no tensor fits {:?}", pattern.as_str()),
                "`weighbridge inspect` lists them",
            ));
        }
    }
    let (mut chosen, mut kept) = (Vec::new(), Vec::new());
    for (index, tensor) in container.tensors.iter().enumerate() {
        let fits = |list: &[glob::Pattern]| list.iter().any(|p| p.matches(&tensor.name));
        let overridden = overrides.iter().rev().find(|(p, _)| p.matches(&tensor.name));
        let method = overridden.map_or(request.method, |(_, method)| *method);
        let why = if fits(&exclude) {
            Some(EXCLUDED.to_owned())
        } else if method == Method::Keep {
            Some("kept by --override".to_owned())
        } else if overridden.is_none() && !select.is_empty() && !fits(&select) {
            Some(NOT_SELECTED.to_owned())
        } else {
            obstacle(tensor, method, request)
        };
        match why {
            None => chosen.push(Chosen { tensor: index, method }),
            Some(why) => kept.push(Kept { name: tensor.name.clone(), why }),
        }
    }
    if chosen.is_empty() {
        // The reason of one that was meant says more than that others were not.
        let meant = |k: &&Kept| k.why != NOT_SELECTED && k.why != EXCLUDED;
        let example = kept.iter().find(meant).or(kept.first());
        let why = example.map(|k| format!(": {:?} {}", k.name, k.why)).unwrap_or_default();
        return Err(Error::refused(format!("there is nothing to quantize{why}"), ""));
    }
    Ok((chosen, kept))
}

fn methods(request: &QuantizeRequest) -> impl Iterator<Item = Method> {
    request.overrides.iter().map(|(_, m)| *m).chain([request.method])
}

fn uses_blocks(request: &QuantizeRequest) -> bool {
    methods(request).any(|m| matches!(m, Method::Blocks(_)))
}

/// Whether calibrating goes with all else that is asked for.
pub(super) fn can_calibrate(request: &QuantizeRequest) -> bool {
    uses_blocks(request)
        && request.encoder == Encoder::Best
        && request.clip.is_none()
        && request.importance.is_none()
        && request.domain == Domain::Weights
}

/// Refuses what can't be asked for together.
pub(super) fn check(request: &QuantizeRequest) -> Result<(), Error> {
    let methods = || methods(request);
    let whole = methods().any(|m| matches!(m, Method::Whole(_)));
    if whole && request.encoder == Encoder::Reference {
        return Err(Error::refused(
            "int8 and int4 have no reference encoder",
            "use --encoder best",
        ));
    }
    let reference = request.encoder == Encoder::Reference;
    if request.importance.is_some() && (!uses_blocks(request) || reference) {
        return Err(Error::refused(
            "--importance has no meaning here",
            "it goes with q8, q4, k6, k4, k3 and k2 and the best encoder",
        ));
    }
    let asked = matches!(request.calibration, Calibration::File(_));
    if asked && !can_calibrate(request) {
        return Err(Error::refused(
            "--calibrate-with has no meaning here",
            "it goes with q8, q4, k6, k4, k3 and k2 and the best encoder, without --importance and --clip",
        ));
    }
    if request.domain == Domain::Activations && uses_blocks(request) {
        return Err(Error::refused(
            "blocks are for weights only",
            "--domain activations goes with int8 and int4",
        ));
    }
    let plain = QuantizeRequest::new(Method::Rows);
    let only_for_weights = request.clip.is_some()
        || !request.overrides.is_empty()
        || request.domain != plain.domain
        || request.encoder != plain.encoder;
    if request.method == Method::Rows && only_for_weights {
        return Err(Error::refused(
            "i8 has no bounds, overrides, domains or encoders",
            "it goes with --normalize and --rounding",
        ));
    }
    let is_product = matches!(request.method, Method::Product { .. });
    let chooses = !request.select.is_empty() || !request.exclude.is_empty();
    if is_product && (only_for_weights || chooses || request.min_bytes > 0) {
        return Err(Error::refused(
            "pq and opq quantize the one matrix of words, without choices, bounds or encoders",
            "they go with --subquantizers, --bits and --seed",
        ));
    }
    if !is_product && request.product != plain.product {
        return Err(Error::refused(
            "--subquantizers, --bits and --seed have no meaning here",
            "they go with pq and opq",
        ));
    }
    let of_file = |m: &Method| matches!(m, Method::Rows | Method::Product { .. });
    if let Some((_, method)) = request.overrides.iter().find(|(_, m)| of_file(m)) {
        let name = method.name();
        let what = format!("{name} is a method for a whole file");
        return Err(Error::refused(what, format!("--method {name}")));
    }
    if let Some((low, high)) = request.clip
        && !(low.is_finite() && high.is_finite() && low < high)
    {
        return Err(Error::refused(format!("{low},{high} are no bounds"), "--clip MIN,MAX"));
    }
    Ok(())
}

/// Why a tensor can't be quantized.
fn obstacle(tensor: &Tensor, method: Method, request: &QuantizeRequest) -> Option<String> {
    let Some(bytes) = tensor.stored_len() else {
        return Some("has no data".to_owned());
    };
    let dtype = match tensor.encoding {
        Encoding::Plain(dtype) => dtype,
        _ => return Some(format!("is quantized already ({})", tensor.encoding.name())),
    };
    let known = [DType::F32, DType::F16, DType::BF16];
    let any_rank = matches!(method, Method::Whole(_)) && request.domain == Domain::Activations;
    if !dtype.is_float() || (request.encoder == Encoder::Reference && !known.contains(&dtype)) {
        Some(format!("is {dtype}"))
    } else if tensor.shape.len() != 2 && !any_rank {
        let n = tensor.shape.len();
        Some(format!("has {n} dimension{}", if n == 1 { "" } else { "s" }))
    } else if tensor.count() == 0 {
        Some("is empty".to_owned())
    } else if bytes < request.min_bytes {
        Some(format!("has {bytes} bytes, fewer than --min-bytes"))
    } else {
        None
    }
}
