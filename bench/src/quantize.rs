//! Block quantization on one core, against the types of ggml that are used for the same; and
//! `weighbridge quantize` as a whole process.

use crate::Outcome;
use crate::files::Files;
use crate::ggml::{Codec, Type};
use crate::process;
use crate::table::{Row, throughput_ratio, time_limit};
use crate::timing::in_turn;
use safetensors::SafeTensors;
use std::cell::RefCell;
use std::ffi::OsStr;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};
use weighbridge::codec::block::{BlockCodec, BlockEncoder, BlockType, Layout, Recipe};

const DECODE_ROUNDS: usize = 40;
const ENCODE_ROUNDS: usize = 5;
const PROCESS_ROUNDS: usize = 10;

/// What is measured of a method, and what is asked of it.
struct Case {
    codec: &'static dyn BlockCodec,
    peer: Type,
    encoder: BlockEncoder,
    /// The speed of the peer that ours should at least be.
    decode: f64,
    encode: f64,
    /// The relative error that neither may exceed; more would mean that it was used wrongly.
    error: f64,
}

const CASES: [Case; 6] = [
    Case {
        codec: &BlockType::Q8,
        peer: Type::Q8_0,
        encoder: BlockEncoder::Reference,
        decode: 1.0,
        encode: 1.0,
        error: 0.01,
    },
    Case {
        codec: &BlockType::Q4,
        peer: Type::Q4_0,
        encoder: BlockEncoder::Reference,
        decode: 1.0,
        encode: 1.0,
        error: 0.15,
    },
    Case {
        codec: &BlockType::K6,
        peer: Type::Q6_K,
        encoder: BlockEncoder::Best,
        decode: 2.0,
        encode: 5.0,
        error: 0.04,
    },
    Case {
        codec: &BlockType::K4,
        peer: Type::Q4_K,
        encoder: BlockEncoder::Best,
        decode: 0.8,
        encode: 5.0,
        error: 0.15,
    },
    Case {
        codec: &BlockType::K3,
        peer: Type::Q3_K,
        encoder: BlockEncoder::Best,
        decode: 2.0,
        encode: 1.0,
        error: 0.3,
    },
    Case {
        codec: &BlockType::K2,
        peer: Type::Q2_K,
        encoder: BlockEncoder::Best,
        decode: 2.0,
        encode: 5.0,
        error: 0.6,
    },
];

pub fn measure(files: &Files) -> Outcome<Vec<Row>> {
    let weights = Weights::read(&files.model)?;
    let (mut decoding, mut encoding) = (Vec::new(), Vec::new());
    for case in &CASES {
        let [decode, encode] = measure_case(case, &weights, &files.ggml)?;
        decoding.push(decode);
        encoding.push(encode);
    }
    let mut processes = vec![measure_process(files, "k4", false, 1.0)?];
    for method in ["k4", "q8"] {
        processes.push(measure_process(files, method, true, 2.0)?);
    }
    Ok(decoding.into_iter().chain(encoding).chain(processes).collect())
}

/// The whole process, with calibrating or without.
fn measure_process(files: &Files, method: &str, calibrates: bool, limit: f64) -> Outcome<Row> {
    let to = files.work.join("quantized.mcf");
    let mut args = ["quantize", "--method", method, "--force", "--json"].map(OsStr::new).to_vec();
    args.extend([files.model_folder.as_os_str(), to.as_os_str()]);
    if !calibrates {
        args.push(OsStr::new("--no-calibrate"));
    }
    let quantize = || process::run(&files.program, &args).expect("the model can be quantized");
    let start = || process::run("true", &[]).expect("`true` runs");
    let [ours, peer] = in_turn(PROCESS_ROUNDS, [&mut || quantize(), &mut || start()]);
    let vectors = if calibrates { vectors(files, &args)? } else { "not calibrated".to_owned() };
    std::fs::remove_file(to)?;
    let what =
        format!("quantize MiniLM with {method}, {vectors}, all cores (process); peer: `true`");
    Ok(time_limit(&what, &ours, &peer, limit))
}

/// What the report says of the vectors of texts that were not used to calibrate.
fn vectors(files: &Files, args: &[&OsStr]) -> Outcome<String> {
    let output = Command::new(&files.program).args(args).stderr(Stdio::inherit()).output()?;
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let cosine = |name: &str| report["calibrated"][name].as_f64().ok_or("it was not calibrated");
    let (mean, worst) = (cosine("mean_cosine")?, cosine("worst_cosine")?);
    Ok(format!("calibrated: cosine {mean:.5} ({worst:.5})"))
}

fn measure_case(case: &Case, weights: &Weights, library: &Path) -> Outcome<[Row; 2]> {
    let peer = Codec::load(library, &case.peer)?;
    let mut payloads = weights.payloads(case.codec);
    let mut quantized = vec![0; peer.size(weights.values.len())];
    let encoding = in_turn(
        ENCODE_ROUNDS,
        [&mut || weights.encode(case, &mut payloads), &mut || {
            peer.quantize(&weights.values, &mut quantized);
        }],
    );
    // Both write to the same memory, which is there already.
    let out = RefCell::new(weights.values.clone());
    let ours = || weights.decode(case.codec, &payloads, &mut out.borrow_mut());
    let theirs = || peer.dequantize(&quantized, &mut out.borrow_mut());
    let errors = [&ours as &dyn Fn(), &theirs].map(|decode| {
        decode();
        relative_error(&weights.values, &out.borrow())
    });
    assert!(errors.iter().all(|&e| e < case.error), "errors of {}: {errors:?}", case.codec.name());
    let decoding = in_turn(DECODE_ROUNDS, [&mut || ours(), &mut || theirs()]);

    let (method, peer) = (case.codec.name(), case.peer.name);
    let [error, peer_error] = errors.map(|e| format!("error {:.2} %", 100.0 * e));
    let row = |what: &str, [ours, peer]: &[_; 2], limit: f64| {
        throughput_ratio(what, ours, peer, 4 * weights.values.len() as u64, limit)
    };
    let decode = format!("decode {method}; peer: ggml {peer}");
    let encode = format!("encode {method}, {error}; peer: ggml {peer}, {peer_error}");
    Ok([row(&decode, &decoding, case.decode), row(&encode, &encoding, case.encode)])
}

/// The linear weights of a model.
struct Weights {
    /// Those of all matrices, one behind the other.
    values: Vec<f32>,
    matrices: Vec<Matrix>,
}

struct Matrix {
    rows: usize,
    cols: usize,
    /// Where its values are.
    place: Range<usize>,
    /// The largest absolute value.
    largest: f32,
}

impl Weights {
    fn read(model: &Path) -> Outcome<Weights> {
        let bytes = std::fs::read(model)?;
        let tensors = SafeTensors::deserialize(&bytes)?;
        let (mut values, mut matrices) = (Vec::new(), Vec::new());
        for (name, view) in tensors.iter() {
            let &[rows, cols] = view.shape() else { continue };
            if !name.starts_with("encoder.layer.") || !name.ends_with(".weight") {
                continue;
            }
            let start = values.len();
            values.extend(
                view.data()
                    .chunks_exact(4)
                    .map(|b| f32::from_le_bytes(b.try_into().expect("four bytes"))),
            );
            let largest = values[start..].iter().fold(0.0, |most: f32, v| most.max(v.abs()));
            matrices.push(Matrix { rows, cols, place: start..values.len(), largest });
        }
        if values.len() != 10_616_832 {
            return Err(format!("{} linear weights in the model", values.len()).into());
        }
        Ok(Weights { values, matrices })
    }

    /// Room for each matrix.
    fn payloads(&self, codec: &'static dyn BlockCodec) -> Vec<Vec<u8>> {
        self.matrices.iter().map(|m| vec![0; m.layout(codec).size as usize]).collect()
    }

    fn encode(&self, case: &Case, payloads: &mut [Vec<u8>]) {
        for (matrix, payload) in self.matrices.iter().zip(payloads) {
            let layout = matrix.layout(case.codec);
            let clip = (-matrix.largest, matrix.largest);
            let recipe = Recipe { encoder: case.encoder, clip, importance: None };
            let (front, codes) = payload.split_at_mut(layout.codes.start as usize);
            let rows = self.values[matrix.place.clone()].chunks_exact(matrix.cols);
            let codes = codes.chunks_exact_mut(layout.codes.row_bytes as usize);
            for (i, (row, codes)) in (0..).zip(rows.zip(codes)) {
                let front = layout.front_of_mut(front, i);
                let encoded = case.codec.encode(&recipe, row, front, codes);
                encoded.expect("the scales of weights fit");
            }
        }
    }

    fn decode(&self, codec: &'static dyn BlockCodec, payloads: &[Vec<u8>], out: &mut [f32]) {
        for (matrix, payload) in self.matrices.iter().zip(payloads) {
            let layout = matrix.layout(codec);
            let (front, codes) = payload.split_at(layout.codes.start as usize);
            let rows = out[matrix.place.clone()].chunks_exact_mut(matrix.cols);
            let codes = codes.chunks_exact(layout.codes.row_bytes as usize);
            for (i, (row, codes)) in (0..).zip(rows.zip(codes)) {
                codec.decode(layout.front_of(front, i, 0..layout.cols), codes, 0, row);
            }
        }
    }
}

impl Matrix {
    fn layout(&self, codec: &'static dyn BlockCodec) -> Layout {
        Layout::new(codec, self.rows as u64, self.cols as u64).expect("it is small")
    }
}

fn relative_error(exact: &[f32], found: &[f32]) -> f64 {
    let square = |x: f32| f64::from(x) * f64::from(x);
    let wrong: f64 = exact.iter().zip(found).map(|(a, b)| square(a - b)).sum();
    let all: f64 = exact.iter().map(|a| square(*a)).sum();
    (wrong / all).sqrt()
}
