//! Vectors on their way to a file.

use super::allowed::{check, check_type, has_unit_length, own_type, replaceable, row_layout};
use super::directed::may_give_zeros;
use super::facts::facts;
use super::gathered::Gathered;
use super::journal::{Facts, Journal, OnExisting};
use super::known::{Known, Origin, TextHash, hashes_of};
use super::made_with::MadeWith;
use super::output_type::{OutputType, Ranges};
use super::reuse::{Earlier, EarlierFile};
use super::shard::{InputId, Shard};
use super::texts::{SKIP_BAD, TextForm, TextRow};
use super::words::Words;
use super::{RowSink, WINDOW, Wanted};
use crate::table::shortened;
use std::path::{Path, PathBuf};
use weighbridge_encoder::{Encoder, Settings};
use weighbridge_format::plan::{RowBlock, RowFigures, RowLayout};
use weighbridge_format::{Advice, Error, Format, Options, Output, Progress};

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
    /// What values are stored as; without it what the format usually has.
    pub output_type: Option<OutputType>,
    /// Between which ends each dimension lies, for types that need it; without it those of all rows.
    pub ranges: Option<Ranges>,
    /// The rows are those of a part of the input. It has a manifest then, and a run that is repeated
    /// replaces what an earlier one made of the same part.
    pub shard: Option<Shard>,
    /// Earlier files whose rows are taken for texts that are the same. It has a manifest then.
    pub reuse: Vec<PathBuf>,
    /// A manifest is written beside the file, and the hashes of its texts.
    pub manifest: bool,
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
            output_type: None,
            ranges: None,
            shard: None,
            reuse: Vec::new(),
            manifest: false,
        }
    }

    /// The type that rows are coded in when all are there; none where they are stored as they come.
    pub(super) fn coded(&self) -> Option<OutputType> {
        self.output_type.filter(|to| *to != own_type(self.format.info()))
    }
}

/// A file of vectors in the making: a sink that keeps rows in a journal beside the file.
#[derive(Debug)]
pub struct EmbedFile {
    pub(super) settings: EmbedSettings,
    pub(super) dimensions: usize,
    /// How rows are stored before the file is finished.
    pub(super) layout: RowLayout,
    /// Options that rows are stored with.
    pub(super) options: Options,
    pub(super) words: Option<Words>,
    pub(super) made_with: MadeWith,
    pub(super) journal: Journal,
    /// Texts with vectors of zeros can be left out.
    skips_zeros: bool,
    known: Known,
    /// The hashes of the texts of a window, and where its vectors come from, once that is known.
    hashes: Vec<TextHash>,
    origins: Option<Vec<Origin>>,
    pub(super) input: Option<InputId>,
    /// The input of the file that is replaced without being asked for.
    pub(super) replaced: Option<InputId>,
}

impl EmbedFile {
    /// Checks all that can be known before the first text: the format, files in the way, a journal
    /// of other settings, earlier files of another model.
    ///
    /// # Errors
    /// [`Error::Refused`] if the format can't hold vectors of the model, a file or a journal is in
    /// the way, a journal is of other settings, or a file can't be reused; failures of the system.
    pub fn begin(encoder: &Encoder, settings: EmbedSettings) -> Result<EmbedFile, Error> {
        let path = settings.model_path.as_ref().and_then(|path| std::path::absolute(path).ok());
        let model = encoder.id(path.map(|path| path.to_string_lossy().into_owned()))?;
        let made_with = MadeWith::new(model, encoder, &settings.settings);
        let facts = |settings: &EmbedSettings, made: &MadeWith, layout: &RowLayout| {
            facts(settings, encoder, &made.model, layout)
        };
        let mut file = EmbedFile::start(settings, made_with, facts)?;
        file.skips_zeros = may_give_zeros(encoder);
        Ok(file)
    }

    /// The same for rows of any kind that were made so.
    pub(super) fn start(
        mut settings: EmbedSettings,
        made_with: MadeWith,
        facts: impl Fn(&EmbedSettings, &MadeWith, &RowLayout) -> Facts,
    ) -> Result<EmbedFile, Error> {
        let info = settings.format.info();
        let dimensions = made_with.dimensions;
        if info.is_folder || !settings.format.writes() {
            let what = format!("vectors can't be written as {}", info.id);
            return Err(Error::refused(what, Advice::set("to", "chooses another format")));
        }
        check_type(&settings, dimensions)?;
        if info.unit_rows && settings.settings.normalize == Some(false) {
            let what = format!("{} holds vectors of unit length", info.id);
            let advice = Advice::LeaveOut { option: "no-normalize" };
            return Err(Error::refused(what, advice.and("or choose another format")));
        }
        let mut options = Options::default();
        if info.unit_rows {
            // Strict readers refuse other norms than these.
            options.set("rounding", "nearest-norm");
            if !made_with.model.probes.iter().all(|vector| has_unit_length(vector)) {
                options.set("normalize", "true");
            }
        }
        settings.manifest |= settings.shard.is_some() || !settings.reuse.is_empty();
        let path = &mut settings.output.path;
        if settings.manifest && path.is_symlink() {
            // What lies beside it lies beside the file itself.
            *path = path.canonicalize().unwrap_or_else(|_| path.clone());
        }
        let before = replaceable(&mut settings, &made_with);
        check(&settings, dimensions, &options)?;
        let layout = row_layout(&settings);
        let earlier = Earlier::open(
            &settings.reuse,
            &made_with,
            &(layout.encoding)(),
            &mut Progress::none(),
        )?;
        let earlier = match &before {
            Some(_) => earlier.with_own(&settings.output.path, &made_with, &(layout.encoding)()),
            None => earlier,
        };
        let existing = match (settings.resume, settings.output.overwrite) {
            (true, _) => OnExisting::Resume,
            (false, true) => OnExisting::Replace,
            (false, false) => OnExisting::Refuse,
        };
        let facts = facts(&settings, &made_with, &layout);
        let journal = Journal::open(&settings.output.path, &facts, &layout, dimensions, existing)?;
        Ok(EmbedFile {
            words: info.holds.words_only().then(Words::default),
            settings,
            dimensions,
            layout,
            options,
            made_with,
            journal,
            skips_zeros: false,
            known: Known::new(earlier)?,
            hashes: Vec::new(),
            origins: None,
            input: None,
            replaced: before.and_then(|manifest| manifest.input),
        })
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

    /// Says which input the rows are of, as [`InputRows::id`](super::InputRows::id) knows it after the
    /// last. A manifest has it.
    pub fn set_input(&mut self, input: InputId) {
        self.input = Some(input);
    }

    /// Takes rows for done that the journal has.
    pub(super) fn has_stored(
        &mut self,
        rows: &[TextRow],
        hashes: Vec<TextHash>,
    ) -> Result<bool, Error> {
        let first = self.journal.finished();
        (self.hashes, self.origins) = (hashes, None);
        if !self.journal.has(rows)? {
            return Ok(false);
        }
        self.note(first)?;
        Ok(true)
    }

    /// Keeps the hashes of a window whose first row has this number.
    fn note(&mut self, first: u64) -> Result<(), Error> {
        self.known.add(first, &self.hashes, |row| self.journal.hash(row))?;
        self.journal.add_hashes(&self.hashes)
    }

    /// Takes the rows of a window out of files that have them.
    pub(super) fn take_stored(
        &mut self,
        rows: &[TextRow],
        sources: &[(&EarlierFile, u64)],
    ) -> Result<(), Error> {
        let mut window = Gathered::new(self.journal.row_bytes(), rows.len());
        for (file, row) in sources {
            window.add_earlier(file, *row, &(self.layout.encoding)())?;
        }
        self.append(rows, window)
    }

    /// Refuses a window with a text that can't have a row in this format, by its name: whoever reads a
    /// number alone has to count.
    fn check_directions(&self, rows: &[TextRow], window: &Gathered) -> Result<(), Error> {
        let info = self.settings.format.info();
        let found = window.first_zero(self.dimensions).filter(|_| info.unit_rows);
        let Some((place, row)) = found.and_then(|place| Some((place, rows.get(place)?))) else {
            return Ok(());
        };
        let (number, text) = (self.journal.finished() + place as u64 + 1, shortened(&row.text));
        let what = format!(
            "text {number}, {text:?}, has a vector that is all zeros, and {} holds vectors of unit length",
            info.id
        );
        let other = Advice::set("to", "chooses another format");
        let advice = if self.skips_zeros { SKIP_BAD.and(other) } else { other };
        Err(Error::refused(what, advice))
    }

    /// Encodes what is there as values, and adds all rows to the journal.
    fn append(&mut self, rows: &[TextRow], window: Gathered) -> Result<(), Error> {
        let first = self.journal.finished();
        let block = RowBlock { first, dim: self.dimensions };
        let (mut encoded, mut figures) = (Vec::new(), RowFigures::default());
        if !window.values().is_empty() {
            figures = (self.layout.encode)(window.values(), block, &self.options, &mut encoded)?;
        }
        figures.rows = rows.len() as u64;
        let bytes = window.in_order(encoded);
        self.journal.append(rows, &bytes, &figures)?;
        self.note(first)
    }
}

impl RowSink for EmbedFile {
    fn has(&mut self, rows: &[TextRow]) -> Result<bool, Error> {
        if let Some(words) = &mut self.words {
            words.add(rows)?;
        }
        self.has_stored(rows, hashes_of(rows))
    }

    fn wanted(&mut self, rows: &[TextRow]) -> Result<Wanted, Error> {
        self.hashes = hashes_of(rows);
        let (origins, wanted) = self.known.origins(&self.hashes, |row| self.journal.hash(row))?;
        self.origins = Some(origins);
        Ok(wanted)
    }

    fn take(&mut self, rows: &[TextRow], vectors: &[f32]) -> Result<(), Error> {
        // Whoever did not ask which are wanted gives all.
        let all = || {
            let origins = (0..rows.len()).map(Origin::New).collect();
            (hashes_of(rows), origins)
        };
        let (hashes, origins) = match self.origins.take() {
            Some(origins) => (std::mem::take(&mut self.hashes), origins),
            None => all(),
        };
        self.hashes = hashes;
        let encoding = (self.layout.encoding)();
        let mut window = Gathered::new(self.journal.row_bytes(), rows.len());
        for origin in origins {
            match origin {
                Origin::New(number) => {
                    let start = number * self.dimensions;
                    let vector = vectors.get(start..start + self.dimensions);
                    window.add_values(vector.unwrap_or_default());
                }
                Origin::Earlier(number) => {
                    let (file, row) = self.known.earlier.file_of(number)?;
                    window.add_earlier(file, row, &encoding)?;
                }
                Origin::Row(row) => window.add_bytes(|out| self.journal.row(row, out))?,
                Origin::Window(place) => window.repeat(place),
            }
        }
        self.check_directions(rows, &window)?;
        self.append(rows, window)
    }
}
