//! The lossless hub: what safetensors can't say itself, as JSON in one metadata entry.
//!
//! Texts of the metadata stay ordinary entries, tensors stay ordinary tensors. The entry holds the
//! rest: the original format with its dialect, order, typed metadata, size variables, vocabulary,
//! attachments, records, and the encodings that tensors had before they were widened. Parts above
//! 1 MiB become U8 tensors named `weighbridge/<part>`, because readers refuse long headers.

use super::hub_subwords::{HubSubwords, hub_subwords};
use super::hub_tensors::{HubTensor, Stored, hub_tensors, restore_tensors};
use super::hub_values::{HubValue, hub_value, value_of};
use crate::model::{Attachment, Container, Dialect, Origin, Records, Value, Vocabulary};
use crate::source::View;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet};

/// The metadata entry's name, and the beginning of the names of tensors that carry parts of it.
pub(super) const KEY: &str = "weighbridge";
/// A part longer than this becomes a tensor; so does everything once the entry is this long.
const INLINE: usize = 1 << 20;
const VERSION: u32 = 1;
/// Where a tensor named `__metadata__` stands.
const RENAMED: &str = "weighbridge/__metadata__";

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

#[derive(Serialize, Deserialize)]
struct HubVocabulary {
    tokens: Vec<String>,
    special: Vec<(String, u32)>,
}

#[derive(Serialize, Deserialize)]
struct HubAttachment {
    name: String,
    described: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tensor: Option<String>,
}

/// The entry's text, and the tensors that carry its long parts. `None` when there is nothing that
/// safetensors doesn't say by itself.
pub(super) fn pack(
    container: &Container,
    stored: &[Stored],
) -> Option<(String, Vec<(String, View)>)> {
    let mut packer = Packer {
        parts: serde_json::Map::new(),
        inline: 0,
        tensors: Vec::new(),
        taken: container.tensors.iter().map(|t| t.name.clone()).collect(),
    };
    let mut carry = |name: &str, view: View| packer.tensor(name, view);
    let tensors = hub_tensors(container, stored, &mut carry);
    let origin = container.origin.as_ref().map_or(container.format, |o| &o.format);
    let needed = (origin != "safetensors" && !origin.is_empty())
        || container.metadata.iter().any(|(k, v)| v.as_text().is_none() || k == KEY)
        || !texts_fit(container)
        || container.tensors.iter().any(|t| stored_name(&t.name) != t.name)
        || !tensors.is_empty()
        || !container.sizevars.is_empty()
        || !container.attachments.is_empty()
        || container.vocabulary.is_some()
        || container.subwords.is_some()
        || container.records.is_some();
    if !needed {
        return None;
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
    let attachments: Vec<_> = container.attachments.iter().map(|a| packer.attachment(a)).collect();
    packer.part("attachments", &attachments);
    if let Some(r) = &container.records {
        packer.part("records", &String::from_utf8_lossy(&r.to_document()));
    }
    // Content that came from no file is this format's own.
    let format = if container.format.is_empty() { "safetensors" } else { container.format };
    let own = || Origin {
        format: format.to_owned(),
        layout: container.layout.clone(),
        dialect: container.dialect.clone(),
    };
    let Origin { format, layout, dialect } = container.origin.clone().unwrap_or_else(own);
    let entry = Entry { version: VERSION, format, layout, dialect, parts: packer.parts };
    Some((serde_json::to_string(&entry).unwrap_or_default(), packer.tensors))
}

/// The name under which a tensor stands in the file: its own, but for the one that means something
/// else there.
pub(super) fn stored_name(name: &str) -> &str {
    if name == "__metadata__" { RENAMED } else { name }
}

/// Whether the metadata's texts can stand in the header without making it too long to be read.
pub(super) fn texts_fit(container: &Container) -> bool {
    let lengths = container.metadata.iter().map(|(k, v)| k.len() + v.as_text().map_or(0, str::len));
    lengths.sum::<usize>() <= 8 * INLINE
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

    fn attachment(&mut self, a: &Attachment) -> HubAttachment {
        let mut entry = HubAttachment {
            name: a.name.clone(),
            described: a.described,
            text: None,
            tensor: None,
        };
        match std::str::from_utf8(&a.data) {
            Ok(text) if text.len() <= INLINE => entry.text = Some(text.to_owned()),
            _ => {
                entry.tensor = Some(self.tensor(&format!("attachments/{}", a.name), a.data.clone()))
            }
        }
        entry
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

/// Reads the entry back into a container that has the file's own tensors and texts. On an error
/// the container is as it was.
pub(super) fn unpack(text: &str, container: &mut Container) -> Result<(), String> {
    let parts = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let mut c = container.clone();
    let carried = c.tensors.iter().filter(|t| t.name.starts_with(KEY));
    let carried = carried.filter_map(|t| Some((t.name.clone(), t.view()?.clone()))).collect();
    let mut reader = Unpacker { parts, carried, used: HashSet::new() };
    let missing = || "the entry lacks its format".to_owned();
    let version: Option<u32> = reader.part("version")?;
    if version != Some(VERSION) {
        return Err(format!("version {} of the entry is unknown", version.unwrap_or(0)));
    }
    let format = reader.part("format")?.ok_or_else(missing)?;
    let layout = reader.part("layout")?.ok_or_else(missing)?;
    let dialect = reader.part("dialect")?.ok_or_else(missing)?;
    if let Some(list) = reader.part::<Vec<(String, HubValue)>>("metadata")? {
        let mut texts: HashMap<_, _> = c.metadata.drain(..).collect();
        let mut metadata = Vec::new();
        for (key, value) in list {
            // A text that was removed since then stays removed.
            if let Some(value) = value_of(&key, value, &mut texts)? {
                metadata.push((key, value));
            }
        }
        // Texts that were added since then come behind.
        let mut added: Vec<_> = texts.into_iter().collect();
        added.sort_by(|a, b| a.0.cmp(&b.0));
        metadata.extend(added);
        c.metadata = metadata;
    }
    c.sizevars = reader.part("sizevars")?.unwrap_or_default();
    // A size variable and a metadata key may share a name, but no two of a kind may.
    let twice = |list: &mut Vec<&String>| {
        list.sort_unstable();
        list.windows(2).any(|w| w[0] == w[1])
    };
    if twice(&mut c.sizevars.iter().map(|(n, _)| n).collect())
        || twice(&mut c.metadata.iter().map(|(k, _)| k).collect())
    {
        return Err("a name appears twice".to_owned());
    }
    if let Some(v) = reader.part::<HubVocabulary>("vocabulary")? {
        let mut vocabulary = Vocabulary::from_tokens(v.tokens.iter().map(String::as_str));
        vocabulary.special = v.special;
        c.vocabulary = Some(vocabulary);
    }
    if let Some(subwords) = reader.part::<HubSubwords>("subwords")? {
        c.subwords = Some(subwords.resolve(&mut |name| reader.carried(name))?);
    }
    for a in reader.part::<Vec<HubAttachment>>("attachments")?.unwrap_or_default() {
        let data = match (a.text, a.tensor) {
            (Some(text), _) => View::owned(text.into_bytes()),
            (None, Some(tensor)) => reader.carried(&tensor)?,
            (None, None) => return Err(format!("attachment {:?} is empty", a.name)),
        };
        c.attachments.push(Attachment { name: a.name, data, described: a.described });
    }
    if let Some(document) = reader.part::<String>("records")? {
        let records = Records::parse(View::owned(document.into_bytes()));
        c.records = Some(records.map_err(|e| format!("records: {e}"))?);
    }
    let tensors = reader.part::<Vec<HubTensor>>("tensors")?.unwrap_or_default();
    let tensors = tensors.into_iter().map(|t| t.resolve(&mut |name| reader.carried(name)));
    let tensors = tensors.collect::<Result<Vec<_>, _>>()?;
    let order = reader.part::<Vec<String>>("order")?;
    c.tensors.retain(|t| !reader.used.contains(&t.name));
    if let Some(renamed) = c.tensors.iter_mut().find(|t| t.name == RENAMED) {
        renamed.name = "__metadata__".to_owned();
    }
    restore_tensors(tensors, &mut c)?;
    if let Some(order) = order {
        let place: HashMap<_, _> = order.iter().enumerate().map(|(i, n)| (n.as_str(), i)).collect();
        c.tensors.sort_by_key(|t| place.get(t.name.as_str()).copied().unwrap_or(usize::MAX));
    }
    c.origin = Some(Origin { format, layout, dialect });
    *container = c;
    Ok(())
}

/// A part that stands in a tensor.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Elsewhere {
    tensor: String,
}

struct Unpacker<'a> {
    /// Each part as it stands in the text: a vocabulary is parsed once, into what it becomes.
    parts: HashMap<String, &'a RawValue>,
    /// Tensors that may carry a part.
    carried: HashMap<String, View>,
    /// Those that do.
    used: HashSet<String>,
}

impl Unpacker<'_> {
    fn part<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, String> {
        let Some(part) = self.parts.remove(name) else { return Ok(None) };
        let part = part.get();
        let bad = |e: serde_json::Error| format!("{name}: {e}");
        // A list would do for a structure as well.
        let elsewhere = if part.starts_with('{') { serde_json::from_str(part).ok() } else { None };
        match elsewhere {
            Some(Elsewhere { tensor }) => {
                let view = self.carried(&tensor)?;
                serde_json::from_slice(&view).map(Some).map_err(bad)
            }
            None => serde_json::from_str(part).map(Some).map_err(bad),
        }
    }

    fn carried(&mut self, tensor: &str) -> Result<View, String> {
        let view = self.carried.get(tensor).cloned();
        self.used.insert(tensor.to_owned());
        view.ok_or_else(|| format!("tensor {tensor:?} is missing"))
    }
}
