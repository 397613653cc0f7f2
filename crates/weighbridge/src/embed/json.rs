//! Texts that are members of JSON objects.

use super::jsonl::VECTOR;
use super::texts::{BadLine, SKIP_BAD, TextRow};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use weighbridge_format::Advice;

/// The members of an object with their own JSON texts, in order.
pub(crate) struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(key) = map.next_key::<Key>()? {
                    members.push((key.0, map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        d.deserialize_map(Collect)
    }
}

#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// The row of a line, whose text is a member.
pub(super) fn from_json(line: &str, field: &str) -> Result<TextRow, BadLine> {
    let line = line.trim_ascii();
    let members = members(line).map_err(|what| {
        BadLine::new(what, SKIP_BAD.and("without a field, lines are plain text"))
    })?;
    // Of members with the same name the last one counts, as it does for most readers.
    let Some((_, raw)) = members.0.iter().rev().find(|(key, _)| key == field) else {
        let names: Vec<_> = members.0.iter().take(8).map(|(key, _)| format!("{key:?}")).collect();
        let advice = match names.is_empty() {
            true => "the object is empty".into(),
            false => {
                let effect =
                    format!("names the member with the text; there are {}", names.join(", "));
                Advice::set("field", effect)
            }
        };
        return Err(BadLine::new(format!("it has no member {field:?}"), advice));
    };
    let text = serde_json::from_str::<String>(raw.get()).map_err(|_| {
        let what = format!("the member {field:?} is {} and not a text", kind(raw.get()));
        BadLine::new(what, Advice::set("field", "names another member"))
    })?;
    let shorter = if field == VECTOR { None } else { members.without_vector() };
    Ok(TextRow { text, record: shorter.unwrap_or_else(|| line.to_owned()) })
}

impl Members<'_> {
    /// The object without a vector of before, whose place the new one takes; none if it has none.
    pub(crate) fn without_vector(&self) -> Option<String> {
        let kept = || self.0.iter().filter(|(key, _)| key != VECTOR);
        (kept().count() < self.0.len()).then(|| {
            let member = |(key, raw): &(Cow<str>, &RawValue)| {
                format!("{}: {}", serde_json::Value::from(&**key), raw.get())
            };
            format!("{{{}}}", kept().map(member).collect::<Vec<_>>().join(", "))
        })
    }
}

fn kind(json: &str) -> &'static str {
    match json.bytes().next() {
        Some(b'n') => "null",
        Some(b't' | b'f') => "a boolean",
        Some(b'[') => "an array",
        Some(b'{') => "an object",
        _ => "a number",
    }
}

/// The members of a line that is a JSON object, or what it is instead.
pub(crate) fn members(line: &str) -> Result<Members<'_>, String> {
    serde_json::from_str(line).map_err(|error| not_json(line, &error))
}

fn not_json(line: &str, error: &serde_json::Error) -> String {
    // serde counts lines too, and there is only one.
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    if error.is_data() {
        let found = kind(line);
        let found = if line.starts_with('"') { "a text" } else { found };
        return format!("{found}, not a JSON object");
    }
    format!("not JSON: {message} at column {}", error.column())
}
