//! A folder for what is not finished, which goes away whatever happens.
//!
//! It goes when it is dropped. A process that dies before that leaves it behind, but no longer has
//! the lock beside it, and so the next one can tell and removes it.

use crate::Error;
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
        sweep(&parent);
        // Process numbers come again, so the time is in the name too.
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos());
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{}-{time}-{count}", std::process::id()));
        // Locked before the folder is there: a folder without a living lock may be swept.
        let lock_path = path.with_extension("lock");
        let lock = File::create_new(&lock_path).map_err(|e| Error::io(&lock_path, e))?;
        // A file system without locks has no sweeping, which is no reason to fail.
        let _ = lock.lock();
        let made = std::fs::create_dir(&path);
        let workspace = Workspace { path, lock_path, _lock: lock };
        made.map_err(|e| Error::io(&workspace.path, e))?;
        Ok(workspace)
    }
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
fn sweep(parent: &Path) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let lock_path = entry.path();
        if lock_path.extension().is_none_or(|e| e != "lock") {
            continue;
        }
        let Ok(lock) = File::open(&lock_path) else { continue };
        if lock.try_lock().is_ok() {
            let folder = lock_path.with_extension("");
            let _ = std::fs::remove_dir_all(&folder);
            if !folder.exists() {
                let _ = std::fs::remove_file(&lock_path);
            }
        }
    }
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
}
