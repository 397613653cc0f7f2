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

/// A file without checksums, in which bytes can be changed.
fn unchecked() -> Vec<u8> {
    let mut bytes = file(&Options::default().with("created-at", "2025-01-16T12:00:00Z"));
    bytes[8] &= !4;
    bytes[56..60].fill(0);
    let end = bytes.len() - 16;
    bytes[end..end + 8].fill(0);
    assert_eq!(rules(bytes.clone()), [""; 0]);
    bytes
}

#[test]
fn a_vocabulary_that_only_the_flag_knows_is_none() {
    let mut bytes = unchecked();
    bytes[20..28].fill(0);
    let findings = findings(bytes);
    let found = findings.list().iter().find(|f| f.rule == "EMBD-33").unwrap();
    assert_eq!((found.start, found.end), (8, 12));
    assert!(!findings.list().iter().any(|f| f.rule == "EMBD-12"), "{:?}", findings.list());
}

/// Each tensor that is not aligned is told once, and the section of such tensors not once more.
#[test]
fn unaligned_tensors_are_told_once() {
    let mut bytes = embd_with_shifted_data(&file(&Options::default()), 4, false);
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let index = word(&bytes, 28) as usize;
    // The last tensor, four bytes earlier.
    let at = index + 32 * (word(&bytes, 32) as usize - 1) + 24;
    let offset = word(&bytes, at) - 4;
    bytes[at..at + 4].copy_from_slice(&offset.to_le_bytes());
    let findings = findings(bytes);
    let about_places: Vec<_> = findings
        .list()
        .iter()
        .filter(|f| ["EMBD-25", "EMBD-28"].contains(&f.rule))
        .map(|f| f.rule)
        .collect();
    // It is aligned neither in the file nor in the section, or by chance in the file.
    assert!(about_places.len() <= 1, "{:?}", findings.list());
}

#[test]
fn dates_that_there_are_not_are_found() {
    let from = b"2025-01-16T12:00:00Z";
    for (date, is_good) in [
        ("2024-02-30T12:00:00Z", false),
        ("2024-13-01T12:00:00Z", false),
        ("yesterday, at twelve", false),
        ("2024-02-29T12:00:00Z", true),
        ("2024-02-29T12:00:00+", false),
    ] {
        let mut bytes = unchecked();
        let at = bytes.windows(from.len()).position(|w| w == from).unwrap();
        bytes[at..at + from.len()].copy_from_slice(date.as_bytes());
        let findings = findings(bytes);
        let found: Vec<_> = findings.list().iter().map(|f| f.rule).collect();
        assert_eq!(found, if is_good { vec![] } else { vec!["EMBD-34"] }, "{date}");
        assert_eq!(findings.has_errors(), !is_good, "{date}");
        if let [finding] = findings.list() {
            assert_eq!(finding.end, (at + from.len()) as u64, "{date}");
        }
    }
    // Nobody is told of it only later.
    let mut model = samples::tiny_model();
    model.set_text("created_at", "yesterday");
    let plan = format_of("embd").plan(&model, &Options::default()).unwrap();
    assert!(plan.report.warnings.iter().any(|w| w.text.contains("yesterday")), "{:?}", plan.report);
}

/// The span is that of what disagrees: the entry of the metadata, or the tokens.
#[test]
fn what_disagrees_is_where_it_stands() {
    let mut bytes = unchecked();
    let entry = b"hidden_size";
    let at = bytes.windows(entry.len()).position(|w| w == entry).unwrap();
    let length = usize::from(bytes[at - 2]);
    bytes[at + entry.len()] = b'9';
    let findings = findings(bytes);
    let found: Vec<_> = findings.list().iter().filter(|f| f.rule == "EMBD-30").collect();
    let [found] = found[..] else { panic!("{:?}", findings.list()) };
    assert_eq!((found.start, found.end), (at as u64 - 4, (at + entry.len() + length) as u64));
}
