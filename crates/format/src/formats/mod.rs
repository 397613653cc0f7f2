//! The formats: one description each, one table.
//!
//! Adding a format is a folder here and one line in the table at the end. Probing, help texts, the conversion
//! matrix and the generic tests derive from what it says of itself. Formats of others are added
//! with [`Formats::with`].

mod clock;
mod embd;
mod fasttext;
mod finalfusion;
mod floret;
mod hf;
pub mod jsonl;
mod mcf;
mod npy;
mod oinf;
mod rows;
mod safetensors;
mod table;
mod text;
mod values;
mod word2vec;
mod wordlist;

pub use table::{Formats, Reading};

use crate::model::{Container, Note, NoteKind, SubwordVectors};
use crate::plan::{Companion, Holds, Plan, Report, RowLayout};
use crate::source::Input;
pub use crate::wire::Stop;
use crate::wire::{Findings, Rule, Unchecked};
use crate::{Error, OptionSpec, Options};
use clock::created_at;

/// All that is to be said about a format, in one place.
///
/// Descriptions are made in constants: [`FormatInfo::new`], and then what differs is set.
///
/// ```
/// use weighbridge_format::FormatInfo;
///
/// const INFO: FormatInfo = {
///     let mut info = FormatInfo::new("toy", "Toy format");
///     info.extensions = &["toy"];
///     info
/// };
/// assert_eq!(INFO.id, "toy");
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FormatInfo {
    /// The id used in options and reports.
    pub id: &'static str,
    /// Its name for people.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Extensions of its files, without the dot, in lower case.
    pub extensions: &'static [&'static str],
    /// The bytes that every file begins with, where there are such.
    pub magic: &'static [u8],
    /// A folder of files rather than a file.
    pub is_folder: bool,
    /// Files say nowhere how long they are: one that was cut behind a line is a shorter one.
    pub open_ended: bool,
    /// The file beside each of its files that describes it, if there is one.
    pub companion: Option<Companion>,
    /// Whether a file has checksums of its content.
    pub checksums: fn(&Container) -> bool,
    /// Values stand in decimal digits, so that their bytes are never those of another format.
    pub decimal: bool,
    /// What it can hold.
    pub holds: Holds,
    /// Options that change how it is read or written.
    pub options: &'static [OptionSpec],
    /// Its numbered rules.
    pub rules: &'static [Rule],
    /// Those that only damage breaks: checksums, and codes that no writer gives. Whoever passes the
    /// data on checks them on the way.
    pub damage: &'static [Rule],
    /// The rule under which what is said of a model and its content disagree, in formats that hold
    /// models; these are checked against their description.
    pub model_rule: Option<Rule>,
    /// Its text form is a list of declarations rather than a table.
    pub declarations: bool,
    /// Rows are vectors of unit length.
    pub unit_rows: bool,
    /// What quantizing writes into it, if it does.
    pub quantized: Option<QuantizedContent>,
    /// How rows are stored one behind the other before their number is known, if they can be.
    pub row_layout: Option<RowLayout>,
    /// How the vector of an unknown word comes out of its parts.
    pub subword_vectors: SubwordVectors,
    /// A variant of the format that has no place for metadata where the usual one does, by name.
    pub no_metadata: fn(&Container) -> Option<&'static str>,
    /// Why a metadata value can't be changed so, where it can't: the format demands it, or something
    /// else in the file would go on saying it.
    pub fixed_metadata: FixedMetadata,
    /// The flags that are set in a file's header, by name.
    pub flags: fn(&Container) -> Vec<String>,
}

/// What is done to a metadata value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataChange<'a> {
    /// It is set to this.
    Set(&'a str),
    /// It is removed.
    Remove,
}

/// Why the value of a key can't be changed so in a file of the format, as the end of a sentence.
pub type FixedMetadata =
    fn(&Container, &str, MetadataChange) -> Result<Option<&'static str>, Error>;

/// What quantizing writes into a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuantizedContent {
    /// The weights of a model, with a scale for each tensor or block.
    Weights,
    /// Rows of unit length as integers.
    UnitRows,
    /// Word vectors as codes of their parts.
    Words,
}

impl FormatInfo {
    /// A format that holds nothing yet: what it has more is set afterwards.
    pub const fn new(id: &'static str, name: &'static str) -> FormatInfo {
        FormatInfo {
            id,
            name,
            summary: "",
            extensions: &[],
            magic: b"",
            is_folder: false,
            open_ended: false,
            companion: None,
            checksums: |_| false,
            decimal: false,
            holds: Holds::NOTHING,
            options: &[],
            rules: &[],
            damage: &[],
            model_rule: None,
            declarations: false,
            unit_rows: false,
            quantized: None,
            row_layout: None,
            subword_vectors: SubwordVectors::Unit,
            no_metadata: |_| None,
            fixed_metadata: |_, _, _| Ok(None),
            flags: |_| Vec::new(),
        }
    }

    /// What checking a file of this format leaves out, or could not do. There is no container where
    /// a broken rule made it unreadable.
    pub(crate) fn unchecked(&self, container: Option<&Container>, quick: bool) -> Vec<Unchecked> {
        let Some(container) = container else { return vec![Unchecked::Rest] };
        let list = [
            (quick, Unchecked::Data),
            (!(self.checksums)(container), Unchecked::Checksums),
            (self.open_ended, Unchecked::Length),
        ];
        list.into_iter().filter(|(holds, _)| *holds).map(|(_, what)| what).collect()
    }

    /// Whether it declares an option.
    pub fn has_option(&self, name: &str) -> bool {
        self.options.iter().any(|option| option.name == name)
    }

    /// Whether an input's name ends with one of its extensions.
    pub fn fits_name(&self, input: &Input) -> bool {
        !input.is_folder && self.extensions.contains(&input.extension().as_str())
    }

    /// A file of rows, with a record for each where there are such, and nothing else.
    pub fn is_of_rows(&self) -> bool {
        self.holds.records && self.holds.single
    }
}

/// How surely an input is of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sureness {
    /// It is not.
    No,
    /// Only the name says so.
    Name,
    /// The content looks like it.
    Content,
    /// A magic number says so.
    Magic,
}

/// Looks at the first bytes ([`Source::head`](crate::Source::head)) and the name; content beats the
/// name.
pub type Probe = fn(&Input, &FormatInfo) -> Sureness;
/// Parses the structure. Broken rules that leave the rest readable go into the findings; the first
/// that does not is returned.
pub type Read = fn(&Input, &Options, &mut Findings) -> Result<Container, Stop>;
/// The rules that need the data: checksums, value ranges, padding.
pub type Check = fn(&Container, &Input, &mut Findings) -> Result<(), Error>;
/// Fixes every byte of the files to be written and lists every loss, of a container without what
/// the format has no idea of.
pub type LayOut = fn(&Container, &Options, &FormatInfo) -> Result<Plan, Error>;

/// A format: its description and what reads and writes it.
///
/// ```
/// use weighbridge_format::{Container, Error, Format, FormatInfo, Options};
/// use weighbridge_format::plan::{FilePlan, Piece, Plan, Report};
///
/// fn lay_out(container: &Container, _: &Options, _: &FormatInfo) -> Result<Plan, Error> {
///     let mut file = FilePlan::default();
///     file.push(Piece::Bytes(format!("{} tensors", container.tensors.len()).into_bytes()));
///     Ok(Plan::single(file, Report::new()))
/// }
///
/// static COUNT: Format = {
///     let mut format = Format::new(FormatInfo::new("count", "a count"));
///     format.lay_out = Some(lay_out);
///     format
/// };
/// let plan = COUNT.plan(&Container::default(), &Options::default())?;
/// assert_eq!(plan.to_bytes()?, b"0 tensors");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Format {
    /// Its description.
    pub info: FormatInfo,
    /// Tells its files from others; by magic and name unless something else is set.
    pub probe: Probe,
    /// Reads it, if it can be read.
    pub read: Option<Read>,
    /// Checks what needs the data.
    pub check: Check,
    /// Lays out its files, if it can be written.
    pub lay_out: Option<LayOut>,
}

impl Format {
    /// A format that is neither read nor written yet.
    pub const fn new(info: FormatInfo) -> Format {
        Format { info, probe: by_magic_or_name, read: None, check: |_, _, _| Ok(()), lay_out: None }
    }

    /// Its description.
    pub const fn info(&self) -> &FormatInfo {
        &self.info
    }

    /// Whether it can be read.
    pub const fn reads(&self) -> bool {
        self.read.is_some()
    }

    /// Whether it can be written.
    pub const fn writes(&self) -> bool {
        self.lay_out.is_some()
    }

    /// Fixes every byte of the files to be written and lists every loss.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the format can't be written, and whatever it refuses to hold.
    pub fn plan(&self, container: &Container, options: &Options) -> Result<Plan, Error> {
        let Some(lay_out) = self.lay_out else {
            let message = format!("{} can be read and not written", self.info.name);
            return Err(Error::unsupported(self.info.id, message, ""));
        };
        let shared = container.subwords.is_some() && container.vocabulary.is_none();
        if shared && self.info.holds.words_only() && !self.info.holds.subwords {
            let what = "there are no words, only rows that words share by hashing";
            return Err(Error::refused(what, "look up the vectors of the words that are wanted"));
        }
        let mut narrowing = Report::default();
        let narrowed = container.narrowed_to(&self.info, &mut narrowing)?;
        narrowed.check_output(&self.info.holds)?;
        let mut plan = lay_out(&narrowed, options, &self.info)?;
        plan.report.prepend(narrowing);
        plan.report.warnings.extend(self.unknown_words_note(&narrowed));
        if Formats::builtin().find(container.format).is_some_and(|f| f.info.decimal) {
            plan.report.read_from(&narrowed, wordlist::DECIMAL);
        }
        (plan.from, plan.to) = (container.format, self.info.id);
        plan.damage.clone_from(&container.damage);
        plan.opened.clone_from(&container.opened);
        plan.most = container.most_output();
        Ok(plan)
    }

    /// Says so where readers of the format make the vectors of unknown words in another way than
    /// those of the source. The hub remembers what it came from.
    fn unknown_words_note(&self, container: &Container) -> Option<Note> {
        let subwords = container.subwords.as_ref()?;
        if !self.info.holds.subwords || self.info.holds.everything() {
            return None;
        }
        let text = match (subwords.vectors, self.info.subword_vectors) {
            (SubwordVectors::Mean, SubwordVectors::Unit) => {
                "words that are made of subwords get unit length: readers of the format do that"
            }
            (SubwordVectors::Unit, SubwordVectors::Mean) => {
                "words that are made of subwords no longer have unit length: readers of the format leave the mean as it is"
            }
            _ => return None,
        };
        Some(Note::new(NoteKind::Normalized, text))
    }
}

/// The flags of a header that a container has among its own facts: bits by name, from the lowest on.
fn flag_names(container: &Container, names: &[&str]) -> Vec<String> {
    let bits = container.dialect.get("flags").and_then(|f| f.as_u64()).unwrap_or(0);
    let name =
        |bit: usize| names.get(bit).map_or_else(|| format!("bit {bit}"), |n| (*n).to_owned());
    (0..64).filter(|bit| bits >> bit & 1 == 1).map(name).collect()
}

/// The magic is sure; without one the name tells.
pub fn by_magic_or_name(input: &Input, info: &FormatInfo) -> Sureness {
    if !info.magic.is_empty() && head(input).starts_with(info.magic) {
        Sureness::Magic
    } else if info.fits_name(input) {
        Sureness::Name
    } else {
        Sureness::No
    }
}

/// The first bytes. Whoever asks for the format has met the error already if there is one.
pub(crate) fn head(input: &Input) -> &[u8] {
    input.source.head().unwrap_or_default()
}

/// As sure as the content makes it, else as the name does.
fn by_content_or_name(looks_right: bool, input: &Input, info: &FormatInfo) -> Sureness {
    match (looks_right, info.fits_name(input)) {
        (true, _) => Sureness::Content,
        (false, true) => Sureness::Name,
        (false, false) => Sureness::No,
    }
}

/// Every format that comes with the library.
static BUILTIN: [&Format; 15] = [
    &embd::FORMAT,
    &fasttext::FORMAT,
    &finalfusion::FORMAT,
    &floret::FORMAT,
    &mcf::FORMAT,
    &npy::FORMAT,
    &oinf::FORMAT,
    &rows::I8,
    &rows::F32,
    &safetensors::FORMAT,
    &text::COUNTED,
    &text::GLOVE,
    &word2vec::FORMAT,
    &jsonl::FORMAT,
    &hf::FORMAT,
];

/// The table's functions by themselves, for the tests of the formats.
#[cfg(test)]
pub(crate) mod testing {
    use super::{Format, Formats};
    use crate::wire::Findings;
    use crate::{Container, Error, Input, Options};

    pub(crate) fn find(id: &str) -> Option<&'static Format> {
        Formats::builtin().find(id)
    }

    pub(crate) fn open(input: &Input, options: &Options) -> Result<Container, Error> {
        Formats::builtin().open(input, options)
    }

    pub(crate) fn check(
        input: &Input,
        options: &Options,
        quick: bool,
    ) -> Result<(&'static Format, Findings), Error> {
        Formats::builtin().check(input, options, quick)
    }
}
