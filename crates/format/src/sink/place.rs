//! Where each file of a plan goes. A description beside the output has a name that other files in the
//! folder may use too; which name it gets depends on what lies there.

use super::beside::folder_of;
use crate::formats::Formats;
use crate::plan::{Companion, FilePlan};
use crate::source::{Access, Source};
use crate::{Error, FormatInfo};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Where a planned file goes, with what was asked for at `target`, in `folder`.
pub(super) fn place(file: &FilePlan, target: &Path, folder: &Path) -> PathBuf {
    let Some(name) = &file.beside else { return target.to_owned() };
    let usual = folder.join(name);
    match file.companion {
        Some(companion) if !is_free(companion, &usual, target) => {
            own_place(companion, &usual, target)
        }
        _ => usual,
    }
}

/// The place of the description that belongs to the target alone.
fn own_place(companion: Companion, usual: &Path, target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    usual.with_file_name(companion.own_name(&name))
}

/// Whether the description of the target may have the usual name: nothing has it, or what has it
/// describes what is replaced. It never does once the target has a description of its own.
fn is_free(companion: Companion, usual: &Path, target: &Path) -> bool {
    let own = own_place(companion, usual, target);
    if own.symlink_metadata().is_ok() || usual == target {
        return false;
    }
    if usual.symlink_metadata().is_err() {
        return true;
    }
    target.exists() && (!may_be_of_others(companion, target) || describes(companion, usual, target))
}

fn describes(companion: Companion, about: &Path, file: &Path) -> bool {
    let open = |path: &Path| Source::open(path, Access::Mapped).ok();
    let files = open(about).zip(open(file));
    files.is_some_and(|(about, file)| (companion.describes)(&about, &file).unwrap_or(false))
}

/// Whether another file of the folder may be the one that is described by the file of the usual name:
/// one that has no description of its own.
fn may_be_of_others(companion: Companion, target: &Path) -> bool {
    let described = |path: &PathBuf| own_place(companion, path, path).symlink_metadata().is_ok();
    others(companion, target).iter().any(|path| !described(path))
}

/// The other files in the target's folder that have such a description.
fn others(companion: Companion, target: &Path) -> Vec<PathBuf> {
    let Ok(list) = folder_of(target).read_dir() else { return Vec::new() };
    let same = |info: &&FormatInfo| info.companion.is_some_and(|c| c.name == companion.name);
    let kinds = Formats::builtin().iter().map(|f| f.info()).filter(same);
    let extensions: Vec<_> = kinds.flat_map(|info| info.extensions).collect();
    let known = |e: &OsStr| extensions.iter().any(|known| e.eq_ignore_ascii_case(known));
    let paths = list.filter_map(|entry| Some(entry.ok()?.path()));
    let others = paths.filter(|path| path.file_name() != target.file_name());
    others.filter(|path| path.extension().is_some_and(known)).collect()
}

/// Why a description can't have the place that it would get: files of two kinds with one name would
/// be described by one and the same file.
pub(super) fn shared_with_another(file: &FilePlan, target: &Path, folder: &Path) -> Option<Error> {
    let companion = file.companion?;
    let path = place(file, target, folder);
    let is_own = path == own_place(companion, &path, target);
    let other = others(companion, target)
        .into_iter()
        .find(|other| is_own && other.file_stem() == target.file_stem())?;
    // It is the target's already.
    if target.exists() && describes(companion, &path, target) {
        return None;
    }
    let what = format!("would be taken for the description of {} as well", other.display());
    Some(Error::refused_file(&path, &what, "use another name, or another folder"))
}

/// What a place was when it was chosen for a description. Whoever writes beside it may have taken it
/// since.
#[derive(Debug)]
pub(super) struct Chosen {
    companion: Companion,
    found: Option<Stamp>,
}

impl Chosen {
    /// Where a planned file goes, and what was there before that was decided, if it is the usual
    /// place of a description.
    pub(super) fn place(
        file: &FilePlan,
        target: &Path,
        folder: &Path,
    ) -> (PathBuf, Option<Chosen>) {
        let usual = file.companion.map(|companion| folder.join(companion.name));
        let found = usual.as_deref().and_then(stamp);
        let path = place(file, target, folder);
        let companion = file.companion.filter(|_| usual.as_ref() == Some(&path));
        (path, companion.map(|companion| Chosen { companion, found }))
    }

    /// The place that the description gets after all.
    pub(super) fn settle(&self, path: &Path, target: &Path) -> PathBuf {
        if stamp(path) == self.found || is_free(self.companion, path, target) {
            return path.to_owned();
        }
        own_place(self.companion, path, target)
    }
}

/// What tells a file from one that was put into its place: its number, size and time.
type Stamp = (u64, u64, Option<SystemTime>);

fn stamp(path: &Path) -> Option<Stamp> {
    let meta = path.symlink_metadata().ok()?;
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(&meta);
    #[cfg(not(unix))]
    let number = 0;
    Some((number, meta.len(), meta.modified().ok()))
}
