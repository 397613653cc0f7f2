//! Rows of earlier files, for texts that are the same.

use super::known::{HASH_BYTES, TextHash};
use super::made_with::MadeWith;
use super::manifest::Manifest;
use std::path::{Path, PathBuf};
use weighbridge_codec::DType;
use weighbridge_format::model::{MATRIX, Records};
use weighbridge_format::source::{Access, Source};
use weighbridge_format::wire::to_len;
use weighbridge_format::{Advice, Encoding, Error, Progress, Tensor, View};

/// Files of vectors with the hashes of their texts. Their rows are numbered through.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    files: Vec<EarlierFile>,
}

/// The rows of a file with the hashes of their texts.
#[derive(Debug)]
pub(super) struct EarlierFile {
    /// The number of its first row.
    first: u64,
    rows: u64,
    pub(super) tensor: Tensor,
    hashes: View,
    pub(super) records: Option<Records>,
}

impl Earlier {
    /// Opens files whose rows are those that would be made now, and can be stored in this encoding.
    pub(super) fn open(
        paths: &[PathBuf],
        made_with: &MadeWith,
        encoding: &Encoding,
        progress: &mut Progress,
    ) -> Result<Earlier, Error> {
        let mut earlier = Earlier::default();
        for path in paths {
            let manifest = Manifest::of(path)?;
            let refused = |what: String, advice: &'static str| {
                Err(Error::refused_file(path, &format!("can't be reused: {what}"), advice))
            };
            if let Some(difference) = manifest.made_with.difference(made_with) {
                return refused(format!("it was made with {difference}"), "use the same settings");
            }
            let mut file = EarlierFile::open(path, &manifest, progress)?;
            if !file.can_become(encoding) {
                let (from, to) = (file.tensor.encoding.name(), encoding.name());
                let what = format!("its rows are stored as {from}, of which none come as {to}");
                return refused(what, "files of f32 can be reused for any other");
            }
            file.first = earlier.rows();
            earlier.files.push(file);
        }
        Ok(earlier)
    }

    /// The same with the file that is going to be replaced, if it is whole and has such rows.
    pub(super) fn with_own(
        mut self,
        path: &Path,
        made_with: &MadeWith,
        encoding: &Encoding,
    ) -> Earlier {
        let own = [path.to_owned()];
        if let Ok(mut own) = Earlier::open(&own, made_with, encoding, &mut Progress::none()) {
            own.files.iter_mut().for_each(|file| file.first = self.rows());
            self.files.append(&mut own.files);
        }
        self
    }

    /// How many rows there are.
    pub(super) fn rows(&self) -> u64 {
        self.files.last().map_or(0, |file| file.first + file.rows)
    }

    /// Passes the hash of every row with its number.
    pub(super) fn for_each_hash(
        &self,
        mut each: impl FnMut(u64, &TextHash) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for file in &self.files {
            let mut row = file.first;
            file.hashes.for_each_block((HASH_BYTES << 12) as u64, |block| {
                for hash in block.as_chunks::<HASH_BYTES>().0 {
                    each(row, hash)?;
                    row += 1;
                }
                Ok::<_, Error>(())
            })?;
        }
        Ok(())
    }

    /// The hash of a row.
    pub(super) fn hash(&self, number: u64) -> Result<TextHash, Error> {
        let (file, row) = self.file_of(number)?;
        file.hash(row)
    }

    /// The file that has a row, and the row's number there.
    pub(super) fn file_of(&self, number: u64) -> Result<(&EarlierFile, u64), Error> {
        let at = self.files.partition_point(|file| file.first <= number);
        let file = at.checked_sub(1).and_then(|at| self.files.get(at));
        let found = file.map(|file| (file, number - file.first));
        found
            .filter(|(file, row)| *row < file.rows)
            .ok_or_else(|| Error::refused(format!("there is no earlier row {number}"), ""))
    }
}

impl EarlierFile {
    /// Opens a file that is what its manifest says.
    pub(super) fn open(
        path: &Path,
        manifest: &Manifest,
        progress: &mut Progress,
    ) -> Result<EarlierFile, Error> {
        let dim = manifest.made_with.dimensions as u64;
        manifest.check_files(path, progress)?;
        if manifest.rows == 0 {
            // Some formats say nothing that could be opened then.
            let (shape, none) = (vec![0, dim], Vec::new());
            let (hashes, values) = (View::owned(Vec::new()), View::owned(none));
            let tensor = Tensor::stored(MATRIX, Encoding::Plain(DType::F32), shape, values)?;
            return Ok(EarlierFile { first: 0, rows: 0, tensor, hashes, records: None });
        }
        let container = crate::open(path)?;
        let hashes = Manifest::hashes_for(path);
        let source = Source::open(&hashes, Access::Mapped).map_err(|e| Error::io(&hashes, e))?;
        let (rows, bytes) = (manifest.rows, source.len());
        let [tensor] = container.tensors.as_slice() else {
            return Err(senseless(path, "it does not hold one matrix"));
        };
        if tensor.shape != [rows, dim] {
            let what = format!("{rows} rows of {dim} values, and it has {:?}", tensor.shape);
            return Err(senseless(path, &what));
        }
        let hashes = source.view(0..bytes).filter(|_| Some(bytes) == rows.checked_mul(16));
        let hashes = hashes.ok_or_else(|| senseless(path, "a hash for each row is missing"))?;
        let (tensor, records) = (tensor.clone(), container.records.clone());
        Ok(EarlierFile { first: 0, rows, tensor, hashes, records })
    }

    /// Whether rows can be stored in an encoding as they would be if they had been computed.
    pub(super) fn can_become(&self, encoding: &Encoding) -> bool {
        self.tensor.encoding == *encoding || self.tensor.encoding == Encoding::Plain(DType::F32)
    }

    pub(super) fn hash(&self, row: u64) -> Result<TextHash, Error> {
        let start = row * HASH_BYTES as u64;
        let mut buffer = Vec::new();
        let bytes = self.hashes.read(start..start + HASH_BYTES as u64, &mut buffer)?;
        let mut hash = TextHash::default();
        hash.copy_from_slice(bytes);
        Ok(hash)
    }

    /// The values of a row.
    pub(super) fn values(&self, row: u64) -> Result<Vec<f32>, Error> {
        let dim = self.tensor.shape.last().copied().map_or(0, to_len);
        let mut values = vec![0.0; dim];
        self.tensor.rows_f32(row, &mut values, &mut Vec::new())?;
        Ok(values)
    }
}

fn senseless(path: &Path, what: &str) -> Error {
    let what = format!("is not what its manifest says: {what}");
    Error::refused_file(path, &what, Advice::from("it was changed since; make it anew"))
}
