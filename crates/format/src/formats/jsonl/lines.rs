//! One line: an object of which one member is the vector.

use super::super::wordlist::Number;
use super::VECTOR;
use crate::model::scan::{Member, Members, skip_space, skip_value};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::Range;
use weighbridge_codec::convert::Change;

/// Why a line is not what it should be. Places are counted from the start of the line.
#[derive(Debug, PartialEq)]
pub(super) enum Bad {
    /// It is not JSON, from about this place on, or something else than an object.
    NotObject { at: usize, why: String },
    /// It has no vector; these are the members it has.
    NoVector { members: Vec<String> },
    /// It has another vector.
    Twice { at: Range<usize> },
    /// The vector, or what stands in it, is something else.
    NotNumbers { at: Range<usize>, found: String },
    /// The vector has another number of values.
    Length { at: Range<usize>, found: usize },
    /// f32 has no such number.
    Beyond { at: Range<usize>, found: String },
    /// It has so many bytes.
    Long(usize),
}

/// The numbers and records of some lines.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    /// f32, little-endian.
    pub matrix: Vec<u8>,
    /// The rest of each line, on a line of its own.
    pub records: Vec<u8>,
    pub rows: u64,
    /// Lines, with blank ones.
    pub lines: u64,
    /// Numbers with more digits than f32 holds.
    pub rounded: Change,
}

/// Members that a message lists.
const LISTED: usize = 8;

impl Parsed {
    /// Adds a line, which has so many numbers if that is known, and says how many it has.
    pub(super) fn add(&mut self, line: &[u8], dim: Option<usize>) -> Result<usize, Bad> {
        let value: &RawValue = serde_json::from_slice(line).map_err(|error| {
            let why = error.to_string();
            // serde counts lines too, and there is only one.
            let why = why.split(" at line ").next().unwrap_or_default().to_owned();
            Bad::NotObject { at: error.column().saturating_sub(1).min(line.len()), why }
        })?;
        let start = skip_space(line, 0);
        let Some(members) = Members::of(line, start) else {
            return Err(Bad::NotObject {
                at: start,
                why: format!("{} instead", kind(value.get())),
            });
        };
        let members: Vec<Member> = members.collect();
        let mut vectors = members.iter().filter(|member| member.is(line, VECTOR));
        let Some(vector) = vectors.next() else {
            let names = members.iter().take(LISTED).filter_map(|m| line.get(m.key.clone()));
            let names = names.map(|name| String::from_utf8_lossy(name).into_owned());
            return Err(Bad::NoVector { members: names.collect() });
        };
        if let Some(second) = vectors.next() {
            return Err(Bad::Twice { at: second.key.start..second.value.end });
        }
        let found = self.add_numbers(line, vector.value.clone(), dim)?;
        if dim.is_some_and(|dim| dim != found) {
            return Err(Bad::Length { at: vector.value.clone(), found });
        }
        let object = value.get();
        self.records.extend_from_slice(without(object, VECTOR).as_bytes());
        self.records.push(b'\n');
        self.rows += 1;
        Ok(found)
    }

    /// Adds the numbers of an array, and says how many there are. Of one that is longer than it
    /// should be no more are kept.
    fn add_numbers(
        &mut self,
        line: &[u8],
        array: Range<usize>,
        dim: Option<usize>,
    ) -> Result<usize, Bad> {
        let part = |at: Range<usize>| {
            let text = line.get(at).unwrap_or_default();
            String::from_utf8_lossy(&text[..text.len().min(64)]).into_owned()
        };
        let not_numbers = |at: Range<usize>| Bad::NotNumbers { found: part(at.clone()), at };
        if line.get(array.start) != Some(&b'[') {
            return Err(not_numbers(array));
        }
        let (mut at, mut found) = (skip_space(line, array.start + 1), 0);
        while at + 1 < array.end {
            // The line is JSON, so that a number ends where its digits do.
            let number = match Number::at_front(line.get(at..).unwrap_or_default()) {
                Some(number) => number,
                None => {
                    let end = skip_value(line, at).ok_or_else(|| not_numbers(array.clone()))?;
                    let text = line.get(at..end).unwrap_or_default();
                    match text.first() {
                        Some(b'-' | b'0'..=b'9') => {
                            Number::of_field(text).ok_or_else(|| not_numbers(at..end))?
                        }
                        // What JSON has in the place of NaN.
                        Some(b'n') => Number { value: f32::NAN, wide: None, length: end - at },
                        _ => return Err(not_numbers(at..end)),
                    }
                }
            };
            let end = at + number.length;
            if number.value.is_infinite() {
                return Err(Bad::Beyond { at: at..end, found: part(at..end) });
            }
            let mut bytes = [0; 4];
            number.put(&mut bytes, &mut self.rounded);
            found += 1;
            if dim.is_none_or(|dim| found <= dim) {
                self.matrix.extend_from_slice(&bytes);
            }
            // Behind the comma; behind the last number stands the bracket.
            at = skip_space(line, end);
            at = if line.get(at) == Some(&b',') { skip_space(line, at + 1) } else { array.end };
        }
        Ok(found)
    }
}

/// What kind of value a text of JSON is.
fn kind(json: &str) -> &'static str {
    match json.bytes().next() {
        Some(b'n') => "null",
        Some(b't' | b'f') => "a boolean",
        Some(b'"') => "a text",
        Some(b'[') => "an array",
        _ => "a number",
    }
}

/// An object without the members of a name; the others stay as they are.
pub(super) fn without<'a>(object: &'a str, name: &str) -> Cow<'a, str> {
    let text = object.as_bytes();
    let Some(members) = Members::of(text, skip_space(text, 0)) else { return object.into() };
    let members: Vec<Member> = members.collect();
    if !members.iter().any(|member| member.is(text, name)) {
        return object.into();
    }
    // Each with what separates it from the one before.
    let mut kept = String::new();
    let mut end = skip_space(text, 0) + 1;
    for member in &members {
        if !member.is(text, name) {
            let front = if kept.is_empty() { member.key.start } else { end };
            kept.push_str(object.get(front..member.value.end).unwrap_or_default());
        }
        end = member.value.end;
    }
    let first = members.first().map_or(1, |member| member.key.start);
    let open = object.get(..first).unwrap_or("{");
    match kept.is_empty() {
        true => "{}".into(),
        false => format!("{open}{kept}}}").into(),
    }
}
