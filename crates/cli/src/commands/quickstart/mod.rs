//! `weighbridge quickstart`: what can be done, with a real model where it can be had, and a sample of
//! each format to go on with. Every step that it shows is a command as it would be typed.

mod files;
mod texts;

use super::print;
use crate::ExitCode;
use crate::args::Quickstart;
use crate::render::{BOLD, DIM, styled};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use weighbridge::Error;

/// Verbs that are shown here print all they have to say, without a pager.
static RUNNING: AtomicBool = AtomicBool::new(false);

/// Whether the verb is a step of quickstart.
pub(super) fn is_running() -> bool {
    RUNNING.load(Ordering::Relaxed)
}

pub(super) fn run(args: &Quickstart) -> Result<ExitCode, Error> {
    RUNNING.store(true, Ordering::Relaxed);
    let folder = args.folder();
    files::check_folder(folder)?;
    std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
    let made = files::write(folder)?;
    let at = |name: &str| folder.join(name).display().to_string();

    texts::run(folder, args.offline)?;

    say("Is this file whole? One of its bits was flipped")?;
    step(&["verify", &at("damaged.weights")])?;

    say("What is inside?")?;
    let tensors = "embeddings.LayerNorm.*";
    step(&["inspect", &at("tiny.weights"), "--tensors", tensors])?;

    say("Another format and back: nothing is lost on the way")?;
    let (there, back) = (at("travelled.safetensors"), at("travelled.weights"));
    step(&["convert", &at("tiny.weights"), &there, "--force"])?;
    step(&["convert", &there, &back, "--force"])?;
    step(&["diff", &at("tiny.weights"), &back])?;

    say("What would be lost is said first")?;
    step(&["convert", &at("npy/embeddings.npy"), &at("vectors.i8bin"), "--dry-run"])?;

    say("Words: which are similar, even to one that is not in the file")?;
    step(&["similar", &at("words.fifu"), "truck", "bicycles", "-k", "3"])?;
    say("A man is to a king as a woman is to whom?")?;
    step(&["analogy", &at("words.fifu"), "man", "king", "woman", "-k", "1"])?;

    say("Try next")?;
    let names = made.iter().filter_map(|path| path.strip_prefix(folder).ok());
    let names: Vec<_> = names.map(|name| name.display().to_string()).collect();
    super::print_text(&format!(
        "a sample of each format is in {}: {}\n",
        folder.display(),
        names.join(", ")
    ))?;
    for arguments in [
        &["formats"][..],
        &["inspect", &at("tiny.oinf"), "--stats"],
        &["inspect", &at("damaged.weights"), "--bytes"],
        &["convert", "YOUR-MODEL-DIRECTORY/", "model.weights"],
        &["embed", "-m", "minilm", "-i", "YOUR-NOTES.txt", "-o", "notes.i8bin"],
        &["similar", "YOUR-WORDS.fifu"],
    ] {
        print(&format!("  {}\n", typed(arguments)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn say(title: &str) -> Result<ExitCode, Error> {
    print(&format!("\n{}\n", styled(BOLD, title)))
}

/// Runs a command as if it had been typed, and shows it.
fn step(arguments: &[&str]) -> Result<(), Error> {
    print(&format!("{}\n", styled(DIM, format!("$ {}", typed(arguments)))))?;
    let line: Vec<_> = ["weighbridge"].iter().chain(arguments).map(Into::into).collect();
    let command = crate::args::parse(&line);
    let command = command.map_err(|e| Error::refused(e.to_string(), ""))?;
    crate::hints::speaking_for(&command.name.clone(), || super::run(command)).map(|_| ())
}

/// A command as a shell takes it. The program is called what it was called.
fn typed(arguments: &[&str]) -> String {
    let called = std::env::args().next().filter(|name| Path::new(name).components().count() > 1);
    let program = called.unwrap_or_else(|| "weighbridge".to_owned());
    let words = std::iter::once(program.as_str()).chain(arguments.iter().copied());
    words.map(quoted).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_./-=,:+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
