//! What stands in front of texts, for verbs that embed some.

use weighbridge::encoder::{PromptChoice, Purpose};
use weighbridge::{Encoder, Error};

/// The encoder with what stands in front of texts: what was asked for, or what the model has for
/// the purpose, which is said.
pub(super) fn prompted(
    encoder: &Encoder,
    given: Option<&str>,
    purpose: Purpose,
) -> Result<Encoder, Error> {
    let encoder = encoder.with_prompt(&PromptChoice::new(given, purpose))?;
    if given.is_none() {
        say_prompt(&encoder);
    }
    Ok(encoder)
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
