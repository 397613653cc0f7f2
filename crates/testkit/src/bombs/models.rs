//! safetensors with its entry for everything else, and model directories.

use super::Bomb;
use std::fmt::Write;
use weighbridge_format::samples;

pub(super) fn bombs(size: usize) -> Vec<Bomb> {
    let half = size / 2;
    let quarter = size / 4;
    let file = |name, bytes| Bomb::file(name, "bomb.safetensors", bytes);
    vec![
        file("safetensors-aliases", aliases(half)),
        file(
            "safetensors-files",
            carried(half, "attachments", |i| {
                format!(r#"{{"name":"f{i:07}","described":false,"tensor":"weighbridge/x"}}"#)
            }),
        ),
        file("safetensors-blocks", blocks(half)),
        file("safetensors-empty", empty(size)),
        file("safetensors-ranks", ranks(size)),
        file("safetensors-nested", nested(size)),
        model("hf-template", |tokens| {
            // One name for many tokens, many times.
            let ids = vec!["2"; quarter / 2].join(",");
            let name = r#"{"SpecialToken":{"id":"C","type_id":0}}"#;
            let names = vec![name; quarter / name.len()].join(",");
            tokenizer(tokens, "", &names, &format!(r#""C":{{"id":"C","ids":[{ids}],"tokens":[]}}"#))
        }),
        model("hf-names", |tokens| {
            let name = |i: usize| format!(r#""n{i}":{{"id":"n{i}","ids":[],"tokens":[]}}"#);
            let names: Vec<_> = (0..half / 50).map(name).collect();
            let piece = |i: usize| format!(r#"{{"SpecialToken":{{"id":"n{i}","type_id":0}}}}"#);
            let pieces: Vec<_> = (0..half / 50).map(piece).collect();
            tokenizer(tokens, "", &pieces.join(","), &names.join(","))
        }),
        model("hf-added", |tokens| added(tokens, size, size, false)),
        model("hf-added-normalized", |tokens| added(tokens, size, 990, true)),
        Bomb { files: with("config.json", vec![b'['; size]), ..empty_model("hf-config") },
        Bomb { files: index(size), ..empty_model("hf-index") },
    ]
}

fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    let mut text = header.to_owned();
    while !text.len().is_multiple_of(8) {
        text.push(' ');
    }
    [&(text.len() as u64).to_le_bytes(), text.as_bytes(), data].concat()
}

fn hub_entry(parts: &str) -> String {
    let entry = format!(r#"{{"version":1,"format":"oinf","layout":"","dialect":{{}},{parts}}}"#);
    format!(r#""__metadata__":{{"weighbridge":"{}"}}"#, entry.replace('"', "\\\""))
}

/// A tensor that is said to be another one, again and again.
fn aliases(half: usize) -> Vec<u8> {
    let one = half / 2;
    let record = r#"{"name":"b","encoding":{"plain":"u8"},"alias":"a"}"#;
    let records = vec![record; half / (record.len() + 16)].join(",");
    let hub = hub_entry(&format!(r#""tensors":[{records}]"#));
    let entry = |name: &str, i: usize| {
        let (start, end) = (i * one, (i + 1) * one);
        format!(r#""{name}":{{"dtype":"U8","shape":[{one}],"data_offsets":[{start},{end}]}}"#)
    };
    let header = format!("{{{hub},{},{}}}", entry("a", 0), entry("b", 1));
    // They differ at their ends.
    let mut data = vec![1; 2 * one];
    data[2 * one - 1] = 2;
    safetensors(&header, &data)
}

/// A part of the entry whose members all name one tensor.
fn carried(half: usize, part: &str, member: impl Fn(usize) -> String) -> Vec<u8> {
    let count = half / (member(0).replace('"', "\\\"").len() + 1);
    let members: Vec<_> = (0..count).map(member).collect();
    let hub = hub_entry(&format!(r#""{part}":[{}]"#, members.join(",")));
    let tensor =
        format!(r#""weighbridge/x":{{"dtype":"U8","shape":[{half}],"data_offsets":[0,{half}]}}"#);
    safetensors(&format!("{{{hub},{tensor}}}"), &vec![b' '; half])
}

/// Tensors with little data of their own, whose scales are all in one.
fn blocks(half: usize) -> Vec<u8> {
    let count = half / 260;
    let member = |i: usize| {
        let scales = r#"{"blockwise":{"method":"q8","cols":1,"scales":"weighbridge/x"}}"#;
        format!(r#"{{"name":"t{i:07}","encoding":{scales},"codes":false}}"#)
    };
    let members: Vec<_> = (0..count).map(member).collect();
    let hub = hub_entry(&format!(r#""tensors":[{}]"#, members.join(",")));
    let mut header = format!("{{{hub}");
    let rows = half / 64;
    let mut at = 0;
    for i in 0..count {
        let end = at + 4;
        let _ = write!(
            header,
            r#","t{i:07}":{{"dtype":"F32","shape":[1,1],"data_offsets":[{at},{end}]}}"#
        );
        at = end;
    }
    let end = at + rows * 64;
    let _ = write!(
        header,
        r#","weighbridge/x":{{"dtype":"U8","shape":[{}],"data_offsets":[{at},{end}]}}}}"#,
        rows * 64
    );
    safetensors(&header, &vec![0; end])
}

fn empty(size: usize) -> Vec<u8> {
    let entry = |i: usize| format!(r#""t{i}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}"#);
    let entries: Vec<_> = (0..size / 56).map(entry).collect();
    safetensors(&format!("{{{}}}", entries.join(",")), &[])
}

fn ranks(size: usize) -> Vec<u8> {
    let ones = vec!["1"; size / 2].join(",");
    let header = format!(r#"{{"t":{{"dtype":"U8","shape":[{ones}],"data_offsets":[0,1]}}}}"#);
    safetensors(&header, &[1])
}

fn nested(size: usize) -> Vec<u8> {
    let deep = format!("{}{}", "[".repeat(size / 2), "]".repeat(size / 2));
    let header = format!(r#"{{"t":{{"x":{deep},"dtype":"U8","shape":[1],"data_offsets":[0,1]}}}}"#);
    safetensors(&header, &[1])
}

/// The small sentence embedder, which can be used.
fn small_model() -> Vec<(String, Vec<u8>)> {
    samples::encoder_directory().unwrap_or_default()
}

fn empty_model(name: &'static str) -> Bomb {
    Bomb { name, files: Vec::new(), open: "" }
}

/// The same with another file.
fn with(name: &str, bytes: Vec<u8>) -> Vec<(String, Vec<u8>)> {
    let mut files = small_model();
    files.retain(|(n, _)| n != name);
    files.push((name.to_owned(), bytes));
    files
}

fn model(name: &'static str, tokenizer: impl Fn(&[&str]) -> String) -> Bomb {
    let files = small_model();
    let words = files.iter().find(|(name, _)| name == "vocab.txt").map(|(_, text)| text.clone());
    let words = String::from_utf8(words.unwrap_or_default()).unwrap_or_default();
    let json = tokenizer(&words.lines().collect::<Vec<_>>());
    Bomb { files: with("tokenizer.json", json.into_bytes()), ..empty_model(name) }
}

fn tokenizer(tokens: &[&str], added: &str, pieces: &str, special: &str) -> String {
    let vocab: Vec<_> = tokens.iter().enumerate().map(|(i, t)| format!("{t:?}:{i}")).collect();
    let comma = if pieces.is_empty() { "" } else { "," };
    format!(
        r#"{{"version":"1.0","added_tokens":[{added}],"normalizer":{{"type":"BertNormalizer",
        "clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true}},
        "pre_tokenizer":{{"type":"BertPreTokenizer"}},"post_processor":{{"type":"TemplateProcessing",
        "single":[{pieces}{comma}{{"Sequence":{{"id":"A","type_id":0}}}}],"pair":[],
        "special_tokens":{{{special}}}}},"model":{{"type":"WordPiece","unk_token":"[UNK]",
        "continuing_subword_prefix":"\u0023#","max_input_chars_per_word":100,
        "vocab":{{{}}}}}}}"#,
        vocab.join(",")
    )
}

/// Added tokens of every length up to one, all of which begin alike and end otherwise than texts do.
fn added(tokens: &[&str], size: usize, longest: usize, normalized: bool) -> String {
    let mut list = Vec::new();
    let mut left = size;
    for i in 1.. {
        let content = format!("{}b{i}", "a".repeat(i % longest + 1));
        if left < content.len() + 110 {
            break;
        }
        left -= content.len() + 110;
        list.push(format!(
            r#"{{"id":0,"content":"{content}","single_word":false,"lstrip":false,"rstrip":false,"normalized":{normalized},"special":true}}"#
        ));
    }
    tokenizer(tokens, &list.join(","), "", "")
}

/// An index that names a shard for every tensor; the shards are there, and hold one each.
fn index(size: usize) -> Vec<(String, Vec<u8>)> {
    let mut files = small_model();
    files.retain(|(name, _)| name != "model.safetensors");
    let count = (size / 400).min(2_500);
    let mut map = Vec::new();
    for i in 0..count {
        let shard = format!("m{i:07}.safetensors");
        map.push(format!(r#""t{i:07}":"{shard}""#));
        let header = format!(r#"{{"t{i:07}":{{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}}}"#);
        files.push((shard, safetensors(&header, &[1])));
    }
    let index = format!(r#"{{"weight_map":{{{}}}}}"#, map.join(","));
    files.push(("model.safetensors.index.json".to_owned(), index.into_bytes()));
    files
}
