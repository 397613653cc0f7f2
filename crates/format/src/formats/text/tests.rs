//! Odd files.

use super::{COUNTED, GLOVE};
use crate::formats::testing::{check, open};
use crate::formats::{Format, Formats};
use crate::sink::to_memory;
use crate::{Container, Error, Input, Options};

fn read(name: &str, text: &[u8]) -> Result<Container, String> {
    open(&Input::from_bytes(name, text.to_vec()), &Options::default()).map_err(|e| match e {
        Error::Malformed { finding, .. } => format!("{} {}", finding.rule, finding.field),
        other => other.to_string(),
    })
}

fn written(kind: &Format, container: &Container) -> Vec<u8> {
    to_memory(&kind.plan(container, &Options::default()).unwrap()).unwrap().remove(0).1
}

fn words(container: &Container) -> Vec<String> {
    container.vocabulary.iter().flat_map(|v| v.tokens().map(|w| w.into_owned())).collect()
}

#[test]
fn with_and_without_a_header() {
    let lines = b"the 0.1 -2 3e-9\n. . . 1 2 3\n1984 4 5 6 \r\n";
    let glove = read("x.txt", lines).unwrap();
    assert_eq!(
        (glove.format, words(&glove)),
        ("glove", vec!["the".into(), ". . .".into(), "1984".into()])
    );
    let counted = read("x.txt", &[b"3 3\r\n", &lines[..]].concat()).unwrap();
    assert_eq!((counted.format, words(&counted)), ("text", words(&glove)));
    for container in [&glove, &counted] {
        assert_eq!(
            container.tensors[0].values_f32(0, 9).unwrap(),
            [0.1, -2.0, 3e-9, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
        );
        let error = COUNTED.plan(container, &Options::default()).unwrap_err().to_string();
        assert!(error.contains("word 1, \". . .\""), "{error}");
    }
    let plain = read("x.vec", b"2 2\na 0.10 2e0\nb 1e-7 -0.0\n").unwrap();
    assert_eq!(written(&COUNTED, &plain), b"2 2\na 0.1 2\nb 1e-7 -0\n");
    assert_eq!(written(&GLOVE, &plain), b"a 0.1 2\nb 1e-7 -0\n");
}

#[test]
fn damage_is_placed() {
    for (text, expected) in [
        (&b"2 2\na 1 2\nb 3\n"[..], "TXT-05 line 3"),
        (b"3 2\na 1 2\nb 3 4\n", "TXT-03 "),
        (b"1 2\na 1 2\nb 3 4\n", "TXT-04 "),
        (b"2 2\n", "TXT-03 "),
        (b"0 2\n", "TXT-02 first line"),
        (b"rows 2\n", "TXT-01 first line"),
        (b"1 2\n\xFF 1 2\n", "TXT-06 line 2"),
        (b"1 99999999999999\na 1 2\n", "TXT-05 line 2"),
    ] {
        assert_eq!(read("x.vec", text).unwrap_err(), expected, "{}", text.escape_ascii());
    }
    assert_eq!(read("x.glove", b"a 1 2\nb 1 2\nc 2\n").unwrap_err(), "TXT-05 line 3");
    assert_eq!(read("x.glove", b"a b c\n").unwrap_err(), "TXT-02 ");
    let lossy = Options::default().with("lossy", "true");
    let input = Input::from_bytes("x.vec", b"1 2\n\xFF 1 2\n".to_vec());
    assert_eq!(words(&open(&input, &lossy).unwrap()), ["\u{fffd}"]);
}

#[test]
fn the_dimension_survives_odd_words_and_a_cut() {
    let glove = read("x.glove", b"a 1 2 3\nno 5 1 2 3\n7 1 2 3\nb 4 5 6\n").unwrap();
    assert_eq!(words(&glove), ["a", "no 5", "7", "b"]);
    // The last line is cut: it is wrong, not the others.
    assert_eq!(read("x.glove", b"a 1 2 3\nb 4 5").unwrap_err(), "TXT-05 line 2");
}

#[test]
fn findings_that_leave_the_file_readable() {
    let input = |text: &[u8]| Input::from_bytes("x.vec", text.to_vec());
    let rules = |text: &[u8]| {
        let (_, findings) = check(&input(text), &Options::default(), false).unwrap();
        findings.list().iter().map(|f| (f.rule, f.start)).collect::<Vec<_>>()
    };
    assert_eq!(rules(b"2 1\na 1\nb 2\n\n"), []);
    assert_eq!(rules(b"2 1\na 1\nb 2"), [("TXT-07", 11)]);
    assert_eq!(rules(b"2 1\na 1\nb nan\n"), [("TXT-09", 8)]);
    assert_eq!(rules(b"3 1\na 1\na 2\nb 3\n"), [("TXT-08", 4)]);
    let once = open(&input(b"3 1\na 1\na 2\nb 3\n"), &Options::default()).unwrap();
    assert_eq!(once.tensors[0].values_f32(0, 2).unwrap(), [1.0, 3.0]);
    let unfinished = open(&input(b"2 1\na 1\nb 2"), &Options::default()).unwrap();
    assert_eq!(unfinished.notes.len(), 1);
}

/// fastText, gensim and GloVe read such texts; what is odd is said and is no error.
#[test]
fn marks_several_spaces_and_a_missing_line_break() {
    for (name, text, format, notes, rules) in [
        ("x.txt", "\u{feff}the 1 2\nof 3 4\n", "glove", 1, &["TXT-10"][..]),
        ("x.vec", "\u{feff}2 2\nthe 1 2\nof 3 4\n", "text", 1, &["TXT-10"]),
        ("x.vec", "\u{feff}2  2 \nthe  1  2\nof\t3 \t4", "text", 2, &["TXT-10", "TXT-07"]),
        ("x.txt", "the  1  2\nof 3   4 \n", "glove", 0, &[]),
        ("x.bin", "2 2\nthe  1  2\nof 3   4\n", "text", 0, &[]),
        ("x.bin", "2 2\nthe 1 2\nof 3 4", "text", 1, &["TXT-07"]),
    ] {
        let container = read(name, text.as_bytes()).unwrap();
        assert_eq!(container.format, format, "{text:?}");
        assert_eq!(words(&container), ["the", "of"], "{text:?}");
        assert_eq!(container.tensors[0].values_f32(0, 4).unwrap(), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(container.notes.len(), notes, "{text:?}: {:?}", container.notes);
        let input = Input::from_bytes(name, text.as_bytes().to_vec());
        let (_, findings) = check(&input, &Options::default(), false).unwrap();
        assert!(!findings.has_errors(), "{text:?}");
        let found: Vec<_> = findings.list().iter().map(|f| f.rule).collect();
        assert_eq!(found, rules, "{text:?}");
        // Every byte has its name, the mark too.
        let regions = container.regions.list();
        assert_eq!(regions.iter().map(|r| r.span.end - r.span.start).sum::<u64>(), container.size);
    }
    // Only at the beginning of a text it is a mark.
    assert_eq!(words(&read("x.txt", "a 1 2\n\u{feff}b 3 4\n".as_bytes()).unwrap())[1], "\u{feff}b");
}

#[test]
fn other_text_is_not_taken_for_it() {
    for text in [
        "Some prose.\nIt was 12 30\nand then 1 2 3\n",
        "1 2 3\n4 5 6\n",
        "a,b,c\n1,2,3\n",
        "{\"a\": 1 2}\n",
        "[1, 2]\n",
        "word 1\nword 2\n",
        "<!DOCTYPE html>\n1 2 3",
        "# a comment\na 1 2 3\n",
    ] {
        let format =
            Formats::builtin().detect(&Input::from_bytes("x.txt", text.as_bytes().to_vec()));
        assert!(format.is_err(), "{text} is {:?}", format.unwrap().info().id);
    }
}
