//! Vectors on their way to a file.

use super::journal::{Facts, Journal, OnExisting};
use super::made_with::MadeWith;
use super::texts::{TextForm, TextRow};
use super::words::Words;
use super::{RowSink, WINDOW};
use std::path::{Path, PathBuf};
use weighbridge_codec::DType;
use weighbridge_encoder::{Encoder, ModelId, Pooling, Settings, Tokenizer};
use weighbridge_format::model::{MATRIX, Subject};
use weighbridge_format::plan::{Keeps, RowBlock, RowFigures, RowLayout};
use weighbridge_format::{
    Advice, Container, Encoding, Error, Format, Formats, Options, Output, Plan, Progress, Tensor,
    View, Vocabulary,
};

/// A file of vectors that is to be made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EmbedSettings {
    /// Where it goes.
    pub output: Output,
    /// Its format.
    pub format: &'static Format,
    /// Texts that are embedded together.
    pub window: usize,
    /// Go on with the journal of a run that was not finished.
    pub resume: bool,
    /// What the model was asked for by.
    pub model: String,
    /// Where it was found, so that who searches the file can find it again.
    pub model_path: Option<PathBuf>,
    /// What the encoder was opened with.
    pub settings: Settings,
    /// What the texts are taken from, as [`Texts::form`](super::Texts::form) says; records other than
    /// plain texts are kept where the format can hold them.
    pub form: TextForm,
}

impl EmbedSettings {
    /// A file of this format.
    pub fn new(output: impl Into<Output>, format: &'static Format) -> EmbedSettings {
        EmbedSettings {
            output: output.into(),
            format,
            window: WINDOW,
            resume: false,
            model: String::new(),
            model_path: None,
            settings: Settings::default(),
            form: TextForm::Plain,
        }
    }
}

/// A file of vectors in the making: a sink that keeps rows in a journal beside the file.
#[derive(Debug)]
pub struct EmbedFile {
    settings: EmbedSettings,
    dimensions: usize,
    /// How rows are stored before the file is finished.
    layout: RowLayout,
    /// Options that rows are stored with.
    options: Options,
    words: Option<Words>,
    made_with: MadeWith,
    journal: Journal,
}

/// All vectors are there, and the file is planned.
#[derive(Debug)]
#[non_exhaustive]
pub struct EmbeddedFile {
    /// What will be written.
    pub plan: Plan,
    /// Where it goes.
    pub output: Output,
    /// How many rows it has.
    pub rows: u64,
    /// How many values each row has.
    pub dimensions: usize,
    journal: Journal,
}

impl EmbedFile {
    /// Checks all that can be known before the first text: the format, files in the way, a journal
    /// of other settings.
    ///
    /// # Errors
    /// [`Error::Refused`] if the format can't hold vectors of the model, a file or a journal is in
    /// the way, or a journal is of other settings; failures of the system.
    pub fn begin(encoder: &Encoder, settings: EmbedSettings) -> Result<EmbedFile, Error> {
        let info = settings.format.info();
        if info.is_folder || !settings.format.writes() {
            let what = format!("vectors can't be written as {}", info.id);
            return Err(Error::refused(what, Advice::set("to", "chooses another format")));
        }
        let path = settings.model_path.as_ref().and_then(|path| std::path::absolute(path).ok());
        let model = encoder.id(path.map(|path| path.to_string_lossy().into_owned()))?;
        let made_with = MadeWith::new(model, encoder, &settings.settings);
        let model = &made_with.model;
        if info.unit_rows && settings.settings.normalize == Some(false) {
            let what = format!("{} holds vectors of unit length", info.id);
            let advice = Advice::LeaveOut { option: "no-normalize" };
            return Err(Error::refused(what, advice.and("or choose another format")));
        }
        let mut options = Options::default();
        if info.unit_rows {
            // Strict readers refuse other norms than these.
            options.set("rounding", "nearest-norm");
            if !model.probes.iter().all(|vector| has_unit_length(vector)) {
                options.set("normalize", "true");
            }
        }
        let dimensions = encoder.dimensions();
        check(&settings, dimensions, &options)?;
        let layout = row_layout(&settings);
        let facts = facts(&settings, encoder, model, &layout);
        let existing = match (settings.resume, settings.output.overwrite) {
            (true, _) => OnExisting::Resume,
            (false, true) => OnExisting::Replace,
            (false, false) => OnExisting::Refuse,
        };
        let journal = Journal::open(&settings.output.path, &facts, &layout, dimensions, existing)?;
        let words = info.holds.words_only().then(Words::default);
        Ok(EmbedFile { settings, dimensions, layout, options, words, made_with, journal })
    }

    /// What the vectors are made with.
    pub fn made_with(&self) -> &MadeWith {
        &self.made_with
    }

    /// Where finished rows are kept.
    pub fn journal(&self) -> &Path {
        self.journal.path()
    }

    /// Rows that are kept, whatever happens.
    pub fn finished(&self) -> u64 {
        self.journal.finished()
    }

    /// Plans the file, after the last text. On an error the journal stays.
    ///
    /// # Errors
    /// [`Error::Refused`] if the journal has more rows than there were texts, and what the format
    /// refuses.
    pub fn finish(mut self) -> Result<EmbeddedFile, Error> {
        self.journal.complete()?;
        let info = self.settings.format.info();
        let rows = self.journal.finished();
        let view = self.journal.rows()?;
        let shape = vec![rows, self.dimensions as u64];
        let tensor = Tensor::stored(MATRIX, (self.layout.encoding)(), shape, view)?;
        let has_more = self.settings.form != TextForm::Plain;
        // Texts alone stand in the input; they are kept where there is a place for them.
        let keeps_records = info.holds.records && (has_more || info.is_of_rows());
        let mut container = Container::builder().tensor(tensor.clone()).build()?;
        if keeps_records {
            container.records = Some(self.journal.records()?);
        }
        container.vocabulary = self.words.take().map(Words::into_vocabulary);
        self.made_with.store(&mut container);
        // Where there is no place for it, nobody expects it.
        let holds = &info.holds;
        container
            .metadata
            .retain(|(key, value)| holds.metadata != Keeps::Nothing || (holds.entries)(key, value));
        let is_own = info.row_layout.is_some_and(|own| own.name == self.layout.name);
        let options = if is_own { Options::default() } else { self.options };
        let mut plan = self.settings.format.plan(&container, &options)?;
        if is_own {
            (self.layout.tell)(&self.journal.figures(), &tensor, &mut plan.report);
        }
        // Said without records that would be put together only to be left out.
        if has_more && !info.holds.records {
            plan.report.lose(Subject::Records(rows), "the format has none");
        }
        // What a link points to may be on another disk.
        let path = &self.settings.output.path;
        if is_own && !path.is_symlink() {
            plan.files[0].adopted = Some(self.journal.path().to_owned());
        }
        // Whoever names a format here knows what it is; the report says what it costs.
        let plan = plan.accept_losses(true);
        let (output, dimensions) = (self.settings.output, self.dimensions);
        Ok(EmbeddedFile { plan, output, rows, dimensions, journal: self.journal })
    }
}

impl RowSink for EmbedFile {
    fn has(&mut self, rows: &[TextRow]) -> Result<bool, Error> {
        if let Some(words) = &mut self.words {
            words.add(rows)?;
        }
        self.journal.has(rows)
    }

    fn take(&mut self, rows: &[TextRow], vectors: &[f32]) -> Result<(), Error> {
        let mut bytes = Vec::new();
        let block = RowBlock { first: self.journal.finished(), dim: self.dimensions };
        let figures: RowFigures = (self.layout.encode)(vectors, block, &self.options, &mut bytes)?;
        self.journal.append(rows, &bytes, &figures)
    }
}

impl EmbeddedFile {
    /// Writes the file, and removes the journal once it is there.
    ///
    /// # Errors
    /// What [`Plan::write`] refuses or fails at; the journal then stays.
    pub fn write(&self, progress: &mut Progress) -> Result<(), Error> {
        self.plan.write(self.output.clone(), progress)?;
        self.journal.remove();
        Ok(())
    }
}

/// How rows are kept: as the format stores them where it can be written row by row. A journal of
/// plain values is gone on with for any format; other rows can't be had back.
fn row_layout(settings: &EmbedSettings) -> RowLayout {
    let own = settings.format.info().row_layout.unwrap_or(RowLayout::PLAIN);
    let earlier = Journal::layout_of(&settings.output.path).filter(|_| settings.resume);
    let of_formats = Formats::builtin().iter().filter_map(|f| f.info().row_layout);
    let plain = Encoding::Plain(DType::F32);
    let mut known = of_formats.chain([RowLayout::PLAIN]).filter(|l| (l.encoding)() == plain);
    earlier.and_then(|name| known.find(|l| l.name == name)).unwrap_or(own)
}

/// What would be in the way of the output, found before hours of work: a row is planned.
fn check(settings: &EmbedSettings, dimensions: usize, options: &Options) -> Result<(), Error> {
    let mut values = vec![0f32; dimensions];
    values[..1].fill(1.0);
    let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let shape = vec![1, dimensions as u64];
    let tensor = Tensor::stored(MATRIX, Encoding::Plain(DType::F32), shape, View::owned(bytes))?;
    let mut container = Container::builder().tensor(tensor).build()?;
    if settings.format.info().holds.words_only() {
        container.vocabulary = Some(Vocabulary::from_tokens(["a"]));
    }
    let plan = settings.format.plan(&container, options)?.accept_losses(true);
    plan.obstacle(&settings.output).map_or(Ok(()), Err)
}

/// What the journal's rows depend on.
fn facts(
    settings: &EmbedSettings,
    encoder: &Encoder,
    model: &ModelId,
    layout: &RowLayout,
) -> Facts {
    let Settings { precision, pooling, normalize, .. } = &settings.settings;
    let pooling = pooling.as_ref().map_or("the model's own", Pooling::name);
    let mut facts = Facts::new();
    let mut add = |name: &str, value: serde_json::Value| facts.insert(name.to_owned(), value);
    add("journal version", 5.into());
    add(Journal::MODEL, settings.model.as_str().into());
    add(Journal::WEIGHTS, model.weights.as_str().into());
    add("tokens", format!("{:016x}", hash_of_tokens(encoder.tokenizer())).into());
    add("precision", precision.name().into());
    add("pooling", pooling.into());
    add("normalize", (*normalize).into());
    add("prompt", encoder.prompt().map(|prompt| prompt.text.as_str()).into());
    add("max-tokens", encoder.max_tokens().into());
    add("dimensions", encoder.dimensions().into());
    add("batch", settings.window.into());
    add("input", settings.form.to_string().into());
    add(Journal::LAYOUT, layout.name.into());
    add(Journal::VECTORS, format!("{:016x}", fingerprint(&model.probes)).into());
    facts
}

fn has_unit_length(vector: &[f32]) -> bool {
    let square: f64 = vector.iter().map(|v| f64::from(*v) * f64::from(*v)).sum();
    (square.sqrt() - 1.0).abs() < 5e-4
}

/// FNV-1a of the vectors' bits: the same rows come out only where these do.
fn fingerprint(vectors: &[Vec<f32>]) -> u64 {
    fnv1a(vectors.iter().flatten().flat_map(|v| v.to_le_bytes()))
}

/// FNV-1a of all tokens in order: the few texts above have few of them.
fn hash_of_tokens(tokenizer: &Tokenizer) -> u64 {
    let tokens = (0..).take(tokenizer.len()).map(|id| tokenizer.token(id).unwrap_or_default());
    fnv1a(tokens.flat_map(|token| [token.as_bytes(), b"\n"].concat()))
}

fn fnv1a(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
