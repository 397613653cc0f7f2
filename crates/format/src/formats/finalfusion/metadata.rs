//! Metadata: a text in TOML, which stays as it is but for what was changed.
//!
//! Its values become metadata of the container, those in tables under names with dots. The text
//! travels with the container; when it is written again, only the values that differ are edited in
//! it, so that comments and order stay.

use crate::model::{Report, Value};
use toml_edit::{DocumentMut, Item, Table, TableLike, value};
use weighbridge_codec::DType;

/// Where the text stands in the dialect.
pub(super) const DIALECT: &str = "toml";

/// A longer text is kept but not taken apart: its parts would need many times its memory.
const LONGEST: usize = 1 << 20;

/// The values of a text, with their types as far as TOML has them.
pub(super) fn parse(text: &str) -> Result<Vec<(String, Value)>, String> {
    let mut list = Vec::new();
    collect("", document(text)?.as_table(), &mut list);
    // A name with a dot in it may look like one in a table; the first counts.
    let mut seen = std::collections::HashSet::new();
    list.retain(|(name, _)| seen.insert(name.clone()));
    Ok(list)
}

fn document(text: &str) -> Result<DocumentMut, String> {
    if text.len() > LONGEST {
        return Err(format!("it is longer than {LONGEST} bytes"));
    }
    text.parse::<DocumentMut>().map_err(|e| e.message().to_owned())
}

fn collect(prefix: &str, table: &dyn TableLike, list: &mut Vec<(String, Value)>) {
    for (key, item) in table.iter() {
        let name = if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") };
        match item {
            Item::None => {}
            Item::Value(v) => match to_value(v) {
                Some(value) => list.push((name, value)),
                None => match v.as_inline_table() {
                    Some(table) if !table.is_empty() => collect(&name, table, list),
                    _ => list.push((name, Value::Text(v.to_string().trim().to_owned()))),
                },
            },
            Item::Table(table) => collect(&name, table, list),
            Item::ArrayOfTables(tables) => {
                for (i, table) in tables.iter().enumerate() {
                    collect(&format!("{name}.{i}"), table, list);
                }
            }
        }
    }
}

fn to_value(v: &toml_edit::Value) -> Option<Value> {
    match v {
        toml_edit::Value::String(s) => Some(Value::Text(s.value().clone())),
        toml_edit::Value::Integer(i) => Some(Value::Number(DType::I64, i.value().cast_unsigned())),
        toml_edit::Value::Float(f) => Some(Value::Number(DType::F64, f.value().to_bits())),
        toml_edit::Value::Boolean(b) => Some(Value::Bool(*b.value())),
        _ => None,
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
            report.lose("the old metadata text", "it is no TOML that could be added to");
            &[][..]
        }
        (_, known) => known.as_deref().unwrap_or_default(),
    };
    let mut document = old.and_then(|text| document(text).ok()).unwrap_or_default();
    let mut changed = false;
    let value_of = |list: &[(String, Value)], name: &str| {
        list.iter().find(|(n, _)| n == name).map(|(_, v)| (v.type_name(), v.to_json()))
    };
    for (name, _) in before.iter().filter(|(n, _)| value_of(metadata, n).is_none()) {
        changed |= edit(&mut document, name, None);
    }
    for (name, new) in metadata {
        if value_of(before, name) == value_of(metadata, name) {
            continue;
        }
        let Some((item, exact)) = to_item(new) else {
            report.lose(format!("metadata {name:?}"), "TOML has no type for it");
            continue;
        };
        if !exact {
            let why = format!("{} is kept as text", new.type_name());
            report.lose(format!("type of metadata {name:?}"), why);
        }
        changed |= edit(&mut document, name, Some(item));
    }
    match old {
        Some(text) if !changed => Some(text.to_owned()),
        None if !changed => None,
        _ => Some(document.to_string()),
    }
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

/// Sets or removes a value: under its whole name where that is a key, else in the table that the
/// part before a dot names, if there is one.
fn edit(document: &mut DocumentMut, name: &str, item: Option<Item>) -> bool {
    fn within(table: &mut dyn TableLike, name: &str, item: &mut Option<Item>) -> bool {
        if table.contains_key(name) {
            match item.take() {
                Some(item) => _ = table.insert(name, item),
                None => _ = table.remove(name),
            }
            return true;
        }
        // A dot at any place may be the one between a table and a key.
        for (dot, _) in name.match_indices('.') {
            let (first, rest) = (&name[..dot], &name[dot + 1..]);
            let inner = table.get_mut(first).and_then(Item::as_table_like_mut);
            if let Some(inner) = inner
                && within(inner, rest, item)
            {
                return true;
            }
        }
        false
    }
    let mut item = item;
    let table: &mut Table = document.as_table_mut();
    if within(table, name, &mut item) {
        return true;
    }
    let Some(item) = item else { return false };
    if let Some((first, rest)) = name.split_once('.')
        && let Some(inner) = table.get_mut(first).and_then(Item::as_table_like_mut)
    {
        inner.insert(rest, item);
    } else {
        table.insert(name, item);
    }
    true
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
    fn what_is_no_toml_stays() {
        let text = "name = ";
        assert!(parse(text).is_err());
        assert_eq!(written(Some(text), &[]).as_deref(), Some(text));
        assert!(parse(&"a".repeat(LONGEST + 1)).is_err());
        assert_eq!(written(None, &[]), None);
    }
}
