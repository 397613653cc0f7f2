//! Texts to vectors, and vectors to files of any format.
//!
//! Texts are read and embedded window by window. Vectors on their way to a file are collected in a
//! journal beside it: memory stays bounded however many there are, a run that was interrupted goes
//! on from there, and the file appears whole or not at all.

mod journal;
pub mod jsonl;
mod lines;
mod output;
mod texts;

pub use lines::LONGEST_LINE;
pub use texts::{Reading, Row, Skipped, TEXT, Texts};

use crate::convert::Conversion;
use journal::{Attitude, Facts, Journal};
use output::Target;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use weighbridge_encoder::{Encoder, Pooling, Precision, Settings};
use weighbridge_format::Error;
use weighbridge_format::sink::Progress;

/// Texts that are embedded together, unless something else is asked for.
pub const WINDOW: usize = 1024;

/// A window ends when its texts have as many bytes together.
const WINDOW_BYTES: usize = 4 << 20;

const MODEL_FACT: &str = "model";
const VECTORS_FACT: &str = "vectors";

/// How far a run is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// Texts, those of earlier runs included.
    pub rows: u64,
    /// Those of earlier runs.
    pub resumed: u64,
    /// Bytes of the input.
    pub bytes: u64,
}

/// The next texts, at most `size` of them. Where a window ends depends on nothing but the texts from
/// its first on, so that every run has the same windows.
pub fn window(texts: &mut Texts, size: usize) -> Result<Vec<Row>, Error> {
    let (mut rows, mut bytes) = (Vec::new(), 0);
    while rows.len() < size.max(1) && bytes < WINDOW_BYTES {
        let Some(row) = texts.next()? else { break };
        bytes += row.text.len() + row.record.len();
        rows.push(row);
    }
    Ok(rows)
}

/// The vectors of a window, one behind the other.
pub fn embed_rows(encoder: &Encoder, rows: &[Row]) -> Result<Vec<f32>, Error> {
    let texts: Vec<&str> = rows.iter().map(|row| row.text.as_str()).collect();
    encoder.embed_flat(&texts)
}

/// The cosine of the angle between the vectors of two texts.
pub fn compare(encoder: &Encoder, first: &str, second: &str) -> Result<f64, Error> {
    let vectors = encoder.embed_flat(&[first, second])?;
    let (a, b) = vectors.split_at(encoder.dimensions());
    let product = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
    };
    let lengths = (product(a, a) * product(b, b)).sqrt();
    Ok(if lengths > 0.0 { (product(a, b) / lengths).clamp(-1.0, 1.0) } else { 0.0 })
}

/// Vectors on their way to a file.
#[derive(Clone, Debug)]
pub struct Request {
    pub output: PathBuf,
    /// Id of the target format, or `jsonl`; else the output's extension decides.
    pub to: Option<String>,
    /// Texts that are embedded together.
    pub window: usize,
    /// Go on with the journal of a run that was not finished.
    pub resume: bool,
    /// Replace existing files, and a journal.
    pub force: bool,
    /// What the model is called in messages.
    pub model: String,
    /// What the encoder was opened with.
    pub settings: Settings,
}

/// A run that has its journal, and can begin.
#[derive(Debug)]
pub struct Run<'a> {
    encoder: &'a Encoder,
    window: usize,
    output: PathBuf,
    field: Option<String>,
    target: Target,
    journal: Journal,
}

/// All vectors are there, and the file is planned.
#[derive(Debug)]
pub struct Embedded {
    pub conversion: Conversion,
    pub rows: u64,
    /// Rows that an earlier run had finished.
    pub resumed: u64,
    journal: Journal,
}

impl Request {
    /// Checks all that can be known before the first text: the format, files in the way, a journal
    /// of other settings. `field` is the member of JSON lines that is the text.
    pub fn begin<'a>(&self, encoder: &'a Encoder, field: Option<&str>) -> Result<Run<'a>, Error> {
        let format = output::format_for(&self.output, self.to.as_deref())?;
        let probe = encoder.embed(&PROBES)?;
        let normalize = !probe.iter().all(|vector| has_unit_length(vector));
        if format.info().id == "i8bin" && self.settings.normalize == Some(false) {
            let what = "i8bin holds vectors of unit length";
            return Err(Error::refused(what, "leave out --no-normalize, or choose another format"));
        }
        let target = Target { format, normalize, force: self.force };
        target.check(&self.output, encoder.dimensions())?;
        let facts = self.facts(encoder, &probe, field);
        let attitude = Attitude { resume: self.resume, force: self.force };
        let journal = Journal::open(&self.output, &facts, encoder.dimensions(), attitude)?;
        let (output, field) = (self.output.clone(), field.map(str::to_owned));
        Ok(Run { encoder, window: self.window, output, field, target, journal })
    }

    /// What the journal's rows depend on.
    fn facts(&self, encoder: &Encoder, probe: &[Vec<f32>], field: Option<&str>) -> Facts {
        let Settings { precision, pooling, normalize, .. } = &self.settings;
        let precision = match precision {
            Precision::F32 => "f32",
            Precision::Bf16 => "bf16",
            Precision::Q8 => "q8",
        };
        let pooling = match pooling {
            None => "the model's own",
            Some(Pooling::Mean) => "mean",
            Some(Pooling::Cls) => "cls",
            Some(Pooling::Max) => "max",
            Some(Pooling::MeanSqrtLen) => "mean_sqrt_len",
        };
        let input = match field {
            None => "plain text".to_owned(),
            Some(field) => format!("JSON lines with {field:?}"),
        };
        let mut facts = Facts::new();
        let mut add = |name: &str, value: serde_json::Value| facts.insert(name.to_owned(), value);
        add("journal version", 1.into());
        add(MODEL_FACT, self.model.as_str().into());
        add("precision", precision.into());
        add("pooling", pooling.into());
        add("normalize", (*normalize).into());
        add("max-tokens", encoder.max_tokens().into());
        add("dimensions", encoder.dimensions().into());
        add("batch", self.window.into());
        add("input", input.into());
        add(VECTORS_FACT, format!("{:016x}", fingerprint(probe)).into());
        facts
    }
}

impl Run<'_> {
    /// Where finished rows are kept.
    pub fn journal(&self) -> &Path {
        self.journal.path()
    }

    /// Rows that are kept, whatever happens.
    pub fn finished(&self) -> u64 {
        self.journal.finished()
    }

    /// Embeds all texts that have no row yet, and plans the file. On an error the journal stays.
    pub fn embed(
        &mut self,
        texts: &mut Texts,
        progress: &mut dyn FnMut(Done),
    ) -> Result<u64, Error> {
        let mut resumed = 0;
        let mut words = self.target.format.info().holds.words_only().then(Words::default);
        loop {
            let rows = window(texts, self.window)?;
            if rows.is_empty() {
                break;
            }
            if let Some(words) = &mut words {
                words.add(&rows)?;
            }
            if self.journal.has(&rows)? {
                resumed += rows.len() as u64;
            } else {
                self.journal.append(&rows, &embed_rows(self.encoder, &rows)?)?;
            }
            progress(Done { rows: self.journal.finished(), resumed, bytes: texts.position() });
        }
        self.journal.complete()?;
        Ok(resumed)
    }

    /// Plans the file. On an error the journal stays.
    pub fn finish(self, resumed: u64) -> Result<Embedded, Error> {
        let dimensions = self.encoder.dimensions();
        let field = self.field.as_deref();
        let conversion = self.target.convert(&self.journal, &self.output, dimensions, field)?;
        let rows = self.journal.finished();
        Ok(Embedded { conversion, rows, resumed, journal: self.journal })
    }
}

/// Texts that become words, of which a file has each once. Found while reading, not after hours of
/// work; all of them are held in memory at the end anyway.
#[derive(Debug, Default)]
struct Words(HashMap<String, usize>);

impl Words {
    fn add(&mut self, rows: &[Row]) -> Result<(), Error> {
        for row in rows {
            let number = self.0.len() + 1;
            if let Some(first) = self.0.insert(row.text.clone(), number) {
                let what = format!("text {number}, {:?}, is the same as text {first}", row.text);
                let hint =
                    "the format has every word once: leave out repeated texts, or choose --to npy";
                return Err(Error::refused(what, hint));
            }
        }
        Ok(())
    }
}

impl Embedded {
    /// Writes the file, and removes the journal once it is there.
    pub fn write(&self, progress: Progress) -> Result<(), Error> {
        self.conversion.write(progress)?;
        self.journal.remove();
        Ok(())
    }
}

/// Texts whose vectors tell models, tokenizers and ways of computing apart.
const PROBES: [&str; 3] = [
    "A lorry loaded with 40 tonnes of gravel stands on the weighbridge.",
    "Why, naïve Straße-läufer; 東京 — 3.14?",
    "x",
];

fn has_unit_length(vector: &[f32]) -> bool {
    let square: f64 = vector.iter().map(|v| f64::from(*v) * f64::from(*v)).sum();
    (square.sqrt() - 1.0).abs() < 5e-4
}

/// FNV-1a of the vectors' bits: the same rows come out only where these do.
fn fingerprint(vectors: &[Vec<f32>]) -> u64 {
    let bytes = vectors.iter().flatten().flat_map(|v| v.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
