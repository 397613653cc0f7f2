//! Rounding weights with an eye to what they are multiplied with.

mod cholesky;
mod inputs;
mod lanes;
mod rounding;
mod texts;

pub use texts::Calibration;

use super::blocks::Order;
use super::targets::{EXCLUDE, TensorTarget};
use super::{ErrorSums, QuantizeSettings};
use inputs::Inputs;
use rounding::{ROWS, Rounding};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use weighbridge_codec::DType;
use weighbridge_codec::block::BlockType;
use weighbridge_codec::convert::{convert, to_f32};
use weighbridge_codec::parallel::*;
use weighbridge_encoder::{ChosenWeights, Encoder, Rehearsed};
use weighbridge_format::model::{Arrangement, BlockCoded, Data, Encoding, Produce, Target};
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

/// What calibrating made of a model.
#[derive(Debug, Default)]
pub(super) struct Calibrated {
    /// The weights of products.
    pub targets: Vec<TensorTarget>,
    /// The biases that take back the mean error of these: the tensor's number, and what it becomes.
    pub biases: Vec<(usize, Tensor)>,
}

/// Whether each of some tensors is the weights of a product that can be rounded with an eye to its
/// inputs.
///
/// # Errors
/// [`Error::Refused`] if none is.
pub(super) fn are_of_products(
    container: &Container,
    encoder: &Encoder,
    orders: &[(usize, Order)],
) -> Result<Vec<bool>, Error> {
    let names: HashSet<String> = encoder.products().into_iter().flatten().collect();
    let fits = |(index, order): &(usize, Order)| {
        names.contains(&container.tensors[*index].name) && order.codec.as_signed().is_some()
    };
    let found: Vec<_> = orders.iter().map(fits).collect();
    if found.contains(&true) {
        return Ok(found);
    }
    let what = "calibrating is for the weights of layers, and none of them is quantized";
    Err(Error::refused(what, "with q8, q4, k6, k4, k3 or k2"))
}

/// Rounds weights of products, one product after the other: each makes up for the errors before it, as
/// far as the texts tell. `start` is the container with all other tensors as they will be stored;
/// `may_change` says which tensors can take other values.
pub(super) fn run(
    container: &Container,
    start: &Container,
    encoder: &Encoder,
    orders: &[(usize, Order)],
    calibration: &Calibration,
    may_change: &dyn Fn(&str) -> bool,
    progress: &mut Progress,
) -> Result<Calibrated, Error> {
    let values = orders.iter().map(|(index, _)| container.tensors[*index].count()).sum::<u64>();
    progress.begin(Stage::Calibrating, values)?;
    let index: HashMap<&str, usize> =
        container.tensors.iter().enumerate().map(|(i, t)| (t.name.as_str(), i)).collect();
    let find = |name: &str| {
        let lacking = || Error::refused(format!("the model lacks the tensor {name}"), "");
        index.get(name).copied().ok_or_else(lacking)
    };
    let (products, mut made) = (encoder.products(), Calibrated::default());
    let mut choose = |rehearsed: Rehearsed<'_>| {
        let mut matrices = Vec::new();
        for name in &products[rehearsed.product] {
            let weights = find(name)?;
            let order = orders.iter().find(|(index, _)| *index == weights).map(|(_, order)| order);
            // Some models have none.
            let bias = index.get(bias_of(name).as_str()).copied();
            let biases = match bias.map(|bias| &container.tensors[bias]) {
                Some(tensor) => tensor.values_f32(0, to_len(tensor.count()))?,
                None => vec![0.0; to_len(container.tensors[weights].shape[0])],
            };
            matrices.push(Matrix { weights, order, bias, biases });
        }
        choose_product(container, start, &rehearsed, &matrices, may_change, &mut made, progress)
    };
    let bits = orders.iter().filter_map(|(_, order)| order.codec.as_signed()).map(BlockType::bits);
    let texts = calibration.texts(bits.min().unwrap_or(0));
    encoder.rehearse(start, &texts, &mut choose)?;
    Ok(made)
}

/// A matrix of a product.
struct Matrix<'a> {
    weights: usize,
    /// None if it is not for calibrating.
    order: Option<&'a Order>,
    /// None if there is none.
    bias: Option<usize>,
    biases: Vec<f32>,
}

/// The bias that goes with weights of this name.
fn bias_of(weights: &str) -> String {
    format!("{}bias", weights.strip_suffix("weight").unwrap_or(weights))
}

fn choose_product(
    container: &Container,
    start: &Container,
    rehearsed: &Rehearsed,
    matrices: &[Matrix],
    may_change: &dyn Fn(&str) -> bool,
    made: &mut Calibrated,
    progress: &mut Progress,
) -> Result<ChosenWeights, Error> {
    let free = matrices.iter().all(|matrix| {
        let bias = matrix.bias.map(|bias| &container.tensors[bias]);
        bias.is_some_and(|bias| is_plain(bias) && may_change(&bias.name))
    });
    let mut inputs = None;
    let (mut chosen, mut first) = (Vec::new(), 0);
    for matrix in matrices {
        let weights = &container.tensors[matrix.weights];
        let count = matrix.biases.len();
        let signed = matrix.order.and_then(|order| Some((order, order.codec.as_signed()?)));
        let Some((order, method)) = signed else {
            chosen.push((start.tensors[matrix.weights].clone(), matrix.biases.clone()));
            first += count;
            continue;
        };
        if inputs.is_none() {
            let biases: Vec<f32> = matrices.iter().flat_map(|m| &m.biases).copied().collect();
            let width = to_len(weights.shape[1]);
            inputs = Some(Inputs::new(rehearsed, width, &biases, free).ok_or_else(|| {
                let what = format!("the inputs of {:?} are beyond the range of f32", weights.name);
                Error::refused(what, "calibrate with other texts")
            })?);
        }
        let Some(inputs) = &inputs else { continue };
        let rounding = Rounding::new(method, &inputs.factor, &inputs.squares);
        let task = Task { tensor: weights, order, rounding: &rounding, inputs, first };
        let (target, errors, mut biases) = task.round(&matrix.biases, progress)?;
        let stored = stored(weights, &target)?;
        made.targets.push((matrix.weights, target, errors));
        match matrix.bias.filter(|_| free) {
            Some(bias) => {
                let changed = with_values(&container.tensors[bias], &mut biases);
                made.biases.push((bias, changed));
            }
            None => biases.clone_from(&matrix.biases),
        }
        chosen.push((stored, biases));
        first += count;
    }
    Ok(chosen)
}

/// Whether a tensor is plain floats.
fn is_plain(tensor: &Tensor) -> bool {
    matches!(tensor.encoding, Encoding::Plain(DType::F32 | DType::F16 | DType::BF16))
}

/// A tensor of plain floats with other values, which become those that can be stored.
fn with_values(tensor: &Tensor, values: &mut [f32]) -> Tensor {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let mut stored = Vec::new();
    convert(DType::F32, tensor.encoding.stored(), &bytes, values.len(), &mut stored);
    to_f32(tensor.encoding.stored(), &stored, 0, values);
    let mut changed = tensor.clone();
    changed.data = Data::Stored(View::owned(stored), Arrangement::default());
    changed.origin = None;
    changed
}

/// A tensor as it will be stored.
fn stored(tensor: &Tensor, target: &Target) -> Result<Tensor, Error> {
    let (name, shape) = (tensor.name.clone(), tensor.shape.clone());
    Tensor::stored(name, target.encoding.clone(), shape, View::owned(bytes_of(target)?))
}

fn bytes_of(target: &Target) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    target.data.produce(&mut |some| {
        bytes.extend_from_slice(some);
        Ok(())
    })?;
    Ok(bytes)
}

/// A container with some tensors as they will be stored. Their codes are made here and kept, since
/// they are needed more than once.
pub(super) fn with_stored(
    container: &Container,
    targets: &mut [TensorTarget],
) -> Result<Container, Error> {
    let mut after = container.clone();
    for (index, target, _) in targets {
        target.data = Arc::new(Codes(bytes_of(target)?));
        after.tensors[*index] = stored(&container.tensors[*index], target)?;
    }
    Ok(after)
}

/// A container with all tensors as they will be stored.
fn as_stored(container: &Container) -> Result<Container, Error> {
    let mut after = container.clone();
    for tensor in &mut after.tensors {
        if let Some(target) = tensor.target.take() {
            *tensor = stored(tensor, &target)?;
        }
    }
    Ok(after)
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
    let after = as_stored(container)?;
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
    Encoder::to_rehearse(container).map_err(|why| match why {
        Error::Refused(problem) => Error::Refused(because(problem)),
        Error::Unsupported(problem) => Error::Unsupported(because(problem)),
        other => other,
    })
}

/// A matrix that is to be rounded.
struct Task<'a> {
    tensor: &'a Tensor,
    order: &'a Order,
    rounding: &'a Rounding<'a>,
    inputs: &'a Inputs,
    /// The number of its first row among those of the product.
    first: usize,
}

impl Task<'_> {
    /// What it becomes, the error that this makes, and the biases that go with it.
    fn round(
        &self,
        biases: &[f32],
        progress: &mut Progress,
    ) -> Result<(Target, ErrorSums, Vec<f32>), Error> {
        let (tensor, rounding) = (self.tensor, self.rounding);
        let (rows, cols) = (to_len(tensor.shape[0]), to_len(tensor.shape[1]));
        let starts: Vec<usize> = (0..rows).step_by(ROWS).collect();
        let some = |start: &usize| {
            let count = ROWS.min(rows - start);
            let weights = tensor.values_f32((start * cols) as u64, count * cols)?;
            let right_sides = self.inputs.right_sides(self.first + start, &weights);
            let rounded = rounding.rows(&weights, right_sides.as_deref()).map_err(|why| {
                let what = format!("tensor {:?}, a row from {start} on: {why}", tensor.name);
                Error::refused(what, EXCLUDE)
            })?;
            let values: Vec<f32> = rounded.iter().flat_map(|row| row.values()).collect();
            let pairs = weights.chunks_exact(cols).zip(values.chunks_exact(cols));
            let biases = pairs.zip(&biases[*start..]).enumerate().map(|(i, ((old, new), bias))| {
                self.inputs.bias(self.first + start + i, *bias, old, new)
            });
            let biases: Vec<f32> = biases.collect();
            Ok((rounded, ErrorSums::of(&weights, &values), biases))
        };
        let parts = starts.par_iter().map(some).collect::<Result<Vec<_>, Error>>()?;
        progress.advance(tensor.count())?;
        let too_large = || Error::refused(format!("{:?} is too large", tensor.name), "");
        let codec = self.order.codec;
        let layout = BlockCoded::layout_of(codec, &tensor.shape).ok_or_else(too_large)?;
        let all = || parts.iter().flat_map(|(rows, ..)| rows);
        let front = layout.join_fronts(all().map(|row| [&row.scales[..], &row.sub_scales]));
        let codes: Vec<u8> = all().flat_map(|row| row.packed(rounding.method)).collect();
        let errors = parts.iter().map(|part| part.1).fold(ErrorSums::default(), ErrorSums::plus);
        let encoding = Encoding::Blocks(Arc::new(BlockCoded::new(codec, View::owned(front))));
        let target = Target { encoding, data: Arc::new(Codes(codes)), bounds: self.order.clip };
        Ok((target, errors, parts.into_iter().flat_map(|part| part.2).collect()))
    }
}

/// The codes of a matrix. Those of calibrated weights can't be made one part at a time.
#[derive(Debug)]
struct Codes(Vec<u8>);

impl Produce for Codes {
    fn produce(&self, out: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        out(&self.0)
    }
}
