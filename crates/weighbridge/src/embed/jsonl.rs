//! JSON lines: each row's record with its vector. Written as any format is, and not read: it is not
//! in the table of formats.

use super::texts::VECTOR;
use rayon::prelude::*;
use std::sync::Arc;
use weighbridge_format::formats::Stop;
use weighbridge_format::model::{Container, FilePlan, Holds, Piece, Plan, Produce, Report, Tensor};
use weighbridge_format::wire::to_len;
use weighbridge_format::{Error, Findings, Format, FormatInfo, Input, Options};

/// Its name in `--to`.
pub const ID: &str = "jsonl";

/// Rows that are put into words together.
const TOGETHER: u64 = 64;

#[derive(Debug)]
pub(super) struct JsonLines;

static INFO: FormatInfo = FormatInfo {
    id: ID,
    name: "JSON lines",
    summary: "an object with a vector on each line",
    extensions: &["jsonl", "ndjson"],
    magic: b"",
    writes: true,
    is_folder: false,
    open_ended: true,
    holds: Holds { single: true, records: true, rank: (2, 2), ..Holds::NOTHING },
    options: &[],
    rules: &[],
    declarations: false,
};

impl Format for JsonLines {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn read(&self, _: &Input, _: &Options, _: &mut Findings) -> Result<Container, Stop> {
        Err(Stop::Failed(Error::refused("JSON lines are written only", "")))
    }

    fn check(&self, _: &Container, _: &Input, _: &mut Findings) {}

    fn lay_out(&self, container: &Container, _: &Options) -> Result<Plan, Error> {
        let tensor = container.tensors.first().filter(|_| container.rows().is_some());
        let tensor = tensor.ok_or_else(|| Error::refused("there is no matrix of rows", ""))?;
        let lines = Arc::new(VectorLines { tensor: tensor.clone(), container: container.clone() });
        // Every line is made twice: its length is known only then.
        let mut bytes = 0;
        lines.produce(&mut |part| {
            bytes += part.len() as u64;
            Ok(())
        })?;
        let mut file = FilePlan::default();
        file.push(Piece::Stream { bytes, from: lines });
        Ok(Plan::single(file, Report { kept: 1, ..Report::default() }))
    }
}

#[derive(Debug)]
struct VectorLines {
    tensor: Tensor,
    container: Container,
}

impl Produce for VectorLines {
    fn produce(&self, out: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let [rows, dim] = *self.tensor.shape.as_slice() else { return Ok(()) };
        let records = self.container.records.as_ref().map(|r| r.items()).unwrap_or_default();
        let lines = |first: u64| {
            let n = TOGETHER.min(rows - first);
            let values = self.tensor.values_f32(first * dim, to_len(n * dim));
            let mut text = String::new();
            for (row, vector) in (first..).zip(values.chunks_exact(to_len(dim.max(1)))) {
                let record = records.get(to_len(row)).map_or("{}", |r| r.get());
                text.push_str(&line(record, vector));
            }
            text
        };
        // Some at a time on all cores; memory stays bounded.
        let starts: Vec<u64> = (0..rows).step_by(to_len(TOGETHER)).collect();
        for some in starts.chunks(64) {
            let made: Vec<_> = some.par_iter().map(|first| lines(*first)).collect();
            made.iter().try_for_each(|text| out(text.as_bytes()))?;
        }
        Ok(())
    }
}

/// A record with its vector, and the end of the line.
pub fn line(record: &str, vector: &[f32]) -> String {
    let record = record.trim_ascii();
    let front = record.strip_suffix('}').unwrap_or("{").trim_ascii_end();
    let comma = if front == "{" { "" } else { ", " };
    let numbers = serde_json::to_string(vector).unwrap_or_default();
    format!("{front}{comma}\"{VECTOR}\": {numbers}}}\n")
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_vector_is_put_behind_the_other_members() {
        assert_eq!(super::line("{\"a\": 1 }", &[0.5, 0.1]), "{\"a\": 1, \"vector\": [0.5,0.1]}\n");
        assert_eq!(super::line(" { } ", &[]), "{\"vector\": []}\n");
    }
}
