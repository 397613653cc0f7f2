//! tokenizer.json: every family's file is parsed to its parts, and what is wrong is named. The
//! families are skipped, visibly, where they are absent.

use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use weighbridge_format::model::{Attachment, Container, Value};
use weighbridge_format::source::{Bytes, View};
use weighbridge_format::spec::tokenizer::{
    BertNormalizer, Normalizer, PostProcessor, PreTokenizer, TemplatePiece, TokenModel,
    TokenizerFile,
};
use weighbridge_format::spec::{ModelSpec, SaidBy};
use weighbridge_testkit::data::reference;

/// The files of this name in a folder and those in it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.file_name().is_some_and(|name| name == "tokenizer.json") {
            found.push(path);
        }
    }
    found
}

#[test]
fn the_tokenizers_of_all_families_are_parsed() {
    let Some(families) = reference("families") else { return };
    let files = files(&families);
    let mut kinds: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for path in &files {
        let json = std::fs::read(path).unwrap();
        let file = TokenizerFile::parse(&json).unwrap();
        let model = file.model_kind().unwrap().to_owned();
        for (part, kind) in [
            ("model", model.as_str()),
            ("normalizer", file.normalizer_kind()),
            ("pre-tokenizer", file.pre_tokenizer_kind()),
            ("post-processor", file.post_processor_kind()),
        ] {
            *kinds.entry((part, kind.to_owned())).or_default() += 1;
        }
        assert_eq!(file.version().unwrap(), Some("1.0"), "{path:?}");
        assert!(!file.added_tokens().unwrap().is_empty(), "{path:?}");
        let is_bert = matches!(file.normalizer().unwrap(), Normalizer::Bert(_));
        assert_eq!(is_bert, file.normalizer_kind() == "BertNormalizer", "{path:?}");
        assert_eq!(file.pre_tokenizer() == PreTokenizer::Bert, model == "WordPiece", "{path:?}");
        if let PostProcessor::Template(template) = file.post_processor().unwrap() {
            let is_text = |piece: &TemplatePiece| matches!(piece, TemplatePiece::Sequence { .. });
            assert_eq!(template.single.iter().filter(|piece| is_text(piece)).count(), 1);
        }
        let counted = file.vocabulary().unwrap().tokens();
        match TokenizerFile::parse_with_tokens(&json).unwrap().into_model().unwrap() {
            TokenModel::WordPiece(piece) => {
                let tokens = piece.vocab.in_order().unwrap();
                assert_eq!(tokens.iter().count() as u64, counted, "{path:?}");
                assert!(tokens.iter().any(|token| token == piece.unk_token), "{path:?}");
            }
            TokenModel::Unigram(_) => {
                let file = TokenizerFile::parse_with_scores(&json).unwrap();
                let TokenModel::Unigram(unigram) = file.into_model().unwrap() else {
                    panic!("{path:?}");
                };
                assert_eq!(unigram.vocab.len() as u64, counted, "{path:?}");
                assert!(unigram.unk_id < counted, "{path:?}");
            }
            TokenModel::Bpe(bpe) => {
                let file = TokenizerFile::parse_with_numbers(&json).unwrap();
                let vocabulary = file.into_vocabulary().unwrap();
                assert_eq!(vocabulary.len() as u64, counted, "{path:?}");
                let joined =
                    |(a, b): &(String, String)| vocabulary.contains_key(&[&a[..], b].concat());
                assert!(!bpe.has_dropout && bpe.merges.iter().all(joined), "{path:?}");
            }
            _ => panic!("{path:?}: {model}"),
        }
    }
    assert_eq!(files.len(), 27);
    let found: Vec<_> =
        kinds.iter().map(|((part, kind), n)| format!("{part} {kind} {n}")).collect();
    assert_eq!(
        found,
        [
            "model BPE 5",
            "model Unigram 5",
            "model WordPiece 17",
            "normalizer BertNormalizer 17",
            "normalizer NFC 3",
            "normalizer Precompiled 1",
            "normalizer Replace 1",
            "normalizer Sequence 4",
            "normalizer none 1",
            "post-processor RobertaProcessing 1",
            "post-processor Sequence 1",
            "post-processor TemplateProcessing 24",
            "post-processor none 1",
            "pre-tokenizer BertPreTokenizer 17",
            "pre-tokenizer ByteLevel 3",
            "pre-tokenizer Metaspace 4",
            "pre-tokenizer Sequence 2",
            "pre-tokenizer Split 1",
        ]
    );
}

fn bert() -> Json {
    json!({
        "normalizer": {
            "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": false,
            "strip_accents": null, "lowercase": true,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "BertProcessing", "sep": ["[SEP]", 1], "cls": ["[CLS]", 0],
        },
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": {"[CLS]": 0, "[SEP]": 1, "[UNK]": 2},
        },
    })
}

/// A container with this tokenizer.json and metadata.
fn container(json: &Json, metadata: &[(&str, Value)]) -> Container {
    Container {
        attachments: vec![Attachment {
            name: "tokenizer.json".into(),
            data: View::owned(json.to_string().into_bytes()),
            described: true,
        }],
        metadata: metadata.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect(),
        ..Container::default()
    }
}

#[test]
fn a_description_has_the_names_of_the_parts() {
    let spec = ModelSpec::of(&container(&bert(), &[])).unwrap();
    let facts = serde_json::to_value(spec.tokenizer.unwrap()).unwrap();
    for (part, kind) in [
        ("normalizer", "BertNormalizer"),
        ("pre_tokenizer", "BertPreTokenizer"),
        ("post_processor", "BertProcessing"),
    ] {
        let by = json!({"file": format!("tokenizer.json {part}")});
        assert_eq!(facts[part], json!({"value": kind, "said_by": by}));
    }
    assert_eq!(facts["kind"]["value"], "WordPiece");
    assert_eq!(facts["split_chinese"]["value"], false);
    assert_eq!(facts["tokens"], 3);

    let mut bare = bert();
    bare["normalizer"] = Json::Null;
    bare["post_processor"] = json!({"type": 7});
    // Files of the first years don't name the model.
    bare["model"].as_object_mut().unwrap().remove("type");
    let facts = ModelSpec::of(&container(&bare, &[])).unwrap().tokenizer.unwrap();
    assert_eq!(facts.kind.value, "WordPiece");
    assert_eq!(facts.normalizer.unwrap().value, "none");
    assert_eq!(facts.post_processor.unwrap().value, "nameless");
    assert!(facts.lower_case.is_none());
}

#[test]
fn a_description_needs_neither_vocabulary_nor_sense() {
    let mut odd = bert();
    odd["model"]["vocab"] = json!({"a": -1, "b": [1, {"c": "d"}]});
    odd["added_tokens"] = json!("none");
    odd["post_processor"]["cls"] = json!(5);
    let spec = ModelSpec::of(&container(&odd, &[])).unwrap();
    assert!(spec.misstatements.is_empty());
    assert_eq!(spec.tokenizer.unwrap().kind.value, "WordPiece");
    let odd = odd.to_string();
    let file = TokenizerFile::parse(odd.as_bytes()).unwrap();
    assert_eq!(file.added_tokens().unwrap_err().field, "tokenizer.json added_tokens");
    assert_eq!(file.post_processor().unwrap_err().field, "tokenizer.json post_processor");
    assert_eq!(file.vocabulary().unwrap().tokens(), 2);
    assert!(TokenizerFile::parse_with_tokens(odd.as_bytes()).is_err());
}

#[test]
fn flags_that_are_none_are_misstatements() {
    let mut odd = bert();
    odd["normalizer"]["lowercase"] = json!("yes");
    let list = Value::Bits { count: 3, bytes: Bytes::owned(vec![5]) };
    let metadata = [("do_lower_case", Value::Text("perhaps".into())), ("strip_accents", list)];
    let spec = ModelSpec::of(&container(&odd, &metadata)).unwrap();
    let fields: Vec<_> = spec.misstatements.iter().map(|wrong| wrong.field.as_str()).collect();
    assert_eq!(
        fields,
        ["tokenizer.json normalizer lowercase", "metadata do_lower_case", "metadata strip_accents"]
    );
    assert!(spec.misstatements.iter().all(|wrong| wrong.expected == "true or false"));
}

#[test]
fn the_settings_of_bert_are_typed() {
    let json = bert().to_string();
    let file = TokenizerFile::parse(json.as_bytes()).unwrap();
    let settings = BertNormalizer {
        clean_text: true,
        handle_chinese_chars: false,
        strip_accents: None,
        lowercase: true,
    };
    assert_eq!(file.normalizer().unwrap(), Normalizer::Bert(settings));
    let spec = ModelSpec::of(&container(&bert(), &[])).unwrap().tokenizer.unwrap();
    let by = SaidBy::File("tokenizer.json normalizer lowercase".into());
    assert_eq!(spec.strip_accents.unwrap().said_by, by);
}
