//! Container to planned bytes: a line for each row.

use super::super::FormatInfo;
use super::super::wordlist::DECIMAL;
use super::VECTOR;
use super::lines::without;
use crate::model::{Container, Produce, Records, Tensor, blocks_in_order, quoted};
use crate::plan::{FilePlan, Loss, Piece, Plan, Report, Text, fit};
use crate::wire::to_len;
use crate::{Error, Options, Vocabulary};
use std::sync::Arc;

/// Rows that are put into words together.
const TOGETHER: u64 = 64;

pub(super) fn plan(container: &Container, _: &Options, info: &FormatInfo) -> Result<Plan, Error> {
    let mut report = Report::default();
    let mut container = container.clone();
    let words = container.take_row_words(&mut report);
    let placements = fit(&container, &info.holds, &mut report)?;
    let placed = placements.first().and_then(|p| container.tensors.get(p.tensor));
    let Some(tensor) = placed.filter(|_| container.rows().is_some()) else {
        return Err(report.nothing_fits(info.id, "it takes one matrix of rows"));
    };
    report.store_as(tensor, DECIMAL);
    let mut infinite = 0;
    tensor.for_each_block(|values| {
        infinite += values.iter().filter(|value| value.is_infinite()).count() as u64;
    })?;
    if infinite > 0 {
        // JSON has null in their place, which is read as NaN.
        let (from, all) = (tensor.encoding.name(), tensor.count());
        let off = f64::INFINITY;
        report.losses.push(Loss::rounded(&tensor.name, from, DECIMAL, infinite, all, off));
    }
    let records = container.records.clone();
    // Lines are made when they are written; records that are wrong are told before.
    records.as_ref().map(Records::items).transpose()?;
    let lines = Arc::new(VectorLines { tensor: tensor.clone(), records, words });
    // A digit and what separates it from the next for each value.
    let least = tensor.count().saturating_mul(2);
    let mut file = FilePlan::default();
    file.push(Piece::Text(Text::new(lines, least)));
    Ok(Plan::single(file, report))
}

#[derive(Debug)]
struct VectorLines {
    tensor: Tensor,
    records: Option<Records>,
    words: Option<Vocabulary>,
}

impl Produce for VectorLines {
    fn produce(&self, out: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let [rows, dim] = *self.tensor.shape.as_slice() else { return Ok(()) };
        // Rows without values have no lines, however many they are.
        let rows = if dim == 0 { 0 } else { rows };
        let records = self.records.as_ref().map(Records::items).transpose()?.unwrap_or_default();
        let word = |row: usize| self.words.as_ref()?.token(row);
        let lines = |block: u64, text: &mut String| {
            let first = block * TOGETHER;
            let n = TOGETHER.min(rows - first);
            let values = self.tensor.values_f32(first * dim, to_len(n * dim))?;
            text.clear();
            for (row, vector) in (to_len(first)..).zip(values.chunks_exact(to_len(dim.max(1)))) {
                let word = word(row).map(|word| format!("{{\"word\": {}}}", quoted(&word)));
                let record = records.get(row).copied().or(word.as_deref()).unwrap_or("{}");
                text.push_str(&line(record, vector));
            }
            Ok(())
        };
        let (blocks, bytes) = (rows.div_ceil(TOGETHER), dim.saturating_mul(12 * TOGETHER));
        blocks_in_order(blocks, bytes, lines, |text| out(text.as_bytes()))
    }
}

/// A record with its vector, and the end of the line. A record that breaks lines is put into one, and
/// a vector that it has already is left out.
pub fn line(record: &str, vector: &[f32]) -> String {
    let record = without(record.trim_ascii(), VECTOR);
    let front = record.strip_suffix('}').unwrap_or("{").trim_ascii_end();
    // Line breaks stand only between the tokens of JSON, never in a text.
    let front = front.replace(['\n', '\r'], " ");
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
        assert_eq!(super::line("{\n\"a\":\n1\n}", &[1.0]), "{ \"a\": 1, \"vector\": [1.0]}\n");
        assert_eq!(
            super::line("{\"vector\": [2], \"a\": 1}", &[1.0]),
            "{\"a\": 1, \"vector\": [1.0]}\n"
        );
    }
}
