//! A description in a line, for people.

use super::{Fact, ModelSpec, SaidBy};
use std::fmt;

impl fmt::Display for ModelSpec {
    /// `all-MiniLM-L6-v2: BERT, 6 layers, 384; mean pooling, normalized; WordPiece, 256 tokens`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.known_architecture().map(|a| a.name);
        let id = self.architecture.as_ref().map(|a| a.value.as_str());
        let name = self.name.as_deref().unwrap_or("a model");
        write!(f, "{name}: {}", known.or(id).unwrap_or("unknown architecture"))?;
        if let Some(layers) = &self.layers {
            let s = if layers.value == 1 { "" } else { "s" };
            write!(f, ", {} layer{s}", layers.value)?;
        }
        if let Some(hidden) = &self.hidden {
            write!(f, ", {}", hidden.value)?;
        }
        let modes = super::settings::pooling_name(&self.pooling.value);
        let normalized = if self.normalize.value { "normalized" } else { "not normalized" };
        write!(f, "; {modes} pooling{}, {normalized}", mark(&self.pooling))?;
        f.write_str(&mark(&self.normalize))?;
        if let Some(tokenizer) = &self.tokenizer {
            let kind = match tokenizer.kind.value.as_str() {
                "" => "unknown tokenizer",
                kind => kind,
            };
            write!(f, "; {kind}{}", mark(&tokenizer.kind))?;
        }
        if let Some(limit) = &self.max_tokens {
            write!(f, ", {} tokens{}", limit.value, mark(limit))?;
        }
        Ok(())
    }
}

/// What follows something that the model does not say.
fn mark<T>(fact: &Fact<T>) -> String {
    match &fact.said_by {
        SaidBy::Assumed => " (assumed)".to_owned(),
        SaidBy::Family(family) => format!(" (known of {family})"),
        _ => String::new(),
    }
}
