//! What travels through safetensors, at its edges.

mod common;

use common::format_of;
use weighbridge_codec::DType;
use weighbridge_format::model::{Attachment, Value};
use weighbridge_format::sink::to_memory;
use weighbridge_format::{
    Container, Encoding, Formats, Input, Options, Tensor, View, Vocabulary, samples,
};
use weighbridge_testkit::stored;

fn bytes(container: &Container, format: &str) -> Vec<u8> {
    let plan = format_of(format).plan(container, &Options::default()).unwrap();
    to_memory(&plan).unwrap().remove(0).1
}

fn open(name: &str, bytes: Vec<u8>) -> Container {
    Formats::builtin().open(&Input::from_bytes(name, bytes), &Options::default()).unwrap()
}

/// The header's length, which readers limit.
fn header_length(file: &[u8]) -> u64 {
    u64::from_le_bytes(file[..8].try_into().unwrap())
}

#[test]
fn long_parts_travel_as_tensors() {
    let mut model = samples::tiny_model();
    let tokens: Vec<_> = (0..200_000).map(|i| format!("token{i}")).collect();
    model.vocabulary = Some(Vocabulary::from_tokens(tokens.iter().map(String::as_str)));
    model.attachments.push(Attachment {
        name: "merges.txt".into(),
        data: View::owned(vec![b'x'; 3 << 20]),
        described: false,
    });
    model.metadata.retain(|(k, _)| k != "vocab_size");
    model.format = "oinf";
    let file = bytes(&model, "safetensors");
    assert!(header_length(&file) < 1 << 20);
    let carried = open("x.safetensors", file);
    assert_eq!(carried.tensors.len(), model.tensors.len());
    assert_eq!(carried.attachments[0].data.len(), 3 << 20);
    assert_eq!(bytes(&carried, "oinf"), bytes(&model, "oinf"));
}

#[test]
fn a_key_with_the_name_of_the_entry_is_kept() {
    let mut model = samples::tiny_model();
    model.format = "embd";
    model.set_text("weighbridge", "mine");
    let carried = open("x.safetensors", bytes(&model, "safetensors"));
    assert_eq!(carried.text("weighbridge"), Some("mine"));
    assert_eq!(bytes(&carried, "embd"), bytes(&model, "embd"));
}

fn packed() -> Container {
    let data = View::owned(vec![0x21, 0x43]);
    let tensor = stored("x", Encoding::Plain(DType::I4), vec![4], data);
    Container { format: "oinf", tensors: vec![tensor], ..Container::default() }
}

/// Values that someone changed on the way are not forced into the type they had.
#[test]
fn changed_values_are_not_clamped() {
    let mut file = bytes(&packed(), "safetensors");
    assert_eq!(
        open("x.safetensors", file.clone()).tensors[0].origin,
        Some(Encoding::Plain(DType::I4))
    );
    *file.last_mut().unwrap() = 100;
    let carried = open("x.safetensors", file);
    let back = open("x.oinf", bytes(&carried, "oinf"));
    assert_eq!(back.tensors[0].encoding, Encoding::Plain(DType::I8));
    assert_eq!(back.tensors[0].scalar(3).unwrap().unwrap().to_f64(), 100.0);
}

/// Scaled values that no code gives are an error, not the nearest code.
#[test]
fn changed_scaled_values_are_refused() {
    let mut rows = samples::unit_vectors();
    rows.format = "i8bin";
    let plan = format_of("i8bin").plan(&rows, &Options::default()).unwrap();
    let files = to_memory(&plan).unwrap();
    let beside = vec![("meta.json".to_owned(), files[1].1.clone())];
    let input = Input::in_memory("x.i8bin", files[0].1.clone(), beside);
    let mut file =
        bytes(&Formats::builtin().open(&input, &Options::default()).unwrap(), "safetensors");
    let end = file.len();
    file[end - 4..].copy_from_slice(&0.123f32.to_le_bytes());
    let carried = open("x.safetensors", file);
    let plan = format_of("i8bin").plan(&carried, &Options::default());
    let error = plan.and_then(|p| to_memory(&p)).unwrap_err();
    assert!(error.to_string().contains("not a code"), "{error}");
}

/// An entry that does not fit the file is reported, and the tensors are readable without it.
#[test]
fn a_foreign_entry_is_a_warning() {
    for entry in ["{}", "nonsense", r#"{"version":9,"format":"x","layout":"","dialect":{}}"#] {
        let mut plain = packed();
        plain.format = "safetensors";
        plain.tensors[0].encoding = Encoding::Plain(DType::I8);
        plain.tensors[0].shape = vec![2];
        let file = String::from_utf8_lossy(&bytes(&plain, "safetensors")[8..]).into_owned();
        let text = format!("{{\"__metadata__\":{},", serde_json::json!({"weighbridge": entry}));
        let header = file[..file.rfind('}').unwrap() + 1].replacen('{', &text, 1);
        let mut made = (header.len() as u64).to_le_bytes().to_vec();
        made.extend_from_slice(header.as_bytes());
        made.extend_from_slice(&[0x21, 0x43]);
        let input = Input::from_bytes("x.safetensors", made);
        let (_, findings) = Formats::builtin().check(&input, &Options::default(), false).unwrap();
        assert!(findings.list().iter().any(|f| f.rule == "ST-09"), "{entry}");
        assert_eq!(Formats::builtin().open(&input, &Options::default()).unwrap().tensors.len(), 1);
    }
}

#[test]
fn declarations_and_types_of_metadata_survive() {
    let mut c = packed();
    let later = Encoding::Plain(DType::T2);
    c.tensors.push(Tensor::declared("later", later, vec![2, 2]));
    c.metadata.push(("half".into(), Value::Number(DType::F16, 0x3C00)));
    let carried = open("x.safetensors", bytes(&c, "safetensors"));
    assert!(carried.tensor("later").unwrap().view().is_none());
    assert_eq!(carried.metadata[0].1.type_name(), "f16");
    assert_eq!(bytes(&carried, "oinf"), bytes(&c, "oinf"));
}
