//! Lines from end to end, in memory.

use super::FORMAT;
use super::lines::without;
use crate::formats::testing::{check, open};
use crate::sink::to_memory;
use crate::{Container, Error, Finding, Input, Options};

fn input(text: &str) -> Input {
    Input::from_bytes("x.jsonl", text.as_bytes().to_vec())
}

fn read(text: &str) -> Container {
    open(&input(text), &Options::default()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn values(container: &Container) -> Vec<f32> {
    let matrix = &container.tensors[0];
    matrix.values_f32(0, matrix.count().try_into().unwrap()).unwrap()
}

fn bad(text: &str) -> Finding {
    match open(&input(text), &Options::default()).unwrap_err() {
        Error::Malformed { finding, .. } => *finding,
        other => panic!("{text}: {other}"),
    }
}

fn written(container: &Container) -> String {
    let plan = FORMAT.plan(container, &Options::default()).unwrap();
    String::from_utf8(to_memory(&plan).unwrap().remove(0).1).unwrap()
}

#[test]
fn lines_are_rows_with_records() {
    let text = "\u{feff}{\"text\": \"a\\u00e9 [\", \"vector\": [1, -2.5e-1], \"n\" : {\"vector\": 3}}\r\n\n  \t\r\n {\"vector\":[0.1 ,null]} \n{\"vector\":[1e-45,3.4028235e38],\"a\":1}";
    let container = read(text);
    assert_eq!(
        (container.tensors[0].name.as_str(), &*container.tensors[0].shape),
        ("embeddings", &[3, 2][..])
    );
    let found = values(&container);
    assert_eq!(found[..3], [1.0, -0.25, 0.1]);
    assert!(found[3].is_nan());
    assert_eq!(found[4..], [f32::from_bits(1), f32::MAX]);
    let records = container.records.as_ref().unwrap();
    let expected = ["{\"text\": \"a\\u00e9 [\", \"n\" : {\"vector\": 3}}", "{}", "{\"a\":1}"];
    assert_eq!(records.items().unwrap(), expected);
    let (_, findings) = check(&input(text), &Options::default(), false).unwrap();
    let rules: Vec<_> = findings.list().iter().map(|f| f.rule).collect();
    assert_eq!(rules, ["JSONL-11", "JSONL-09", "JSONL-10"]);
    let null = &findings.list()[1];
    let bytes = text.as_bytes();
    let place = usize::try_from(null.start).unwrap()..usize::try_from(null.end).unwrap();
    assert_eq!(&bytes[place], b" {\"vector\":[0.1 ,null]} ");
    // Vectors alone have no records.
    assert!(read("{\"vector\": [1]}\n{ \"vector\":[2] }\n").records.is_none());
}

/// Each number is the f32 nearest to it, not the nearest to the nearest f64.
#[test]
fn numbers_are_rounded_once() {
    let halfway = "1.00000005960464477539062500000000000001";
    let container = read(&format!("{{\"vector\": [{halfway}]}}\n"));
    assert_eq!(values(&container)[0].to_bits(), 1.0f32.to_bits() + 1);
    assert_eq!(container.notes.len(), 1, "{:?}", container.notes);
    // Whatever bits a number has, it comes back.
    let mut bits = 1u32;
    let many = (0..4096).map(|_| {
        bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some(f32::from_bits(bits)).filter(|v| v.is_finite()).unwrap_or(f32::NAN)
    });
    let many: Vec<f32> = many.collect();
    let container = Container::builder().rows(64, many.clone()).build().unwrap();
    let text = written(&container);
    let back = read(&text);
    let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
    assert!(many.iter().zip(&values(&back)).all(same));
    assert_eq!(written(&back), text);
    assert!(back.notes.is_empty(), "{:?}", back.notes);
}

#[test]
fn infinite_values_are_lost_and_said_to_be() {
    let container = Container::builder().rows(2, vec![1.0, f32::INFINITY, f32::NAN, 0.0]);
    let container = container.build().unwrap();
    let plan = FORMAT.plan(&container, &Options::default()).unwrap();
    assert_eq!(plan.report.losses.len(), 1);
    assert!(plan.report.losses[0].why.contains("1 of 4 values"), "{:?}", plan.report.losses);
    assert_eq!(written(&container), "{\"vector\": [1.0,null]}\n{\"vector\": [null,0.0]}\n");
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let good = "{\"vector\": [1, 2]}\n";
    for (line, rule, found) in [
        ("[1, 2]", "JSONL-01", "an array instead"),
        ("{\"vector\": [1, 2]", "JSONL-01", "EOF while parsing an object"),
        ("{\"vector\": [1, 2]} x", "JSONL-01", "trailing characters"),
        ("{\"vector\": [1, 02]}", "JSONL-01", "invalid number"),
        ("{\"vector\": [1, NaN]}", "JSONL-01", "expected value"),
        ("word 1 2", "JSONL-01", "expected value"),
        ("{\"text\": \"a\", \"v\": 1}", "JSONL-02", "\"text\", \"v\""),
        ("{}", "JSONL-02", "none"),
        ("{\"vector\": [1, 2], \"vect\\u006fr\": []}", "JSONL-03", ""),
        ("{\"vector\": {\"0\": 1}}", "JSONL-04", "{\"0\": 1}"),
        ("{\"vector\": null}", "JSONL-04", "null"),
        ("{\"vector\": [1, \"2\"]}", "JSONL-04", "\"2\""),
        ("{\"vector\": [[1, 2]]}", "JSONL-04", "[1, 2]"),
        ("{\"vector\": [1, true]}", "JSONL-04", "true"),
        ("{\"vector\": [1]}", "JSONL-05", "1 value"),
        ("{\"vector\": []}", "JSONL-05", "0 values"),
        ("{\"vector\": [1, 2, 3]}", "JSONL-05", "3 values"),
        ("{\"vector\": [1, 1e39]}", "JSONL-06", "1e39"),
        ("{\"vector\": [1, -3.5e38]}", "JSONL-06", "-3.5e38"),
    ] {
        let finding = bad(&format!("{good}\n{good}{line}\n{good}"));
        assert_eq!((finding.rule, finding.found.as_str()), (rule, found), "{line}");
        assert_eq!(finding.field, "line 4");
        let start = 2 * good.len() as u64 + 1;
        let within = start..start + line.len() as u64 + 1;
        assert!(within.contains(&finding.start) && finding.end <= within.end, "{finding:?}");
        // On the first line too, where there is nothing to compare it with.
        if rule != "JSONL-05" && !line.starts_with("word") {
            assert_eq!(bad(&format!("{line}\n{good}")).rule, rule, "{line}");
        }
    }
    assert!(bad("{\"text\": \"x\"}\n").hint.to_string().contains("\"vector\""));
    assert_eq!(bad("{\"vector\": []}\n").rule, "JSONL-08");
    assert_eq!(bad("\u{feff}\n \n").rule, "JSONL-08");
    let empty = open(&input(""), &Options::default()).unwrap_err();
    assert!(!empty.advice().to_string().is_empty(), "{empty}");
}

#[test]
fn many_chunks_are_one_matrix() {
    let mut text = String::new();
    let rows = 200_000;
    (0..rows).for_each(|i| text += &format!("{{\"i\": {i}, \"vector\": [{i}, 0.5]}}\n"));
    assert!(text.len() > 4 << 20);
    let container = read(&text);
    assert_eq!(container.tensors[0].shape, [rows, 2]);
    let values = values(&container);
    assert!(values.chunks(2).enumerate().all(|(i, v)| v == [i as f32, 0.5]));
    let records = container.records.as_ref().unwrap();
    assert_eq!(records.member(rows - 1, "i").unwrap(), Some((rows - 1).to_string()));
    let last = format!("{{\"i\": {}, ", rows - 1);
    let broken = text.replacen(&last, "{", 1).replacen("[199999, 0.5]", "[199999]", 1);
    let finding = bad(&broken);
    assert_eq!((finding.rule, finding.field), ("JSONL-05", format!("line {rows}")));
    assert_eq!(&broken[usize::try_from(finding.start).unwrap()..][..8], "[199999]");
}

#[test]
fn deep_and_long_lines_are_no_burden() {
    let deep = "[".repeat(1 << 20);
    let line = format!("{{\"a\": {deep}{}, \"vector\": [1]}}\n", "]".repeat(1 << 20));
    assert_eq!(read(&line).tensors[0].shape, [1, 1]);
    assert_eq!(bad(&format!("{{\"vector\": {deep}")).rule, "JSONL-01");
    let long = format!("{{\"a\": \"{}\", \"vector\": [1]}}\n", "x".repeat(super::read::LONGEST));
    assert_eq!(bad(&long).rule, "JSONL-07");
    let finding = bad(&format!("{{\"vector\": [1]}}\n{long}{{\"vector\": [1]}}\n"));
    assert_eq!((finding.rule, finding.field.as_str()), ("JSONL-07", "line 2"));
    assert_eq!(finding.found, format!("{} bytes", long.len() - 1));
}

#[test]
fn members_are_left_out_by_name() {
    for (object, rest) in [
        ("{\"vector\": 1}", "{}"),
        ("{ \"vector\": 1 }", "{}"),
        ("{\"a\": 1, \"vector\": 1}", "{\"a\": 1}"),
        ("{\"a\" :1 ,\"vector\": 1 }", "{\"a\" :1}"),
        ("{ \"vector\": 1, \"a\": 1, \"b\": \"vector\"}", "{ \"a\": 1, \"b\": \"vector\"}"),
        ("{\"a\": 1, \"vector\": 1, \"b\": 2, \"vector\": 3}", "{\"a\": 1, \"b\": 2}"),
        ("{\"a\": {\"vector\": 1} }", "{\"a\": {\"vector\": 1} }"),
        ("[]", "[]"),
    ] {
        assert_eq!(without(object, "vector"), rest, "{object}");
    }
}
