//! The numbered rules, and the checks that need the data.

use super::super::wordlist::check_finite;
use super::layout::NO_OUTPUT;
use crate::Error;
use crate::model::Container;
use crate::rules;
use crate::wire::Findings;

rules! {
    CUT_SHORT "FT-01" Error "the file ends too early";
    MAGIC_MISSING "FT-02" Error "the magic is missing";
    VERSION_UNKNOWN "FT-03" Error "the version is unknown";
    ARGUMENTS "FT-04" Error "the arguments make no sense";
    SUPERVISED_MODEL "FT-05" Error "the model is a text classifier";
    QUANTIZED "FT-06" Error "the model is quantized";
    FLORET_MODEL "FT-07" Error "the model is one of floret's";
    COUNTS_DIFFER "FT-08" Error "the number of words is impossible";
    TEXT "FT-09" Error "a word is not UTF-8";
    SIZE "FT-10" Error "a matrix does not have the rows and columns that it should have";
    TRAILING "FT-11" Error "bytes follow the output matrix";
    REPEATED "FT-12" Error "a word appears twice";
    NOT_FINITE "FT-13" Warning "a value is not a finite number";
    OUTPUT_MISSING "FT-14" Error "the output matrix is missing";
}

pub(super) fn check(container: &Container, findings: &mut Findings) -> Result<(), Error> {
    let whole = 0..container.size;
    if container.dialect.contains_key(NO_OUTPUT) {
        let end = container.size;
        let finding = OUTPUT_MISSING.at(end..end).field("output matrix");
        findings.push(
            finding
                .expected("a matrix")
                .found("the end of the file")
                .hint("cut short, or written by a tool that leaves it out; all vectors are there"),
        );
    }
    check_finite(&container.tensors, NOT_FINITE, findings, |_| whole.clone())?;
    if let Some(vocabulary) = &container.vocabulary
        && let Some((again, first)) = vocabulary.duplicate()
    {
        let word = vocabulary.token(again).unwrap_or_default();
        let finding = REPEATED.at(whole).field(format!("word {again}"));
        let found = format!("{word:?}, as word {first} is");
        findings.push(finding.expected("words that differ").found(found));
    }
    Ok(())
}
