//! Models of the size of bge-base, with random weights, of every architecture that is measured.

use crate::Outcome;
use crate::wordfile::Random;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

const LAYERS: usize = 12;
const HIDDEN: usize = 768;

/// A model with random weights.
pub struct Shape {
    pub folder: &'static str,
    /// What config.json says besides, or instead of what the real model's does.
    config: fn() -> Value,
    /// Tensors that are there once, and in each layer, behind the layer's number.
    once: Tensors,
    start: &'static str,
    layer: Tensors,
}

type Tensors = &'static [(&'static str, &'static [usize])];

const BERT_ONCE: Tensors = &[
    ("embeddings.word_embeddings.weight", &[30522, HIDDEN]),
    ("embeddings.position_embeddings.weight", &[512, HIDDEN]),
    ("embeddings.token_type_embeddings.weight", &[2, HIDDEN]),
    ("embeddings.LayerNorm.weight", &[HIDDEN]),
    ("embeddings.LayerNorm.bias", &[HIDDEN]),
];

const BERT_LAYER: Tensors = &[
    ("attention.self.query.weight", &[HIDDEN, HIDDEN]),
    ("attention.self.query.bias", &[HIDDEN]),
    ("attention.self.key.weight", &[HIDDEN, HIDDEN]),
    ("attention.self.key.bias", &[HIDDEN]),
    ("attention.self.value.weight", &[HIDDEN, HIDDEN]),
    ("attention.self.value.bias", &[HIDDEN]),
    ("attention.output.dense.weight", &[HIDDEN, HIDDEN]),
    ("attention.output.dense.bias", &[HIDDEN]),
    ("intermediate.dense.weight", &[3072, HIDDEN]),
    ("intermediate.dense.bias", &[3072]),
    ("output.dense.weight", &[HIDDEN, 3072]),
    ("output.dense.bias", &[HIDDEN]),
    ("attention.output.LayerNorm.weight", &[HIDDEN]),
    ("attention.output.LayerNorm.bias", &[HIDDEN]),
    ("output.LayerNorm.weight", &[HIDDEN]),
    ("output.LayerNorm.bias", &[HIDDEN]),
];

/// Of bge-base's size.
pub const BERT: Shape = Shape {
    folder: "base",
    config: || {
        json!({"num_hidden_layers": LAYERS, "hidden_size": HIDDEN, "intermediate_size": 3072,
            "num_attention_heads": 12})
    },
    once: BERT_ONCE,
    start: "encoder.layer.",
    layer: BERT_LAYER,
};

/// A cross-encoder of the size of [`BERT`].
pub const RERANKER: Shape = Shape {
    folder: "reranker",
    config: || {
        let mut config = (BERT.config)();
        config["architectures"] = json!(["BertForSequenceClassification"]);
        config["id2label"] = json!({"0": "LABEL_0"});
        config
    },
    once: &[
        ("bert.embeddings.word_embeddings.weight", &[30522, HIDDEN]),
        ("bert.embeddings.position_embeddings.weight", &[512, HIDDEN]),
        ("bert.embeddings.token_type_embeddings.weight", &[2, HIDDEN]),
        ("bert.embeddings.LayerNorm.weight", &[HIDDEN]),
        ("bert.embeddings.LayerNorm.bias", &[HIDDEN]),
        ("bert.pooler.dense.weight", &[HIDDEN, HIDDEN]),
        ("bert.pooler.dense.bias", &[HIDDEN]),
        ("classifier.weight", &[1, HIDDEN]),
        ("classifier.bias", &[1]),
    ],
    start: "bert.encoder.layer.",
    layer: BERT_LAYER,
};

/// Of all-mpnet-base's: positions are distances, in buckets that all layers share.
pub const MPNET: Shape = Shape {
    folder: "relative",
    config: || {
        json!({"model_type": "mpnet", "architectures": ["MPNetModel"], "num_hidden_layers": LAYERS,
            "hidden_size": HIDDEN, "intermediate_size": 3072, "num_attention_heads": 12,
            "max_position_embeddings": 514, "pad_token_id": 1, "layer_norm_eps": 1e-5,
            "relative_attention_num_buckets": 32, "position_embedding_type": null})
    },
    once: &[
        ("embeddings.word_embeddings.weight", &[30522, HIDDEN]),
        ("embeddings.position_embeddings.weight", &[514, HIDDEN]),
        ("embeddings.LayerNorm.weight", &[HIDDEN]),
        ("embeddings.LayerNorm.bias", &[HIDDEN]),
        ("encoder.relative_attention_bias.weight", &[32, 12]),
    ],
    start: "encoder.layer.",
    layer: &[
        ("attention.attn.q.weight", &[HIDDEN, HIDDEN]),
        ("attention.attn.q.bias", &[HIDDEN]),
        ("attention.attn.k.weight", &[HIDDEN, HIDDEN]),
        ("attention.attn.k.bias", &[HIDDEN]),
        ("attention.attn.v.weight", &[HIDDEN, HIDDEN]),
        ("attention.attn.v.bias", &[HIDDEN]),
        ("attention.attn.o.weight", &[HIDDEN, HIDDEN]),
        ("attention.attn.o.bias", &[HIDDEN]),
        ("attention.LayerNorm.weight", &[HIDDEN]),
        ("attention.LayerNorm.bias", &[HIDDEN]),
        ("intermediate.dense.weight", &[3072, HIDDEN]),
        ("intermediate.dense.bias", &[3072]),
        ("output.dense.weight", &[HIDDEN, 3072]),
        ("output.dense.bias", &[HIDDEN]),
        ("output.LayerNorm.weight", &[HIDDEN]),
        ("output.LayerNorm.bias", &[HIDDEN]),
    ],
};

/// Of nomic-embed-text's.
pub const NOMIC: Shape = Shape {
    folder: "rotary",
    config: || {
        json!({"model_type": "nomic_bert", "architectures": ["NomicBertModel"], "n_layer": LAYERS,
            "num_hidden_layers": null, "n_embd": HIDDEN, "hidden_size": null, "n_inner": 3072,
            "intermediate_size": null, "n_head": 12, "num_attention_heads": null,
            "n_positions": 2048, "max_position_embeddings": null, "rotary_emb_base": 1000,
            "activation_function": "swiglu", "hidden_act": null, "position_embedding_type": null})
    },
    once: &[
        ("embeddings.word_embeddings.weight", &[30522, HIDDEN]),
        ("embeddings.token_type_embeddings.weight", &[2, HIDDEN]),
        ("emb_ln.weight", &[HIDDEN]),
        ("emb_ln.bias", &[HIDDEN]),
    ],
    start: "encoder.layers.",
    layer: &[
        ("attn.Wqkv.weight", &[3 * HIDDEN, HIDDEN]),
        ("attn.out_proj.weight", &[HIDDEN, HIDDEN]),
        ("mlp.fc11.weight", &[3072, HIDDEN]),
        ("mlp.fc12.weight", &[3072, HIDDEN]),
        ("mlp.fc2.weight", &[HIDDEN, 3072]),
        ("norm1.weight", &[HIDDEN]),
        ("norm1.bias", &[HIDDEN]),
        ("norm2.weight", &[HIDDEN]),
        ("norm2.bias", &[HIDDEN]),
    ],
};

/// As wide as ModernBERT-base, which has 22 layers.
pub const MODERNBERT: Shape = Shape {
    folder: "modern",
    config: || {
        json!({"model_type": "modernbert", "architectures": ["ModernBertModel"],
            "num_hidden_layers": LAYERS, "hidden_size": HIDDEN, "intermediate_size": 1152,
            "num_attention_heads": 12, "max_position_embeddings": 2048,
            "global_rope_theta": 160000.0, "local_rope_theta": 10000.0, "local_attention": 128,
            "global_attn_every_n_layers": 3, "norm_eps": 1e-5, "position_embedding_type": null})
    },
    once: &[
        ("embeddings.tok_embeddings.weight", &[30522, HIDDEN]),
        ("embeddings.norm.weight", &[HIDDEN]),
        ("final_norm.weight", &[HIDDEN]),
    ],
    start: "layers.",
    layer: &[
        ("attn_norm.weight", &[HIDDEN]),
        ("attn.Wqkv.weight", &[3 * HIDDEN, HIDDEN]),
        ("attn.Wo.weight", &[HIDDEN, HIDDEN]),
        ("mlp_norm.weight", &[HIDDEN]),
        ("mlp.Wi.weight", &[2 * 1152, HIDDEN]),
        ("mlp.Wo.weight", &[HIDDEN, 1152]),
    ],
};

/// Makes a model of the tokenizer and settings of the real one, and random weights.
pub fn make(shape: &Shape, model: &Path, to: &Path) -> Outcome<()> {
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
    edited("config.json", (shape.config)())?;
    edited("1_Pooling/config.json", json!({"word_embedding_dimension": HIDDEN}))?;
    edited("sentence_bert_config.json", json!({"max_seq_length": 256}))?;
    let once = shape.once.iter().map(|(name, shape)| ((*name).to_owned(), shape.to_vec()));
    let layers = (0..LAYERS).flat_map(|layer| {
        let own = move |name| format!("{}{layer}.{name}", shape.start);
        shape.layer.iter().map(move |(name, shape)| (own(*name), shape.to_vec()))
    });
    write_random(&weights, &once.chain(layers).collect::<Vec<_>>())
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
            // Those of normalizations have one dimension.
            let value = match name.ends_with("weight") && shape.len() == 1 {
                true => 1.0,
                false => (random.below(2001) as f32 - 1000.0) / 30_000.0,
            };
            out.write_all(&value.to_le_bytes())?;
        }
    }
    out.into_inner()?.sync_all()?;
    Ok(std::fs::rename(part, path)?)
}
