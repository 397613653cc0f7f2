//! Where a plan's files go, and what is in their way.

use super::beside::folder_of;
use super::place::{place, shared_with_another};
use super::{RealFiles, write};
use crate::plan::Plan;
use crate::{Advice, Error, Progress};
use std::path::{Path, PathBuf};

/// Where a plan is written to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Output {
    /// The file or folder.
    pub path: PathBuf,
    /// Existing files are replaced.
    pub overwrite: bool,
}

impl Output {
    /// A path where nothing is yet.
    pub fn new(path: impl AsRef<Path>) -> Output {
        // Without a `/` behind a folder's name.
        Output { path: path.as_ref().components().collect(), overwrite: false }
    }

    /// The same, and existing files are replaced, if `yes`.
    #[must_use]
    pub fn overwrite(mut self, yes: bool) -> Output {
        self.overwrite = yes;
        self
    }

    /// Why a file can't be written there: something is in the way, or its folder does not exist.
    pub fn obstacle(&self) -> Option<Error> {
        in_the_way(&self.path, self.overwrite)
    }
}

impl<P: AsRef<Path>> From<P> for Output {
    fn from(path: P) -> Output {
        Output::new(path)
    }
}

/// Times that it is looked where a description goes, while others write beside it.
const LOOKS: usize = 8;

impl Plan {
    /// Why it would not be written as things are: a loss, too much growth, or a file in the way.
    pub fn obstacle(&self, to: &Output) -> Option<Error> {
        if let Err(error) = self.check_accepted() {
            return Some(error);
        }
        if self.is_folder {
            return no_folder_for(&to.path).or_else(|| folder_in_the_way(&to.path));
        }
        let shared = |file| shared_with_another(file, &to.path, folder_of(&to.path));
        let in_the_way = |path: &PathBuf| in_the_way(path, to.overwrite);
        if let Some(error) = self.files.iter().find_map(shared) {
            return Some(error);
        }
        let mut paths = self.paths(to);
        for _ in 0..LOOKS {
            let found = paths.iter().find_map(in_the_way)?;
            // Somebody who writes beside it may have taken the usual name of a description between the
            // two looks: then it gets another.
            let now = self.paths(to);
            if now == paths {
                return Some(found);
            }
            paths = now;
        }
        paths.iter().find_map(in_the_way)
    }

    /// The files that will be written. A description gets a name of its own where the usual one is
    /// that of another file's.
    pub fn paths(&self, to: &Output) -> Vec<PathBuf> {
        let folder = to.path.parent().unwrap_or(Path::new(""));
        let folder = if self.is_folder { &to.path } else { folder };
        self.files.iter().map(|file| place(file, &to.path, folder)).collect()
    }

    /// Writes the files, all or none.
    ///
    /// # Errors
    /// What [`Plan::obstacle`] gives; failures of reading and writing; [`Error::Cancelled`] when
    /// whoever is told the progress stops it. The old files are then as they were.
    pub fn write(&self, to: impl Into<Output>, progress: &mut Progress) -> Result<(), Error> {
        let to = to.into();
        if let Some(obstacle) = self.obstacle(&to) {
            return Err(obstacle);
        }
        // What a link points to is replaced, not the link.
        let target = to.path.canonicalize().ok().filter(|_| to.path.is_symlink());
        write(self, &target.unwrap_or(to.path), &RealFiles, progress)
    }
}

/// A folder is never replaced: it may hold more than what was written into it.
fn folder_in_the_way(path: &Path) -> Option<Error> {
    if path.is_symlink() {
        return Some(Error::refused_file(path, "is a link", "name a new folder"));
    }
    let is_empty = || path.read_dir().is_ok_and(|mut list| list.next().is_none());
    if !path.exists() || is_empty() {
        return None;
    }
    Some(Error::refused_file(path, "exists", "name a new folder, or remove this one first"))
}

fn in_the_way(path: &Path, overwrite: bool) -> Option<Error> {
    if !path.exists() && path.is_symlink() {
        return Some(Error::refused_file(path, "is a broken link", "remove it first"));
    }
    if !path.exists() {
        return no_folder_for(path);
    }
    if !path.is_file() {
        let what = if path.is_dir() { "is a folder" } else { "is not a regular file" };
        return Some(Error::refused_file(path, what, "name a file"));
    }
    (!overwrite)
        .then(|| Error::refused_file(path, "exists", Advice::set("overwrite", "replaces it")))
}

fn no_folder_for(path: &Path) -> Option<Error> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty() && !p.is_dir())?;
    let what = format!("the folder {} does not exist", folder.display());
    Some(Error::refused(what, "make it first"))
}
