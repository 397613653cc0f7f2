//! Measures weighbridge beside its peers, in the same run and on the same files.
//!
//! `weighbridge-bench PROGRAM MODEL_FOLDER WORK_FOLDER GGML PYTHON ENCODE_PYTHON ENCODERS
//! SEARCH_PYTHON [SECTION...]`

mod callers;
mod convert;
mod encode;
mod files;
mod first;
mod ggml;
mod inspect;
mod open;
mod process;
mod product;
mod python;
mod quantize;
mod rerank;
mod search;
mod shapes;
mod share;
mod stats;
mod table;
mod tables;
mod text;
mod texts;
mod timing;
mod tokens;
mod unpack;
mod verify;
mod wordfile;
mod words;

use files::Files;
use std::path::Path;

/// A failure ends the run: a table with holes would be taken for the whole. Sections that are done have
/// been printed.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.as_slice() {
        [verb, file] if verb == verify::CHILD => verify::child(Path::new(file)),
        [verb] if verb == stats::CHILD => stats::child(),
        [verb, from, to, sync] if verb == words::CONVERT => {
            words::convert(Path::new(from), Path::new(to), sync)
        }
        [verb, python, file, gensim] if verb == words::SIMILAR => {
            words::similar(Path::new(python), Path::new(file), Path::new(gensim))
        }
        [verb, folder, texts] if verb == share::CHILD => {
            share::child(Path::new(folder), Path::new(texts))
        }
        [verb, folder, peer, texts] if verb == share::VARIANT_CHILD => {
            share::variant_child(Path::new(folder), Path::new(peer), Path::new(texts))
        }
        [verb, folder, texts] if verb == tokens::CHILD => {
            tokens::child(Path::new(folder), Path::new(texts))
        }
        [verb, reranker, base, texts] if verb == rerank::CHILD => {
            rerank::child(Path::new(reranker), Path::new(base), Path::new(texts))
        }
        [verb, folder, texts] if verb == tables::CHILD => {
            tables::child(Path::new(folder), Path::new(texts))
        }
        [verb, paths @ .., cores] if verb == encode::CHILD => {
            let paths: Vec<_> = paths.iter().map(Path::new).collect();
            encode::child(&paths, cores.parse()?)
        }
        [verb, python, folder, cores] if verb == search::CHILD => {
            search::child(Path::new(python), Path::new(folder), cores.parse()?)
        }
        [verb, folder, batch] if verb == search::MEMORY => {
            search::memory(Path::new(folder), batch.parse()?)
        }
        [
            program,
            model,
            work,
            ggml,
            python,
            encode_python,
            encoders,
            search_python,
            sections @ ..,
        ] => {
            let paths =
                [program, model, work, ggml, python, encode_python, encoders, search_python];
            run(&Files::prepare(paths.map(Path::new))?, sections)
        }
        _ => Err("see bench/run for the arguments".into()),
    }
}

fn run(files: &Files, sections: &[String]) -> Outcome<()> {
    // What takes very long, or gigabytes, must be asked for.
    let wanted = |name: &str| match sections {
        [] => !["text", "opq", "encode", "search"].contains(&name),
        sections => sections.iter().any(|s| s == name),
    };
    for (name, measure) in [
        ("open", open::measure as fn(&Files) -> Outcome<Vec<table::Row>>),
        ("inspect", inspect::measure),
        ("verify", verify::measure),
        ("stats", stats::measure),
        ("convert", convert::measure),
        ("unpack", unpack::measure),
        ("quantize", quantize::measure),
        ("words", words::measure),
        ("text", text::measure),
        ("product", product::measure),
        ("opq", product::measure_rotated),
        ("callers", callers::measure),
        ("share", share::measure),
        ("variants", share::measure_variants),
        ("static", tables::measure),
        ("tokens", tokens::measure),
        ("rerank", rerank::measure),
        ("first", first::measure),
        ("encode", encode::measure),
        ("search", search::measure),
    ] {
        if wanted(name) {
            eprintln!("measuring {name}");
            let (time, rows) = timing::seconds(|| measure(files));
            let table = table::render(&rows?);
            println!("\n{name}, measured in {time:.0} s\n\n{table}");
        }
    }
    Ok(())
}
