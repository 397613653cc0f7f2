//! Rows by what their records say.

use super::{Index, refused};
use serde_json::Value as Json;
use weighbridge_codec::parallel::*;
use weighbridge_format::model::member;
use weighbridge_format::wire::to_len;
use weighbridge_format::{Advice, Error};
use weighbridge_search::RowSet;

/// Records that are looked at together.
const TOGETHER: usize = 4096;

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
            Json::Bool(value) => value.to_string() == self.value,
            Json::Null => self.value == "null",
            // Objects are looked into by nobody.
            Json::Object(_) => false,
        }
    }
}

impl Index {
    /// The rows whose records match all filters.
    ///
    /// # Errors
    /// [`Error::Refused`] with the subject `records` if there are none, or not one for each row, and
    /// with `filter` if no record has a field of the name.
    pub fn matching(&self, filters: &[Filter]) -> Result<RowSet, Error> {
        let records = self.check_records()?;
        let starts: Vec<u64> = (0..self.len() as u64).step_by(TOGETHER).collect();
        let look = |start: &u64| {
            let end = (start + TOGETHER as u64).min(self.len() as u64);
            let mut seen = vec![false; filters.len()];
            let mut rows = Vec::new();
            for (row, record) in (*start..end).zip(records.some(*start..end)?) {
                let mut all = true;
                for (filter, seen) in filters.iter().zip(&mut seen) {
                    let value = member(&record, &filter.field);
                    *seen |= value.is_some();
                    let parsed = value.and_then(|raw| serde_json::from_str::<Json>(raw).ok());
                    all &= parsed.is_some_and(|value| filter.matches(&value));
                }
                if all {
                    rows.push(to_len(row));
                }
            }
            Ok((rows, seen))
        };
        let parts = starts.par_iter().map(look).collect::<Result<Vec<_>, Error>>()?;
        for (i, filter) in filters.iter().enumerate() {
            if !self.is_empty() && !parts.iter().any(|(_, seen)| seen[i]) {
                return Err(self.no_field(&filter.field));
            }
        }
        let mut rows = RowSet::new(self.len());
        parts.iter().flat_map(|(rows, _)| rows).for_each(|row| rows.insert(*row));
        Ok(rows)
    }

    /// Whether the records have all of these fields: at least one has each.
    ///
    /// # Errors
    /// [`Error::Refused`] with the subject `records` if there are none, and with `filter` if none has
    /// such a field.
    pub fn check_fields(&self, fields: &[String]) -> Result<(), Error> {
        let records = self.check_records()?;
        let mut missing: Vec<&String> = fields.iter().collect();
        for row in 0..self.len() as u64 {
            let Some(record) = records.record(row)? else { break };
            missing.retain(|field| member(&record, field).is_none());
            if missing.is_empty() {
                return Ok(());
            }
        }
        match missing.first() {
            Some(field) if !self.is_empty() => Err(self.no_field(field)),
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

    /// Says that no record has a field, and which the first has.
    fn no_field(&self, field: &str) -> Error {
        let record = self.record(0).ok().flatten().unwrap_or_default();
        let members: serde_json::Map<String, Json> =
            serde_json::from_str(&record).unwrap_or_default();
        let mut list: Vec<_> = members.keys().take(LISTED).map(|n| format!("{n:?}")).collect();
        if members.len() > LISTED {
            list.push(format!("and {} more", members.len() - LISTED));
        }
        let advice = match list.is_empty() {
            true => Advice::None,
            false => format!("the first has {}", list.join(", ")).into(),
        };
        refused("filter", format!("no record has a field {field:?}"), advice)
    }
}
