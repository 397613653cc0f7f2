//! Those that embed: our encoder in this process, the peers in processes of their own.

use super::Outcome;
use crate::files::Files;
use crate::process;
use crate::python::Python;
use crate::texts::Texts;
use crate::timing::{Samples, seconds};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use weighbridge::Encoder;
use weighbridge::encoder::{Precision, Settings};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/encode_peers.py");
const TRIALS: usize = 3;

/// The graph as it was exported, and with the operators for transformers.
pub const F32_GRAPHS: [&str; 2] = ["f32-plain", "f32-fused"];
pub const INT8_GRAPHS: [&str; 4] =
    ["int8-plain-matrix", "int8-plain-column", "int8-fused-matrix", "int8-fused-column"];
/// With weights in blocks, which are multiplied with rows that are rounded in blocks too.
pub const BLOCK_GRAPHS: [&str; 2] = ["int8-plain-blocks", "int8-fused-blocks"];

/// The files of both sides.
pub struct Made {
    /// The program and the Python of the peers.
    encoders: PathBuf,
    python: PathBuf,
    folder: PathBuf,
    /// Ours, in f32 and in q8.
    pub embd: PathBuf,
    pub mcf: PathBuf,
    /// What the peers want in place of the folder.
    graphs: PathBuf,
    pub texts: PathBuf,
}

impl Made {
    /// Makes the files; OpenVINO looks at the texts for its ranges.
    pub fn prepare(files: &Files, trial: &Texts) -> Outcome<Made> {
        let made = Made {
            encoders: files.encoders.clone(),
            python: files.encode_python.clone(),
            folder: files.model_folder.clone(),
            embd: files.model_embd.clone(),
            mcf: files.work.join("minilm-q8.mcf"),
            graphs: files.work.join("graphs"),
            texts: files.work.join("texts"),
        };
        // Made anew: it is to be what the program writes today.
        let _ = std::fs::remove_file(&made.mcf);
        let [verb, method, name] = ["quantize", "--method", "q8"].map(OsStr::new);
        let (from, to) = (made.folder.as_os_str(), made.mcf.as_os_str());
        process::run(&files.program, &[verb, from, to, method, name])?;
        if !made.graphs.join("made").exists() {
            let [script, verb] = [SCRIPT, "prepare"].map(OsStr::new);
            let (folder, to) = (made.folder.as_os_str(), made.graphs.as_os_str());
            process::run(&made.python, &[script, verb, folder, to, trial.path.as_os_str()])?;
        }
        Ok(made)
    }

    pub fn paths(&self) -> [&Path; 7] {
        let Made { encoders, python, folder, embd, mcf, graphs, texts } = self;
        [encoders, python, folder, embd, mcf, graphs, texts].map(PathBuf::as_path)
    }

    pub fn from_paths(paths: &[&Path]) -> Outcome<Made> {
        let paths: [&Path; 7] = paths.try_into().map_err(|_| "seven paths are needed")?;
        let [encoders, python, folder, embd, mcf, graphs, texts] = paths.map(Path::to_owned);
        Ok(Made { encoders, python, folder, embd, mcf, graphs, texts })
    }

    fn graph(&self, name: &str) -> PathBuf {
        self.graphs.join(name).with_extension("onnx")
    }

    pub fn ort(&self, graph: &str, threads: usize) -> Command {
        self.script("onnxruntime", &self.graph(graph), threads)
    }

    pub fn openvino(&self, precision: &str, threads: usize) -> Command {
        self.script("openvino", &self.graphs.join(precision).with_extension("xml"), threads)
    }

    pub fn torch(&self, threads: usize) -> Command {
        self.script("sentence-transformers", &self.folder, threads)
    }

    fn script(&self, who: &str, model: &Path, threads: usize) -> Command {
        let mut command = Command::new(&self.python);
        command.arg(SCRIPT).arg(who).arg(model).arg(threads.to_string());
        quiet(&mut command, threads);
        command
    }

    pub fn candle(&self, threads: usize) -> Command {
        self.encoder("candle", &self.folder, threads)
    }

    pub fn rten(&self, graph: &str, threads: usize) -> Command {
        self.encoder("rten", &self.graph(graph), threads)
    }

    fn encoder(&self, who: &str, model: &Path, threads: usize) -> Command {
        let mut command = Command::new(&self.encoders);
        command.arg(who).arg(model);
        quiet(&mut command, threads);
        command
    }
}

/// Tokenizers, candle and rten take their threads from the environment. Nothing is to be fetched.
fn quiet(command: &mut Command, threads: usize) {
    for name in ["RAYON_NUM_THREADS", "RTEN_NUM_THREADS"] {
        command.env(name, threads.to_string());
    }
    command.env("HF_HUB_OFFLINE", "1");
}

/// One that embeds: ours in this process, a peer in another.
pub enum Side {
    Ours(Box<Encoder>),
    Peer(Python),
}

impl Side {
    pub fn ours(path: &Path, precision: Precision, threads: usize) -> Outcome<Side> {
        let settings = Settings { precision, threads: Some(threads), ..Default::default() };
        Ok(Side::Ours(Box::new(Encoder::open_with(path, &settings)?)))
    }

    pub fn peer(command: Command) -> Outcome<Side> {
        Ok(Side::Peer(Python::spawn(command)?))
    }

    /// Seconds of each of several runs.
    pub fn embed(&mut self, texts: &Texts, runs: usize) -> Outcome<Vec<f64>> {
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
    pub fn vectors(&mut self, texts: &Texts, file: &Path) -> Outcome<Vec<f32>> {
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

/// The fastest of a peer's graphs on this machine.
pub fn choose(
    who: &str,
    trial: &Texts,
    graphs: &[&str],
    start: impl Fn(&str) -> Command,
) -> Outcome<Side> {
    let start = |graph: &&str| Side::peer(start(graph));
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
    eprintln!("{who}: {} is the fastest", graphs[chosen]);
    Ok(sides.swap_remove(chosen))
}
