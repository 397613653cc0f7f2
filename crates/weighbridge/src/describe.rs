//! A container out of JSON, for files that are made by hand or by a script.

use serde_json::{Map, Value as Json};
use weighbridge_codec::{DType, element};
use weighbridge_format::model::{Array, Records, Value};
use weighbridge_format::source::Bytes;
use weighbridge_format::wire::to_len;
use weighbridge_format::{Advice, Container, Encoding, Error, Tensor, View, Vocabulary};

/// Members that a description can have.
const MEMBERS: [&str; 5] = ["sizevars", "metadata", "tensors", "words", "records"];

/// A container out of its description, a JSON object. All members can be left out:
///
/// - `sizevars`: whole numbers by name;
/// - `metadata`: by key a text, a number, a boolean, a list of numbers, or an object of `type`, with the
///   names of [`Value::type_name`], and `value`;
/// - `tensors`: by name an object of `type`, `shape` and `values`, a list that may have lists in it. A
///   tensor without `values` is only declared; one without `shape` has that of its lists;
/// - `words`: a text for each row; `records`: an object for each row.
///
/// Whole numbers are `i64` and others `f64` where nothing says a type; tensors are `f32`. NaN and infinities are the
/// texts `"NaN"`, `"inf"` and `"-inf"`. `name` is what an error calls the description.
///
/// ```
/// let json = br#"{"tensors": {"w": {"shape": [2], "values": [0.5, 1]}}}"#;
/// let container = weighbridge::parse_description(json, "data.json")?;
/// assert_eq!(container.tensors[0].values_f32(0, 2)?, [0.5, 1.0]);
/// # Ok::<(), weighbridge::Error>(())
/// ```
///
/// # Errors
/// [`Error::Unrecognised`] for what is no JSON object or has other members; [`Error::Refused`] for values
/// that do not fit their type or shape.
pub fn parse_description(json: &[u8], name: &str) -> Result<Container, Error> {
    let unrecognised = |what: String| Error::unrecognised(name, what, "docs/new.md shows one");
    let all: Map<String, Json> = serde_json::from_slice(json)
        .map_err(|error| unrecognised(format!("it is not a JSON object: {error}")))?;
    if let Some(other) = all.keys().find(|key| !MEMBERS.contains(&key.as_str())) {
        let what = format!("{other:?} is no member of a description");
        let advice =
            Advice::meant(other, MEMBERS).and(format!("members are {}", MEMBERS.join(", ")));
        return Err(Error::unrecognised(name, what, advice));
    }
    let group = |key: &str| match all.get(key) {
        None => Ok(Map::new()),
        Some(Json::Object(members)) => Ok(members.clone()),
        Some(_) => Err(unrecognised(format!("{key:?} is not an object"))),
    };
    let list = |key: &str| match all.get(key) {
        None => Ok(None),
        Some(Json::Array(items)) => Ok(Some(items)),
        Some(_) => Err(unrecognised(format!("{key:?} is not a list"))),
    };
    let mut builder = Container::builder();
    for (key, value) in group("metadata")? {
        builder = builder.value(&key, metadata_value(&key, &value)?);
    }
    for (name, tensor) in group("tensors")? {
        builder = builder.tensor(tensor_of(&name, &tensor)?);
    }
    let mut container = builder.build()?;
    for (key, size) in group("sizevars")? {
        let wrong = || refused(&key, "is no size: a whole number from 0 on");
        container.sizevars.push((key.clone(), size.as_u64().ok_or_else(wrong)?));
    }
    if let Some(words) = list("words")? {
        let text = |word: &'_ Json| word.as_str().map(str::to_owned);
        let words: Option<Vec<String>> = words.iter().map(text).collect();
        let words = words.ok_or_else(|| unrecognised("\"words\" are not all texts".to_owned()))?;
        container.vocabulary = Some(Vocabulary::from_tokens(words.iter().map(String::as_str)));
    }
    if let Some(records) = list("records")? {
        let objects: Vec<String> = records.iter().map(Json::to_string).collect();
        let records = Records::from_objects(objects.iter().map(String::as_str))
            .map_err(|bad| unrecognised(format!("\"records\" are not all objects: {bad}")))?;
        crate::records::attach(&mut container, records, name)?;
    }
    Ok(container)
}

fn refused(field: &str, what: &str) -> Error {
    let problem = weighbridge_format::Problem::new(format!("{field:?} {what}"), Advice::None);
    Error::Refused(Box::new(problem.about(field)))
}

fn metadata_value(key: &str, json: &Json) -> Result<Value, Error> {
    match json {
        Json::String(text) => Ok(Value::Text(text.clone())),
        Json::Bool(yes) => Ok(Value::Bool(*yes)),
        Json::Number(_) | Json::Array(_) => {
            let mut numbers = Numbers::default();
            numbers.collect(key, json, 0)?;
            let dtype =
                if numbers.texts.iter().all(|t| is_whole(t)) { DType::I64 } else { DType::F64 };
            typed(key, dtype, &numbers, json.is_array())
        }
        Json::Object(members) => {
            let kind = members.get("type").and_then(Json::as_str);
            let (Some(kind), Some(value), 2) = (kind, members.get("value"), members.len()) else {
                return Err(refused(key, "is no object of \"type\" and \"value\""));
            };
            with_type(key, kind, value)
        }
        Json::Null => Err(refused(key, "is null, which no format can hold")),
    }
}

/// A value of a type that was named.
fn with_type(key: &str, kind: &str, value: &Json) -> Result<Value, Error> {
    let wrong = || refused(key, &format!("is no value of the type {kind}"));
    match (kind, value) {
        ("str", Json::String(text)) => Ok(Value::Text(text.clone())),
        ("bool", Json::Bool(yes)) => Ok(Value::Bool(*yes)),
        ("bitset", Json::Array(flags)) => {
            let flags: Option<Vec<bool>> = flags.iter().map(Json::as_bool).collect();
            let flags = flags.ok_or_else(wrong)?;
            let mut bytes = vec![0u8; flags.len().div_ceil(8)];
            for (i, _) in flags.iter().enumerate().filter(|(_, flag)| **flag) {
                bytes[i / 8] |= 1 << (i % 8);
            }
            let count = u32::try_from(flags.len()).map_err(|_| wrong())?;
            Ok(Value::Bits { count, bytes: Bytes::owned(bytes) })
        }
        ("str" | "bitset", _) => Err(wrong()),
        _ => {
            let dtype = element_type(key, kind)?;
            let mut numbers = Numbers::default();
            numbers.collect(key, value, 0)?;
            typed(key, dtype, &numbers, value.is_array())
        }
    }
}

fn typed(key: &str, dtype: DType, numbers: &Numbers, is_list: bool) -> Result<Value, Error> {
    let bytes = numbers.encode(key, dtype)?;
    Ok(match is_list {
        false => Value::number(dtype, &bytes),
        true => {
            Value::Array(Array { dtype, shape: numbers.shape.clone(), data: Bytes::owned(bytes) })
        }
    })
}

fn element_type(field: &str, name: &str) -> Result<DType, Error> {
    let names = DType::ALL.iter().map(|dtype| dtype.name());
    DType::from_name(name).ok_or_else(|| {
        let what = format!("{field:?} is of a type that there is not: {name:?}");
        Error::refused(what, Advice::meant(name, names))
    })
}

fn tensor_of(name: &str, json: &Json) -> Result<Tensor, Error> {
    let Json::Object(members) = json else {
        return Err(refused(name, "is no object of \"type\", \"shape\" and \"values\""));
    };
    if let Some(other) =
        members.keys().find(|key| !["type", "shape", "values"].contains(&key.as_str()))
    {
        return Err(refused(name, &format!("has the member {other:?}, which no tensor has")));
    }
    let kind = members.get("type").map_or(Some("f32"), Json::as_str);
    let kind = kind.ok_or_else(|| refused(name, "has a \"type\" that is no text"))?;
    let dtype = element_type(name, kind)?;
    let sizes =
        |shape: &Json| shape.as_array()?.iter().map(Json::as_u64).collect::<Option<Vec<_>>>();
    let wrong = || refused(name, "has a \"shape\" that is no list of sizes");
    let shape = members.get("shape").map(|s| sizes(s).ok_or_else(wrong)).transpose()?;
    let Some(values) = members.get("values") else {
        let shape = shape.ok_or_else(|| refused(name, "has neither \"values\" nor a \"shape\""))?;
        return Ok(Tensor::declared(name, Encoding::Plain(dtype), shape));
    };
    let mut numbers = Numbers::default();
    numbers.collect(name, values, 0)?;
    let shape = shape.unwrap_or_else(|| numbers.shape.clone());
    let count = shape.iter().try_fold(1u64, |n, size| n.checked_mul(*size));
    if count.map(to_len) != Some(numbers.texts.len()) {
        let there = numbers.texts.len();
        return Err(refused(name, &format!("has {there} values, and the shape {shape:?}")));
    }
    let bytes = numbers.encode(name, dtype)?;
    Tensor::stored(name, Encoding::Plain(dtype), shape, View::owned(bytes))
}

/// The numbers of a list that may have lists in it, as they were written, and its shape.
#[derive(Default)]
struct Numbers {
    texts: Vec<String>,
    shape: Vec<u64>,
}

impl Numbers {
    fn collect(&mut self, field: &str, json: &Json, depth: usize) -> Result<(), Error> {
        match json {
            Json::Array(items) => {
                match self.shape.get(depth) {
                    // Only the first list of a depth may begin it.
                    None if self.texts.is_empty() => self.shape.push(items.len() as u64),
                    Some(size) if *size == items.len() as u64 => {}
                    _ => return Err(refused(field, "has lists of different lengths")),
                }
                items.iter().try_for_each(|item| self.collect(field, item, depth + 1))
            }
            _ if depth != self.shape.len() => Err(refused(field, "has lists of different lengths")),
            Json::Number(number) => {
                self.texts.push(number.to_string());
                Ok(())
            }
            Json::Bool(yes) => {
                self.texts.push(u8::from(*yes).to_string());
                Ok(())
            }
            Json::String(text) if ["NaN", "inf", "-inf"].contains(&text.as_str()) => {
                self.texts.push(text.clone());
                Ok(())
            }
            other => Err(refused(field, &format!("has a value that is no number: {other}"))),
        }
    }

    fn encode(&self, field: &str, dtype: DType) -> Result<Vec<u8>, Error> {
        let size = dtype.byte_len(self.texts.len() as u64).map_or(0, to_len);
        let mut bytes = vec![0; size];
        for (index, text) in self.texts.iter().enumerate() {
            let wrong =
                || refused(field, &format!("has the value {text}, which is none of {dtype}"));
            let number = match dtype {
                // What a metadata number is read as knows neither.
                DType::Bool | DType::Bitset => Value::parse("u8", text),
                _ => Value::parse(dtype.name(), text),
            };
            let Some(Value::Number(read, bits)) = number else { return Err(wrong()) };
            if dtype == DType::Bool && bits > 1 {
                return Err(wrong());
            }
            element::write(dtype, &mut bytes, index, element::read(read, &bits.to_le_bytes(), 0));
        }
        Ok(bytes)
    }
}

fn is_whole(text: &str) -> bool {
    text.parse::<i64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_a_container_holds_can_be_described() {
        let json = br#"{
            "sizevars": {"D": 2},
            "metadata": {"mode": "relu", "on": true, "n": -3, "x": 0.5, "list": [1, 2],
                "half": {"type": "f16", "value": 1.5}, "flags": {"type": "bitset", "value": [true, false, true]},
                "small": {"type": "u8", "value": [[1, 2], [3, 4]]}},
            "tensors": {"w": {"type": "i4", "values": [[1, -2], [3, -8]]}, "b": {"shape": [2], "values": [0.5, "NaN"]},
                "y": {"type": "f64", "shape": [3]}, "s": {"type": "bool", "values": true}}
        }"#;
        let container = parse_description(json, "x.json").unwrap();
        assert_eq!(container.sizevars, [("D".to_owned(), 2)]);
        let types: Vec<_> = container.metadata.iter().map(|(_, value)| value.type_name()).collect();
        let expected = ["str", "bool", "i64", "f64", "i64[2]", "f16", "bitset[3]", "u8[2, 2]"];
        assert_eq!(types, expected);
        let w = container.tensor("w").unwrap();
        assert_eq!(
            (&w.shape[..], w.values_f32(0, 4).unwrap()),
            (&[2, 2][..], vec![1.0, -2.0, 3.0, -8.0])
        );
        assert!(container.tensor("b").unwrap().values_f32(0, 2).unwrap()[1].is_nan());
        assert!(!container.tensor("y").unwrap().has_data());
        assert!(container.tensor("s").unwrap().shape.is_empty());
    }

    #[test]
    fn what_does_not_fit_is_said() {
        for (json, said) in [
            (r"[]", "not a JSON object"),
            (r#"{"tensor": {}}"#, "no member"),
            (r#"{"tensors": []}"#, "not an object"),
            (r#"{"tensors": {"w": {"values": [[1], [2, 3]]}}}"#, "different lengths"),
            (r#"{"tensors": {"w": {"values": [1, [2]]}}}"#, "different lengths"),
            (r#"{"tensors": {"w": {"values": [1], "shape": [2]}}}"#, "1 values"),
            (
                r#"{"tensors": {"w": {"values": [1], "shape": [18446744073709551615, 2]}}}"#,
                "1 values",
            ),
            (r#"{"tensors": {"w": {"type": "i8", "values": [300]}}}"#, "300"),
            (r#"{"tensors": {"w": {"type": "i8", "values": [0.5]}}}"#, "0.5"),
            (r#"{"tensors": {"w": {"type": "f33", "values": [0]}}}"#, "f33"),
            (r#"{"tensors": {"w": {"values": ["x"]}}}"#, "no number"),
            (r#"{"metadata": {"a": null}}"#, "null"),
            (r#"{"metadata": {"a": {"type": "u8"}}}"#, "\"value\""),
            (r#"{"sizevars": {"a": -1}}"#, "no size"),
            (r#"{"words": [1]}"#, "words"),
        ] {
            let error = parse_description(json.as_bytes(), "x.json").unwrap_err();
            assert!(error.to_string().contains(said), "{json}: {error}");
        }
    }
}
