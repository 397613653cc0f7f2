//! Odd files.

use super::FORMAT;
use crate::formats::Formats;
use crate::formats::testing::{check, open};
use crate::sink::to_memory;
use crate::{Container, Error, Input, Options};

fn file(rows: &[(&[u8], [f32; 2])], header: &str, breaks: bool) -> Vec<u8> {
    let mut out = header.as_bytes().to_vec();
    for (word, values) in rows {
        out.extend_from_slice(word);
        out.push(b' ');
        values.iter().for_each(|v| out.extend(v.to_le_bytes()));
        out.extend(breaks.then_some(b'\n'));
    }
    out
}

fn read(bytes: &[u8], options: &Options) -> Result<Container, String> {
    let input = Input::from_bytes("x.w2v", bytes.to_vec());
    open(&input, options).map_err(|e| match e {
        Error::Malformed { finding, .. } => finding.rule.to_owned(),
        other => other.to_string(),
    })
}

fn written(container: &Container, options: &Options) -> Vec<u8> {
    to_memory(&FORMAT.plan(container, options).unwrap()).unwrap().remove(0).1
}

// The bytes of this number are a line break and spaces.
const TRICKY: f32 = f32::from_le_bytes(*b"\n \n ");

#[test]
fn both_kinds_come_back_as_they_were() {
    for breaks in [true, false] {
        for n in 1..=3 {
            let rows =
                [(&b"a"[..], [1.0, TRICKY]), ("é".as_bytes(), [TRICKY, 2.0]), (b"c", [0.0; 2])];
            let bytes = file(&rows[..n], &format!("{n} 2\n"), breaks);
            let container = read(&bytes, &Options::default()).unwrap();
            assert_eq!(container.tensors[0].shape, [n as u64, 2]);
            assert_eq!(container.tensors[0].values_f32(0, 2).unwrap(), [1.0, TRICKY]);
            assert_eq!(written(&container, &Options::default()), bytes);
            // One row alone does not tell whether it had a line break.
            let whole = if n == 1 && breaks { bytes.len() - 1 } else { bytes.len() };
            for cut in 0..whole {
                assert!(read(&bytes[..cut], &Options::default()).is_err(), "{breaks} {n} {cut}");
            }
        }
    }
}

#[test]
fn repeated_words_are_left_out_and_counted() {
    let rows =
        [(&b"a"[..], [1.0, 2.0]), (b"b", [3.0, 4.0]), (b"a", [5.0, 6.0]), (b"c", [7.0, 8.0])];
    let bytes = file(&rows, "4 2\n", true);
    let container = read(&bytes, &Options::default()).unwrap();
    assert_eq!(container.tensors[0].values_f32(0, 6).unwrap(), [1.0, 2.0, 3.0, 4.0, 7.0, 8.0]);
    let input = Input::from_bytes("x.bin", bytes);
    let (_, findings) = check(&input, &Options::default(), false).unwrap();
    let [finding] = findings.list() else { panic!("{findings:?}") };
    assert_eq!((finding.rule, finding.field.as_str()), ("W2V-06", "row 2"));
    assert!(finding.found.starts_with("1 row "));
}

#[test]
fn words_with_spaces_need_escapes() {
    let input = Input::from_bytes("x.glove", b"New York 1 2\n".to_vec());
    let container = open(&input, &Options::default().with("from", "glove")).unwrap();
    let error = FORMAT.plan(&container, &Options::default()).unwrap_err().to_string();
    assert!(error.contains("word 0, \"New York\""), "{error}");
    let escape = Options::default().with("escape", "true");
    let bytes = written(&container, &escape);
    assert!(bytes.starts_with(b"1 2\nNew\\sYork "));
    assert_eq!(read(&bytes, &escape).unwrap().vocabulary.unwrap().token(0).unwrap(), "New York");
}

#[test]
fn broken_text_is_placed_or_replaced() {
    let bytes = file(&[(b"a", [0.0; 2]), (b"b\xFF", [1.0; 2])], "2 2\n", true);
    let input = Input::from_bytes("x.bin", bytes.clone());
    let Err(Error::Malformed { finding, .. }) = open(&input, &Options::default()) else { panic!() };
    assert_eq!((finding.rule, finding.start), ("W2V-05", 16));
    let lossy = read(&bytes, &Options::default().with("lossy", "true")).unwrap();
    assert_eq!(lossy.vocabulary.unwrap().token(1).unwrap(), "b\u{fffd}");
}

#[test]
fn other_files_are_not_taken_for_it() {
    for (name, bytes) in [
        (
            "notes.txt",
            &b"12 34\nSome prose about numbers, with a few spaces in it. And more of it."[..],
        ),
        ("x.dat", b"1 2 3\nnothing"),
        ("x.dat", b"3 4\n"),
        ("x.dat", b"99999999999999999999 4\nword 1 2 3 4"),
        ("x.dat", b"18446744073709551615 18446744073709551615\nword "),
    ] {
        let format = Formats::builtin().detect(&Input::from_bytes(name, bytes.to_vec()));
        assert!(format.is_err(), "{name} is {:?}", format.unwrap().info().id);
    }
    assert_eq!(read(b"2 0\n", &Options::default()).unwrap_err(), "W2V-02");
    assert_eq!(read(b"x", &Options::default()).unwrap_err(), "W2V-01");
}
