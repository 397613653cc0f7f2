//! Rows by what their records say.

use super::{Index, refused};
use serde_json::Value as Json;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;
use weighbridge_format::{Advice, Error};
use weighbridge_search::RowSet;

/// Fields that a message lists.
const LISTED: usize = 8;

/// A record's member that must have a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The name of the member.
    pub field: String,
    /// Its value: a text as it is, anything else as its JSON. Of an array, one element must have it.
    pub value: String,
}

/// A filter that is written as `field=value`; `None` if there is no field.
pub fn parse_filter(text: &str) -> Option<Filter> {
    let (field, value) = text.split_once('=')?;
    let filter = Filter { field: field.to_owned(), value: value.to_owned() };
    (!field.is_empty()).then_some(filter)
}

impl Filter {
    fn matches(&self, value: &Json) -> bool {
        match value {
            Json::String(text) => *text == self.value,
            Json::Array(elements) => elements.iter().any(|element| self.matches(element)),
            Json::Number(number) => {
                let wanted = self.value.parse::<f64>().ok();
                number.to_string() == self.value || (wanted.is_some() && number.as_f64() == wanted)
            }
            other => other.to_string() == self.value,
        }
    }
}

/// The members of a record; of one that is named twice, the last.
type Members<'a> = HashMap<Cow<'a, str>, &'a RawValue>;

impl Index {
    /// The rows whose records match all filters.
    ///
    /// # Errors
    /// [`Error::Refused`] with the subject `records` if there are none, or not one for each row, and
    /// with `filter` if no record has a field of the name.
    pub fn matching(&self, filters: &[Filter]) -> Result<RowSet, Error> {
        let records = self.check_records()?;
        let mut rows = RowSet::new(self.len());
        let mut seen = vec![false; filters.len()];
        let mut first: Vec<String> = Vec::new();
        for (row, item) in records.items().into_iter().enumerate() {
            let members: Members = serde_json::from_str(item).unwrap_or_default();
            if row == 0 {
                first = members.keys().map(|key| key.to_string()).collect();
            }
            let mut all = true;
            for (filter, seen) in filters.iter().zip(&mut seen) {
                let value = members.get(filter.field.as_str());
                *seen |= value.is_some();
                let parsed = value.and_then(|raw| serde_json::from_str::<Json>(raw.get()).ok());
                all &= parsed.is_some_and(|value| filter.matches(&value));
            }
            if all {
                rows.insert(row);
            }
        }
        match filters.iter().zip(seen).find(|(_, seen)| !seen) {
            Some((filter, _)) if !self.is_empty() => Err(no_field(&filter.field, first)),
            _ => Ok(rows),
        }
    }

    /// Whether the records have all of these fields: at least one has each.
    ///
    /// # Errors
    /// [`Error::Refused`] with the subject `records` if there are none, and with `filter` if none has
    /// such a field.
    pub fn check_fields(&self, fields: &[String]) -> Result<(), Error> {
        let records = self.check_records()?;
        let mut missing: Vec<&String> = fields.iter().collect();
        let mut first: Option<Vec<String>> = None;
        for item in records.items() {
            let members: Members = serde_json::from_str(item).unwrap_or_default();
            missing.retain(|field| !members.contains_key(field.as_str()));
            first.get_or_insert_with(|| members.keys().map(ToString::to_string).collect());
            if missing.is_empty() {
                return Ok(());
            }
        }
        match missing.first() {
            Some(field) if !self.is_empty() => Err(no_field(field, first.unwrap_or_default())),
            _ => Ok(()),
        }
    }

    /// The rows that are meant by a number, or by `field=value` of their records.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none; what [`Index::matching`] refuses.
    pub fn rows_named(&self, name: &str) -> Result<Vec<usize>, Error> {
        if let Ok(row) = name.parse::<usize>() {
            return match row < self.len() {
                true => Ok(vec![row]),
                false => {
                    let what = format!("there is no row {row}; there are {}", self.len());
                    Err(Error::not_found(name, what, "rows are counted from 0"))
                }
            };
        }
        let Some(filter) = parse_filter(name) else {
            let what = format!("{name:?} is neither the number of a row nor field=value");
            return Err(Error::not_found(name, what, Advice::None));
        };
        let rows = self.matching(std::slice::from_ref(&filter))?;
        let found: Vec<_> = (0..self.len()).filter(|row| rows.contains(*row)).collect();
        if found.is_empty() {
            let what = format!("no record has {:?} as its {:?}", filter.value, filter.field);
            return Err(Error::not_found(name, what, Advice::None));
        }
        Ok(found)
    }
}

fn no_field(field: &str, mut there: Vec<String>) -> Error {
    there.sort_unstable();
    let what = format!("no record has a field {field:?}");
    let mut list: Vec<_> = there.iter().take(LISTED).map(|name| format!("{name:?}")).collect();
    if there.len() > LISTED {
        list.push(format!("and {} more", there.len() - LISTED));
    }
    let advice = match list.is_empty() {
        true => Advice::None,
        false => format!("the first has {}", list.join(", ")).into(),
    };
    refused("filter", what, advice)
}
