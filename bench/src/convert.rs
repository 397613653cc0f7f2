//! `weighbridge convert` as a whole process, against copying the file and syncing the copy.

use crate::Outcome;
use crate::files::Files;
use crate::process;
use crate::table::{Row, memory_limit, time_ratio};
use crate::timing::{Samples, seconds};
use std::ffi::OsStr;
use std::path::Path;

const ANONYMOUS: u64 = 64 << 20;

pub fn measure(files: &Files) -> Outcome<Vec<Row>> {
    let (big, big_embd) = files.make_big()?;
    let mut rows = Vec::new();
    for (what, from, extension, rounds) in [
        ("MiniLM, safetensors to EMBD", &files.model, "weights", 9),
        ("MiniLM, EMBD to safetensors", &files.model_embd, "safetensors", 9),
        ("1 GiB, safetensors to EMBD", &big, "weights", 5),
        ("1 GiB, EMBD to safetensors", &big_embd, "safetensors", 5),
    ] {
        let to = files.work.join(format!("converted.{extension}"));
        let copy = files.work.join("copied");
        let (mut ours, mut peer) = (Samples::default(), Samples::default());
        for round in 0..=rounds {
            // The side that goes first changes, and each starts with nothing left to be written.
            for side in [round % 2, (round + 1) % 2] {
                let (target, samples) =
                    if side == 0 { (&to, &mut ours) } else { (&copy, &mut peer) };
                settle(target)?;
                let (time, done) = seconds(|| {
                    if side == 0 {
                        convert(files, from, target)
                    } else {
                        copy_and_sync(from, target)
                    }
                });
                done?;
                if round > 0 {
                    samples.0.push(time);
                }
            }
        }
        settle(&copy)?;
        let what = format!("convert {what}");
        rows.push(time_ratio(&format!("{what}; peer: cp and sync"), &ours, &peer, 2.0));
        settle(&to)?;
        let peak = process::peak_memory(&files.program, &arguments(from, &to))?;
        rows.push(memory_limit(&format!("{what}: anonymous memory"), peak, None, ANONYMOUS));
        settle(&to)?;
    }
    for file in [big, big_embd] {
        std::fs::remove_file(file)?;
    }
    Ok(rows)
}

fn arguments<'a>(from: &'a Path, to: &'a Path) -> [&'a OsStr; 3] {
    ["convert".as_ref(), from.as_os_str(), to.as_os_str()]
}

fn convert(files: &Files, from: &Path, to: &Path) -> Outcome<()> {
    process::run(&files.program, &arguments(from, to))
}

pub fn copy_and_sync(from: &Path, to: &Path) -> Outcome<()> {
    process::run("cp", &[from.as_os_str(), to.as_os_str()])?;
    process::run("sync", &[to.as_os_str()])
}

/// Removes a file, and waits until the file system has nothing left to write.
pub fn settle(file: &Path) -> Outcome<()> {
    if file.exists() {
        std::fs::remove_file(file)?;
    }
    let folder = file.parent().ok_or("a file lies in a folder")?;
    process::run("sync", &["-f".as_ref(), folder.as_os_str()])
}
