//! The numbered rules, and the checks that need the data.

use super::super::values::{check_finite, check_padding, try_map_all};
use crate::model::{Container, Encoding, NORMS, Tensor, norm};
use crate::wire::{Findings, What, to_len};
use crate::{Error, Input, rules};

rules! {
    CUT_SHORT "FIFU-01" Error "the file ends too early";
    MAGIC "FIFU-02" Error "the magic is missing";
    VERSION "FIFU-03" Error "the version is unknown";
    UNKNOWN "FIFU-04" Error "a chunk has an unknown identifier";
    LIST "FIFU-05" Error "the list of chunks disagrees with the chunks";
    ORDER "FIFU-06" Error "a chunk is missing, appears twice or is in the wrong place";
    LENGTH "FIFU-07" Error "a chunk's length disagrees with its content";
    TRAILING "FIFU-08" Error "bytes follow the last chunk";
    TEXT "FIFU-09" Error "a text is not UTF-8";
    TOML "FIFU-10" Warning "the metadata can't be read as TOML";
    EMPTY "FIFU-11" Error "the vocabulary is empty";
    SUBWORDS "FIFU-12" Error "the subword parameters make no sense";
    INDICES "FIFU-13" Error "the rows of n-grams are not 0, 1, 2, …";
    INDEX_ORDER "FIFU-14" Warning "n-gram rows do not first appear in order";
    TYPE "FIFU-15" Error "the data type is unknown or can't be read";
    ROWS "FIFU-16" Error "the matrix does not have a row for each word and subword";
    SIZES "FIFU-17" Error "the sizes of the matrix make no sense";
    NORMS_COUNT "FIFU-18" Error "there is not one norm for each word";
    PADDING "FIFU-19" Warning "padding is not zero";
    DUPLICATE "FIFU-20" Error "a word appears twice";
    CODE "FIFU-21" Error "a code is beyond the last centroid";
    NOT_FINITE "FIFU-22" Error "a value is NaN or infinite";
    NOT_UNIT "FIFU-23" Warning "there are norms, but a row is not of unit length";
    NEGATIVE "FIFU-24" Warning "a norm is negative";
    INDEX_LENGTH "FIFU-25" Warning "the length of an explicit vocabulary leaves out the indices";
    UNLISTED "FIFU-26" Warning "there are norms that the list of chunks leaves out";
}

/// Rows that are looked at together.
const TOGETHER: u64 = 1024;

pub(super) fn check(
    container: &Container,
    input: &Input,
    findings: &mut Findings,
) -> Result<(), Error> {
    check_padding(container, &input.source, PADDING, findings)?;
    if findings.wants(DUPLICATE) {
        check_words(container, findings);
    }
    check_finite(container, NOT_FINITE, findings)?;
    let matrix = container.tensors.first();
    if let Some((matrix, Encoding::Product(product))) = matrix.map(|m| (m, &m.encoding)) {
        if findings.wants(NOT_FINITE) {
            check_parts(matrix, findings)?;
        }
        let beyond = |block: &[u8]| product.first_beyond(block);
        if let Some(codes) = matrix.view()
            && let Some((i, code)) = codes.find(beyond)?
        {
            let at = codes.span().start + i;
            let finding = CODE.at(at..at + 1).field(format!("code {i}"));
            findings.push(finding.expected(format!("below {}", product.centroids)).found(code));
        }
    }
    if let (Some(matrix), Some(norms)) = (matrix, container.tensor(NORMS))
        && findings.wants(NOT_UNIT)
    {
        check_norms(matrix, norms, findings)?;
    }
    Ok(())
}

fn check_words(container: &Container, findings: &mut Findings) {
    let Some(vocabulary) = &container.vocabulary else { return };
    if let Some((again, first)) = vocabulary.duplicate() {
        let word = vocabulary.token(again).unwrap_or_default();
        let finding = DUPLICATE.at(vocabulary.span()).field(format!("word {again}"));
        findings.push(
            finding
                .expected("words that differ")
                .found(format!("{word:?}, as word {first} is"))
                .hint("which of the two rows is meant can't be said"),
        );
    }
}

/// NaN and infinity in what rows are reconstructed from.
fn check_parts(matrix: &Tensor, findings: &mut Findings) -> Result<(), Error> {
    let Encoding::Product(product) = &matrix.encoding else { return Ok(()) };
    let parts = [
        ("centroids", Some(&product.values)),
        ("projection", product.projection.as_ref()),
        ("norms", product.norms.as_ref()),
    ];
    for (name, view) in parts.into_iter().filter_map(|(n, v)| Some((n, v?))) {
        let bytes = view.in_place()?;
        let (words, _) = bytes.as_chunks::<4>();
        let bad = words.iter().position(|w| !f32::from_le_bytes(*w).is_finite());
        if let Some(i) = bad {
            let at = view.span().start + 4 * i as u64;
            let finding = NOT_FINITE.at(at..at + 4).field(format!("quantizer {name}"));
            findings.push(finding.expected("finite numbers").found(f32::from_le_bytes(words[i])));
        }
    }
    Ok(())
}

/// With norms, the rows of words have unit length, or none.
fn check_norms(matrix: &Tensor, norms: &Tensor, findings: &mut Findings) -> Result<(), Error> {
    let (rows, dim) = (norms.count(), to_len(matrix.shape[1]));
    let lengths = norms.values_f32(0, to_len(rows))?;
    if let Some(i) = lengths.iter().position(|n| *n < 0.0) {
        let start = norms.view().map_or(0, |v| v.span().start) + 4 * i as u64;
        let finding = NEGATIVE.at(start..start + 4).field(format!("norm of word {i}"));
        findings.push(finding.expected("0 or more").found(lengths[i]));
    }
    // What was quantized is no longer exact.
    if !matches!(matrix.encoding, Encoding::Plain(_)) {
        return Ok(());
    }
    let first_bad = |raw: &mut Vec<u8>, start: u64| {
        let n = TOGETHER.min(rows - start);
        let mut values = vec![0.0; to_len(n) * dim];
        matrix.rows_f32(start, &mut values, raw)?;
        let lengths = values.chunks_exact(dim.max(1)).map(norm);
        let bad = |l: &f64| *l != 0.0 && (l - 1.0).abs() > 1e-3;
        let found = lengths.enumerate().find(|(_, l)| bad(l));
        Ok(found.map(|(i, l)| (start + i as u64, l)))
    };
    let starts: Vec<u64> = (0..rows).step_by(to_len(TOGETHER)).collect();
    let bytes = matrix.stored_len().unwrap_or(0);
    if let Some((row, length)) = try_map_all(starts, bytes, first_bad)?.into_iter().flatten().next()
    {
        let width = dim as u64 * matrix.encoding.stored().bits() / 8;
        let start = matrix.view().map_or(0, |v| v.span().start) + row * width;
        let finding = NOT_UNIT.at(start..start + width).field(format!("row {row}"));
        findings.push(finding.expected("length 1").found(format!("{length:.4}")));
    }
    Ok(())
}

/// The names of the parts of a file.
pub(super) const HEADER: What = What::Structure("header");
