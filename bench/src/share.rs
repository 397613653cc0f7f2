//! How much of the processor's arithmetic the encoder uses: operations a second, beside a large f32
//! matrix product, on one core and on two. For the real model, and for one of bge-base's size with
//! random weights; models of other architectures beside that one.

use crate::files::Files;
use crate::shapes::{BERT, MODERNBERT, MPNET, NOMIC, make};
use crate::table::{Row, operations_ratio, rate_ratio};
use crate::texts::Workloads;
use crate::timing::{Samples, seconds};
use crate::{Outcome, process};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use weighbridge::Encoder;
use weighbridge::encoder::{Precision, Settings};

pub const CHILD: &str = "share";

const ROUNDS: usize = 5;
/// The share of a product's rate that is asked for.
const SHARE: f64 = 0.85;
/// How much faster two cores are to be than one.
const TWO_CORES: f64 = 1.85;

/// The share of BERT's rate that other architectures of its size are to have.
const VARIANT: f64 = 0.9;

pub const VARIANT_CHILD: &str = "share-variant";

/// Rows, depth and columns of the product: a batch as large as libraries like it.
const PRODUCT: [usize; 3] = [1536, 768, 1536];

pub fn measure(files: &Files) -> Outcome<Vec<Row>> {
    let texts = Workloads::write(&files.work.join("texts"))?;
    let base = files.work.join(BERT.folder);
    make(&BERT, &files.model_folder, &base)?;
    let mut rows = Vec::new();
    for (name, folder, part) in [("MiniLM", &files.model_folder, 10), ("12 x 768", &base, 64)] {
        for (what, list) in [("mixed texts", &texts.mixed), ("128 tokens", &texts.p128)] {
            let list = &list.list[..list.list.len() / part];
            let file = files.work.join("share.json");
            std::fs::write(&file, serde_json::to_vec(list)?)?;
            for cores in ["0", "0,1"] {
                let mut command = Command::new("taskset");
                command.arg("-c").arg(cores).arg(std::env::current_exe()?);
                let [f32, q8, alone, product, counts] =
                    process::samples(command.arg(CHILD).arg(folder).arg(&file))?;
                let [texts, operations, product_operations] = counts.0[..] else {
                    return Err("the measuring process said too little".into());
                };
                let (texts, what) = (texts as usize, format!("{name}, {what}"));
                if cores == "0" {
                    for (precision, ours, limit) in [("f32", &f32, Some(SHARE)), ("q8", &q8, None)]
                    {
                        let what =
                            format!("{precision}, {what}, one core; peer: a product, crate gemm");
                        let (ours, peer) = ((ours, operations), (&product, product_operations));
                        rows.push(operations_ratio(&what, ours, peer, limit));
                    }
                } else {
                    let what = format!("f32, {what}, two cores; peer: ours, one thread");
                    rows.push(rate_ratio(&what, &f32, &alone, texts, "texts/s", TWO_CORES));
                }
            }
        }
    }
    Ok(rows)
}

/// Other architectures of the size of BERT, beside it.
pub fn measure_variants(files: &Files) -> Outcome<Vec<Row>> {
    let texts = Workloads::write(&files.work.join("texts"))?;
    let base = files.work.join(BERT.folder);
    make(&BERT, &files.model_folder, &base)?;
    let mut rows = Vec::new();
    let variants =
        [("relative positions", &MPNET), ("rotary and gated", &NOMIC), ("ModernBERT", &MODERNBERT)];
    for (name, shape) in variants {
        let folder = files.work.join(shape.folder);
        make(shape, &files.model_folder, &folder)?;
        for (what, list) in [("mixed texts", &texts.mixed), ("256 tokens", &texts.p256)] {
            let list = &list.list[..list.list.len() / 64];
            let file = files.work.join("share.json");
            std::fs::write(&file, serde_json::to_vec(list)?)?;
            let mut command = Command::new("taskset");
            command.args(["-c", "0"]).arg(std::env::current_exe()?);
            let [f32, peer_f32, q8, peer_q8, counts] =
                process::samples(command.arg(VARIANT_CHILD).arg(&folder).arg(&base).arg(&file))?;
            let [operations, peer_operations] = counts.0[..] else {
                return Err("the measuring process said too little".into());
            };
            for (precision, ours, peer) in [("f32", &f32, &peer_f32), ("q8", &q8, &peer_q8)] {
                let what = format!(
                    "{precision}, 12 x 768 {name}, {what}, one core; peer: ours, BERT of that size"
                );
                let (ours, peer) = ((ours, operations), (peer, peer_operations));
                rows.push(operations_ratio(&what, ours, peer, Some(VARIANT)));
            }
        }
    }
    Ok(rows)
}

/// A measuring process that embeds with two models in turn, in f32 and in q8.
pub fn variant_child(folder: &Path, peer: &Path, texts: &Path) -> Outcome<()> {
    let list: Vec<String> = serde_json::from_slice(&std::fs::read(texts)?)?;
    let mut encoders = Vec::new();
    for precision in [Precision::F32, Precision::Q8] {
        for folder in [folder, peer] {
            let settings = Settings { precision, threads: Some(1), ..Default::default() };
            encoders.push(Encoder::open_with(folder, &settings)?);
        }
    }
    let mut samples: [Samples; 5] = Default::default();
    for round in 0..=ROUNDS {
        for (encoder, samples) in encoders.iter().zip(&mut samples) {
            let (time, vectors) = seconds(|| encoder.embed(&list));
            std::hint::black_box(vectors?);
            if round > 0 {
                samples.0.push(time);
            }
        }
    }
    for (encoder, folder) in encoders.iter().zip([folder, peer]) {
        let all = list.iter().map(|text| operations(encoder, folder, text));
        samples[4].0.push(all.sum::<Outcome<f64>>()?);
    }
    process::print(&samples);
    Ok(())
}

/// The measuring process, bound to as many cores as there are to be threads. Prints times of f32, of
/// q8, of f32 with one thread and of the product; then the number of texts, and operations.
pub fn child(folder: &Path, texts: &Path) -> Outcome<()> {
    let list: Vec<String> = serde_json::from_slice(&std::fs::read(texts)?)?;
    let threads = std::thread::available_parallelism()?.get();
    let open = |precision, threads| {
        let settings = Settings { precision, threads: Some(threads), ..Default::default() };
        Encoder::open_with(folder, &settings)
    };
    let encoders =
        [open(Precision::F32, threads)?, open(Precision::Q8, threads)?, open(Precision::F32, 1)?];
    let [m, k, n] = PRODUCT;
    let (a, b, mut c) = (vec![0.5f32; m * k], vec![0.25f32; k * n], vec![0f32; m * n]);
    let mut samples: [Samples; 5] = Default::default();
    for round in 0..=ROUNDS {
        for (encoder, samples) in encoders.iter().zip(&mut samples) {
            let (time, vectors) = seconds(|| encoder.embed(&list));
            std::hint::black_box(vectors?);
            if round > 0 {
                samples.0.push(time);
            }
        }
        // Several a round: one is much shorter than the texts.
        for _ in 0..10 {
            let (time, ()) = seconds(|| product(PRODUCT, &a, &b, &mut c));
            samples[3].0.push(time);
        }
    }
    std::hint::black_box(&c);
    let operations =
        list.iter().map(|text| operations(&encoders[0], folder, text)).sum::<Outcome<f64>>()?;
    samples[4].0 = vec![list.len() as f64, operations, 2.0 * (m * k * n) as f64];
    process::print(&samples);
    Ok(())
}

/// `c = a * b`, both by columns, on one core.
fn product([m, k, n]: [usize; 3], a: &[f32], b: &[f32], c: &mut [f32]) {
    assert!(a.len() == m * k && b.len() == k * n && c.len() == m * n);
    let (rows, depth) = (m.cast_signed(), k.cast_signed());
    // SAFETY: the matrices are as large as the strides say.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            c.as_mut_ptr(),
            rows,
            1,
            false,
            a.as_ptr(),
            rows,
            1,
            b.as_ptr(),
            depth,
            1,
            0.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

/// What the products of a text are made of: weights with tokens, and tokens with tokens.
fn operations(encoder: &Encoder, folder: &Path, text: &str) -> Outcome<f64> {
    let config: Value = serde_json::from_slice(&std::fs::read(folder.join("config.json"))?)?;
    let number = |names: [&str; 2]| {
        let found = names.iter().find_map(|name| config[*name].as_f64());
        found.ok_or(format!("no {}", names[0]))
    };
    let layers = number(["num_hidden_layers", "n_layer"])?;
    let hidden = number(["hidden_size", "n_embd"])?;
    let wide = number(["intermediate_size", "n_inner"])?;
    // A gate is a third matrix.
    let has_gate = ["nomic_bert", "modernbert"].iter().any(|gated| config["model_type"] == *gated);
    let matrices = if has_gate { 3.0 } else { 2.0 };
    let weights = hidden * (4.0 * hidden + matrices * wide);
    let mut ids = Vec::new();
    encoder.tokenizer().encode_into(text, encoder.max_tokens(), &mut ids);
    let tokens = ids.len() as f64;
    // Layers that attend to neighbours alone need the products with these only.
    let every = config["global_attn_every_n_layers"].as_f64().unwrap_or(1.0);
    let window = config["local_attention"].as_f64().unwrap_or(tokens);
    let whole = (layers / every).ceil();
    let seen = whole * tokens + (layers - whole) * tokens.min(window + 1.0);
    Ok(tokens * (2.0 * layers * weights + 4.0 * seen * hidden))
}
