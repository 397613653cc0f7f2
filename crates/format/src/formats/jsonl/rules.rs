//! The numbered rules, and the checks that need the data.

use super::super::text::{marked, unfinished};
use super::super::wordlist::{Lines, check_finite};
use super::lines::Bad;
use super::read::{LONGEST, is_blank};
use super::{TEXT, VECTOR};
use crate::model::Container;
use crate::wire::{Finding, Findings};
use crate::{Error, Input, rules};
use std::ops::Range;

rules! {
    OBJECT "JSONL-01" Error "a line is not a JSON object";
    NO_VECTOR "JSONL-02" Error "a line has no member \"vector\"";
    TWICE "JSONL-03" Error "a line has two members \"vector\"";
    NUMBERS "JSONL-04" Error "a vector is not an array of numbers";
    LENGTH "JSONL-05" Error "a vector has another length than the first";
    BEYOND "JSONL-06" Error "a number is larger than f32 can hold";
    LONG "JSONL-07" Error "a line is too long";
    EMPTY "JSONL-08" Error "there are no rows or no values";
    NOT_FINITE "JSONL-09" Warning "a value is null";
    UNFINISHED "JSONL-10" Warning "the last line has no line break";
    MARKED "JSONL-11" Warning "the text begins with a byte order mark";
}

pub(super) fn check(
    container: &Container,
    input: &Input,
    findings: &mut Findings,
) -> Result<(), Error> {
    let text = input.source.in_place(0..input.source.len())?;
    let lines = Lines::of_text(&text, input.source.head()?);
    findings.extend(marked(input.source.head()?, MARKED));
    check_finite(&container.tensors, NOT_FINITE, findings, |row| place(&lines, row))?;
    findings.extend(unfinished(&lines, UNFINISHED));
    Ok(())
}

/// Where a row stands: blank lines are none.
fn place(lines: &Lines, row: u64) -> Range<u64> {
    let mut at = lines.start();
    let mut rows = 0;
    for line in lines.iter() {
        let end = at + line.len() as u64;
        if !is_blank(line) {
            if rows == row {
                return at..end;
            }
            rows += 1;
        }
        at = end + 1;
    }
    lines.end()..lines.end()
}

/// What is wrong with a line, as a finding: its number, and where it begins in the file.
pub(super) fn bad_line(bad: Bad, number: u64, start: u64, dim: usize) -> Finding {
    let span = |at: &Range<usize>| start + at.start as u64..start + at.end as u64;
    let field = format!("line {number}");
    match bad {
        Bad::NotObject { at, why } => {
            let at = start + at as u64;
            let finding = OBJECT.at(at..at + 1).field(field).found(why);
            finding.expected("a JSON object with the member \"vector\" on each line")
        }
        Bad::NoVector { members } => {
            let found = match members.is_empty() {
                true => "none".to_owned(),
                false => members.join(", "),
            };
            let hint = format!(
                "vectors are in the member {VECTOR:?}; texts, in the member {TEXT:?}, are to be embedded first"
            );
            let finding = NO_VECTOR.at(start..start + 1).field(field);
            finding.expected(format!("the member {VECTOR:?}")).found(found).hint(hint)
        }
        Bad::Twice { at } => TWICE.at(span(&at)).field(field).expected("one vector"),
        Bad::NotNumbers { at, found } => {
            let finding = NUMBERS.at(span(&at)).field(field);
            finding.expected("an array of numbers").found(found)
        }
        Bad::Length { at, found } => {
            let finding = LENGTH.at(span(&at)).field(field);
            finding.expected(values(dim)).found(values(found))
        }
        Bad::Beyond { at, found } => {
            let finding = BEYOND.at(span(&at)).field(field);
            finding.expected(format!("numbers of {:e} at most", f32::MAX)).found(found)
        }
        Bad::Long(bytes) => {
            let finding = LONG.at(start..start + bytes as u64).field(field);
            finding.expected(format!("{LONGEST} bytes at most")).found(format!("{bytes} bytes"))
        }
    }
}

fn values(n: usize) -> String {
    if n == 1 { "1 value".to_owned() } else { format!("{n} values") }
}

/// There is nothing in the file.
pub(super) fn nothing(span: Range<u64>, found: &str) -> Finding {
    let finding = EMPTY.at(span).expected("a JSON object with a vector on each line").found(found);
    finding.hint("compare its size with the source it was copied from")
}
