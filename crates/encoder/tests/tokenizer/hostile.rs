//! Files that are not tokenizers, and texts that are not texts: errors that say why, no panic, and no
//! more memory or time than their size.

use super::samples::{added_tokens, file, vocabulary};
use serde_json::{Value as Json, json};
use weighbridge_encoder::tokenizer::{Casing, Tokenizer};

/// A small tokenizer.json.
fn small() -> Json {
    let tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b"].map(str::to_owned);
    serde_json::from_str(&file(&tokens, &added_tokens(false), Casing::UNCASED)).unwrap()
}

fn refusal(json: &Json) -> String {
    Tokenizer::from_json(json.to_string().as_bytes()).unwrap_err().to_string()
}

/// With the value at a place replaced; an absent one takes it out.
fn with(place: &str, value: Option<Json>) -> Json {
    let mut json = small();
    let (parent, key) = place.rsplit_once('/').unwrap();
    let map = json.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    match value {
        Some(value) => map.insert(key.to_owned(), value),
        None => map.remove(key),
    };
    json
}

#[test]
fn other_tokenizers_are_refused_by_name() {
    let level = json!({"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0}});
    assert_eq!(
        refusal(&with("/model", Some(level))),
        "tokenizer.json has a WordLevel tokenizer; WordPiece, Unigram and BPE are supported"
    );
    let unknown = json!({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Odd"}]});
    let expression = json!({"type": "Split", "pattern": {"Regex": "(a+)+$"}});
    for (place, value, name) in [
        ("/normalizer", unknown, "normalizer Odd"),
        ("/normalizer", json!([]), "normalizer"),
        ("/pre_tokenizer", json!({"type": "UnicodeScripts"}), "UnicodeScripts"),
        ("/pre_tokenizer", expression, "(a+)+$"),
        ("/pre_tokenizer", Json::Null, "pre-tokenizer"),
        ("/post_processor", json!({"type": "Sequence", "processors": []}), "Sequence"),
        ("/post_processor", Json::Null, "[CLS]"),
        ("/version", json!("2.0"), "2.0"),
    ] {
        let why = refusal(&with(place, Some(value)));
        assert!(why.contains(name), "{why}");
    }
}

/// Tokenizers that the crate `tokenizers` runs are held against what it would do with them.
#[test]
fn parts_that_would_lead_astray_are_refused() {
    let unigram = |vocab: Json, unknown: Json| json!({"type": "Unigram", "unk_id": unknown, "vocab": vocab, "byte_fallback": false});
    let bpe = |vocab: Json, merges: Json| json!({"type": "BPE", "vocab": vocab, "merges": merges});
    let replace = |n: usize, times: usize| {
        let one = json!({"type": "Replace", "pattern": {"String": "a"}, "content": "a".repeat(n)});
        json!({"type": "Sequence", "normalizers": vec![one; times]})
    };
    // The crate would cut the prefix off the second half of each merge, wherever that ends.
    let continued = |prefix: &str, vocab: Json, merges: Json| json!({"type": "BPE", "vocab": vocab, "merges": merges, "continuing_subword_prefix": prefix});
    let words = json!([["<unk>", 0.0], ["a", -1.0]]);
    let pair = json!({"a": 0, "b": 1, "ab": 2});
    for (place, value, name) in [
        ("/model", unigram(words.clone(), Json::Null), "unk_id"),
        ("/model", unigram(words.clone(), json!(2)), "model that can't be used"),
        ("/model", unigram(words.clone(), json!(u64::MAX)), "model that can't be used"),
        ("/model", unigram(words.clone(), json!(-1)), "unk_id"),
        ("/model", unigram(json!([["a", "b"]]), json!(0)), "description of a tokenizer"),
        ("/model", unigram(json!([["a".repeat(5000), 0.0]]), json!(0)), "1024 bytes"),
        ("/model", bpe(pair.clone(), json!([["a", "x"]])), "merges"),
        ("/model", bpe(pair.clone(), json!(["a b c"])), "merges"),
        ("/model", bpe(pair.clone(), json!("a b")), "merges"),
        ("/model", bpe(json!({"a": -1}), json!([])), "description of a tokenizer"),
        ("/model", bpe(pair.clone(), json!([["ab", "ab"]])), "merges"),
        ("/model", continued("######", pair.clone(), json!([["a", "b"]])), "merges"),
        ("/model", continued("#", json!({"a": 0, "é": 1, "aé": 2}), json!([["a", "é"]])), "merges"),
        ("/normalizer", replace(400, 8), "far longer"),
        ("/normalizer", replace(2, 11), "far longer"),
        ("/normalizer", replace(2, 40), "far longer"),
        ("/normalizer", json!({"type": "Precompiled", "precompiled_charsmap": "AAAA"}), "charsmap"),
    ] {
        let why = refusal(&with(place, Some(value)));
        assert!(why.contains(name), "{name}: {why}");
    }
    // Many replacements are fine where none makes what another replaces.
    let around =
        |c: char| json!({"type": "Replace", "pattern": {"String": c}, "content": format!(" {c} ")});
    let marks: Vec<_> = "!?.,;:()[]{}<>+-*/=".chars().map(around).collect();
    let mut spaced = with("/model", Some(unigram(words.clone(), json!(0))));
    spaced["normalizer"] = json!({"type": "Sequence", "normalizers": marks});
    spaced["post_processor"] = json!({"type": "BertProcessing", "cls": ["a", 1], "sep": ["a", 1]});
    spaced["added_tokens"] = json!([]);
    Tokenizer::from_json(spaced.to_string().as_bytes()).unwrap();
    // One behind the other, they make sixteen of each letter, and again sixteen of each of these.
    let letters: Vec<_> = "abcd".chars().zip("bcde".chars()).collect();
    let chain = letters.iter().map(|(from, to)| {
        json!({"type": "Replace", "pattern": {"String": from}, "content": to.to_string().repeat(16)})
    });
    let chain = json!({"type": "Sequence", "normalizers": chain.collect::<Vec<_>>()});
    assert!(refusal(&with("/normalizer", Some(chain))).contains("far longer"));
    let random = json!({"type": "BPE", "vocab": pair, "merges": [["a", "b"]], "dropout": 0.1});
    assert!(refusal(&with("/model", Some(random))).contains("at random"));
    let mut many = with("/model", Some(unigram(words.clone(), json!(0))));
    let token = |i: usize| {
        json!({"id": i, "content": format!("<{i}>"), "single_word": false, "lstrip": false,
            "rstrip": false, "normalized": false, "special": false})
    };
    many["added_tokens"] = (0..5_000).map(token).collect();
    assert!(refusal(&many).contains("added tokens"));
    // Too many to be looked at one by one, for whoever runs the tokenizer.
    let listed: Json = (0..1_000_000).map(token).collect();
    many["added_tokens"] = listed.clone();
    assert!(refusal(&many).contains("a part of"));
    assert!(refusal(&with("/added_tokens", Some(listed))).contains("a part of"));
    let ids = vec![2; 3_000_000];
    let special = json!({"[SEP]": {"id": "[SEP]", "ids": ids, "tokens": []}});
    let around = with("/post_processor/special_tokens", Some(special));
    assert!(refusal(&around).contains("a part of"));
    for id in [json!(-7), json!(4_294_967_296u64), json!("5"), json!(1.5)] {
        let mut wrong = small();
        wrong["added_tokens"][0]["id"] = id;
        assert!(refusal(&wrong).contains("tokens with numbers"));
    }
    // Deeper than any parser goes, and wide enough to take long.
    let mut nested = json!({"type": "NFC"});
    for _ in 0..200 {
        nested = json!({"type": "Sequence", "normalizers": [nested]});
    }
    assert!(refusal(&with("/normalizer", Some(nested))).contains("tokenizer.json"));
    let wide = json!({"type": "Sequence", "normalizers": vec![json!({"type": "NFC"}); 1000]});
    assert!(refusal(&with("/normalizer", Some(wide))).contains("more than 64"));
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    for place in [
        "/model",
        "/model/vocab",
        "/model/unk_token",
        "/model/continuing_subword_prefix",
        "/model/max_input_chars_per_word",
        "/normalizer/lowercase",
        "/normalizer/clean_text",
        "/normalizer/handle_chinese_chars",
        "/post_processor/single",
        "/post_processor/special_tokens",
        "/post_processor/special_tokens/[SEP]",
        "/model/vocab/[UNK]",
    ] {
        let why = refusal(&with(place, None));
        assert!(why.contains("tokenizer.json"), "{place}: {why}");
    }
    let mut no_content = small();
    no_content["added_tokens"][0].as_object_mut().unwrap().remove("content");
    assert!(refusal(&no_content).contains("content"));
    for place in ["/normalizer/strip_accents", "/model/type", "/normalizer", "/version"] {
        Tokenizer::from_json(with(place, None).to_string().as_bytes()).unwrap();
    }
}

#[test]
fn numbers_must_be_those_of_the_tokens() {
    for id in
        [json!(3), json!(7), json!(u32::MAX), json!(u64::MAX), json!(-1), json!(1.5), json!("6")]
    {
        refusal(&with("/model/vocab/##b", Some(id)));
    }
    // Texts would end with a token that there is not.
    for id in [json!(7), json!(u32::MAX)] {
        let special = json!({"id": "[SEP]", "ids": [id], "tokens": ["[SEP]"]});
        assert!(
            refusal(&with("/post_processor/special_tokens/[SEP]", Some(special)))
                .contains("does not exist")
        );
    }
    let twice = small().to_string().replace("\"##b\":", "\"a\":");
    let error = Tokenizer::from_json(twice.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("twice"), "{error}");
    // The order in the file is not what counts.
    let swapped =
        small().to_string().replace("\"a\":5", "\"a\":6").replace("\"##b\":6", "\"##b\":5");
    let tokenizer = Tokenizer::from_json(swapped.as_bytes()).unwrap();
    let mut ids = Vec::new();
    tokenizer.encode_into("ab b", 10, &mut ids);
    assert_eq!(ids, [2, 6, 5, 1, 3]);
}

#[test]
fn templates_that_repeat_have_an_end() {
    // A few kilobytes would ask for 16 million tokens before every text.
    let special = json!({
        "[CLS]": {"ids": vec![2; 4000]}, "[SEP]": {"ids": [3]}, "[NONE]": {"ids": []},
    });
    let piece = |name: &str| json!({"SpecialToken": {"id": name, "type_id": 0}});
    let text = json!({"Sequence": {"id": "A", "type_id": 0}});
    let refusal_of = |mut single: Vec<Json>| {
        single.push(text.clone());
        let mut json = with("/post_processor/special_tokens", Some(special.clone()));
        json["post_processor"]["single"] = single.into();
        refusal(&json)
    };
    for name in ["[CLS]", "[SEP]"] {
        let why = refusal_of(vec![piece(name); 4000]);
        assert!(why.contains("more than 1000 special tokens"), "{why}");
    }
    assert!(refusal_of(vec![piece("[MASK]")]).contains("no special token [MASK]"));
    assert!(refusal_of(vec![text.clone()]).contains("the text A"));
    let without_text = with("/post_processor/single", Some(json!([piece("[SEP]")])));
    assert!(refusal(&without_text).contains("no text"));
}

#[test]
fn broken_files_are_errors() {
    let whole = small().to_string();
    assert!(Tokenizer::from_json(b"").is_err());
    for end in 0..whole.len() {
        assert!(Tokenizer::from_json(&whole.as_bytes()[..end]).is_err());
    }
    for byte in [0, b'"', b'{', b']', b'9', 0xff] {
        for at in 0..whole.len() {
            let mut damaged = whole.clone().into_bytes();
            damaged[at] = byte;
            if let Ok(tokenizer) = Tokenizer::from_json(&damaged) {
                tokenizer.encode_into("ab [MASK] é", 16, &mut Vec::new());
            }
        }
    }
    for depth in [100, 1_000_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            assert!(Tokenizer::from_json(deep.as_bytes()).is_err());
            for place in ["/normalizer", "/model/vocab", "/post_processor", "/unknown"] {
                let json = with(place, Some(json!("@"))).to_string().replace("\"@\"", &deep);
                let read = Tokenizer::from_json(json.as_bytes());
                assert!(read.is_err() || place == "/unknown");
            }
        }
    }
}

#[test]
fn odd_settings_are_followed() {
    let ids = |json: Json, text: &str| {
        let tokenizer = Tokenizer::from_json(json.to_string().as_bytes()).unwrap();
        let mut ids = Vec::new();
        tokenizer.encode_into(text, 16, &mut ids);
        ids
    };
    assert_eq!(ids(with("/model/max_input_chars_per_word", Some(json!(0))), "a"), [2, 1, 3]);
    assert_eq!(
        ids(with("/model/max_input_chars_per_word", Some(json!(10_000))), "ab"),
        [2, 5, 6, 3]
    );
    assert_eq!(ids(with("/model/continuing_subword_prefix", Some(json!(""))), "aa"), [2, 5, 5, 3]);
    let bert = json!({"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]});
    assert_eq!(ids(with("/post_processor", Some(bert)), "A"), [2, 5, 3]);
    assert_eq!(ids(with("/normalizer", None), "aA"), [2, 1, 3]);
}

#[test]
fn odd_texts_take_no_time() {
    let json = file(&vocabulary(), &added_tokens(true), Casing::UNCASED);
    let tokenizer = Tokenizer::from_json(json.as_bytes()).unwrap();
    let encode = |text: &str, max_tokens| {
        let mut ids = Vec::new();
        tokenizer.encode_into(text, max_tokens, &mut ids);
        ids
    };
    let long = 1 << 20;
    let only_ends = encode("", 512);
    assert_eq!(only_ends.len(), 2);
    for nothing in [" ", "\0", "\u{301}", "\u{feff}", "\t \u{3000}"] {
        assert_eq!(encode(nothing, 512), only_ends);
        assert_eq!(encode(&nothing.repeat(long / nothing.len()), 512), only_ends);
    }
    // With steps that grow with the square these would take hours.
    for part in ["a", "é", "\u{1d16d}\u{1d165}", "東", "[", "[[MASK", "İ", "!", "\n", "\n ", "<s> "]
    {
        let text = part.repeat(long / part.len());
        assert!(encode(&text, 512).len() <= 512);
        assert!(encode(&text, usize::MAX).len() >= 3);
    }
    let words = format!("{} ", "a".repeat(99)).repeat(long / 100);
    assert_eq!(encode(&words, usize::MAX).len(), long / 100 * 99 + 2);
}
