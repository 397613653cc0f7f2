//! Odd files.

use super::FORMAT;
use crate::formats::testing::{check, open};
use crate::model::SubwordKind;
use crate::sink::to_memory;
use crate::{Container, Error, Input, Options};

fn read(text: &str) -> Result<Container, String> {
    let input = Input::from_bytes("x.floret", text.as_bytes().to_vec());
    open(&input, &Options::default()).map_err(|e| match e {
        Error::Malformed { finding, .. } => format!("{} {}", finding.rule, finding.field),
        other => other.to_string(),
    })
}

#[test]
fn rows_and_parameters_come_back() {
    let text = "2 3 2 3 2 2166136261 [ ]\n0 1 -0.5 1e-9\n1 0 0.25 7\n";
    // floret ends its lines with a space.
    let container = read(&text.replace("7\n", "7 \n")).unwrap();
    assert!(container.vocabulary.is_none());
    let subwords = container.subwords.as_ref().unwrap();
    assert!(matches!(&subwords.kind, SubwordKind::Floret { hashes: 2, bow, .. } if bow == "["));
    let plan = FORMAT.plan(&container, &Options::default()).unwrap();
    assert!(plan.report.losses.is_empty());
    assert_eq!(to_memory(&plan).unwrap().remove(0).1, text.as_bytes());
}

#[test]
fn damage_is_placed() {
    for (text, expected) in [
        ("2 3 2 3 2 7 <\n", "FLORET-01 first line"),
        ("2 1 2 3 5 7 < >\n0 1\n1 1\n", "FLORET-02 first line"),
        ("0 1 2 3 2 7 < >\n", "FLORET-02 first line"),
        ("2 1 3 0 2 7 < >\n0 1\n1 1\n", "FLORET-02 first line"),
        ("2 1 4 3 2 7 < >\n0 1\n1 1\n", "FLORET-02 first line"),
        ("3 1 2 3 2 7 < >\n0 1\n1 1\n", "FLORET-03 "),
        ("3 1 2 3 2 7 < >\n", "FLORET-03 "),
        ("1 1 2 3 2 7 < >\n0 1\n1 1\n", "FLORET-04 "),
        ("1 2 2 3 2 7 < >\n0 1\n", "FLORET-05 line 2"),
        ("2 1 2 3 2 7 < >\n0 1\n0 1\n", "FLORET-06 line 3"),
    ] {
        assert_eq!(read(text).unwrap_err(), expected, "{text}");
    }
    let input = Input::from_bytes("x.floret", b"1 1 2 3 2 7 < >\n0 nan".to_vec());
    let (_, findings) = check(&input, &Options::default(), false).unwrap();
    let rules: Vec<_> = findings.list().iter().map(|f| f.rule).collect();
    assert_eq!(rules, ["FLORET-08", "FLORET-07"]);
}

/// floret may hash whole words only, and takes n-grams from 0 characters on for those from 1 on.
#[test]
fn whole_words_alone_are_hashed() {
    for (range, rows) in [("0 0", 2), ("0 2", 8), ("1 2", 8), ("2 2", 6)] {
        let text = format!("3 1 {range} 2 2166136261 < >\n0 1\n1 2\n2 3\n");
        let container = read(&text).unwrap();
        let mut count = 0;
        let subwords = container.subwords.as_ref().unwrap();
        // `<a>` whole, then a, <a and a>; the brackets alone are no n-grams.
        subwords.for_each_fasttext_row("a", &mut |row| {
            assert!(row < 3);
            count += 1;
        });
        assert_eq!(count, rows, "{range}");
        subwords.for_each_fasttext_row("</s>", &mut |_| panic!("{range}"));
        let plan = FORMAT.plan(&container, &Options::default()).unwrap();
        assert_eq!(to_memory(&plan).unwrap().remove(0).1, text.as_bytes());
    }
}

#[test]
fn a_mark_and_several_spaces_are_no_part_of_it() {
    let container = read("\u{feff}2 1  2 3 2 7 < > \n0  1\n1 2").unwrap();
    assert_eq!(container.tensors[0].values_f32(0, 2).unwrap(), [1.0, 2.0]);
    assert_eq!(container.notes.len(), 2);
}
