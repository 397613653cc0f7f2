//! The numbered rules, and the checks that need the data.

use super::super::text::{marked, unfinished};
use super::super::wordlist::{Lines, check_finite};
use super::layout::Header;
use crate::model::Container;
use crate::wire::Findings;
use crate::{Error, Input, rules};

rules! {
    HEADER "FLORET-01" Error "the first line is not six numbers and two brackets";
    PARAMETERS "FLORET-02" Error "the parameters make no sense";
    CUT_SHORT "FLORET-03" Error "there are fewer rows than buckets";
    TRAILING "FLORET-04" Error "there are more rows than buckets";
    NUMBERS "FLORET-05" Error "a line does not end with as many numbers as it should";
    INDEX "FLORET-06" Error "a line does not begin with its own number";
    UNFINISHED "FLORET-07" Warning "the last line has no line break";
    NOT_FINITE "FLORET-08" Warning "a value is not a finite number";
    MARKED "FLORET-09" Warning "the text begins with a byte order mark";
}

pub(super) fn check(
    container: &Container,
    input: &Input,
    findings: &mut Findings,
) -> Result<(), Error> {
    let text = input.source.in_place(0..input.source.len())?;
    let head = input.source.head()?;
    let lines = Lines::new(&text, Header::parse(head).map_or(0, |h| h.length), 2);
    check_finite(&container.tensors, NOT_FINITE, findings, |row| lines.span(row))?;
    findings.extend(marked(head, MARKED));
    findings.extend(unfinished(&lines, UNFINISHED));
    Ok(())
}
