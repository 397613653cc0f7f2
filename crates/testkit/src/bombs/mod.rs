//! Files that are small and ask for much: one range that thousands of names share, lists that are
//! repeated by name, tables of nothing. Sound or not, no verb may take long or much memory over them.

mod binary;
mod models;
mod words;

use std::path::{Path, PathBuf};

/// A file or folder that asks for more than it has.
#[derive(Clone, Debug)]
pub struct Bomb {
    /// What there is too much of, and in which format; the name of its folder.
    pub name: &'static str,
    /// The files, by relative path.
    pub files: Vec<(String, Vec<u8>)>,
    /// What is opened: one of the files, or the folder itself if it is empty.
    pub open: &'static str,
}

impl Bomb {
    fn file(name: &'static str, open: &'static str, bytes: Vec<u8>) -> Bomb {
        Bomb { name, files: vec![(open.to_owned(), bytes)], open }
    }

    /// Writes it into a folder of its own, and says what to open.
    ///
    /// # Errors
    /// Where files can't be written.
    pub fn write(&self, folder: &Path) -> std::io::Result<PathBuf> {
        let folder = folder.join(self.name);
        for (name, bytes) in &self.files {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap_or(&folder))?;
            std::fs::write(path, bytes)?;
        }
        Ok(if self.open.is_empty() { folder } else { folder.join(self.open) })
    }
}

/// Every bomb, each of about so many bytes.
pub fn bombs(size: usize) -> Vec<Bomb> {
    [binary::bombs(size), models::bombs(size), words::bombs(size)].concat()
}

fn u16s(out: &mut Vec<u8>, values: &[u16]) {
    values.iter().for_each(|v| out.extend(v.to_le_bytes()));
}

fn u32s(out: &mut Vec<u8>, values: &[u32]) {
    values.iter().for_each(|v| out.extend(v.to_le_bytes()));
}

fn u64s(out: &mut Vec<u8>, values: &[u64]) {
    values.iter().for_each(|v| out.extend(v.to_le_bytes()));
}

/// Lengths fit into any type here.
fn narrow(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn pad_to(out: &mut Vec<u8>, alignment: usize) {
    out.resize(out.len().next_multiple_of(alignment), 0);
}
