//! Models with rotary positions: settings that make no sense are clear errors, and those that nothing here
//! follows are named.

use serde_json::{Value as Json, json};
use weighbridge_encoder::{Encoder, Pooling, Precision, Settings, lacks};
use weighbridge_format::model::{Attachment, Container};
use weighbridge_format::source::View;
use weighbridge_format::spec::ModelSpec;

const HIDDEN: u64 = 24;
const INNER: u64 = 20;
const LAYERS: u64 = 3;

/// A small ModernBERT with some settings changed.
fn model(changes: &Json) -> Container {
    model_of(HIDDEN, INNER, changes)
}

fn model_of(hidden: u64, inner: u64, changes: &Json) -> Container {
    let mut config = json!({
        "model_type": "modernbert", "architectures": ["ModernBertModel"], "hidden_size": hidden,
        "num_hidden_layers": LAYERS, "num_attention_heads": 3, "intermediate_size": inner,
        "max_position_embeddings": 64, "vocab_size": 8, "global_rope_theta": 160000.0,
        "local_rope_theta": 10000.0, "local_attention": 4, "global_attn_every_n_layers": 3,
        "norm_eps": 1e-5, "hidden_activation": "gelu",
    });
    for (key, value) in changes.as_object().unwrap() {
        config[key] = value.clone();
    }
    let words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "lorry", "of", "grain"];
    let vocab: serde_json::Map<_, _> =
        words.iter().enumerate().map(|(i, word)| ((*word).to_owned(), i.into())).collect();
    let tokenizer = json!({
        "version": "1.0", "added_tokens": [],
        "normalizer": {"type": "BertNormalizer", "clean_text": true,
            "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": vocab,
            "continuing_subword_prefix": "##", "max_input_chars_per_word": 100},
    });
    let mut shapes = vec![
        ("embeddings.tok_embeddings".to_owned(), vec![8, hidden]),
        ("embeddings.norm".to_owned(), vec![hidden]),
        ("final_norm".to_owned(), vec![hidden]),
    ];
    for layer in 0..LAYERS {
        for (name, shape) in [
            ("attn_norm", vec![hidden]),
            ("attn.Wqkv", vec![3 * hidden, hidden]),
            ("attn.Wo", vec![hidden, hidden]),
            ("mlp_norm", vec![hidden]),
            ("mlp.Wi", vec![2 * inner, hidden]),
            ("mlp.Wo", vec![hidden, inner]),
        ] {
            shapes.push((format!("layers.{layer}.{name}"), shape));
        }
    }
    let mut builder = Container::builder();
    for (i, (name, shape)) in shapes.iter().enumerate() {
        let count = shape.iter().product::<u64>();
        let value = |k: u64| ((k * 37 + i as u64 * 11) % 101) as f32 / 50.0 - 1.0;
        let values = (0..count).map(value).collect();
        builder = builder.values(format!("{name}.weight"), shape, values);
    }
    let mut container = builder.build().unwrap();
    for (name, json) in [("config.json", &config), ("tokenizer.json", &tokenizer)] {
        let data = View::owned(json.to_string().into_bytes());
        let name = name.to_owned();
        container.attachments.push(Attachment { name, data, described: true });
    }
    container
}

fn embed(changes: &Json) -> Result<Vec<f32>, String> {
    let encoder = Encoder::new(&model(changes), &Settings::default()).map_err(|e| e.to_string())?;
    encoder.embed_flat(&["a lorry of grain, a lorry of a grain"]).map_err(|e| e.to_string())
}

#[test]
fn the_small_model_can_be_used() {
    let usual = embed(&json!({})).unwrap();
    assert_eq!(usual.len() as u64, HIDDEN);
    // What is said counts.
    for changes in [
        json!({"local_attention": 2}),
        json!({"global_rope_theta": 100.0}),
        json!({"local_rope_theta": 100.0}),
        json!({"global_attn_every_n_layers": 2}),
        json!({"num_attention_heads": 6}),
        json!({"hidden_activation": "silu"}),
        json!({"rope_scaling": {"type": "linear", "factor": 4.0}}),
        json!({"rope_scaling": {"type": "ntk", "factor": 4.0}}),
    ] {
        assert_ne!(embed(&changes).unwrap(), usual, "{changes}");
    }
    // The same in other words.
    for changes in [
        json!({"layer_types": ["full_attention", "sliding_attention", "sliding_attention"]}),
        json!({"global_rope_theta": null, "local_rope_theta": null, "rope_parameters": {
            "full_attention": {"rope_theta": 160000.0, "rope_type": "default"},
            "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"}}}),
        json!({"rope_scaling": {"type": "linear", "factor": 1.0}}),
        json!({"local_attention": 5}),
    ] {
        assert_eq!(embed(&changes).unwrap(), usual, "{changes}");
    }
}

/// Threads that share a text, each with its own heads, and texts that share a batch change nothing.
#[test]
fn threads_and_neighbours_change_nothing() {
    let text = |words: usize| ["a", "lorry", "of", "grain"].repeat(words).join(" ");
    let texts: Vec<_> = [1, 9, 3, 14, 2].map(text).into();
    for precision in [Precision::F32, Precision::Bf16, Precision::Q8] {
        // Heads of 16 values, which can be shared out; and an odd number of panels.
        let container = model_of(64, 56, &json!({"num_attention_heads": 4}));
        let embed = |threads: usize, texts: &[String]| {
            let settings = Settings { precision, threads: Some(threads), ..Settings::default() };
            let encoder = Encoder::new(&container, &settings).unwrap();
            // Often enough that threads come in time.
            (0..8).map(|_| encoder.embed(texts).unwrap()).collect::<Vec<_>>()
        };
        let alone: Vec<_> =
            texts.iter().map(|t| embed(1, std::slice::from_ref(t))[0][0].clone()).collect();
        for threads in 1..=4 {
            for found in embed(threads, &texts) {
                near(&found, &alone);
            }
            for (text, vector) in texts.iter().zip(&alone) {
                for found in embed(threads, std::slice::from_ref(text)) {
                    near(&found, std::slice::from_ref(vector));
                }
            }
        }
    }
}

/// The last layer has rows for these alone, in whatever parts the others went through the network.
#[test]
fn many_short_texts_of_which_only_the_first_token_counts() {
    for precision in [Precision::F32, Precision::Bf16, Precision::Q8] {
        let pooling = Some(Pooling::Cls);
        let settings = Settings { precision, pooling, threads: Some(1), ..Settings::default() };
        let encoder = Encoder::new(&model(&json!({})), &settings).unwrap();
        let alone = ["", "a"].map(|text| encoder.embed(&[text]).unwrap().remove(0));
        for count in 1..=72 {
            for words in [0, 1, count / 3, 2 * count / 3, count] {
                let number = |i: usize| usize::from(i < words);
                let texts: Vec<_> = (0..count).map(|i| ["", "a"][number(i)]).collect();
                let expected: Vec<_> = (0..count).map(|i| alone[number(i)].clone()).collect();
                near(&encoder.embed(&texts).unwrap(), &expected);
            }
        }
    }
}

fn near(found: &[Vec<f32>], expected: &[Vec<f32>]) {
    assert_eq!(found.len(), expected.len());
    for (a, b) in found.iter().flatten().zip(expected.iter().flatten()) {
        assert!((a - b).abs() <= 1e-6, "{a} {b}");
    }
}

/// With a window as wide as the text, a layer that knows neighbours alone attends to all.
#[test]
fn a_wide_window_is_none() {
    let theta = json!({"local_rope_theta": 160000.0, "local_attention": 1 << 20});
    let whole = json!({"global_attn_every_n_layers": 1});
    assert_eq!(embed(&theta).unwrap(), embed(&whole).unwrap());
}

#[test]
fn settings_that_make_no_sense_are_errors() {
    let list = |n: usize| vec!["full_attention"; n];
    for (changes, said) in [
        (json!({"num_attention_heads": 0}), "0 attention heads"),
        (json!({"num_attention_heads": 5}), "5 attention heads"),
        // Heads of three values.
        (json!({"num_attention_heads": 8}), "heads of 3 values"),
        (json!({"global_rope_theta": 0}), "global_rope_theta is 0"),
        (json!({"global_rope_theta": -1.0}), "global_rope_theta is -1"),
        (json!({"global_rope_theta": "nan"}), "global_rope_theta is \"nan\""),
        (json!({"global_rope_theta": null}), "rope_theta"),
        (json!({"local_rope_theta": 0.0}), "local_rope_theta is 0"),
        (json!({"local_attention": 0}), "local_attention is 0"),
        (json!({"local_attention": 1u64 << 63}), "local_attention is 9223372036854775808"),
        (json!({"local_attention": -4}), "local_attention is -4"),
        (json!({"local_attention": null}), "local_attention"),
        (json!({"global_attn_every_n_layers": 0}), "global_attn_every_n_layers is 0"),
        (json!({"layer_types": list(2)}), "layer_types is"),
        (json!({"layer_types": list(4)}), "layer_types is"),
        (json!({"layer_types": ["full_attention", "chunked", "full_attention"]}), "layer_types is"),
        (json!({"layer_types": 3}), "layer_types is 3"),
        (json!({"rope_scaling": {"type": "linear", "factor": 0}}), "factor is 0"),
        (json!({"rope_scaling": {"type": "ntk", "factor": -2}}), "factor is -2"),
        (json!({"rope_scaling": {"type": "ntk"}}), "factor is nothing"),
        (json!({"rope_scaling": {"type": "ntk", "factor": 1e308}}), "not finite"),
        (json!({"max_position_embeddings": 0}), "positions"),
        (json!({"max_position_embeddings": null}), "max_position_embeddings"),
        (json!({"max_position_embeddings": 1u64 << 60}), "too many"),
        (json!({"num_hidden_layers": 1u64 << 60}), "not a number of layers"),
        (json!({"norm_eps": "nan"}), "not an epsilon"),
    ] {
        let error = embed(&changes).unwrap_err();
        assert!(error.contains(said), "{changes}: {error}");
    }
}

#[test]
fn what_nothing_here_follows_is_named() {
    let names = |changes: Json| -> Vec<String> {
        let spec = ModelSpec::of(&model(&changes)).unwrap();
        assert!(embed(&changes).is_err(), "{changes}");
        lacks(&spec).into_iter().map(|lack| lack.name).collect()
    };
    assert_eq!(names(json!({"hidden_activation": "quick_gelu"})), ["activation quick_gelu"]);
    let yarn = json!({"rope_parameters": {"full_attention": {"rope_type": "yarn", "factor": 2.0}}});
    assert_eq!(names(yarn), ["rope scaling yarn"]);
    let code = json!({"model_type": "odd", "architectures": ["OddModel"],
        "auto_map": {"AutoModel": "org/odd--modeling.OddModel"}});
    assert_eq!(names(code), ["architecture odd", "remote code org/odd--modeling.OddModel"]);
    let nomic = |key: &str, value: Json| {
        let spec = ModelSpec::of(&model(&json!({"model_type": "nomic_bert", key: value}))).unwrap();
        lacks(&spec).into_iter().map(|lack| lack.name).collect::<Vec<_>>()
    };
    assert_eq!(nomic("prenorm", json!(true)), ["setting prenorm true"]);
    assert_eq!(nomic("rotary_emb_fraction", json!(0.5)), ["setting rotary_emb_fraction 0.5"]);
    assert_eq!(nomic("rotary_emb_fraction", json!(1)), [""; 0]);
    assert_eq!(nomic("rotary_scaling_factor", json!(2)), ["rope scaling dynamic"]);
}
