//! Measures weighbridge beside its peers, in the same run and on the same files.
//!
//! `weighbridge-bench PROGRAM MODEL_FOLDER WORK_FOLDER GGML [SECTION...]`

mod convert;
mod files;
mod ggml;
mod inspect;
mod open;
mod process;
mod quantize;
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
        [program, model, work, ggml, sections @ ..] => {
            let [program, model, work, ggml] = [program, model, work, ggml].map(Path::new);
            let files = Files::prepare(program, model, work, ggml)?;
            run(&files, sections)
        }
        _ => {
            Err("usage: weighbridge-bench PROGRAM MODEL_FOLDER WORK_FOLDER GGML [SECTION...]"
                .into())
        }
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
        ("quantize", quantize::measure),
    ] {
        if wanted(name) {
            eprintln!("measuring {name}");
            rows.extend(measure(files)?);
        }
    }
    print!("{}", table::render(&rows));
    Ok(())
}
