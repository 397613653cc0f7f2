//! Checking every checksum, against computing one over bytes in memory.

use crate::Outcome;
use crate::files::Files;
use crate::process;
use crate::search::limits::read;
use crate::table::{Row, throughput_beside, throughput_ratio};
use crate::timing::{Samples, in_turn};
use memmap2::Mmap;
use std::fs::File;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use weighbridge::{Formats, Input, Options};

/// The first argument of the process that measures: the number of threads is fixed when it starts.
pub const CHILD: &str = "measure-verify";
const ROUNDS: usize = 40;

/// How fast a mapped file can be read depends on how it came into the page cache, so it is written
/// just before: once by the program, once by `cp`, as a file from elsewhere would be.
pub fn measure(files: &Files) -> Outcome<Vec<Row>> {
    let copy = files.work.join("copied.weights");
    files.make_embd()?;
    process::run("cp", &[files.model_embd.as_os_str(), copy.as_os_str()])?;
    let mut rows = Vec::new();
    for (what, file, threads) in [
        ("verify EMBD, one thread", &files.model_embd, "1"),
        ("verify EMBD, all cores", &files.model_embd, "0"),
        ("verify a copy by `cp`, one thread", &copy, "1"),
        ("verify a copy by `cp`, all cores", &copy, "0"),
    ] {
        let bytes = std::fs::metadata(file)?.len();
        let [ours, peer, pages, summed] = in_child(file, threads)?;
        let row = |peer: &str| format!("{what}; peer: {peer}");
        rows.push(throughput_ratio(&row("crc32fast, one thread"), &ours, &peer, bytes, 0.7));
        rows.push(throughput_beside(&row("mapping and reading, as many"), &ours, &pages, bytes));
        // The same work on a file rather than on memory, and nothing else.
        if threads == "1" {
            let what = row("mapping and crc32fast, one thread");
            rows.push(throughput_beside(&what, &ours, &summed, bytes));
        }
    }
    std::fs::remove_file(copy)?;
    Ok(rows)
}

/// Times of ours, of the peer's, of reading the mapped file and of the peer's with that, from a process with so many threads
/// (0: one a core).
fn in_child(file: &Path, threads: &str) -> Outcome<[Samples; 4]> {
    let mut command = Command::new(std::env::current_exe()?);
    process::samples(command.arg(CHILD).arg(file).env("RAYON_NUM_THREADS", threads))
}

/// Prints a line of times of ours, one of the peer's, one of having the file's pages mapped and reading them:
/// what no check of a mapped file can be faster than, and one of the peer's with the mapped pages.
pub fn child(file: &Path) -> Outcome<()> {
    let bytes = std::fs::read(file)?;
    let verify = || {
        let verdict = Input::open(file).and_then(|input| {
            weighbridge::verify(Formats::builtin(), &input, &Options::default(), false)
        });
        assert!(verdict.is_ok_and(|v| v.ok && v.format == Some("embd")), "the file is fine");
    };
    let mapped = || {
        let file = File::open(file).expect("the file is there");
        // SAFETY: nobody changes the file while it is measured.
        unsafe { Mmap::map(&file) }.expect("files can be mapped")
    };
    let samples = in_turn(
        ROUNDS,
        [
            &mut || verify(),
            &mut || {
                black_box(crc32fast::hash(black_box(&bytes)));
            },
            &mut || {
                black_box(read(&mapped()));
            },
            &mut || {
                black_box(crc32fast::hash(&mapped()));
            },
        ],
    );
    process::print(&samples);
    Ok(())
}
