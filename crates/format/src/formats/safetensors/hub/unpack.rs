//! The entry back to a container.

use super::subwords::HubSubwords;
use super::tensors::{HubTensor, restore_tensors};
use super::values::{HubValue, value_of};
use super::{HubAttachment, HubVocabulary, KEY, RENAMED, VERSION};
use crate::Error;
use crate::model::{Attachment, Container, Origin, Records, Vocabulary};
use crate::source::{Bytes, View};
use crate::wire::Budget;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet};

/// Why an entry can't be used.
#[derive(Debug)]
pub(in super::super) enum Bad {
    /// What is wrong with it.
    Damaged(String),
    /// It could not be read.
    Failed(Error),
}

impl From<String> for Bad {
    fn from(why: String) -> Bad {
        Bad::Damaged(why)
    }
}

impl From<&str> for Bad {
    fn from(why: &str) -> Bad {
        Bad::Damaged(why.to_owned())
    }
}

impl From<Error> for Bad {
    fn from(error: Error) -> Bad {
        Bad::Failed(error)
    }
}

/// Reads the entry back into a container that has the file's own tensors and texts. On an error
/// the container is as it was.
pub(in super::super) fn unpack(text: &str, container: &mut Container) -> Result<(), Bad> {
    let parts = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let mut c = container.clone();
    let carried = c.tensors.iter().filter(|t| t.name.starts_with(KEY));
    let carried = carried.filter_map(|t| Some((t.name.clone(), t.view()?.clone()))).collect();
    let mut reader = Unpacker { parts, carried, used: HashSet::new() };
    let version: Option<u32> = reader.part("version")?;
    if version != Some(VERSION) {
        return Err(format!("version {} of the entry is unknown", version.unwrap_or(0)).into());
    }
    c.origin = Some(Origin {
        format: reader.needed("format")?,
        layout: reader.needed("layout")?,
        dialect: reader.needed("dialect")?,
    });
    reader.metadata(&mut c)?;
    reader.words(&mut c)?;
    reader.files(&mut c)?;
    reader.tensors(&mut c)?;
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
    fn part<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, Bad> {
        let Some(part) = self.parts.remove(name) else { return Ok(None) };
        let part = part.get();
        let bad = |e: serde_json::Error| Bad::Damaged(format!("{name}: {e}"));
        // A list would do for a structure as well.
        let elsewhere = if part.starts_with('{') { serde_json::from_str(part).ok() } else { None };
        match elsewhere {
            Some(Elsewhere { tensor }) => {
                let bytes = self.carried_bytes(&tensor)?;
                serde_json::from_slice(&bytes).map(Some).map_err(bad)
            }
            None => serde_json::from_str(part).map(Some).map_err(bad),
        }
    }

    fn carried_bytes(&mut self, tensor: &str) -> Result<Bytes, Bad> {
        Ok(self.carried(tensor)?.load()?)
    }

    fn carried(&mut self, tensor: &str) -> Result<View, String> {
        let view = self.carried.get(tensor).cloned();
        self.used.insert(tensor.to_owned());
        view.ok_or_else(|| format!("tensor {tensor:?} is missing"))
    }

    /// A part that no entry lacks.
    fn needed<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, Bad> {
        self.part(name)?.ok_or_else(|| "the entry lacks its format".into())
    }

    fn metadata(&mut self, c: &mut Container) -> Result<(), Bad> {
        if let Some(list) = self.part::<Vec<(String, HubValue)>>("metadata")? {
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
        c.sizevars = self.part("sizevars")?.unwrap_or_default();
        // A size variable and a metadata key may share a name, but no two of a kind may.
        let twice = |list: &mut Vec<&String>| {
            list.sort_unstable();
            list.windows(2).any(|w| w[0] == w[1])
        };
        if twice(&mut c.sizevars.iter().map(|(n, _)| n).collect())
            || twice(&mut c.metadata.iter().map(|(k, _)| k).collect())
        {
            return Err("a name appears twice".into());
        }
        Ok(())
    }

    fn words(&mut self, c: &mut Container) -> Result<(), Bad> {
        if let Some(v) = self.part::<HubVocabulary>("vocabulary")? {
            let mut vocabulary = Vocabulary::from_tokens(v.tokens.iter().map(String::as_str));
            vocabulary.special = v.special;
            c.vocabulary = Some(vocabulary);
        }
        if let Some(subwords) = self.part::<HubSubwords>("subwords")? {
            c.subwords = Some(subwords.resolve(&mut |name| self.carried_bytes(name))?);
        }
        Ok(())
    }

    fn files(&mut self, c: &mut Container) -> Result<(), Bad> {
        let mut budget = Budget::for_copies(c.size);
        for a in self.part::<Vec<HubAttachment>>("attachments")?.unwrap_or_default() {
            let data = match (a.text, a.tensor) {
                (Some(text), _) => View::owned(text.into_bytes()),
                (None, Some(tensor)) => self.carried(&tensor)?,
                (None, None) => return Err(format!("attachment {:?} is empty", a.name).into()),
            };
            budget.spend(data.len(), "bytes of files, which share tensors")?;
            c.attachments.push(Attachment { name: a.name, data, described: a.described });
        }
        if let Some(document) = self.part::<String>("records")? {
            let records = Records::parse(Bytes::owned(document.into_bytes()));
            c.records = Some(records.map_err(|e| format!("records: {e}"))?);
        }
        Ok(())
    }

    fn tensors(&mut self, c: &mut Container) -> Result<(), Bad> {
        let tensors = self.part::<Vec<HubTensor>>("tensors")?.unwrap_or_default();
        let tensors = tensors.into_iter().map(|t| t.resolve(&mut |name| self.carried(name)));
        let tensors = tensors.collect::<Result<Vec<_>, _>>()?;
        let order = self.part::<Vec<String>>("order")?;
        c.tensors.retain(|t| !self.used.contains(&t.name));
        if let Some(renamed) = c.tensors.iter_mut().find(|t| t.name == RENAMED) {
            renamed.name = "__metadata__".to_owned();
        }
        restore_tensors(tensors, c)?;
        if let Some(order) = order {
            let numbered = order.iter().enumerate();
            let place: HashMap<_, _> = numbered.map(|(i, n)| (n.as_str(), i)).collect();
            c.tensors.sort_by_key(|t| place.get(t.name.as_str()).copied().unwrap_or(usize::MAX));
        }
        Ok(())
    }
}
