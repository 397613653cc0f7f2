//! Files by name: those of a folder, or those that travel in another file.

use super::super::Stop;
use super::{JSON, MISSING};
use crate::model::Attachment;
use crate::source::Bytes;
use crate::source::{Folder, Source, View};
use serde_json::Value as Json;

#[derive(Clone, Copy)]
pub(super) enum Files<'a> {
    Folder(&'a dyn Folder),
    Attached(&'a [Attachment]),
}

impl<'a> Files<'a> {
    pub(super) fn of_folder(folder: &'a dyn Folder) -> Self {
        Files::Folder(folder)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        match self {
            Files::Folder(folder) => folder.exists(name),
            Files::Attached(list) => list.iter().any(|a| a.name == name),
        }
    }

    /// Where a file's bytes are.
    pub(super) fn view(&self, name: &str) -> Result<View, Stop> {
        let missing = |why: String| {
            Stop::from(MISSING.at(0..0).field(name).expected("a readable file").found(why))
        };
        match self {
            Files::Folder(folder) => {
                let source = folder.open(name).map_err(|e| missing(e.to_string()))?;
                source.view(0..source.len()).ok_or_else(|| missing("too large".into()))
            }
            Files::Attached(list) => {
                let found = list.iter().find(|a| a.name == name);
                found.map(|a| a.data.clone()).ok_or_else(|| missing("no such file".into()))
            }
        }
    }

    /// A file's bytes, read.
    pub(super) fn bytes(&self, name: &str) -> Result<Bytes, Stop> {
        Ok(self.view(name)?.load()?)
    }

    /// A file of the folder.
    pub(super) fn source(&self, name: &str) -> Result<Source, Stop> {
        match self {
            Files::Folder(folder) => folder.open(name).map_err(|e| {
                MISSING.at(0..0).field(name).expected("a readable file").found(e.to_string()).into()
            }),
            Files::Attached(_) => Ok(Source::from_vec(self.bytes(name)?.to_vec())),
        }
    }

    /// A JSON file; null when it is not there.
    pub(super) fn json(&self, name: &str) -> Result<Json, Stop> {
        if !self.has(name) {
            return Ok(Json::Null);
        }
        let bytes = self.bytes(name)?;
        serde_json::from_slice(&bytes).map_err(|e| {
            let finding = JSON.at(0..bytes.len() as u64).field(name).expected("JSON");
            finding.found(e.to_string()).hint("the file may be cut short").into()
        })
    }
}
