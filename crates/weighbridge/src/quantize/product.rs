//! Product quantization of word embeddings: what finalfusion holds.

use super::{ErrorSums, Kept, KeptReason, Quantization, QuantizeReport, Quantized};
use crate::index::{Index, RecallSettings, USUAL_SAMPLE, recall};
use std::ops::ControlFlow;
use std::sync::Arc;
use weighbridge_codec::parallel::*;
use weighbridge_codec::product::{Codebook, Training, TrainingError};
use weighbridge_format::model::{Encoding, Produce, Product, Target};
use weighbridge_format::wire::to_len;
use weighbridge_format::{Advice, Container, Error, Listing, Progress, Stage, Tensor, View};

/// Rows that a codebook is made from: more hardly make it better.
const SAMPLE: u64 = 100_000;
/// Rows that are encoded together.
const TOGETHER: usize = 1024;

/// How rows are cut, and what chooses the centroids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProductSettings {
    /// Parts of a row; about ten values each when there is none.
    pub subquantizers: Option<u64>,
    /// Bits of a code: 2^bits centroids, 8 at most.
    pub bits: u32,
    /// Other seeds give other codebooks, about as good.
    pub seed: u64,
}

impl Default for ProductSettings {
    fn default() -> Self {
        ProductSettings { subquantizers: None, bits: 8, seed: 1 }
    }
}

/// The one tensor that is quantized, and why the others are not.
pub(super) fn choose(container: &Container) -> Result<(usize, Vec<Kept>), Error> {
    let found = container.word_matrix()?;
    if !matches!(found.matrix.encoding, Encoding::Plain(_) | Encoding::Scaled(_)) {
        let name = found.matrix.encoding.name();
        return Err(Error::refused(
            format!("the rows are quantized already ({name})"),
            "converting them to f32 reconstructs them first",
        ));
    }
    let index = container.tensors.iter().position(|t| std::ptr::eq(t, found.matrix)).unwrap_or(0);
    let others = container.tensors.iter().enumerate().filter(|(i, _)| *i != index);
    let why = |t: &Tensor| Kept {
        name: t.name.clone(),
        reason: KeptReason::Unsuitable,
        why: "is not the matrix of words".to_owned(),
    };
    Ok((index, others.map(|(_, t)| why(t)).collect()))
}

pub(super) fn run(
    job: Quantization,
    rotate: bool,
    progress: &mut Progress,
) -> Result<Quantized, Error> {
    let Quantization { settings, format, mut container, chosen, kept, .. } = job;
    let index = chosen.first().map_or(0, |c| c.tensor);
    let found = container.word_matrix()?;
    let words = found.word_rows();
    let tensor = found.matrix.clone();
    if container.vocabulary.is_none() && container.subwords.is_none() {
        // The format would say so when all the work is done.
        let advice = Advice::set("words", "gives a word for each row");
        return Err(Error::refused("the rows have no words", advice));
    }
    if tensor.count() == 0 {
        return Err(Error::refused("the rows have no values", ""));
    }
    let (rows, norms) = unit_rows(&tensor, found.norms.is_some())?;
    let training = training(&settings.product, rotate, tensor.shape[1])?;
    container.limit_output(book_bytes(&training, tensor.shape[1]))?;
    let book = train(&training, &rows, progress)?;
    let codes = encode(&rows, &book, progress)?;
    let norms = norms.map(|norms| View::owned(bytes_of(&norms)));
    let product = to_product(&book, norms)
        .ok_or_else(|| Error::refused("the sizes of the quantizer do not fit", ""))?;
    let encoding = Encoding::Product(Arc::new(product));
    let (name, shape) = (tensor.name.clone(), tensor.shape.clone());
    let after = Tensor::stored(name, encoding.clone(), shape, View::owned(codes))?;
    let errors = compare(&tensor, &after)?;
    let recall = neighbours_kept(&tensor, &after, words, progress)?;
    // The codes are there already: a fortieth of the values.
    let target = Target { encoding, data: Arc::new(Codes(after)), bounds: (0.0, 0.0) };
    container.tensors[index].target = Some(target);
    let plan = format.plan(&container, &settings.options)?;
    let mut report = QuantizeReport::new(&container, &plan, &[(index, errors)], kept);
    report.recall_at_10 = recall;
    Ok(Quantized { container, plan, report })
}

/// Of unit length, with the lengths that rows had, unless they have it already: directions are what
/// similarity needs, and a length costs no more than four bytes.
fn unit_rows(tensor: &Tensor, has_norms: bool) -> Result<(Tensor, Option<Vec<f32>>), Error> {
    if has_norms {
        return Ok((tensor.clone(), None));
    }
    let unit = tensor.unit_rows(tensor.shape[0])?;
    if unit.norms.iter().all(|n| (n - 1.0).abs() < 1e-3 || *n == 0.0) {
        return Ok((tensor.clone(), None));
    }
    Ok((unit.matrix, Some(unit.norms)))
}

fn training(settings: &ProductSettings, rotate: bool, dim: u64) -> Result<Training, Error> {
    let divides = |n: &u64| dim.is_multiple_of(*n);
    let usual = || (1..=(dim / 10).max(1)).rev().find(divides).unwrap_or(1);
    let parts = settings.subquantizers.unwrap_or_else(usual);
    if parts == 0 || !divides(&parts) {
        let possible: Vec<_> = (1..=dim).filter(divides).map(|n| n.to_string()).collect();
        return Err(Error::refused(
            format!("rows of {dim} values can't be cut into {parts} parts"),
            Advice::one_of("subquantizers", possible),
        ));
    }
    if !(1..=8).contains(&settings.bits) {
        let what = format!("codes of {} bits can't be stored", settings.bits);
        return Err(Error::refused(what, Advice::set("bits", "takes 1 to 8")));
    }
    let usual = Training::new(to_len(parts));
    Ok(Training { centroids: 1 << settings.bits, seed: settings.seed, rotate, ..usual })
}

/// Bytes of the centroids and the rotation.
fn book_bytes(training: &Training, dim: u64) -> u64 {
    let rotation = if training.rotate { dim } else { 0 };
    (training.centroids as u64).saturating_add(rotation).saturating_mul(dim).saturating_mul(4)
}

fn train(training: &Training, rows: &Tensor, progress: &mut Progress) -> Result<Codebook, Error> {
    let values = rows.count();
    progress.begin(Stage::Training, values)?;
    let (count, dim) = (rows.shape[0], to_len(rows.shape[1]));
    let step = count.div_ceil(SAMPLE).max(1);
    let picked: Vec<u64> = (0..count).step_by(to_len(step)).collect();
    let mut sample = vec![0.0; picked.len() * dim];
    let read = sample.par_chunks_mut(dim).zip(&picked);
    let read = read.map_init(Vec::new, |raw, (out, row)| rows.rows_f32(*row, out, raw));
    read.collect::<Result<(), Error>>()?;
    let mut done = 0;
    let book = training.train(&sample, dim, &mut |fraction| {
        let now = fraction_of(values, fraction).max(done);
        let told = progress.advance(now - done);
        done = now;
        if told.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    book.map_err(|e| match e {
        TrainingError::Stopped => Error::Cancelled,
        e => {
            let message = format!("no codebook can be made: {e}");
            Error::refused(message, Advice::See(Listing::Findings))
        }
    })
}

/// The codes of all rows.
fn encode(rows: &Tensor, book: &Codebook, progress: &mut Progress) -> Result<Vec<u8>, Error> {
    progress.begin(Stage::Quantizing, rows.count())?;
    let (count, dim, parts) = (to_len(rows.shape[0]), book.dim(), book.parts());
    let mut codes = vec![0; count * parts];
    // Some blocks at a time, so that the bar moves.
    let some = TOGETHER * 4 * current_num_threads();
    for (i, part) in codes.chunks_mut(some * parts).enumerate() {
        let encode = |buffers: &mut (Vec<f32>, Vec<u8>), (j, codes): (usize, &mut [u8])| {
            let (values, raw) = buffers;
            values.resize(codes.len() / parts * dim, 0.0);
            rows.rows_f32((i * some + j * TOGETHER) as u64, values, raw)?;
            book.encode(values, codes);
            Ok(())
        };
        let blocks = part.par_chunks_mut(TOGETHER * parts).enumerate();
        blocks.map_init(Default::default, encode).collect::<Result<(), Error>>()?;
        progress.advance((part.len() / parts * dim) as u64)?;
    }
    Ok(codes)
}

/// What became of the values.
fn compare(before: &Tensor, after: &Tensor) -> Result<ErrorSums, Error> {
    let (count, dim) = (before.shape[0], to_len(before.shape[1]));
    let starts: Vec<u64> = (0..count).step_by(TOGETHER).collect();
    let of_block = |start: &u64| {
        let n = to_len(count - start).min(TOGETHER) * dim;
        let (mut x, mut y, mut raw) = (vec![0.0; n], vec![0.0; n], Vec::new());
        before.rows_f32(*start, &mut x, &mut raw)?;
        after.rows_f32(*start, &mut y, &mut raw)?;
        Ok(ErrorSums::of(&x, &y))
    };
    // Added up in order, so that any number of threads gives the same sums.
    let sums = starts.par_iter().map(of_block).collect::<Result<Vec<_>, Error>>()?;
    Ok(sums.into_iter().fold(ErrorSums::default(), ErrorSums::plus))
}

/// How many of the nearest words of some words are still among their nearest.
fn neighbours_kept(
    before: &Tensor,
    after: &Tensor,
    words: u64,
    progress: &mut Progress,
) -> Result<Option<f64>, Error> {
    if words < 2 {
        return Ok(None);
    }
    let index = |tensor: &Tensor| Index::new(tensor.first_rows(words)?);
    let settings = RecallSettings { sample: USUAL_SAMPLE, ..RecallSettings::default() };
    let found = recall(&index(before)?, &index(after)?, None, &settings, progress)?;
    Ok(Some(found.recall))
}

fn to_product(book: &Codebook, norms: Option<View>) -> Option<Product> {
    let sizes = [book.dim(), book.parts(), book.centroids()].map(|n| n as u64);
    let projection = book.projection().map(|p| View::owned(bytes_of(p)));
    Product::new(sizes, View::owned(bytes_of(book.values())), projection, norms)
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Values that a fraction of the training counts as.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn fraction_of(values: u64, fraction: f64) -> u64 {
    (values as f64 * fraction.clamp(0.0, 1.0)) as u64
}

/// The codes of a quantized matrix.
#[derive(Debug)]
struct Codes(Tensor);

impl Produce for Codes {
    fn produce(&self, out: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        self.0.view().map_or(Ok(()), |codes| codes.for_each_block(1 << 20, out))
    }
}
