//! The formats: one trait, one table.
//!
//! Adding a format is a folder here, one line in [`table`], and a sample in the test kit. Probing,
//! help texts, the conversion matrix and the generic tests derive from what it says of itself.

mod clock;
mod embd;
mod fasttext;
mod finalfusion;
mod floret;
mod hf;
mod mcf;
mod npy;
mod oinf;
mod rows;
mod safetensors;
mod text;
mod values;
mod word2vec;
mod wordlist;

use crate::model::{Container, Holds, Plan, Report};
use crate::source::{Input, mistaken};
use crate::wire::{Finding, Findings, Rule};
use crate::{Error, OptionSpec, Options};
use clock::created_at;

/// All that is to be said about a format, in one place.
#[derive(Clone, Copy, Debug)]
pub struct FormatInfo {
    /// The id used in options and reports.
    pub id: &'static str,
    pub name: &'static str,
    pub summary: &'static str,
    pub extensions: &'static [&'static str],
    /// The bytes that every file begins with, where there are such.
    pub magic: &'static [u8],
    pub writes: bool,
    /// A folder of files rather than a file.
    pub is_folder: bool,
    /// Files say nowhere how long they are: one that was cut behind a line is a shorter one.
    pub open_ended: bool,
    pub holds: Holds,
    pub options: &'static [OptionSpec],
    pub rules: &'static [Rule],
    /// Its text form is the declarations of the OINF specification rather than a table.
    pub declarations: bool,
}

/// How surely an input is of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sureness {
    No,
    /// Only the name says so.
    Name,
    /// The content looks like it.
    Content,
    /// A magic number says so.
    Magic,
}

/// Why reading stopped: a broken rule that makes the rest unreadable, or another failure.
#[derive(Debug)]
pub enum Stop {
    Broken(Box<Finding>),
    Failed(Error),
}

impl From<Box<Finding>> for Stop {
    fn from(finding: Box<Finding>) -> Self {
        Stop::Broken(finding)
    }
}

impl From<Finding> for Stop {
    fn from(finding: Finding) -> Self {
        Stop::Broken(Box::new(finding))
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Failed(error)
    }
}

pub trait Format: Sync {
    fn info(&self) -> &'static FormatInfo;

    /// Looks at the first bytes and the name; content beats the name.
    fn probe(&self, input: &Input) -> Sureness {
        let info = self.info();
        if !info.magic.is_empty() && input.source.bytes().starts_with(info.magic) {
            Sureness::Magic
        } else if !input.is_folder && info.extensions.contains(&input.extension().as_str()) {
            Sureness::Name
        } else {
            Sureness::No
        }
    }

    /// Parses the structure. Broken rules that leave the rest readable go into `findings`; the
    /// first that does not is returned.
    fn read(
        &self,
        input: &Input,
        options: &Options,
        findings: &mut Findings,
    ) -> Result<Container, Stop>;

    /// The rules that need the data: checksums, value ranges, padding.
    fn check(&self, container: &Container, input: &Input, findings: &mut Findings);

    /// Fixes every byte of the files to be written and lists every loss.
    fn plan(&self, container: &Container, options: &Options) -> Result<Plan, Error> {
        let mut report = Report::default();
        let container = container.narrowed_to(self.info(), &mut report);
        let mut plan = self.lay_out(&container, options)?;
        plan.report.losses.splice(0..0, report.losses);
        plan.report.ignored.extend(report.ignored);
        Ok(plan)
    }

    /// The same, of a container without what the format has no idea of.
    fn lay_out(&self, container: &Container, options: &Options) -> Result<Plan, Error>;
}

/// Every format.
pub fn table() -> &'static [&'static dyn Format] {
    &[
        &embd::Embd,
        &fasttext::FastText,
        &finalfusion::Finalfusion,
        &floret::Floret,
        &mcf::Mcf,
        &npy::Npy,
        &oinf::Oinf,
        &rows::Kind::I8,
        &rows::Kind::F32,
        &safetensors::Safetensors,
        &text::Kind::Counted,
        &text::Kind::Glove,
        &word2vec::Word2Vec,
        &hf::HuggingFace,
    ]
}

/// The format with this id.
pub fn find(id: &str) -> Option<&'static dyn Format> {
    table().iter().copied().find(|f| f.info().id == id)
}

/// Finds the format of an input, or says what the input is instead.
pub fn detect(input: &Input) -> Result<&'static dyn Format, Error> {
    let best = table().iter().copied().map(|f| (f.probe(input), f)).max_by_key(|(s, _)| *s);
    let mistake = || mistaken::recognise(input.source.bytes()).filter(|_| !input.is_folder);
    match best {
        Some((Sureness::Magic | Sureness::Content, format)) => Ok(format),
        Some((Sureness::Name, format)) if mistake().is_none() => Ok(format),
        _ => {
            let (what, hint) = mistake().unwrap_or(if input.is_folder {
                (
                    "a folder that is no model directory",
                    "a model directory has a config.json and a model.safetensors",
                )
            } else {
                (
                    "not a file of any known format",
                    "`weighbridge formats` lists the known ones; --from names one",
                )
            });
            Err(Error::Unrecognised {
                file: input.name.clone(),
                what: format!("this is {what}"),
                hint: hint.to_owned(),
            })
        }
    }
}

/// Detects the format (or takes the one that the option `from` names) and parses the structure. All
/// broken rules are in the findings; the container is there unless one of them made it unreadable.
pub fn read(
    input: &Input,
    options: &Options,
) -> Result<(&'static dyn Format, Option<Container>, Findings), Error> {
    let format = match options.get("from") {
        Some(id) => find(id).ok_or_else(|| {
            Error::refused(format!("there is no format {id:?}"), "see `weighbridge formats`")
        })?,
        None => detect(input)?,
    };
    let mut findings = Findings::default();
    let container = match format.read(input, options, &mut findings) {
        Ok(container) => Some(container),
        Err(Stop::Broken(finding)) => {
            findings.push(*finding);
            None
        }
        Err(Stop::Failed(error)) => return Err(error),
    };
    Ok((format, container, findings))
}

/// Opens an input; a broken structural rule is an error.
pub fn open(input: &Input, options: &Options) -> Result<Container, Error> {
    let (_, container, findings) = read(input, options)?;
    match (findings.first_error(), container) {
        (None, Some(container)) => Ok(container),
        (Some(finding), _) => Err(Error::malformed(&input.name, finding.clone())),
        (None, None) => Err(Error::Unrecognised {
            file: input.name.clone(),
            what: "it can't be read".to_owned(),
            hint: String::new(),
        }),
    }
}

/// Checks every rule of the format; with `quick`, those of the structure only.
pub fn check(
    input: &Input,
    options: &Options,
    quick: bool,
) -> Result<(&'static dyn Format, Findings), Error> {
    let (format, container, mut findings) = read(input, options)?;
    if let Some(container) = container.filter(|_| !quick) {
        format.check(&container, input, &mut findings);
    }
    Ok((format, findings))
}
