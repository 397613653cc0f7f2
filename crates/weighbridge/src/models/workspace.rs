//! A folder for what is not finished, which goes away whatever happens.
//!
//! It goes when it is dropped. A process that dies before that leaves it behind, but no longer has
//! the lock beside it, and so the next one can tell and removes it. A model that was set aside in it
//! for another one goes back to its place first, if the other one has not come.

use crate::Error;
use crate::source::Deferred;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Debug)]
pub(super) struct Workspace {
    pub path: PathBuf,
    lock_path: PathBuf,
    /// Locked as long as it is open.
    _lock: File,
}

impl Workspace {
    /// Makes one, and removes those of processes that died.
    pub(super) fn new(cache: &Path) -> Result<Workspace, Error> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let parent = cache.join("partial");
        std::fs::create_dir_all(&parent).map_err(|e| Error::io(&parent, e))?;
        sweep(cache);
        // Process numbers come again, so the time is in the name too.
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos());
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{}-{time}-{count}", std::process::id()));
        // Locked before the folder is there: a folder without a living lock may be swept.
        let lock_path = path.with_extension("lock");
        let lock = loop {
            let lock = File::create_new(&lock_path).map_err(|e| Error::io(&lock_path, e))?;
            // A file system without locks has no sweeping, which is no reason to fail.
            let _ = lock.lock();
            // One who sweeps may have found it before it was locked.
            if lock_path.exists() {
                break lock;
            }
        };
        let made = std::fs::create_dir(&path);
        let workspace = Workspace { path, lock_path, _lock: lock };
        made.map_err(|e| Error::io(&workspace.path, e))?;
        Ok(workspace)
    }

    /// Puts a folder in the place of another, which goes aside first: no system replaces a folder
    /// that has something in it in one step. Signals wait until it is done.
    pub(super) fn replace(&self, new: &Path, target: &Path) -> Result<(), Error> {
        let io = |e| Error::io(target, e);
        if target.symlink_metadata().is_err() {
            return std::fs::rename(new, target).map_err(io);
        }
        let aside = self.path.join(ASIDE);
        std::fs::create_dir_all(&aside).map_err(io)?;
        let aside = aside.join(target.file_name().unwrap_or_default());
        let _signals = Deferred::begin();
        std::fs::rename(target, &aside).map_err(io)?;
        std::fs::rename(new, target).map_err(|e| {
            // There is no better place for an error here than the one already returned.
            let _ = std::fs::rename(&aside, target);
            io(e)
        })
    }
}

/// The folder in a workspace that has what is being replaced, under its own name.
const ASIDE: &str = "old";

/// Puts models back into their places that dead processes had set aside, where nothing has come
/// into their place. Says whether there were any.
pub(super) fn bring_back(cache: &Path) -> bool {
    let mut any = false;
    for (folder, _lock) in dead(cache) {
        for entry in std::fs::read_dir(folder.join(ASIDE)).into_iter().flatten().flatten() {
            let place = cache.join("models").join(entry.file_name());
            let is_free = place.symlink_metadata().is_err();
            any |= is_free && std::fs::rename(entry.path(), place).is_ok();
        }
    }
    any
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // What can't be removed now is swept later.
        let gone = std::fs::remove_dir_all(&self.path);
        if gone.is_ok() || !self.path.exists() {
            let _ = std::fs::remove_file(&self.lock_path);
        }
    }
}

/// Removes the folders whose locks nobody holds. Never a reason to fail.
fn sweep(cache: &Path) {
    bring_back(cache);
    for (folder, _lock) in dead(cache) {
        let _ = std::fs::remove_dir_all(&folder);
        if !folder.exists() {
            let _ = std::fs::remove_file(folder.with_extension("lock"));
        }
    }
}

/// The folders whose locks nobody holds; now they are held here.
fn dead(cache: &Path) -> impl Iterator<Item = (PathBuf, File)> {
    let list = std::fs::read_dir(cache.join("partial")).into_iter().flatten().flatten();
    list.map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "lock"))
        .filter_map(|path| {
            let lock = File::open(&path).ok()?;
            lock.try_lock().ok()?;
            Some((path.with_extension(""), lock))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(cache: &Path) -> usize {
        std::fs::read_dir(cache.join("partial")).unwrap().count()
    }

    #[test]
    fn goes_when_it_is_dropped() {
        let cache = tempfile::tempdir().unwrap();
        let workspace = Workspace::new(cache.path()).unwrap();
        std::fs::write(workspace.path.join("x"), "half").unwrap();
        assert_eq!(entries(cache.path()), 2);
        drop(workspace);
        assert_eq!(entries(cache.path()), 0);
    }

    #[test]
    fn the_dead_are_swept_and_the_living_stay() {
        let cache = tempfile::tempdir().unwrap();
        let living = Workspace::new(cache.path()).unwrap();
        // What a process leaves that was killed: both names, but no lock.
        let dead = cache.path().join("partial/1-1-0");
        std::fs::create_dir(&dead).unwrap();
        std::fs::write(dead.join("model.whl"), "half").unwrap();
        File::create(dead.with_extension("lock")).unwrap();
        let next = Workspace::new(cache.path()).unwrap();
        assert!(!dead.exists() && !dead.with_extension("lock").exists());
        assert!(living.path.is_dir() && next.path.is_dir());
        assert_eq!(entries(cache.path()), 4);
    }

    /// What is left when a process is killed that has set a model aside, and has not yet put the new
    /// one into its place.
    #[test]
    fn what_was_set_aside_comes_back() {
        let cache = tempfile::tempdir().unwrap();
        let models = cache.path().join("models");
        std::fs::create_dir_all(models.join("there")).unwrap();
        std::fs::write(models.join("there/file"), "new").unwrap();
        let set_aside = |workspace: &Path| {
            for name in ["there", "gone"] {
                std::fs::create_dir_all(workspace.join(ASIDE).join(name)).unwrap();
                std::fs::write(workspace.join(ASIDE).join(name).join("file"), "old").unwrap();
            }
        };
        let living = Workspace::new(cache.path()).unwrap();
        set_aside(&living.path);
        assert!(!bring_back(cache.path()));
        let dead = cache.path().join("partial/1-1-0");
        set_aside(&dead);
        File::create(dead.with_extension("lock")).unwrap();
        let _next = Workspace::new(cache.path()).unwrap();
        let content = |name: &str| std::fs::read_to_string(models.join(name).join("file")).unwrap();
        assert_eq!((content("there").as_str(), content("gone").as_str()), ("new", "old"));
        assert!(!dead.exists() && living.path.join(ASIDE).join("gone").exists());
    }

    #[test]
    fn folders_are_replaced_whole() {
        let cache = tempfile::tempdir().unwrap();
        let workspace = Workspace::new(cache.path()).unwrap();
        let (new, target) = (workspace.path.join("model"), cache.path().join("models/m"));
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        for text in ["first", "second"] {
            std::fs::create_dir(&new).unwrap();
            std::fs::write(new.join("file"), text).unwrap();
            workspace.replace(&new, &target).unwrap();
            assert_eq!(std::fs::read_to_string(target.join("file")).unwrap(), text);
        }
        // One that fails leaves what was there.
        assert!(workspace.replace(&workspace.path.join("none"), &target).is_err());
        assert_eq!(std::fs::read_to_string(target.join("file")).unwrap(), "second");
    }
}
