//! What the caches hold: listing it, and removing from our own.

use super::files::{architecture, lacks};
use super::layout::{Snapshot, folder_of, repo_of, snapshot};
use super::name::Name;
use super::places::Places;
use super::pull::{PulledFrom, count, recorded};
use super::workspace::{self, Workspace};
use crate::sink::{FileSystem, RealFiles};
use crate::{Error, ModelSummary, model_summary};
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};

/// Whose cache a model is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Cache {
    /// Our own, where models are looked for first.
    Weighbridge,
    /// The one of the Hugging Face hub's tools.
    HuggingFace,
}

/// A model in a cache. Its JSON is described in docs/json.md.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Cached {
    /// The name that it is found by.
    pub name: String,
    /// Whose cache it is in.
    pub cache: Cache,
    /// Its folder.
    pub model: PathBuf,
    /// As `model_type` in config.json names it.
    pub architecture: Option<String>,
    /// How many files it has.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Where it came from, if that was remembered.
    pub from: Option<PulledFrom>,
    /// What keeps it from being whole, and so from being found; nothing if it is.
    pub lacks: Option<String>,
}

/// All that is known of a model in the caches. Its JSON is described in docs/json.md.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Shown {
    /// The name that it is found by.
    pub name: String,
    /// Where it is; the first that is whole is the one that is used.
    pub places: Vec<Cached>,
    /// What the model is, if one of them is whole and can be opened.
    pub model: Option<ModelSummary>,
}

/// What was removed from our own cache. Its JSON is described in docs/json.md.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Removed {
    /// The name that it was found by.
    pub name: String,
    /// The folders that are gone.
    pub removed: Vec<PathBuf>,
    /// How many files were in them.
    pub files: u64,
    /// The bytes that are free again. What a link leads to is not touched and not counted.
    pub bytes: u64,
    /// The same model in the hub's cache, which stays.
    pub remains: Option<PathBuf>,
}

impl Places {
    /// The models in both caches, by name; ours come first. What is there in part is listed too.
    pub fn list(&self) -> Vec<Cached> {
        workspace::bring_back(&self.cache);
        let own = folders(&self.models()).into_iter().filter_map(|folder| {
            let text = folder.replacen("--", "/", 1);
            let name = Name::parse(&text).ok()?;
            Some(self.cached(&name, Cache::Weighbridge, self.models().join(&folder)))
        });
        let hubs = folders(&self.hub_cache).into_iter().filter_map(|folder| {
            let text = repo_of(&folder)?;
            self.in_hub_cache(&Name::parse(&text).ok()?)
        });
        let mut all: Vec<_> = own.chain(hubs).collect();
        all.sort_by(|a, b| (&a.name, a.cache, &a.model).cmp(&(&b.name, b.cache, &b.model)));
        all
    }

    /// Where a model is, and what it is.
    ///
    /// # Errors
    /// [`Error::NotFound`] if neither cache has any of it.
    pub fn show(&self, model: &str) -> Result<Shown, Error> {
        let name = Name::parse(model)?;
        workspace::bring_back(&self.cache);
        let places: Vec<_> = self.own_places(&name).chain(self.in_hub_cache(&name)).collect();
        if places.is_empty() {
            return Err(self.absent(model));
        }
        let whole = places.iter().find(|place| place.lacks.is_none());
        let opened = whole.and_then(|place| crate::open(&place.model).ok());
        let model = opened.map(|container| model_summary(&container)).transpose()?.flatten();
        Ok(Shown { name: name.shown().to_owned(), places, model })
    }

    /// Removes a model from our own cache. The hub's is never touched.
    ///
    /// # Errors
    /// [`Error::NotFound`] if neither cache has any of it, [`Error::Refused`] if only the hub's has,
    /// failures of the system.
    pub fn remove(&self, model: &str) -> Result<Removed, Error> {
        let name = Name::parse(model)?;
        let removal = self.removal(model)?;
        let workspace = Workspace::new(&self.cache)?;
        for (i, folder) in removal.removed.iter().enumerate() {
            take_away(folder, &workspace.path.join(i.to_string()))?;
        }
        // A model without this memory is one that was put there by hand.
        let _ = std::fs::remove_file(self.record(&name));
        let _ = RealFiles.sync_folder(&self.models());
        Ok(removal)
    }

    /// What [`remove`](Self::remove) would remove; nothing is touched.
    ///
    /// # Errors
    /// The same, but for failures while removing.
    pub fn removal(&self, model: &str) -> Result<Removed, Error> {
        let name = Name::parse(model)?;
        let remains = self.in_hub_cache(&name).map(|place| place.model);
        let removed: Vec<_> =
            self.own_folders(&name).filter(|path| path.symlink_metadata().is_ok()).collect();
        if removed.is_empty() {
            let Some(place) = remains else { return Err(self.absent(model)) };
            let what = format!(
                "{} is not in our own cache; {} is in that of the Hugging Face hub",
                name.shown(),
                place.display()
            );
            let advice =
                "nothing is removed there: the hub's own tools do that, such as `hf cache`";
            return Err(Error::refused(what, advice));
        }
        let (mut files, mut bytes) = (0, 0);
        for folder in &removed {
            let (n, size) = own_size(folder, 0);
            (files, bytes) = (files + n, bytes + size);
        }
        Ok(Removed { name: name.shown().to_owned(), removed, files, bytes, remains })
    }

    /// The error of a name that neither cache has.
    fn absent(&self, model: &str) -> Error {
        match self.locate(model) {
            Err(error) => error,
            Ok(path) => Error::refused_file(&path, "appeared meanwhile", ""),
        }
    }

    fn own_places(&self, name: &Name) -> impl Iterator<Item = Cached> {
        let there = self.own_folders(name).filter(|path| path.is_dir());
        there.map(|path| self.cached(name, Cache::Weighbridge, path))
    }

    fn in_hub_cache(&self, name: &Name) -> Option<Cached> {
        let folder = folder_of(&self.hub_cache, name.repo());
        let (path, lacks) = match snapshot(&self.hub_cache, name.repo(), None) {
            Snapshot::Whole(path) => (path, None),
            Snapshot::Lacking(why) => (folder, Some(why)),
            Snapshot::Absent => return None,
        };
        let commit = path.file_name().map(|n| n.to_string_lossy().into_owned());
        let from = lacks.is_none().then(|| PulledFrom::new("hub", name.repo(), commit));
        Some(Cached { from, lacks, ..self.cached(name, Cache::HuggingFace, path) })
    }

    fn cached(&self, name: &Name, cache: Cache, model: PathBuf) -> Cached {
        let lacks = lacks(&model);
        // Of what is there in part, links may lead to what is counted already.
        let (files, bytes) = if lacks.is_none() { count(&model) } else { own_size(&model, 0) };
        Cached {
            name: name.shown().to_owned(),
            cache,
            architecture: architecture(&model),
            files,
            bytes,
            from: recorded(&self.record(name)).map(|p| p.from),
            lacks,
            model,
        }
    }
}

/// Names of the folders in a folder.
fn folders(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.path().is_dir());
    folders.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Moves a folder aside, so that no half of it is found, and removes it there. Links are removed,
/// never followed.
fn take_away(folder: &Path, aside: &Path) -> Result<(), Error> {
    let io = |e| Error::io(folder, e);
    if folder.symlink_metadata().map_err(io)?.is_symlink() {
        return std::fs::remove_file(folder).map_err(io);
    }
    match std::fs::rename(folder, aside) {
        Ok(()) => std::fs::remove_dir_all(aside).map_err(io),
        // The folder of models may be a link to another disk.
        Err(e) if e.kind() == io::ErrorKind::CrossesDevices => {
            std::fs::remove_dir_all(folder).map_err(io)
        }
        Err(e) => Err(io(e)),
    }
}

/// Files of a folder and their bytes; links count for nothing.
fn own_size(path: &Path, depth: usize) -> (u64, u64) {
    // Deeper than any model: what is below is removed without being counted.
    const DEEPEST: usize = 16;
    let Ok(meta) = path.symlink_metadata() else { return (0, 0) };
    if meta.is_file() {
        return (1, meta.len());
    }
    if !meta.is_dir() || depth > DEEPEST {
        return (0, 0);
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| own_size(&entry.path(), depth + 1));
    sizes.fold((0, 0), |(files, bytes), (f, b)| (files + f, bytes + b))
}
