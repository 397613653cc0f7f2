//! Rounding weights with an eye to what they are multiplied with.

mod cholesky;
mod hessian;
mod rounding;
mod texts;

pub use texts::Calibration;

use super::blocks::Order;
use super::targets::EXCLUDE;
use super::{ErrorSums, QuantizeSettings};
use hessian::Hessian;
use rounding::{ROWS, Rounding};
use serde::Serialize;
use std::sync::Arc;
use weighbridge_codec::block::BlockType;
use weighbridge_codec::parallel::*;
use weighbridge_encoder::{Encoder, Settings};
use weighbridge_format::model::{BlockCoded, Encoding, Produce, Target};
use weighbridge_format::wire::to_len;
use weighbridge_format::{Container, Error, Problem, Progress, Stage, Tensor, View};

/// What became of a model's vectors.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct VectorChange {
    /// Texts that the rounding did not see.
    pub texts: usize,
    /// Of the vectors before and after, on average.
    pub mean_cosine: f64,
    /// Of the vectors before and after, at worst.
    pub worst_cosine: f64,
}

/// The model, to watch it and to say what becomes of its vectors; none where it can't be run, unless
/// that was asked for.
pub(super) fn model(
    container: &Container,
    settings: &QuantizeSettings,
) -> Result<Option<Encoder>, Error> {
    match settings.calibration {
        Calibration::Never => Ok(None),
        Calibration::Automatic if !settings.is_of_weights() => Ok(None),
        Calibration::Automatic => match runnable(container) {
            Ok(encoder) => Ok(Some(encoder)),
            Err(failed @ (Error::Io { .. } | Error::Changed { .. })) => Err(failed),
            Err(_) => Ok(None),
        },
        Calibration::Texts(_) => runnable(container).map(Some),
    }
}

/// The tensors of the orders that are weights of a product, rounded. `values` are those of all orders.
pub(super) fn targets<'a>(
    container: &Container,
    encoder: &Encoder,
    orders: &'a [(usize, Order)],
    calibration: &Calibration,
    values: u64,
    progress: &mut Progress,
) -> Result<Vec<(usize, Target, ErrorSums)>, Error> {
    let of_product = |names: Vec<String>| {
        let named = |o: &(usize, Order)| names.contains(&container.tensors[o.0].name);
        let signed = |o: &'a (usize, Order)| Some((o.0, &o.1, o.1.codec.as_signed()?));
        orders.iter().filter(|o| named(o)).filter_map(signed).collect::<Vec<_>>()
    };
    let products: Vec<_> = encoder.products().into_iter().map(of_product).collect();
    if products.iter().all(Vec::is_empty) {
        let what = "calibrating is for the weights of layers, and none of them is quantized";
        return Err(Error::refused(what, "with q8, q4, k6, k4, k3 or k2"));
    }
    let width = |orders: &Vec<(usize, &Order, BlockType)>| {
        orders.first().map_or(0, |(index, ..)| to_len(container.tensors[*index].shape[1]))
    };
    let mut hessians: Vec<_> = products.iter().map(|orders| Hessian::new(width(orders))).collect();
    let texts = calibration.texts();
    progress.begin(Stage::Calibrating, texts.len() as u64)?;
    let mut observer = |product: usize, rows: &[f32]| hessians[product].add(rows);
    encoder.observe(&texts, &mut observer, &mut |more| progress.advance(more))?;
    progress.begin(Stage::Quantizing, values)?;
    let mut list = Vec::new();
    for (mut hessian, orders) in hessians.into_iter().zip(products) {
        if orders.is_empty() {
            continue;
        }
        hessian.finish();
        let factor = cholesky::upper_factor(&hessian.sums, hessian.width).ok_or_else(|| {
            let name = &container.tensors[orders[0].0].name;
            let what = format!("the inputs of {name:?} are beyond the range of f32");
            Error::refused(what, "calibrate with other texts")
        })?;
        for (index, order, method) in orders {
            let tensor = &container.tensors[index];
            let rounding = Rounding::new(method, hessian.width, &hessian.sums, &factor);
            let (target, errors) = round(tensor, order, &rounding, progress)?;
            list.push((index, target, errors));
        }
    }
    Ok(list)
}

/// Compares the vectors of a model with those it has when its tensors are stored as is planned.
#[allow(clippy::cast_precision_loss)]
pub(super) fn compare(
    container: &Container,
    encoder: &Encoder,
    progress: &mut Progress,
) -> Result<VectorChange, Error> {
    let texts = texts::held_out();
    progress.begin(Stage::Comparing, 2 * texts.len() as u64)?;
    let mut after = container.clone();
    for tensor in &mut after.tensors {
        let Some(target) = tensor.target.take() else { continue };
        let mut bytes = Vec::new();
        target.data.produce(&mut |some| {
            bytes.extend_from_slice(some);
            Ok(())
        })?;
        let (name, shape) = (tensor.name.clone(), tensor.shape.clone());
        *tensor = Tensor::stored(name, target.encoding, shape, View::owned(bytes))?;
    }
    let before = encoder.embed(&texts)?;
    progress.advance(texts.len() as u64)?;
    let after = runnable(&after)?.embed(&texts)?;
    progress.advance(texts.len() as u64)?;
    let pairs = before.iter().zip(&after);
    let cosines: Vec<_> = pairs.map(|(x, y)| ErrorSums::of(x, y).figures().cosine).collect();
    Ok(VectorChange {
        texts: texts.len(),
        mean_cosine: cosines.iter().sum::<f64>() / cosines.len() as f64,
        worst_cosine: cosines.into_iter().fold(1.0, f64::min),
    })
}

fn runnable(container: &Container) -> Result<Encoder, Error> {
    let because = |mut problem: Box<Problem>| {
        problem.message = format!("calibrating must run the model, but {}", problem.message);
        problem
    };
    Encoder::new(container, &Settings::default()).map_err(|why| match why {
        Error::Refused(problem) => Error::Refused(because(problem)),
        Error::Unsupported(problem) => Error::Unsupported(because(problem)),
        other => other,
    })
}

/// Rounds a matrix.
fn round(
    tensor: &Tensor,
    order: &Order,
    rounding: &Rounding,
    progress: &mut Progress,
) -> Result<(Target, ErrorSums), Error> {
    let (rows, cols) = (tensor.shape[0], tensor.shape[1]);
    let starts: Vec<u64> = (0..rows).step_by(ROWS).collect();
    let some = |start: &u64| {
        let n = to_len((rows - start) * cols).min(ROWS * to_len(cols));
        let weights = tensor.values_f32(start * cols, n)?;
        let rounded = rounding.rows(&weights).map_err(|why| {
            let what = format!("tensor {:?}, a row from {start} on: {why}", tensor.name);
            Error::refused(what, EXCLUDE)
        })?;
        let values: Vec<f32> = rounded.iter().flat_map(|row| row.values()).collect();
        Ok((rounded, ErrorSums::of(&weights, &values)))
    };
    let mut parts = Vec::with_capacity(starts.len());
    // A few at a time, so that progress is told.
    for few in starts.chunks(16 * current_num_threads()) {
        parts.extend(few.par_iter().map(some).collect::<Result<Vec<_>, Error>>()?);
        let rounded = (few.len() * ROWS) as u64;
        progress.advance((rows - few[0]).min(rounded) * cols)?;
    }
    let too_large = || Error::refused(format!("{:?} is too large", tensor.name), "");
    let layout = BlockCoded::layout_of(order.codec, &tensor.shape).ok_or_else(too_large)?;
    let all = || parts.iter().flat_map(|(rows, _)| rows);
    let front = layout.join_fronts(all().map(|row| [&row.scales[..], &row.sub_scales]));
    let codes: Vec<u8> = all().flat_map(|row| row.packed(rounding.method)).collect();
    let errors = parts.iter().fold(ErrorSums::default(), |sum, (_, errors)| sum.plus(*errors));
    let encoding = Encoding::Blocks(Arc::new(BlockCoded::new(order.codec, View::owned(front))));
    Ok((Target { encoding, data: Arc::new(Codes(codes)), bounds: order.clip }, errors))
}

/// The codes of a matrix; unlike others they can't be made one part at a time.
#[derive(Debug)]
struct Codes(Vec<u8>);

impl Produce for Codes {
    fn produce(&self, out: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        out(&self.0)
    }
}
