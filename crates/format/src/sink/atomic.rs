//! Replacing files atomically: a temporary file in the same folder, sync, rename, sync of the folder.
//!
//! A failure at any step leaves the old files as they were and no litter. Several files that belong
//! together are all written and synced before the first is renamed, and renames are undone when a
//! later one fails.

use super::blocks::WholeBlocks;
use super::execute::execute;
use super::folder::write_folder;
use crate::plan::{FilePlan, Piece, Plan};
use crate::source::Unfinished;
use crate::{Error, Progress, Stage};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The file system operations that writing needs; tests put one in between that fails.
pub trait FileSystem {
    /// Creates a new file; it is an error if it exists.
    ///
    /// # Errors
    /// As the system reports them.
    fn create(&self, path: &Path) -> io::Result<Box<dyn OutFile>>;
    /// Opens an existing file to write over its beginning.
    ///
    /// # Errors
    /// As the system reports them.
    fn modify(&self, path: &Path) -> io::Result<Box<dyn OutFile>>;
    /// Gives a file a second name.
    ///
    /// # Errors
    /// As the system reports them.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file another name, in the place of what had it.
    ///
    /// # Errors
    /// As the system reports them.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// As the system reports them.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes a new folder; it is an error if it exists.
    ///
    /// # Errors
    /// As the system reports them.
    fn create_folder(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty folder.
    ///
    /// # Errors
    /// As the system reports them.
    fn remove_folder(&self, path: &Path) -> io::Result<()>;
    /// Makes sure that the names in a folder are on the disk.
    ///
    /// # Errors
    /// As the system reports them.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
}

/// A file that is being written.
pub trait OutFile: Write {
    /// Makes sure that its bytes are on the disk.
    ///
    /// # Errors
    /// As the system reports them.
    fn sync(&mut self) -> io::Result<()>;
}

/// The real file system.
#[derive(Clone, Copy, Debug)]
pub struct RealFiles;

impl FileSystem for RealFiles {
    fn create(&self, path: &Path) -> io::Result<Box<dyn OutFile>> {
        Ok(Box::new(File::options().write(true).create_new(true).open(path)?))
    }

    fn modify(&self, path: &Path) -> io::Result<Box<dyn OutFile>> {
        Ok(Box::new(File::options().write(true).open(path)?))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::hard_link(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_dir(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        // Only Unix can open a folder to sync it.
        if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
    }
}

impl OutFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

/// Writes all files of a plan, the main one to `target`; a planned folder as `target`, which must
/// not exist unless it is empty. Nothing is asked: see [`Plan::write`].
///
/// # Errors
/// Failures of reading and writing, and [`Error::Cancelled`].
pub fn write(
    plan: &Plan,
    target: &Path,
    files: &dyn FileSystem,
    progress: &mut Progress,
) -> Result<(), Error> {
    progress.begin(Stage::Writing, plan.size())?;
    plan.start_damage_check();
    let folder = target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if plan.is_folder {
        return write_folder(plan, target, folder, files, progress);
    }
    let mut staged = Staged { files, list: Vec::new() };
    for file in &plan.files {
        let path = file.beside.as_ref().map_or_else(|| target.to_owned(), |name| folder.join(name));
        let (temp, unfinished, out) = match &file.adopted {
            // Whoever made it keeps it when something fails.
            Some(made) => (made.clone(), None, None),
            None => {
                let temp = temporary_beside(&path, "part");
                // Nobody knows the file by this name.
                let out = files.create(&temp).map_err(|e| Error::io(&path, e))?;
                let unfinished = Unfinished::register(&temp);
                (temp, Some(unfinished), Some(out))
            }
        };
        staged.list.push(StagedFile { temp, path, backup: None, renamed: false, unfinished });
        let stage = &staged.list[staged.list.len() - 1];
        match out {
            Some(mut out) => fill(&mut *out, file, &stage.path, progress)?,
            None => complete(files, file, &stage.temp, progress)?,
        }
        if let Ok(old) = std::fs::metadata(&stage.path) {
            // The new file is as readable as the old one was. Not worth failing for.
            let _ = std::fs::set_permissions(&stage.temp, old.permissions());
        }
    }
    plan.check_damage()?;
    staged.commit(folder)
}

/// Writes a planned file and makes sure that it is on the disk.
pub(super) fn fill(
    out: &mut dyn OutFile,
    file: &FilePlan,
    path: &Path,
    progress: &mut Progress,
) -> Result<(), Error> {
    let mut blocks = WholeBlocks::new(&mut *out);
    execute(file, path, &mut blocks, progress)?;
    blocks.flush().map_err(|e| Error::io(path, e))?;
    out.sync().map_err(|e| Error::io(path, e))
}

/// Writes what is not yet in a file that has the rest of the planned bytes.
fn complete(
    files: &dyn FileSystem,
    file: &FilePlan,
    made: &Path,
    progress: &mut Progress,
) -> Result<(), Error> {
    let io = |e| Error::io(made, e);
    let size = std::fs::metadata(made).map_err(io)?.len();
    if size != file.size {
        let what = format!("{size} bytes where {} were planned", file.size);
        return Err(io(io::Error::new(io::ErrorKind::InvalidData, what)));
    }
    let mut out = files.modify(made).map_err(io)?;
    if let Some(Piece::Bytes(front)) = file.pieces.first() {
        out.write_all(front).map_err(io)?;
    }
    out.sync().map_err(io)?;
    progress.advance(size)
}

struct StagedFile {
    temp: PathBuf,
    path: PathBuf,
    /// A second name of the old file, kept until everything has succeeded.
    backup: Option<(PathBuf, Unfinished)>,
    renamed: bool,
    /// Held until the end, of files that are removed when something fails.
    unfinished: Option<Unfinished>,
}

/// Temporary files; what is still there when it is dropped is removed.
struct Staged<'a> {
    files: &'a dyn FileSystem,
    list: Vec<StagedFile>,
}

impl Staged<'_> {
    fn commit(mut self, folder: &Path) -> Result<(), Error> {
        let done = self
            .rename_all()
            .and_then(|()| self.files.sync_folder(folder).map_err(|e| Error::io(folder, e)));
        if done.is_err() {
            self.undo();
        }
        done
    }

    fn rename_all(&mut self) -> Result<(), Error> {
        for stage in &mut self.list {
            // The old file stays in its place until the rename replaces it in one step. A file
            // system without hard links has no way back from a failed sync, which is no reason not
            // to write.
            let backup = temporary_beside(&stage.path, "old");
            if self.files.link(&stage.path, &backup).is_ok() {
                let unfinished = Unfinished::register(&backup);
                stage.backup = Some((backup, unfinished));
            }
            let renamed = self.files.rename(&stage.temp, &stage.path);
            renamed.map_err(|e| Error::io(&stage.path, e))?;
            stage.renamed = true;
        }
        Ok(())
    }

    /// Puts the old files back. Errors here have no better place than the one already returned.
    fn undo(&mut self) {
        for stage in self.list.iter_mut().filter(|s| s.renamed) {
            let _ = match stage.backup.take() {
                Some((backup, _)) => self.files.rename(&backup, &stage.path),
                None => self.files.remove(&stage.path),
            };
        }
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        for stage in &self.list {
            if !stage.renamed && stage.unfinished.is_some() {
                let _ = self.files.remove(&stage.temp);
            }
            if let Some((backup, _)) = &stage.backup {
                let _ = self.files.remove(backup);
            }
        }
    }
}

/// A name in the same folder that nothing else uses.
pub(super) fn temporary_beside(path: &Path, kind: &str) -> PathBuf {
    static COUNTER: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let number = COUNTER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}-{number}.{kind}", std::process::id()))
}
