//! The files that are measured: a real model, and synthetic ones.

use crate::{Outcome, process};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

pub struct Files {
    /// The program `weighbridge`.
    pub program: PathBuf,
    /// The shared library of ggml.
    pub ggml: PathBuf,
    /// Python with the packages that are peers.
    pub python: PathBuf,
    /// Python with the peers of the section encode.
    pub encode_python: PathBuf,
    /// The program of the peers in Rust, candle and rten.
    pub encoders: PathBuf,
    /// Python with the peers of the section search.
    pub search_python: PathBuf,
    pub work: PathBuf,
    pub model_folder: PathBuf,
    /// The model's safetensors file.
    pub model: PathBuf,
    /// The model directory as EMBD, with its vocabulary.
    pub model_embd: PathBuf,
    /// The safetensors file alone as EMBD: what it holds and no more.
    pub model_embd_bare: PathBuf,
    /// The EMBD file as safetensors, which carries the vocabulary then.
    pub model_carried: PathBuf,
    /// 10,000 small tensors.
    pub many: PathBuf,
    pub many_embd: PathBuf,
}

impl Files {
    pub fn prepare(paths: [&Path; 8]) -> Outcome<Files> {
        let [program, model, work, ggml, python, encode_python, encoders, search_python] = paths;
        std::fs::create_dir_all(work)?;
        let files = Files {
            program: program.to_owned(),
            ggml: ggml.to_owned(),
            python: python.to_owned(),
            encode_python: encode_python.to_owned(),
            encoders: encoders.to_owned(),
            search_python: search_python.to_owned(),
            work: work.to_owned(),
            model_folder: model.to_owned(),
            model: model.join("model.safetensors"),
            model_embd: work.join("minilm.weights"),
            model_embd_bare: work.join("minilm-bare.weights"),
            model_carried: work.join("minilm-carried.safetensors"),
            many: work.join("many.safetensors"),
            many_embd: work.join("many.weights"),
        };
        // Made anew each time: they are to be what the program writes today.
        files.make_embd()?;
        files.convert(&files.model, &files.model_embd_bare)?;
        files.convert(&files.model_embd, &files.model_carried)?;
        write_safetensors(&files.many, 10_000, 64)?;
        files.convert(&files.many, &files.many_embd)?;
        Ok(files)
    }

    /// Writes the model as EMBD.
    pub fn make_embd(&self) -> Outcome<()> {
        self.convert(&self.model_folder, &self.model_embd)
    }

    /// 1 GiB of tensors of 16 MiB, as safetensors and as EMBD.
    pub fn make_big(&self) -> Outcome<(PathBuf, PathBuf)> {
        let (big, embd) = (self.work.join("big.safetensors"), self.work.join("big.weights"));
        write_safetensors(&big, 64, 4 << 20)?;
        self.convert(&big, &embd)?;
        Ok((big, embd))
    }

    fn convert(&self, from: &Path, to: &Path) -> Outcome<()> {
        let args = ["convert".as_ref(), "--force".as_ref(), from.as_os_str(), to.as_os_str()];
        process::run(&self.program, &args)
    }
}

/// Streams a safetensors file of `count` f32 tensors with `length` values each.
fn write_safetensors(path: &Path, count: usize, length: usize) -> Outcome<()> {
    let size = length * 4;
    let entries: Vec<_> = (0..count)
        .map(|i| {
            format!(
                r#""layers.{}.block.{}.weight":{{"dtype":"F32","shape":[{length}],"data_offsets":[{},{}]}}"#,
                i / 16,
                i % 16,
                i * size,
                (i + 1) * size
            )
        })
        .collect();
    let mut header = format!("{{{}}}", entries.join(","));
    header.push_str(&" ".repeat(header.len().next_multiple_of(8) - header.len()));
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    let mut state = 1u32;
    for _ in 0..count * length {
        // Any numbers between 0 and 1 that do not repeat.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let value = (state >> 8) as f32 / (1 << 24) as f32;
        out.write_all(&value.to_le_bytes())?;
    }
    out.into_inner()?.sync_all()?;
    Ok(())
}
