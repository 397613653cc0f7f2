//! Files of the file system: mapped, or read range by range.

use super::{FileChanged, ReadRange, Source};
#[cfg(feature = "mmap")]
use crate::Error;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, IsTerminal, Read};
use std::path::Path;
#[cfg(feature = "mmap")]
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// How the bytes of a regular file are reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Mapped into memory; read range by range where that fails. The fastest.
    #[default]
    Mapped,
    /// Read range by range. A file that is cut or rewritten meanwhile is an error, where a mapping
    /// would end the program or show other bytes.
    Reads,
}

/// More than this is not read from a pipe: what has no end would fill the memory.
pub(super) const LARGEST_PIPE: u64 = 1 << 30;

/// How long a pipe is waited for that nobody has opened to write.
const PATIENCE: Duration = Duration::from_secs(5);

/// Opens what is to be read: a file, a pipe or a terminal. Folders and devices are refused, because
/// those have no end, and so is a pipe that nobody opens to write.
///
/// # Errors
/// If it is one of these, or can't be opened.
pub fn open_input(path: &Path) -> io::Result<File> {
    let file = match is_pipe(&std::fs::metadata(path)?) {
        true => open_pipe(path)?,
        false => File::open(path)?,
    };
    let meta = file.metadata()?;
    if meta.is_dir() {
        return Err(io::Error::new(ErrorKind::IsADirectory, "it is a folder, not a file"));
    }
    if is_device(&meta) && !file.is_terminal() {
        return Err(io::Error::new(ErrorKind::InvalidInput, DEVICE));
    }
    Ok(file)
}

const DEVICE: &str = "it is a device, not a file";

#[cfg(unix)]
fn is_device(meta: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    meta.file_type().is_char_device() || meta.file_type().is_block_device()
}

#[cfg(unix)]
fn is_pipe(meta: &Metadata) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&meta.file_type())
}

#[cfg(not(unix))]
fn is_device(_: &Metadata) -> bool {
    false
}

#[cfg(not(unix))]
fn is_pipe(_: &Metadata) -> bool {
    false
}

/// Opening a pipe waits for somebody who writes. The thread that waits in vain ends with the process.
fn open_pipe(path: &Path) -> io::Result<File> {
    let (send, opened) = std::sync::mpsc::channel();
    let path = path.to_owned();
    std::thread::Builder::new().spawn(move || send.send(File::open(path)))?;
    let nobody = || io::Error::new(ErrorKind::TimedOut, "it is a pipe that nobody writes to");
    opened.recv_timeout(PATIENCE).map_err(|_| nobody())?
}

pub(super) fn open(path: &Path, access: Access) -> io::Result<Source> {
    let file = open_input(path)?;
    let meta = file.metadata()?;
    if is_device(&meta) {
        return Err(io::Error::new(ErrorKind::InvalidInput, DEVICE));
    }
    if !meta.is_file() || meta.len() == 0 {
        let mut bytes = Vec::new();
        file.take(LARGEST_PIPE + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LARGEST_PIPE {
            let what = format!("it is a pipe with more than {LARGEST_PIPE} bytes");
            return Err(io::Error::new(ErrorKind::FileTooLarge, what));
        }
        return Ok(Source::from_vec(bytes));
    }
    #[cfg(feature = "mmap")]
    if access == Access::Mapped
        && let Some(mapped) = super::map::map(&file, Stamp::new(path, &meta))
    {
        return Ok(mapped);
    }
    let _ = access;
    Ok(Source::from_ranges(path, FileRanges { len: meta.len(), stamp: stamp(&meta), file }))
}

/// What tells that a file was rewritten. It is asked for by its path, so that no file is kept open; one
/// that has taken its place is another file, and leaves the mapped one as it was.
#[cfg(feature = "mmap")]
#[derive(Debug)]
pub(super) struct Stamp {
    path: PathBuf,
    id: Option<(u64, u64)>,
    len: u64,
    modified: Option<SystemTime>,
}

#[cfg(feature = "mmap")]
impl Stamp {
    fn new(path: &Path, meta: &Metadata) -> Stamp {
        Stamp { path: path.to_owned(), id: id(meta), len: meta.len(), modified: stamp(meta) }
    }

    /// # Errors
    /// [`Error::Changed`] if the file is there and has another size or was changed later.
    pub(super) fn check(&self) -> Result<(), Error> {
        let Ok(now) = std::fs::metadata(&self.path) else { return Ok(()) };
        let is_it = id(&now) == self.id;
        match is_it && (now.len() != self.len || stamp(&now) != self.modified) {
            true => Err(Error::Changed { path: self.path.clone() }),
            false => Ok(()),
        }
    }
}

/// What tells files of one machine apart, where there is such a thing.
#[cfg(all(feature = "mmap", unix))]
fn id(meta: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((meta.dev(), meta.ino()))
}

#[cfg(all(feature = "mmap", not(unix)))]
fn id(_: &Metadata) -> Option<(u64, u64)> {
    None
}

/// A file that is read at positions, and must stay as it was when it was opened.
#[derive(Debug)]
struct FileRanges {
    file: File,
    len: u64,
    stamp: Option<SystemTime>,
}

/// When the file was written last, where the system knows.
fn stamp(meta: &Metadata) -> Option<SystemTime> {
    meta.modified().ok()
}

impl ReadRange for FileRanges {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let n = read_at(&self.file, offset, out)?;
        let now = self.file.metadata()?;
        if now.len() != self.len || stamp(&now) != self.stamp {
            return Err(io::Error::other(FileChanged));
        }
        Ok(n)
    }

    fn is_cheap(&self) -> bool {
        true
    }
}

#[cfg(unix)]
fn read_at(file: &File, offset: u64, out: &mut [u8]) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, out, offset)
}

#[cfg(windows)]
fn read_at(file: &File, offset: u64, out: &mut [u8]) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, out, offset)
}

#[cfg(not(any(unix, windows)))]
fn read_at(mut file: &File, offset: u64, out: &mut [u8]) -> io::Result<usize> {
    use std::io::Seek;
    // The position belongs to the file: one thread after the other.
    static ONE_BY_ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _turn = ONE_BY_ONE.lock();
    file.seek(io::SeekFrom::Start(offset))?;
    file.read(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, View};

    fn file(bytes: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, bytes).unwrap();
        (folder, path)
    }

    #[test]
    fn mapped_and_read_files_give_the_same_bytes() {
        let (_folder, path) = file(b"hello");
        for access in [Access::Mapped, Access::Reads] {
            let source = open(&path, access).unwrap();
            let is_mapped = access == Access::Mapped && cfg!(feature = "mmap");
            assert_eq!(source.resident().is_some(), is_mapped);
            assert_eq!(source.head().unwrap(), b"hello");
            // A view keeps the file open.
            let view = source.view(1..3).unwrap();
            assert!(source.view(1..6).is_none());
            assert!(source.bytes(1..6).is_err());
            drop(source);
            assert_eq!(*view.load().unwrap(), *b"el");
            assert_eq!(view.read(1..2, &mut Vec::new()).unwrap(), b"l");
            assert!(view.read(1..3, &mut Vec::new()).is_err());
            assert_eq!(view.load().unwrap().span(), 1..3);
        }
        std::fs::write(&path, b"").unwrap();
        assert!(open(&path, Access::Mapped).unwrap().is_empty());
    }

    #[test]
    fn a_file_that_changes_while_it_is_read_is_an_error() {
        let cut = |path: &Path| File::options().write(true).open(path).unwrap().set_len(2).unwrap();
        let rewritten = |path: &Path| {
            let file = File::options().write(true).open(path).unwrap();
            let later = SystemTime::now() + std::time::Duration::from_secs(5);
            std::io::Write::write_all(&mut &file, b"HELLO").unwrap();
            file.set_modified(later).unwrap();
        };
        let changes: [&dyn Fn(&Path); 2] = [&cut, &rewritten];
        for change in changes {
            let (_folder, path) = file(b"hello");
            let source = open(&path, Access::Reads).unwrap();
            let view: View = source.view(0..5).unwrap();
            assert_eq!(*view.load().unwrap(), *b"hello");
            change(&path);
            let error = view.load().unwrap_err();
            assert!(matches!(error, Error::Changed { .. }), "{error:?}");
        }
    }

    #[cfg(feature = "mmap")]
    #[test]
    fn what_is_parsed_of_a_mapped_file_is_a_copy() {
        use crate::wire::{Cursor, Rule, Severity};
        let (_folder, path) = file(b"hello");
        let source = open(&path, Access::Mapped).unwrap();
        let view = source.view(0..5).unwrap();
        let rule = Rule { id: "T-01", severity: Severity::Error, title: "cut short" };
        let mut cursor = Cursor::new(&source, 0..5, rule);
        let copies = [source.bytes(0..5).unwrap(), view.load().unwrap()];
        let (head, taken) = (source.head().unwrap(), cursor.take(5, "x").unwrap());
        let in_place = view.in_place().unwrap();
        std::io::Write::write_all(&mut File::options().write(true).open(&path).unwrap(), b"HELLO")
            .unwrap();
        assert!([head, taken, &copies[0], &copies[1]].iter().all(|bytes| bytes == b"hello"));
        // Other systems may show a change later.
        if cfg!(target_os = "linux") {
            assert_eq!((&*in_place, &*in_place.settled()), (&b"HELLO"[..], &b"HELLO"[..]));
        }
    }
}
