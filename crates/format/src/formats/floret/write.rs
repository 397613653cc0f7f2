//! Container to planned bytes.

use super::super::FormatInfo;
use super::super::wordlist::{DECIMAL, TextRows};
use crate::model::{Container, SubwordKind, Subwords};
use crate::plan::{FilePlan, Piece, Plan, Report, fit, lose_others};
use crate::{Error, Options};

pub(super) fn plan(container: &Container, _: &Options, info: &FormatInfo) -> Result<Plan, Error> {
    let mut report = Report::default();
    let Some(subwords) = container.subwords.as_ref() else { return Err(no_floret()) };
    let Subwords { min_n, max_n, kind, .. } = subwords;
    let SubwordKind::Floret { buckets, hashes, seed, bow, eow } = kind else {
        return Err(no_floret());
    };
    for bracket in [bow, eow] {
        let odd = bracket.contains(|c: char| c.is_ascii_whitespace());
        if bracket.is_empty() || bracket.len() > 256 || odd {
            let what = format!("{bracket:?} can't stand around words in a floret file");
            return Err(Error::refused(what, ""));
        }
    }
    let embeddings = container.word_matrix()?;
    lose_others(container, &embeddings, &mut report);
    let mut alone = container.clone();
    alone.tensors = vec![embeddings.matrix.clone()];
    let placements = fit(&alone, &info.holds, &mut report)?;
    let Some(matrix) = placements.first().and_then(|p| alone.tensors.get(p.tensor)) else {
        return Err(report.nothing_fits(info.id, ""));
    };
    report.store_as(matrix, DECIMAL);
    if matrix.shape[0] != *buckets {
        return Err(Error::refused("there are rows of words beside those of the hashes", ""));
    }
    let dim = matrix.shape[1];
    let header = format!("{buckets} {dim} {min_n} {max_n} {hashes} {seed} {bow} {eow}\n");
    let mut file = FilePlan::default();
    file.push(Piece::Bytes(header.into_bytes()));
    file.push(TextRows { matrix: matrix.clone(), words: None }.piece());
    Ok(Plan::single(file, report))
}

fn no_floret() -> Error {
    Error::refused(
        "only embeddings made by floret can be written as floret",
        "its rows belong to its own hashes; other formats have rows of words",
    )
}
