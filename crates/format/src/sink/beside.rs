//! What lies beside a target for a while: files that are not finished, the lock of those who put
//! files into its place, and what processes left there that died.

use crate::source::{Deferred, Unfinished};
use std::ffi::OsStr;
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Letters of a random name.
const RANDOM: usize = 16;

/// A name in the same folder that nothing else uses.
pub(super) fn temporary_beside(path: &Path, kind: &str) -> PathBuf {
    // Numbers of processes come again, in containers with every run.
    let random = RandomState::new().build_hasher().finish();
    path.with_file_name(format!(".{}.{random:0RANDOM$x}.{kind}", shown_in(path)))
}

/// How a target is called in the names beside it, which must not become too long for the system.
fn shown_in(path: &Path) -> String {
    const MOST: usize = 200;
    let mut name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    while name.len() > MOST {
        name.pop();
    }
    name
}

/// Whether a name is one that [`temporary_beside`] gives.
fn is_temporary(name: &OsStr, path: &Path, kind: &str) -> bool {
    let random = name.to_str().and_then(|name| {
        let behind = name.strip_prefix('.')?.strip_prefix(&shown_in(path))?;
        behind.strip_prefix('.')?.strip_suffix(kind)?.strip_suffix('.')
    });
    random.is_some_and(|r| r.len() == RANDOM && r.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// The right to put files into some places, which one process has at a time.
#[derive(Debug)]
pub(super) struct Turn {
    /// Locked as long as they are open.
    held: Vec<(File, PathBuf, Option<Unfinished>)>,
    /// All of them could be locked. Some file systems have no locks, which is no reason not to write.
    complete: bool,
}

impl Turn {
    /// Waits for it.
    pub(super) fn wait(places: &[&Path]) -> Turn {
        let mut locks: Vec<_> = places
            .iter()
            .map(|path| path.with_file_name(format!(".{}.lock", shown_in(path))))
            .collect();
        // In the same order for all, so that nobody waits for one who waits for him.
        locks.sort();
        locks.dedup();
        let mut turn = Turn { held: Vec::new(), complete: true };
        for path in locks {
            match lock(&path) {
                Some((file, own)) => turn.held.push((file, path, own)),
                None => turn.complete = false,
            }
        }
        turn
    }

    /// Removes unfinished files and folders of processes that died. Never a reason to fail.
    pub(super) fn sweep_unfinished(&self, places: &[&Path]) {
        self.sweep(places, "part", |path| {
            // Those who live hold a lock, and take it while it is their turn.
            File::open(path).is_ok_and(|file| file.try_lock().is_ok())
        });
    }

    /// Removes the second names of old files: whoever had its turn before and left them has died.
    pub(super) fn sweep_backups(&self, places: &[&Path]) {
        self.sweep(places, "old", |_| true);
    }

    fn sweep(&self, places: &[&Path], kind: &str, is_dead: impl Fn(&Path) -> bool) {
        let Some(folder) = places.first().map(|path| folder_of(path)) else { return };
        if !self.complete {
            return;
        }
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if !places.iter().any(|place| is_temporary(&name, place, kind)) {
                continue;
            }
            // Of the entry itself: nothing behind a link is touched.
            let Ok(there) = entry.file_type() else { continue };
            if (there.is_file() || there.is_dir()) && is_dead(&entry.path()) {
                let _ = match there.is_dir() {
                    true => std::fs::remove_dir_all(entry.path()),
                    false => std::fs::remove_file(entry.path()),
                };
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // While they are still locked: whoever waits for one sees that it is gone, and takes another.
        for (_, path, _) in self.held.iter().filter(|(_, _, own)| own.is_some()) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The folder that a path is in.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A locked file of this name, and that it goes in the end. One with something in it is somebody
/// else's, and stays.
fn lock(path: &Path) -> Option<(File, Option<Unfinished>)> {
    // Each time somebody else has had its turn in between.
    for _ in 0..1000 {
        // What is made here is registered before a signal ends the process.
        let mut signals = Deferred::begin();
        let file = match open_own(path, None) {
            // Another user's can be locked all the same.
            Err(e) if e.kind() == ErrorKind::PermissionDenied => File::open(path).ok()?,
            opened => opened.ok()?,
        };
        let own = file.metadata().ok()?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                // Whoever has it removes it, so that a signal may end the waiting.
                drop(signals);
                file.lock().ok()?;
                signals = Deferred::begin();
            }
            // A system without locks.
            Err(TryLockError::Error(_)) => {
                let _ = if own.len() == 0 { std::fs::remove_file(path) } else { Ok(()) };
                return None;
            }
        }
        if path.symlink_metadata().is_ok_and(|now| is_same(&own, &now)) {
            let unfinished = (own.len() == 0).then(|| Unfinished::register(path));
            drop(signals);
            return Some((file, unfinished));
        }
    }
    None
}

/// Whether both are of one file.
fn is_same(a: &Metadata, b: &Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        (a.dev(), a.ino()) == (b.dev(), b.ino())
    }
    #[cfg(not(unix))]
    {
        a.file_type() == b.file_type()
    }
}

/// Makes a new file, as readable as one that it is going to replace.
pub(super) fn create_like(path: &Path, like: Option<&Path>) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    let old = like.and_then(|like| std::fs::metadata(like).ok()).map(|old| old.permissions());
    if let Some(old) = &old {
        // From the start: others must not see the first bytes either.
        readable_as(&mut options, old);
    }
    let file = options.open(path)?;
    if let Some(old) = old {
        // What the system took off for new files. Not worth failing for.
        let _ = file.set_permissions(old);
    }
    Ok(file)
}

#[cfg(unix)]
fn readable_as(options: &mut OpenOptions, old: &std::fs::Permissions) {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    options.mode(old.mode() & 0o777);
}

#[cfg(not(unix))]
fn readable_as(_: &mut OpenOptions, _: &std::fs::Permissions) {}

/// Opens a file that only this program makes, to read and to write it; it is made if it is not
/// there, as readable as `like` if that is a file. What a link leads to is somebody else's, and so
/// is anything that is not a regular file.
///
/// # Errors
/// As the system reports them, and [`ErrorKind::InvalidInput`] for what is somebody else's.
pub fn open_own(path: &Path, like: Option<&Path>) -> io::Result<File> {
    loop {
        match create_like(path, like) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            made => return made,
        }
        let there = match path.symlink_metadata() {
            Err(e) if e.kind() == ErrorKind::NotFound => continue,
            there => there?,
        };
        if !there.is_file() {
            let what = if there.is_symlink() { "it is a link" } else { "it is not a regular file" };
            return Err(io::Error::new(ErrorKind::InvalidInput, what));
        }
        let file = match File::options().read(true).write(true).open(path) {
            Err(e) if e.kind() == ErrorKind::NotFound => continue,
            file => file?,
        };
        // Otherwise somebody put another file there between the two looks.
        if is_same(&file.metadata()?, &there) {
            return Ok(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_ours_are_temporary() {
        let path = Path::new("/folder/x.npy");
        let name = temporary_beside(path, "part");
        assert_ne!(name, temporary_beside(path, "part"));
        let is = |name: &str| is_temporary(OsStr::new(name), path, "part");
        assert!(is(name.file_name().unwrap().to_str().unwrap()));
        assert!(is(".x.npy.0123456789abcdef.part"));
        for other in [
            "x.npy.0123456789abcdef.part",
            ".x.npy.0123456789abcdef.old",
            ".x.npy.0123456789abcde.part",
            ".x.npy.0123456789abcdeg.part",
            ".x.npy.y.0123456789abcdef.part",
            ".y.npy.0123456789abcdef.part",
            ".x.npy.part",
        ] {
            assert!(!is(other), "{other}");
        }
        // A name as long as the system allows.
        let long = PathBuf::from("/folder").join("é".repeat(127));
        assert!(temporary_beside(&long, "part").file_name().unwrap().len() < 255);
    }

    #[test]
    fn one_turn_after_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        let count = std::sync::atomic::AtomicU32::new(0);
        std::thread::scope(|scope| {
            for i in 0..8 {
                let places = if i % 2 == 0 { [&*a, &*b] } else { [&*b, &*a] };
                let count = &count;
                scope.spawn(move || {
                    for _ in 0..200 {
                        let turn = Turn::wait(&places);
                        assert!(turn.complete);
                        assert_eq!(count.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                        count.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn what_is_not_ours_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let (link, other) = (folder.path().join("link"), folder.path().join("other"));
        std::os::unix::fs::symlink(&other, &link).unwrap();
        assert_eq!(open_own(&link, None).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert!(!other.exists());
        std::fs::write(&other, "theirs").unwrap();
        assert_eq!(open_own(&link, None).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert!(open_own(folder.path(), None).is_err());
        assert!(open_own(&other, None).is_ok());
        // Without a lock it goes on.
        std::os::unix::fs::symlink(&other, folder.path().join(".x.lock")).unwrap();
        assert!(!Turn::wait(&[&folder.path().join("x")]).complete);
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "theirs");
    }

    #[test]
    fn a_file_of_somebody_else_is_no_lock_to_remove() {
        let folder = tempfile::tempdir().unwrap();
        let lock = folder.path().join(".a.npy.lock");
        std::fs::write(&lock, "mine").unwrap();
        drop(Turn::wait(&[&folder.path().join("a.npy")]));
        assert_eq!(std::fs::read_to_string(&lock).unwrap(), "mine");
        std::fs::write(&lock, "").unwrap();
        drop(Turn::wait(&[&folder.path().join("a.npy")]));
        assert!(!lock.exists());
    }
}
