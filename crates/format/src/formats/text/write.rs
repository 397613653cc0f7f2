//! Container to planned bytes.

use super::super::wordlist::{DECIMAL, Decode, Prepared, TextRows, prepare};
use super::{FormatInfo, Kind};
use crate::model::Container;
use crate::plan::{FilePlan, Piece, Plan};
use crate::{Error, Options};

pub(super) fn plan(
    kind: Kind,
    container: &Container,
    options: &Options,
    info: &FormatInfo,
) -> Result<Plan, Error> {
    let prepared = prepare(container, info)?;
    let decode = Decode::new(options);
    prepared.check_words(decode, info.id)?;
    let mut file = FilePlan::default();
    if kind == Kind::Counted {
        let header = format!("{} {}\n", prepared.rows(), prepared.dim());
        file.push(Piece::Bytes(header.into_bytes()));
    }
    let Prepared { matrix, words, mut report } = prepared;
    report.store_as(&matrix, DECIMAL);
    file.push(TextRows { matrix, words: Some((words, decode)) }.piece());
    Ok(Plan::single(file, report))
}
