//! The files beside a file: shards, `meta.json`, a model directory.

#[cfg(feature = "fs")]
use super::Access;
use super::{Source, is_plain_name};
use std::fmt::Debug;
use std::io;
#[cfg(feature = "fs")]
use std::path::{Path, PathBuf};

/// A folder that files can be opened in by relative name. Names come from files, so they are hostile:
/// a name that leads out of the folder is refused.
pub trait Folder: Debug + Send + Sync {
    /// Opens a file by its relative name.
    ///
    /// # Errors
    /// If there is none, it can't be read, or the name leads out of the folder.
    fn open(&self, name: &str) -> io::Result<Source>;

    /// All files, as relative paths with `/`, sorted; folders within are entered, but for a few that
    /// are listed themselves, with a `/` behind.
    ///
    /// # Errors
    /// If the folder can't be read, or has more than a model directory would have.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Whether there is a file of this name.
    fn exists(&self, name: &str) -> bool {
        self.list().is_ok_and(|names| names.iter().any(|n| n == name))
    }
}

fn refuse(name: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("{name:?} is not the name of a file in the same folder"),
    )
}

/// A folder of the file system.
#[cfg(feature = "fs")]
#[derive(Debug)]
pub struct RealFolder {
    path: PathBuf,
    access: Access,
}

#[cfg(feature = "fs")]
impl RealFolder {
    /// Folders deeper than this are no model's.
    const DEPTH: usize = 16;
    /// More files than this are no model directory.
    const MOST: usize = 10_000;
    /// Files of so many bytes are read at once where nothing is mapped.
    const SMALL: u64 = 1 << 20;
    /// What tools keep beside the files they fetched.
    const NOT_ENTERED: [&str; 2] = [".git", ".cache"];

    /// The folder at a path.
    pub fn new(path: &Path, access: Access) -> Self {
        RealFolder { path: path.to_owned(), access }
    }

    fn collect(
        &self,
        at: &Path,
        prefix: &str,
        depth: usize,
        out: &mut Vec<String>,
    ) -> io::Result<()> {
        for entry in std::fs::read_dir(at)? {
            let entry = entry?;
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            let is_folder = entry.file_type()?.is_dir();
            if out.len() >= Self::MOST || depth > Self::DEPTH {
                let what = "too many files or folders for a model directory";
                return Err(io::Error::other(what));
            }
            if !is_folder {
                out.push(name);
            } else if Self::NOT_ENTERED.iter().any(|n| *n == name) {
                out.push(format!("{name}/"));
            } else {
                self.collect(&entry.path(), &format!("{name}/"), depth + 1, out)?;
            }
        }
        Ok(())
    }
}

#[cfg(feature = "fs")]
impl Folder for RealFolder {
    fn open(&self, name: &str) -> io::Result<Source> {
        if !is_plain_name(name) {
            return Err(refuse(name));
        }
        // Waiting at a pipe that lies in a folder would be waiting for ever.
        let path = self.path.join(name);
        let meta = std::fs::metadata(&path)?;
        if meta.is_file() && self.access == Access::Reads && meta.len() <= Self::SMALL {
            // A folder may have more of them than a process may keep open.
            std::fs::read(&path).map(Source::from_vec)
        } else if meta.is_file() {
            Source::open(&path, self.access)
        } else {
            Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{name:?} is not a regular file"),
            ))
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        self.collect(&self.path, "", 0, &mut names)?;
        names.sort();
        Ok(names)
    }

    fn exists(&self, name: &str) -> bool {
        is_plain_name(name) && self.path.join(name).is_file()
    }
}

/// A folder of given files, for tests and for callers without a file system.
#[derive(Debug)]
pub struct MemoryFolder {
    files: Vec<(String, Source)>,
}

impl MemoryFolder {
    /// A folder of these files, by relative name.
    pub fn new(files: Vec<(String, Vec<u8>)>) -> Self {
        let files = files.into_iter().map(|(n, b)| (n, Source::from_vec(b))).collect();
        MemoryFolder { files }
    }

    /// A folder of files whose bytes come from anywhere.
    pub fn from_sources(files: Vec<(String, Source)>) -> Self {
        MemoryFolder { files }
    }
}

impl Folder for MemoryFolder {
    fn open(&self, name: &str) -> io::Result<Source> {
        if !is_plain_name(name) {
            return Err(refuse(name));
        }
        let found = self.files.iter().find(|(n, _)| n == name);
        found.map(|(_, s)| s.clone()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.files.iter().map(|(n, _)| n.clone()).collect())
    }
}

/// The name of the model in a directory: its own name, or for the layouts of the hub's cache
/// (`models--org--name/snapshots/<commit>`) and of ours (`models/org--name`) the name in there.
#[cfg(feature = "fs")]
pub(super) fn model_name(folder: &Path) -> String {
    let names = folder.components().rev().filter_map(|c| c.as_os_str().to_str());
    let mut own: Option<&str> = None;
    for name in names.take(3) {
        if let Some(cached) = name.strip_prefix("models--") {
            return cached.rsplit("--").next().unwrap_or(cached).to_owned();
        }
        if let ("models", Some((_, cached))) = (name, own.and_then(|own| own.split_once("--"))) {
            return cached.to_owned();
        }
        own = own.or(Some(name));
    }
    own.unwrap_or("model").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_out_are_refused() {
        let folder = MemoryFolder::new(vec![("a/b.bin".into(), vec![1])]);
        assert!(folder.open("a/b.bin").is_ok());
        for name in ["/etc/passwd", "a/../../x"] {
            let error = folder.open(name).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name:?}");
            #[cfg(feature = "fs")]
            assert!(RealFolder::new(Path::new("/tmp"), Access::Mapped).open(name).is_err());
        }
    }

    #[test]
    #[cfg(feature = "fs")]
    fn cached_models_are_named_after_the_model() {
        let name = |p: &str| model_name(Path::new(p));
        assert_eq!(name("/x/models--org--mini/snapshots/abc"), "mini");
        assert_eq!(name("/x/models/org--mini"), "mini");
        assert_eq!(name("/x/models/mini"), "mini");
        assert_eq!(name("/x/org--mini"), "org--mini");
        assert_eq!(name("/x/all-MiniLM-L6-v2"), "all-MiniLM-L6-v2");
    }
}
