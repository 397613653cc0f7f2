//! What was found, in the words of the file: rows with their records and words, as JSON and as files.

use super::{Index, refused};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::borrow::Cow;
use std::sync::Arc;
use weighbridge_codec::DType;
use weighbridge_format::model::Produce;
use weighbridge_format::plan::{FilePlan, Piece, Report, Text};
use weighbridge_format::{Advice, Container, Encoding, Error, Format, Plan, Tensor, View};
use weighbridge_search::Hit;

/// The names of the tensors that hits are written as.
const ROWS: &str = "rows";
const SCORES: &str = "scores";

/// What was asked with.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Asked {
    /// A text or a word.
    Text(String),
    /// A row of a file of queries.
    Row(usize),
}

/// A query and what was found. Its JSON is described in docs/json.md.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Answer<'a> {
    /// What was asked with.
    pub query: Asked,
    /// What was found, the nearest first.
    pub hits: Vec<NamedHit<'a>>,
}

/// A row that was found, with what is known of it.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct NamedHit<'a> {
    /// The number of the row.
    pub row: usize,
    /// How near it is; higher is nearer.
    pub score: f32,
    /// Its record, where rows have records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<Box<RawValue>>,
    /// Its word, where rows have words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub word: Option<Cow<'a, str>>,
}

impl Index {
    /// Hits with their records and words; of records only these fields, if some are named.
    ///
    /// # Errors
    /// If a record can't be read.
    pub fn name(&self, hits: &[Hit], fields: &[String]) -> Result<Vec<NamedHit<'_>>, Error> {
        let named = |hit: &Hit| {
            let record = match self.record(hit.row)? {
                None => None,
                Some(record) if fields.is_empty() => RawValue::from_string(record).ok(),
                Some(record) => Some(only(&record, fields)),
            };
            Ok(NamedHit { row: hit.row, score: hit.score, record, word: self.word(hit.row) })
        };
        hits.iter().map(named).collect()
    }

    /// A query and its hits.
    ///
    /// # Errors
    /// If a record can't be read.
    pub fn answer(
        &self,
        query: Asked,
        hits: &[Hit],
        fields: &[String],
    ) -> Result<Answer<'_>, Error> {
        Ok(Answer { query, hits: self.name(hits, fields)? })
    }
}

/// A record with only these members, in their order.
fn only(record: &str, fields: &[String]) -> Box<RawValue> {
    let members: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(record).unwrap_or_default();
    let kept = fields.iter().filter_map(|f| Some((f.clone(), members.get(f)?.clone())));
    let kept: serde_json::Map<_, _> = kept.collect();
    to_raw_value(&kept).unwrap_or_default()
}

/// The hits of many queries, to be written as a file. Each takes twelve bytes.
#[derive(Clone, Debug, Default)]
pub struct HitTable {
    k: usize,
    rows: Vec<i64>,
    scores: Vec<f32>,
    asked: Vec<Asked>,
}

impl HitTable {
    /// A table of `k` hits a query.
    pub fn new(k: usize) -> HitTable {
        HitTable { k, ..HitTable::default() }
    }

    /// Adds a query. Where it has fewer hits, there is row -1 with the score NaN.
    pub fn push(&mut self, asked: Asked, hits: &[Hit]) {
        let rows = hits.iter().map(|hit| i64::try_from(hit.row).unwrap_or(i64::MAX));
        self.rows.extend(rows.chain(std::iter::repeat(-1)).take(self.k));
        let scores = hits.iter().map(|hit| hit.score);
        self.scores.extend(scores.chain(std::iter::repeat(f32::NAN)).take(self.k));
        self.asked.push(asked);
    }

    /// How many queries there are.
    pub fn len(&self) -> usize {
        self.asked.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }

    fn hits(&self, query: usize) -> Vec<Hit> {
        let range = query * self.k..(query + 1) * self.k;
        let each = self.rows[range.clone()].iter().zip(&self.scores[range]);
        let hit = |(row, score): (&i64, &f32)| {
            usize::try_from(*row).ok().map(|row| Hit { row, score: *score })
        };
        each.filter_map(hit).collect()
    }

    /// The file: a line for each query where the format is one of lines, else the tensors `rows` (i64)
    /// and `scores` (f32), with a row for each query.
    ///
    /// # Errors
    /// [`Error::Refused`] if the format holds neither; if records can't be read.
    pub fn plan(
        self,
        index: &Arc<Index>,
        fields: &[String],
        format: &'static Format,
    ) -> Result<Plan, Error> {
        let info = format.info();
        if info.open_ended && info.is_of_rows() {
            let lines =
                Arc::new(Lines { table: self, index: index.clone(), fields: fields.to_vec() });
            let mut file = FilePlan::default();
            file.push(Piece::Text(Text::new(lines, 0)));
            let mut plan = Plan::single(file, Report::default());
            plan.to = info.id;
            return Ok(plan);
        }
        if info.holds.single || !info.holds.dtypes.contains(&DType::I64) {
            let advice =
                Advice::set("output", "takes a name that ends with .jsonl or .safetensors");
            return Err(refused("output", format!("{} can't hold hits", info.id), advice));
        }
        let shape = vec![self.len() as u64, self.k as u64];
        let rows = self.rows.iter().flat_map(|v| v.to_le_bytes()).collect();
        let scores = self.scores.iter().flat_map(|v| v.to_le_bytes()).collect();
        let stored = |name: &str, dtype, bytes| {
            Tensor::stored(name, Encoding::Plain(dtype), shape.clone(), View::owned(bytes))
        };
        let builder = Container::builder().tensor(stored(ROWS, DType::I64, rows)?);
        let container = builder.tensor(stored(SCORES, DType::F32, scores)?).build()?;
        format.plan(&container, &weighbridge_format::Options::default())
    }
}

/// An answer on each line.
#[derive(Debug)]
struct Lines {
    table: HitTable,
    index: Arc<Index>,
    fields: Vec<String>,
}

impl Produce for Lines {
    fn produce(&self, out: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        for (i, asked) in self.table.asked.iter().enumerate() {
            let answer = self.index.answer(asked.clone(), &self.table.hits(i), &self.fields)?;
            let mut line = serde_json::to_vec(&answer).unwrap_or_default();
            line.push(b'\n');
            out(&line)?;
        }
        Ok(())
    }
}
