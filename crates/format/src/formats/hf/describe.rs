//! What the files of a model say about it: settings and vocabulary.

use super::super::Stop;
use super::files::Files;
use super::settings::Settings;
use super::{TOKENIZER, tokenizer};
use crate::Error;
use crate::model::{Attachment, Vocabulary};
use crate::wire::Findings;
use serde_json::Value as Json;

#[derive(Debug, Default)]
pub(in super::super) struct Description {
    /// Metadata keys and texts.
    pub settings: Vec<(&'static str, String)>,
    pub vocabulary: Option<Vocabulary>,
    /// Settings and vocabulary say all that the files say.
    pub is_whole: bool,
}

impl Description {
    /// Whether the files say this metadata.
    pub(in super::super) fn tells(&self, key: &str, text: &str) -> bool {
        self.settings.iter().any(|(k, v)| *k == key && v == text)
    }
}

/// The config.json; null when there is none that makes sense.
pub(in super::super) fn config_of(attachments: &[Attachment]) -> Result<Json, Error> {
    match Files::Attached(attachments).json("config.json") {
        Ok(config) => Ok(config),
        Err(Stop::Broken(_)) => Ok(Json::Null),
        Err(Stop::Failed(error)) => Err(error),
    }
}

/// Whether a config.json says what MCF has in its ModelInfo.
pub(super) fn config_tells(config: &Json, key: &str, text: &str) -> bool {
    let kind = config["model_type"].as_str().unwrap_or_default();
    match key {
        "arch" => kind.starts_with(text),
        "num_key_value_heads" => config[key].as_u64().is_some_and(|n| text.parse() == Ok(n)),
        #[allow(clippy::cast_possible_truncation)]
        "rope_theta" => config[key].as_f64().is_some_and(|v| (v as f32).to_string() == text),
        _ => false,
    }
}

pub(super) fn read(files: &Files, findings: &mut Findings) -> Result<Description, Stop> {
    let config = files.json("config.json")?;
    let tokenizer = tokenizer::read(files, findings)?;
    let settings = Settings::read(files, &config, &tokenizer)?;
    // Without any tokenizer file there is nothing that would need more words.
    let has_tokenizer = files.has("tokenizer.json") || files.has("vocab.txt");
    if !tokenizer.is_plain && settings.is_bert && has_tokenizer {
        findings.push(
            TOKENIZER
                .at(0..0)
                .field("tokenizer.json")
                .expected("BERT's normalizer, pre-tokenizer and WordPiece")
                .hint("formats without attachments can't keep it"),
        );
    }
    Ok(Description {
        settings: settings.list,
        vocabulary: tokenizer.vocabulary,
        is_whole: settings.is_bert && (tokenizer.is_plain || !has_tokenizer),
    })
}

/// The same of files that travel in another file. What can't be understood says nothing; the reason
/// is given.
pub(in super::super) fn describe_files(
    attachments: &[Attachment],
) -> Result<(Description, Option<String>), Error> {
    let mut findings = Findings::default();
    let files = Files::Attached(attachments);
    let told = |f: &crate::Finding| format!("{}: {} {}", f.field, f.message, f.found);
    let (mut description, problem) = match read(&files, &mut findings) {
        Ok(description) => (description, findings.first_error().map(told)),
        // A vocabulary does not need the other files.
        Err(Stop::Broken(finding)) => {
            let vocabulary = match tokenizer::read(&files, &mut findings) {
                Ok(tokenizer) => tokenizer.vocabulary,
                Err(Stop::Broken(_)) => None,
                Err(Stop::Failed(error)) => return Err(error),
            };
            (Description { vocabulary, ..Description::default() }, Some(told(&finding)))
        }
        Err(Stop::Failed(error)) => return Err(error),
    };
    // Without a configuration there is no model to describe.
    if !files.has("config.json") {
        description.settings.clear();
    }
    Ok((description, problem))
}
