//! Sentence embedding with all-MiniLM-L6-v2 on one core and on two, from text to vector, against
//! ONNX Runtime, sentence-transformers and candle.

use crate::files::Files;
use crate::python::Python;
use crate::table::{Row, cosines, memory_limit, rate_beside, rate_ratio, time_beside, time_limit};
use crate::texts::{Texts, Workloads};
use crate::timing::{Samples, seconds};
use crate::{Outcome, process};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use weighbridge::Encoder;
use weighbridge::encoder::{Precision, Settings};

pub const CHILD: &str = "encode";

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/encode_peers.py");
const ROUNDS: usize = 4;
/// The short text, in each round.
const SHORT_RUNS: usize = 100;
const START_ROUNDS: usize = 5;
const TRIALS: usize = 3;

/// Those whose times a measuring process prints, in this order.
const SIDES: usize = 7;
const OURS: usize = 0;
const OURS_Q8: usize = 1;
/// With one thread though there are two cores, so that both speeds are of the same moments.
const OURS_ALONE: usize = 2;
const ORT: usize = 3;
const ORT_INT8: usize = 4;
const TORCH: usize = 5;
const CANDLE: usize = 6;

const NAMES: [&str; SIDES] = [
    "ours",
    "ours",
    "ours on one",
    "ONNX Runtime",
    "ONNX Runtime int8",
    "sentence-transformers",
    "candle",
];
const F32_PEERS: [usize; 3] = [ORT, TORCH, CANDLE];

const WORKLOADS: usize = 4;
const MIXED: usize = 0;
const P128: usize = 1;
const P256: usize = 2;
const SHORT: usize = 3;

/// The graph as it was exported, and with the operators for transformers.
const F32_GRAPHS: [&str; 2] = ["f32-plain", "f32-fused"];
const INT8_GRAPHS: [&str; 4] =
    ["int8-plain-matrix", "int8-plain-column", "int8-fused-matrix", "int8-fused-column"];

pub fn measure(files: &Files) -> Outcome<Vec<Row>> {
    let made = Made::prepare(files)?;
    let texts = Workloads::write(&made.texts)?;
    let lengths = [&texts.mixed, &texts.p128, &texts.p256, &texts.short].map(|t| t.list.len());
    let (one, _) = measure_cores(&made, 1)?;
    let (two, found) = measure_cores(&made, 2)?;
    let mut rows = Vec::new();
    // Of f32: the fastest peer has the target, the others are shown beside.
    for (what, workload, limits) in [
        ("mixed texts", MIXED, [Some(1.05), Some(1.0)]),
        ("passages of 128 tokens", P128, [Some(1.05), Some(1.15)]),
        ("passages of 256 tokens", P256, [None, None]),
    ] {
        for ((cores, times), limit) in [("one core", &one), ("two cores", &two)].iter().zip(limits)
        {
            let times = &times[workload];
            for (place, peer) in fastest(times, F32_PEERS).into_iter().enumerate() {
                let what = format!("f32, {what}, {cores}; peer: {}", NAMES[peer]);
                let limit = limit.filter(|_| place == 0);
                rows.push(rates(&what, &times[OURS], &times[peer], lengths[workload], limit));
            }
        }
    }
    for (what, workload) in [("mixed texts", MIXED), ("passages of 128 tokens", P128)] {
        let (what, times) =
            (format!("f32, {what}, two cores; peer: ours, one thread"), &two[workload]);
        let count = lengths[workload];
        rows.push(rates(&what, &times[OURS], &times[OURS_ALONE], count, Some(1.75)));
    }
    for (what, workload, limit) in [
        ("mixed texts", MIXED, Some(1.5)),
        ("passages of 128 tokens", P128, Some(1.5)),
        ("passages of 256 tokens", P256, None),
    ] {
        for (cores, times) in [("one core", &one), ("two cores", &two)] {
            let (what, times) =
                (format!("q8, {what}, {cores}; peer: {}", NAMES[ORT_INT8]), &times[workload]);
            let count = lengths[workload];
            rows.push(rates(&what, &times[OURS_Q8], &times[ORT_INT8], count, limit));
        }
    }
    for (cores, times, limits) in [
        ("one core", &one[SHORT], [None, None]),
        ("two cores", &two[SHORT], [Some(2.2e-3), Some(0.8e-3)]),
    ] {
        let peer = fastest(times, F32_PEERS)[0];
        let sides = [("f32", OURS, peer), ("q8", OURS_Q8, ORT_INT8)];
        for ((precision, ours, peer), limit) in sides.into_iter().zip(limits) {
            let what = format!("{precision}, a short text, {cores}; peer: {}", NAMES[peer]);
            rows.push(match limit {
                Some(limit) => time_limit(&what, &times[ours], &times[peer], limit),
                None => time_beside(&what, &times[ours], &times[peer]),
            });
        }
    }
    rows.extend(measure_start(files, &made)?);
    let what = "lowest / mean cosine to sentence-transformers";
    for (precision, ours, peers) in
        [("f32", OURS, &[ORT, CANDLE][..]), ("q8", OURS_Q8, &[ORT_INT8])]
    {
        for &peer in peers {
            let what = format!("{precision}, {what}; peer: {}", NAMES[peer]);
            rows.push(cosines(&what, found[ours], found[peer]));
        }
    }
    Ok(rows)
}

fn rates(what: &str, ours: &Samples, peer: &Samples, count: usize, limit: Option<f64>) -> Row {
    match limit {
        Some(limit) => rate_ratio(what, ours, peer, count, "texts/s", limit),
        None => rate_beside(what, ours, peer, count, "texts/s"),
    }
}

/// In the order of their best times.
fn fastest(times: &[Samples; SIDES], mut peers: [usize; 3]) -> [usize; 3] {
    peers.sort_by(|&a, &b| times[a].best().total_cmp(&times[b].best()));
    peers
}

/// The files of both sides.
struct Made {
    /// The program and the Python of the peers.
    candle: PathBuf,
    python: PathBuf,
    folder: PathBuf,
    /// Ours, in f32 and in q8.
    embd: PathBuf,
    mcf: PathBuf,
    onnx: PathBuf,
    texts: PathBuf,
}

impl Made {
    fn prepare(files: &Files) -> Outcome<Made> {
        let made = Made {
            candle: files.candle.clone(),
            python: files.encode_python.clone(),
            folder: files.model_folder.clone(),
            embd: files.model_embd.clone(),
            mcf: files.work.join("minilm-q8.mcf"),
            onnx: files.work.join("onnx"),
            texts: files.work.join("texts"),
        };
        // Made anew: it is to be what the program writes today.
        let _ = std::fs::remove_file(&made.mcf);
        let [verb, method, name] = ["quantize", "--method", "q8"].map(OsStr::new);
        let (from, to) = (made.folder.as_os_str(), made.mcf.as_os_str());
        process::run(&files.program, &[verb, from, to, method, name])?;
        if !made.onnx.join("made").exists() {
            let [script, verb] = [SCRIPT, "prepare"].map(OsStr::new);
            let to = made.onnx.as_os_str();
            process::run(&made.python, &[script, verb, made.folder.as_os_str(), to])?;
        }
        Ok(made)
    }

    fn paths(&self) -> [&Path; 7] {
        let Made { candle, python, folder, embd, mcf, onnx, texts } = self;
        [candle, python, folder, embd, mcf, onnx, texts].map(PathBuf::as_path)
    }

    fn from_paths(paths: &[&Path]) -> Outcome<Made> {
        let paths: [&Path; 7] = paths.try_into().map_err(|_| "seven paths are needed")?;
        let [candle, python, folder, embd, mcf, onnx, texts] = paths.map(Path::to_owned);
        Ok(Made { candle, python, folder, embd, mcf, onnx, texts })
    }

    fn graph(&self, name: &str) -> PathBuf {
        self.onnx.join(name).with_extension("onnx")
    }

    fn ort(&self, graph: &str, threads: usize) -> Command {
        self.script("onnxruntime", &self.graph(graph), threads)
    }

    fn torch(&self, threads: usize) -> Command {
        self.script("sentence-transformers", &self.folder, threads)
    }

    fn script(&self, who: &str, model: &Path, threads: usize) -> Command {
        let mut command = Command::new(&self.python);
        command.arg(SCRIPT).arg(who).arg(model).arg(threads.to_string());
        quiet(&mut command, threads);
        command
    }

    fn candle(&self, threads: usize) -> Command {
        let mut command = Command::new(&self.candle);
        command.arg(&self.folder);
        quiet(&mut command, threads);
        command
    }
}

/// Tokenizers and candle take their threads from the environment. Nothing is to be fetched.
fn quiet(command: &mut Command, threads: usize) {
    command.env("RAYON_NUM_THREADS", threads.to_string());
    command.env("HF_HUB_OFFLINE", "1");
}

type Times = [[Samples; SIDES]; WORKLOADS];

/// In processes of their own, because all sides fix their threads when they start. Returns the
/// times of each workload and side, and each side's cosines.
fn measure_cores(made: &Made, cores: usize) -> Outcome<(Times, [[f64; 2]; SIDES])> {
    let list = (0..cores).map(|core| core.to_string()).collect::<Vec<_>>().join(",");
    let mut command = Command::new("taskset");
    command.arg("-c").arg(list).arg(std::env::current_exe()?);
    command.arg(CHILD).args(made.paths()).arg(cores.to_string());
    let lines: [Samples; (WORKLOADS + 1) * SIDES] = process::samples(&mut command)?;
    let mut lines = lines.into_iter();
    let mut next = || lines.next().unwrap_or_default();
    let times = std::array::from_fn(|_| std::array::from_fn(|_| next()));
    let cosines = std::array::from_fn(|_| match next().0.as_slice() {
        [lowest, mean] => [*lowest, *mean],
        _ => [f64::NAN; 2],
    });
    Ok((times, cosines))
}

/// One that embeds: ours in this process, a peer in another.
enum Side {
    Ours(Box<Encoder>),
    Peer(Python),
}

impl Side {
    fn ours(path: &Path, precision: Precision, threads: usize) -> Outcome<Side> {
        let settings = Settings { precision, threads: Some(threads), ..Default::default() };
        Ok(Side::Ours(Box::new(Encoder::open_with(path, &settings)?)))
    }

    fn peer(command: Command) -> Outcome<Side> {
        Ok(Side::Peer(Python::spawn(command)?))
    }

    /// Seconds of each of several runs.
    fn embed(&mut self, texts: &Texts, runs: usize) -> Outcome<Vec<f64>> {
        match self {
            Side::Ours(encoder) => {
                let list: Vec<&str> = texts.list.iter().map(String::as_str).collect();
                let run = || {
                    let (time, vectors) = seconds(|| encoder.embed(&list));
                    std::hint::black_box(vectors?);
                    Ok(time)
                };
                std::iter::repeat_with(run).take(runs).collect()
            }
            Side::Peer(peer) => {
                let answer =
                    peer.ask(&["embed", &texts.path.to_string_lossy(), &runs.to_string()])?;
                Ok(serde_json::from_value(answer)?)
            }
        }
    }

    /// The vectors one after the other; a peer leaves them in a file.
    fn vectors(&mut self, texts: &Texts, file: &Path) -> Outcome<Vec<f32>> {
        match self {
            Side::Ours(encoder) => {
                let list: Vec<&str> = texts.list.iter().map(String::as_str).collect();
                Ok(encoder.embed(&list)?.concat())
            }
            Side::Peer(peer) => {
                let paths = [&texts.path, file].map(|path| path.to_string_lossy());
                peer.ask(&["vectors", &paths[0], &paths[1]])?;
                let bytes = std::fs::read(file)?;
                std::fs::remove_file(file)?;
                let values =
                    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
                Ok(values.collect())
            }
        }
    }
}

/// The measuring process. Prints a line of times for each workload and side, then a line of the
/// lowest and the mean cosine for each side.
pub fn child(paths: &[&Path], cores: usize) -> Outcome<()> {
    let made = Made::from_paths(paths)?;
    let texts = Workloads::read(&made.texts)?;
    let mut sides: [Side; SIDES] = [
        Side::ours(&made.embd, Precision::F32, cores)?,
        Side::ours(&made.mcf, Precision::Q8, cores)?,
        Side::ours(&made.embd, Precision::F32, 1)?,
        choose(&made, &texts.trial, cores, &F32_GRAPHS)?,
        choose(&made, &texts.trial, cores, &INT8_GRAPHS)?,
        Side::peer(made.torch(cores))?,
        Side::peer(made.candle(cores))?,
    ];
    for side in &mut sides {
        side.embed(&texts.trial, 1)?;
        side.embed(&texts.short, SHORT_RUNS)?;
    }
    let mut samples: Times = Default::default();
    for _ in 0..ROUNDS {
        let workloads = [&texts.mixed, &texts.p128, &texts.p256, &texts.short];
        for (number, (texts, samples)) in workloads.into_iter().zip(&mut samples).enumerate() {
            let runs = if number == SHORT { SHORT_RUNS } else { 1 };
            for (who, (side, samples)) in sides.iter_mut().zip(samples).enumerate() {
                // With one core it would be the first side again.
                if who != OURS_ALONE || cores > 1 {
                    samples.0.extend(side.embed(texts, runs)?);
                }
            }
        }
    }
    samples.iter().for_each(|samples| process::print(samples));
    let file = made.texts.join("vectors.f32");
    let right = sides[TORCH].vectors(&texts.all, &file)?;
    let dimensions = right.len() / texts.all.list.len();
    for (who, side) in sides.iter_mut().enumerate() {
        let vectors = side.vectors(&texts.all, &file)?;
        if vectors.len() != right.len() {
            return Err(format!("{} made vectors of another size", NAMES[who]).into());
        }
        let pairs = vectors.chunks(dimensions).zip(right.chunks(dimensions));
        let found: Vec<f64> = pairs.map(|(a, b)| cosine(a, b)).collect();
        let lowest = found.iter().copied().fold(f64::INFINITY, f64::min);
        let mean = found.iter().sum::<f64>() / found.len() as f64;
        // Speed says nothing of a side that computes something else.
        if who != OURS_Q8 && who != ORT_INT8 && (lowest.is_nan() || lowest < 0.999) {
            return Err(format!("{} is not the same model: cosine {lowest}", NAMES[who]).into());
        }
        process::print(&[Samples(vec![lowest, mean])]);
    }
    Ok(())
}

/// The fastest of a peer's graphs on this machine.
fn choose(made: &Made, trial: &Texts, cores: usize, graphs: &[&str]) -> Outcome<Side> {
    let start = |graph: &&str| Side::peer(made.ort(graph, cores));
    let mut sides: Vec<Side> = graphs.iter().map(start).collect::<Outcome<_>>()?;
    let mut times = vec![Samples::default(); graphs.len()];
    for round in 0..=TRIALS {
        for (side, times) in sides.iter_mut().zip(&mut times) {
            let found = side.embed(trial, 1)?;
            if round > 0 {
                times.0.extend(found);
            }
        }
    }
    let best = |&a: &usize, &b: &usize| times[a].best().total_cmp(&times[b].best());
    let chosen = (0..graphs.len()).min_by(best).ok_or("there are graphs")?;
    eprintln!("ONNX Runtime on {cores} cores: {} is the fastest", graphs[chosen]);
    Ok(sides.swap_remove(chosen))
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

/// Whole processes, from their start to the vector of one text, and their memory till they end.
fn measure_start(files: &Files, made: &Made) -> Outcome<Vec<Row>> {
    let text = "How do I reset my password on this site?";
    let ours = |model: &Path, precision: &str| {
        let mut command = Command::new(&files.program);
        command.args(["embed", "--precision", precision, "--model"]).arg(model);
        command
    };
    let all = std::thread::available_parallelism()?.get();
    let start: [&dyn Fn() -> Command; 6] = [
        &|| ours(&made.embd, "f32"),
        &|| ours(&made.mcf, "q8"),
        &|| made.ort("f32-fused", all),
        &|| made.ort("int8-fused-column", all),
        &|| made.torch(all),
        &|| made.candle(all),
    ];
    let mut times: [Samples; 6] = Default::default();
    let mut memory = [0; 6];
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
    let peers =
        peers.into_iter().chain([("f32 from EMBD", 0, 5, CANDLE), ("q8 from MCF", 1, 3, ORT_INT8)]);
    for (what, ours, peer, name) in peers.clone() {
        let limit = if ours == 0 { 60e-3 } else { 40e-3 };
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
