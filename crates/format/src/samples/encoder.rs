//! A whole sentence embedder in small: two layers of BERT with made-up weights.
//!
//! It has learned nothing, but texts with words in common come out near each other, because the
//! values of words are larger than what the layers add.

use super::{f32_tensor, wave, weights};
use crate::{Container, Error};
use serde_json::json;

const HIDDEN: u64 = 32;
const INNER: u64 = 64;
const LAYERS: u64 = 2;
const HEADS: u64 = 4;
const POSITIONS: u64 = 64;

/// Marks, letters, parts of words, and words.
const TOKENS: &str = "[PAD] [UNK] [CLS] [SEP] [MASK] \
    a b c d e f g h i j k l m n o p q r s t u v w x y z 0 1 2 3 4 5 6 7 8 9 . , ! ? ' - \
    ##a ##b ##c ##d ##e ##f ##g ##h ##i ##j ##k ##l ##m ##n ##o ##p ##q ##r ##s ##t ##u ##v ##w \
    ##x ##y ##z ##0 ##1 ##2 ##3 ##4 ##5 ##6 ##7 ##8 ##9 ##ed ##er ##ing ##bridge 東 京 \
    the an and of on in is to with weigh truck lorry load empty full grain gravel road town scale \
    big small text word another man woman king queen";

/// Makes a Hugging Face directory with a model that can be used.
///
/// # Errors
/// Where files can't be written.
#[cfg(feature = "fs")]
pub fn write_encoder(folder: &std::path::Path) -> Result<(), Error> {
    for (name, bytes) in encoder_directory()? {
        let path = folder.join(name);
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.and_then(|()| std::fs::write(&path, bytes)).map_err(|e| Error::io(&path, e))?;
    }
    Ok(())
}

/// The files of a Hugging Face directory with a model that can be used, by relative path.
///
/// # Errors
/// None is known: the files are made in memory.
pub fn encoder_directory() -> Result<Vec<(String, Vec<u8>)>, Error> {
    let tokens: Vec<_> = TOKENS.split_whitespace().collect();
    let model = Container { tensors: tensors(tokens.len() as u64), ..Container::default() };
    let weights = weights(&model)?;
    let config = json!({
        "architectures": ["BertModel"], "model_type": "bert", "hidden_act": "gelu",
        "hidden_size": HIDDEN, "intermediate_size": INNER, "layer_norm_eps": 1e-12,
        "max_position_embeddings": POSITIONS, "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS, "type_vocab_size": 2, "vocab_size": tokens.len(),
    });
    let modules = json!([
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
    ]);
    let pooling = json!({"word_embedding_dimension": HIDDEN, "pooling_mode_mean_tokens": true});
    let limits = json!({"max_seq_length": POSITIONS / 2, "do_lower_case": false});
    let tokenizer = json!({
        "tokenizer_class": "BertTokenizer", "do_lower_case": true, "tokenize_chinese_chars": true,
        "strip_accents": null,
    });
    let texts = [
        ("1_Pooling/config.json", pooling.to_string()),
        ("README.md", "# A small model with made-up weights\n".to_owned()),
        ("config.json", config.to_string()),
        ("modules.json", modules.to_string()),
        ("sentence_bert_config.json", limits.to_string()),
        ("tokenizer_config.json", tokenizer.to_string()),
        ("vocab.txt", tokens.iter().map(|token| format!("{token}\n")).collect()),
    ];
    let mut files: Vec<_> = texts.map(|(name, text)| (name.to_owned(), text.into_bytes())).into();
    files.push(("model.safetensors".to_owned(), weights));
    Ok(files)
}

fn tensors(words: u64) -> Vec<crate::Tensor> {
    let mut list = Vec::new();
    let mut add = |name: String, shape: Vec<u64>, scale: f32, around: f32| {
        let first = list.len() as u64 * 10_000_019;
        let count: u64 = shape.iter().product();
        let values = (0..count).map(|i| around + scale * wave(first + i));
        list.push(f32_tensor(&name, shape, values));
    };
    add("embeddings.word_embeddings.weight".into(), vec![words, HIDDEN], 3.0, 0.0);
    add("embeddings.position_embeddings.weight".into(), vec![POSITIONS, HIDDEN], 0.3, 0.0);
    add("embeddings.token_type_embeddings.weight".into(), vec![2, HIDDEN], 0.3, 0.0);
    add("embeddings.LayerNorm.weight".into(), vec![HIDDEN], 0.1, 1.0);
    add("embeddings.LayerNorm.bias".into(), vec![HIDDEN], 0.1, 0.0);
    for layer in 0..LAYERS {
        for (name, rows, columns) in [
            ("attention.self.query", HIDDEN, HIDDEN),
            ("attention.self.key", HIDDEN, HIDDEN),
            ("attention.self.value", HIDDEN, HIDDEN),
            ("attention.output.dense", HIDDEN, HIDDEN),
            ("attention.output.LayerNorm", HIDDEN, 0),
            ("intermediate.dense", INNER, HIDDEN),
            ("output.dense", HIDDEN, INNER),
            ("output.LayerNorm", HIDDEN, 0),
        ] {
            let (shape, scale, around) = match columns {
                0 => (vec![rows], 0.1, 1.0),
                _ => (vec![rows, columns], 1.0, 0.0),
            };
            add(format!("encoder.layer.{layer}.{name}.weight"), shape, scale, around);
            add(format!("encoder.layer.{layer}.{name}.bias"), vec![rows], 0.2, 0.0);
        }
    }
    list
}
