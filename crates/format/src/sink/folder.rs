//! Writing a folder of files: all of it under another name first, then one rename.

use super::atomic::{FileSystem, pour};
use super::beside::{Turn, temporary_beside};
use super::execute::Run;
use crate::plan::Plan;
use crate::source::{Deferred, Unfinished, clashing_names, is_plain_name};
use crate::{Error, Progress};
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A file of so many bytes is synced when it is written.
const LARGE: u64 = 1 << 20;

pub(super) fn write_folder(
    plan: &Plan,
    target: &Path,
    parent: &Path,
    files: &dyn FileSystem,
    progress: &mut Progress,
) -> Result<(), Error> {
    let root = temporary_beside(target, "part");
    let mut staged = StagedFolder { files, made: vec![], folders: HashSet::new(), finished: false };
    let names =
        plan.files.iter().filter_map(|file| file.beside.as_deref().filter(|n| is_plain_name(n)));
    if let Some((_, name)) = clashing_names(names).first() {
        let why = format!("{name:?} and another file can't be in one folder on every system");
        return Err(Error::io(target, io::Error::new(io::ErrorKind::InvalidInput, why)));
    }
    let turn = Turn::wait(&[target]);
    turn.sweep_unfinished(&[target]);
    staged.folder(&root, target)?;
    // As long as it is locked, it is the folder of one who lives. Not every system opens folders.
    let living = File::open(&root).ok();
    let _ = living.as_ref().map(File::try_lock);
    drop(turn);
    let mut run = Run::of(plan);
    let mut small = Vec::new();
    for file in &plan.files {
        let name = file.beside.as_deref().filter(|name| is_plain_name(name)).ok_or_else(|| {
            let why = "a file without a name that it may have in the folder";
            Error::io(target, io::Error::new(io::ErrorKind::InvalidInput, why))
        })?;
        staged.parents(&root, target, name)?;
        // Errors name what everybody knows the file by.
        let (path, known) = (root.join(name), target.join(name));
        let signals = Deferred::begin();
        let mut out = files.create(&path, &known).map_err(|e| Error::io(&known, e))?;
        staged.made.push((path.clone(), false, Unfinished::register(&path)));
        drop(signals);
        pour(&mut *out, file, &known, &mut run, progress)?;
        // Small ones are synced together.
        if file.size >= LARGE {
            out.sync().map_err(|e| Error::io(&known, e))?;
        } else {
            small.push(path);
        }
    }
    let folders = staged.made.iter().filter(|(_, is_folder, _)| *is_folder);
    let folders: Vec<&Path> = folders.map(|(path, ..)| &**path).collect();
    let small: Vec<&Path> = small.iter().map(|path| &**path).collect();
    files.sync_tree(&small, &folders).map_err(|e| Error::io(target, e))?;
    plan.check_damage()?;
    let was_there = target.is_dir();
    let turn = Turn::wait(&[target]);
    let signals = Deferred::begin();
    files.rename(&root, target).map_err(|e| Error::io(target, e))?;
    if let Err(e) = files.sync_folder(parent) {
        // Back under the temporary name, to be removed. Errors here have no better place than this
        // one.
        let _ = files.rename(target, &root);
        let _ = if was_there { files.create_folder(target) } else { Ok(()) };
        return Err(Error::io(parent, e));
    }
    staged.finished = true;
    // In this order: the process may end with the last of them.
    drop(staged);
    drop(turn);
    drop(signals);
    Ok(())
}

/// Files and folders under the temporary name; removed when dropped before the end.
struct StagedFolder<'a> {
    files: &'a dyn FileSystem,
    made: Vec<(PathBuf, bool, Unfinished)>,
    folders: HashSet<PathBuf>,
    finished: bool,
}

impl StagedFolder<'_> {
    /// Makes a folder that is to be known by another name.
    fn folder(&mut self, path: &Path, known: &Path) -> Result<(), Error> {
        let _signals = Deferred::begin();
        self.files.create_folder(path).map_err(|e| Error::io(known, e))?;
        self.made.push((path.to_owned(), true, Unfinished::register(path)));
        Ok(())
    }

    /// The folders that a name leads through.
    fn parents(&mut self, root: &Path, target: &Path, name: &str) -> Result<(), Error> {
        for (at, _) in name.match_indices('/') {
            let path = root.join(&name[..at]);
            if self.folders.insert(path.clone()) {
                self.folder(&path, &target.join(&name[..at]))?;
            }
        }
        Ok(())
    }
}

impl Drop for StagedFolder<'_> {
    fn drop(&mut self) {
        for (path, is_folder, _) in self.made.iter().rev().filter(|_| !self.finished) {
            let _ = match is_folder {
                true => self.files.remove_folder(path),
                false => self.files.remove(path),
            };
        }
    }
}
