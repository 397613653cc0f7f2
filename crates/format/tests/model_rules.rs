//! Models are held against their description: every rule about models is broken by some file, and
//! models of others break none.

mod common;

use common::format_of;
use std::collections::BTreeSet;
use weighbridge_format::model::{Attachment, Container, Encoding, Tensor, Value};
use weighbridge_format::source::View;
use weighbridge_format::spec::{ModelSpec, SaidBy, model_rules};
use weighbridge_format::{Formats, Input, Options, samples};

/// What `verify` finds in a model that was stored in a format: rules and fields.
fn found(container: &Container, format: &str) -> Vec<(&'static str, String)> {
    let plan = format_of(format).plan(container, &Options::default()).unwrap().accept_losses(true);
    let input = Input::in_memory(&format!("tiny.{format}"), plan.to_bytes().unwrap(), Vec::new());
    let options = Options::default();
    let (_, findings) = Formats::builtin().check(&input, &options, false).unwrap();
    findings.list().iter().map(|f| (f.rule, f.field.clone())).collect()
}

fn tiny(change: impl FnOnce(&mut Container)) -> Container {
    let mut model = samples::tiny_model();
    change(&mut model);
    model
}

fn tensor<'a>(model: &'a mut Container, name: &str) -> &'a mut Tensor {
    model.tensors.iter_mut().find(|t| t.name == name).unwrap()
}

/// Another shape of the same size.
fn reshape(model: &mut Container, name: &str, shape: &[u64]) {
    let old = tensor(model, name);
    let view = old.view().unwrap().clone();
    *old = Tensor::stored(name, old.encoding.clone(), shape.to_vec(), view).unwrap();
}

const QUERY: &str = "encoder.layer.0.attention.self.query.weight";

/// A model that breaks each rule, and the field that is named.
fn broken() -> Vec<(&'static str, &'static str, Container)> {
    let attach = |name: &str, text: &str| Attachment {
        name: name.to_owned(),
        data: View::owned(text.as_bytes().to_vec()),
        described: false,
    };
    vec![
        ("MODEL-01", "config.json", tiny(|m| m.attachments.push(attach("config.json", "{")))),
        ("MODEL-02", "num_attention_heads", tiny(|m| m.set_text("num_attention_heads", "abc"))),
        ("MODEL-02", "num_attention_heads", tiny(|m| m.set_text("num_attention_heads", "5"))),
        ("MODEL-02", "layer_norm_eps", tiny(|m| m.set_text("layer_norm_eps", "tiny"))),
        ("MODEL-02", "normalize", tiny(|m| m.set_text("normalize", "perhaps"))),
        ("MODEL-03", QUERY, tiny(|m| m.tensors.retain(|t| t.name != QUERY))),
        ("MODEL-04", QUERY, tiny(|m| reshape(m, QUERY, &[8, 32]))),
        (
            "MODEL-05",
            QUERY,
            tiny(|m| {
                let dtype = weighbridge_codec::DType::I32;
                let old = tensor(m, QUERY);
                let (shape, view) = (old.shape.clone(), old.view().unwrap().clone());
                *old = Tensor::stored(QUERY, Encoding::Plain(dtype), shape, view).unwrap();
            }),
        ),
        ("MODEL-06", "num_layers", tiny(|m| m.set_text("num_layers", "2"))),
        ("MODEL-06", "vocab_size", tiny(|m| m.set_text("vocab_size", "23"))),
        (
            "MODEL-07",
            "special token cls",
            tiny(|m| {
                // [CLS] and [SEP] swapped.
                for (name, id) in &mut m.vocabulary.as_mut().unwrap().special {
                    *id = match name.as_str() {
                        "cls" => 3,
                        "sep" => 2,
                        _ => *id,
                    };
                }
            }),
        ),
        (
            "MODEL-08",
            "token \"a\"",
            tiny(|m| {
                let old = m.vocabulary.take().unwrap();
                let words = old.tokens().map(|t| if t == "the" { "a".into() } else { t });
                let words: Vec<_> = words.map(|t| t.into_owned()).collect();
                let mut new =
                    weighbridge_format::Vocabulary::from_tokens(words.iter().map(String::as_str));
                new.special = old.special;
                m.vocabulary = Some(new);
            }),
        ),
        ("MODEL-09", "all-MiniLM-L6-v2", tiny(|m| m.set_text("model_name", "all-MiniLM-L6-v2"))),
    ]
}

#[test]
fn every_rule_about_models_is_broken_by_some_file() {
    let mut seen = BTreeSet::new();
    for (rule, field, model) in broken() {
        for format in ["embd", "mcf", "oinf", "safetensors"] {
            // Some have a number of their own for it.
            let expected = match (format, rule) {
                ("embd", "MODEL-06") => "EMBD-30",
                ("mcf", "MODEL-01") => "MCF-41",
                // It has no place for files.
                ("embd", "MODEL-01") => continue,
                // Special tokens are found by their texts there.
                ("mcf", "MODEL-07") => continue,
                _ => rule,
            };
            let found = found(&model, format);
            let is_there = found.iter().any(|(r, f)| *r == expected && f.contains(field));
            assert!(is_there, "{rule} {field} as {format}: {found:?}");
        }
        seen.insert(rule);
    }
    assert_eq!(seen, model_rules().iter().map(|r| r.id).collect());
    for format in ["embd", "mcf", "oinf", "safetensors"] {
        assert_eq!(found(&samples::tiny_model(), format), [], "{format}");
    }
}

/// The model directory with a change in each of some files, checked as it is and packed into MCF.
fn found_in_folder(change: impl Fn(&str, &mut String)) -> [Vec<(&'static str, String)>; 2] {
    let mut files = samples::model_directory().unwrap();
    for (name, bytes) in files.iter_mut().filter(|(name, _)| !name.ends_with(".safetensors")) {
        let mut text = String::from_utf8(std::mem::take(bytes)).unwrap();
        change(name, &mut text);
        *bytes = text.into_bytes();
    }
    let mut folder = Input::in_memory("tiny", Vec::new(), files);
    folder.is_folder = true;
    let options = Options::default();
    let container = Formats::builtin().open(&folder, &options).unwrap();
    let (_, findings) = Formats::builtin().check(&folder, &options, false).unwrap();
    let own = findings.list().iter().map(|f| (f.rule, f.field.clone())).collect();
    [own, found(&container, "mcf")]
}

/// Directories, and MCF files with the same files in them.
#[test]
fn directories_are_held_against_their_tokenizer() {
    for found in found_in_folder(|_, _| {}) {
        assert_eq!(found, []);
    }
    let swapped = serde_json::json!({
        "version": "1.0",
        "normalizer": {"type": "BertNormalizer", "lowercase": true, "strip_accents": null,
            "handle_chinese_chars": true, "clean_text": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "cls": ["[CLS]", 3], "sep": ["[SEP]", 2]},
    });
    let twice = |name: &str, text: &mut String| {
        if name == "vocab.txt" {
            *text = text.replacen("\nthe\n", "\na\n", 1);
        }
    };
    let heads = |name: &str, text: &mut String| {
        if name == "config.json" {
            let mut json: serde_json::Value = serde_json::from_str(text).unwrap();
            json["num_attention_heads"] = "abc".into();
            *text = json.to_string();
        }
    };
    for found in found_in_folder(twice) {
        assert!(found.iter().any(|(rule, _)| *rule == "MODEL-08"), "{found:?}");
    }
    for found in found_in_folder(heads) {
        let is_heads = |(rule, field): &(&str, String)| {
            *rule == "MODEL-02" && field.contains("num_attention_heads")
        };
        assert!(found.iter().any(is_heads), "{found:?}");
    }
    // A tokenizer.json beside the list of tokens.
    let mut files = samples::model_directory().unwrap();
    let list = files.iter().find(|(name, _)| name == "vocab.txt").unwrap();
    let tokens: Vec<_> = std::str::from_utf8(&list.1).unwrap().lines().map(str::to_owned).collect();
    let vocab: serde_json::Map<_, _> =
        tokens.iter().enumerate().map(|(i, token)| (token.clone(), i.into())).collect();
    let mut tokenizer = swapped;
    tokenizer["model"] = serde_json::json!({"type": "WordPiece", "unk_token": "[UNK]",
        "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": vocab});
    files.retain(|(name, _)| name != "tokenizer.json");
    files.push(("tokenizer.json".into(), tokenizer.to_string().into_bytes()));
    let mut folder = Input::in_memory("tiny", Vec::new(), files);
    folder.is_folder = true;
    let container = Formats::builtin().open(&folder, &Options::default()).unwrap();
    let (_, findings) = Formats::builtin().check(&folder, &Options::default(), false).unwrap();
    let own: Vec<_> = findings.list().iter().filter(|f| f.rule == "MODEL-07").collect();
    assert_eq!(own.len(), 2, "{:?}", findings.list());
    assert_eq!(own[0].file, "tiny/tokenizer.json");
    assert_eq!(found(&container, "mcf").iter().filter(|(r, _)| *r == "MODEL-07").count(), 2);
}

/// The place that is named is that of the entry, also behind entries that became something else.
#[test]
fn what_disagrees_is_named_where_it_stands() {
    let model = tiny(|m| m.set_text("num_layers", "2"));
    let bytes = |format: &str| {
        let plan = format_of(format).plan(&model, &Options::default()).unwrap();
        plan.accept_losses(true).to_bytes().unwrap()
    };
    for (format, rule) in [("embd", "EMBD-30"), ("oinf", "MODEL-06")] {
        let bytes = bytes(format);
        let input = Input::from_bytes(&format!("x.{format}"), bytes.clone());
        let (_, findings) = Formats::builtin().check(&input, &Options::default(), false).unwrap();
        let found = findings.list().iter().find(|f| f.rule == rule).unwrap();
        let range = usize::try_from(found.start).unwrap()..usize::try_from(found.end).unwrap();
        let text = String::from_utf8_lossy(&bytes[range]);
        assert!(text.trim_end_matches('\0').ends_with('2'), "{format}: {text:?} {found:?}");
    }
}

/// Tokens are tokens of a model also where no one knows its architecture.
#[test]
fn tokens_are_checked_whatever_the_tensors_are() {
    for (rule, _, mut model) in broken() {
        if ["MODEL-07", "MODEL-08"].contains(&rule) {
            model.tensors.retain(|t| t.name.contains("LayerNorm"));
            model.metadata.retain(|(key, _)| key == "model_name");
            for format in ["embd", "oinf"] {
                let found = found(&model, format);
                assert!(found.iter().any(|(r, _)| *r == rule), "{rule} as {format}: {found:?}");
            }
        }
    }
}

/// A vocabulary that a table of rows is longer than is one whose rows nothing uses; a longer
/// vocabulary is of another model.
#[test]
fn padded_tables_are_no_errors() {
    let model = tiny(|m| {
        let words: Vec<_> = m.vocabulary.as_ref().unwrap().tokens().take(23).collect();
        let mut fewer = weighbridge_format::Vocabulary::from_tokens(words.iter().map(|w| &**w));
        fewer.find_special();
        m.vocabulary = Some(fewer);
    });
    assert_eq!(found(&model, "safetensors"), []);
}

/// Tensors of a model that nobody calls one.
#[test]
fn some_tensors_are_no_broken_model() {
    let part = tiny(|m| {
        m.metadata.clear();
        m.tensors.retain(|t| !t.name.contains("LayerNorm"));
    });
    assert_eq!(found(&part, "safetensors"), []);
}

#[test]
fn facts_know_who_said_them() {
    let spec = ModelSpec::of(&samples::tiny_model()).unwrap();
    let layers = spec.layers.as_ref().unwrap();
    assert_eq!((layers.value, &layers.said_by), (1, &SaidBy::Metadata("num_layers".into())));
    assert!(spec.pooling.is_assumed() && spec.normalize.is_assumed());
    let bare = tiny(|m| m.metadata.clear());
    let spec = ModelSpec::of(&bare).unwrap();
    assert_eq!(spec.layers.unwrap().said_by, SaidBy::Content);
    assert_eq!(spec.architecture.unwrap().said_by, SaidBy::Content);
    assert!(spec.heads.is_none(), "16 values have no usual number of heads");
    // What is no model has no description.
    let spec = ModelSpec::of(&samples::unit_vectors()).unwrap();
    assert!(spec.architecture.is_none() && spec.layers.is_none());
    let numbers = tiny(|m| {
        m.metadata.retain(|(k, _)| k != "num_layers");
        m.metadata.push(("num_layers".into(), Value::Number(weighbridge_codec::DType::U32, 1)));
    });
    assert_eq!(ModelSpec::of(&numbers).unwrap().layers.unwrap().value, 1);
}

/// Where nothing but the names of tensors tells what a model is.
#[test]
fn architectures_are_recognised_by_their_tensors() {
    let words = "embeddings.word_embeddings.weight";
    for (kind, words, sign) in [
        ("bert", words, QUERY),
        ("distilbert", words, "transformer.layer.0.attention.q_lin.weight"),
        ("mpnet", words, "encoder.relative_attention_bias.weight"),
        ("nomic_bert", words, "encoder.layers.0.attn.Wqkv.weight"),
        ("nomic_bert", words, "layers.0.self_attn.q_proj.weight"),
        ("modernbert", "embeddings.tok_embeddings.weight", "layers.0.attn.Wqkv.weight"),
        ("new", words, "encoder.layer.0.attention.qkv_proj.weight"),
    ] {
        for prefix in ["", "0.auto_model."] {
            let builder = Container::builder()
                .values(format!("{prefix}{words}"), &[2, 4], vec![0.0; 8])
                .values(format!("{prefix}{sign}"), &[2, 4], vec![0.0; 8]);
            let spec = ModelSpec::of(&builder.build().unwrap()).unwrap();
            let found = spec.architecture.unwrap();
            assert_eq!((found.value.as_str(), found.said_by), (kind, SaidBy::Content));
            assert_eq!(spec.hidden.unwrap().value, 4, "{sign}");
        }
    }
}

/// Heads that can't be turned in pairs make no sense where positions turn them.
#[test]
fn rotary_heads_have_an_even_width() {
    let config = r#"{"model_type": "nomic_bert", "n_embd": 12, "n_head": 4, "rotary_emb_base": 0}"#;
    let mut model = tiny(|_| ());
    model.metadata.clear();
    let data = View::owned(config.as_bytes().to_vec());
    let name = "config.json".to_owned();
    model.attachments.push(Attachment { name, data, described: false });
    let fields: Vec<_> =
        found(&model, "oinf").into_iter().filter(|(r, _)| *r == "MODEL-02").collect();
    let fields: Vec<_> = fields.iter().map(|(_, field)| field.as_str()).collect();
    assert!(fields.iter().any(|field| field.contains("n_head")), "{fields:?}");
    assert!(fields.iter().any(|field| field.contains("rotary_emb_base")), "{fields:?}");
}
