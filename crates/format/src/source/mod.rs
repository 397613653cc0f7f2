//! Where bytes come from: a mapped file, memory, or anything that gives ranges of bytes; and the
//! folder around a file.

#[cfg(feature = "fs")]
mod file;
mod folder;
mod input;
#[cfg(feature = "signals")]
#[allow(unsafe_code)]
mod last_words;
#[cfg(feature = "mmap")]
#[allow(unsafe_code)]
mod map;
pub mod mistaken;
mod name;
#[cfg(feature = "signals")]
#[allow(unsafe_code)]
mod signal;
#[cfg(all(feature = "fs", not(feature = "signals")))]
#[path = "no_signal.rs"]
mod signal;
mod view;

#[cfg(feature = "fs")]
pub use file::{Access, open_input};
#[cfg(feature = "fs")]
pub use folder::RealFolder;
pub use folder::{Folder, MemoryFolder};
pub use input::Input;
#[cfg(feature = "signals")]
pub use last_words::LastWords;
pub(crate) use name::folded;
pub use name::{clashing_names, is_hidden, is_plain_name, name_problem, stays_inside};
#[cfg(feature = "fs")]
pub use signal::Deferred;
#[cfg(feature = "fs")]
pub(crate) use signal::Unfinished;
#[cfg(feature = "signals")]
pub use signal::exit_cleanly_on_signals;
pub use view::{Bytes, View};

use crate::Error;
use crate::wire::{Span, to_len};
use std::fmt::{self, Debug};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A file's bytes. Cloning is cheap. Bytes that are mapped or in memory are borrowed, others are
/// read when they are asked for, which can fail.
#[derive(Clone, Debug)]
pub struct Source(Arc<Inner>);

#[derive(Debug)]
enum Inner {
    #[cfg(feature = "mmap")]
    Mapped(map::Mapped),
    Owned(Vec<u8>),
    Ranges(Ranges),
}

/// Something that gives ranges of bytes when they are asked for: a file of a browser, a server that
/// knows ranges, a part of an archive.
///
/// ```
/// use weighbridge_format::source::{ReadRange, Source};
///
/// #[derive(Debug)]
/// struct Zeros;
///
/// impl ReadRange for Zeros {
///     fn len(&self) -> u64 {
///         1 << 40
///     }
///
///     fn read_at(&self, _: u64, out: &mut [u8]) -> std::io::Result<usize> {
///         out.fill(0);
///         Ok(out.len())
///     }
/// }
///
/// let source = Source::from_ranges("zeros", Zeros);
/// assert_eq!(*source.bytes(1_000_000..1_000_004)?, [0; 4]);
/// # Ok::<(), weighbridge_format::Error>(())
/// ```
#[allow(clippy::len_without_is_empty)]
pub trait ReadRange: Debug + Send + Sync {
    /// How many bytes there are.
    fn len(&self) -> u64;

    /// Fills the front of `out` with the bytes from `offset` on and says how many were put there: one
    /// or more, unless there are none.
    ///
    /// # Errors
    /// If they can't be read. [`FileChanged`] as the inner error says that the file is no longer the
    /// one that was opened.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize>;

    /// Whether asking for a few bytes costs next to nothing, as with a file. Where it does not, the
    /// first bytes are asked for once, and most headers are in them.
    fn is_cheap(&self) -> bool {
        false
    }
}

/// The inner error of a read that met another file than the one that was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileChanged;

impl fmt::Display for FileChanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the file was cut or rewritten while it was read")
    }
}

impl std::error::Error for FileChanged {}

/// What is read range by range.
#[derive(Debug)]
struct Ranges {
    path: PathBuf,
    len: u64,
    reader: Box<dyn ReadRange>,
    /// The first bytes, which tell the format and hold most headers.
    head: OnceLock<Vec<u8>>,
}

/// Bytes at the start of a file that tell its format: a header line, and 64 KiB behind it.
const HEAD: u64 = (1 << 16) + (1 << 10);

impl Source {
    /// Opens a file. Anything but a regular file (a pipe, say) is read whole.
    ///
    /// # Errors
    /// If it can't be read, or is a device.
    #[cfg(feature = "fs")]
    pub fn open(path: &Path, access: Access) -> io::Result<Source> {
        file::open(path, access)
    }

    /// Bytes in memory.
    pub fn from_vec(bytes: Vec<u8>) -> Source {
        Source(Arc::new(Inner::Owned(bytes)))
    }

    /// Bytes that are read when they are asked for; `name` is what errors call them.
    pub fn from_ranges(name: impl Into<PathBuf>, reader: impl ReadRange + 'static) -> Source {
        let (path, len) = (name.into(), reader.len());
        let (reader, head) = (Box::new(reader), OnceLock::new());
        Source(Arc::new(Inner::Ranges(Ranges { path, len, reader, head })))
    }

    /// Whether another process can change the bytes.
    pub(crate) fn is_mapped(&self) -> bool {
        match &*self.0 {
            #[cfg(feature = "mmap")]
            Inner::Mapped(_) => true,
            _ => false,
        }
    }

    /// Whether both are one and the same, not just equal.
    pub(crate) fn is(&self, other: &Source) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// How many bytes.
    pub fn len(&self) -> u64 {
        match &*self.0 {
            Inner::Ranges(ranges) => ranges.len,
            _ => self.resident().map_or(0, <[u8]>::len) as u64,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All bytes, where they are mapped or in memory. Those of a mapped file may change at any time:
    /// they are for values, and what is parsed is a copy.
    pub fn resident(&self) -> Option<&[u8]> {
        match &*self.0 {
            #[cfg(feature = "mmap")]
            Inner::Mapped(mapped) => Some(mapped.bytes()),
            Inner::Owned(bytes) => Some(bytes),
            Inner::Ranges(_) => None,
        }
    }

    /// The first bytes, some 64 KiB at most. They are read once.
    ///
    /// # Errors
    /// If they can't be read.
    pub fn head(&self) -> Result<&[u8], Error> {
        let known = match &*self.0 {
            #[cfg(feature = "mmap")]
            Inner::Mapped(mapped) => &mapped.head,
            Inner::Owned(bytes) => return Ok(&bytes[..bytes.len().min(to_len(HEAD))]),
            Inner::Ranges(ranges) => &ranges.head,
        };
        if let Some(head) = known.get() {
            return Ok(head);
        }
        let head = self.to_vec(0..HEAD.min(self.len()))?;
        Ok(known.get_or_init(|| head))
    }

    /// Some of the bytes: borrowed where they are mapped or in memory, else read into `buffer`.
    ///
    /// # Errors
    /// If they can't be read, or the range leaves the file.
    pub fn read<'a>(&'a self, range: Span, buffer: &'a mut Vec<u8>) -> Result<&'a [u8], Error> {
        if let Some(known) = self.known(&range) {
            return Ok(known);
        }
        *buffer = self.read_anew(range, std::mem::take(buffer))?;
        Ok(buffer)
    }

    /// Bytes that need not be read.
    fn known(&self, range: &Span) -> Option<&[u8]> {
        let all = match &*self.0 {
            Inner::Ranges(ranges) if ranges.reader.is_cheap() => return None,
            Inner::Ranges(ranges) => ranges.head.get()?,
            _ => self.resident()?,
        };
        all.get(to_len(range.start)..to_len(range.end))
    }

    /// Reads bytes that are not known, in place of what the buffer has.
    fn read_anew(&self, range: Span, mut buffer: Vec<u8>) -> Result<Vec<u8>, Error> {
        match &*self.0 {
            Inner::Ranges(ranges) if range.start <= range.end && range.end <= ranges.len => {
                let n = to_len(range.end - range.start);
                buffer.clear();
                // More than there is memory for is an error like others.
                if buffer.try_reserve_exact(n).is_err() {
                    let error = io::ErrorKind::OutOfMemory.into();
                    return Err(Error::Io { path: ranges.path.clone(), source: error });
                }
                buffer.resize(n, 0);
                ranges.fill(range.start, &mut buffer)?;
                Ok(buffer)
            }
            _ => Err(Error::io(Path::new("the source"), io::ErrorKind::UnexpectedEof.into())),
        }
    }

    /// Some of the bytes to keep, which nobody changes: a part of the memory, else a copy.
    ///
    /// # Errors
    /// If they can't be read, or the range leaves the file.
    pub fn bytes(&self, range: Span) -> Result<Bytes, Error> {
        match self.view(range.clone()) {
            Some(view) => view.load(),
            None => Ok(Bytes::owned(self.to_vec(range)?)),
        }
    }

    /// Some of the bytes as they lie in the mapping, see [`View::in_place`].
    ///
    /// # Errors
    /// If they can't be read, or the range leaves the file.
    pub(crate) fn in_place(&self, range: Span) -> Result<Bytes, Error> {
        match self.view(range.clone()) {
            Some(view) => view.in_place(),
            None => Ok(Bytes::owned(self.to_vec(range)?)),
        }
    }

    /// Whether the file is still what it was when it was mapped, as far as its size and the time of its
    /// last change tell. What is read range by range is compared at every read.
    ///
    /// # Errors
    /// [`Error::Changed`] if it is not.
    pub fn check_unchanged(&self) -> Result<(), Error> {
        match &*self.0 {
            #[cfg(feature = "mmap")]
            Inner::Mapped(mapped) => mapped.check_unchanged(),
            _ => Ok(()),
        }
    }

    /// A copy of some of the bytes.
    pub(crate) fn to_vec(&self, range: Span) -> Result<Vec<u8>, Error> {
        self.copy(range, Vec::new())
    }

    /// A copy of some of the bytes, in place of what the buffer has.
    pub(crate) fn copy(&self, range: Span, mut buffer: Vec<u8>) -> Result<Vec<u8>, Error> {
        let Some(known) = self.known(&range) else { return self.read_anew(range, buffer) };
        buffer.clear();
        buffer.extend_from_slice(known);
        Ok(buffer)
    }

    /// A view of some of the bytes; `None` when the range leaves the file.
    pub fn view(&self, range: Span) -> Option<View> {
        (range.start <= range.end && range.end <= self.len())
            .then(|| View::new(self.clone(), range))
    }
}

impl Ranges {
    /// Fills `out` from `offset` on, in as many reads as it takes.
    fn fill(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let mut done = 0;
        while done < out.len() {
            match self.reader.read_at(offset + done as u64, &mut out[done..]) {
                Ok(0) => return Err(self.changed()),
                Ok(n) => done += n.min(out.len() - done),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.get_ref().is_some_and(|inner| inner.is::<FileChanged>()) => {
                    return Err(self.changed());
                }
                Err(e) => return Err(Error::Io { path: self.path.clone(), source: e }),
            }
        }
        Ok(())
    }

    fn changed(&self) -> Error {
        Error::Changed { path: self.path.clone() }
    }
}
