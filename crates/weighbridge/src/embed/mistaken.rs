//! Input that is not lines of text, known by how it begins.

use super::texts::TextOptions;
use crate::table::{TableOptions, listed};
use serde_json::Value as Json;
use std::path::Path;
use weighbridge_format::source::mistaken;
use weighbridge_format::{Advice, Error, Formats, Input};

/// Refuses what would give vectors that nobody meant: files of other kinds, and tables and JSON that
/// were not announced.
pub(super) fn check(name: &str, head: &[u8], options: &TextOptions) -> Result<(), Error> {
    let refused = |what: String, advice: Advice| Err(Error::unrecognised(name, what, advice));
    if let Some(what) = binary(head) {
        let advice =
            "texts are read from lines of UTF-8, tables and JSON lines; unpack or export them";
        return refused(format!("this is {what}, not text"), advice.into());
    }
    if options.lines || options.table.is_some() {
        return Ok(());
    }
    let as_lines = Advice::set("lines", "takes each line as a text");
    let path = Path::new(name);
    if let Some(columns) = columns(head, TableOptions::by_name(path).is_some()) {
        let what = format!("this is a table with the columns {}", listed(&columns));
        let advice = Advice::set("column", "names the one with the texts");
        return refused(what, advice.and(as_lines));
    }
    if options.field.is_some() {
        return Ok(());
    }
    match lines(head).find(|line| !line.trim().is_empty()).map(serde_json::from_str) {
        Some(Ok(Json::Object(members))) if members.values().any(Json::is_string) => {
            let names: Vec<_> = members.keys().cloned().collect();
            let what = format!("its lines are JSON objects with the members {}", listed(&names));
            refused(what, Advice::set("field", "names the member with the text").and(as_lines))
        }
        _ if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json"))
            || is_document(head) =>
        {
            let advice =
                Advice::from("write one object per line; `jq -c '.[]'` does that for an array");
            refused("this is a JSON document, not lines".to_owned(), advice.and(as_lines))
        }
        _ => Ok(()),
    }
}

/// One document of JSON rather than lines that each are a text or an object.
fn is_document(head: &[u8]) -> bool {
    let text = std::str::from_utf8(head).unwrap_or_default();
    let text = text.trim_start_matches('\u{feff}').trim();
    if !text.starts_with(['[', '{']) {
        return false;
    }
    match serde_json::from_str(text) {
        Ok(Json::Array(items)) => items.iter().any(|item| item.is_object() || item.is_string()),
        Ok(_) => text.contains('\n'),
        // It goes on behind what was looked at.
        Err(error) => error.is_eof() && error.line() > 1,
    }
}

/// What a file is whose bytes are not text, if that can be said.
fn binary(head: &[u8]) -> Option<String> {
    let pointer = head.starts_with(b"version https://git-lfs");
    let utf8 = match std::str::from_utf8(head) {
        Ok(_) => true,
        // The last character may only be cut.
        Err(e) => e.error_len().is_none(),
    };
    let controls = head.iter().any(|b| *b < b' ' && !b"\t\n\r\x07\x08\x0b\x0c\x1b".contains(b));
    // Marks of UTF-16 are for whoever reads the first line: there is a word about it.
    let utf16 = head.starts_with(b"\xFF\xFE") || head.starts_with(b"\xFE\xFF");
    if head.is_empty() || utf16 || (utf8 && !controls && !pointer) {
        return None;
    }
    if let Some((what, _)) = mistaken::recognise(head) {
        return Some(what.to_owned());
    }
    // By its content alone: any file may have any name.
    if let Ok(format) = Formats::builtin().detect(&Input::from_bytes("", head.to_vec())) {
        return Some(format!("a file of {}", format.info().name));
    }
    // A NUL now and then may stand in a text; every other byte is one in UTF-16 without a mark.
    let nuls = head.iter().filter(|b| **b == 0).count();
    match (utf8, nuls > 8 && nuls > head.len() / 4) {
        (true, true) => Some("UTF-16 without a mark, or other data with many zeros".to_owned()),
        (true, false) => None,
        (false, _) if controls => Some("binary data".to_owned()),
        (false, _) => None,
    }
}

/// The whole lines at the beginning that are UTF-8.
fn lines(head: &[u8]) -> impl Iterator<Item = &str> {
    let end = head.iter().rposition(|b| *b == b'\n').map_or(head.len(), |at| at + 1);
    let text = match std::str::from_utf8(&head[..end]) {
        Ok(text) => text,
        Err(e) => std::str::from_utf8(&head[..e.valid_up_to()]).unwrap_or_default(),
    };
    text.trim_start_matches('\u{feff}').lines()
}

/// The columns of a table. A name ending with `.csv` or `.tsv` is enough; without one, lines must
/// begin with names and all be cut into as many fields, for plain text has commas too.
fn columns(head: &[u8], by_name: bool) -> Option<Vec<String>> {
    const ROWS: usize = 64;
    let rows: Vec<_> = lines(head).filter(|line| !line.is_empty()).take(ROWS).collect();
    let (first, rest) = rows.split_first()?;
    ['\t', ',', ';', '|'].into_iter().find_map(|delimiter| {
        let names = fields(first, delimiter)?;
        let named = |name: &String| !name.is_empty() && (by_name || is_plain_name(name));
        if names.len() < 2 || !names.iter().any(named) {
            return None;
        }
        let alike = || {
            rest.len() >= 2
                && names.iter().all(|name| is_plain_name(name))
                && rest.iter().all(|row| {
                    fields(row, delimiter).is_some_and(|fields| {
                        // A word that comes again below is a value, and not a name.
                        let again = fields.iter().zip(&names).any(|(field, name)| field == name);
                        fields.len() == names.len() && !again
                    })
                })
        };
        (by_name || alike()).then_some(names)
    })
}

/// As programs name columns: nothing that a sentence would be cut into.
fn is_plain_name(name: &str) -> bool {
    let first = name.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
    first && name.len() <= 40 && name.chars().all(|c| c.is_alphanumeric() || "_.-".contains(c))
}

/// A line cut at a delimiter, but not within quotes; none if a quoted field goes on in the next line.
fn fields(line: &str, delimiter: char) -> Option<Vec<String>> {
    let mut list = Vec::new();
    let (mut field, mut quoted) = (String::new(), false);
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' if quoted && rest.next_if_eq(&'"').is_some() => field.push('"'),
            '"' if quoted || field.is_empty() => quoted = !quoted,
            c if c == delimiter && !quoted => list.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    list.push(field);
    (!quoted).then_some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(name: &str, head: &[u8]) -> Option<String> {
        check(name, head, &TextOptions::default()).err().map(|e| e.to_string())
    }

    #[test]
    fn tables_are_known_by_name_or_by_structure() {
        let table = b"id,text,label\n1,\"a truck, empty\",x\n2,a lorry,y\n";
        for name in ["table.csv", "TABLE.CSV", "standard input", "texts.txt"] {
            let said = said(name, table).unwrap();
            assert!(said.contains("columns \"id\", \"text\", \"label\""), "{said}");
            assert!(said.contains("lines") && !said.contains("lossy"), "{said}");
        }
        let lines = TextOptions { lines: true, ..TextOptions::default() };
        assert!(check("table.csv", table, &lines).is_ok());
        let with_field = TextOptions { field: Some("text".into()), ..TextOptions::default() };
        assert!(check("table.csv", table, &with_field).is_err());
        assert!(said("x.tsv", b"id\ttext\n").unwrap().contains("\"text\""));
        assert!(
            said("x.csv", b"\xEF\xBB\xBFfull name;text\r\n")
                .unwrap()
                .contains("\"full name\", \"text\"")
        );
        assert!(said("-", b"id\ttext\n1\ta\n2\tb\n").is_some());
        let many: Vec<_> = (0..12).map(|i| format!("c{i}")).collect();
        assert!(said("x.csv", (many.join(",") + "\n").as_bytes()).unwrap().contains("and 4 more"));
    }

    #[test]
    fn documents_of_json_are_known_whatever_their_name() {
        for text in [
            "[{\"text\":\"a\"},{\"text\":\"b\"}]",
            "[\n  {\"text\": \"a\"},\n  {\"text\": \"b\"}\n]\n",
            "{\n  \"texts\": [\n",
            "[\"a\", \"b\"]\n",
        ] {
            assert!(said("x.txt", text.as_bytes()).unwrap().contains("JSON document"), "{text}");
        }
        for text in ["[1] is a footnote\n", "[1]\n", "[unclear]\nwords\n", "{ and } are braces\n"] {
            assert_eq!(said("x.txt", text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn plain_text_may_have_commas() {
        for text in [
            "Yes, sir\nNo, sir\nWell, sir\n",
            "one, two, three\nfour, five, six\nseven, eight, nine\n",
            "In the morning,it rained\nIn the evening,it snowed\nAt night,nothing fell\n",
            "id,text\n",
            "id,text\none line with, two commas, here\nand none here\n",
            "red,green\nred,blue\nred,black\n",
            "a\tb\nno tab\n",
            "truck\nlorry\n",
            "say \"hello, world\"\nand \"bye\n",
            "",
            "\n\n",
            "[1] is a footnote\n{braces} too\n",
            "{\"n\": 1}\n",
            "<html>\n<p>text\n",
            "caf\u{e9}\n",
        ] {
            assert_eq!(said("texts.txt", text.as_bytes()), None, "{text:?}");
        }
        // One column has no commas to be cut at.
        assert_eq!(said("one.csv", b"text\na truck\n"), None);
        assert_eq!(said("latin1.txt", b"caf\xe9\nna\xefve\n"), None);
        assert_eq!(said("x.txt", b"a\0b\nfine\n"), None);
        assert_eq!(said("x.txt", b"\x1b[1mbold\x1b[0m\n"), None);
    }

    #[test]
    fn files_of_other_kinds_are_named() {
        let npy = b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1), }\n";
        let safetensors = b"\x40\0\0\0\0\0\0\0{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}      \0\0\0\0";
        let utf16: Vec<u8> = "a truck on the road".bytes().flat_map(|b| [b, 0]).collect();
        for (head, word) in [
            (&b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\x54"[..], "gzip"),
            (b"PK\x03\x04\x14\x00\x08\x00", "zip"),
            (b"PAR1\x15\x04\x15\xa0\x80", "not text"),
            (npy, "npy"),
            (safetensors, "safetensors"),
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff", "not text"),
            (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "LFS"),
            (&utf16, "UTF-16"),
        ] {
            for name in ["texts.txt", "standard input"] {
                let said = said(name, head).unwrap_or_else(|| panic!("{word}"));
                assert!(said.to_lowercase().contains(&word.to_lowercase()), "{said}");
                assert!(!said.contains("lossy"), "{said}");
            }
            // No option makes text of it.
            let forced = TextOptions { lines: true, lossy: true, ..TextOptions::default() };
            assert!(check("texts.txt", head, &forced).is_err(), "{word}");
        }
    }

    #[test]
    fn json_is_not_taken_for_plain_text() {
        let lines = b"{\"id\": 1, \"title\": \"a truck\"}\n{\"id\": 2, \"title\": \"x\"}\n";
        let refusal = said("standard input", lines).unwrap();
        assert!(
            refusal.contains("members \"id\", \"title\"") && refusal.contains("field"),
            "{refusal}"
        );
        let field = TextOptions { field: Some("title".into()), ..TextOptions::default() };
        assert!(check("standard input", lines, &field).is_ok());
        assert!(said("all.json", b"[\n {\"a\": \"b\"}\n]\n").unwrap().contains("document"));
    }
}
