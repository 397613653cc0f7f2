//! The layout of the Hugging Face hub's cache.
//!
//! A model `org/name` is a folder `models--org--name`: `blobs` has the files, `snapshots/<commit>`
//! their names as links into `blobs`, and `refs/<revision>` the commit of a branch or tag.

use super::files::{Offer, lacks};
use crate::Error;
use crate::plan::Piece;
use crate::source::{Access, Folder, RealFolder, is_plain_name};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What the hub's cache has of a model.
#[derive(Debug, PartialEq)]
pub(super) enum Snapshot {
    Whole(PathBuf),
    /// Something, but not enough; why.
    Lacking(String),
    Absent,
}

/// The folder of a model.
pub(super) fn folder_of(cache: &Path, repo: &str) -> PathBuf {
    cache.join(format!("models--{}", repo.replace('/', "--")))
}

/// The model that has a folder of this name.
pub(super) fn repo_of(folder: &str) -> Option<String> {
    Some(folder.strip_prefix("models--")?.replacen("--", "/", 1))
}

/// A revision's snapshot: a branch, a tag or a commit. Without one, that of `main`, or when that is
/// not whole the newest that is: it was fetched by a commit's name.
pub(super) fn snapshot(cache: &Path, repo: &str, revision: Option<&str>) -> Snapshot {
    let folder = folder_of(cache, repo);
    let snapshots = folder.join("snapshots");
    if !snapshots.is_dir() {
        return Snapshot::Absent;
    }
    let asked = revision.unwrap_or("main");
    let commit = commit_of(&folder, asked).unwrap_or_else(|| asked.to_owned());
    let named =
        Some(snapshots.join(&commit)).filter(|path| is_plain_name(&commit) && path.is_dir());
    let why = match named {
        Some(path) => match lacks(&path) {
            None => return Snapshot::Whole(path),
            Some(why) => why,
        },
        None => format!("it has no revision {asked}"),
    };
    let others = if revision.is_none() { newest_first(&snapshots) } else { Vec::new() };
    let newest = others.first().and_then(|path| lacks(path));
    let whole = others.into_iter().find(|path| lacks(path).is_none());
    whole.map_or(Snapshot::Lacking(newest.unwrap_or(why)), Snapshot::Whole)
}

fn commit_of(folder: &Path, revision: &str) -> Option<String> {
    // A name may have slashes: `refs/pr/1`.
    if !is_plain_name(revision) {
        return None;
    }
    let text = std::fs::read_to_string(folder.join("refs").join(revision)).ok()?;
    Some(text.trim().to_owned()).filter(|commit| is_plain_name(commit) && !commit.contains('/'))
}

fn newest_first(snapshots: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(snapshots).into_iter().flatten().flatten();
    let mut list: Vec<(SystemTime, PathBuf)> = entries
        .filter(|entry| entry.path().is_dir())
        .map(|entry| {
            let changed = entry.metadata().and_then(|m| m.modified());
            (changed.unwrap_or(SystemTime::UNIX_EPOCH), entry.path())
        })
        .collect();
    list.sort_by(|a, b| b.cmp(a));
    list.into_iter().map(|(_, path)| path).collect()
}

/// The files of a snapshot, links into its blobs followed.
#[derive(Debug)]
pub(super) struct SnapshotFiles(pub PathBuf);

impl Offer for SnapshotFiles {
    fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        collect(&self.0, "", 0, &mut names);
        names
    }

    fn piece(&self, name: &str) -> Result<Piece, Error> {
        let source = RealFolder::new(&self.0, Access::Mapped).open(name);
        let source = source.map_err(|e| Error::io(&self.0.join(name), e))?;
        let view = source.view(0..source.len());
        view.map(Piece::View).ok_or_else(|| Error::refused(format!("{name} is too large"), ""))
    }
}

/// Names of regular files, and of links to them; models have folders in folders at most.
fn collect(at: &Path, prefix: &str, depth: usize, names: &mut Vec<String>) {
    for entry in std::fs::read_dir(at).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = entry.path();
        if path.is_file() {
            names.push(format!("{prefix}{name}"));
        } else if depth < 2 && entry.file_type().is_ok_and(|t| t.is_dir()) {
            collect(&path, &format!("{prefix}{name}/"), depth + 1, names);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(path: PathBuf, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn whole(snapshot: &Path) {
        put(snapshot.join("config.json"), "{}");
        put(snapshot.join("model.safetensors"), "");
    }

    #[test]
    fn revisions_lead_to_snapshots() {
        let cache = tempfile::tempdir().unwrap();
        let folder = folder_of(cache.path(), "org/m");
        assert!(folder.ends_with("models--org--m"));
        assert_eq!(repo_of("models--org--m").as_deref(), Some("org/m"));
        assert_eq!(repo_of("models--m").as_deref(), Some("m"));
        assert_eq!(repo_of("datasets--org--m"), None);
        let find = |revision| snapshot(cache.path(), "org/m", revision);
        assert_eq!(find(None), Snapshot::Absent);

        let (first, second) = (folder.join("snapshots/aaa"), folder.join("snapshots/bbb"));
        put(first.join("config.json"), "{}");
        assert_eq!(find(None), Snapshot::Lacking("model.safetensors is missing".into()));
        put(folder.join("refs/main"), "aaa\n");
        assert_eq!(find(None), Snapshot::Lacking("model.safetensors is missing".into()));
        // Only one that was fetched by its commit is whole.
        whole(&second);
        assert_eq!(find(None), Snapshot::Whole(second.clone()));
        assert_eq!(find(Some("main")), Snapshot::Lacking("model.safetensors is missing".into()));
        assert_eq!(find(Some("bbb")), Snapshot::Whole(second.clone()));
        whole(&first);
        assert_eq!(find(None), Snapshot::Whole(first.clone()));
        put(folder.join("refs/refs/pr/1"), "bbb");
        assert_eq!(find(Some("refs/pr/1")), Snapshot::Whole(second));
        assert_eq!(find(Some("v2")), Snapshot::Lacking("it has no revision v2".into()));
        // Nothing leads out of the folder.
        put(folder.join("refs/main"), "../snapshots/aaa");
        assert_eq!(find(Some("main")), Snapshot::Lacking("it has no revision main".into()));
        assert!(matches!(find(Some("../snapshots/aaa")), Snapshot::Lacking(_)));
    }

    #[test]
    fn shards_must_all_be_there() {
        let cache = tempfile::tempdir().unwrap();
        let path = folder_of(cache.path(), "org/m").join("snapshots/aaa");
        put(path.join("config.json"), "{}");
        let index = r#"{"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}"#;
        put(path.join("model.safetensors.index.json"), index);
        put(path.join("1.safetensors"), "");
        assert_eq!(lacks(&path).as_deref(), Some("2.safetensors is missing"));
        put(path.join("2.safetensors"), "");
        assert_eq!(snapshot(cache.path(), "org/m", None), Snapshot::Whole(path));
    }

    #[cfg(unix)]
    #[test]
    fn links_to_nowhere_are_missing_files() {
        let cache = tempfile::tempdir().unwrap();
        let path = folder_of(cache.path(), "org/m").join("snapshots/aaa");
        put(path.join("config.json"), "{}");
        let link = path.join("model.safetensors");
        std::os::unix::fs::symlink("../../blobs/x", &link).unwrap();
        assert_eq!(lacks(&path).as_deref(), Some("model.safetensors is missing"));
        put(folder_of(cache.path(), "org/m").join("blobs/x"), "bytes");
        assert_eq!(lacks(&path), None);
        let files = SnapshotFiles(path);
        assert_eq!(files.names().len(), 2);
        assert_eq!(files.piece("model.safetensors").unwrap().len(), 5);
    }
}
