//! The files of the folder: a sample of each format, texts, and a damaged file.

use std::path::{Path, PathBuf};
use weighbridge::sink::{self, RealFiles};
use weighbridge::{
    Container, Error, Format, FormatInfo, Formats, Options, Plan, Progress, samples,
};

/// A folder with files of somebody else is left alone: some could have the names of ours.
pub(super) fn check_folder(folder: &Path) -> Result<(), Error> {
    let is_empty = std::fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none());
    let is_ours = folder.join(DAMAGED).is_file() && folder.join(MODEL).is_dir();
    if is_empty || is_ours {
        return Ok(());
    }
    let what = "has files that are not of an earlier quickstart";
    Err(Error::refused_file(folder, what, "name a folder that is new or empty"))
}

/// A copy of a sample with one bit flipped, and a model directory: folders with both are ours.
const DAMAGED: &str = "damaged.weights";
const MODEL: &str = "hf-model";

/// Writes the sample that suits each format; a new format appears here by itself.
pub(super) fn write(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut made: Vec<PathBuf> = Vec::new();
    for format in Formats::builtin().iter().filter(|f| f.writes() && !f.info().is_folder) {
        let info = format.info();
        let Some(plan) = suitable_plan(format) else { continue };
        let path = sample_path(folder, info, &made);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|e| Error::io(parent, e))?;
        }
        sink::write(&plan, &path, &RealFiles, &mut Progress::none())?;
        made.push(path);
    }
    let path = folder.join(MODEL);
    samples::write_encoder(&path)?;
    made.push(path);
    write_texts(folder)?;
    write_damaged(folder)?;
    Ok(made)
}

/// The sample of which a format keeps most.
fn suitable_plan(format: &Format) -> Option<Plan> {
    let info = format.info();
    let samples = if info.holds.words_only() {
        vec![samples::subword_embeddings(), samples::word_embeddings(), samples::single_words()]
    } else if info.holds.single {
        vec![samples::unit_vectors()]
    } else {
        vec![samples::tiny_model()]
    };
    let plan = |mut sample: Container| {
        sample.format = info.id;
        format.plan(&sample, &Options::default()).ok()
    };
    samples.into_iter().filter_map(plan).min_by_key(|plan| plan.report.losses.len())
}

/// Files of rows get a folder each, because some have a `meta.json` beside them.
fn sample_path(folder: &Path, info: &FormatInfo, made: &[PathBuf]) -> PathBuf {
    // Some have an extension in common.
    let taken = |e: &str| made.iter().any(|path| path.extension().is_some_and(|x| x == e));
    let extension = info.extensions.iter().copied().find(|e| !taken(e)).unwrap_or(info.id);
    if info.holds.words_only() {
        folder.join(format!("words.{extension}"))
    } else if info.holds.single {
        folder.join(info.id).join(format!("embeddings.{extension}"))
    } else {
        folder.join(format!("tiny.{extension}"))
    }
}

/// Texts that verbs read: questions, words to keep, and a table to embed.
fn write_texts(folder: &Path) -> Result<(), Error> {
    let questions = ": family\nman woman king queen\nwoman man queen king\nman woman boy girl\n\
                     : things\ntruck lorry grain wheat\ntruck car apple pear\n";
    let wanted = "truck\nlorry\nnew york\nkohlrabi\n";
    // A field with a comma, one with quotes and a line break, and one that is blank.
    let notes = "id,text\n17,\"a full truck, with hay\"\n18,\"the driver said \"\"it is\nempty\"\"\"\n19,\n";
    for (name, text) in [("questions.txt", questions), ("wanted.txt", wanted), ("notes.csv", notes)]
    {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|e| Error::io(&path, e))?;
    }
    Ok(())
}

/// A copy of the small model with one bit flipped.
fn write_damaged(folder: &Path) -> Result<(), Error> {
    let (whole, damaged) = (folder.join("tiny.weights"), folder.join(DAMAGED));
    let mut bytes = std::fs::read(&whole).map_err(|e| Error::io(&whole, e))?;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&damaged, &bytes).map_err(|e| Error::io(&damaged, e))
}
