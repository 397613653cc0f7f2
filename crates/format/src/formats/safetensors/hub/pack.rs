//! A container to the entry.

use super::subwords::hub_subwords;
use super::tensors::{Stored, hub_tensors};
use super::values::hub_value;
use super::{HubAttachment, HubVocabulary, INLINE, KEY, VERSION, stored_name, texts_fit};
use crate::Error;
use crate::model::{Attachment, Container, Dialect, NO_FORMAT, Origin, Value};
use crate::source::{Bytes, View};
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::HashSet;

#[derive(Serialize)]
struct Entry {
    version: u32,
    format: String,
    layout: String,
    dialect: Dialect,
    /// Every other part, inline or `{"tensor": name}`.
    #[serde(flatten)]
    parts: serde_json::Map<String, Json>,
}

/// The entry's text, and the tensors that carry its long parts, by name.
type Packed = (String, Vec<(String, View)>);

/// The entry's text, and the tensors that carry its long parts. `None` when there is nothing that
/// safetensors doesn't say by itself.
pub(in super::super) fn pack(
    container: &Container,
    stored: &[Stored],
) -> Result<Option<Packed>, Error> {
    let mut packer = Packer {
        parts: serde_json::Map::new(),
        inline: 0,
        tensors: Vec::new(),
        taken: container.tensors.iter().map(|t| t.name.clone()).collect(),
    };
    let mut carry = |name: &str, view: View| packer.tensor(name, view);
    let tensors = hub_tensors(container, stored, &mut carry);
    if tensors.is_empty() && says_all(container) {
        return Ok(None);
    }
    let in_header = texts_fit(container);
    let entry = |(k, v): &(String, Value)| (k.clone(), hub_value(k, v, in_header));
    packer.part("metadata", &container.metadata.iter().map(entry).collect::<Vec<_>>());
    packer.part("sizevars", &container.sizevars);
    packer.part("tensors", &tensors);
    packer.part("order", &container.tensors.iter().map(|t| &t.name).collect::<Vec<_>>());
    if let Some(v) = &container.vocabulary {
        let tokens = v.tokens().map(|t| t.into_owned()).collect();
        packer.part("vocabulary", &Some(HubVocabulary { tokens, special: v.special.clone() }));
    }
    if let Some(subwords) = &container.subwords {
        let mut carry = |name: &str, view: View| packer.tensor(name, view);
        let subwords = hub_subwords(subwords, &mut carry);
        packer.part("subwords", &Some(subwords));
    }
    let attachments = container.attachments.iter().map(|a| packer.attachment(a));
    let attachments = attachments.collect::<Result<Vec<_>, Error>>()?;
    packer.part("attachments", &attachments);
    if let Some(r) = &container.records {
        packer.part("records", &String::from_utf8_lossy(&r.to_document()?));
    }
    // Content that came from no file is this format's own.
    let format = if container.format == NO_FORMAT { "safetensors" } else { container.format };
    let own = || Origin {
        format: format.to_owned(),
        layout: container.layout.clone(),
        dialect: container.dialect.clone(),
    };
    let Origin { format, layout, dialect } = container.origin.clone().unwrap_or_else(own);
    let entry = Entry { version: VERSION, format, layout, dialect, parts: packer.parts };
    Ok(Some((serde_json::to_string(&entry).unwrap_or_default(), packer.tensors)))
}

/// Whether safetensors says everything but the tensors by itself.
fn says_all(container: &Container) -> bool {
    let origin = container.origin.as_ref().map_or(container.format, |o| &o.format);
    (origin == "safetensors" || origin == NO_FORMAT)
        && container.metadata.iter().all(|(k, v)| v.as_text().is_some() && k != KEY)
        && texts_fit(container)
        && container.tensors.iter().all(|t| stored_name(&t.name) == t.name)
        && container.sizevars.is_empty()
        && container.attachments.is_empty()
        && container.vocabulary.is_none()
        && container.subwords.is_none()
        && container.records.is_none()
}

struct Packer {
    parts: serde_json::Map<String, Json>,
    inline: usize,
    tensors: Vec<(String, View)>,
    /// Names of tensors that are there already.
    taken: HashSet<String>,
}

impl Packer {
    /// Adds a part unless it is empty.
    fn part<T: Serialize>(&mut self, name: &str, value: &T) {
        let json = serde_json::to_value(value).unwrap_or_default();
        if json.as_array().is_some_and(Vec::is_empty) {
            return;
        }
        let text = json.to_string();
        let json = if self.takes(text.len()) {
            json
        } else {
            serde_json::json!({ "tensor": self.tensor(name, View::owned(text.into_bytes())) })
        };
        self.parts.insert(name.to_owned(), json);
    }

    fn attachment(&mut self, a: &Attachment) -> Result<HubAttachment, Error> {
        let mut entry = HubAttachment {
            name: a.name.clone(),
            described: a.described,
            text: None,
            tensor: None,
        };
        // What is too long for the entry need not be read.
        let short = a.data.len() <= INLINE as u64;
        let bytes = if short { a.data.load()? } else { Bytes::default() };
        match std::str::from_utf8(&bytes) {
            Ok(text) if short => entry.text = Some(text.to_owned()),
            _ => {
                entry.tensor = Some(self.tensor(&format!("attachments/{}", a.name), a.data.clone()))
            }
        }
        Ok(entry)
    }

    fn takes(&mut self, length: usize) -> bool {
        let fits = length <= INLINE && self.inline + length <= 8 * INLINE;
        self.inline += if fits { length } else { 0 };
        fits
    }

    fn tensor(&mut self, name: &str, data: View) -> String {
        let mut name = format!("{KEY}/{name}");
        while self.taken.contains(&name) {
            name.push('_');
        }
        self.taken.insert(name.clone());
        self.tensors.push((name.clone(), data));
        name
    }
}
