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
use weighbridge::codec::block::{BlockEncoder, BlockRows, BlockType, Layout, Recipe};

const DECODE_ROUNDS: usize = 40;
const ENCODE_ROUNDS: usize = 5;
const PROCESS_ROUNDS: usize = 10;

/// What is measured of a method, and what is asked of it.
struct Case {
    method: BlockType,
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
        method: BlockType::Q8,
        peer: Type::Q8_0,
        encoder: BlockEncoder::Reference,
        decode: 1.0,
        encode: 1.0,
        error: 0.01,
    },
    Case {
        method: BlockType::Q4,
        peer: Type::Q4_0,
        encoder: BlockEncoder::Reference,
        decode: 1.0,
        encode: 1.0,
        error: 0.15,
    },
    Case {
        method: BlockType::K6,
        peer: Type::Q6_K,
        encoder: BlockEncoder::Best,
        decode: 2.0,
        encode: 5.0,
        error: 0.04,
    },
    Case {
        method: BlockType::K4,
        peer: Type::Q4_K,
        encoder: BlockEncoder::Best,
        decode: 0.8,
        encode: 5.0,
        error: 0.15,
    },
    Case {
        method: BlockType::K3,
        peer: Type::Q3_K,
        encoder: BlockEncoder::Best,
        decode: 2.0,
        encode: 1.0,
        error: 0.3,
    },
    Case {
        method: BlockType::K2,
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
    let process = [measure_process(files)?];
    Ok(decoding.into_iter().chain(encoding).chain(process).collect())
}

fn measure_process(files: &Files) -> Outcome<Row> {
    let to = files.work.join("quantized.mcf");
    let (from, to) = (files.model_folder.as_os_str(), to.as_os_str());
    let args = ["quantize", "--method", "k4", "--force"].map(OsStr::new);
    let args: Vec<_> = args.into_iter().chain([from, to]).collect();
    let quantize = || process::run(&files.program, &args).expect("the model can be quantized");
    let start = || process::run("true", &[]).expect("`true` runs");
    let [ours, peer] = in_turn(PROCESS_ROUNDS, [&mut || quantize(), &mut || start()]);
    std::fs::remove_file(to)?;
    let what = "quantize MiniLM with k4, all cores (process); peer: `true`";
    Ok(time_limit(what, &ours, &peer, 1.0))
}

fn measure_case(case: &Case, weights: &Weights, library: &Path) -> Outcome<[Row; 2]> {
    let peer = Codec::load(library, &case.peer)?;
    let mut payloads = weights.payloads(case.method);
    let mut quantized = vec![0; peer.size(weights.values.len())];
    let encoding = in_turn(
        ENCODE_ROUNDS,
        [&mut || weights.encode(case, &mut payloads), &mut || {
            peer.quantize(&weights.values, &mut quantized);
        }],
    );
    // Both write to the same memory, which is there already.
    let out = RefCell::new(weights.values.clone());
    let ours = || weights.decode(case.method, &payloads, &mut out.borrow_mut());
    let theirs = || peer.dequantize(&quantized, &mut out.borrow_mut());
    let errors = [&ours as &dyn Fn(), &theirs].map(|decode| {
        decode();
        relative_error(&weights.values, &out.borrow())
    });
    assert!(errors.iter().all(|&e| e < case.error), "errors of {}: {errors:?}", case.method);
    let decoding = in_turn(DECODE_ROUNDS, [&mut || ours(), &mut || theirs()]);

    let (method, peer) = (case.method, case.peer.name);
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
    fn payloads(&self, method: BlockType) -> Vec<Vec<u8>> {
        self.matrices.iter().map(|m| vec![0; m.layout(method).size as usize]).collect()
    }

    fn encode(&self, case: &Case, payloads: &mut [Vec<u8>]) {
        for (matrix, payload) in self.matrices.iter().zip(payloads) {
            let layout = matrix.layout(case.method);
            let clip = (-matrix.largest, matrix.largest);
            let recipe =
                Recipe { method: case.method, encoder: case.encoder, clip, importance: None };
            let (scales, rest) = payload.split_at_mut(layout.sub_scales as usize);
            let (sub_scales, codes) =
                rest.split_at_mut((layout.codes - layout.sub_scales) as usize);
            let each = 2 * layout.scales_per_row as usize;
            let each_shares = layout.shares_size() as usize / matrix.rows;
            let rows = self.values[matrix.place.clone()].chunks_exact(matrix.cols);
            for (i, row) in rows.enumerate() {
                let scales = &mut scales[i * each..][..each];
                let sub_scales = &mut sub_scales[i * each_shares..][..each_shares];
                let each_codes = layout.row_codes() as usize;
                let codes = &mut codes[i * each_codes..][..each_codes];
                recipe.encode(row, scales, sub_scales, codes).expect("the scales of weights fit");
            }
        }
    }

    fn decode(&self, method: BlockType, payloads: &[Vec<u8>], out: &mut [f32]) {
        for (matrix, payload) in self.matrices.iter().zip(payloads) {
            let rows = BlockRows::new(matrix.layout(method), payload).expect("the size is right");
            rows.decode(0, &mut out[matrix.place.clone()]);
        }
    }
}

impl Matrix {
    fn layout(&self, method: BlockType) -> Layout {
        Layout::new(method, self.rows as u64, self.cols as u64).expect("it is small")
    }
}

fn relative_error(exact: &[f32], found: &[f32]) -> f64 {
    let square = |x: f32| f64::from(x) * f64::from(x);
    let wrong: f64 = exact.iter().zip(found).map(|(a, b)| square(a - b)).sum();
    let all: f64 = exact.iter().map(|a| square(*a)).sum();
    (wrong / all).sqrt()
}
