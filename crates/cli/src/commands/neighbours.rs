//! `weighbridge neighbours`: every row with its nearest others, or groups of near-duplicates.

use super::Files;
use super::hits::{self, Printer, Target};
use crate::ExitCode;
use crate::args::Neighbours;
use crate::progress::with_bar;
use crate::render::{BOLD, grouped, safe, styled};
use serde::Serialize;
use std::sync::Arc;
use weighbridge::codec::parallel::with_threads;
use weighbridge::index::{Asked, HitTable, group_near, neighbours};
use weighbridge::{Error, Index, Options, Progress};

/// Neighbours unless a number is given.
const USUAL: usize = 15;

pub(super) fn run(args: &Neighbours, options: &Options, files: Files) -> Result<ExitCode, Error> {
    let target = hits::target(&args.output)?;
    let index = Arc::new(files.searched(&args.file, options, &args.rows)?);
    with_threads(args.rows.threads, || match args.threshold {
        Some(threshold) => groups(args, &index, threshold, target),
        None => every_row(args, &index, target),
    })
}

fn every_row(
    args: &Neighbours,
    index: &Arc<Index>,
    target: Option<Target>,
) -> Result<ExitCode, Error> {
    let k = args.k.unwrap_or_else(|| USUAL.min(index.len().saturating_sub(1).max(1)));
    let metric = args.metric.metric();
    let printer = Printer { index, fields: &args.rows.show, json: args.json };
    let label = safe(&args.file.display().to_string());
    let Some(target) = target else {
        let mut show = |row: usize, found: &[weighbridge::search::Hit]| {
            super::print(&printer.answer(Asked::Row(row), found)?).map(drop)
        };
        neighbours(index, k, metric, &mut show, &mut Progress::none())?;
        hits::tell_not_finite(index);
        return Ok(ExitCode::SUCCESS);
    };
    let mut table = HitTable::new(k);
    with_bar(&label, |progress| {
        let mut take = |row: usize, found: &[weighbridge::search::Hit]| {
            table.push(Asked::Row(row), found);
            Ok(())
        };
        neighbours(index, k, metric, &mut take, progress)
    })?;
    hits::tell_not_finite(index);
    hits::write(table, index, &args.rows.show, target, args.json)?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct Near<'a> {
    rows: &'a [usize],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    records: Vec<Box<serde_json::value::RawValue>>,
}

fn groups(
    args: &Neighbours,
    index: &Arc<Index>,
    threshold: f32,
    target: Option<Target>,
) -> Result<ExitCode, Error> {
    let label = safe(&args.file.display().to_string());
    let groups =
        with_bar(&label, |progress| group_near(index, threshold, args.metric.metric(), progress))?;
    hits::tell_not_finite(index);
    let line = |group: &Vec<usize>| {
        let hits: Vec<_> =
            group.iter().map(|row| weighbridge::search::Hit { row: *row, score: 1.0 }).collect();
        let named = index.name(&hits, &args.rows.show)?;
        let records = named.into_iter().filter_map(|hit| hit.record).collect();
        Ok(super::json_line(&Near { rows: group, records }))
    };
    if let Some(target) = target {
        let lines = groups.iter().map(line).collect::<Result<String, Error>>()?;
        return hits::write_lines(lines, target, args.json);
    }
    if args.json {
        return super::print(&groups.iter().map(line).collect::<Result<String, Error>>()?);
    }
    let printer = Printer { index, fields: &args.rows.show, json: false };
    let mut text = String::new();
    for (i, group) in groups.iter().enumerate() {
        let title = format!("group {}, {} rows", i + 1, grouped(group.len() as u64));
        text.push_str(&(styled(BOLD, title) + "\n" + &printer.rows(group)?));
    }
    let all: usize = groups.iter().map(Vec::len).sum();
    super::print(&text)?;
    super::say_detail(|| format!("{} groups with {all} rows", groups.len()));
    if groups.is_empty() {
        super::say_note(&format!("no two rows are as near as {threshold}"));
    }
    Ok(ExitCode::SUCCESS)
}
