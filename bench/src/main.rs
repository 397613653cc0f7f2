//! Measures weighbridge beside its peers, in the same run and on the same files.
//!
//! `weighbridge-bench PROGRAM MODEL_FOLDER WORK_FOLDER [open|inspect|verify|convert]...`

mod convert;
mod files;
mod inspect;
mod open;
mod process;
mod table;
mod timing;
mod verify;

use files::Files;
use std::path::Path;

/// A failure ends the run: a table with holes would be taken for the whole.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.as_slice() {
        [verb, file] if verb == verify::CHILD => verify::child(Path::new(file)),
        [program, model, work, sections @ ..] => {
            let files = Files::prepare(Path::new(program), Path::new(model), Path::new(work))?;
            run(&files, sections)
        }
        _ => Err("usage: weighbridge-bench PROGRAM MODEL_FOLDER WORK_FOLDER [SECTION...]".into()),
    }
}

fn run(files: &Files, sections: &[String]) -> Outcome<()> {
    let wanted = |name: &str| sections.is_empty() || sections.iter().any(|s| s == name);
    let mut rows = Vec::new();
    for (name, measure) in [
        ("open", open::measure as fn(&Files) -> Outcome<Vec<table::Row>>),
        ("inspect", inspect::measure),
        ("verify", verify::measure),
        ("convert", convert::measure),
    ] {
        if wanted(name) {
            eprintln!("measuring {name}");
            rows.extend(measure(files)?);
        }
    }
    print!("{}", table::render(&rows));
    Ok(())
}
