//! The document beside the rows, meta.json: what it may say, what it holds, and what is written into it.

use super::super::{F32, I8};
use super::{files, input, matrix, meta, structure};
use crate::formats::Formats;
use crate::formats::testing::{check, open};
use crate::model::{Records, Vocabulary};
use crate::plan::Plan;
use crate::sink::to_memory;
use crate::source::Bytes;
use crate::{Container, Error, Input, Options};

#[test]
fn meta_json_is_held_against_the_format() {
    let rules_of = |meta: &str| {
        structure(&input("x.i8bin", &[1; 4], Some(meta)), &Options::default().with("dim", "2"))
    };
    let good = r#"{"version":"1.0","quantization":{"dtype":"int8","scale_factor":127.0},"shape":[2,2],"records":[{},{}]}"#;
    assert_eq!(rules_of(good), [""; 0]);
    for (from, to, rule) in [
        (r#""version":"1.0","#, "", "I8-07"),
        (r#""version":"1.0""#, r#""version":"3""#, "I8-08"),
        (r#""version":"1.0""#, r#""version":[1]"#, "I8-08"),
        (r#""quantization":{"dtype":"int8","scale_factor":127.0},"#, "", "I8-07"),
        (r#""dtype":"int8","#, "", "I8-07"),
        (r#","scale_factor":127.0"#, "", "I8-07"),
        (r#""shape":[2,2],"#, "", "I8-07"),
        ("int8", "float32", "I8-09"),
        ("127.0", "128", "I8-09"),
        (r#"{"dtype":"int8","scale_factor":127.0}"#, r#"["int8", 127]"#, "I8-05"),
        ("[2,2]", "[2]", "I8-05"),
        ("[2,2]", "[2,-2]", "I8-05"),
        ("[2,2]", "[2,2,1]", "I8-05"),
        ("[2,2]", "[4294967296,4294967296000]", "I8-04"),
        ("[{},{}]", "[{}]", "I8-10"),
        (r#","records":[{},{}]"#, "", "I8-10"),
        ("[{},{}]", "[1,2]", "I8-05"),
        ("]}", "]", "I8-05"),
    ] {
        let broken = good.replacen(from, to, 1);
        assert_ne!(broken, good);
        assert_eq!(rules_of(&broken).first(), Some(&rule), "{broken}");
    }
    let without_dim = |shape: &str| {
        let meta = good.replace("[2,2]", shape);
        structure(&input("x.i8bin", &[1; 4], Some(&meta)), &Options::default())
    };
    assert_eq!(without_dim("[4294967296,4294967296000]"), ["I8-02"]);
    assert_eq!(without_dim("[18446744073709551615,0]"), ["I8-02"]);

    // The retired export is refused, with the way out of it.
    let retired = input("x.i8bin", &[1; 4], Some(" [{\"name\": \"x\"}]"));
    let error = open(&retired, &Options::default()).unwrap_err().to_string();
    assert!(error.contains("I8-06") && error.contains("export_for_browser.py"), "{error}");
}

/// A document that stays as it was has the checksum of the rows that are written, if it has one.
#[test]
fn a_kept_meta_json_has_the_checksum_of_the_new_rows() {
    let rows = [127u8, 0, 0, 0x81];
    let said = |checksum: &str| {
        format!(
            r#"{{"quantization": {{"dtype": "int8"}}, "shape" : [2,2], "checksum":{checksum} , "records": [{{}},{{}}] }}"#
        )
    };
    let (right, wrong) = (said("\"88a7dc60\""), said("\"00000000\""));
    let open =
        |meta: &str| open(&input("x.i8bin", &rows, Some(meta)), &Options::default()).unwrap();
    for meta in [&right, &wrong] {
        let plan = I8.plan(&open(meta).accept_damage(true), &Options::default()).unwrap();
        assert_eq!(files(&plan), (rows.to_vec(), right.clone()));
    }
    open(&right).check_damage().unwrap();
    let error = open(&wrong).check_damage().unwrap_err().to_string();
    assert!(error.contains("I8-17") && error.contains("88a7dc60"), "{error}");
    // What others call a checksum is theirs.
    for other in ["\"sha256:0\"", "12345678", "null", "\"88a7dc6\\u0030\""] {
        open(&said(other)).check_damage().unwrap();
        let plan = I8.plan(&open(&said(other)), &Options::default()).unwrap();
        assert_eq!(files(&plan).1, said(other));
    }
}

#[test]
fn a_made_meta_json_is_the_exporters() {
    let exact = matrix(&[vec![1.0, 0.0], vec![0.0, -1.0]]);
    let text = |container: &Container| files(&I8.plan(container, &Options::default()).unwrap()).1;
    let front = r#"{"version": "1.0", "quantization": {"dtype": "int8", "scale_factor": 127, "original_dtype": "float32", "note": "divide by 127"}, "shape": [2, 2], "checksum": "88a7dc60", "#;
    assert_eq!(crc32fast::hash(&[127, 0, 0, 0x81]), 0x88a7_dc60);
    assert_eq!(text(&exact), format!("{front}\"records\": [{{}}, {{}}]}}"));

    let mut words = exact.clone();
    words.vocabulary = Some(Vocabulary::from_tokens(["é\"\u{1}", "b"]));
    assert_eq!(
        text(&words),
        front.to_owned() + r#""records": [{"word": "é\"\u0001"}, {"word": "b"}]}"#
    );
    let plan = I8.plan(&words, &Options::default()).unwrap();
    assert!(plan.report.losses.is_empty());
    words.vocabulary = Some(Vocabulary::from_tokens(["a", "b", "c"]));
    let plan = I8.plan(&words, &Options::default()).unwrap();
    assert_eq!(plan.report.losses.len(), 1);

    let mut with = exact.clone();
    let mut records = |document: &str| {
        with.records = Some(Records::parse(Bytes::owned(document.as_bytes().to_vec())).unwrap());
        with.clone()
    };
    assert_eq!(
        text(&records(r#"[{"a" :1}, {}]"#)),
        front.to_owned() + r#""records": [{"a" :1}, {}]}"#
    );
    // Members of other people's making come along.
    let other = r#"{"model": {"b": [1]}, "shape": [2, 3], "records": [{}, {}]}"#;
    assert_eq!(
        text(&records(other)),
        front.to_owned() + r#""model": {"b": [1]}, "records": [{}, {}]}"#
    );
    let own = r#"{ "records": [{}, {}], "shape": [2, 2], "quantization": {"dtype": "int8"}}"#;
    assert_eq!(text(&records(own)), own);
    let error = I8.plan(&records("[{}]"), &Options::default()).unwrap_err().to_string();
    assert!(error.contains("1 records for 2 rows"), "{error}");
}

/// So many records that they are not read when the file is opened.
fn long_meta(rows: usize, front: &str, behind: &str) -> String {
    let records = vec!["{\"text\": \"a record of some length, of which there are many\"}"; rows];
    format!(
        "{{\"version\": \"1.0\", \"quantization\": {{\"dtype\": \"int8\", \"scale_factor\": 127}}, {front}\"shape\": [{rows}, 2], \"records\": [{}]{behind}}}",
        records.join(", ")
    )
}

#[test]
fn records_are_read_when_they_are_asked_for() {
    let rows = 3000;
    let bytes = [127u8, 0].repeat(rows);
    let at = |meta: &str| input("x.i8bin", &bytes, Some(meta));
    let sum = format!("\"checksum\": \"{:08x}\", ", crc32fast::hash(&bytes));
    let good = long_meta(rows, &sum, "");
    let container = open(&at(&good), &Options::default()).unwrap();
    let records = container.records.as_ref().unwrap();
    assert!(records.outline().is_some(), "they were read");
    assert!((I8.info.checksums)(&container));
    container.check_damage().unwrap();
    assert_eq!(records.member(2999, "text").unwrap().map(|text| text.len()), Some(50));
    let plan = I8.plan(&container, &Options::default()).unwrap();
    assert_eq!(files(&plan), (bytes.clone(), good.clone()));
    // Members of ours behind the records, and a checksum that may stand there.
    let behind = format!(", {}", sum.trim_end_matches(", "));
    let container = open(&at(&long_meta(rows, "", &behind)), &Options::default()).unwrap();
    assert!((I8.info.checksums)(&container));
    let tags = format!("{behind}, \"tags\": [{{}}]");
    let container = open(&at(&long_meta(rows, "", &tags)), &Options::default()).unwrap();
    assert!((I8.info.checksums)(&container));
    let wrong = tags.replace("checksum\": \"", "checksum\": \"0");
    let wrong = long_meta(rows, "", &wrong.replacen(&sum[13..21], &sum[13..20], 1));
    let damaged = open(&at(&wrong), &Options::default());
    let damaged = damaged.and_then(|container| container.check_damage()).unwrap_err();
    assert!(damaged.to_string().contains("I8-17"), "{damaged}");

    // What is wrong with them is found by whoever checks, and by whoever uses them.
    let middle = good.len() / 2;
    let brace = middle + good[middle..].find('}').unwrap();
    let unclosed = format!("{}{}", &good[..brace], &good[brace + 1..]);
    let fewer =
        good.replacen("{\"text\": \"a record of some length, of which there are many\"}, ", "", 1);
    for (meta, rule) in [(unclosed, "I8-05"), (fewer, "I8-10")] {
        assert_eq!(structure(&at(&meta), &Options::default()), [rule]);
        let (_, findings) = check(&at(&meta), &Options::default(), true).unwrap();
        let expected = findings.first_error().unwrap().clone();
        let container = open(&at(&meta), &Options::default()).unwrap();
        let values = container.tensors[0].values_f32(0, 2).unwrap();
        assert_eq!(values, [1.0, 0.0]);
        for format in Formats::builtin().iter().filter(|f| f.info.holds.single && f.writes()) {
            let error = format.plan(&container, &Options::default()).unwrap_err();
            let Error::Malformed { finding, file } = error else { panic!("{error}") };
            assert_eq!((*finding, file.as_str()), (expected.clone(), "meta.json"));
        }
        assert!(container.records.unwrap().record(7).is_err());
    }
}

#[test]
fn a_description_of_their_own_name_counts_before_the_other() {
    let (bytes, own, other) = ([127u8, 0], meta("i8bin", 1, 2), meta("i8bin", 5, 9));
    let input = |name: &str, own: &str| {
        let file = |name: &str, text: &str| (name.to_owned(), text.as_bytes().to_vec());
        let beside = vec![file("meta.json", &other), file("a.meta.json", own)];
        Input::in_memory(name, bytes.to_vec(), beside)
    };
    assert_eq!(
        open(&input("a.i8bin", &own), &Options::default()).unwrap().tensors[0].shape,
        [1, 2]
    );
    assert_eq!(structure(&input("b.i8bin", &own), &Options::default()), ["I8-01"]);
    // It alone counts, and is the one that is named.
    let named = |own: &str, options: &Options| {
        let list = check(&input("a.i8bin", own), options, false).unwrap().1.into_list();
        let finding = list.into_iter().next().unwrap();
        let text = format!("{} {}", finding.message, finding.field);
        assert!(!text.replace("a.meta.json", "").contains("meta.json"), "{finding:?}");
        (finding.rule, finding.file)
    };
    let none = Options::default();
    let at = |rule| (rule, "a.meta.json".to_owned());
    assert_eq!(named("{", &none), at("I8-05"));
    assert_eq!(named("[{}]", &none), at("I8-06"));
    assert_eq!(named(&own.replace("\"version\": \"1.0\", ", ""), &none), at("I8-07"));
    assert_eq!(named(&own.replace("1.0", "2"), &none), at("I8-08"));
    assert_eq!(named(&own.replace("int8", "int4"), &none), at("I8-09"));
    assert_eq!(named(&own.replace("{\"n\":1}", "{}, {}"), &none), at("I8-10"));
    assert_eq!(named(&own.replace("[1, 2]", "[1, 0]"), &none), at("I8-02"));
    assert_eq!(named(&own, &none.clone().with("dim", "1")), at("I8-04"));
    let summed = own.replace("\"records\"", "\"checksum\": \"00000000\", \"records\"");
    assert_eq!(named(&summed, &none).0, "I8-17");
}

/// What rows were made with has a place in front of the records, and is no loss.
#[test]
fn what_the_rows_were_made_with_is_kept() {
    let made = r#"{"model": "m", "probes": [[1, 2 ], []]}"#;
    let mut container = matrix(&[vec![1.0, 0.0], vec![0.0, -1.0]]);
    container.set_text("embedding", made);
    let text = |plan: &Plan| files(plan).1;
    let plan = I8.plan(&container, &Options::default()).unwrap();
    assert!(plan.report.losses.is_empty(), "{:?}", plan.report.losses);
    let (codes, written) = files(&plan);
    let front = format!("\"shape\": [2, 2], \"embedding\": {made}, \"checksum\": \"");
    assert!(written.contains(&front), "{written}");
    // As it was, also through the other formats.
    let mut read = open(&input("x.i8bin", &codes, Some(&written)), &Options::default()).unwrap();
    assert_eq!(read.text("embedding"), Some(made));
    assert_eq!(text(&I8.plan(&read, &Options::default()).unwrap()), written);
    let carried = crate::formats::testing::find("safetensors").unwrap();
    let carried =
        to_memory(&carried.plan(&read, &Options::default()).unwrap()).unwrap().remove(0).1;
    let carried = open(&Input::from_bytes("x.safetensors", carried), &Options::default()).unwrap();
    assert_eq!(files(&I8.plan(&carried, &Options::default()).unwrap()), (codes, written.clone()));
    let (floats, meta) = files(&F32.plan(&carried, &Options::default()).unwrap());
    let floats = open(&input("x.f32bin", &floats, Some(&meta)), &Options::default()).unwrap();
    assert_eq!(floats.text("embedding"), Some(made));
    assert_eq!(meta.matches("\"embedding\"").count(), 1);
    // Changed and removed, the document is another one.
    read.set_text("embedding", "{}");
    let changed = text(&I8.plan(&read, &Options::default()).unwrap());
    assert_eq!(changed, written.replace(made, "{}"));
    read.metadata.clear();
    let removed = text(&I8.plan(&read, &Options::default()).unwrap());
    assert_eq!(removed, written.replace(&format!("\"embedding\": {made}, "), ""));
    // Texts that are no object have no place, and neither have other entries.
    for (key, value) in [("embedding", "[1]"), ("embedding", "{"), ("other", "{}")] {
        read.metadata = vec![(key.to_owned(), crate::model::Value::Text(value.to_owned()))];
        let plan = I8.plan(&read, &Options::default()).unwrap();
        assert_eq!(plan.report.losses.len(), 1, "{key} {value}");
    }
    // What others keep under the name stays theirs.
    let theirs = removed.replace("\"checksum\"", "\"embedding\": [1], \"checksum\"");
    let read = open(&input("x.i8bin", &[127, 0, 0, 0x81], Some(&theirs)), &Options::default());
    let read = read.unwrap();
    assert!(read.metadata.is_empty());
    let floats = text(&F32.plan(&read, &Options::default()).unwrap());
    assert!(floats.contains("\"embedding\": [1], \"records\""), "{floats}");
}
