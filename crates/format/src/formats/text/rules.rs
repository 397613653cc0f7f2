//! The numbered rules, and the checks that need the data.

use super::super::word2vec::Header;
use super::super::wordlist::{BadLine, LOSSY_HINT, Lines, Why, check_finite};
use super::Kind;
use crate::model::Container;
use crate::wire::{Finding, Findings, MARK, Rule};
use crate::{Error, Input, rules};

rules! {
    HEADER "TXT-01" Error "the first line is not the number of rows and of values in a row";
    EMPTY "TXT-02" Error "there are no rows or no values";
    CUT_SHORT "TXT-03" Error "there are fewer rows than the first line says";
    TRAILING "TXT-04" Error "there are more rows than the first line says";
    NUMBERS "TXT-05" Error "a line does not end with as many numbers as it should";
    TEXT "TXT-06" Error "a word is not UTF-8";
    UNFINISHED "TXT-07" Warning "the last line has no line break";
    REPEATED "TXT-08" Warning "words appear twice";
    NOT_FINITE "TXT-09" Warning "a value is not a finite number";
    MARKED "TXT-10" Warning "the text begins with a byte order mark";
}

pub(super) fn check(
    kind: Kind,
    container: &Container,
    input: &Input,
    findings: &mut Findings,
) -> Result<(), Error> {
    let text = input.source.in_place(0..input.source.len())?;
    let (bytes, head): (&[u8], _) = (&text, input.source.head()?);
    let lines = match kind {
        Kind::Counted => Lines::new(bytes, Header::parse_text(head).map_or(0, |h| h.length), 2),
        Kind::Glove => Lines::of_text(bytes, head),
    };
    findings.extend(marked(head, MARKED));
    check_finite(&container.tensors, NOT_FINITE, findings, |row| lines.span(row))?;
    findings.extend(unfinished(&lines, UNFINISHED));
    Ok(())
}

/// A byte order mark is no part of the first word, though some readers take it for one.
pub(in super::super) fn marked(text: &[u8], rule: Rule) -> Option<Finding> {
    text.starts_with(MARK).then(|| {
        let finding = rule.at(0..MARK.len() as u64);
        finding.hint("it is left out here; other readers may take it for a part of the first word")
    })
}

/// A number at the very end may have lost digits.
pub(in super::super) fn unfinished(lines: &Lines, rule: Rule) -> Option<Finding> {
    let end = lines.end();
    (!lines.finished).then(|| {
        let finding = rule.at(end..end).expected("a line break").found("the end of the file");
        finding.hint("if the file was cut short, the last number may have lost digits")
    })
}

/// What is wrong with a line, as a finding.
pub(in super::super) fn bad_line(bad: &BadLine, dim: usize, numbers: Rule, text: Rule) -> Finding {
    let field = format!("line {}", bad.line);
    match &bad.why {
        Why::Numbers { found, then } => {
            let finding = numbers.at(bad.span.clone()).field(field);
            let many =
                |n: usize| if n == 1 { "1 number".to_owned() } else { format!("{n} numbers") };
            finding
                .expected(format!("{} after the word", many(dim)))
                .found(format!("{} behind {then:?}", many(*found)))
        }
        Why::NotUtf8 { at } => {
            let finding = text.at(*at..*at + 1).field(field);
            finding.expected("UTF-8 text").hint(LOSSY_HINT)
        }
    }
}
