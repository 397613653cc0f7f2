//! EMBD where the two layouts and the alignment rules meet.

mod common;

use common::format_of;
use weighbridge_format::sink::to_memory;
use weighbridge_format::{Findings, Formats, Input, Options, samples};
use weighbridge_testkit::embd_with_shifted_data;

fn file(options: &Options) -> Vec<u8> {
    let plan = format_of("embd").plan(&samples::tiny_model(), options).unwrap();
    to_memory(&plan).unwrap().remove(0).1
}

fn findings(bytes: Vec<u8>) -> Findings {
    Formats::builtin()
        .check(&Input::from_bytes("x.weights", bytes), &Options::default(), false)
        .unwrap()
        .1
}

fn rules(bytes: Vec<u8>) -> Vec<&'static str> {
    findings(bytes).list().iter().map(|f| f.rule).collect()
}

/// Wherever an indexed file is cut, it is not called a broken stream file; and the other way round.
#[test]
fn the_error_is_about_the_right_layout() {
    let indexed = file(&Options::default());
    for length in 4..indexed.len() {
        assert!(!rules(indexed[..length].to_vec()).contains(&"EMBD-32"), "{length}");
    }
    let stream = file(&Options::default().with("layout", "stream"));
    for length in 16..stream.len() {
        assert_eq!(rules(stream[..length].to_vec()), ["EMBD-32"], "{length}");
    }
}

#[test]
fn alignment_is_that_of_the_file() {
    // Aligned within the section only: readable, a warning.
    let relative = findings(embd_with_shifted_data(&file(&Options::default()), 8, false));
    assert!(!relative.has_errors(), "{:?}", relative.list());
    assert!(relative.list().iter().any(|f| f.rule == "EMBD-26"));
}

/// Checksums are those of the section, wherever padding lies across its edge.
#[test]
fn checksums_do_not_depend_on_the_padding() {
    for (by, aligned) in [(64, true), (64, false), (8, false)] {
        let found = rules(embd_with_shifted_data(&file(&Options::default()), by, aligned));
        assert!(
            !found.contains(&"EMBD-08") && !found.contains(&"EMBD-09"),
            "{by} {aligned} {found:?}"
        );
    }
}

#[test]
fn special_tokens_without_a_place_are_losses() {
    let mut model = samples::tiny_model();
    model.vocabulary.as_mut().unwrap().special.push(("bos".into(), 7));
    for options in [Options::default(), Options::default().with("layout", "stream")] {
        let plan = format_of("embd").plan(&model, &options).unwrap();
        assert!(plan.report.losses.iter().any(|l| l.what().contains("bos")), "{options:?}");
    }
}

#[test]
fn a_model_directory_is_carried_with_its_settings() {
    let files = samples::model_directory().unwrap();
    let mut input = Input::in_memory("tiny", Vec::new(), files);
    input.is_folder = true;
    let container = Formats::builtin().open(&input, &Options::default()).unwrap();
    let options = Options::default().with("created-at", "2025-01-16T12:00:00Z");
    let plan = format_of("embd").plan(&container, &options).unwrap();
    assert!(plan.report.losses.is_empty() && plan.report.warnings.is_empty(), "{:?}", plan.report);
    let bytes = to_memory(&plan).unwrap().remove(0).1;
    assert!(findings(bytes.clone()).is_clean());
    let made = Formats::builtin()
        .open(&Input::from_bytes("x.weights", bytes), &Options::default())
        .unwrap();
    for (key, value) in [
        ("model_name", "tiny"),
        ("pooling", "mean"),
        ("normalize", "true"),
        ("max_seq_length", "8"),
        ("do_lower_case", "true"),
        ("strip_accents", "true"),
        ("tokenize_chinese_chars", "true"),
        ("layer_norm_eps", "1e-12"),
        ("hidden_act", "gelu"),
        ("num_attention_heads", "4"),
    ] {
        assert_eq!(made.text(key), Some(value), "{key}");
    }
    // Weights that are not read are not lost in silence.
    let mut files = samples::model_directory().unwrap();
    files.push(("2_Dense/model.safetensors".into(), vec![1, 2, 3]));
    let mut input = Input::in_memory("tiny", Vec::new(), files);
    input.is_folder = true;
    let container = Formats::builtin().open(&input, &Options::default()).unwrap();
    let plan = format_of("embd").plan(&container, &Options::default()).unwrap();
    assert!(plan.report.losses.iter().any(|l| l.what().contains("2_Dense")), "{:?}", plan.report);
}
