//! Rows like those people search, made from numbers and written by the program.

use crate::files::Files;
use crate::process;
use crate::wordfile::{Random, word};
use crate::{Outcome, search::MILLION};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// For batches; single queries take one after the other.
pub const QUERIES: usize = 2048;
const CENTRES: usize = 2000;

/// Rows in a file, and what is asked of them.
pub struct Set {
    pub name: &'static str,
    pub kind: &'static str,
    pub rows: usize,
    pub dim: usize,
    file: &'static str,
    /// Bytes of a value.
    width: usize,
}

pub const SETS: [Set; 4] = [
    Set::new("50,000 x 512 int8", "int8", 50_000, 512, "small/embeddings.i8bin", 1),
    Set::new("1,000,000 x 384 int8", "int8", MILLION, 384, "int8/embeddings.i8bin", 1),
    Set::new("1,000,000 x 384 f16", "f16", MILLION, 384, "f16/rows.npy", 2),
    Set::new("1,000,000 x 384 f32", "f32", MILLION, 384, "f32/embeddings.f32bin", 4),
];

impl Set {
    const fn new(
        name: &'static str,
        kind: &'static str,
        rows: usize,
        dim: usize,
        file: &'static str,
        width: usize,
    ) -> Set {
        Set { name, kind, rows, dim, file, width }
    }

    pub fn bytes(&self) -> usize {
        self.rows * self.dim * self.width
    }

    pub fn path(&self, folder: &Path) -> PathBuf {
        folder.join(self.file)
    }

    pub fn queries_path(&self, folder: &Path) -> PathBuf {
        folder.join(format!("queries-{}.f32", self.dim))
    }

    pub fn queries(&self, folder: &Path) -> Outcome<Vec<f32>> {
        let bytes = std::fs::read(self.queries_path(folder))?;
        Ok(bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect())
    }

    /// How many batches of this size are measured, and how many in a turn; none if this is not.
    pub fn rounds(&self, batch: usize) -> (usize, usize) {
        match (batch, self.rows) {
            (1, MILLION) => (12, 1),
            (1, _) => (12, 5),
            (64, MILLION) => (4, 1),
            (64, _) => (10, 1),
            (_, MILLION) if self.kind != "f16" => (2, 1),
            _ => (0, 0),
        }
    }
}

/// Makes the files, once: that takes a while.
pub fn prepare(files: &Files) -> Outcome<PathBuf> {
    let folder = files.work.join("search");
    // It is written last.
    let stamp = folder.join("made");
    if stamp.exists() {
        return Ok(folder);
    }
    for set in &SETS {
        std::fs::create_dir_all(set.path(&folder).parent().ok_or("it lies in a folder")?)?;
    }
    let convert = |from: &Path, to: &Path, more: &[&OsStr]| {
        let fixed = ["convert", "--force", "--allow-loss"].map(OsStr::new);
        let paths = [from.as_os_str(), to.as_os_str()];
        process::run(&files.program, &[&fixed, more, &paths].concat())
    };
    let [small, int8, f16, f32] = &SETS;
    let rows = folder.join("rows.npy");
    write_rows(&rows, small, &folder)?;
    convert(&rows, &small.path(&folder), &[])?;
    write_rows(&rows, f32, &folder)?;
    convert(&rows, &f32.path(&folder), &[])?;
    convert(&rows, &f16.path(&folder), &["--dtype".as_ref(), "f16".as_ref()])?;
    let records = folder.join("records.jsonl");
    write_texts(&records, int8.rows)?;
    convert(&rows, &int8.path(&folder), &["--records".as_ref(), records.as_os_str()])?;
    std::fs::remove_file(rows)?;
    std::fs::remove_file(records)?;
    std::fs::write(stamp, "")?;
    Ok(folder)
}

/// An index of 50,000 texts and the model that it was made with. 2,000 are embedded, and each row is
/// there 25 times.
pub fn prepare_notes(files: &Files, folder: &Path) -> Outcome<(PathBuf, PathBuf)> {
    let model = folder.join("minilm-q8.mcf");
    let (few, notes) = (folder.join("few"), folder.join("notes"));
    std::fs::create_dir_all(&few)?;
    std::fs::create_dir_all(&notes)?;
    let method = ["quantize", "--force", "--method", "q8", "--no-calibrate"].map(OsStr::new);
    let paths = [files.model_folder.as_os_str(), model.as_os_str()];
    process::run(&files.program, &[&method[..], &paths].concat())?;
    let texts = few.join("texts.jsonl");
    write_texts(&texts, 2000)?;
    let (from, to) = (few.join("notes.i8bin"), notes.join("notes.i8bin"));
    let options = ["embed", "--force", "--precision", "q8", "--field", "text"].map(OsStr::new);
    let named = ["-m".as_ref(), model.as_os_str(), "-i".as_ref(), texts.as_os_str()];
    let output = ["-o".as_ref(), from.as_os_str()];
    process::run(&files.program, &[&options[..], &named, &output].concat())?;
    std::fs::write(&to, std::fs::read(&from)?.repeat(25))?;
    let mut meta: Value = serde_json::from_slice(&std::fs::read(few.join("meta.json"))?)?;
    let records = meta["records"].as_array().ok_or("rows have records")?;
    let records = vec![records.clone(); 25].concat();
    meta["shape"][0] = records.len().into();
    meta["records"] = records.into();
    // It was that of fewer rows.
    meta.as_object_mut().ok_or("it is an object")?.remove("checksum");
    std::fs::write(notes.join("meta.json"), serde_json::to_vec(&meta)?)?;
    Ok((model, to))
}

/// Short texts as JSON lines.
fn write_texts(path: &Path, count: usize) -> Outcome<()> {
    let mut random = Random(9);
    let mut out = BufWriter::new(File::create(path)?);
    for _ in 0..count {
        let words: Vec<_> = (0..4 + random.below(5)).map(|_| word(random.below(20_000))).collect();
        writeln!(out, "{{\"text\": \"{}\"}}", words.join(" "))?;
    }
    Ok(out.flush()?)
}

/// Unit vectors around centres, as npy, and queries around the same centres.
fn write_rows(path: &Path, set: &Set, folder: &Path) -> Outcome<()> {
    let mut random = Random(7);
    let dim = set.dim;
    let centres: Vec<f32> = (0..CENTRES * dim).map(|_| random.normal()).collect();
    let mut vector = vec![0.0f32; dim];
    let mut write = |out: &mut dyn Write, count: usize| -> Outcome<()> {
        let mut bytes = Vec::new();
        for _ in 0..count {
            let centre = &centres[random.below(CENTRES) * dim..][..dim];
            for (value, centre) in vector.iter_mut().zip(centre) {
                *value = 0.6 * centre + 0.8 * random.normal();
            }
            let length = vector.iter().map(|v| v * v).sum::<f32>().sqrt();
            bytes.clear();
            bytes.extend(vector.iter().flat_map(|v| (v / length).to_le_bytes()));
            out.write_all(&bytes)?;
        }
        Ok(())
    };
    let shape = format!("({}, {dim})", set.rows);
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    out.write_all(b"\x93NUMPY\x01\x00\x76\x00")?;
    writeln!(out, "{header:<117}")?;
    write(&mut out, set.rows)?;
    out.flush()?;
    let mut out = BufWriter::new(File::create(set.queries_path(folder))?);
    write(&mut out, QUERIES)?;
    Ok(out.flush()?)
}
