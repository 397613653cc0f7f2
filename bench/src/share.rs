//! How much of the processor's arithmetic the encoder uses: operations a second, beside a large f32
//! matrix product, on one core and on two. For the real model, and for one of bge-base's size with
//! random weights.

use crate::files::Files;
use crate::table::{Row, operations_ratio, rate_ratio};
use crate::texts::Workloads;
use crate::timing::{Samples, seconds};
use crate::wordfile::Random;
use crate::{Outcome, process};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use weighbridge::Encoder;
use weighbridge::encoder::{Precision, Settings};

pub const CHILD: &str = "share";

const ROUNDS: usize = 5;
/// The share of a product's rate that is asked for.
const SHARE: f64 = 0.85;
/// How much faster two cores are to be than one.
const TWO_CORES: f64 = 1.85;

/// Rows, depth and columns of the product: a batch as large as libraries like it.
const PRODUCT: [usize; 3] = [1536, 768, 1536];

pub fn measure(files: &Files) -> Outcome<Vec<Row>> {
    let texts = Workloads::write(&files.work.join("texts"))?;
    let base = files.work.join("base");
    make_base(&files.model_folder, &base)?;
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
    let number = |name: &str| config[name].as_f64().ok_or(format!("no {name}"));
    let (layers, hidden) = (number("num_hidden_layers")?, number("hidden_size")?);
    let weights = hidden * (4.0 * hidden + 2.0 * number("intermediate_size")?);
    let mut ids = Vec::new();
    encoder.tokenizer().encode_into(text, encoder.max_tokens(), &mut ids);
    let tokens = ids.len() as f64;
    Ok(layers * tokens * (2.0 * weights + 4.0 * tokens * hidden))
}

/// A model of bge-base's size: the tokenizer and settings of the real one, and random weights.
fn make_base(model: &Path, to: &Path) -> Outcome<()> {
    let weights = to.join("model.safetensors");
    if weights.exists() {
        return Ok(());
    }
    std::fs::create_dir_all(to.join("1_Pooling"))?;
    for name in ["tokenizer.json", "tokenizer_config.json", "vocab.txt", "modules.json"] {
        std::fs::copy(model.join(name), to.join(name))?;
    }
    let edited = |name: &str, changes: Value| -> Outcome<()> {
        let mut file: Value = serde_json::from_slice(&std::fs::read(model.join(name))?)?;
        for (key, value) in changes.as_object().into_iter().flatten() {
            file[key] = value.clone();
        }
        Ok(std::fs::write(to.join(name), serde_json::to_vec(&file)?)?)
    };
    let [layers, hidden, wide] = [12, 768, 3072];
    edited(
        "config.json",
        json!({"num_hidden_layers": layers, "hidden_size": hidden, "intermediate_size": wide,
            "num_attention_heads": 12}),
    )?;
    edited("1_Pooling/config.json", json!({"word_embedding_dimension": hidden}))?;
    edited("sentence_bert_config.json", json!({"max_seq_length": 256}))?;
    let mut tensors: Vec<(String, Vec<usize>)> = Vec::new();
    let mut tensor = |name: String, shape: &[usize]| tensors.push((name, shape.to_vec()));
    for (name, rows) in [("word", 30522), ("position", 512), ("token_type", 2)] {
        tensor(format!("embeddings.{name}_embeddings.weight"), &[rows, hidden]);
    }
    for end in ["weight", "bias"] {
        tensor(format!("embeddings.LayerNorm.{end}"), &[hidden]);
    }
    for layer in 0..layers {
        let products = [
            ("attention.self.query", hidden, hidden),
            ("attention.self.key", hidden, hidden),
            ("attention.self.value", hidden, hidden),
            ("attention.output.dense", hidden, hidden),
            ("intermediate.dense", wide, hidden),
            ("output.dense", hidden, wide),
        ];
        for (name, columns, depth) in products {
            tensor(format!("encoder.layer.{layer}.{name}.weight"), &[columns, depth]);
            tensor(format!("encoder.layer.{layer}.{name}.bias"), &[columns]);
        }
        for name in ["attention.output.LayerNorm", "output.LayerNorm"] {
            tensor(format!("encoder.layer.{layer}.{name}.weight"), &[hidden]);
            tensor(format!("encoder.layer.{layer}.{name}.bias"), &[hidden]);
        }
    }
    write_random(&weights, &tensors)
}

/// Normalizations begin as they do in training, everything else is small and random.
fn write_random(path: &PathBuf, tensors: &[(String, Vec<usize>)]) -> Outcome<()> {
    let (mut header, mut end) = (serde_json::Map::new(), 0);
    for (name, shape) in tensors {
        let bytes = 4 * shape.iter().product::<usize>();
        header.insert(
            name.clone(),
            json!({"dtype": "F32", "shape": shape, "data_offsets": [end, end + bytes]}),
        );
        end += bytes;
    }
    let header = serde_json::to_vec(&header)?;
    let part = path.with_extension("part");
    let mut out = BufWriter::with_capacity(1 << 20, File::create(&part)?);
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(&header)?;
    let mut random = Random(23);
    for (name, shape) in tensors {
        for _ in 0..shape.iter().product::<usize>() {
            let value = match name.ends_with("LayerNorm.weight") {
                true => 1.0,
                false => (random.below(2001) as f32 - 1000.0) / 30_000.0,
            };
            out.write_all(&value.to_le_bytes())?;
        }
    }
    out.into_inner()?.sync_all()?;
    Ok(std::fs::rename(part, path)?)
}
