//! A file system that fails at a chosen operation.

use std::cell::Cell;
use std::io::{self, Write};
use std::path::Path;
use std::rc::Rc;
use weighbridge_format::sink::{FileSystem, OutFile, RealFiles};

/// Does what the real one does until the operation with the given number, which fails. Clean-up
/// after it succeeds again.
#[derive(Debug)]
pub(crate) struct FailingFiles {
    left: Rc<Cell<u64>>,
    failed: Rc<Cell<bool>>,
}

impl FailingFiles {
    /// The operation with this number fails, counted from 0.
    pub(crate) fn at(operation: u64) -> Self {
        FailingFiles { left: Rc::new(Cell::new(operation)), failed: Rc::default() }
    }

    /// Whether an operation was made to fail.
    pub(crate) fn failed(&self) -> bool {
        self.failed.get()
    }

    fn step(&self) -> io::Result<()> {
        step(&self.left, &self.failed)
    }
}

fn step(left: &Cell<u64>, failed: &Cell<bool>) -> io::Result<()> {
    if failed.get() {
        return Ok(());
    }
    if left.get() == 0 {
        failed.set(true);
        return Err(io::Error::other("injected failure"));
    }
    left.set(left.get() - 1);
    Ok(())
}

impl FileSystem for FailingFiles {
    fn create(&self, path: &Path, like: &Path) -> io::Result<Box<dyn OutFile>> {
        self.step()?;
        let file = RealFiles.create(path, like)?;
        Ok(Box::new(FailingFile { file, left: self.left.clone(), failed: self.failed.clone() }))
    }

    fn modify(&self, path: &Path) -> io::Result<Box<dyn OutFile>> {
        self.step()?;
        let file = RealFiles.modify(path)?;
        Ok(Box::new(FailingFile { file, left: self.left.clone(), failed: self.failed.clone() }))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealFiles.link(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step()?;
        RealFiles.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        RealFiles.remove(path)
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        RealFiles.create_folder(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        RealFiles.remove_folder(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.step()?;
        RealFiles.sync_folder(folder)
    }

    fn sync_tree(&self, files: &[&Path], folders: &[&Path]) -> io::Result<()> {
        files.iter().chain(folders).try_for_each(|_| self.step())?;
        RealFiles.sync_tree(files, folders)
    }
}

struct FailingFile {
    file: Box<dyn OutFile>,
    left: Rc<Cell<u64>>,
    failed: Rc<Cell<bool>>,
}

impl Write for FailingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        step(&self.left, &self.failed)?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl OutFile for FailingFile {
    fn sync(&mut self) -> io::Result<()> {
        step(&self.left, &self.failed)?;
        self.file.sync()
    }
}
