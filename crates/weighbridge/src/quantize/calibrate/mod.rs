//! Rounding weights with an eye to what they are multiplied with.

mod factor;
mod moments;
mod rounding;
mod texts;

pub use texts::Calibration;

use super::ErrorSums;
use super::blocks::Order;
use moments::Moments;
use rayon::prelude::*;
use rounding::{ROWS, Rounding};
use std::sync::Arc;
use weighbridge_codec::block::Method;
use weighbridge_encoder::{Encoder, Settings};
use weighbridge_format::model::{Blockwise, Encoding, Produce, Target};
use weighbridge_format::sink::Progress;
use weighbridge_format::wire::to_len;
use weighbridge_format::{Container, Error, Tensor, View};

pub(super) fn knob(name: &str, default: f64) -> f64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// The tensors of the orders that are weights of a product, rounded.
pub(super) fn targets(
    container: &Container,
    orders: &[(usize, Order)],
    calibration: &Calibration,
    progress: Progress,
) -> Result<Vec<(usize, Target, ErrorSums)>, Error> {
    let encoder = Encoder::new(container, &Settings::default())?;
    let products = encoder.products();
    let wanted: Vec<Vec<&(usize, Order)>> = products
        .iter()
        .map(|names| {
            let named = |o: &&(usize, Order)| names.contains(&container.tensors[o.0].name);
            orders.iter().filter(named).collect()
        })
        .collect();
    let width = |orders: &Vec<&(usize, Order)>| {
        orders.first().map_or(0, |(index, _)| to_len(container.tensors[*index].shape[1]))
    };
    let t = std::time::Instant::now();
    let mut moments: Vec<Moments> = wanted.iter().map(|o| Moments::new(width(o))).collect();
    encoder.observe(&calibration.texts()?, &mut |product, rows| {
        moments[product].add(rows);
    })?;
    eprintln!("observe {:?}", t.elapsed());
    let mut list = Vec::new();
    for (mut moments, orders) in moments.into_iter().zip(wanted) {
        if orders.is_empty() {
            continue;
        }
        moments.damp();
        let t = std::time::Instant::now();
        let root = factor::upper_root(&moments.sums, moments.width).ok_or_else(|| {
            Error::refused("the inputs of the model can't be told apart", "other texts may help")
        })?;
        eprintln!("root {:?}", t.elapsed());
        let t = std::time::Instant::now();
        for (index, order) in orders {
            let tensor = &container.tensors[*index];
            let rounding = Rounding::new(order.method, moments.width, &moments.sums, &root);
            let (target, errors) = round(tensor, order, &rounding)?;
            progress(tensor.count());
            list.push((*index, target, errors));
        }
        eprintln!("round {:?}", t.elapsed());
    }
    Ok(list)
}

/// Rounds a matrix.
fn round(tensor: &Tensor, order: &Order, rounding: &Rounding) -> Result<(Target, ErrorSums), Error> {
    let (rows, cols) = (tensor.shape[0], tensor.shape[1]);
    let method = order.method;
    let starts: Vec<u64> = (0..rows).step_by(ROWS).collect();
    let some = |start: &u64| {
        let n = to_len((rows - start) * cols).min(ROWS * to_len(cols));
        let weights = tensor.values_f32(start * cols, n);
        let rounded = rounding.rows(&weights).map_err(|why| {
            let what = format!("tensor {:?}, a row from {start} on: {why}", tensor.name);
            Error::refused(what, "--exclude keeps the tensor as it is")
        })?;
        let values: Vec<f32> = rounded.iter().flat_map(|row| row.values()).collect();
        Ok((rounded, ErrorSums::of(&weights, &values)))
    };
    let parts = starts.par_iter().map(some).collect::<Result<Vec<_>, Error>>()?;
    let too_large = || Error::refused(format!("{:?} is too large", tensor.name), "");
    let layout = Blockwise::layout(method, &tensor.shape).ok_or_else(too_large)?;
    let mut scales = Vec::with_capacity(to_len(layout.codes));
    let all = || parts.iter().flat_map(|(rows, _)| rows);
    all().for_each(|row| scales.extend_from_slice(&row.scales));
    scales.resize(to_len(layout.shares), 0);
    all().for_each(|row| scales.extend_from_slice(&row.shares));
    scales.resize(to_len(layout.codes), 0);
    let codes: Vec<u8> = all().flat_map(|row| row.packed(method)).collect();
    let errors = parts.iter().fold(ErrorSums::default(), |sum, (_, errors)| sum.plus(*errors));
    let blockwise = Arc::new(Blockwise { method, scales: View::owned(scales) });
    let encoding = Encoding::Blockwise(blockwise);
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
