//! The measuring process: our index here and the peers in another process take turns.

use super::data::{SETS, Set};
use super::load::Load;
use super::{Case, Cases, NEIGHBOURS, limits};
use crate::Outcome;
use crate::python::Python;
use crate::timing::seconds;
use memmap2::Mmap;
use std::collections::BTreeMap;
use std::fs::File;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use weighbridge::Index;
use weighbridge::search::{Ask, Metric, Query};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/search_peers.py");
/// Queries whose answers are compared.
const CHECKED: usize = 50;
/// The peer's threads may still be waiting for work in a loop.
const CALM: Duration = Duration::from_millis(10);

/// Measures all sets, and prints what was found as JSON.
pub fn child(python: &Path, folder: &Path, cores: usize) -> Outcome<()> {
    let mut cases = Cases::new();
    for set in &SETS {
        let mut command = Command::new(python);
        command.arg(SCRIPT).arg(set.kind).arg(set.path(folder)).arg(set.dim.to_string());
        command.arg(set.queries_path(folder)).arg(cores.to_string());
        for name in ["OMP", "OPENBLAS", "MKL"] {
            command.env(format!("{name}_NUM_THREADS"), cores.to_string());
        }
        let mut turns = Turns {
            set,
            index: Index::open(set.path(folder))?,
            // SAFETY: nobody changes the file, which is one of our own making.
            mapped: unsafe { Mmap::map(&File::open(set.path(folder))?)? },
            queries: set.queries(folder)?,
            peers: Python::spawn(command)?,
        };
        turns.check()?;
        for batch in super::batches()? {
            if set.rounds(batch).0 > 0 {
                eprintln!("{}, batches of {batch}, {cores} cores", set.name);
                cases.insert(super::key(set, batch), turns.measure(batch)?);
            }
        }
    }
    println!("{}", serde_json::to_string(&cases)?);
    Ok(())
}

struct Turns<'a> {
    set: &'a Set,
    index: Index,
    /// The file once more, to be read and no more.
    mapped: Mmap,
    queries: Vec<f32>,
    peers: Python,
}

impl Turns<'_> {
    fn query(&self, number: usize) -> Query<'_> {
        let start = number * self.set.dim % self.queries.len();
        Query { vector: &self.queries[start..][..self.set.dim], exclude: &[] }
    }

    fn ask(&self, queries: &[Query], metric: Metric) -> Outcome<Vec<Vec<usize>>> {
        let found = self.index.search_batch(queries, &Ask::new(NEIGHBOURS, metric))?;
        Ok(found.iter().map(|hits| hits.iter().map(|hit| hit.row).collect()).collect())
    }

    fn truth(&mut self) -> Outcome<Vec<Vec<usize>>> {
        let answer = self.peers.ask(&["truth", &CHECKED.to_string()])?;
        Ok(serde_json::from_value(answer)?)
    }

    /// A comparison of speed says nothing if what we find is not right.
    fn check(&mut self) -> Outcome<()> {
        let truth = self.truth()?;
        let queries: Vec<_> = (0..CHECKED).map(|q| self.query(q)).collect();
        let alone: Outcome<Vec<_>> =
            queries.iter().map(|query| Ok(self.ask(&[*query], Metric::Dot)?.remove(0))).collect();
        if alone? != truth || self.ask(&queries, Metric::Dot)? != truth {
            return Err(format!("{}: not the nearest rows were found", self.set.name).into());
        }
        Ok(())
    }

    /// Times of all sides with batches of this size, and what share of the nearest rows peers find.
    fn measure(&mut self, batch: usize) -> Outcome<Case> {
        let (rounds, runs) = self.set.rounds(batch);
        let size = batch.to_string();
        let tried: BTreeMap<String, (f64, bool)> =
            serde_json::from_value(self.peers.ask(&["trial", &size])?)?;
        let mut case = Case::default();
        case.left_out.extend(tried.iter().filter(|t| !t.1.1).map(|(name, t)| (name.clone(), t.0)));
        case.tried.extend(tried.iter().map(|(name, t)| (name.clone(), t.0)));
        let load = Load::of_others(vec![std::process::id(), self.peers.id()])?;
        // With minutes for a round, a trial has to do instead of the first.
        let warming = usize::from(batch <= 64);
        for round in 0..rounds + warming {
            let counts = round >= warming;
            for (name, times) in self.ours(batch, round, runs)? {
                case.times
                    .entry(name.to_owned())
                    .or_default()
                    .extend(times.iter().filter(|_| counts));
            }
            for (name, _) in tried.iter().filter(|t| t.1.1) {
                let first = (round * runs * batch).to_string();
                let answer = self.peers.ask(&["search", name, &size, &first, &runs.to_string()])?;
                let times: Vec<f64> = serde_json::from_value(answer[0].clone())?;
                let times = times.iter().filter(|_| counts);
                case.times.entry(name.clone()).or_default().extend(times);
            }
        }
        case.others = load.cores()?;
        if batch <= 64 {
            let truth = self.truth()?;
            for (name, _) in tried.iter().filter(|t| t.1.1) {
                let answer = self.peers.ask(&["recall", name, &size, &CHECKED.to_string()])?;
                let found: Vec<Vec<usize>> = serde_json::from_value(answer)?;
                let common = |(a, b): (&Vec<usize>, &Vec<usize>)| {
                    a.iter().filter(|row| b.contains(row)).count()
                };
                let common: usize = found.iter().zip(&truth).map(common).sum();
                let share = common as f64 / (CHECKED * NEIGHBOURS) as f64;
                case.recall.insert(name.clone(), share);
            }
        }
        Ok(case)
    }

    /// A turn of ours, and of what the machine allows.
    fn ours(
        &mut self,
        batch: usize,
        round: usize,
        runs: usize,
    ) -> Outcome<Vec<(&'static str, Vec<f64>)>> {
        let mut sides = Vec::new();
        for (name, metric) in [(super::OURS, Metric::Dot), (super::COSINE, Metric::Cosine)] {
            // It is the same but for the lengths of rows, and takes long.
            if batch > 64 && metric == Metric::Cosine {
                continue;
            }
            let mut times = Vec::new();
            for run in 0..runs {
                let first = (round * runs + run) * batch;
                let queries: Vec<_> = (first..first + batch).map(|q| self.query(q)).collect();
                std::thread::sleep(CALM);
                let (time, found) = seconds(|| self.ask(&queries, metric));
                black_box(found?);
                times.push(time);
            }
            sides.push((name, times));
        }
        if batch == 1 {
            let bytes = &self.mapped[self.mapped.len() - self.set.bytes()..];
            let time = |work: &dyn Fn()| -> Vec<f64> {
                let run = |_| {
                    std::thread::sleep(CALM);
                    seconds(work).0
                };
                (0..runs).map(run).collect()
            };
            sides.push((
                super::READ,
                time(&|| {
                    black_box(limits::read(bytes));
                }),
            ));
            if self.set.kind == "int8" {
                sides.push((
                    super::LOOP,
                    time(&|| {
                        black_box(limits::codes(bytes, self.set.dim));
                    }),
                ));
            }
        }
        if batch > 64 {
            let found = self.peers.numbers::<1>(&["product"])?;
            sides.push((super::PRODUCT, found.into()));
        }
        Ok(sides)
    }
}
