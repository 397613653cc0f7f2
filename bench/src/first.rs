//! How long somebody waits for one vector: a whole process from its start, and a short text when the model is
//! open. Without heavy peers, so that it can be measured at any time; `encode` has them.

use crate::files::Files;
use crate::table::{Row, time_limit};
use crate::timing::{Samples, in_turn};
use crate::{Outcome, process};
use rayon::prelude::*;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use weighbridge::Encoder;
use weighbridge::encoder::{Precision, Settings};

const ROUNDS: usize = 25;
/// The short text, in each round.
const RUNS: usize = 100;
const TEXT: &str = "How do I reset my password on this site?";

/// Weights of all products of MiniLM: what a text needs to be read, however short it is.
const WEIGHTS: usize = 6 * 12 * 384 * 384;

pub fn measure(files: &Files) -> Outcome<Vec<Row>> {
    let mcf = files.work.join("minilm-q8.mcf");
    if !mcf.exists() {
        let args = ["quantize".as_ref(), files.model_folder.as_os_str(), mcf.as_os_str()];
        let args = args.into_iter().chain(["--method".as_ref(), "q8".as_ref()]);
        process::run(&files.program, &args.collect::<Vec<_>>())?;
    }
    let mut rows = Vec::new();
    for (what, model, precision, limit) in
        [("f32 from EMBD", &files.model_embd, "f32", 35e-3), ("q8 from MCF", &mcf, "q8", 30e-3)]
    {
        let (mut ours, mut peer) = (Samples::default(), Samples::default());
        for round in 0..=ROUNDS {
            let time = first_vector(files, model, precision)?;
            let (nothing, done) = crate::timing::seconds(|| process::run("true", &[]));
            done?;
            if round > 0 {
                ours.0.push(time);
                peer.0.push(nothing);
            }
        }
        let what = format!("start to first vector, {what} (process); peer: `true`");
        rows.push(time_limit(&what, &ours, &peer, limit));
    }
    for (name, precision, bytes, limit) in
        [("f32", Precision::F32, 4, 1.6e-3), ("q8", Precision::Q8, 2, 1.0e-3)]
    {
        let settings = Settings { precision, ..Default::default() };
        let encoder = Encoder::open_with(&files.model_folder, &settings)?;
        let memory = vec![1u64; WEIGHTS * bytes / 8];
        let [ours, peer] = in_turn(
            ROUNDS,
            [
                &mut || {
                    for _ in 0..RUNS {
                        black_box(encoder.embed(&[TEXT]).expect("a text has a vector"));
                    }
                },
                &mut || {
                    for _ in 0..RUNS {
                        let parts = black_box(&memory).par_chunks(1 << 15);
                        black_box(parts.map(|part| part.iter().sum::<u64>()).sum::<u64>());
                    }
                },
            ],
        );
        let each = |samples: Samples| Samples(samples.0.iter().map(|s| s / RUNS as f64).collect());
        let what = format!("{name}, a short text, all cores; peer: reading the weights once");
        rows.push(time_limit(&what, &each(ours), &each(peer), limit));
    }
    Ok(rows)
}

fn first_vector(files: &Files, model: &Path, precision: &str) -> Outcome<f64> {
    let mut command = Command::new(&files.program);
    command.args(["embed", "--precision", precision, "--model"]).arg(model).arg(TEXT);
    Ok(process::first_line(command)?.0)
}
