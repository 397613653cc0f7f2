//! Word vectors like those people have, made from numbers: 400,000 words with 300 values.

use crate::Outcome;
use crate::files::Files;
use crate::python::Python;
use finalfusion::io::WriteEmbeddings;
use finalfusion::prelude::*;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

pub const WORDS: usize = 400_000;
pub const DIM: usize = 300;

/// The same words and vectors in the files of all sides.
pub struct WordFiles {
    pub word2vec: PathBuf,
    /// Written by the crate `finalfusion`. It has unit vectors, and their lengths beside them.
    pub finalfusion: PathBuf,
    pub gensim: PathBuf,
    /// All words in an order without any order, one a line.
    pub shuffled: PathBuf,
}

impl WordFiles {
    /// They are made once and kept, because that takes a while.
    pub fn prepare(files: &Files) -> Outcome<WordFiles> {
        let work = &files.work;
        let made = WordFiles {
            word2vec: work.join("words.bin"),
            finalfusion: work.join("words.fifu"),
            gensim: work.join("words.kv"),
            shuffled: work.join("words.txt"),
        };
        // It is written last.
        if !made.shuffled.exists() {
            write_word2vec(&made.word2vec)?;
            convert_with_crate(&made.word2vec, &made.finalfusion, true)?;
            let paths = [&made.word2vec, &made.gensim].map(|p| p.to_string_lossy());
            Python::start(&files.python)?.ask(&["save_gensim", &paths[0], &paths[1]])?;
            std::fs::write(&made.shuffled, shuffled().join("\n"))?;
        }
        Ok(made)
    }
}

/// What the crate `finalfusion` does to convert a file.
pub fn convert_with_crate(from: &Path, to: &Path, sync: bool) -> Outcome<()> {
    let mut input = BufReader::new(File::open(from)?);
    let embeddings = Embeddings::read_word2vec_binary(&mut input)?;
    let mut output = BufWriter::new(File::create(to)?);
    embeddings.write_embeddings(&mut output)?;
    let output = output.into_inner()?;
    if sync {
        output.sync_all()?;
    }
    Ok(())
}

/// Numbers that look random and are always the same (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// Close to a normal distribution: the sum of eight bytes, with mean 0 and deviation 1.
    pub fn normal(&mut self) -> f32 {
        let sum: u32 = self.next().to_le_bytes().iter().map(|&b| u32::from(b)).sum();
        (sum as f32 - 8.0 * 127.5) / 209.0
    }
}

/// A word of 2 to 12 bytes, another for each number: syllables, and an ending that is none. One in
/// eight is not ASCII.
pub fn word(number: usize) -> String {
    let (consonants, vowels) = (b"bdfghklmnprstvwz", b"aeiou");
    let endings = ["", "s", "ing", "ed", "", "er", "é", ""];
    let (mut text, mut rest) = (String::new(), number);
    loop {
        let (consonant, vowel) = (rest % 16, rest / 16 % 5);
        text.push(char::from(consonants[consonant]));
        text.push(char::from(vowels[vowel]));
        if rest < 80 {
            break;
        }
        rest = rest / 80 - 1;
    }
    text + endings[number / 7 % endings.len()]
}

pub fn shuffled() -> Vec<String> {
    let mut words: Vec<String> = (0..WORDS).map(word).collect();
    let mut random = Random(3);
    for last in (1..words.len()).rev() {
        words.swap(last, random.below(last + 1));
    }
    words
}

/// Vectors around 2,000 centres, with lengths between 1 and 4.
fn write_word2vec(path: &Path) -> Outcome<()> {
    let mut random = Random(1);
    let centres: Vec<f32> = (0..2000 * DIM).map(|_| random.normal()).collect();
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    writeln!(out, "{WORDS} {DIM}")?;
    for number in 0..WORDS {
        let centre = &centres[random.below(2000) * DIM..][..DIM];
        let length = (1 + random.below(4)) as f32 / (DIM as f32).sqrt();
        write!(out, "{} ", word(number))?;
        for value in centre {
            let value = (0.6 * value + 0.8 * random.normal()) * length;
            out.write_all(&value.to_le_bytes())?;
        }
        out.write_all(b"\n")?;
    }
    out.into_inner()?.sync_all()?;
    Ok(())
}
