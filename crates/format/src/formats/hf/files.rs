//! The files of a folder.

use super::super::Stop;
use super::{JSON, MISSING};
use crate::Advice;
use crate::source::mistaken::recognise_pointer;
use crate::source::{Bytes, Folder, Source, View};
use crate::spec::ModelFiles;
use std::io::ErrorKind;

#[derive(Clone, Copy)]
pub(super) struct Files<'a>(pub &'a dyn Folder);

impl Files<'_> {
    /// Where a file's bytes are.
    pub(super) fn view(&self, name: &str) -> Result<View, Stop> {
        let source = self.source(name)?;
        let finding = || MISSING.at(0..0).in_file(name).field(name).expected("a readable file");
        source.view(0..source.len()).ok_or_else(|| finding().found("too large").into())
    }

    pub(super) fn source(&self, name: &str) -> Result<Source, Stop> {
        let source = self.0.open(name).map_err(|e| {
            let finding = MISSING.at(0..0).in_file(name).field(name).expected("a readable file");
            let is_link = e.kind() == ErrorKind::PermissionDenied && e.get_ref().is_some();
            let hint = if is_link { "put a copy of the file in the place of the link" } else { "" };
            finding.found(e.to_string()).hint(hint)
        })?;
        match recognise_pointer(source.head()?) {
            None => Ok(source),
            Some((what, advice)) => {
                let finding = MISSING.at(0..source.len()).in_file(name).field(name);
                Err(finding.expected("the file itself").found(what).hint(advice).into())
            }
        }
    }
}

impl ModelFiles for Files<'_> {
    fn has(&self, name: &str) -> bool {
        self.0.exists(name)
    }

    fn bytes(&self, name: &str) -> Result<Bytes, Stop> {
        Ok(self.view(name)?.load()?)
    }

    fn not_json(&self, name: &str, bytes: u64, why: String, advice: Advice) -> Stop {
        let finding = JSON.at(0..bytes).in_file(name).field(name).expected("JSON").found(why);
        finding.hint(advice).into()
    }
}
