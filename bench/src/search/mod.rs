//! Exact search of the nearest rows on one core and on two, against faiss, torch, SimSIMD, NumKong,
//! usearch and NumPy.

mod data;
pub mod limits;
mod load;
mod turns;

pub use turns::child;

use crate::files::Files;
use crate::table::{
    Row, memory_alone, rate_beside, rate_ratio, recall, throughput_beside, throughput_ratio,
    time_alone, time_beside, time_ratio,
};
use crate::timing::{Samples, seconds};
use crate::{Outcome, process};
use data::{SETS, Set};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use weighbridge::Index;
use weighbridge::search::{Ask, Metric, Query};

/// First arguments of processes that measure or are measured.
pub const CHILD: &str = "search";
pub const MEMORY: &str = "search-memory";

const MILLION: usize = 1_000_000;
const NEIGHBOURS: usize = 10;
const BATCHES: [usize; 3] = [1, 64, data::QUERIES];
const OPEN_ROUNDS: usize = 10;
const START_ROUNDS: usize = 20;

/// If others keep more cores busy than this, rows say so.
const MOST_OTHERS: f64 = 0.1;

/// Sides that are no peers.
const OURS: &str = " ours";
const COSINE: &str = " ours, cosine";
const READ: &str = " reading";
const LOOP: &str = " loop";
const PRODUCT: &str = " product";

/// What was measured of a set of rows with batches of a size.
#[derive(Default, Serialize, Deserialize)]
struct Case {
    times: BTreeMap<String, Vec<f64>>,
    recall: BTreeMap<String, f64>,
    /// Seconds of all peers with the first rows only, and of those that were not measured with all.
    tried: BTreeMap<String, f64>,
    left_out: BTreeMap<String, f64>,
    /// How many cores other processes kept busy in the meantime.
    others: f64,
}

type Cases = BTreeMap<String, Case>;

/// All sizes, or those that `SEARCH_BATCHES` names: 2,048 takes most of the time.
fn batches() -> Outcome<Vec<usize>> {
    match std::env::var("SEARCH_BATCHES") {
        Ok(list) => list.split(',').map(|size| Ok(size.trim().parse()?)).collect(),
        Err(_) => Ok(BATCHES.into()),
    }
}

fn key(set: &Set, batch: usize) -> String {
    format!("{} {batch}", set.name)
}

impl Case {
    fn side(&self, name: &str) -> Outcome<Samples> {
        let times = self.times.get(name).ok_or(format!("{name:?} was not measured"))?;
        Ok(Samples(times.clone()))
    }

    /// In the order of their best times.
    fn peers(&self) -> Vec<(&str, Samples)> {
        let peers = self.times.iter().filter(|(name, _)| !name.starts_with(' '));
        let mut peers: Vec<_> =
            peers.map(|(name, times)| (name.as_str(), Samples(times.clone()))).collect();
        peers.sort_by(|a, b| a.1.best().total_cmp(&b.1.best()));
        peers
    }
}

pub fn measure(files: &Files) -> Outcome<Vec<Row>> {
    let folder = data::prepare(files)?;
    let cores = [
        ("one core", measure_cores(files, &folder, 1)?),
        ("two cores", measure_cores(files, &folder, 2)?),
    ];
    let mut rows = Vec::new();
    for batch in BATCHES {
        for set in &SETS {
            for (cores, cases) in &cores {
                if let Some(case) = cases.get(&key(set, batch)) {
                    rows.extend(rows_of(set, batch, cores, case)?);
                }
            }
        }
    }
    for set in &SETS {
        for batch in [1, 64] {
            let Some(case) = cores[0].1.get(&key(set, batch)) else { continue };
            let what = format!("{}, batches of {batch}: share of the nearest rows", set.name);
            let row = |(peer, share): (&String, &f64)| {
                recall(&format!("{what}; peer: {peer}"), 1.0, *share)
            };
            rows.extend(case.recall.iter().map(row));
        }
    }
    rows.extend(measure_open(&folder)?);
    rows.extend(measure_memory(&folder)?);
    rows.extend(measure_start(files, &folder)?);
    Ok(rows)
}

/// In a process of its own, because all sides fix their threads when they start.
fn measure_cores(files: &Files, folder: &Path, cores: usize) -> Outcome<Cases> {
    let list = (0..cores).map(|core| core.to_string()).collect::<Vec<_>>().join(",");
    let mut command = Command::new("taskset");
    command.arg("-c").arg(list).arg(std::env::current_exe()?).arg(CHILD);
    command.arg(&files.search_python).arg(folder).arg(cores.to_string());
    command.env("RAYON_NUM_THREADS", cores.to_string());
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("a measuring process failed: {}", output.status).into());
    }
    // So that nothing is lost if what comes later fails.
    std::fs::write(folder.join(format!("times-{cores}.json")), &output.stdout)?;
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn rows_of(set: &Set, batch: usize, cores: &str, case: &Case) -> Outcome<Vec<Row>> {
    let what = match batch {
        1 => format!("{}, one query, {cores}", set.name),
        _ => format!("{}, batch of {batch}, {cores}", set.name),
    };
    // Not a footnote: the peers lose more by it than we do.
    let what = match case.others {
        others if others > MOST_OTHERS => format!("{what} (BUSY: others had {others:.1} cores)"),
        _ => what,
    };
    let ours = case.side(OURS)?;
    let mut rows = Vec::new();
    for (place, (peer, times)) in case.peers().iter().enumerate() {
        let named = format!("{what}; peer: {peer}");
        // The fastest has the target, but for large batches, where it is faiss.
        let target = if batch > 64 { *peer == "faiss" } else { place == 0 };
        rows.push(match (batch, set.kind) {
            (1, _) if target => time_ratio(&named, &ours, times, 1.0),
            (1, _) => time_beside(&named, &ours, times),
            (64, "int8" | "f32") if target => {
                rate_ratio(&named, &ours, times, batch, "queries/s", 1.3)
            }
            (2048, kind) if target => {
                let limit = if kind == "int8" { 4.0 } else { 1.0 };
                rate_ratio(&named, &ours, times, batch, "queries/s", limit)
            }
            _ => rate_beside(&named, &ours, times, batch, "queries/s"),
        });
    }
    for (peer, time) in &case.left_out {
        let fastest = case.tried.values().copied().fold(f64::INFINITY, f64::min);
        eprintln!(
            "{what}: {peer} is left out, with {:.1} times of the fastest peer's time",
            time / fastest
        );
    }
    if let Ok(cosine) = case.side(COSINE) {
        rows.push(time_alone(&format!("{what}, cosine"), &cosine, None));
    }
    if batch == 1 {
        let (read, bytes) = (case.side(READ)?, set.bytes() as u64);
        let bare = case.side(LOOP).ok();
        let slower = bare.as_ref().is_some_and(|bare| bare.best() > read.best());
        // One of the two is the limit; the other is shown beside.
        let reading = format!("{what}; peer: reading the bytes");
        rows.push(match slower {
            true => throughput_beside(&reading, &ours, &read, bytes),
            false => throughput_ratio(&reading, &ours, &read, bytes, 0.9),
        });
        if let Some(bare) = bare {
            let named = format!("{what}; peer: our products alone");
            rows.push(match slower {
                true => throughput_ratio(&named, &ours, &bare, bytes, 0.85),
                false => throughput_beside(&named, &ours, &bare, bytes),
            });
        }
    }
    if let Ok(product) = case.side(PRODUCT) {
        // It is one of fewer rows.
        let share = set.rows as f64 / 65536.0;
        let product = Samples(product.0.iter().map(|time| time * share).collect());
        let operations = 2 * batch * set.rows * set.dim / 1_000_000_000;
        let named = format!("{what}; peer: f32 matrix product alone");
        rows.push(rate_beside(&named, &ours, &product, operations, "Gop/s"));
    }
    Ok(rows)
}

/// A million rows with records.
fn measure_open(folder: &Path) -> Outcome<Vec<Row>> {
    let path = SETS[1].path(folder);
    let mut samples = Samples::default();
    for _ in 0..=OPEN_ROUNDS {
        let (time, index) = seconds(|| Index::open(&path));
        if !index?.has_records() {
            return Err("the rows have no records".into());
        }
        samples.0.push(time);
    }
    samples.0.remove(0);
    Ok(vec![time_alone("Index::open, 1,000,000 x 384 int8 with records", &samples, Some(10e-3))])
}

/// Anonymous memory while the f32 rows are searched.
fn measure_memory(folder: &Path) -> Outcome<Vec<Row>> {
    let this = std::env::current_exe()?;
    let of_batch = |batch: usize| {
        let size = batch.to_string();
        let arguments = [MEMORY.as_ref(), folder.as_os_str(), OsStr::new(&size)];
        let bytes = process::peak_memory(&this, &arguments)?;
        let what = format!("1,000,000 x 384 f32, batches of {batch}, two cores: anonymous memory");
        Ok(memory_alone(&what, bytes))
    };
    [1, 64].map(of_batch).into_iter().collect()
}

/// The process whose memory is watched.
pub fn memory(folder: &Path, batch: usize) -> Outcome<()> {
    let set = &SETS[3];
    let index = Index::open(set.path(folder))?;
    let queries = set.queries(folder)?;
    let queries: Vec<_> =
        queries.chunks(set.dim).map(|vector| Query { vector, exclude: &[] }).collect();
    for queries in queries.chunks(batch).take(3) {
        index.search_batch(queries, &Ask::new(NEIGHBOURS, Metric::Dot))?;
    }
    Ok(())
}

/// Whole processes, from their start to the answer for a text.
fn measure_start(files: &Files, folder: &Path) -> Outcome<Vec<Row>> {
    let (model, notes) = data::prepare_notes(files, folder)?;
    let arguments = ["search".as_ref(), notes.as_os_str(), "a text".as_ref(), "--json".as_ref()];
    // The file does not say with which precision its rows were made.
    let model = ["-m".as_ref(), model.as_os_str(), "--precision".as_ref(), "q8".as_ref()];
    let mut samples = Samples::default();
    for round in 0..=START_ROUNDS {
        let (time, done) =
            seconds(|| process::run(&files.program, &[&arguments[..], &model].concat()));
        done?;
        if round > 0 {
            samples.0.push(time);
        }
    }
    let what = "weighbridge search over 50,000 x 384 int8, a text, q8: the whole process";
    Ok(vec![time_alone(what, &samples, Some(60e-3))])
}
