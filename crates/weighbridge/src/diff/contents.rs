//! What containers hold beside tensors: metadata, words, records, files.

use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::fmt;
use weighbridge_format::model::{Attachment, NoteKind, Records, Subject, Subwords, Value};
use weighbridge_format::{Container, Error, Formats, Vocabulary};

/// How much was compared: of each kind what both or one of the two have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Compared {
    /// Tensors that both have.
    pub tensors: u64,
    /// Metadata entries.
    pub metadata: u64,
    /// Size variables.
    pub sizes: u64,
    /// The vocabulary, with its special tokens.
    pub vocabulary: bool,
    /// How unknown words are made of parts.
    pub subwords: bool,
    /// Row records.
    pub records: bool,
    /// Files within the file, or beside the weights.
    pub files: u64,
}

impl Compared {
    /// It is one thing alone.
    pub fn is_one(&self) -> bool {
        *self == Compared { tensors: 1, ..Compared::default() }
    }
}

/// As the list of a sentence: "37 tensors, 12 metadata entries and the vocabulary".
impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = vec![counted(self.tensors, "tensor", "tensors")];
        let counts = [
            (self.metadata, "metadata entry", "metadata entries"),
            (self.sizes, "size variable", "size variables"),
            (self.files, "file", "files"),
        ];
        parts
            .extend(counts.iter().filter(|c| c.0 > 0).map(|(n, one, many)| counted(*n, one, many)));
        let flags = [
            (self.vocabulary, "the vocabulary"),
            (self.subwords, "the subwords"),
            (self.records, "the row records"),
        ];
        parts.extend(flags.iter().filter(|f| f.0).map(|(_, what)| (*what).to_owned()));
        match parts.split_last() {
            Some((last, [])) => f.write_str(last),
            Some((last, others)) => write!(f, "{} and {last}", others.join(", ")),
            None => Ok(()),
        }
    }
}

fn counted(n: u64, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {many}") }
}

/// Something beside the tensors that differs.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ContentDifference {
    /// What differs.
    pub what: Subject,
    /// What the first has; none if it does not have it.
    pub first: Option<String>,
    /// What the second has.
    pub second: Option<String>,
}

pub(super) fn compare(
    a: &Container,
    b: &Container,
    done: &mut Compared,
) -> Result<Vec<ContentDifference>, Error> {
    let mut found = Vec::new();
    let show = |v: &Value| v.to_plain_text().unwrap_or_else(|| v.type_name());
    let is_folder = |c: &Container| {
        Formats::builtin().find(c.format).is_some_and(|format| format.info().is_folder)
    };
    // A folder is called what its copy is not.
    let named_by_place = is_folder(a) || is_folder(b);
    let restated = |side: &Container, key: &str, value: Option<&Value>, other: Option<&Value>| {
        other.is_none() && value.is_some_and(|value| side.restates(key, value))
    };
    done.metadata = by_name(&a.metadata, &b.metadata, |key, x, y| {
        let adds_nothing = restated(a, key, x, y) || restated(b, key, y, x);
        if x == y || adds_nothing || (named_by_place && key == "model_name") {
            return;
        }
        let what = Subject::Metadata(key.to_owned());
        let (mut first, mut second) = (x.map(show), y.map(show));
        // The same text of another type, or arrays that only their values tell apart.
        if let (Some(x), Some(y)) = (x, y)
            && first == second
        {
            let kinds = [x, y].map(|v| format!("{} {}", v.type_name(), shown(&show(v))));
            let values = [(x, y), (y, x)].map(|(own, other)| {
                let byte = first_other_byte(bytes_of(own), bytes_of(other));
                format!("{}, {byte}", own.type_name())
            });
            [first, second] = if kinds[0] == kinds[1] { values } else { kinds }.map(Some);
        }
        found.push(ContentDifference { what, first, second });
    });
    done.sizes = by_name(&a.sizevars, &b.sizevars, |name, x, y| {
        if x != y {
            let what = Subject::SizeVariable(name.to_owned(), *x.or(y).unwrap_or(&0));
            let [first, second] = [x, y].map(|v| v.map(u64::to_string));
            found.push(ContentDifference { what, first, second });
        }
    });
    done.files = files(a, b, &mut found);
    left_out(a, b, &mut found);
    done.vocabulary = either(&a.vocabulary, &b.vocabulary, vocabulary, &mut found);
    done.subwords = either(&a.subwords, &b.subwords, subwords, &mut found);
    done.records = a.records.is_some() || b.records.is_some();
    found.extend(records(a.records.as_ref(), b.records.as_ref())?);
    for difference in &mut found {
        for text in [&mut difference.first, &mut difference.second].into_iter().flatten() {
            *text = shown(text);
        }
    }
    Ok(found)
}

/// Calls `each` with what both have under each name, and counts the names.
fn by_name<T>(
    a: &[(String, T)],
    b: &[(String, T)],
    mut each: impl FnMut(&str, Option<&T>, Option<&T>),
) -> u64 {
    let known: HashMap<_, _> = b.iter().map(|(k, v)| (k.as_str(), v)).collect();
    let names: HashSet<_> = a.iter().map(|(k, _)| k.as_str()).collect();
    a.iter().for_each(|(k, v)| each(k, Some(v), known.get(k.as_str()).copied()));
    let others: Vec<_> = b.iter().filter(|(k, _)| !names.contains(k.as_str())).collect();
    others.iter().for_each(|(k, v)| each(k, None, Some(v)));
    (a.len() + others.len()) as u64
}

/// Compares what at least one of the two has.
fn either<T>(
    a: &Option<T>,
    b: &Option<T>,
    compare: impl Fn(Option<&T>, Option<&T>) -> Option<ContentDifference>,
    found: &mut Vec<ContentDifference>,
) -> bool {
    found.extend(compare(a.as_ref(), b.as_ref()));
    a.is_some() || b.is_some()
}

fn vocabulary(a: Option<&Vocabulary>, b: Option<&Vocabulary>) -> Option<ContentDifference> {
    let size = |v: Option<&Vocabulary>| v.map(|v| format!("{} tokens", v.len()));
    let (Some(x), Some(y)) = (a, b) else {
        let what = Subject::Vocabulary(a.or(b)?.len() as u64);
        return Some(ContentDifference { what, first: size(a), second: size(b) });
    };
    if x.same_as(y) {
        return None;
    }
    let what = Subject::Vocabulary(x.len() as u64);
    if let Some(i) = x.tokens().zip(y.tokens()).position(|(x, y)| x != y) {
        let token = |v: &Vocabulary| v.token(i).map(|t| format!("{t:?}"));
        let what = Subject::Token(i as u64);
        return Some(ContentDifference { what, first: token(x), second: token(y) });
    }
    if x.len() != y.len() {
        return Some(ContentDifference { what, first: size(a), second: size(b) });
    }
    let special = |v: &Vocabulary| {
        let list = v.special.iter().map(|(name, id)| format!("{name} = {id}"));
        Some(list.collect::<Vec<_>>().join(", "))
    };
    let what = Subject::SpecialTokens;
    Some(ContentDifference { what, first: special(x), second: special(y) })
}

fn subwords(a: Option<&Subwords>, b: Option<&Subwords>) -> Option<ContentDifference> {
    let what = Subject::Subwords(a.or(b)?.rows());
    let show = |s: &Subwords| {
        let kind = format!("{:?}", s.kind);
        let kind = kind.split('(').next().unwrap_or_default();
        format!("n-grams of {} to {} characters, {kind}, {:?}", s.min_n, s.max_n, s.vectors)
    };
    let different = || ContentDifference { what, first: a.map(show), second: b.map(show) };
    (a != b).then(different)
}

fn records(a: Option<&Records>, b: Option<&Records>) -> Result<Option<ContentDifference>, Error> {
    let counts = [a, b].map(|records| records.map(Records::count).transpose());
    let [first, second] = counts;
    let (first, second) = (first?, second?);
    let Some(count) = first.or(second) else { return Ok(None) };
    let what = Subject::Records(count);
    let size = |count: Option<u64>| count.map(|count| format!("{count} records"));
    let (Some(x), Some(y), true) = (a, b, first == second) else {
        let (first, second) = (size(first), size(second));
        return Ok(Some(ContentDifference { what, first, second }));
    };
    let (x, y) = (x.items()?, y.items()?);
    let differing = x.iter().zip(&y).enumerate().find(|(_, (x, y))| !same_json(x, y));
    Ok(differing.map(|(at, (x, y))| {
        let shown = |item: &str| Some(format!("record {at}: {item}"));
        ContentDifference { what, first: shown(x), second: shown(y) }
    }))
}

/// The same members and values, however they are written.
fn same_json(a: &str, b: &str) -> bool {
    // Not of numbers that a double can't hold, nor of members that are there twice.
    let parse = |text: &str| {
        let value = serde_json::from_str::<serde_json::Value>(text).ok()?;
        (value.to_string().len() == without_spaces(text).len()).then_some(value)
    };
    let (x, y) = (without_spaces(a), without_spaces(b));
    x == y || parse(a).is_some_and(|a| Some(a) == parse(b))
}

/// The text of JSON without what stands between its parts.
fn without_spaces(json: &str) -> String {
    let (mut in_text, mut escaped) = (false, false);
    let keep = |c: &char| {
        let kept = in_text || !c.is_ascii_whitespace();
        in_text ^= *c == '"' && !escaped;
        escaped = in_text && *c == '\\' && !escaped;
        kept
    };
    json.chars().filter(keep).collect()
}

/// What was left out while reading, such as the rows of words that appear twice.
fn left_out(a: &Container, b: &Container, found: &mut Vec<ContentDifference>) {
    let lost = |c: &Container| -> Vec<Subject> {
        let notes = c.notes.iter().filter(|note| note.kind == NoteKind::Lost);
        notes.filter_map(|note| note.subject.clone()).collect()
    };
    let (x, y) = (lost(a), lost(b));
    let show = |there: bool| there.then(|| "left out".to_owned());
    for what in x.iter().chain(y.iter().filter(|what| !x.contains(what))) {
        let (first, second) = (x.contains(what), y.contains(what));
        if first != second {
            let (first, second) = (show(first), show(second));
            found.push(ContentDifference { what: what.clone(), first, second });
        }
    }
}

/// A file that only says what the metadata says is compared where both have it.
fn files(a: &Container, b: &Container, found: &mut Vec<ContentDifference>) -> u64 {
    let list = |c: &Container| -> Vec<(String, Attachment)> {
        c.attachments.iter().map(|a| (a.name.clone(), a.clone())).collect()
    };
    let mut skipped = 0;
    let all = by_name(&list(a), &list(b), |name, x, y| {
        let size = |a: Option<&Attachment>| a.map(|a| format!("{} bytes", a.data.len()));
        let same = match (x, y) {
            (Some(x), Some(y)) => x.data.same_bytes(&y.data).unwrap_or(false),
            (Some(one), None) | (None, Some(one)) if one.described => {
                skipped += 1;
                true
            }
            _ => false,
        };
        if !same {
            let (what, mut first, mut second) =
                (Subject::Attachment(name.to_owned()), size(x), size(y));
            if let (Some(x), Some(y), true) = (x, y, first == second)
                && let (Ok(x), Ok(y)) = (x.data.in_place(), y.data.in_place())
            {
                [first, second] = [(first, &x, &y), (second, &y, &x)].map(|(size, own, other)| {
                    size.map(|size| format!("{size}, {}", first_other_byte(own, other)))
                });
            }
            found.push(ContentDifference { what, first, second });
        }
    });
    all - skipped
}

/// The bytes of a value that has no text.
fn bytes_of(value: &Value) -> &[u8] {
    match value {
        Value::Array(array) => &array.data,
        Value::Bits { bytes, .. } => bytes,
        _ => &[],
    }
}

/// The first byte that another has otherwise.
fn first_other_byte(own: &[u8], other: &[u8]) -> String {
    let at = own.iter().zip(other).position(|(x, y)| x != y).unwrap_or(0);
    format!("byte {at} is {:#04x}", own.get(at).unwrap_or(&0))
}

/// As much of a text as a line takes.
fn shown(text: &str) -> String {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weighbridge_codec::DType;

    fn differing(a: &Container, b: &Container) -> Vec<String> {
        let found = compare(a, b, &mut Compared::default()).unwrap();
        let side = |s: &Option<String>| s.clone().unwrap_or("-".into());
        found
            .iter()
            .map(|d| format!("{}: {} / {}", d.what, side(&d.first), side(&d.second)))
            .collect()
    }

    #[test]
    fn sentences_name_what_was_compared() {
        let all = Compared { tensors: 37, metadata: 12, vocabulary: true, ..Default::default() };
        assert_eq!(all.to_string(), "37 tensors, 12 metadata entries and the vocabulary");
        let one = Compared { tensors: 1, ..Default::default() };
        assert_eq!(one.to_string(), "1 tensor");
    }

    #[test]
    fn everything_beside_the_tensors_is_compared() {
        let number = |bits| Value::Number(DType::F32, bits);
        let base = || Container {
            metadata: vec![("lr".into(), number(1)), ("name".into(), Value::Text("m".into()))],
            sizevars: vec![("B".into(), 8)],
            vocabulary: Some(Vocabulary::from_tokens(["a", "b"])),
            ..Container::default()
        };
        assert_eq!(differing(&base(), &base()), [""; 0]);
        let mut other = base();
        other.metadata[0].1 = number(2);
        other.metadata[1].0 = "title".into();
        other.sizevars[0].1 = 9;
        other.vocabulary = Some(Vocabulary::from_tokens(["a", "B"]));
        assert_eq!(
            differing(&base(), &other),
            [
                "metadata \"lr\": 0.000000000000000000000000000000000000000000001401298464324817 / 0.000000000000000000000000000000000000000000002802596928649634",
                "metadata \"name\": m / -",
                "metadata \"title\": - / m",
                "size variable B := 8: 8 / 9",
                "token 1: \"b\" / \"B\"",
            ]
        );
        let mut typed = base();
        typed.metadata[1].1 = Value::Bool(true);
        let mut text = base();
        text.metadata[1].1 = Value::Text("true".into());
        assert_eq!(differing(&typed, &text), ["metadata \"name\": bool true / str true"]);
        let mut special = base();
        special.vocabulary.as_mut().unwrap().special.push(("cls".into(), 1));
        assert_eq!(
            differing(&base(), &special),
            ["the special tokens of the vocabulary:  / cls = 1"]
        );
        let none = Container { vocabulary: None, ..base() };
        assert_eq!(differing(&base(), &none), ["vocabulary of 2 tokens: 2 tokens / -"]);
    }

    #[test]
    fn records_and_files_are_compared_by_content() {
        let records = |items: [&'static str; 2]| Container {
            records: Some(Records::from_objects(items).unwrap()),
            ..Container::default()
        };
        let (a, b) = (records(["{\"a\":1}", "{}"]), records(["{\"a\": 1}", "{}"]));
        assert_eq!(differing(&a, &b), [""; 0]);
        let large = |n: &str| format!("{{\"n\": 1234567890123456789012{n}}}");
        assert!(!same_json(&large("3"), &large("4")) && same_json(&large("3"), &large("3")));
        assert!(!same_json(r#"{"a":1,"a":2}"#, r#"{"a":3,"a":2}"#));
        assert!(same_json(r#"{"a": 1, "b": "x y"}"#, r#"{"b":"x y","a":1}"#));
        assert!(!same_json(r#"{"b":"x y"}"#, r#"{"b":"xy"}"#));
        let c = records(["{\"a\":1}", "{\"b\":2}"]);
        assert_eq!(differing(&a, &c), ["2 row records: record 1: {} / record 1: {\"b\":2}"]);
        let file = |bytes: &[u8], described| Container {
            attachments: vec![Attachment {
                name: "config.json".into(),
                data: weighbridge_format::View::owned(bytes.to_vec()),
                described,
            }],
            ..Container::default()
        };
        assert_eq!(differing(&file(b"{}", true), &Container::default()), [""; 0]);
        assert_eq!(differing(&file(b"{}", false), &Container::default()).len(), 1);
        let found = differing(&file(b"{}", true), &file(b"[]", true));
        assert_eq!(
            found,
            ["attachment \"config.json\": 2 bytes, byte 0 is 0x7b / 2 bytes, byte 0 is 0x5b"]
        );
    }
}
