//! Tables as they come.

use super::*;

type Found = Vec<Result<Vec<String>, String>>;

fn read(text: &[u8], options: &TableOptions) -> Result<(Vec<String>, Found), String> {
    let mut table = Table::new(io::BufReader::with_capacity(5, text), false);
    table.begin("in.csv", options).map_err(|e| e.to_string())?;
    let mut found = Vec::new();
    while let Some(row) = table.next().unwrap() {
        found.push(row.map(|row| row.fields).map_err(|bad| bad.message()));
    }
    assert_eq!(table.position(), text.len() as u64);
    Ok((table.columns.clone(), found))
}

fn fields(list: &[&str]) -> Vec<String> {
    list.iter().map(|t| (*t).to_owned()).collect()
}

#[test]
fn a_table_has_names_and_rows() {
    let text = "\u{feff}id;text\r\n1;\"a; \"\"b\"\"\r\nc\"\r\n\r\n2;\r\n";
    let (columns, rows) = read(text.as_bytes(), &TableOptions::new()).unwrap();
    assert_eq!(columns, ["id", "text"]);
    assert_eq!(rows, [Ok(fields(&["1", "a; \"b\"\r\nc"])), Ok(fields(&["2", ""]))]);
    let bare = TableOptions { no_header: true, ..TableOptions::new() };
    let (columns, rows) = read(b"1\ta\n2\tb\n", &bare).unwrap();
    assert_eq!(columns, ["1", "2"]);
    assert_eq!(rows, [Ok(fields(&["1", "a"])), Ok(fields(&["2", "b"]))]);
    let cut = TableOptions { delimiter: Some(b':'), ..TableOptions::new() };
    assert_eq!(read(b"a:b,c\n", &cut).unwrap().0, ["a", "b,c"]);
    assert!(read(b"\n\n", &TableOptions::new()).unwrap_err().contains("found nothing"));
}

#[test]
fn bad_rows_are_placed() {
    let text = b"id,text\n1,a\n2\n3,b,c\n4,\"x\ny\xFF\"\n5,d\n6,\"open\n7,e\n";
    let (_, rows) = read(text, &TableOptions::new()).unwrap();
    let bad = |i: usize| rows[i].clone().unwrap_err();
    assert_eq!(rows.len(), 6);
    assert_eq!(bad(1), "line 3, byte 12: expected 2 fields, as in the first row, found 1");
    assert_eq!(bad(2), "line 4, byte 14: expected 2 fields, as in the first row, found 3");
    assert_eq!(bad(3), "line 6, byte 26: expected UTF-8, found the byte 0xff");
    assert_eq!(rows[4], Ok(fields(&["5", "d"])));
    assert_eq!(bad(5), "line 8, byte 33: expected a closing quote, found the end of the input");
    let error = read(b"id,\"te\nxt\n1,a\n", &TableOptions::new()).unwrap_err();
    assert!(error.contains("in.csv: line 1, byte 0: expected a closing quote"), "{error}");
    let error = read(b"\xFF\xFEi\0d\0\n\0", &TableOptions::new()).unwrap_err();
    assert!(error.contains("UTF-16"), "{error}");
}

/// Something that goes on for ever, and counts what was taken of it.
struct Endless(u64);

impl io::Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // It ends only so that the test does.
        if self.0 >= 100 << 20 {
            return Ok(0);
        }
        buffer.fill(b'x');
        if self.0 == 0 {
            buffer[..4].copy_from_slice(b"a\n\"b");
        }
        self.0 += buffer.len() as u64;
        Ok(buffer.len())
    }
}

#[test]
fn an_open_quote_fills_no_memory() {
    let mut table = Table::new(io::BufReader::with_capacity(1 << 16, Endless(0)), false);
    table.begin("in.csv", &TableOptions::new()).unwrap();
    let bad = table.next().unwrap().unwrap().unwrap_err();
    let said = bad.message();
    assert_eq!(said, "line 2, byte 2: expected a row of at most 16 MiB, found more");
    // It is said as soon as it is known.
    assert!(table.position() < 17 << 20, "{}", table.position());
    assert!(table.next().unwrap().is_none());
}

#[test]
fn names_tell_how_tables_are_read() {
    let by_name = |name: &str| TableOptions::by_name(Path::new(name)).map(|o| o.delimiter);
    assert_eq!(by_name("a/b.CSV"), Some(None));
    assert_eq!(by_name("b.tsv"), Some(Some(b'\t')));
    assert_eq!(by_name("b.tab"), Some(Some(b'\t')));
    assert_eq!(by_name("b.txt"), None);
    assert_eq!(by_name("csv"), None);
}

#[test]
fn records_have_the_columns_in_order() {
    let row = TableRow { line: 1, start: 0, fields: fields(&["1", "a \"b\"\n", "é"]) };
    let columns = fields(&["id", "te\"xt", "c"]);
    let members = Members::new(&columns, [0, 1, 2]);
    assert_eq!(members.record(&row), r#"{"id": "1", "te\"xt": "a \"b\"\n", "c": "é"}"#);
    assert_eq!(Members::new(&columns, [2]).record(&row), "{\"c\": \"é\"}");
    assert_eq!(Members::new(&columns, []).record(&row), "{}");
}
