//! What making tokens costs beside the model: all-MiniLM-L6-v2, and the same weights behind a Unigram and a
//! byte-level BPE tokenizer with the words of its vocabulary. One core.

use crate::files::Files;
use crate::table::{Row, time_ratio};
use crate::texts::Workloads;
use crate::timing::{Samples, seconds};
use crate::{Outcome, process};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use weighbridge::Encoder;
use weighbridge::encoder::{Precision, Settings};

pub const CHILD: &str = "tokens";

const ROUNDS: usize = 5;
/// The share of the time from text to vector that tokens may take.
const SHARE: f64 = 0.1;

pub fn measure(files: &Files) -> Outcome<Vec<Row>> {
    let texts = Workloads::write(&files.work.join("texts"))?;
    let vocabulary = std::fs::read_to_string(files.model_folder.join("vocab.txt"))?;
    let mut rows = Vec::new();
    let kinds: [(&str, fn(&str) -> Value); 3] =
        [("WordPiece", |_| Value::Null), ("Unigram", unigram), ("byte-level BPE", bpe)];
    for (name, make) in kinds {
        let folder = files.work.join("tokens");
        copy(&files.model_folder, &folder)?;
        let tokenizer = make(&vocabulary);
        if !tokenizer.is_null() {
            std::fs::write(folder.join("tokenizer.json"), serde_json::to_vec(&tokenizer)?)?;
        }
        for (what, list) in [("mixed texts", &texts.mixed), ("256 tokens", &texts.p256)] {
            let mut command = Command::new("taskset");
            command.args(["-c", "0"]).arg(std::env::current_exe()?);
            command.arg(CHILD).arg(&folder).arg(&list.path);
            let [tokens, f32, q8] = process::samples(&mut command)?;
            for (precision, whole) in [("f32", &f32), ("q8", &q8)] {
                let what = format!(
                    "tokens of {name}, {what}; peer: ours, from text to vector in {precision}"
                );
                rows.push(time_ratio(&what, &tokens, whole, SHARE));
            }
        }
    }
    Ok(rows)
}

/// The measuring process. Prints times of making tokens, and of embedding in f32 and in q8.
pub fn child(folder: &Path, texts: &Path) -> Outcome<()> {
    let list: Vec<String> = serde_json::from_slice(&std::fs::read(texts)?)?;
    let list = &list[..list.len() / 10];
    let open = |precision| {
        let settings = Settings { precision, threads: Some(1), ..Default::default() };
        Encoder::open_with(folder, &settings)
    };
    let [f32, q8] = [open(Precision::F32)?, open(Precision::Q8)?];
    let mut samples: [Samples; 3] = Default::default();
    for round in 0..=ROUNDS {
        let (tokens, ()) = seconds(|| {
            let mut ids = Vec::new();
            for text in list {
                ids.clear();
                f32.tokenizer().encode_into(text, f32.max_tokens(), &mut ids);
                std::hint::black_box(&ids);
            }
        });
        let (whole, vectors) = seconds(|| f32.embed(list));
        std::hint::black_box(vectors?);
        let (coarse, vectors) = seconds(|| q8.embed(list));
        std::hint::black_box(vectors?);
        if round > 0 {
            for (samples, time) in samples.iter_mut().zip([tokens, whole, coarse]) {
                samples.0.push(time);
            }
        }
    }
    process::print(&samples);
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Outcome<()> {
    std::fs::create_dir_all(to.join("1_Pooling"))?;
    let names = ["config.json", "modules.json", "sentence_bert_config.json", "tokenizer.json"];
    for name in names.into_iter().chain(["model.safetensors", "1_Pooling/config.json"]) {
        std::fs::copy(from.join(name), to.join(name))?;
    }
    Ok(())
}

/// The special tokens of XLM-RoBERTa and RoBERTa, in this order.
const SPECIAL: [&str; 4] = ["<s>", "<pad>", "</s>", "<unk>"];

fn added() -> Value {
    let token = |(id, content): (usize, &&str)| {
        json!({"id": id, "content": content, "single_word": false, "lstrip": false,
            "rstrip": false, "normalized": false, "special": true})
    };
    SPECIAL.iter().enumerate().map(token).collect()
}

/// Whole words in a vocabulary of BERT's, and what continues words.
fn words(vocabulary: &str) -> impl Iterator<Item = (bool, &str)> {
    let usable = |word: &&str| !word.is_empty() && !word.starts_with('[');
    vocabulary.lines().filter(usable).map(|word| match word.strip_prefix("##") {
        Some(rest) => (false, rest),
        None => (true, word),
    })
}

/// As XLM-RoBERTa has it: the more frequent a piece, the higher its score. NFKC stands for the table of
/// characters that its files carry.
fn unigram(vocabulary: &str) -> Value {
    let mut pieces: Vec<(String, f64)> = SPECIAL.iter().map(|s| ((*s).to_owned(), 0.0)).collect();
    for (rank, (is_start, word)) in words(vocabulary).enumerate() {
        let piece = if is_start { format!("\u{2581}{word}") } else { word.to_owned() };
        pieces.push((piece, -(rank as f64 + 2.0).ln()));
    }
    let mut seen = std::collections::HashSet::new();
    pieces.retain(|(piece, _)| seen.insert(piece.clone()));
    json!({"version": "1.0", "truncation": null, "padding": null, "added_tokens": added(),
        "normalizer": {"type": "NFKC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"},
            {"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "always", "split": true}]},
        "post_processor": around(),
        "decoder": null,
        "model": {"type": "Unigram", "unk_id": 3, "vocab": pieces, "byte_fallback": false}})
}

/// As RoBERTa has it: each word of ASCII letters comes of joining its first letters with the next one.
fn bpe(vocabulary: &str) -> Value {
    let mut ids: HashMap<String, usize> = HashMap::new();
    let mut put = |piece: &str| {
        let id = ids.len();
        ids.entry(piece.to_owned()).or_insert(id);
        id
    };
    SPECIAL.iter().for_each(|special| {
        put(special);
    });
    // The characters that stand for bytes: those that can be seen for themselves, others moved up.
    let (mut moved, mut space) = (0, ' ');
    for byte in 0..=255u32 {
        let is_seen = matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
        let shown = char::from_u32(if is_seen { byte } else { 0x100 + moved }).unwrap_or(' ');
        moved += u32::from(!is_seen);
        if byte == 0x20 {
            space = shown;
        }
        put(&shown.to_string());
    }
    let mut merges: Vec<[String; 2]> = Vec::new();
    let mut joined = std::collections::HashSet::new();
    for (is_start, word) in words(vocabulary).filter(|(_, word)| word.is_ascii()) {
        let mut piece = if is_start { space.to_string() } else { String::new() };
        for letter in word.chars() {
            let longer = format!("{piece}{letter}");
            if !piece.is_empty() && joined.insert(longer.clone()) {
                put(&longer);
                merges.push([piece, letter.to_string()]);
            }
            piece = longer;
        }
    }
    // The table of vectors has as many rows as the vocabulary that the words are of.
    let rows = vocabulary.lines().count();
    merges.truncate(rows.saturating_sub(SPECIAL.len() + 256));
    ids.retain(|_, id| *id < rows);
    json!({"version": "1.0", "truncation": null, "padding": null, "added_tokens": added(),
        "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
            "use_regex": true},
        "post_processor": around(),
        "decoder": null,
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "",
            "end_of_word_suffix": "", "fuse_unk": false, "byte_fallback": false,
            "ignore_merges": false, "vocab": ids, "merges": merges}})
}

/// `<s>` in front of a text and `</s>` behind it.
fn around() -> Value {
    json!({"type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": "</s>", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]},
            "</s>": {"id": "</s>", "ids": [2], "tokens": ["</s>"]}}})
}
