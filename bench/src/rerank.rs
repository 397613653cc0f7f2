//! Pairs of texts that a reranker scores, beside texts of that length that are embedded: both 12 x 768, with
//! random weights, on one core.

use crate::files::Files;
use crate::shapes::{BERT, RERANKER, make};
use crate::table::{Row, rate_ratio};
use crate::texts::Workloads;
use crate::timing::{Samples, seconds};
use crate::{Outcome, process};
use std::path::Path;
use std::process::Command;
use weighbridge::encoder::{Precision, Reranker, Settings};
use weighbridge::{Encoder, open};

pub const CHILD: &str = "rerank";

/// Short rounds, and many of them: a busy moment of the machine is then in some and not in others.
const ROUNDS: usize = 8;
const PAIRS: usize = 6;

/// Several processes, for where a model's weights lie in memory alone makes some percent.
const PROCESSES: usize = 5;

pub fn measure(files: &Files) -> Outcome<Vec<Row>> {
    let texts = Workloads::write(&files.work.join("texts"))?;
    let [reranker, base] = [&RERANKER, &BERT].map(|shape| files.work.join(shape.folder));
    make(&RERANKER, &files.model_folder, &reranker)?;
    make(&BERT, &files.model_folder, &base)?;
    let mut command = Command::new("taskset");
    command.args(["-c", "0"]).arg(std::env::current_exe()?);
    command.arg(CHILD).arg(&reranker).arg(&base).arg(&texts.p128.path);
    let mut samples: [Samples; 4] = Default::default();
    for _ in 0..PROCESSES {
        let more: [Samples; 4] = process::samples(&mut command)?;
        samples.iter_mut().zip(more).for_each(|(all, more)| all.0.extend(more.0));
    }
    let [f32, peer_f32, q8, peer_q8] = samples;
    let row = |precision, ours, peer| {
        let what = format!(
            "{precision}, {PAIRS} pairs of 128 tokens, 12 x 768, one core; peer: embedding as many"
        );
        rate_ratio(&what, ours, peer, PAIRS, "texts/s", 1.0)
    };
    Ok(vec![row("f32", &f32, &peer_f32), row("q8", &q8, &peer_q8)])
}

/// The measuring process. A passage is embedded, and its halves are a pair.
pub fn child(reranker: &Path, base: &Path, texts: &Path) -> Outcome<()> {
    let list: Vec<String> = serde_json::from_slice(&std::fs::read(texts)?)?;
    let list: Vec<String> = list.iter().cycle().take(PAIRS).cloned().collect();
    let halves = |text: &String| {
        let words: Vec<&str> = text.split(' ').collect();
        let (first, second) = words.split_at(words.len() / 2);
        (first.join(" "), second.join(" "))
    };
    let pairs: Vec<(String, String)> = list.iter().map(halves).collect();
    let container = open(reranker)?;
    let mut samples: [Samples; 4] = Default::default();
    for (precision, samples) in [Precision::F32, Precision::Q8].iter().zip(samples.chunks_mut(2)) {
        // As many tokens on both sides: a pair has one separator more than a text.
        let settings = Settings {
            precision: *precision,
            threads: Some(1),
            max_tokens: Some(128),
            ..Default::default()
        };
        let ours = Reranker::new(&container, &settings)?;
        let peer = Encoder::open_with(base, &settings)?;
        for round in 0..=ROUNDS {
            let (time, scores) = seconds(|| ours.score(&pairs));
            std::hint::black_box(scores?);
            let (peer_time, vectors) = seconds(|| peer.embed(&list));
            std::hint::black_box(vectors?);
            if round > 0 {
                samples[0].0.push(time);
                samples[1].0.push(peer_time);
            }
        }
    }
    process::print(&samples);
    Ok(())
}
