//! Token numbers against the crate `tokenizers`, which defines what is right, and against reference
//! numbers.

#![cfg(feature = "tokenizers")]

use rayon::prelude::*;
use std::ops::Range;
use tokenizers::{TruncationParams, normalizers::BertNormalizer};
use weighbridge_encoder::tokenizer::{Casing, Tokenizer};
use weighbridge_format::Vocabulary;
use weighbridge_format::model::{Attachment, Container, Value};
use weighbridge_format::source::{Bytes, View};
use weighbridge_testkit::data::{minilm, reference as reference_folder};

#[path = "tokenizer/hostile.rs"]
mod hostile;
#[path = "tokenizer/samples.rs"]
mod samples;

use samples::{Random, added_tokens, casings, file, text, vocabulary};

type Oracle = tokenizers::Tokenizer;

fn oracle(json: &[u8]) -> Oracle {
    let mut oracle = Oracle::from_bytes(json).unwrap();
    oracle.with_padding(None);
    oracle.with_truncation(None).unwrap();
    oracle
}

fn encode(tokenizer: &Tokenizer, text: &str, max_tokens: usize) -> Vec<u32> {
    // What was there before stays.
    let mut ids = vec![u32::MAX];
    tokenizer.encode_into(text, max_tokens, &mut ids);
    assert_eq!(ids.remove(0), u32::MAX);
    ids
}

fn assert_same(tokenizer: &Tokenizer, oracle: &Oracle, text: &str) {
    let wanted = oracle.encode_fast(text, true).unwrap();
    let found = encode(tokenizer, text, usize::MAX);
    if found != wanted.get_ids() {
        // The first piece that differs tells more than a long text.
        let piece = text.split(" | ").find(|piece| {
            encode(tokenizer, piece, usize::MAX)
                != oracle.encode_fast(*piece, true).unwrap().get_ids()
        });
        let piece = piece.unwrap_or(text);
        let found = encode(tokenizer, piece, usize::MAX);
        let found: Vec<_> = found.iter().map(|id| tokenizer.token(*id)).collect();
        let wanted = oracle.encode_fast(piece, true).unwrap();
        panic!("{:?} {piece:?}\n{found:?}\n{:?}", tokenizer.casing(), wanted.get_tokens());
    }
}

/// Our tokenizer and the oracle with each of the settings.
fn with_casings(added: &serde_json::Value) -> Vec<(Tokenizer, Oracle)> {
    let tokens = vocabulary();
    let pair = |casing: &Casing| {
        let json = file(&tokens, added, *casing);
        (Tokenizer::from_json(json.as_bytes()).unwrap(), oracle(json.as_bytes()))
    };
    casings().par_iter().map(pair).collect()
}

#[test]
fn generated_texts_have_the_tokens_of_the_oracle() {
    for (further, count) in [(false, 2_000u64), (true, 10_000)] {
        for (which, (tokenizer, oracle)) in with_casings(&added_tokens(further)).iter().enumerate()
        {
            (0..count).into_par_iter().for_each(|seed| {
                let mut random = Random::new(seed * 16 + which as u64);
                assert_same(tokenizer, oracle, &text(&mut random));
            });
        }
    }
}

/// Blocks of 256 characters that are not all alike. Elsewhere are ideographs, syllables, private use
/// and no characters, of which some are enough.
const VARIED: [Range<u32>; 8] = [
    0..0x34,
    0xa0..0xac,
    0xf9..0x122,
    0x160..0x170,
    0x1b0..0x1c0,
    0x1d0..0x1fb,
    0x2f8..0x2fb,
    0xe00..0xe02,
];

#[test]
fn every_character_has_the_tokens_of_the_oracle() {
    let both = with_casings(&added_tokens(true));
    for (which, (tokenizer, oracle)) in both.iter().enumerate() {
        (0..0x1100u32).into_par_iter().for_each(|block| {
            let codes = (block * 256..(block + 1) * 256).filter_map(char::from_u32);
            // Every character once, with the first settings.
            let varied = VARIED.iter().any(|blocks| blocks.contains(&block));
            let mut texts = String::new();
            for c in codes.filter(|c| varied || which == 0 || (*c as u32).is_multiple_of(61)) {
                texts += &format!("a{c}b | ");
                if varied || (c as u32).is_multiple_of(61) {
                    // Alone, with marks that go or stay, and where marks are ordered around it.
                    texts += &format!("{c} | x {c} y | {c}\u{301}\u{302e}{c} | ");
                    texts += &format!("e\u{1d16d}{c}\u{1d165}\u{8d4} | {c}day [MASK]{c} | ");
                }
            }
            assert_same(tokenizer, oracle, &texts);
        });
    }
}

#[test]
fn long_texts_are_cut_before_the_last_token() {
    let json = file(&vocabulary(), &added_tokens(true), Casing::UNCASED);
    let tokenizer = Tokenizer::from_json(json.as_bytes()).unwrap();
    let mut oracle = oracle(json.as_bytes());
    for seed in 0..300 {
        let text = text(&mut Random::new(seed));
        let max_length = 2 + seed as usize % 30;
        let limit = TruncationParams { max_length, ..Default::default() };
        oracle.with_truncation(Some(limit)).unwrap();
        let wanted = oracle.encode_fast(text.as_str(), true).unwrap();
        assert_eq!(encode(&tokenizer, &text, max_length), wanted.get_ids(), "{text:?}");
    }
    let name = |id: &u32| tokenizer.token(*id).unwrap().into_owned();
    let names = |max| encode(&tokenizer, "day", max).iter().map(name).collect::<Vec<_>>();
    assert_eq!(names(3), ["[CLS]", "day", "[SEP]"]);
    assert_eq!(names(2), ["[CLS]", "[SEP]"]);
    assert_eq!(names(1), ["[CLS]"]);
    assert!(names(0).is_empty());
}

#[test]
fn a_vocabulary_is_as_good_as_its_tokenizer_json() {
    let tokens = vocabulary();
    let mut listed = Vocabulary::from_tokens(tokens.iter().map(String::as_str));
    for find_special in [false, true] {
        if find_special {
            listed.find_special();
        }
        for casing in casings() {
            let json = file(&tokens, &added_tokens(false), casing);
            let from_json = Tokenizer::from_json(json.as_bytes()).unwrap();
            let tokenizer = Tokenizer::from_vocabulary(&listed, casing).unwrap();
            assert_eq!(tokenizer.len(), tokens.len());
            for seed in 0..500 {
                let text = text(&mut Random::new(seed));
                let ids = encode(&tokenizer, &text, usize::MAX);
                assert_eq!(ids, encode(&from_json, &text, usize::MAX), "{text:?}");
            }
        }
    }
}

#[test]
fn tokens_have_their_names() {
    let json = file(&vocabulary(), &added_tokens(true), Casing::UNCASED);
    let (tokenizer, oracle) =
        (Tokenizer::from_json(json.as_bytes()).unwrap(), oracle(json.as_bytes()));
    assert_eq!(tokenizer.len(), oracle.get_vocab_size(true));
    for (name, id) in oracle.get_vocab(true) {
        assert_eq!(tokenizer.token(id).as_deref(), Some(name.as_str()));
    }
    let len = u32::try_from(tokenizer.len()).unwrap();
    assert_eq!((tokenizer.token(len), tokenizer.token(u32::MAX)), (None, None));
}

const SPECIAL: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];

/// A container with a vocabulary.
fn container(words: &[&str], settings: &[(&str, &str)]) -> Container {
    let mut vocabulary = Vocabulary::from_tokens(SPECIAL.iter().chain(words).copied());
    vocabulary.find_special();
    let metadata = settings.iter().map(|(k, v)| ((*k).into(), Value::Text((*v).into())));
    Container { vocabulary: Some(vocabulary), metadata: metadata.collect(), ..Container::default() }
}

#[test]
fn a_container_says_how_or_its_vocabulary_does() {
    let of = |container: &Container| Tokenizer::of(container).unwrap().casing();
    assert_eq!(of(&container(&["a", "##b", "ℝ"], &[])), Casing::UNCASED);
    assert_eq!(of(&container(&["a", "##B"], &[])), Casing::CASED);
    assert_eq!(of(&container(&["a", "É"], &[])), Casing::CASED);
    assert_eq!(of(&container(&["A"], &[("do_lower_case", "true")])), Casing::UNCASED);
    assert_eq!(of(&container(&["a"], &[("do_lower_case", "false")])), Casing::CASED);
    let settings = [("strip_accents", "false"), ("tokenize_chinese_chars", "false")];
    let kept = Casing { strip_accents: false, split_chinese: false, ..Casing::UNCASED };
    assert_eq!(of(&container(&["a"], &settings)), kept);
    let odd = Tokenizer::of(&container(&["a"], &[("do_lower_case", "perhaps")])).unwrap_err();
    assert!(odd.to_string().starts_with("metadata do_lower_case is \"perhaps\""), "{odd}");
    let mut odd = container(&["a"], &[("num_layers", "several")]);
    assert_eq!(of(&odd), Casing::UNCASED, "what is wrong elsewhere is not the tokenizer's");
    let list = Value::Bits { count: 3, bytes: Bytes::owned(vec![5]) };
    odd.metadata.push(("strip_accents".into(), list));
    let odd = Tokenizer::of(&odd).unwrap_err();
    assert!(odd.to_string().contains("strip_accents"), "{odd}");
    let none = Tokenizer::of(&Container::default()).unwrap_err();
    assert!(none.to_string().contains("no vocabulary"), "{none}");

    let mut with_file = container(&["a"], &[]);
    let json = file(&vocabulary(), &added_tokens(false), Casing::CASED);
    with_file.attachments.push(Attachment {
        name: "tokenizer.json".into(),
        data: View::owned(json.into_bytes()),
        described: true,
    });
    assert_eq!(of(&with_file), Casing::CASED);
}

#[test]
fn a_special_token_that_is_missing_is_named() {
    for missing in ["[UNK]", "[CLS]", "[SEP]"] {
        let tokens = SPECIAL.into_iter().filter(|token| *token != missing);
        let vocabulary = Vocabulary::from_tokens(tokens);
        let error = Tokenizer::from_vocabulary(&vocabulary, Casing::UNCASED).unwrap_err();
        assert!(error.to_string().contains(missing), "{error}");
    }
}

/// Texts and their token numbers, made with the reference implementation.
fn reference() -> Option<(Vec<String>, Vec<Vec<u32>>)> {
    let root = reference_folder("minilm")?;
    let texts = serde_json::from_slice(&std::fs::read(root.join("texts.json")).unwrap()).unwrap();
    let npy = std::fs::read(root.join("token_ids.npy")).unwrap();
    let header = 10 + usize::from(u16::from_le_bytes([npy[8], npy[9]]));
    assert!(String::from_utf8_lossy(&npy[..header]).contains("'<i4'"));
    let numbers = npy[header..].chunks_exact(4).map(|b| i32::from_le_bytes(b.try_into().unwrap()));
    let numbers: Vec<i32> = numbers.collect();
    // Shorter rows are filled up with -1.
    let row = |row: &[i32]| row.iter().map_while(|id| u32::try_from(*id).ok()).collect();
    Some((texts, numbers.chunks(256).map(row).collect()))
}

#[test]
fn reference_texts_have_their_reference_tokens() {
    let Some((texts, rows)) = reference() else { return };
    let Some(model) = minilm() else { return };
    assert_eq!((texts.len(), rows.len()), (220, 220));
    let json = std::fs::read(model.join("tokenizer.json")).unwrap();
    let words = std::fs::read_to_string(model.join("vocab.txt")).unwrap();
    let words = Vocabulary::from_tokens(words.trim_end_matches('\n').split('\n'));
    let tokenizers = [
        Tokenizer::from_json(&json).unwrap(),
        Tokenizer::from_vocabulary(&words, Casing::UNCASED).unwrap(),
    ];
    for tokenizer in &tokenizers {
        assert_eq!(tokenizer.len(), 30_522);
        for (text, wanted) in texts.iter().zip(&rows) {
            assert_eq!(&encode(tokenizer, text, 256), wanted, "{text:?}");
        }
    }
}

#[test]
fn generated_texts_have_the_tokens_of_the_oracle_with_a_real_vocabulary() {
    let Some(model) = minilm() else { return };
    let json = std::fs::read(model.join("tokenizer.json")).unwrap();
    for casing in casings() {
        let mut oracle = oracle(&json);
        let Casing { lower_case, strip_accents, split_chinese, clean } = casing;
        let normalizer = BertNormalizer::new(clean, split_chinese, Some(strip_accents), lower_case);
        oracle.with_normalizer(Some(normalizer)).unwrap();
        let json = oracle.to_string(false).unwrap();
        let tokenizer = Tokenizer::from_json(json.as_bytes()).unwrap();
        assert_eq!(tokenizer.casing(), casing);
        (0..10_000).into_par_iter().for_each(|seed| {
            assert_same(&tokenizer, &oracle, &text(&mut Random::new(seed)));
        });
    }
}
