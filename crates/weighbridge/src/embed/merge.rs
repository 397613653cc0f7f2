//! Shards to one file, in the order of the input.

use super::facts::merged_facts;
use super::file::{EmbedFile, EmbedSettings};
use super::finish::EmbeddedFile;
use super::journal::Journal;
use super::manifest::Manifest;
use super::output_type::{OutputType, Ranges};
use super::reuse::EarlierFile;
use super::shard::{InputId, Shard};
use super::{TextRow, WINDOW};
use std::path::{Path, PathBuf};
use weighbridge_format::model::{RecordCursor, Records};
use weighbridge_format::wire::to_len;
use weighbridge_format::{Advice, Error, Format, Output, Progress, Stage};

/// One file that is made of shards.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MergeSettings {
    /// Where it goes.
    pub output: Output,
    /// Its format.
    pub format: &'static Format,
    /// What values are stored as; without it what the format usually has.
    pub output_type: Option<OutputType>,
    /// Between which ends each dimension lies; without it those of all rows.
    pub ranges: Option<Ranges>,
}

impl MergeSettings {
    /// A file of this format.
    pub fn new(output: impl Into<Output>, format: &'static Format) -> MergeSettings {
        MergeSettings { output: output.into(), format, output_type: None, ranges: None }
    }
}

/// Checks that files are all shards of one input, made with one model, and are what their manifests
/// say; then puts their rows into one file, in the order of the input, as embedding the whole input
/// would have made it. Rows are collected in a journal, so that it takes little memory, and goes on
/// where it was interrupted.
///
/// # Errors
/// [`Error::Refused`] that names the shard that is missing, is there twice, is of another input or
/// model, or was changed; what is in the way of the output; [`Error::Cancelled`].
pub fn merge(
    settings: &MergeSettings,
    shards: &[PathBuf],
    progress: &mut Progress,
) -> Result<EmbeddedFile, Error> {
    let is_output =
        |shard: &&PathBuf| match (shard.canonicalize(), settings.output.path.canonicalize()) {
            (Ok(shard), Ok(output)) => shard == output,
            _ => false,
        };
    if let Some(shard) = shards.iter().find(is_output) {
        let advice = "what is made of the shards goes into another file";
        return Err(Error::refused_file(shard, "is one of the shards", advice));
    }
    let manifests = read_manifests(shards)?;
    let (first, input) = check_one_input(&manifests)?;
    let bytes = manifests.iter().map(|(path, manifest)| manifest.bytes(path)).sum::<u64>();
    // What is in the way is found before all files are read.
    let mut file = begin(settings, first, input, manifests.len())?;
    progress.begin(Stage::Checking, bytes)?;
    let mut parts = Vec::new();
    for (path, manifest) in &manifests {
        let part = Part::open(path, manifest, progress)?;
        if !part.file.can_become(&(file.layout.encoding)()) {
            let (from, to) = (part.file.tensor.encoding.name(), (file.layout.encoding)().name());
            let what = format!("has rows that are stored as {from}, and {to} is needed");
            let advice = Advice::set("to", "chooses the format of the shards");
            return Err(Error::refused_file(path, &what, advice));
        }
        parts.push(part);
    }
    progress.begin(Stage::Merging, input.rows)?;
    let mut row = 0;
    while row < input.rows {
        let end = input.rows.min(row + WINDOW as u64);
        let (mut rows, mut hashes, mut sources) = (Vec::new(), Vec::new(), Vec::new());
        for row in row..end {
            let (part, at) = (to_len(row % parts.len() as u64), row / parts.len() as u64);
            let part = &mut parts[part];
            rows.push(TextRow { text: String::new(), record: part.record()? });
            hashes.push(part.file.hash(at)?);
        }
        for row in row..end {
            let part = &parts[to_len(row % parts.len() as u64)];
            sources.push((&part.file, row / parts.len() as u64));
        }
        if !file.has_stored(&rows, hashes)? {
            file.take_stored(&rows, &sources)?;
        }
        progress.advance(end - row)?;
        row = end;
    }
    file.set_input(input.clone());
    file.finish()
}

/// A shard that is read from front to back.
struct Part {
    path: PathBuf,
    file: EarlierFile,
    records: Option<RecordCursor>,
}

impl Part {
    fn open(path: &Path, manifest: &Manifest, progress: &mut Progress) -> Result<Part, Error> {
        let file = EarlierFile::open(path, manifest, progress)?;
        let records = file.records.as_ref().map(Records::cursor).transpose()?;
        Ok(Part { path: path.to_owned(), file, records })
    }

    /// The record of the next row; an empty one where there are none.
    fn record(&mut self) -> Result<String, Error> {
        let Some(records) = &mut self.records else { return Ok("{}".to_owned()) };
        let few = || Error::refused_file(&self.path, "has fewer records than rows", "make it anew");
        records.next().ok_or_else(few)?
    }
}

/// The manifests of all shards, in the order of their numbers.
fn read_manifests(shards: &[PathBuf]) -> Result<Vec<(PathBuf, Manifest)>, Error> {
    let mut list = Vec::new();
    for path in shards {
        let manifest = Manifest::of(path)?;
        let Some(shard) = manifest.shard else {
            let what = "is no shard: it has all rows of its input";
            return Err(Error::refused_file(path, what, "name the files of one run's shards"));
        };
        list.push((shard.number, (path.clone(), manifest)));
    }
    list.sort_by_key(|(number, _)| *number);
    Ok(list.into_iter().map(|(_, entry)| entry).collect())
}

/// Checks that shards are those of one input and model, each once and all of them.
fn check_one_input(shards: &[(PathBuf, Manifest)]) -> Result<(&Manifest, &InputId), Error> {
    let Some((first_path, first)) = shards.first() else {
        return Err(Error::refused("there are no shards", "name their files"));
    };
    let refused = |path: &Path, what: String, advice: &'static str| {
        Err(Error::refused_file(path, &what, Advice::from(advice)))
    };
    let others = first_path.display();
    let (Some(of), Some(input)) = (first.shard.map(|shard| shard.of), &first.input) else {
        return refused(first_path, "does not say of which input it is".into(), "make it anew");
    };
    for (path, manifest) in shards {
        let number = manifest.shard.filter(|shard| shard.of == of);
        let Some(shard) = number else {
            let shard = manifest.shard.map(|shard| shard.to_string()).unwrap_or_default();
            let what = format!("is shard {shard}, and {others} one of {of}");
            return refused(path, what, "merge the shards of one run");
        };
        if manifest.input.as_ref() != Some(input) || manifest.form != first.form {
            let what = format!("is a shard of another input than {others}");
            return refused(path, what, "embed all shards of the same input");
        }
        if let Some(difference) = manifest.made_with.difference(&first.made_with) {
            let what = format!("was made with {difference}, as {others} was");
            return refused(path, what, "embed all shards with the same model and settings");
        }
        if shard.share(input.rows) != manifest.rows {
            let what = format!("has {} rows, which shard {shard} has not", manifest.rows);
            return refused(path, what, "make it anew");
        }
    }
    for pair in shards.windows(2) {
        if let [(a, one), (b, two)] = pair
            && one.shard == two.shard
        {
            let shard = one.shard.map(|shard| shard.to_string()).unwrap_or_default();
            let what = format!("is shard {shard}, and so is {}", a.display());
            return refused(b, what, "name each shard once");
        }
    }
    let has = |number: u64| shards.iter().any(|(_, m)| m.shard.map(|s| s.number) == Some(number));
    // Looked for only as far as there are files, however many shards a manifest speaks of.
    let missing = (1..=of).take(shards.len() + 1).find(|number| !has(*number));
    match missing.and_then(|number| Shard::new(number, of)) {
        Some(shard) => {
            let what = format!("shard {shard} is missing");
            Err(Error::refused(what, Advice::set_to("shard", shard.to_string(), "makes it")))
        }
        None => Ok((first, input)),
    }
}

fn begin(
    settings: &MergeSettings,
    of: &Manifest,
    input: &InputId,
    shards: usize,
) -> Result<EmbedFile, Error> {
    let info = settings.format.info();
    if info.holds.words_only() {
        let what = format!("{} holds words, and shards don't have them", info.id);
        return Err(Error::refused(what, Advice::set("to", "chooses another format")));
    }
    let mut file = EmbedSettings::new(settings.output.clone(), settings.format);
    file.form = of.form.clone();
    file.output_type = settings.output_type;
    file.ranges.clone_from(&settings.ranges);
    file.manifest = true;
    file.settings.normalize = of.made_with.normalize;
    // Nobody has to ask for that: nothing of it was computed. Whoever began a journal was allowed to
    // write the file.
    file.resume = !settings.output.overwrite;
    file.output.overwrite |= Journal::exists(&settings.output.path);
    let merged = format!("{shards} shards of {}", input.sha256);
    EmbedFile::start(file, of.made_with.clone(), |_, made, layout| {
        merged_facts(made, &merged, layout)
    })
}
