//! Whole processes: from their start to a first vector.

use super::sides::Made;
use super::{CANDLE, NAMES, ORT, ORT_INT8, RTEN, TORCH};
use crate::files::Files;
use crate::table::{Row, memory_limit, time_limit};
use crate::timing::Samples;
use crate::{Outcome, process};
use std::path::Path;
use std::process::Command;

const START_ROUNDS: usize = 5;

/// Whole processes, from their start to the vector of one text, and their memory till they end.
pub fn measure(files: &Files, made: &Made) -> Outcome<Vec<Row>> {
    let text = "How do I reset my password on this site?";
    let ours = |model: &Path, precision: &str| {
        let mut command = Command::new(&files.program);
        command.args(["embed", "--precision", precision, "--model"]).arg(model);
        command
    };
    let all = std::thread::available_parallelism()?.get();
    let start: [&dyn Fn() -> Command; 7] = [
        &|| ours(&made.embd, "f32"),
        &|| ours(&made.mcf, "q8"),
        &|| made.ort("f32-fused", all),
        &|| made.ort("int8-fused-column", all),
        &|| made.torch(all),
        &|| made.candle(all),
        &|| made.rten("f32-plain", all),
    ];
    let mut times: [Samples; 7] = Default::default();
    let mut memory = [0; 7];
    for round in 0..=START_ROUNDS {
        for (side, start) in start.iter().enumerate() {
            let mut command = start();
            command.arg(text);
            let (time, peak) = process::first_line(command)?;
            if round > 0 {
                times[side].0.push(time);
                memory[side] = memory[side].max(peak);
            }
        }
    }
    let mut rows = Vec::new();
    let peers = [("f32 from EMBD", 0, 2, ORT), ("f32 from EMBD", 0, 4, TORCH)];
    let peers = peers.into_iter().chain([
        ("f32 from EMBD", 0, 5, CANDLE),
        ("f32 from EMBD", 0, 6, RTEN),
        ("q8 from MCF", 1, 3, ORT_INT8),
    ]);
    for (what, ours, peer, name) in peers.clone() {
        let limit = if ours == 0 { 35e-3 } else { 30e-3 };
        let what = format!("start to first vector, {what}; peer: {}", NAMES[name]);
        rows.push(time_limit(&what, &times[ours], &times[peer], limit));
    }
    for (what, ours, peer, name) in peers {
        let limit = if ours == 0 { 170_000_000 } else { 80_000_000 };
        let what = format!("resident memory for one text, {what}; peer: {}", NAMES[name]);
        rows.push(memory_limit(&what, memory[ours], Some(memory[peer]), limit));
    }
    Ok(rows)
}
