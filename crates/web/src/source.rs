//! Files that JavaScript reads: ranges of a Blob, of a file that Node has open, of what a server has.
//! It keeps them under numbers, so that nothing of it has to be held here.

use serde::Deserialize;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use wasm_bindgen::prelude::*;
use weighbridge::Input;
use weighbridge::source::{Folder, ReadRange, Source, name_problem};

#[wasm_bindgen(raw_module = "../source.js")]
extern "C" {
    /// Fills the front of `out` with the bytes of a source from `offset` on, and says how many.
    #[wasm_bindgen(catch, js_name = readSource)]
    fn read_source(id: u32, offset: f64, out: &mut [u8]) -> Result<usize, JsValue>;

    /// How many bytes a source has.
    #[wasm_bindgen(catch, js_name = sourceSize)]
    fn source_size(id: u32) -> Result<f64, JsValue>;

    /// Opens a file of a folder, and says its number; none if there is no such file.
    #[wasm_bindgen(catch, js_name = openBeside)]
    fn open_beside(folder: u32, name: &str) -> Result<Option<u32>, JsValue>;

    /// The names of all files in a folder.
    #[wasm_bindgen(catch, js_name = listFolder)]
    fn list_folder(folder: u32) -> Result<Vec<String>, JsValue>;
}

/// What there is to open.
#[derive(Debug, Deserialize)]
pub(crate) struct Described {
    name: String,
    path: String,
    /// The file; none for a folder.
    source: Option<u32>,
    /// The folder, or the one around the file.
    folder: u32,
}

impl Described {
    pub(crate) fn into_input(self) -> Result<Input, weighbridge::Error> {
        let path = std::path::Path::new(&self.path);
        let source = match self.source {
            Some(id) => open(id, &self.path).map_err(|e| weighbridge::Error::io(path, e))?,
            None => Source::from_vec(Vec::new()),
        };
        Ok(Input {
            is_folder: self.source.is_none(),
            folder: Arc::new(Files(self.folder)),
            path: self.path,
            ..Input::from_source(&self.name, source)
        })
    }
}

fn open(id: u32, name: &str) -> io::Result<Source> {
    // Sizes are whole numbers; what is none becomes 0.
    let size = source_size(id).map_err(failed)? as u64;
    Ok(Source::from_ranges(name, File { id, size }))
}

fn failed(error: JsValue) -> io::Error {
    io::Error::other(error.as_string().unwrap_or_else(|| "it can't be read".to_owned()))
}

#[derive(Debug)]
struct File {
    id: u32,
    size: u64,
}

impl ReadRange for File {
    fn len(&self) -> u64 {
        self.size
    }

    #[allow(clippy::cast_precision_loss, reason = "no file has 2^53 bytes")]
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        read_source(self.id, offset as f64, out).map_err(failed)
    }
}

/// The files around one that was opened, or of a folder.
#[derive(Debug)]
struct Files(u32);

impl Folder for Files {
    fn open(&self, name: &str) -> io::Result<Source> {
        if let Some(why) = name_problem(name) {
            let what = format!("{name:?} is not opened: {why}");
            return Err(io::Error::new(ErrorKind::InvalidInput, what));
        }
        match open_beside(self.0, name).map_err(failed)? {
            Some(id) => open(id, name),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = list_folder(self.0).map_err(failed)?;
        names.sort();
        Ok(names)
    }

    fn exists(&self, name: &str) -> bool {
        self.open(name).is_ok()
    }
}
