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
