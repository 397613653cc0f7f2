//! What stands in front of texts, for verbs that embed some.

use weighbridge::Encoder;
use weighbridge::encoder::{PromptChoice, Purpose};

/// The encoder with what stands in front of texts: what was asked for, or what the model has for
/// the purpose, which is said.
pub(super) fn prompted(encoder: &Encoder, given: Option<&str>, purpose: Purpose) -> Encoder {
    let encoder = encoder.with_prompt(&PromptChoice::new(given, purpose));
    if given.is_none() {
        say_prompt(&encoder);
    }
    encoder
}

/// Says what stands in front of texts though nobody asked for it.
pub(super) fn say_prompt(encoder: &Encoder) {
    if let Some(prompt) = encoder.prompt() {
        let text = &prompt.text;
        super::say_note(&format!(
            "{text:?} stands in front of every text, as the model asks; --prompt '' leaves it out"
        ));
    }
}
