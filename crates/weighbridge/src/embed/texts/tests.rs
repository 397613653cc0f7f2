//! What becomes of lines: texts, records, and what is said of bad ones.

use super::*;

fn read(text: &[u8], reading: &TextOptions) -> (Vec<TextRow>, Option<String>, u64) {
    let mut texts = Texts::new("in", text, reading);
    let mut rows = Vec::new();
    loop {
        match texts.next() {
            Some(Ok(row)) => rows.push(row),
            None => return (rows, None, texts.skipped),
            Some(Err(e)) => return (rows, Some(e.to_string()), texts.skipped),
        }
    }
}

fn json(field: &str) -> TextOptions {
    TextOptions { field: Some(field.to_owned()), ..TextOptions::default() }
}

#[test]
fn plain_lines_are_texts_and_blank_ones_too() {
    let (rows, error, _) = read(b"one\n\n  \nq\"\0t\n", &TextOptions::default());
    assert_eq!(error, None);
    let texts: Vec<_> = rows.iter().map(|r| r.text.as_str()).collect();
    assert_eq!(texts, ["one", "", "  ", "q\"\0t"]);
    assert_eq!(rows[3].record, "{\"text\": \"q\\\"\\u0000t\"}");
}

#[test]
fn json_lines_are_kept_as_they_are() {
    let line = r#"{"id" : 1.50, "title": "a \u00e9", "n": 123456789012345678901234567890}"#;
    let (rows, error, _) = read(format!("{line}\n\n").as_bytes(), &json("title"));
    assert_eq!((error, rows.len()), (None, 1));
    assert_eq!(rows[0], TextRow { text: "a é".into(), record: line.into() });
    let old = r#"{"text": "x", "vector": [1, 2], "n": 1e2}"#;
    assert_eq!(read(old.as_bytes(), &json("text")).0[0].record, r#"{"text": "x", "n": 1e2}"#);
    let twice = r#"{"text": "x", "text": "y"}"#;
    assert_eq!(read(twice.as_bytes(), &json("text")).0[0].text, "y");
}

#[test]
fn bad_lines_are_named() {
    for (line, expected) in [
        ("{\"text\": \"a\"", "line 2: not JSON: EOF while parsing an object at column 12"),
        ("nonsense", "line 2: not JSON: expected ident at column 2"),
        ("[1]", "line 2: an array, not a JSON object"),
        ("\"x\"", "line 2: a text, not a JSON object"),
        ("{\"text\": 5}", "line 2: the member \"text\" is a number and not a text"),
        (
            "{\"body\": \"a\"}",
            "line 2: it has no member \"text\"; hint: the option field names the member with the text; there are \"body\"",
        ),
        ("{} x", "line 2: not JSON: trailing characters at column 4"),
    ] {
        let input = format!("{{\"text\": \"fine\"}}\n{line}\n{{\"text\": \"too\"}}\n");
        let (rows, error, _) = read(input.as_bytes(), &json("text"));
        let error = error.unwrap();
        assert!(error.contains(expected), "{error}");
        assert_eq!(rows.len(), 1);
        let skipping = TextOptions { skip_bad: true, ..json("text") };
        let (rows, error, skipped) = read(input.as_bytes(), &skipping);
        assert_eq!((rows.len(), error, skipped), (2, None, 1));
    }
}

#[test]
fn what_is_not_utf8_is_placed_or_replaced() {
    let input = b"fine\nx\xFFy\n";
    let error = read(input, &TextOptions::default()).1.unwrap();
    assert!(
        error.contains("line 2: not UTF-8: byte 0xff at offset 6 of the file, 1 of the line"),
        "{error}"
    );
    let lossy = TextOptions { lossy: true, ..TextOptions::default() };
    assert_eq!(read(input, &lossy).0[1].text, "x\u{fffd}y");
    let error = read(b"\xFF\xFEa\0\n", &TextOptions::default()).1.unwrap();
    assert!(error.contains("UTF-16"), "{error}");
    let mut long = vec![b'a'; LONGEST_LINE + 1];
    long.extend(b"\nb");
    let error = read(&long, &TextOptions::default()).1.unwrap();
    assert!(error.contains("line 1: it is longer than 16 MiB"), "{error}");
    let skipping = TextOptions { skip_bad: true, ..TextOptions::default() };
    let (rows, _, skipped) = read(&long, &skipping);
    assert_eq!((rows[0].text.as_str(), skipped), ("b", 1));
}
