//! `weighbridge quickstart`: a sample of each format, and what can be done with them.

mod texts;

use super::print;
use crate::args::Quickstart;
use crate::render::{BOLD, DIM, styled};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use weighbridge::sink::{self, RealFiles};
use weighbridge::{
    Container, Error, Format, FormatInfo, Formats, Options, Plan, Progress, samples,
};

pub(super) fn run(args: &Quickstart) -> Result<ExitCode, Error> {
    let folder = args.folder();
    std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
    say("A sample of each format")?;
    let made = write_samples(folder)?;
    write_texts(folder)?;

    say("What is inside: metadata, tensors, vocabulary")?;
    let model = folder.join("tiny.weights");
    step(&["inspect", &text(&model), "--tensors", "embeddings.*"])?;
    if let Some(declared) = made.iter().find(|s| s.format.is_some_and(|i| i.declarations)) {
        let tensors = "embeddings.LayerNorm.*";
        step(&["inspect", &text(&declared.path), "--tensors", tensors, "--stats"])?;
    }

    say("Are they whole? Every rule of each format, checksums included")?;
    let mut all = vec!["verify".to_owned()];
    all.extend(made.iter().filter(|s| s.is_read).map(|s| text(&s.path)));
    step(&all.iter().map(String::as_str).collect::<Vec<_>>())?;

    say("One flipped bit is found")?;
    let damaged = folder.join("damaged.weights");
    let mut bytes = std::fs::read(&model).map_err(|e| Error::io(&model, e))?;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&damaged, &bytes).map_err(|e| Error::io(&damaged, e))?;
    step(&["verify", &text(&damaged)])?;

    say("Another format and back: the same bytes")?;
    let (there, back) = (folder.join("travelled.safetensors"), folder.join("travelled.weights"));
    step(&["convert", &text(&model), &text(&there), "--force"])?;
    step(&["convert", &text(&there), &text(&back), "--force"])?;
    let same = std::fs::read(&model).ok() == std::fs::read(&back).ok();
    print(&format!(
        "{} and {} are {}\n",
        model.display(),
        back.display(),
        if same { "identical" } else { "different" }
    ))?;

    say("A model directory becomes one file")?;
    let directory = folder.join("hf-model");
    step(&["convert", &text(&directory), &text(&folder.join("packed.weights")), "--force"])?;

    say("Fewer bits per weight, and the error that this causes")?;
    let small = folder.join("small.mcf");
    step(&["quantize", &text(&directory), &text(&small), "--method", "k4", "--force"])?;

    say("Words: which are similar, even to one that is not in the file")?;
    let words = text(&folder.join("words.fifu"));
    step(&["similar", &words, "truck", "bicycles", "-k", "3"])?;
    say("A man is to a king as a woman is to whom?")?;
    step(&["analogy", &words, "man", "king", "woman", "-k", "1"])?;

    texts::run(folder, &directory, args.offline)?;

    say("Nothing is lost silently")?;
    step(&[
        "convert",
        &text(&model),
        &text(&folder.join("half.weights")),
        "--dtype",
        "f16",
        "--dry-run",
    ])?;

    say("Try next")?;
    print(&format!(
        "  weighbridge formats\n  weighbridge inspect {} --stats --values\n  weighbridge inspect {} --bytes\n  \
         weighbridge convert YOUR-MODEL-DIRECTORY/ model.weights\n  \
         weighbridge quantize YOUR-MODEL-DIRECTORY/ model.mcf --method k4\n  weighbridge verify YOUR-FILES\n  \
         weighbridge similar YOUR-WORDS.fifu\n  \
         weighbridge embed --model YOUR-MODEL-DIRECTORY/ --input TEXTS.txt --output vectors.npy\n",
        model.display(),
        damaged.display()
    ))
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn say(title: &str) -> Result<ExitCode, Error> {
    print(&format!("\n{}\n", styled(BOLD, title)))
}

/// A sample that was written.
struct Sample {
    /// The description of its format; a model directory has none here.
    format: Option<&'static FormatInfo>,
    path: PathBuf,
    is_read: bool,
}

/// Writes the sample that suits each format; a new format appears here by itself.
fn write_samples(folder: &Path) -> Result<Vec<Sample>, Error> {
    let mut made: Vec<Sample> = Vec::new();
    for format in Formats::builtin().iter().filter(|f| f.writes() && !f.info().is_folder) {
        let info = format.info();
        let Some(plan) = suitable_plan(format) else { continue };
        let path = sample_path(folder, info, &made);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|e| Error::io(parent, e))?;
        }
        sink::write(&plan, &path, &RealFiles, &mut Progress::none())?;
        print(&line(&path, info.summary))?;
        made.push(Sample { format: Some(info), path, is_read: format.reads() });
    }
    let path = folder.join("hf-model");
    samples::write_encoder(&path)?;
    print(&line(&path, "a Hugging Face model directory"))?;
    made.push(Sample { format: None, path, is_read: true });
    Ok(made)
}

fn line(path: &Path, what: &str) -> String {
    format!("  {:<36} {}\n", text(path), styled(DIM, what))
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
fn sample_path(folder: &Path, info: &FormatInfo, made: &[Sample]) -> PathBuf {
    // Some have an extension in common.
    let taken = |e: &str| made.iter().any(|s| s.path.extension().is_some_and(|x| x == e));
    let extension = info.extensions.iter().copied().find(|e| !taken(e)).unwrap_or(info.id);
    if info.holds.words_only() {
        folder.join(format!("words.{extension}"))
    } else if info.holds.single {
        folder.join(info.id).join(format!("embeddings.{extension}"))
    } else {
        folder.join(format!("tiny.{extension}"))
    }
}

/// Texts that the verbs for words read: questions, and words to keep.
fn write_texts(folder: &Path) -> Result<(), Error> {
    let questions = ": family\nman woman king queen\nwoman man queen king\nman woman boy girl\n\
                     : things\ntruck lorry grain wheat\ntruck car apple pear\n";
    let wanted = "truck\nlorry\nnew york\nkohlrabi\n";
    for (name, text, what) in [
        ("questions.txt", questions, "questions for evaluate"),
        ("wanted.txt", wanted, "words for select"),
    ] {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|e| Error::io(&path, e))?;
        print(&line(&path, what))?;
    }
    Ok(())
}

/// Runs a command as if it had been typed, and shows it.
fn step(arguments: &[&str]) -> Result<(), Error> {
    let quoted = |a: &&str| if a.contains('*') { format!("'{a}'") } else { (*a).to_owned() };
    let shown: Vec<_> = arguments.iter().map(quoted).collect();
    print(&format!("{}\n", styled(DIM, format!("$ weighbridge {}", shown.join(" ")))))?;
    let typed: Vec<_> = ["weighbridge"].iter().chain(arguments).map(Into::into).collect();
    let command = crate::args::parse(&typed);
    let command = command.map_err(|e| Error::refused(e.to_string(), ""))?;
    crate::hints::speaking_for(&command.name.clone(), || super::run(command)).map(|_| ())
}
