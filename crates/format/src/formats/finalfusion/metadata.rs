//! Metadata: a text in TOML, which stays as it is but for what was changed.
//!
//! Its values become metadata of the container, those in tables under names with dots. The text
//! travels with the container; when it is written again, only the values that differ are edited in
//! it, so that comments and order stay.

use crate::model::{Subject, Value};
use crate::plan::{Loss, Report};
use std::collections::HashMap;
use toml_edit::{DocumentMut, InlineTable, Item, Table, TableLike, value};
use weighbridge_codec::DType;

/// Where the text stands in the dialect.
pub(super) const DIALECT: &str = "toml";

/// A longer text is kept but not taken apart: its parts would need many times its memory.
const LONGEST: usize = 1 << 20;

/// The names of values may take this much, with those of the tables that they stand in: one long
/// name of a table before many values would need far more memory than the text has.
const NAMES: usize = 4 * LONGEST;

/// The values of a text, with their types as far as TOML has them.
pub(super) fn parse(text: &str) -> Result<Vec<(String, Value)>, String> {
    let mut list = Vec::new();
    // A name with a dot in it may look like one in a table; the first counts.
    let mut seen = std::collections::HashSet::new();
    let mut room = NAMES;
    walk("", document(text)?.as_table_mut(), &mut room, &mut |name, item| {
        if seen.insert(name.clone()) {
            list.extend(item.as_value().map(|v| (name, to_value(v))));
        }
        true
    })?;
    Ok(list)
}

fn document(text: &str) -> Result<DocumentMut, String> {
    if text.len() > LONGEST {
        return Err(format!("it is longer than {LONGEST} bytes"));
    }
    text.parse::<DocumentMut>().map_err(|e| e.message().to_owned())
}

/// Calls `each` with the name of every value, and removes those for which it says no.
fn walk(
    prefix: &str,
    table: &mut dyn TableLike,
    room: &mut usize,
    each: &mut dyn FnMut(String, &mut Item) -> bool,
) -> Result<(), String> {
    let mut gone = Vec::new();
    for (key, item) in table.iter_mut() {
        let key = key.get();
        let needed = prefix.len() + key.len() + 1;
        let left = room.checked_sub(needed);
        *room = left.ok_or_else(|| format!("its names take more than {NAMES} bytes"))?;
        let name = if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") };
        let empty = item.as_inline_table().is_some_and(InlineTable::is_empty);
        if let Item::ArrayOfTables(tables) = item {
            for (i, table) in tables.iter_mut().enumerate() {
                let left = room.checked_sub(name.len() + 20);
                *room = left.ok_or_else(|| format!("its names take more than {NAMES} bytes"))?;
                walk(&format!("{name}.{i}"), table, room, each)?;
            }
        } else if !empty && let Some(table) = item.as_table_like_mut() {
            walk(&name, table, room, each)?;
        } else if item.is_value() && !each(name, item) {
            gone.push(key.to_owned());
        }
    }
    for key in gone.into_iter().rev() {
        table.remove(&key);
    }
    Ok(())
}

/// What is neither text, number nor boolean is the text that it is written as.
fn to_value(v: &toml_edit::Value) -> Value {
    match v {
        toml_edit::Value::String(s) => Value::Text(s.value().clone()),
        toml_edit::Value::Integer(i) => Value::Number(DType::I64, i.value().cast_unsigned()),
        toml_edit::Value::Float(f) => Value::Number(DType::F64, f.value().to_bits()),
        toml_edit::Value::Boolean(b) => Value::Bool(*b.value()),
        other => {
            let mut plain = other.clone();
            plain.decor_mut().clear();
            Value::Text(plain.to_string().trim().to_owned())
        }
    }
}

/// The text with these values: the old one where it says the same. `None` when there is nothing to
/// say. What TOML has no type for becomes a text, and is listed.
pub(super) fn write(
    old: Option<&str>,
    metadata: &[(String, Value)],
    report: &mut Report,
) -> Option<String> {
    let known = old.and_then(|text| parse(text).ok());
    let before = match (old, &known) {
        (Some(text), None) if metadata.is_empty() => return Some(text.to_owned()),
        (Some(_), None) => {
            report.lose(Subject::MetadataText, "the old one is not TOML that could be added to");
            &[][..]
        }
        (_, known) => known.as_deref().unwrap_or_default(),
    };
    let mut document = old.and_then(|text| document(text).ok()).unwrap_or_default();
    let (before, after) = (by_name(before), by_name(metadata));
    let same = |a: &Value, b: &Value| a.type_name() == b.type_name() && a.to_json() == b.to_json();
    let mut edits: HashMap<&str, Option<Item>> =
        before.keys().filter(|n| !after.contains_key(*n)).map(|n| (*n, None)).collect();
    let mut added = Vec::new();
    for (name, new) in metadata {
        let old = before.get(name.as_str());
        if old.is_some_and(|old| same(old, new)) {
            continue;
        }
        let Some((item, exact)) = to_item(new) else {
            report.lose(Subject::Metadata(name.clone()), "TOML has no type for it");
            continue;
        };
        if !exact {
            let subject = Subject::Metadata(name.clone());
            report.losses.push(Loss::as_text(subject, &new.type_name()));
        }
        if old.is_some() {
            edits.insert(name, Some(item));
        } else {
            added.push((name, item));
        }
    }
    if edits.is_empty() && added.is_empty() {
        return old.map(str::to_owned);
    }
    // What was parsed before has room for its names.
    let mut room = NAMES;
    _ = walk("", document.as_table_mut(), &mut room, &mut |name, item| {
        match edits.remove(name.as_str()) {
            Some(Some(new)) => replace(item, alike(item, new)),
            Some(None) => return false,
            None => {}
        }
        true
    });
    for (name, item) in added {
        if !add(document.as_table_mut(), name, item) {
            report.lose(Subject::Metadata(name.clone()), "a table has that name");
        }
    }
    let text = lines_like(old.unwrap_or_default(), document.to_string());
    (!text.trim().is_empty()).then_some(text)
}

/// The text with the line ends that the old one had, unless that would change a value: the parser
/// keeps them within texts only.
fn lines_like(old: &str, text: String) -> String {
    let values = |text: &str| {
        let list = parse(text).ok()?;
        Some(list.into_iter().map(|(name, v)| (name, v.to_json())).collect::<Vec<_>>())
    };
    let bare = old.replace("\r\n", "").contains('\n');
    let mut like = text.clone();
    if old.contains("\r\n") && !bare {
        like = text.replace("\r\n", "\n").replace('\n', "\r\n");
    }
    if old.starts_with(MARK) && !like.starts_with(MARK) {
        like.insert(0, MARK);
    }
    if values(&like).is_some_and(|v| Some(v) == values(&text)) { like } else { text }
}

/// What some editors begin a text with.
const MARK: char = '\u{feff}';

fn by_name(list: &[(String, Value)]) -> HashMap<&str, &Value> {
    list.iter().rev().map(|(name, value)| (name.as_str(), value)).collect()
}

/// A value of TOML, and whether it keeps the type.
fn to_item(v: &Value) -> Option<(Item, bool)> {
    Some(match v {
        Value::Text(text) => (value(text.as_str()), true),
        Value::Bool(b) => (value(*b), true),
        Value::Number(DType::I64, bits) => (value(bits.cast_signed()), true),
        Value::Number(DType::F64, bits) => (value(f64::from_bits(*bits)), true),
        other => (value(other.to_plain_text()?), false),
    })
}

/// A text that is to take the place of a list or a date as such, if it can be read as one.
fn alike(old: &Item, new: Item) -> Item {
    let text = new.as_str().filter(|_| old.is_array() || old.is_datetime());
    let read = text.and_then(|text| text.parse::<toml_edit::Value>().ok());
    match read {
        Some(value) if value.type_name() == old.type_name() => Item::Value(value),
        _ => new,
    }
}

/// Another value, with the comment that the old one had.
fn replace(item: &mut Item, mut new: Item) {
    if let (Some(old), Some(new)) = (item.as_value(), new.as_value_mut()) {
        *new.decor_mut() = old.decor().clone();
    }
    *item = new;
}

/// Adds a value: to the table that the part before the first dot names, if there is one.
fn add(table: &mut Table, name: &str, item: Item) -> bool {
    let (table, key): (&mut dyn TableLike, &str) = match name.split_once('.') {
        Some((first, rest)) if table.get(first).is_some_and(Item::is_table_like) => {
            match table.get_mut(first).and_then(Item::as_table_like_mut) {
                Some(inner) => (inner, rest),
                None => return false,
            }
        }
        _ => (table, name),
    };
    // Nothing but a table can be there already, and its values must stay.
    !table.contains_key(key) && table.insert(key, item).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# made by hand\nname = \"words\" # a comment\n\n[common]\ndims = 300\nrate = 0.5\nlist = [1, 2]\n";

    fn written(old: Option<&str>, metadata: &[(String, Value)]) -> Option<String> {
        let mut report = Report::default();
        let text = write(old, metadata, &mut report);
        assert!(report.losses.is_empty());
        text
    }

    #[test]
    fn values_have_names_with_dots() {
        let list = parse(TEXT).unwrap();
        let names: Vec<_> = list.iter().map(|(n, _)| n.as_str()).collect();
        assert_eq!(names, ["name", "common.dims", "common.rate", "common.list"]);
        assert_eq!(list[1].1.to_json(), 300);
        assert_eq!(written(Some(TEXT), &list).as_deref(), Some(TEXT));
    }

    #[test]
    fn only_what_changed_is_edited() {
        let mut list = parse(TEXT).unwrap();
        list[1].1 = Value::Text("many".to_owned());
        list.remove(2);
        list.push(("common.new".to_owned(), Value::Bool(true)));
        list.push(("a.b".to_owned(), Value::Text("x".to_owned())));
        let text = written(Some(TEXT), &list).unwrap();
        assert!(text.starts_with("# made by hand\nname = \"words\" # a comment\n"), "{text}");
        assert!(text.contains("dims = \"many\"") && !text.contains("rate"), "{text}");
        let names: Vec<_> = parse(&text).unwrap().into_iter().map(|(n, _)| n).collect();
        assert_eq!(names, ["name", "a.b", "common.dims", "common.list", "common.new"]);
    }

    #[test]
    fn comments_and_tables_survive_edits() {
        let text = "a = 1 # one\n[[t]]\nx = 1\ny = 2 # two\n";
        let mut list = parse(text).unwrap();
        let names: Vec<_> = list.iter().map(|(n, _)| n.as_str()).collect();
        assert_eq!(names, ["a", "t.0.x", "t.0.y"]);
        list[0].1 = Value::Bool(true);
        list.remove(1);
        let edited = written(Some(text), &list).unwrap();
        assert_eq!(edited, "a = true # one\n[[t]]\ny = 2 # two\n");
        // Lists and dates stay such, and lines end as they did.
        let dated = "l = [1, 2]\r\nd = 1979-05-27\r\n";
        let mut values = parse(dated).unwrap();
        values[0].1 = Value::Text("[3]".to_owned());
        values[1].1 = Value::Text("1980-01-01".to_owned());
        let text = written(Some(dated), &values).unwrap();
        assert_eq!(text, "l = [3]\r\nd = 1980-01-01\r\n");
        // Line ends within texts are part of them.
        for old in ["a = 1\r\ns = \"\"\"x\r\ny\"\"\"\r\n", "a = 1\r\ns = \"\"\"x\ny\"\"\"\n"] {
            let mut values = parse(old).unwrap();
            values[0].1 = Value::Number(DType::I64, 2);
            let text = written(Some(old), &values).unwrap();
            let again = parse(&text).unwrap();
            assert_eq!(again[0].1.to_json(), 2);
            assert_eq!(again[1].1.to_json(), values[1].1.to_json(), "{text:?}");
        }
        // A value can't take the place of a table.
        list.push(("t".to_owned(), Value::Bool(true)));
        let mut report = Report::default();
        assert_eq!(write(Some(&edited), &list, &mut report), Some(edited));
        assert_eq!(report.losses.len(), 1);
    }

    /// Values in a table with a long name would each have that name, and a million names must not
    /// be compared with each other.
    #[test]
    fn names_take_no_more_than_their_share() {
        let values: String = (0..50_000).map(|i| format!("a{i}=1\n")).collect();
        let long = format!("[{}]\n{values}", "k".repeat(LONGEST / 3));
        assert!(parse(&long).unwrap_err().contains("names"));
        assert!(written(Some(&long), &[]).as_deref() == Some(long.as_str()));
        let tables: String = (0..50_000).map(|i| format!("a{i}.b=1\n")).collect();
        assert!(parse(&format!("[{}]\n{tables}", "k".repeat(LONGEST / 3))).is_err());

        let mut list = parse(&values).unwrap();
        list[7].1 = Value::Bool(true);
        let edited = written(Some(&values), &list).unwrap();
        assert!(edited == values.replace("a7=1\n", "a7=true\n"));
    }

    #[test]
    fn what_is_no_toml_stays() {
        let text = "name = ";
        assert!(parse(text).is_err());
        assert_eq!(written(Some(text), &[]).as_deref(), Some(text));
        assert!(parse(&"a".repeat(LONGEST + 1)).is_err());
        assert_eq!(written(None, &[]), None);
    }
}
