//! What the rows of a journal depend on: a run goes on with rows of the same only.

use super::file::EmbedSettings;
use super::journal::{Facts, Journal};
use super::made_with::MadeWith;
use weighbridge_encoder::{Encoder, ModelId, Pooling, Settings, Tokenizer};
use weighbridge_format::plan::RowLayout;

/// The version of what a journal has.
const VERSION: u32 = 5;

/// What the journal's rows depend on.
pub(super) fn facts(
    settings: &EmbedSettings,
    encoder: &Encoder,
    model: &ModelId,
    layout: &RowLayout,
) -> Facts {
    let Settings { precision, pooling, normalize, .. } = &settings.settings;
    let pooling = pooling.as_ref().map_or("the model's own", Pooling::name);
    let mut facts = Facts::new();
    let mut add = |name: &str, value: serde_json::Value| facts.insert(name.to_owned(), value);
    add("journal version", VERSION.into());
    add(Journal::MODEL, settings.model.as_str().into());
    add(Journal::WEIGHTS, model.weights.as_str().into());
    add("tokens", format!("{:016x}", hash_of_tokens(encoder.tokenizer())).into());
    add("precision", precision.name().into());
    add("pooling", pooling.into());
    add("normalize", (*normalize).into());
    add("prompt", encoder.prompt().map(|prompt| prompt.text.as_str()).into());
    add("max-tokens", encoder.max_tokens().into());
    add("dimensions", encoder.dimensions().into());
    add("batch", settings.window.into());
    add("input", settings.form.to_string().into());
    add("shard", settings.shard.map(|shard| shard.to_string()).into());
    add(Journal::LAYOUT, layout.name.into());
    add(Journal::VECTORS, format!("{:016x}", fingerprint(&model.probes)).into());
    facts
}

/// What the rows of a merged file depend on.
pub(super) fn merged_facts(made_with: &MadeWith, input: &str, layout: &RowLayout) -> Facts {
    let mut facts = Facts::new();
    let mut add = |name: &str, value: serde_json::Value| facts.insert(name.to_owned(), value);
    add("journal version", VERSION.into());
    add(Journal::WEIGHTS, made_with.model.weights.as_str().into());
    add("precision", made_with.precision.as_str().into());
    add("dimensions", made_with.dimensions.into());
    add("merged", input.into());
    add(Journal::LAYOUT, layout.name.into());
    facts
}

/// FNV-1a of the vectors' bits: the same rows come out only where these do.
fn fingerprint(vectors: &[Vec<f32>]) -> u64 {
    fnv1a(vectors.iter().flatten().flat_map(|v| v.to_le_bytes()))
}

/// FNV-1a of all tokens in order: the few texts above have few of them.
fn hash_of_tokens(tokenizer: &Tokenizer) -> u64 {
    let tokens = (0..).take(tokenizer.len()).map(|id| tokenizer.token(id).unwrap_or_default());
    fnv1a(tokens.flat_map(|token| [token.as_bytes(), b"\n"].concat()))
}

fn fnv1a(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
