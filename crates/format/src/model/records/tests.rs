//! Records of documents and of lines, at once and when they are asked for.

use super::*;

fn parse(text: &str) -> Result<Records, BadRecords> {
    Records::parse(Bytes::owned(text.as_bytes().to_vec()))
}

#[test]
fn records_are_counted_and_kept_verbatim() {
    let records = parse(r#"{"version": "1.0", "records": [{"a" : 1}, {}]}"#).unwrap();
    assert_eq!(records.count().unwrap(), 2);
    assert_eq!(records.items().unwrap()[0], r#"{"a" : 1}"#);
    assert_eq!(parse(r#"[{"x":[1,2]},{},{}]"#).unwrap().items().unwrap().len(), 3);
    assert_eq!(parse("{}").unwrap().count().unwrap(), 0);
    for bad in [
        r#"{"records": [{}], "records": []}"#,
        r#"{"records": [1]}"#,
        r#"{"records": {}}"#,
        "[{},",
        "3",
        "[] x",
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
    assert!(Records::from_objects(["{}", "3"]).is_err());
    assert_eq!(Records::from_objects([]).unwrap().count().unwrap(), 0);
}

#[test]
fn lines_are_the_same_records_as_a_document() {
    let long = format!("{{\"a\": \"{}\"}}", "x".repeat(70_000));
    for objects in [vec![], vec!["{}"], vec!["{\"a\": 1}", "{}"], vec![&*long, &long, "{}"]] {
        let lines: String = objects.iter().map(|o| format!("{o}\n")).collect();
        let lines = Records::from_checked_lines(Bytes::owned(lines.into_bytes()));
        let document = Records::from_objects(objects.iter().copied()).unwrap();
        assert_eq!(lines.count().unwrap(), document.count().unwrap());
        assert_eq!(lines.items().unwrap(), objects);
        assert_eq!(lines.to_document().unwrap(), document.to_document().unwrap());
        if let Ok(Some((bytes, from))) = lines.elements() {
            let mut made = Vec::new();
            from.produce(&mut |part| {
                made.extend_from_slice(part);
                Ok(())
            })
            .unwrap();
            assert_eq!(made.len() as u64, bytes);
            assert_eq!([b"[", &made[..], b"]"].concat(), *document.to_document().unwrap());
        } else {
            assert_eq!(lines.count().unwrap(), 0);
        }
    }
}

/// A document that is read when it is asked for, by rows of which there should be so many.
fn lazy(text: &[u8], rows: u64) -> Records {
    let blame = |bad: &BadRecords| Error::refused(format!("blamed: {bad}"), "");
    Records::lazy(View::owned(text.to_vec()), rows, blame)
}

#[test]
fn any_record_is_found() {
    let object = |i: usize| format!("{{\"n\": {i}, \"s\": \"{}\\\"}}, {{\"}}", "é[{".repeat(i % 7));
    for count in [0, 1, 15, 16, 17, 100, 5000] {
        let objects: Vec<_> = (0..count).map(object).collect();
        let array = format!(" [ {} ] ", objects.join(" ,\n"));
        let inside = format!("{{\"a\": [{{}}], \"records\":{array}, \"b\": \"]\"}}");
        let lines: String = objects.iter().map(|o| format!("{o}\n")).collect();
        let all = [
            lazy(array.as_bytes(), count as u64),
            lazy(inside.as_bytes(), count as u64),
            parse(&inside).unwrap(),
            Records::from_checked_lines(Bytes::owned(lines.into_bytes())),
        ];
        for records in all {
            for i in (0..count).step_by(count / 40 + 1) {
                assert_eq!(records.record(i as u64).unwrap().as_ref(), Some(&objects[i]));
                let n = records.member(i as u64, "n").unwrap();
                assert_eq!(n, Some(i.to_string()));
            }
            assert_eq!(records.record(count as u64).unwrap(), None);
            assert_eq!(records.record(u64::MAX).unwrap(), None);
            assert_eq!(records.items().unwrap(), objects);
            let last = count.saturating_sub(3);
            assert_eq!(records.some(last as u64..u64::MAX).unwrap(), objects[last..]);
            assert_eq!(records.count().unwrap(), count as u64);
        }
    }
}

/// Whatever is wrong with a document is what is said of it when it is parsed at once.
#[test]
fn what_is_wrong_is_said_when_records_are_used() {
    let good = br#"{"v": "1", "records": [{"a": "\u00e9"}, {"b": [1, {"c": null}]}, {}], "z": {}}"#;
    assert_eq!(lazy(good, 3).count().unwrap(), 3);
    let wrong = lazy(good, 4);
    for error in [wrong.check(), wrong.record(0).map(drop), wrong.items().map(drop)] {
        let error = error.unwrap_err().to_string();
        assert!(error.contains("blamed: there are 3 records for 4 rows"), "{error}");
    }
    // Every bit of every byte.
    for i in 0..good.len() * 8 {
        let mut text = good.to_vec();
        text[i / 8] ^= 1 << (i % 8);
        let records = lazy(&text, 3);
        let about = text.escape_ascii().to_string();
        match Records::parse(Bytes::owned(text.clone())) {
            Ok(parsed) if parsed.count().unwrap() == 3 => {
                assert_eq!(records.items().unwrap(), parsed.items().unwrap(), "{about}");
                assert_eq!(records.record(1).unwrap().as_deref(), Some(parsed.items().unwrap()[1]));
            }
            Ok(_) => assert!(records.check().is_err(), "{about}"),
            Err(bad) => {
                let error = records.check().unwrap_err().to_string();
                assert_eq!(error, format!("blamed: {bad}"), "{about}");
                assert!(records.items().is_err() && records.document().is_err(), "{about}");
                for row in 0..3 {
                    // One that is sound is handed out, others are not.
                    if let Ok(record) = lazy(&text, 3).record(row) {
                        let record = record.unwrap();
                        assert!(
                            serde_json::from_str::<serde_json::Value>(&record).unwrap().is_object()
                        );
                    }
                }
            }
        }
    }
    for cut in 0..good.len() {
        assert!(lazy(&good[..cut], 3).record(0).is_err());
    }
}

#[test]
fn members_are_raw_json() {
    let record = r#" {"a": "x\ny", "b": {"a": 1}, "\u0063": [1 , 2], "a": "last", "": 0} "#;
    assert_eq!(member(record, "a"), Some("\"last\""));
    assert_eq!(member(record, "b"), Some("{\"a\": 1}"));
    assert_eq!(member(record, "c"), Some("[1 , 2]"));
    assert_eq!(member(record, ""), Some("0"));
    assert_eq!(member(record, "d"), None);
    assert_eq!(member("[1]", "a"), None);
    assert_eq!(member("", "a"), None);
}

#[test]
fn clones_share_what_was_found_out() {
    let records = lazy(b"[{}, {}]", 2);
    let clone = records.clone();
    records.check().unwrap();
    assert!(clone.0.checked.get().is_some());
    // Lines that are not what they should be are no records.
    let lines = Records::from_checked_lines(Bytes::owned(b"{}\n\xFF\nnull\n".to_vec()));
    assert_eq!(lines.record(0).unwrap().as_deref(), Some("{}"));
    assert!(lines.record(1).is_err() && lines.record(2).is_err() && lines.items().is_err());
}
