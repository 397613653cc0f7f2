//! Odd content that is easily mangled: each case here once was.

mod common;

use common::format_of;
use std::sync::Arc;
use weighbridge_codec::DType;
use weighbridge_format::model::{EMBEDDING, Scaled, Scaling};
use weighbridge_format::sink::to_memory;
use weighbridge_format::{Container, Encoding, Error, Formats, Input, Options, View, samples};
use weighbridge_testkit::stored;

fn bytes(container: &Container, format: &str, options: &Options) -> Vec<u8> {
    to_memory(&format_of(format).plan(container, options).unwrap()).unwrap().remove(0).1
}

fn open(name: &str, bytes: Vec<u8>) -> Container {
    Formats::builtin().open(&Input::from_bytes(name, bytes), &Options::default()).unwrap()
}

fn scaled(codes: DType, scale: f32, data: &[u8]) -> Container {
    let scaling = Scaling::Affine { axis: None, scales: vec![scale], zero_points: None };
    let encoding = Encoding::Scaled(Arc::new(Scaled { codes, scaling }));
    let count = data.len() as u64 * 8 / codes.bits();
    let tensor = stored("x", encoding, vec![count], View::owned(data.to_vec()));
    Container { format: "oinf", tensors: vec![tensor], ..Container::default() }
}

/// Codes survive a scale that makes nothing of them.
#[test]
fn useless_scales_keep_their_codes() {
    for scale in [f32::NAN, f32::INFINITY, 0.0, -0.0, f32::from_bits(1)] {
        let source = scaled(DType::I8, scale, &[1, 0xFF, 0x7F, 0x80]);
        let file = bytes(&source, "oinf", &Options::default());
        for options in [Options::default(), Options::default().with("keep-codes", "true")] {
            let carried = open(
                "x.safetensors",
                bytes(&open("x.oinf", file.clone()), "safetensors", &options),
            );
            assert!(bytes(&carried, "oinf", &Options::default()) == file, "{scale} {options:?}");
        }
        let findings = Formats::builtin()
            .check(&Input::from_bytes("x.oinf", file), &Options::default(), false)
            .unwrap()
            .1;
        assert!(findings.list().iter().any(|f| f.rule == "OINF-23") || scale.is_subnormal());
    }
}

/// Kept codes that someone changed are not squeezed into the narrow type they had.
#[test]
fn changed_codes_are_not_saturated() {
    let keep = Options::default().with("keep-codes", "true");
    let mut file = bytes(&scaled(DType::I4, 0.5, &[0x21, 0x43]), "safetensors", &keep);
    *file.last_mut().unwrap() = 100;
    let back = open("x.oinf", bytes(&open("x.safetensors", file), "oinf", &Options::default()));
    assert_eq!(back.tensors[0].values_f32(3, 1).unwrap(), [50.0]);
}

#[test]
fn a_tensor_named_like_the_metadata_travels() {
    let mut model = samples::tiny_model();
    model.format = "embd";
    model.tensors[0].name = "__metadata__".into();
    let carried = open("x.safetensors", bytes(&model, "safetensors", &Options::default()));
    assert_eq!(
        bytes(&carried, "embd", &Options::default()),
        bytes(&model, "embd", &Options::default())
    );
}

/// More text than a header may have goes into a tensor.
#[test]
fn long_metadata_travels() {
    let mut model = samples::tiny_model();
    model.format = "embd";
    (0..200).for_each(|i| model.set_text(&format!("long{i}"), "x".repeat(60_000)));
    let file = bytes(&model, "safetensors", &Options::default());
    assert!(u64::from_le_bytes(file[..8].try_into().unwrap()) < 1 << 20);
    let carried = open("x.safetensors", file);
    assert_eq!(
        bytes(&carried, "embd", &Options::default()),
        bytes(&model, "embd", &Options::default())
    );
}

#[test]
fn names_that_would_collide_are_refused() {
    let mut model = samples::tiny_model();
    model.format = "safetensors";
    let mut twin = model.tensors[3].clone();
    twin.name = format!("bert.{}", twin.name);
    model.tensors.push(twin);
    let refused = format_of("embd").plan(&model, &Options::default()).unwrap_err();
    assert!(matches!(refused, Error::Refused(p) if p.subject == "rename"));
}

#[test]
fn keys_that_appear_twice_are_found() {
    for header in [
        r#"{"__metadata__":{"a":"1","a":"2"}} "#,
        r#"{"__metadata__":{"a":"1"},"__metadata__":{}}"#,
    ] {
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend_from_slice(header.as_bytes());
        let (_, findings) = Formats::builtin()
            .check(&Input::from_bytes("x.safetensors", file), &Options::default(), false)
            .unwrap();
        assert!(findings.list().iter().any(|f| f.rule == "ST-03"), "{header}");
    }
}

#[test]
fn an_asked_time_is_taken() {
    let mut model = samples::tiny_model();
    model.format = "embd";
    let options = Options::default().with("created-at", "2030-01-01T00:00:00Z");
    let made = open("x.weights", bytes(&model, "embd", &options));
    assert_eq!(made.text("created_at"), Some("2030-01-01T00:00:00Z"));
    let wrong = Options::default().with("created-at", "yesterday");
    assert!(format_of("embd").plan(&model, &wrong).is_err());
}

/// `position_ids` are left out only when they count up from 0.
#[test]
fn position_ids_are_looked_at() {
    for (ids, kept) in [([0i64, 1, 2], false), ([7, 9, 1], true)] {
        let mut model = samples::tiny_model();
        model.format = "safetensors";
        let data = ids.iter().flat_map(|v| v.to_le_bytes()).collect();
        let tensor = stored(
            "embeddings.position_ids",
            Encoding::Plain(DType::I64),
            vec![1, 3],
            View::owned(data),
        );
        model.tensors.push(tensor);
        let made = open("x.weights", bytes(&model, "embd", &Options::default()));
        assert_eq!(made.tensor("embeddings.position_ids").is_some(), kept);
    }
}

/// What the reference reader of safetensors passes over is passed over here, and said.
#[test]
fn unknown_members_of_a_safetensors_header_say_nothing() {
    let file = |header: &str, data: &[u8]| {
        let header = format!("{header:<width$}", width = header.len().next_multiple_of(8));
        let length = (header.len() as u64).to_le_bytes();
        [&length[..], header.as_bytes(), data].concat()
    };
    let entry = r#""dtype":"F32","shape":[1],"data_offsets":[0,4]"#;
    for (header, what) in [
        (format!(r#"{{"__metadata__":null,"x":{{{entry}}}}}"#), "__metadata__"),
        (format!(r#"{{"x":{{{entry},"stride":[1],"who":{{"a":null}}}}}}"#), "stride"),
        (format!(r#"{{"x":{{"quantized":false,{entry}}}}}"#), "quantized"),
    ] {
        let bytes = file(&header, &1.5f32.to_le_bytes());
        let input = Input::from_bytes("x.safetensors", bytes.clone());
        let container = Formats::builtin().open(&input, &Options::default()).unwrap();
        assert_eq!(container.tensors[0].values_f32(0, 1).unwrap(), [1.5]);
        let [note] = &container.notes[..] else { panic!("{:?}", container.notes) };
        assert!(note.text.contains(what), "{note}");
        let (_, findings) = Formats::builtin().check(&input, &Options::default(), false).unwrap();
        let rules: Vec<_> = findings.list().iter().map(|f| f.rule).collect();
        assert_eq!(rules, ["ST-13"], "{header}");
        // The same in a shard.
        let index = br#"{"metadata":null,"more":1,"weight_map":{"x":"a.safetensors"}}"#.to_vec();
        let beside = vec![("a.safetensors".to_owned(), bytes)];
        let input = Input::in_memory("m.safetensors.index.json", index, beside);
        let (_, findings) = Formats::builtin().check(&input, &Options::default(), false).unwrap();
        let [finding] = findings.list() else { panic!("{:?}", findings.list()) };
        assert_eq!((finding.rule, finding.file.as_str()), ("ST-13", "a.safetensors"));
    }
    // What it refuses is refused.
    for header in [
        r#"{"__metadata__":{"a":null}}"#.to_owned(),
        r#"{"__metadata__":7}"#.to_owned(),
        r#"{"x":{"dtype":"F32","shape":[1]}}"#.to_owned(),
        r#"{"x":null}"#.to_owned(),
        format!(r#"{{"x":{{{entry},"shape":[1]}}}}"#),
    ] {
        let input = Input::from_bytes("x.safetensors", file(&header, &[0; 4]));
        assert!(Formats::builtin().open(&input, &Options::default()).is_err(), "{header}");
    }
}

/// Keys that OINF has no names for travel through it, the empty one too.
#[test]
fn keys_of_any_characters_go_to_oinf_and_back() {
    let mut model = samples::tiny_model();
    for (key, text) in [("", "nothing"), ("a b", "plain"), ("é", "Größe"), ("metadata.x_20y", "")]
    {
        model
            .metadata
            .push((key.to_owned(), weighbridge_format::model::Value::Text(text.to_owned())));
    }
    let embd = open("x.weights", bytes(&model, "embd", &Options::default()));
    let oinf = open("x.oinf", bytes(&embd, "oinf", &Options::default()));
    let back = open("y.weights", bytes(&oinf, "embd", &Options::default()));
    let sorted = |container: &Container| {
        let texts = container.metadata.iter().map(|(k, v)| (k.clone(), v.to_plain_text()));
        let mut texts: Vec<_> = texts.collect();
        texts.sort();
        texts
    };
    assert!(sorted(&embd).contains(&(String::new(), Some("nothing".to_owned()))));
    assert_eq!(sorted(&embd), sorted(&back));
}

/// What rows were made with is a long text, and travels wherever there is a place for metadata, and in
/// the formats of rows.
#[test]
fn what_rows_were_made_with_is_kept() {
    let probes: Vec<Vec<f32>> = (0..4u8).map(|i| vec![f32::from(i) / 7.0; 768]).collect();
    let made = serde_json::json!({"model": "org/m", "weights": "é\n\"", "probes": probes});
    let made = made.to_string();
    assert!(made.len() > 30_000, "{}", made.len());
    let rows = Container::builder().rows(2, vec![1.0, 0.0, 0.0, 1.0]);
    let rows = rows.metadata(EMBEDDING, made.as_str()).build().unwrap();
    let words = Container::builder().rows(2, vec![1.0, 0.0, 0.0, 1.0]).words(["a", "b"]);
    let words = words.metadata(EMBEDDING, made.as_str()).build().unwrap();
    let (mut kept, mut lost, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    for format in Formats::builtin().iter().filter(|f| f.writes()) {
        let info = format.info();
        let options = Options::default().with("created-at", "2025-01-16T12:00:00Z");
        let plan = format.plan(&rows, &options).or_else(|_| format.plan(&words, &options));
        let Ok(plan) = plan else {
            refused.push(info.id);
            continue;
        };
        let is_lost = plan.report.losses.iter().any(|loss| loss.what().contains(EMBEDDING));
        let read = weighbridge_testkit::Fixture::from_plan(info, "rows", &plan).unwrap();
        let read = Formats::builtin().open(&read.input(), &Options::default()).unwrap();
        assert_eq!(read.text(EMBEDDING), Some(made.as_str()).filter(|_| !is_lost), "{}", info.id);
        if is_lost { &mut lost } else { &mut kept }.push(info.id);
    }
    assert_eq!(kept, ["embd", "finalfusion", "mcf", "oinf", "i8bin", "f32bin", "safetensors"]);
    assert_eq!(lost, ["fasttext", "npy", "text", "glove", "word2vec", "jsonl"]);
    // They hold models, and rows of their own hashes.
    assert_eq!(refused, ["floret", "hf"]);
}
