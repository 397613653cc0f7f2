//! Small made-up content, for trying things out and for tests: nothing random, nothing fetched.

mod encoder;

pub use encoder::encoder_directory;
#[cfg(feature = "fs")]
pub use encoder::write_encoder;

use crate::model::{MATRIX, NORMS, Records, SubwordKind, Subwords, Value};
use crate::source::Bytes;
use crate::wire::to_len;
use crate::{Container, Encoding, Error, Formats, Options, Tensor, View, Vocabulary};
use serde_json::json;
use weighbridge_codec::DType;

/// What the weights of a model directory are stored in.
const WEIGHTS: &str = "safetensors";

/// A sentence embedder of one layer: tensors, vocabulary and metadata of a real one, in small.
pub fn tiny_model() -> Container {
    const HIDDEN: u64 = 16;
    const INNER: u64 = 32;
    const WORDS: [&str; 24] = [
        "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "a", "weigh", "##bridge", "##s",
        "truck", "load", "and", "empty", "full", "of", "grain", "on", "road", ".", ",", "é", "東",
        "京",
    ];
    let mut shapes = vec![
        ("embeddings.word_embeddings.weight".to_owned(), vec![WORDS.len() as u64, HIDDEN]),
        ("embeddings.position_embeddings.weight".to_owned(), vec![12, HIDDEN]),
        ("embeddings.token_type_embeddings.weight".to_owned(), vec![2, HIDDEN]),
        ("embeddings.LayerNorm.weight".to_owned(), vec![HIDDEN]),
        ("embeddings.LayerNorm.bias".to_owned(), vec![HIDDEN]),
    ];
    for (name, rows, columns) in [
        ("attention.self.query", HIDDEN, HIDDEN),
        ("attention.self.key", HIDDEN, HIDDEN),
        ("attention.self.value", HIDDEN, HIDDEN),
        ("attention.output.dense", HIDDEN, HIDDEN),
        ("intermediate.dense", INNER, HIDDEN),
        ("output.dense", HIDDEN, INNER),
    ] {
        shapes.push((format!("encoder.layer.0.{name}.weight"), vec![rows, columns]));
        shapes.push((format!("encoder.layer.0.{name}.bias"), vec![rows]));
    }
    for name in ["attention.output.LayerNorm", "output.LayerNorm"] {
        for part in ["weight", "bias"] {
            shapes.push((format!("encoder.layer.0.{name}.{part}"), vec![HIDDEN]));
        }
    }
    let tensors = shapes.into_iter().enumerate().map(|(i, (name, shape))| {
        let count: u64 = shape.iter().product();
        f32_tensor(&name, shape, (0..count).map(|j| wave(i as u64 * 1000 + j)))
    });
    let metadata = [
        ("model_name", "tiny"),
        ("model_version", "1.0.0"),
        ("embedding_dim", "16"),
        ("vocab_size", "24"),
        ("num_layers", "1"),
        ("num_attention_heads", "4"),
        ("hidden_size", "16"),
        ("intermediate_size", "32"),
        ("max_position_emb", "12"),
        ("created_at", "2025-01-16T12:00:00Z"),
    ];
    let mut vocabulary = Vocabulary::from_tokens(WORDS);
    vocabulary.find_special();
    Container {
        metadata: metadata.map(|(k, v)| (k.to_owned(), Value::Text(v.to_owned()))).into(),
        tensors: tensors.collect(),
        vocabulary: Some(vocabulary),
        ..Container::default()
    }
}

/// Unit vectors with a record for each: the content of a file of rows.
pub fn unit_vectors() -> Container {
    const ROWS: u64 = 6;
    const DIM: u64 = 64;
    let mut values = Vec::new();
    for row in 0..ROWS {
        let raw: Vec<f32> = (0..DIM).map(|i| wave(row * 77 + i)).collect();
        let norm = raw.iter().map(|v| v * v).sum::<f32>().sqrt();
        values.extend(raw.iter().map(|v| v / norm));
    }
    let names = ["grain", "gravel", "timber", "scrap", "sand", "salt"];
    let items: Vec<_> = names.iter().map(|n| format!("{{\"name\": \"{n}\"}}")).collect();
    let records = Records::parse(Bytes::owned(format!("[{}]", items.join(", ")).into_bytes()));
    Container {
        tensors: vec![f32_tensor("embeddings", vec![ROWS, DIM], values.into_iter())],
        records: records.ok(),
        ..Container::default()
    }
}

/// Word embeddings: what some words have to do with some topics, with the lengths that the vectors
/// had before they were given unit length. Words with a space and in other scripts are among them.
pub fn word_embeddings() -> Container {
    // A digit says how much a word has of a topic: people, male, female, power, vehicle, big, food,
    // plant, town, weight.
    const WORDS: [(&str, &str); 20] = [
        ("man", "9900010000"),
        ("woman", "9090010000"),
        ("king", "9909020000"),
        ("queen", "9099020000"),
        ("boy", "9800000000"),
        ("girl", "9080000000"),
        ("truck", "0000970002"),
        ("lorry", "0000980003"),
        ("car", "1000930001"),
        ("bicycle", "2000900000"),
        ("wheat", "0000005901"),
        ("grain", "0000006802"),
        ("corn", "0000007800"),
        ("bread", "1000009300"),
        ("scale", "0000020009"),
        ("weighbridge", "0000450029"),
        ("new york", "2001080090"),
        ("東京", "2001090090"),
        ("Tübingen", "2000020290"),
        ("straße", "0000500060"),
    ];
    let (mut values, mut norms) = (Vec::new(), Vec::new());
    for (row, (_, topics)) in WORDS.iter().enumerate() {
        let noise = |i: usize| wave((row * 10 + i) as u64) / 2.0;
        let topic = |(i, digit): (usize, u8)| f32::from(digit - b'0') / 4.0 + noise(i);
        let raw: Vec<f32> = topics.bytes().enumerate().map(topic).collect();
        let norm = raw.iter().map(|v| v * v).sum::<f32>().sqrt();
        values.extend(raw.iter().map(|v| v / norm));
        norms.push(norm);
    }
    let rows = WORDS.len() as u64;
    Container {
        metadata: vec![("description".to_owned(), Value::Text("a few made-up words".to_owned()))],
        tensors: vec![
            f32_tensor(MATRIX, vec![rows, 10], values.into_iter()),
            f32_tensor(NORMS, vec![rows], norms.into_iter()),
        ],
        vocabulary: Some(Vocabulary::from_tokens(WORDS.map(|(word, _)| word))),
        ..Container::default()
    }
}

/// Those of the words that have no space, for formats that end a word with one.
pub fn single_words() -> Container {
    let mut container = word_embeddings();
    let vocabulary = container.vocabulary.take().unwrap_or_else(|| Vocabulary::from_tokens([]));
    let all: Vec<_> = vocabulary.tokens().collect();
    let kept: Vec<_> = (0..all.len()).filter(|i| !all[*i].contains(' ')).collect();
    let rows: Vec<_> = kept.iter().map(|i| *i as u64).collect();
    let norms = in_memory(container.tensors[1].values_f32(0, all.len()));
    let norms = kept.iter().map(|i| norms[*i]);
    container.tensors[1] = f32_tensor(NORMS, vec![rows.len() as u64], norms);
    container.tensors[0] = in_memory(container.tensors[0].pick_rows(rows));
    container.vocabulary = Some(Vocabulary::from_tokens(kept.iter().map(|i| &*all[*i])));
    container
}

/// The same words with subwords in 256 buckets: a bucket's row has the direction of the words
/// with an n-gram in it, so that words which look like a known one come out near it.
pub fn subword_embeddings() -> Container {
    let kind = SubwordKind::Buckets { exponent: 8 };
    let subwords = Subwords::new(3, 5, kind);
    let mut container = word_embeddings();
    let (rows, dim) = (container.tensors[0].shape[0], container.tensors[0].shape[1]);
    let mut values = in_memory(container.tensors[0].values_f32(0, to_len(rows * dim)));
    let mut sums = vec![0f32; to_len(subwords.rows() * dim)];
    let words = container.vocabulary.iter().flat_map(Vocabulary::tokens);
    for (word, vector) in words.zip(values.chunks(to_len(dim))) {
        subwords.for_each_row(&word, &mut |bucket| {
            let sum = &mut sums[to_len(bucket * dim)..];
            sum.iter_mut().zip(vector).for_each(|(sum, v)| *sum += v);
        });
    }
    for sum in sums.chunks_mut(to_len(dim)) {
        let norm = sum.iter().map(|v| v * v).sum::<f32>().sqrt();
        sum.iter_mut().filter(|_| norm > 0.0).for_each(|v| *v /= norm);
    }
    values.extend(sums);
    let shape = vec![rows + subwords.rows(), dim];
    container.tensors[0] = f32_tensor(MATRIX, shape, values.into_iter());
    container.subwords = Some(subwords);
    container
}

/// What was read of a sample.
fn in_memory<T>(read: Result<T, Error>) -> T {
    read.expect("samples are in memory")
}

/// The files of a Hugging Face directory with the tiny model, by relative path.
///
/// # Errors
/// None that is known: what makes the files can fail in general.
pub fn model_directory() -> Result<Vec<(String, Vec<u8>)>, Error> {
    let mut model = tiny_model();
    let vocabulary = model.vocabulary.take().unwrap_or_else(|| Vocabulary::from_tokens([]));
    model.metadata.clear();
    let weights = weights(&model)?;
    let config = json!({
        "architectures": ["BertModel"], "model_type": "bert", "hidden_act": "gelu", "hidden_size": 16,
        "intermediate_size": 32, "layer_norm_eps": 1e-12, "max_position_embeddings": 12,
        "num_attention_heads": 4, "num_hidden_layers": 1, "vocab_size": vocabulary.len(),
    });
    let modules = json!([
        {"idx": 0, "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "type": "sentence_transformers.models.Pooling"},
        {"idx": 2, "type": "sentence_transformers.models.Normalize"},
    ]);
    let pooling = json!({"word_embedding_dimension": 16, "pooling_mode_mean_tokens": true});
    let tokenizer = json!({"do_lower_case": true, "tokenize_chinese_chars": true});
    let texts = [
        ("1_Pooling/config.json", pooling.to_string()),
        ("README.md", "# tiny\n".to_owned()),
        ("config.json", config.to_string()),
        ("modules.json", modules.to_string()),
        (
            "sentence_bert_config.json",
            json!({"max_seq_length": 8, "do_lower_case": false}).to_string(),
        ),
        ("tokenizer_config.json", tokenizer.to_string()),
        ("vocab.txt", vocabulary.tokens().map(|t| format!("{t}\n")).collect()),
    ];
    let mut files: Vec<_> = texts.map(|(n, t)| (n.to_owned(), t.into_bytes())).into();
    files.push(("model.safetensors".to_owned(), weights));
    Ok(files)
}

/// The file with the weights of a model directory.
fn weights(model: &Container) -> Result<Vec<u8>, Error> {
    Formats::builtin().named(WEIGHTS, "to")?.plan(model, &Options::default())?.to_bytes()
}

/// Values between -0.3 and 0.3 that look irregular and are the same everywhere.
fn wave(i: u64) -> f32 {
    let mixed = i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    #[allow(clippy::cast_precision_loss)]
    let unit = mixed as f32 / (1u64 << 24) as f32;
    (unit - 0.5) * 0.6
}

fn f32_tensor(name: &str, shape: Vec<u64>, values: impl Iterator<Item = f32>) -> Tensor {
    let bytes = values.flat_map(f32::to_le_bytes).collect();
    let tensor = Tensor::stored(name, Encoding::Plain(DType::F32), shape, View::owned(bytes));
    tensor.unwrap_or_else(|e| unreachable!("samples have the size of their shape: {e}"))
}
