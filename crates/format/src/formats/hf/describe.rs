//! What the files of a model say about it: settings and vocabulary.

use super::super::Stop;
use super::{TOKENIZER, tokenizer};
use crate::Error;
use crate::model::{Attachment, Vocabulary};
use crate::spec::{Attached, ModelFiles, ModelSpec, SaidBy, tokenizer_facts};
use crate::wire::Findings;

#[derive(Debug, Default)]
pub(in super::super) struct Description {
    /// The model, as far as the files say it.
    pub spec: ModelSpec,
    /// There is a config.json.
    pub has_config: bool,
    /// Metadata keys and texts.
    pub settings: Vec<(&'static str, String)>,
    pub vocabulary: Option<Vocabulary>,
    /// Settings and vocabulary say all that the files say.
    pub is_whole: bool,
}

impl Description {
    /// Whether the settings say this metadata.
    pub(in super::super) fn tells(&self, key: &str, text: &str) -> bool {
        self.settings.iter().any(|(k, v)| *k == key && v == text)
    }

    /// The reason why other places can't say a key otherwise, or not at all: the files say it.
    pub(in super::super) fn says(&self, key: &str) -> Option<&'static str> {
        let said = self.settings.iter().any(|(k, _)| *k == key);
        said.then_some("config.json or another file of the model says it")
    }

    /// Whether config.json says what MCF has in its ModelInfo.
    pub(super) fn config_tells(&self, key: &str, text: &str) -> bool {
        let spec = &self.spec;
        match key {
            "arch" => self.model_type().is_some_and(|kind| kind.starts_with(text)),
            "num_key_value_heads" => {
                spec.key_value_heads.as_ref().is_some_and(|n| text.parse() == Ok(n.value))
            }
            #[allow(clippy::cast_possible_truncation)]
            "rope_theta" => {
                spec.rope_theta.as_ref().is_some_and(|v| (v.value as f32).to_string() == text)
            }
            _ => false,
        }
    }

    /// What config.json calls the architecture.
    pub(in super::super) fn model_type(&self) -> Option<&str> {
        let said = self.spec.architecture.as_ref()?;
        match &said.said_by {
            SaidBy::File(place) if place.ends_with("model_type") => Some(&said.value),
            _ => None,
        }
    }
}

pub(super) fn read(files: &dyn ModelFiles, findings: &mut Findings) -> Result<Description, Stop> {
    let spec = ModelSpec::from_files(files)?;
    let said = spec.tokenizer.clone().unwrap_or_default();
    let tokenizer = tokenizer::read(files, &said, findings)?;
    // Without any tokenizer file there is nothing that would need more words.
    let has_tokenizer = files.has("tokenizer.json") || files.has("vocab.txt");
    let is_sayable = spec.is_sayable();
    if !tokenizer.is_plain && is_sayable && has_tokenizer {
        findings.push(
            TOKENIZER
                .at(0..0)
                .in_file(crate::spec::tokenizer::TOKENIZER)
                .field("tokenizer.json")
                .expected("BERT's normalizer, pre-tokenizer and WordPiece")
                .hint("formats without attachments can't keep it"),
        );
    }
    Ok(Description {
        settings: spec.settings(),
        has_config: files.has("config.json"),
        spec,
        vocabulary: tokenizer.vocabulary,
        is_whole: is_sayable && (tokenizer.is_plain || !has_tokenizer),
    })
}

/// The same of files that travel in another file. What can't be understood says nothing; the reason
/// is given.
pub(in super::super) fn describe_files(
    attachments: &[Attachment],
) -> Result<(Description, Option<String>), Error> {
    let mut findings = Findings::default();
    let files = Attached(attachments);
    let reason = |f: &crate::Finding| format!("{}: {} {}", f.field, f.message, f.found);
    let (mut description, problem) = match read(&files, &mut findings) {
        Ok(description) => (description, findings.first_error().map(reason)),
        // A vocabulary does not need the other files.
        Err(Stop::Broken(finding)) => {
            let tokenizer = tokenizer_facts(&files)
                .and_then(|said| tokenizer::read(&files, &said, &mut findings));
            let vocabulary = match tokenizer {
                Ok(tokenizer) => tokenizer.vocabulary,
                Err(Stop::Broken(_)) => None,
                Err(Stop::Failed(error)) => return Err(error),
            };
            (Description { vocabulary, ..Description::default() }, Some(reason(&finding)))
        }
        Err(Stop::Failed(error)) => return Err(error),
    };
    // Without a configuration there is no model to describe.
    if !description.has_config {
        description.settings.clear();
    }
    Ok((description, problem))
}
