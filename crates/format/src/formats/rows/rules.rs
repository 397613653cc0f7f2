//! The numbered rules of both formats, and the checks that need the data.

use super::super::values::try_map_all;
use super::meta;
use super::quantize::{NORMS, norm_of_codes};
use crate::Error;
use crate::model::{BLOCK, Container};
use crate::source::Source;
use crate::wire::{Findings, Span, to_len};
use crate::{Advice, Input, rules};
use weighbridge_codec::{DType, scan};

rules! {
    SIZE "I8-01" Error "Embedding file size mismatch";
    SHAPE "I8-02" Error "impossible shape";
    DIMENSION "I8-03" Warning "nothing says how many values a row has";
    OVERRIDDEN "I8-04" Warning "the option dim is not what meta.json says";
    META "I8-05" Error "meta.json is malformed";
    RETIRED "I8-06" Error "meta.json is that of the retired float16 export";
    INCOMPLETE "I8-07" Warning "meta.json lacks a field";
    VERSION "I8-08" Warning "unknown version of meta.json";
    QUANTIZATION "I8-09" Error "meta.json describes another kind of values";
    RECORDS "I8-10" Error "the number of records is not the number of rows";
    RANGE "I8-11" Error "Invalid int8 value";
    NEAR_NORM "I8-12" Warning "L2 norms are slightly out of the expected range";
    TRUNCATED "I8-13" Warning "all rows are shrunk alike: the values were truncated, not rounded";
    NORM "I8-14" Error "L2 norm out of expected range";
    NOT_FINITE "I8-15" Error "a value is not a finite number";
    ZERO_ROW "I8-16" Warning "a row is all zeros";
    CHECKSUM "I8-17" Error "the rows are not those that meta.json was written with";
}

/// Rows this close to 1 come from rounding; others do not.
const NEAR: std::ops::RangeInclusive<f64> = 0.98..=1.02;
/// Truncated rows of one file have norms this close to their mean.
const SPREAD: f64 = 0.03;
/// Rounding does not do more than this, or to one row in fifty.
const FEW: u64 = 3;
/// Rows that are named one by one.
const NAMED: usize = 10;

/// Rows that break a rule: the first few by number, and how many there are.
#[derive(Default)]
struct BadRows<T> {
    named: Vec<(u64, T)>,
    count: u64,
}

impl<T> BadRows<T> {
    fn add(&mut self, row: u64, what: T) {
        self.count += 1;
        if self.named.len() < NAMED {
            self.named.push((row, what));
        }
    }

    fn join(&mut self, later: BadRows<T>) {
        self.count += later.count;
        self.named.extend(later.named);
        self.named.truncate(NAMED);
    }
}

/// What the norms of some rows are like.
struct Norms {
    rows: u64,
    sum: f64,
    low: f64,
    high: f64,
    /// Every row could be a unit vector whose components were cut off behind the point.
    like_truncated: bool,
    /// How many codes are 0, 1 and 2, whatever their sign.
    small: [u64; 3],
    /// Out of the range, but near it: how many, and the row that is farthest off.
    near: u64,
    worst: Option<(u64, f64)>,
    far: BadRows<f64>,
}

impl Norms {
    const NONE: Norms = Norms {
        rows: 0,
        sum: 0.0,
        low: f64::INFINITY,
        high: 0.0,
        like_truncated: true,
        small: [0; 3],
        near: 0,
        worst: None,
        far: BadRows { named: Vec::new(), count: 0 },
    };

    fn of(codes: &[u8], dim: usize, first: u64) -> Norms {
        let mut all = Norms::NONE;
        for (row, codes) in (first..).zip(codes.chunks_exact(dim)) {
            let norm = norm_of_codes(codes);
            for code in codes {
                if let Some(count) =
                    all.small.get_mut(usize::from(code.cast_signed().unsigned_abs()))
                {
                    *count += 1;
                }
            }
            all.add(row, norm, norm < *NORMS.start() && could_be_truncated(codes));
        }
        all
    }

    fn add(&mut self, row: u64, norm: f64, like_truncated: bool) {
        self.rows += 1;
        self.sum += norm;
        self.low = self.low.min(norm);
        self.high = self.high.max(norm);
        self.like_truncated &= like_truncated;
        if !NEAR.contains(&norm) {
            self.far.add(row, norm);
        } else if !NORMS.contains(&norm) {
            self.near += 1;
            self.note_worst(Some((row, norm)));
        }
    }

    fn note_worst(&mut self, other: Option<(u64, f64)>) {
        let off = |worst: Option<(u64, f64)>| worst.map_or(0.0, |(_, n)| (n - 1.0).abs());
        if off(other) > off(self.worst) {
            self.worst = other;
        }
    }

    fn join(mut self, later: Norms) -> Norms {
        self.rows += later.rows;
        self.sum += later.sum;
        self.low = self.low.min(later.low);
        self.high = self.high.max(later.high);
        self.like_truncated &= later.like_truncated;
        self.small.iter_mut().zip(later.small).for_each(|(count, more)| *count += more);
        self.near += later.near;
        self.note_worst(later.worst);
        self.far.join(later.far);
        self
    }

    /// All rows are below the range, by about the same, and by what truncating does.
    #[allow(clippy::cast_precision_loss)]
    fn shrunk_alike(&self) -> bool {
        let mean = self.sum / self.rows.max(1) as f64;
        self.like_truncated
            && is_wide_zero(self.small) != Some(false)
            && self.high < *NORMS.start()
            && self.high - mean <= SPREAD
            && mean - self.low <= SPREAD
    }
}

/// Whether codes of 0 are as many as truncating makes of them. It gives 0 to all components from -1 to
/// 1, which is twice as much room as other codes have, and rounding gives it as much as others. The
/// codes beside it say how many that would be, if components are spread as a bell is: its logarithm
/// falls with the square of the distance. None where nothing can be said.
#[allow(clippy::cast_precision_loss)]
fn is_wide_zero([zeros, ones, twos]: [u64; 3]) -> Option<bool> {
    // Fewer are chance.
    const ENOUGH: u64 = 60;
    // As a logarithm: where zeros are still more, components are not spread as a bell is, and
    // nothing can be said.
    const ROOM: f64 = 0.3;
    if ones < ENOUGH || twos < ENOUGH {
        return None;
    }
    // Of one sign.
    let (ones, twos) = (ones as f64 / 2.0, twos as f64 / 2.0);
    let step = (ones / twos).ln();
    // Rounded codes stand for what is around 0, 1 and 2; truncated ones for 0, 1.5 and 2.5.
    let rounded = ones.ln() + step / 3.0;
    let truncated = (2.0 * ones).ln() + step * 2.25 / 4.0;
    let zeros = (zeros.max(1) as f64).ln();
    (zeros < truncated + ROOM).then_some(zeros >= f64::midpoint(rounded, truncated))
}

/// A component of code `q` was at most `|q| + 1` before it was truncated; so a row can come from a
/// unit vector only if its norm with those is 1 or more.
fn could_be_truncated(codes: &[u8]) -> bool {
    let most: u64 = codes
        .iter()
        .map(|c| u64::from(c.cast_signed().unsigned_abs()) + 1)
        .map(|most| most * most)
        .sum();
    codes.iter().any(|&c| c != 0) && most >= 127 * 127
}

/// The codes of an i8bin file: their range and the norms of their rows.
pub(super) fn check_codes(
    container: &Container,
    input: &Input,
    findings: &mut Findings,
) -> Result<(), Error> {
    const OUTSIDE: u8 = 0x80;
    let source = &input.source;
    let dim = container.rows().map(|r| r.dim).filter(|&d| d > 0);
    let width = dim.unwrap_or(BLOCK as u64);
    let with_norms = dim.filter(|_| findings.wants(NORM));
    let block = |bytes: &[u8], first: u64| {
        let bad = bytes.iter().filter(|&&c| c == OUTSIDE).count() as u64;
        let index = bytes.iter().position(|&c| c == OUTSIDE);
        let index = index.map(|i| first * width + i as u64);
        (index, bad, with_norms.map(|dim| Norms::of(bytes, to_len(dim), first)))
    };
    let (mut index, mut bad, mut all) = (None, 0, Norms::NONE);
    let (blocks, sum) = map_rows(source, width, expected_sum(container, findings)?, block)?;
    for (first, count, norms) in blocks {
        index = index.or(first);
        bad += count;
        all = match norms {
            Some(norms) => all.join(norms),
            None => all,
        };
    }
    report_range(index, bad, findings);
    report_sum(sum, input, findings);
    if let Some(dim) = with_norms {
        report_norms(&all, dim, findings);
    }
    Ok(())
}

/// The checksum of the rows that is told beside them, if it is to be compared.
fn expected_sum(container: &Container, findings: &Findings) -> Result<Option<u32>, Error> {
    if findings.wants(CHECKSUM) { meta::checksum_beside(container) } else { Ok(None) }
}

/// A checksum that was told, and that of the bytes that are there.
struct Sum {
    expected: u32,
    found: u32,
}

/// Applies `work` to blocks of whole rows, with the number of the first of them; all bytes are
/// added up if their checksum is told.
fn map_rows<R: Send>(
    source: &Source,
    width: u64,
    expected: Option<u32>,
    work: impl Fn(&[u8], u64) -> R + Send + Sync,
) -> Result<(Vec<R>, Option<Sum>), Error> {
    let together = (BLOCK as u64 / width).max(1);
    let rows = source.len().div_ceil(width);
    let starts = (0..rows).step_by(to_len(together)).collect();
    let blocks = try_map_all(starts, source.len(), |buffer, first: u64| {
        let span = first * width..source.len().min((first + together).saturating_mul(width));
        let bytes = source.read(span, buffer)?;
        let mut crc = crc32fast::Hasher::new();
        if expected.is_some() {
            crc.update(bytes);
        }
        Ok((work(bytes, first), crc))
    })?;
    let mut total = crc32fast::Hasher::new();
    let mut results = Vec::with_capacity(blocks.len());
    for (result, crc) in blocks {
        total.combine(&crc);
        results.push(result);
    }
    Ok((results, expected.map(|expected| Sum { expected, found: total.finalize() })))
}

fn report_sum(sum: Option<Sum>, input: &Input, findings: &mut Findings) {
    if let Some(Sum { expected, found }) = sum.filter(|sum| sum.expected != sum.found) {
        let name = meta::About::name_for(input);
        findings.push(
            CHECKSUM
                .at(0..input.source.len())
                .message(CHECKSUM.title.replacen(meta::NAME, &name, 1))
                .field(format!("{name} \"checksum\""))
                .expected(format!("CRC32 {expected:08x}"))
                .found(format!("{found:08x}"))
                .hint("one of the two files was changed, damaged or replaced after they were written together"),
        );
    }
}

fn report_range(index: Option<u64>, count: u64, findings: &mut Findings) {
    let Some(index) = index else { return };
    let found = match count - 1 {
        0 => format!("-128 at index {index}"),
        more => format!("-128 at index {index}, and {more} more"),
    };
    let at = index;
    let message =
        format!("Invalid int8 value at index {index}: -128. Values must be in range [-127, 127].");
    findings.push(
        RANGE
            .at(at..at + 1)
            .message(message)
            .expected("-127..127")
            .found(found)
            .hint("file may be corrupted or not in int8 format"),
    );
}

fn report_norms(norms: &Norms, dim: u64, findings: &mut Findings) {
    let span = |row: u64| row * dim..(row + 1) * dim;
    let range = format!("{}..{}", NORMS.start(), NORMS.end());
    if norms.far.count > 0 && norms.shrunk_alike() {
        findings.push(
            TRUNCATED
                .at(0..norms.rows * dim)
                .message(match is_wide_zero(norms.small) {
                    Some(_) => TRUNCATED.title,
                    None => "all rows are shrunk alike: the values may have been truncated",
                })
                .field(format!("{} rows", norms.rows))
                .expected(format!("L2 norms of {range}"))
                .found(format!("{:.4}..{:.4}", norms.low, norms.high))
                .hint(
                    Advice::from(
                        "numpy's astype(int8) truncates toward zero; round first (np.rint)",
                    )
                    .and(Advice::set(
                        "renormalize",
                        "divides every row by its norm when it is read",
                    )),
                ),
        );
        return;
    }
    if let Some((row, norm)) = norms.worst {
        let hint: Advice = if norms.shrunk_alike() {
            "all rows are too short, as truncating instead of rounding makes them".into()
        } else if norms.near > FEW.max(norms.rows / 50) {
            "check that source embeddings were L2-normalized before quantization".into()
        } else {
            Advice::from("rounding does that to a few rows").and(Advice::set_to(
                "rounding",
                "nearest-norm",
                "writes none such",
            ))
        };
        findings.push(
            NEAR_NORM
                .at(span(row))
                .message(format!(
                    "{} of {} rows have an L2 norm slightly out of the expected range",
                    norms.near, norms.rows
                ))
                .field(format!("row {row} is the worst"))
                .expected(range.clone())
                .found(format!("{norm:.6}"))
                .hint(hint),
        );
    }
    for &(row, norm) in &norms.far.named {
        let hint = if norm == 0.0 {
            "the row is all zeros: it has no direction"
        } else {
            "check that source embeddings were L2-normalized before quantization"
        };
        let message = format!(
            "L2 norm out of expected range: {norm:.6}. Expected approximately 1.0 (within ±0.008). Check quantization parameters."
        );
        let finding = NORM.at(span(row)).field(format!("row {row}")).message(message);
        findings.push(finding.expected(range.clone()).found(format!("{norm:.6}")).hint(hint));
    }
    report_rest(NORM, &norms.far, norms.rows * dim, findings);
}

/// One finding for the rows that were not named one by one.
fn report_rest<T>(rule: crate::wire::Rule, rows: &BadRows<T>, end: u64, findings: &mut Findings) {
    let rest = rows.count - rows.named.len() as u64;
    if rest > 0 {
        let last = rows.named.last().map_or(0, |(row, _)| *row);
        findings.push(rule.at(0..end).field(format!("{rest} more rows behind row {last}")));
    }
}

/// The values of an f32bin file: finite, and rows that have a direction.
pub(super) fn check_floats(
    container: &Container,
    input: &Input,
    findings: &mut Findings,
) -> Result<(), Error> {
    let size = input.source.len();
    let dim = container.rows().map(|r| to_len(r.dim)).filter(|&d| d > 0);
    let Some((dim, width)) = dim.and_then(|d| Some((d, d.checked_mul(4)?))) else { return Ok(()) };
    let (expected, with_values) = (expected_sum(container, findings)?, findings.wants(NOT_FINITE));
    if expected.is_none() && !with_values {
        return Ok(());
    }
    let block = |block: &[u8], first: u64| {
        let (mut bad, mut zero) = (BadRows::default(), BadRows::default());
        let block = if with_values { block } else { &[] };
        for (row, bytes) in (first..).zip(block.chunks_exact(width)) {
            if let Some(column) = scan::first_non_finite(DType::F32, bytes, dim) {
                bad.add(row, column);
            } else if bytes.chunks_exact(4).all(|v| matches!(v, [0, 0, 0, 0 | 0x80])) {
                zero.add(row, ());
            }
        }
        (bad, zero)
    };
    let (blocks, sum) = map_rows(&input.source, width as u64, expected, block)?;
    let (mut bad, mut zero) = (BadRows::default(), BadRows::default());
    for (b, z) in blocks {
        bad.join(b);
        zero.join(z);
    }
    let span = |row: u64| -> Span { row * width as u64..(row + 1) * width as u64 };
    for &(row, column) in &bad.named {
        let index = row * dim as u64 + column as u64;
        let value = match container.tensors.first() {
            Some(tensor) => tensor.scalar(index)?,
            None => None,
        };
        findings.push(
            NOT_FINITE
                .at(index * 4..index * 4 + 4)
                .field(format!("row {row}, column {column}"))
                .expected("finite numbers")
                .found(value.map_or(f64::NAN, |v| v.to_f64())),
        );
    }
    report_rest(NOT_FINITE, &bad, size, findings);
    for &(row, ()) in &zero.named {
        findings.push(ZERO_ROW.at(span(row)).field(format!("row {row}")));
    }
    report_rest(ZERO_ROW, &zero, size, findings);
    report_sum(sum, input, findings);
    Ok(())
}
