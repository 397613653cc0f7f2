//! What a model needs and the encoder does not have is named, part by part.

#![cfg(feature = "tokenizers")]

use serde_json::{Value as Json, json};
use weighbridge_encoder::lacks;
use weighbridge_format::model::{Attachment, Container};
use weighbridge_format::source::View;
use weighbridge_format::spec::ModelSpec;

/// The names of what a BERT with such a tokenizer lacks.
fn names(tokenizer: &Json) -> Vec<String> {
    let config = json!({"model_type": "bert", "architectures": ["BertModel"]});
    let file = |name: &str, json: &Json| Attachment {
        name: name.to_owned(),
        data: View::owned(json.to_string().into_bytes()),
        described: true,
    };
    let attachments = vec![file("config.json", &config), file("tokenizer.json", tokenizer)];
    let spec = ModelSpec::of(&Container { attachments, ..Container::default() }).unwrap();
    lacks(&spec).into_iter().map(|lack| lack.name).collect()
}

#[test]
fn every_part_of_a_tokenizer_that_is_not_known_is_named() {
    let part = |kind: &str| json!({"type": kind});
    let odd = json!({
        "normalizer": part("Odd"), "pre_tokenizer": part("UnicodeScripts"),
        "post_processor": null, "model": {"type": "WordLevel", "vocab": {"a": 0}},
    });
    assert_eq!(
        names(&odd),
        [
            "tokenizer WordLevel",
            "post-processor none",
            "normalizer Odd",
            "pre-tokenizer UnicodeScripts"
        ]
    );
    let unigram = json!({
        "normalizer": part("Precompiled"), "pre_tokenizer": part("Metaspace"),
        "post_processor": part("TemplateProcessing"),
        "model": {"type": "Unigram", "unk_id": 0, "vocab": [["a", -1.0]]},
    });
    assert_eq!(names(&unigram), [""; 0]);
    let flags = json!({
        "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
        "lowercase": true,
    });
    for normalizer in [flags, Json::Null] {
        for post_processor in ["TemplateProcessing", "BertProcessing", "RobertaProcessing"] {
            let bert = json!({
                "normalizer": normalizer, "pre_tokenizer": part("BertPreTokenizer"),
                "post_processor": part(post_processor), "model": {"type": "WordPiece"},
            });
            assert_eq!(names(&bert), [""; 0]);
        }
    }
}
