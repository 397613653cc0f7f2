//! What a format opens: a file with what lies beside it, or a folder.

#[cfg(feature = "fs")]
use super::file::LARGEST_PIPE;
#[cfg(feature = "fs")]
use super::{Access, RealFolder, folder};
use super::{Folder, MemoryFolder, Source};
#[cfg(feature = "fs")]
use crate::Error;
#[cfg(feature = "fs")]
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// What a format opens: a file's bytes with its name and the folder it lies in, or a folder alone.
#[derive(Clone, Debug)]
pub struct Input {
    /// The name shown in messages; for a folder its own name.
    pub name: String,
    /// The path as it was given; the name of what has no path.
    pub path: String,
    /// Empty for a folder.
    pub source: Source,
    /// The folder around the file, or the folder itself.
    pub folder: Arc<dyn Folder>,
    /// It is a folder rather than a file.
    pub is_folder: bool,
}

impl Input {
    /// Opens a file, mapped, or a folder as a whole.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none, [`Error::Io`] if it can't be read.
    #[cfg(feature = "fs")]
    pub fn open(path: &Path) -> Result<Input, Error> {
        Input::open_with(path, Access::Mapped)
    }

    /// The same, with the bytes of files reached in this way.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none, [`Error::Io`] if it can't be read.
    #[cfg(feature = "fs")]
    pub fn open_with(path: &Path, access: Access) -> Result<Input, Error> {
        let io = |e| Error::io(path, e);
        let meta = std::fs::metadata(path).map_err(io)?;
        let is_folder = meta.is_dir();
        let (source, folder, name) = if is_folder {
            // `.` and `..` have no name of their own.
            let full = path.canonicalize().map_err(io)?;
            (Source::from_vec(Vec::new()), RealFolder::new(path, access), folder::model_name(&full))
        } else {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let source = Source::open(path, access).map_err(|e| match e.kind() {
                ErrorKind::FileTooLarge => Error::limit("bytes of a pipe", LARGEST_PIPE),
                _ => io(e),
            })?;
            (source, RealFolder::around(path, access), name)
        };
        let path = path.display().to_string();
        Ok(Input { name, path, source, folder: Arc::new(folder), is_folder })
    }

    /// A file that exists only in memory, with nothing beside it.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Input {
        Input::in_memory(name, bytes, Vec::new())
    }

    /// A file in memory with other files beside it.
    pub fn in_memory(name: &str, bytes: Vec<u8>, beside: Vec<(String, Vec<u8>)>) -> Input {
        let folder = Arc::new(MemoryFolder::new(beside));
        Input { folder, ..Input::from_source(name, Source::from_vec(bytes)) }
    }

    /// A file whose bytes come from anywhere, with nothing beside it.
    pub fn from_source(name: &str, source: Source) -> Input {
        Input {
            name: name.to_owned(),
            path: name.to_owned(),
            source,
            folder: Arc::new(MemoryFolder::new(Vec::new())),
            is_folder: false,
        }
    }

    /// The path of a file in the input's folder, as the input was given; of the input itself without
    /// a name.
    pub fn path_of(&self, name: &str) -> String {
        if name.is_empty() {
            return self.path.clone();
        }
        let path = Path::new(&self.path);
        let path = if self.is_folder { path.join(name) } else { path.with_file_name(name) };
        path.display().to_string()
    }

    /// The name's last extension, in lower case.
    pub fn extension(&self) -> String {
        let name = self.name.to_ascii_lowercase();
        name.rsplit_once('.').map(|(_, e)| e.to_owned()).unwrap_or_default()
    }
}
