//! Static models: texts to vectors by a table of the tokens' vectors, beside model2vec-rs, with the same
//! model, distilled from the real one. In tokens a second.

use crate::files::Files;
use crate::table::{Row, rate_ratio};
use crate::texts::Workloads;
use crate::timing::{Samples, seconds};
use crate::{Outcome, process};
use model2vec_rs::model::StaticModel;
use std::path::Path;
use std::process::Command;
use weighbridge::distill::{DistillSettings, RowType, distill};
use weighbridge::encoder::Settings;
use weighbridge::{Encoder, Output, Progress};

pub const CHILD: &str = "static";

const ROUNDS: usize = 7;

pub fn measure(files: &Files) -> Outcome<Vec<Row>> {
    let texts = Workloads::write(&files.work.join("texts"))?;
    let folder = files.work.join("static-model");
    let mut settings = DistillSettings::default();
    settings.rows = RowType::F32;
    let made = distill(&weighbridge::open(&files.model_folder)?, &settings, &mut Progress::none())?;
    let plan = weighbridge::plan(&made.container, "hf")?;
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    plan.write(Output::new(&folder).overwrite(true), &mut Progress::none())?;
    let mut rows = Vec::new();
    for (what, list) in [("mixed texts", &texts.mixed), ("128 tokens", &texts.p128)] {
        for (cores, name) in [("0", "one core"), ("0,1", "two cores")] {
            let mut command = Command::new("taskset");
            command.arg("-c").arg(cores).arg(std::env::current_exe()?);
            command.arg(CHILD).arg(&folder).arg(&list.path);
            let [ours, peer, tokens] = process::samples(&mut command)?;
            let what = format!("{what}, {name}; peer: model2vec-rs");
            let tokens = tokens.0.first().copied().unwrap_or(0.0) as usize;
            rows.push(rate_ratio(&what, &ours, &peer, tokens, "tokens/s", 1.0));
        }
    }
    Ok(rows)
}

/// The measuring process, bound to as many cores as there are to be threads. Prints times of ours and of
/// the peer, and the number of tokens.
pub fn child(folder: &Path, texts: &Path) -> Outcome<()> {
    let list: Vec<String> = serde_json::from_slice(&std::fs::read(texts)?)?;
    // Enough that a round takes longer than a moment.
    let list: Vec<String> = list.iter().cycle().take(20_000).cloned().collect();
    let threads = std::thread::available_parallelism()?.get();
    let settings = Settings { threads: Some(threads), ..Settings::default() };
    let encoder = Encoder::open_with(folder, &settings)?;
    let peer = StaticModel::from_pretrained(folder, None, None, None)?;
    let mut samples: [Samples; 3] = Default::default();
    for round in 0..=ROUNDS {
        let (time, ours) = seconds(|| encoder.embed(&list));
        let (ours, taken) = (ours?, time);
        let (time, theirs) = seconds(|| peer.encode(&list));
        let pairs = ours.iter().flatten().zip(theirs.iter().flatten());
        let apart = pairs.fold(0f32, |most, (a, b)| most.max((a - b).abs()));
        if apart > 1e-5 {
            return Err(format!("the vectors differ by {apart}").into());
        }
        if round > 0 {
            samples[0].0.push(taken);
            samples[1].0.push(time);
        }
    }
    let tokens = list.iter().map(|text| {
        let mut ids = Vec::new();
        encoder.tokenizer().encode_into(text, encoder.max_tokens(), &mut ids);
        ids.len()
    });
    samples[2].0 = vec![tokens.sum::<usize>() as f64];
    process::print(&samples);
    Ok(())
}
