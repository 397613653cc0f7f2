//! The files beside a file: shards, `meta.json`, a model directory.

#[cfg(feature = "fs")]
use super::Access;
#[cfg(feature = "fs")]
use super::is_plain_name;
use super::{Source, name_problem};
use std::fmt::Debug;
use std::io;
#[cfg(feature = "fs")]
use std::path::{Path, PathBuf};

/// A folder that files can be opened in by relative name. Names come from files, so they are hostile:
/// one that is no [plain name](is_plain_name) is refused, and so is a link that leads out of the
/// folder.
pub trait Folder: Debug + Send + Sync {
    /// Opens a file by its relative name.
    ///
    /// # Errors
    /// If there is none, it can't be read, or the name or a link leads out of the folder.
    fn open(&self, name: &str) -> io::Result<Source>;

    /// All files, as relative paths with `/`, sorted; folders within are entered, but for those with
    /// dot names, which are listed themselves, with a `/` behind.
    ///
    /// # Errors
    /// If the folder can't be read, or has more than a model directory would have.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Whether there is a file of this name.
    fn exists(&self, name: &str) -> bool {
        self.list().is_ok_and(|names| names.iter().any(|n| n == name))
    }
}

/// An error if a name is not that of a file in the folder.
fn check(name: &str) -> io::Result<()> {
    match name_problem(name) {
        None => Ok(()),
        Some(why) => Err(invalid(format!("{name:?} is not opened: {why}"))),
    }
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// A folder of the file system.
#[cfg(feature = "fs")]
#[derive(Debug)]
pub struct RealFolder {
    path: PathBuf,
    access: Access,
    /// The file in it that was asked for, which may be a link itself.
    file: Option<PathBuf>,
}

#[cfg(feature = "fs")]
impl RealFolder {
    /// Folders deeper than this are no model's.
    const DEPTH: usize = 16;
    /// More files than this are no model directory.
    const MOST: usize = 10_000;
    /// Files of so many bytes are read at once where nothing is mapped.
    const SMALL: u64 = 1 << 20;

    /// The folder at a path, which may be a link.
    pub fn new(path: &Path, access: Access) -> Self {
        RealFolder { path: path.to_owned(), access, file: None }
    }

    /// The folder around a file. Where that is a link, files beside what it leads to are in reach too.
    pub(super) fn around(file: &Path, access: Access) -> Self {
        let parent = file.parent().filter(|p| !p.as_os_str().is_empty());
        let file = Some(file.to_owned()).filter(|f| f.is_symlink());
        RealFolder { file, ..RealFolder::new(parent.unwrap_or(Path::new(".")), access) }
    }

    /// Where a file really is. Links may lead to other places in the folder, and in the hub's cache
    /// from a snapshot to the blobs of its model; anywhere else a folder of somebody else could have
    /// any file of this machine read.
    fn resolve(&self, name: &str) -> io::Result<PathBuf> {
        check(name)?;
        let path = self.path.join(name).canonicalize()?;
        let folder = self.path.canonicalize()?;
        if path.starts_with(&folder) || blobs(&folder).is_some_and(|b| path.starts_with(b)) {
            return Ok(path);
        }
        let beside =
            self.file.as_ref().and_then(|f| Some(f.canonicalize().ok()?.parent()?.to_owned()));
        match beside.filter(|beside| path.starts_with(beside)) {
            Some(_) => Ok(path),
            None => {
                let what = format!("{name} leads out of the folder, to {}", path.display());
                Err(io::Error::new(io::ErrorKind::PermissionDenied, what))
            }
        }
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
            let own = entry.file_name().to_string_lossy().into_owned();
            let name = format!("{prefix}{own}");
            let is_folder = entry.file_type()?.is_dir();
            if out.len() >= Self::MOST || depth > Self::DEPTH {
                let what = "too many files or folders for a model directory";
                return Err(io::Error::other(what));
            }
            if !is_folder {
                out.push(name);
            } else if own.starts_with('.') {
                // What tools keep beside the files they fetched.
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
        // Waiting at a pipe that lies in a folder would be waiting for ever.
        let path = self.resolve(name)?;
        let meta = std::fs::metadata(&path)?;
        if meta.is_file() && self.access == Access::Reads && meta.len() <= Self::SMALL {
            // A folder may have more of them than a process may keep open.
            std::fs::read(&path).map(Source::from_vec)
        } else if meta.is_file() {
            Source::open(&path, self.access)
        } else {
            Err(invalid(format!("{name:?} is not a regular file")))
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
        check(name)?;
        let found = self.files.iter().find(|(n, _)| n == name);
        found.map(|(_, s)| s.clone()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.files.iter().map(|(n, _)| n.clone()).collect())
    }
}

/// Where the hub's cache has the files of a snapshot: `models--org--name/snapshots/<commit>` is full of
/// links to `models--org--name/blobs`.
#[cfg(feature = "fs")]
fn blobs(folder: &Path) -> Option<PathBuf> {
    let snapshots = folder.parent().filter(|p| p.ends_with("snapshots"))?;
    let model = snapshots.parent()?;
    let is_model = model.file_name()?.to_str()?.starts_with("models--");
    is_model.then(|| model.join("blobs"))
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
    #[cfg(all(feature = "fs", unix))]
    fn links_that_lead_out_are_not_followed() {
        use std::os::unix::fs::symlink;
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let put = |name: &str| {
            std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            std::fs::write(at(name), name).unwrap();
        };
        let cached = "hub/models--org--m/snapshots/abc";
        for name in
            ["secret", "elsewhere/config.json", "model/sub/real", "hub/models--org--m/blobs/1"]
        {
            put(name);
        }
        put("hub/models--org--other/blobs/2");
        std::fs::create_dir_all(at(cached)).unwrap();
        let link = |to: &str, name: &str| symlink(to, at(name)).unwrap();
        link("../secret", "model/out");
        link(at("secret").to_str().unwrap(), "model/absolute");
        link("out", "model/chain");
        link("../elsewhere", "model/1_Pooling");
        link("sub/real", "model/inside");
        link("sub", "model/2_Inside");
        link("../model/sub/real", "model/round");
        link("/dev/zero", "model/zero");
        link("model", "linked");
        link("../../blobs/1", &format!("{cached}/config.json"));
        link("../../../models--org--other/blobs/2", &format!("{cached}/other"));
        for root in ["model", "linked"] {
            for access in [Access::Mapped, Access::Reads] {
                let folder = RealFolder::new(&at(root), access);
                for name in ["out", "absolute", "chain", "1_Pooling/config.json", "zero"] {
                    let error = folder.open(name).unwrap_err();
                    assert!(error.to_string().contains("leads out of the folder"), "{error}");
                }
                for name in ["inside", "2_Inside/real", "round", "sub/real"] {
                    assert_eq!(folder.open(name).unwrap().head().unwrap(), b"model/sub/real");
                }
            }
        }
        let folder = RealFolder::new(&at(cached), Access::Mapped);
        assert!(folder.open("config.json").is_ok());
        assert!(folder.open("other").is_err());
        // A file that was asked for through a link, with what belongs to it beside the link.
        link("../elsewhere/config.json", "model/file");
        link("../elsewhere/config.json", "model/meta.json");
        let file = at("model/file");
        assert!(RealFolder::around(&file, Access::Mapped).open("meta.json").is_ok());
        assert!(RealFolder::around(&file, Access::Mapped).open("out").is_err());
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
