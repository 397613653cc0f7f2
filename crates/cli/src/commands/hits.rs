//! What verbs that find rows have in common: showing hits, and writing them.

use super::output::carry_out;
use super::{Files, json_line};
use crate::ExitCode;
use crate::args::{HitsOutput, Searched};
use crate::progress::with_bar;
use crate::render::{BOLD, DIM, Table, marked, safe, shortened, styled};
use serde_json::Value as Json;
use std::path::Path;
use std::sync::Arc;
use weighbridge::index::{self, Asked, HitTable, NamedHit};
use weighbridge::plan::{FilePlan, Piece, Report};
use weighbridge::search::Hit;
use weighbridge::{Container, Error, Format, Formats, Index, Options, Output, Plan, Recall};

/// The longest text of a record that is shown to people.
const LONGEST: usize = 240;

impl Files {
    /// The rows of a file that is searched, with other records if a file of them is named. Fields that no
    /// record has can't be shown.
    pub(super) fn searched(
        self,
        path: &Path,
        options: &Options,
        rows: &Searched,
    ) -> Result<Index, Error> {
        let mut index = Index::of(&self.open(path, options)?, rows.tensor.as_deref())?;
        if let Some(records) = &rows.records.records {
            index = index.with_records(weighbridge::records::read(records)?)?;
        }
        if !rows.show.is_empty() {
            index.check_fields(&rows.show)?;
        }
        Ok(index)
    }

    /// The rows of a file that is held against another.
    pub(super) fn rows(self, path: &Path) -> Result<Index, Error> {
        Index::of(&self.open(path, &Options::default())?, None)
    }
}

/// Where hits go, and as what.
pub(super) struct Target {
    format: &'static Format,
    output: Output,
}

/// The file that was asked for. What is in its way is found before the work.
pub(super) fn target(args: &HitsOutput) -> Result<Option<Target>, Error> {
    let Some(path) = &args.output else { return Ok(None) };
    let format = Formats::builtin().target(&path.to_string_lossy(), args.to.as_deref())?;
    let output = Output::new(path).overwrite(args.force);
    match output.obstacle() {
        Some(error) => Err(error),
        None => Ok(Some(Target { format, output })),
    }
}

/// Writes lines that are there already.
pub(super) fn write_lines(lines: String, target: Target, json: bool) -> Result<ExitCode, Error> {
    let info = target.format.info();
    if !(info.open_ended && info.is_of_rows()) {
        let hint = "name an output that ends with .jsonl";
        return Err(Error::refused(format!("{} can't hold groups", info.id), hint));
    }
    let mut file = FilePlan::default();
    file.push(Piece::Bytes(lines.into_bytes()));
    let mut plan = Plan::single(file, Report::default());
    plan.to = info.id;
    told(&plan, &target, json)
}

fn told(plan: &Plan, target: &Target, json: bool) -> Result<ExitCode, Error> {
    let outcome = carry_out(plan, &target.output, false)?;
    if json { super::print_json(&outcome.conversion) } else { outcome.tell("") }
}

/// Writes hits, and says so.
pub(super) fn write(
    table: HitTable,
    index: &Arc<Index>,
    fields: &[String],
    target: Target,
    json: bool,
) -> Result<(), Error> {
    told(&table.plan(index, fields, target.format)?, &target, json).map(drop)
}

/// Shows answers.
pub(super) struct Printer<'a> {
    pub index: &'a Index,
    pub fields: &'a [String],
    pub json: bool,
}

impl Printer<'_> {
    /// A query with its hits: an object on a line, or a title with a table below.
    pub(super) fn answer(&self, asked: Asked, hits: &[Hit]) -> Result<String, Error> {
        let answer = self.index.answer(asked, hits, self.fields)?;
        if self.json {
            return Ok(json_line(&answer));
        }
        let title = match &answer.query {
            Asked::Text(text) => shortened(&safe(text), LONGEST).into_owned(),
            Asked::Row(row) => format!("row {row}"),
        };
        Ok(styled(BOLD, title) + "\n" + &self.table(&answer.hits))
    }

    /// A line for each of some rows.
    pub(super) fn rows(&self, rows: &[usize]) -> Result<String, Error> {
        let hits: Vec<_> = rows.iter().map(|row| Hit { row: *row, score: f32::NAN }).collect();
        Ok(self.table(&self.index.name(&hits, self.fields)?))
    }

    /// A line for each hit: score, row, and what is known of it.
    pub(super) fn table(&self, hits: &[NamedHit]) -> String {
        let fields = self.fields.len().max(1);
        // Titles are not shown; they say which columns may be shortened.
        let mut titles = vec![">score", "?>row"];
        titles.extend(std::iter::repeat_n("field", fields));
        let mut table = Table::new(&titles);
        for hit in hits {
            let mut cells = vec![score(hit.score), hit.row.to_string()];
            cells.extend(self.cells(hit));
            cells.resize(titles.len(), String::new());
            table.row(cells);
        }
        if hits.is_empty() { styled(DIM, "  nothing") + "\n" } else { table.rows() }
    }

    fn cells(&self, hit: &NamedHit) -> Vec<String> {
        let Some(record) = &hit.record else {
            return vec![hit.word.as_deref().map(safe).unwrap_or_default()];
        };
        let members: serde_json::Map<String, Json> =
            serde_json::from_str(record.get()).unwrap_or_default();
        let show = |value: &Json| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            // Line breaks of a text would break the table.
            shortened(&safe(&text.replace(['\n', '\r', '\t'], " ")), LONGEST).into_owned()
        };
        if !self.fields.is_empty() {
            let cell = |field: &String| members.get(field).map(show).unwrap_or_default();
            return self.fields.iter().map(cell).collect();
        }
        let text = ["text", "word"].into_iter().find_map(|name| members.get(name));
        let only = members.values().next().filter(|_| members.len() == 1);
        vec![match text.or(only) {
            Some(value) => show(value),
            None => {
                let each =
                    members.iter().map(|(name, value)| format!("{}={}", safe(name), show(value)));
                shortened(&each.collect::<Vec<_>>().join("  "), LONGEST).into_owned()
            }
        }]
    }
}

/// Rows that were not asked for by a query have no score.
pub(super) fn score(score: f32) -> String {
    if score.is_nan() { String::new() } else { format!("{score:.4}") }
}

/// Of several rows that a name means, the first was taken.
pub(super) fn say_others(name: &str, rows: &[usize]) {
    if let [first, others @ ..] = rows
        && !others.is_empty()
    {
        let n = others.len();
        super::say_note(&format!("{name} is true of {} rows; row {first} was taken", n + 1));
    }
}

/// Says which rows can be no answer.
pub(super) fn tell_not_finite(index: &Index) {
    if let Some(note) = index.not_finite_note().filter(|_| !crate::talk::is_quiet()) {
        crate::render::say!("{}", marked(DIM, safe(&note.to_string())));
    }
}

/// What became of the neighbours of rows that were written.
pub(super) fn recall_of_written(
    before: &Container,
    output: &Output,
) -> Result<Option<Recall>, Error> {
    let label = safe(&output.path.display().to_string());
    with_bar(&label, |progress| index::recall_of_written(before, &output.path, progress))
}

/// What became of neighbours, in one line.
pub(super) fn recall_text(found: &Recall) -> String {
    let recall = styled(BOLD, format!("{:.4}", found.recall));
    format!(
        "{recall} of the {} nearest rows are the same, over {} queries; rank correlation {:.4}, \
         largest error of a score {:.2e}",
        found.k,
        crate::render::grouped(found.queries as u64),
        found.rank_correlation,
        found.max_score_error
    )
}
