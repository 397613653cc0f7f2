//! The names of a table's columns, and which of them holds the texts.

use super::TableRow;
use weighbridge_format::{Advice, Error};

/// Columns that a message lists.
const LISTED: usize = 8;

/// Names that a column of texts usually has.
const USUAL: [&str; 4] = ["text", "sentence", "content", "body"];

/// The names of a header. What has no name, or that of a column before it, is called by its number:
/// names are members of JSON objects, where each stands once.
pub(super) fn names(header: Vec<String>) -> (Vec<String>, Vec<String>) {
    let mut names: Vec<String> = Vec::with_capacity(header.len());
    let mut made = Vec::new();
    let mut seen = std::collections::HashSet::new();
    let given: std::collections::HashSet<String> = header.iter().cloned().collect();
    for (i, name) in header.into_iter().enumerate() {
        let mut own = name;
        if own.is_empty() || seen.contains(&own) {
            own = format!("column_{}", i + 1);
            while given.contains(&own) || seen.contains(&own) {
                own.push('_');
            }
            made.push(own.clone());
        }
        seen.insert(own.clone());
        names.push(own);
    }
    (names, made)
}

/// The names of columns without a header: their numbers.
pub(super) fn numbers(count: usize) -> Vec<String> {
    (1..=count).map(|n| n.to_string()).collect()
}

/// The place of a column by its name.
///
/// # Errors
/// [`Error::Refused`] if there is none.
pub(crate) fn find(
    file: &str,
    columns: &[String],
    name: &str,
    option: &'static str,
) -> Result<usize, Error> {
    columns.iter().position(|column| column == name).ok_or_else(|| {
        let what = format!("{file}: there is no column {name:?}");
        let mut advice = Advice::meant(name, columns);
        advice = advice.and(Advice::set(option, format!("takes one of {}", listed(columns))));
        if columns.len() == 1 {
            advice = advice.and(Advice::set("delimiter", "says what stands between columns"));
        }
        Error::refused(what, advice)
    })
}

/// The column that holds the texts, where nobody named one: one with a usual name, or the only one
/// with other values than numbers in the rows that were looked at.
///
/// # Errors
/// [`Error::Refused`] if that could be several, or none.
pub(crate) fn choose(file: &str, columns: &[String], rows: &[&TableRow]) -> Result<usize, Error> {
    if columns.len() == 1 {
        return Ok(0);
    }
    let value = |row: &&TableRow, i: usize| row.fields.get(i).cloned().unwrap_or_default();
    let is_text = |i: &usize| {
        let is_text = |field: String| !field.trim().is_empty() && !is_number(field.trim());
        rows.is_empty() || rows.iter().any(|row| is_text(value(row, *i)))
    };
    let candidates: Vec<usize> = (0..columns.len()).filter(is_text).collect();
    let is_usual = |i: &&usize| USUAL.contains(&columns[**i].trim().to_ascii_lowercase().as_str());
    let usual: Vec<_> = candidates.iter().filter(is_usual).copied().collect();
    if let ([only], _) | ([], [only]) = (usual.as_slice(), candidates.as_slice()) {
        return Ok(*only);
    }
    let shown = columns.iter().enumerate().take(LISTED).map(|(i, column)| {
        let values = rows.iter().map(|row| value(row, i));
        match values.into_iter().find(|value| !value.trim().is_empty()) {
            Some(value) => format!("{column:?} (such as {:?})", shortened(value.trim())),
            None => format!("{column:?} (blank)"),
        }
    });
    let mut shown: Vec<_> = shown.collect();
    if columns.len() > LISTED {
        shown.push(format!("and {} more", columns.len() - LISTED));
    }
    let what = match candidates.is_empty() {
        true => "no column holds texts as far as it was looked at",
        false => "several columns may hold the texts",
    };
    let advice = Advice::set("column", format!("chooses one of {}", shown.join(", ")));
    Err(Error::refused(format!("{file}: {what}"), advice))
}

fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok()
}

/// The beginning of a value, in one line.
pub(crate) fn shortened(text: &str) -> String {
    const LONGEST: usize = 30;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Names with commas between them; not all of very many.
pub(crate) fn listed(names: &[String]) -> String {
    let mut list: Vec<_> = names.iter().take(LISTED).map(|name| format!("{name:?}")).collect();
    if names.len() > LISTED {
        list.push(format!("and {} more", names.len() - LISTED));
    }
    list.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|t| (*t).to_owned()).collect()
    }

    #[test]
    fn every_column_has_a_name_of_its_own() {
        let (found, made) = names(texts(&["", "text", "", "text", "column_3"]));
        assert_eq!(found, ["column_1", "text", "column_3_", "column_4", "column_3"]);
        assert_eq!(made, ["column_1", "column_3_", "column_4"]);
        assert_eq!(numbers(2), ["1", "2"]);
    }

    fn chosen(columns: &[&str], rows: &[&[&str]]) -> Result<usize, String> {
        let rows: Vec<_> =
            rows.iter().map(|r| TableRow { line: 1, start: 0, fields: texts(r) }).collect();
        let rows: Vec<_> = rows.iter().collect();
        choose("in.csv", &texts(columns), &rows).map_err(|e| e.to_string())
    }

    #[test]
    fn the_column_of_texts_is_found() {
        assert_eq!(chosen(&["id", "words"], &[&["1", "a b"], &["2.5", ""]]), Ok(1));
        assert_eq!(chosen(&["id", "Text", "label"], &[&["a", "b", "c"]]), Ok(1));
        assert_eq!(chosen(&["n"], &[&["1"]]), Ok(0));
        // The usual name alone is not enough where there are only numbers.
        assert_eq!(chosen(&["text", "name"], &[&["1", "a b"]]), Ok(1));
        assert_eq!(chosen(&["a", "text"], &[]), Ok(1));
        let long = "x ".repeat(40);
        let said = chosen(&["id", "note", "n"], &[&["a\nb", &long, ""]]).unwrap_err();
        assert!(said.starts_with("in.csv: several columns may hold the texts"), "{said}");
        assert!(said.contains("\"id\" (such as \"a b\"), \"note\" (such as \"x x x"), "{said}");
        assert!(said.contains("\"n\" (blank)") && said.len() < 250, "{said}");
        let said = chosen(&["a", "b"], &[&["1", "2"]]).unwrap_err();
        assert!(said.contains("no column holds texts"), "{said}");
        let said = chosen(&["body", "text"], &[&["a", "b"]]).unwrap_err();
        assert!(said.contains("several"), "{said}");
    }

    #[test]
    fn what_is_not_there_is_listed() {
        let error = find("in.csv", &texts(&["id", "text"]), "txt", "column").unwrap_err();
        let said = error.to_string();
        assert!(said.contains("in.csv: there is no column \"txt\""), "{said}");
        assert!(said.contains("did you mean text?") && said.contains("\"id\", \"text\""), "{said}");
        let error = find("in.csv", &texts(&["id;text"]), "text", "column").unwrap_err();
        assert!(error.to_string().contains("delimiter"), "{error}");
    }
}
