//! Replacing files atomically: a temporary file in the same folder, sync, rename, sync of the folder.
//!
//! A failure at any step leaves the old files as they were and no litter. Several files that belong
//! together are all written and synced before the first is renamed, and renames are undone when a
//! later one fails. One process renames at a time, and signals wait until it has renamed all. What
//! was killed is swept by the next who writes to the same place.

use super::beside::{Turn, create_like, folder_of, temporary_beside};
use super::blocks::WholeBlocks;
use super::execute::{Run, execute};
use super::folder::write_folder;
use super::place::Chosen;
use crate::plan::{FilePlan, Piece, Plan};
use crate::source::{Deferred, Unfinished};
use crate::{Error, Progress, Stage};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The file system operations that writing needs; tests put one in between that fails.
pub trait FileSystem {
    /// Creates a new file, as readable as `like` if that is one; it is an error if it exists.
    ///
    /// # Errors
    /// As the system reports them.
    fn create(&self, path: &Path, like: &Path) -> io::Result<Box<dyn OutFile>>;
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
    /// Makes sure that a folder is on the disk with all that is in it: these files, and these folders,
    /// of which the first is the one around all.
    ///
    /// # Errors
    /// As the system reports them.
    fn sync_tree(&self, files: &[&Path], folders: &[&Path]) -> io::Result<()>;
}

/// A file that is being written; it stays open until it has its place.
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
    fn create(&self, path: &Path, like: &Path) -> io::Result<Box<dyn OutFile>> {
        let file = create_like(path, Some(like))?;
        // As long as it is open, it is the file of one who lives. Where there are no locks, what is
        // left of the dead stays.
        let _ = file.try_lock();
        Ok(Box::new(file))
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

    fn sync_tree(&self, files: &[&Path], folders: &[&Path]) -> io::Result<()> {
        // The disk takes a moment for each, however small it is. A sync of everything waits for what
        // others have written, too, so that a few files are synced one by one.
        const MANY: usize = 100;
        if let [root, ..] = folders
            && files.len() + folders.len() >= MANY
            && super::everything::sync(root)?
        {
            return Ok(());
        }
        for file in files {
            File::options().write(true).open(file)?.sync_all()?;
        }
        folders.iter().try_for_each(|folder| self.sync_folder(folder))
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
    progress.begin(Stage::Writing, plan.known_size())?;
    plan.start_damage_check();
    let folder = folder_of(target);
    if plan.is_folder {
        return write_folder(plan, target, folder, files, progress);
    }
    let mut staged = Staged { files, target, list: Vec::new() };
    let places = plan.files.iter().map(|file| Chosen::place(file, target, folder));
    staged.create(plan.files.iter().zip(places).collect())?;
    let mut run = Run::of(plan);
    for (file, stage) in plan.files.iter().zip(&mut staged.list) {
        match &mut stage.out {
            Some(out) => fill(&mut **out, file, &stage.path, &mut run, progress)?,
            None => complete(files, file, stage, &mut run, progress)?,
        }
    }
    plan.check_damage()?;
    staged.commit(folder)
}

/// Writes a planned file and makes sure that it is on the disk.
fn fill(
    out: &mut dyn OutFile,
    file: &FilePlan,
    path: &Path,
    run: &mut Run,
    progress: &mut Progress,
) -> Result<(), Error> {
    pour(out, file, path, run, progress)?;
    out.sync().map_err(|e| Error::io(path, e))
}

/// Writes a planned file.
pub(super) fn pour(
    out: &mut dyn OutFile,
    file: &FilePlan,
    path: &Path,
    run: &mut Run,
    progress: &mut Progress,
) -> Result<(), Error> {
    let mut blocks = WholeBlocks::new(out);
    execute(file, path, &mut blocks, run, progress)?;
    blocks.flush().map_err(|e| Error::io(path, e))
}

/// Writes what is not yet in a file that has the rest of the planned bytes.
fn complete(
    files: &dyn FileSystem,
    file: &FilePlan,
    stage: &StagedFile,
    run: &mut Run,
    progress: &mut Progress,
) -> Result<(), Error> {
    let made = &*stage.temp;
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
    run.add_file(made)?;
    if let Ok(old) = std::fs::metadata(&stage.path) {
        // As readable as the old one was. Not worth failing for.
        let _ = std::fs::set_permissions(made, old.permissions());
    }
    progress.advance(size)
}

struct StagedFile {
    temp: PathBuf,
    path: PathBuf,
    /// What the place was when it was chosen, if another one may have to be taken.
    chosen: Option<Chosen>,
    /// A second name of the old file, kept until everything has succeeded.
    backup: Option<PathBuf>,
    renamed: bool,
    /// Open until the end, and none for a file that somebody else made, who keeps it when something
    /// fails.
    out: Option<Box<dyn OutFile>>,
    unfinished: Option<Unfinished>,
}

/// Where a file goes, and what the place was when it was chosen.
type Placed = (PathBuf, Option<Chosen>);

/// Temporary files; what is still there when it is dropped is removed.
struct Staged<'a> {
    files: &'a dyn FileSystem,
    target: &'a Path,
    list: Vec<StagedFile>,
}

impl Staged<'_> {
    /// Makes the temporary files, after those of the dead are gone.
    fn create(&mut self, planned: Vec<(&FilePlan, Placed)>) -> Result<(), Error> {
        let places: Vec<_> = planned.iter().map(|(_, (path, _))| path.clone()).collect();
        let places: Vec<_> = places.iter().map(|path| &**path).collect();
        let turn = Turn::wait(&places);
        turn.sweep_unfinished(&places);
        for (file, (path, chosen)) in planned {
            let (temp, out, unfinished) = match &file.adopted {
                Some(made) => (made.clone(), None, None),
                None => {
                    let temp = temporary_beside(&path, "part");
                    // Registered before a signal ends the process.
                    let _signals = Deferred::begin();
                    // Nobody knows the file by this name.
                    let out = self.files.create(&temp, &path).map_err(|e| Error::io(&path, e))?;
                    let unfinished = Unfinished::register(&temp);
                    (temp, Some(out), Some(unfinished))
                }
            };
            self.list.push(StagedFile {
                temp,
                path,
                chosen,
                backup: None,
                renamed: false,
                out,
                unfinished,
            });
        }
        Ok(())
    }

    /// The one step in which old files become new ones.
    fn commit(mut self, folder: &Path) -> Result<(), Error> {
        let places: Vec<_> = self.list.iter().map(|stage| stage.path.clone()).collect();
        let places: Vec<_> = places.iter().map(|path| &**path).collect();
        let turn = Turn::wait(&places);
        // Nobody else takes a place now; somebody may have done so while the files were written.
        for stage in &mut self.list {
            if let Some(chosen) = &stage.chosen {
                stage.path = chosen.settle(&stage.path, self.target);
            }
        }
        let signals = Deferred::begin();
        let done = self
            .rename_all()
            .and_then(|()| self.files.sync_folder(folder).map_err(|e| Error::io(folder, e)));
        match &done {
            Ok(()) => turn.sweep_backups(&places),
            Err(_) => self.undo(),
        }
        // In this order: the process may end with the last of them.
        drop(self);
        drop(turn);
        drop(signals);
        done
    }

    fn rename_all(&mut self) -> Result<(), Error> {
        // What somebody else made goes last: if the process is killed in between, he still has it.
        let is_ours = |stage: &&mut StagedFile| stage.out.is_some();
        let (ours, others): (Vec<_>, Vec<_>) = self.list.iter_mut().partition(is_ours);
        for stage in ours.into_iter().chain(others) {
            // The old file stays in its place until the rename replaces it in one step. A file
            // system without hard links has no way back from a failed sync, which is no reason not
            // to write. A signal leaves the backup alone, and so does a kill.
            let backup = temporary_beside(&stage.path, "old");
            if self.files.link(&stage.path, &backup).is_ok() {
                stage.backup = Some(backup);
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
            let away = match stage.out {
                Some(_) => Ok(()),
                None => self.files.rename(&stage.path, &stage.temp),
            };
            let _ = away.and_then(|()| match stage.backup.take() {
                Some(backup) => self.files.rename(&backup, &stage.path),
                None if stage.out.is_some() => self.files.remove(&stage.path),
                None => Ok(()),
            });
        }
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        for stage in &mut self.list {
            if !stage.renamed && stage.unfinished.is_some() {
                let _ = self.files.remove(&stage.temp);
            }
            if let Some(backup) = &stage.backup {
                let _ = self.files.remove(backup);
            }
        }
    }
}
