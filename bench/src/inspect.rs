//! `weighbridge inspect` as a whole process.

use crate::Outcome;
use crate::files::Files;
use crate::process;
use crate::table::{Row, time_limit};
use crate::timing::in_turn;
use std::path::Path;

const ROUNDS: usize = 50;

pub fn measure(files: &Files) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for (what, file, limit) in [
        ("inspect safetensors (process); peer: `true`", &files.model, 0.010),
        ("inspect EMBD", &files.model_embd, 0.010),
        ("inspect safetensors that carries the vocabulary", &files.model_carried, 0.010),
        ("inspect safetensors, 10,000 tensors", &files.many, 0.020),
        ("inspect EMBD, 10,000 tensors", &files.many_embd, 0.020),
    ] {
        let [ours, peer] = in_turn(
            ROUNDS,
            [&mut || inspect(files, file), &mut || process::run("true", &[]).expect("`true` runs")],
        );
        rows.push(time_limit(what, &ours, &peer, limit));
    }
    Ok(rows)
}

fn inspect(files: &Files, file: &Path) {
    let args = ["inspect".as_ref(), file.as_os_str()];
    process::run(&files.program, &args).expect("the file can be inspected");
}
