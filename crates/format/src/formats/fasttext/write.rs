//! Container to planned bytes.

use super::super::FormatInfo;
use super::super::wordlist::{Prepared, prepare};
use super::layout::{
    Args, COUNTS, MAGIC, NO_OUTPUT, OUTPUT, OWN_ROWS, VERSION, VERSION_KEY, VERSIONS,
};
use super::rows::{OwnRows, PARTS};
use crate::model::{Container, Encoding, Note, NoteKind, Subject, SubwordKind, Subwords, Tensor};
use crate::plan::{FilePlan, Holds, Piece, Plan, Report};
use crate::source::View;
use crate::wire::{put_u32, put_u64};
use crate::{Error, Options, Vocabulary};
use std::borrow::Cow;
use std::sync::Arc;
use weighbridge_codec::DType;
use weighbridge_codec::convert::Change;

pub(super) fn plan(container: &Container, _: &Options, info: &FormatInfo) -> Result<Plan, Error> {
    let mut lost = Report::default();
    let known = |s: &Subwords| matches!(s.kind, SubwordKind::FastText { .. });
    let container = if container.subwords.as_ref().is_none_or(known) {
        Cow::Borrowed(container)
    } else {
        // Rows that other hashes belong to mean nothing here.
        let holds = Holds { subwords: false, ..info.holds };
        container.narrowed_to(&FormatInfo { holds, ..*info }, &mut lost)?
    };
    let prepared = prepare(&container, info)?;
    check_words(&prepared.words)?;
    let (rows, dim) = (prepared.rows(), prepared.dim());
    let Prepared { matrix, words, mut report } = prepared;
    report.prepend(lost);
    let old = Old::of(&container, words.len() as u64, dim);
    report
        .ignored
        .retain(|i| !old.names().any(|name| matches!(i, Subject::Tensor(n) if n == name)));

    // The rows that the vectors were made of come back as they were.
    if old.rows.is_some() {
        report.changed.clear();
        report.kept = 1;
    } else if container.subwords.is_some() {
        report.store_as(&matrix, PARTS);
    }
    let too_large = || Error::refused("the matrix is too large for fastText", "");
    let number = |n: u64| i32::try_from(n).map_err(|_| too_large());
    let (bucket, min_n, max_n) = match &container.subwords {
        Some(s) => (number(s.rows())?, number(s.min_n.into())?, number(s.max_n.into())?),
        None => (0, 0, 0),
    };
    let args = old.args.clone().unwrap_or_else(Args::usual);
    let args = args.with(number(dim)?, bucket, min_n, max_n);
    let count = number(words.len() as u64)?;
    let mut front = MAGIC.to_vec();
    put_u32(&mut front, old.version.unwrap_or(VERSION));
    args.write(&mut front);
    for n in [count, count, 0] {
        put_u32(&mut front, n.cast_unsigned());
    }
    put_u64(&mut front, old.tokens.unwrap_or(count.into()).cast_unsigned());
    put_u64(&mut front, old.pruned.unwrap_or(-1).cast_unsigned());
    put_words(&mut front, &words, old.counts.as_ref())?;
    front.push(0);
    put_u64(&mut front, rows);
    put_u64(&mut front, dim);

    let width = dim.checked_mul(4).ok_or_else(too_large)?;
    let bytes = |rows: u64| rows.checked_mul(width).ok_or_else(too_large);
    let mut file = FilePlan::default();
    file.push(Piece::Bytes(front));
    let subwords = container.subwords.clone();
    let own = OwnRows { matrix, words, subwords, old: old.rows };
    if own.old.is_none() {
        let Change { changed, largest } = own.change()?;
        let of = u64::from(count.cast_unsigned()).saturating_mul(dim);
        let text = format!(
            "{changed} of {of} values of words change by {largest:.3e} at most: fastText makes them of rows of words and n-grams"
        );
        let note = Note::new(NoteKind::Unusual, text).counting(changed, of);
        report.warnings.extend((changed > 0).then_some(note));
    }
    file.push(Piece::Stream { bytes: bytes(rows)?, from: Arc::new(own) });
    if old.no_output {
        return Ok(Plan::single(file, report));
    }
    let mut behind = vec![0];
    let output_rows = old.output.as_ref().map_or(u64::from(count.cast_unsigned()), |o| o.shape[0]);
    put_u64(&mut behind, output_rows);
    put_u64(&mut behind, dim);
    file.push(Piece::Bytes(behind));
    file.push(match &old.output {
        Some(output) => Piece::tensor(output, &Encoding::Plain(DType::F32), bytes(output_rows)?),
        // As fastText begins its training.
        None => Piece::Zeros(bytes(output_rows)?),
    });
    Ok(Plan::single(file, report))
}

/// Words end with a zero.
fn check_words(words: &Vocabulary) -> Result<(), Error> {
    match words.tokens().enumerate().find(|(_, w)| w.contains('\0')) {
        None => Ok(()),
        Some((i, word)) => Err(Error::refused(
            format!("word {i}, {word:?}, can't be a word of fastText"),
            "words there have no zero character",
        )),
    }
}

fn put_words(out: &mut Vec<u8>, words: &Vocabulary, counts: Option<&Tensor>) -> Result<(), Error> {
    let counts = counts.and_then(Tensor::view).map(View::load).transpose()?.unwrap_or_default();
    for (i, word) in (0..).zip(words.tokens()) {
        out.extend_from_slice(word.as_bytes());
        out.push(0);
        let count = counts.get(8 * i..8 * i + 8);
        // Words that never occurred would make fastText divide by zero.
        out.extend_from_slice(count.unwrap_or(&1u64.to_le_bytes()));
        out.push(0);
    }
    Ok(())
}

/// What is known from the model that the words came from.
#[derive(Default)]
struct Old {
    version: Option<u32>,
    args: Option<Args>,
    tokens: Option<i64>,
    pruned: Option<i64>,
    counts: Option<Tensor>,
    rows: Option<Tensor>,
    output: Option<Tensor>,
    /// The file had none.
    no_output: bool,
}

impl Old {
    fn of(container: &Container, words: u64, dim: u64) -> Old {
        let Some(dialect) = container.dialect_of("fasttext") else { return Old::default() };
        let find = |name: &str, dtype: DType, shape: &dyn Fn(&[u64]) -> bool| {
            let tensor = container.tensor(name)?;
            let right = shape(&tensor.shape) && tensor.encoding == Encoding::Plain(dtype);
            let whole = tensor.view().map(View::len) == tensor.stored_len();
            (right && whole).then(|| tensor.clone())
        };
        let number = |name: &str| dialect.get(name)?.as_i64();
        let version = number(VERSION_KEY).and_then(|n| u32::try_from(n).ok());
        Old {
            version: version.filter(|n| VERSIONS.contains(n)),
            args: Args::from_dialect(dialect),
            tokens: number("ntokens"),
            pruned: number("pruneidx").filter(|n| *n <= 0),
            counts: find(COUNTS, DType::I64, &|s| *s == [words]),
            rows: find(OWN_ROWS, DType::F32, &|s| *s == [words, dim]),
            output: find(OUTPUT, DType::F32, &|s| s.len() == 2 && s[1] == dim),
            no_output: dialect.contains_key(NO_OUTPUT),
        }
    }

    /// The names of the tensors that are used.
    fn names(&self) -> impl Iterator<Item = &str> {
        [&self.counts, &self.rows, &self.output].into_iter().flatten().map(|t| t.name.as_str())
    }
}
