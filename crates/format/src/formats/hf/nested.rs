//! Static models of sentence-transformers: they have no config.json, and some versions put the table and
//! the tokenizer into a folder of the module's own. Such a folder is read as if these stood beside
//! modules.json, as newer versions have them.

use super::read::{INDEX, MODEL};
use crate::Input;
use crate::source::{Folder, Source, is_plain_name};
use crate::spec::tokenizer::TOKENIZER;
use serde_json::Value as Json;
use std::io;
use std::sync::Arc;

const MODULES: &str = "modules.json";
/// No modules.json is larger.
const LARGEST: u64 = 1 << 20;

/// Whether modules.json says that a folder has a static model.
pub(super) fn is_static(folder: &dyn Folder) -> bool {
    folder.exists(MODULES) && modules(folder).is_some()
}

/// The modules of a static model.
fn modules(folder: &dyn Folder) -> Option<Json> {
    let source = folder.open(MODULES).ok().filter(|source| source.len() <= LARGEST)?;
    let modules: Json = serde_json::from_slice(&source.bytes(0..source.len()).ok()?).ok()?;
    let class = modules[0]["type"].as_str()?;
    class.ends_with(".StaticEmbedding").then_some(modules)
}

/// The same folder with the files of the first module beside the others, where they are in a folder
/// of their own.
pub(super) fn flattened(input: &Input) -> Option<Input> {
    let folder = &input.folder;
    if folder.exists(MODEL) || folder.exists(INDEX) || folder.exists("config.json") {
        return None;
    }
    let mut modules = modules(&**folder)?;
    let path = modules[0]["path"].as_str().filter(|path| is_plain_name(path))?.to_owned();
    if !folder.exists(&format!("{path}/{MODEL}")) {
        return None;
    }
    *modules.get_mut(0)?.get_mut("path")? = "".into();
    let modules = serde_json::to_vec_pretty(&modules).ok()?;
    let nested = Nested { folder: folder.clone(), prefix: format!("{path}/"), modules };
    Some(Input { folder: Arc::new(nested), ..input.clone() })
}

/// A folder with the files of one within it beside its own.
#[derive(Debug)]
struct Nested {
    folder: Arc<dyn Folder>,
    prefix: String,
    /// What modules.json says then.
    modules: Vec<u8>,
}

impl Nested {
    fn is_moved(&self, name: &str) -> bool {
        [MODEL, TOKENIZER].contains(&name) && self.folder.exists(&format!("{}{name}", self.prefix))
    }
}

impl Folder for Nested {
    fn open(&self, name: &str) -> io::Result<Source> {
        match name {
            MODULES => Ok(Source::from_vec(self.modules.clone())),
            name if self.is_moved(name) => self.folder.open(&format!("{}{name}", self.prefix)),
            name => self.folder.open(name),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = self.folder.list()?;
        // One beside them would be another file of the same name.
        names.retain(|name| !self.is_moved(name));
        for name in &mut names {
            if let Some(own) = name.strip_prefix(&self.prefix).filter(|own| self.is_moved(own)) {
                *name = own.to_owned();
            }
        }
        names.sort();
        Ok(names)
    }

    fn exists(&self, name: &str) -> bool {
        self.is_moved(name) || self.folder.exists(name)
    }
}
