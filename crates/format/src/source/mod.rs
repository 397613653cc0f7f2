//! Where bytes come from: a mapped file or memory, and the folder around it.

mod folder;
#[allow(unsafe_code)]
mod map;
pub mod mistaken;
#[allow(unsafe_code)]
mod signal;

pub(crate) use folder::is_inside;
pub use folder::{Folder, MemoryFolder, RealFolder};
pub(crate) use signal::Unfinished;
pub use signal::exit_cleanly_on_signals;

use crate::Error;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

/// A file's bytes. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Source(Arc<Inner>);

#[derive(Debug)]
enum Inner {
    Mapped(memmap2::Mmap),
    Owned(Vec<u8>),
}

impl Source {
    /// Maps a regular file; anything else (a pipe, say) is read whole.
    ///
    /// # Errors
    /// If it can't be read, or is a device.
    pub fn open(path: &Path) -> std::io::Result<Source> {
        map::open(path)
    }

    /// Bytes in memory.
    pub fn from_vec(bytes: Vec<u8>) -> Source {
        Source(Arc::new(Inner::Owned(bytes)))
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        match &*self.0 {
            Inner::Mapped(map) => map,
            Inner::Owned(bytes) => bytes,
        }
    }

    /// How many bytes.
    pub fn len(&self) -> u64 {
        self.bytes().len() as u64
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// A view of some of the bytes; `None` when the range leaves the file.
    pub fn view(&self, range: Range<u64>) -> Option<View> {
        let (start, end) = (usize::try_from(range.start).ok()?, usize::try_from(range.end).ok()?);
        (start <= end && end <= self.bytes().len()).then(|| View {
            source: self.clone(),
            start,
            end,
        })
    }
}

/// Some bytes of a [`Source`], which it keeps alive. The range was checked when it was made.
#[derive(Clone, Debug)]
pub struct View {
    source: Source,
    start: usize,
    end: usize,
}

impl View {
    /// Bytes that belong to no file.
    pub fn owned(bytes: Vec<u8>) -> View {
        let end = bytes.len();
        View { source: Source::from_vec(bytes), start: 0, end }
    }

    /// Where the bytes stand in their file.
    pub fn span(&self) -> Range<u64> {
        self.start as u64..self.end as u64
    }

    /// The very same bytes of the same file, not just equal ones.
    pub fn same_place(&self, other: &View) -> bool {
        Arc::ptr_eq(&self.source.0, &other.source.0)
            && self.start == other.start
            && self.end == other.end
    }

    /// Part of this view, counted from its start.
    pub fn part(&self, range: Range<usize>) -> Option<View> {
        let (start, end) =
            (self.start.checked_add(range.start)?, self.start.checked_add(range.end)?);
        (start <= end && end <= self.end).then(|| View { source: self.source.clone(), start, end })
    }
}

impl Deref for View {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.source.bytes()[self.start..self.end]
    }
}

/// What a format opens: a file's bytes with its name and the folder it lies in, or a folder alone.
#[derive(Debug)]
pub struct Input {
    /// The name shown in messages; for a folder its own name.
    pub name: String,
    /// The path as it was given; the name of what has no path.
    pub path: String,
    /// Empty for a folder.
    pub source: Source,
    /// The folder around the file, or the folder itself.
    pub folder: Box<dyn Folder>,
    /// It is a folder rather than a file.
    pub is_folder: bool,
}

impl Input {
    /// Opens a file, or a folder as a whole.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none, [`Error::Io`] if it can't be read.
    pub fn open(path: &Path) -> Result<Input, Error> {
        let io = |e| Error::io(path, e);
        let meta = std::fs::metadata(path).map_err(io)?;
        let is_folder = meta.is_dir();
        let (source, folder, name) = if is_folder {
            // `.` and `..` have no name of their own.
            let full = path.canonicalize().map_err(io)?;
            (Source::from_vec(Vec::new()), RealFolder::new(path), folder::model_name(&full))
        } else {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
            (
                Source::open(path).map_err(io)?,
                RealFolder::new(parent.unwrap_or(Path::new("."))),
                name,
            )
        };
        let path = path.display().to_string();
        Ok(Input { name, path, source, folder: Box::new(folder), is_folder })
    }

    /// A file that exists only in memory, with nothing beside it.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Input {
        Input::in_memory(name, bytes, Vec::new())
    }

    /// A file in memory with other files beside it.
    pub fn in_memory(name: &str, bytes: Vec<u8>, beside: Vec<(String, Vec<u8>)>) -> Input {
        Input {
            name: name.to_owned(),
            path: name.to_owned(),
            source: Source::from_vec(bytes),
            folder: Box::new(MemoryFolder::new(beside)),
            is_folder: false,
        }
    }

    /// The name's last extension, in lower case.
    pub fn extension(&self) -> String {
        let name = self.name.to_ascii_lowercase();
        name.rsplit_once('.').map(|(_, e)| e.to_owned()).unwrap_or_default()
    }
}
