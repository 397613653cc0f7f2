//! The files that describe a model, wherever they are.

use crate::Advice;
use crate::model::Attachment;
use crate::source::Bytes;
use crate::wire::{MARK, Stop};
use serde_json::Value as Json;

use super::check::UNREADABLE;

/// Files by name.
pub trait ModelFiles {
    /// Whether there is such a file.
    fn has(&self, name: &str) -> bool;

    /// A file's bytes, read.
    ///
    /// # Errors
    /// If it is not there or can't be read.
    fn bytes(&self, name: &str) -> Result<Bytes, Stop>;

    /// What is said of a file that is not JSON, and what would help.
    fn not_json(&self, name: &str, bytes: u64, why: String, advice: Advice) -> Stop;

    /// A JSON file; null when it is not there.
    ///
    /// # Errors
    /// If it can't be read, or is not JSON.
    fn json(&self, name: &str) -> Result<Json, Stop> {
        if !self.has(name) {
            return Ok(Json::Null);
        }
        let bytes = self.bytes(name)?;
        serde_json::from_slice(&bytes).map_err(|e| {
            let (why, advice) = if bytes.starts_with(MARK) {
                (
                    "a byte order mark in front".to_owned(),
                    "save it as UTF-8 without the mark".into(),
                )
            } else {
                (e.to_string(), "the file may be cut short".into())
            };
            self.not_json(name, bytes.len() as u64, why, advice)
        })
    }
}

/// Files that travel in another file.
#[derive(Clone, Copy, Debug)]
pub struct Attached<'a>(pub &'a [Attachment]);

impl ModelFiles for Attached<'_> {
    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|a| a.name == name)
    }

    fn bytes(&self, name: &str) -> Result<Bytes, Stop> {
        match self.0.iter().find(|a| a.name == name) {
            Some(file) => Ok(file.data.load()?),
            None => Err(UNREADABLE.at(0..0).field(name).found("no such file").into()),
        }
    }

    fn not_json(&self, name: &str, _: u64, why: String, advice: Advice) -> Stop {
        UNREADABLE.at(0..0).field(name).expected("JSON").found(why).hint(advice).into()
    }
}
