//! What config.json says of rotary positions, and of layers that attend to neighbours alone.

use super::read::{File, Reader};
use super::{Fact, Misstatement, ModelSpec, Positions, RopeScaling, SaidBy};
use serde_json::Value as Json;

/// What layers of each kind are called.
const FULL: &str = "full_attention";
const LOCAL: &str = "sliding_attention";

/// More layers than any model has: their kinds are not listed.
const MOST_LAYERS: u64 = 1000;
/// A window that is larger than any text.
const WIDEST: u64 = 1 << 31;

pub(super) fn read(spec: &mut ModelSpec, config: &File, r: &mut Reader) {
    spec.rope_theta = positive(r, config, &["rope_theta", "rotary_emb_base", "global_rope_theta"]);
    let known = spec.known_architecture();
    // Others have words of their own, which nobody here has a use for.
    if known.is_none_or(|known| known.positions != Positions::Rotary) {
        return;
    }
    spec.local_rope_theta = positive(r, config, &["local_rope_theta"]);
    // What older libraries write, and newer ones.
    for key in ["rope_scaling", "rope_parameters"] {
        let part = |path: &str, json: &Json| File {
            name: format!("{} {path}", config.name),
            json: json.clone(),
        };
        let Some((said, _)) = Reader::value(config, &[key]) else { continue };
        let kinds = [FULL, LOCAL].map(|kind| said.get(kind));
        if let [None, None] = kinds {
            add(spec, &part(key, said), r);
            continue;
        }
        let mut whole = ModelSpec::default();
        let mut local = ModelSpec::default();
        for (spec, (kind, said)) in
            [&mut whole, &mut local].into_iter().zip([FULL, LOCAL].into_iter().zip(kinds))
        {
            add(spec, &part(&format!("{key} {kind}"), said.unwrap_or(&Json::Null)), r);
        }
        spec.rope_theta = whole.rope_theta.or(spec.rope_theta.take());
        spec.local_rope_theta = local.rope_theta.or(spec.local_rope_theta.take());
        for side in [whole.rope_scaling, local.rope_scaling] {
            // One that holds for some layers only is like one that is not known.
            if side.value != RopeScaling::Default {
                let name = side.value.name().to_owned();
                spec.rope_scaling = Fact { value: RopeScaling::Other(name), said_by: side.said_by };
            }
        }
    }
    if let Some((_, place)) = Reader::value(config, &["rotary_scaling_factor"]) {
        let value = RopeScaling::Other("dynamic".to_owned());
        spec.rope_scaling = Fact { value, said_by: SaidBy::File(place) };
    }
    spec.local_attention = r.read(config, &["local_attention"], "a number of tokens", |v| {
        v.as_u64().filter(|n| (1..WIDEST).contains(n))
    });
    if let Some(layers) = local_layers(spec, config, r) {
        spec.local_layers = layers;
    }
}

/// What one object says of the angles.
fn add(spec: &mut ModelSpec, said: &File, r: &mut Reader) {
    if let Some(theta) = positive(r, said, &["rope_theta"]) {
        spec.rope_theta = Some(theta);
    }
    if let Some(Fact { value, said_by }) = r.text(said, &["rope_type", "type"]) {
        spec.rope_scaling = Fact { value: RopeScaling::from_name(&value), said_by };
    }
    if let Some(factor) = positive(r, said, &["factor"]) {
        spec.rope_factor = Some(factor);
    } else if matches!(spec.rope_scaling.value, RopeScaling::Linear | RopeScaling::Ntk) {
        let (field, expected) = (format!("{} factor", said.name), "a number".to_owned());
        // Whatever is there that is no factor was noted before.
        if said.json.get("factor").is_none_or(Json::is_null) {
            let found = "nothing".to_owned();
            r.misstatements.push(Misstatement { field, expected, found });
        }
    }
}

fn positive(r: &mut Reader, file: &File, keys: &[&str]) -> Option<Fact<f64>> {
    r.read(file, keys, "a number above zero", |v| v.as_f64().filter(|v| v.is_finite() && *v > 0.0))
}

/// The layers that attend to neighbours alone: as they are listed, or all but every so many.
fn local_layers(spec: &ModelSpec, config: &File, r: &mut Reader) -> Option<Fact<Vec<u64>>> {
    let layers = spec.layers.as_ref().map_or(0, |fact| fact.value).min(MOST_LAYERS);
    let expected = format!("a list of {layers} names, {FULL} or {LOCAL}");
    let listed = r.read(config, &["layer_types"], &expected, |list| {
        let list = list.as_array().filter(|list| list.len() as u64 == layers)?;
        let local = |(number, kind): (u64, &Json)| match kind.as_str()? {
            FULL => Some(None),
            LOCAL => Some(Some(number)),
            _ => None,
        };
        let local: Option<Vec<_>> = (0..).zip(list).map(local).collect();
        Some(local?.into_iter().flatten().collect())
    });
    listed.or_else(|| {
        let key = "global_attn_every_n_layers";
        let every =
            r.read(config, &[key], "a number of layers", |v| v.as_u64().filter(|n| *n > 0))?;
        let local = (0..layers).filter(|number| !number.is_multiple_of(every.value));
        Some(Fact { value: local.collect(), said_by: every.said_by })
    })
}
