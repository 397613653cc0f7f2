//! What is made of the vectors of a text's tokens: one vector, by pooling, dense layers behind it and a
//! normalization; or scores, by a classifier.

mod classifier;

pub(crate) use classifier::{Classifier, Found as FoundClassifier};

use crate::kernels::lanes::layer_norm;
use crate::kernels::walk::Activation;
use crate::layers::linear::RoundedRows;
use crate::layers::{Linear, Output, Packing};
use crate::settings::{Pooling, ResolvedSettings};
use serde::Deserialize;
use weighbridge_codec::memory::Arena;
use weighbridge_codec::simd::Level;
use weighbridge_format::model::Attachment;
use weighbridge_format::spec::{ModelSpec, Module};
use weighbridge_format::wire::to_len;
use weighbridge_format::{Container, Error, Formats, Input, Options};

/// The module of sentence-transformers that is a dense layer.
pub(crate) const DENSE: &str = "Dense";
/// The widest vector that a dense layer may make.
const WIDEST: usize = 1 << 16;

/// What the layer normalization adds to the variance that comes before cutting: PyTorch's own.
const CENTRING_EPSILON: f32 = 1e-5;

/// What stands behind the layers of a model.
#[derive(Debug)]
pub(crate) enum Head {
    /// A vector of a text, with the dense layers behind the pooling.
    Vector(Vec<Dense>),
    /// The scores of a pair.
    Scores(Box<Classifier>),
}

/// A dense layer behind the pooling.
#[derive(Debug)]
pub(crate) struct Dense {
    linear: Linear,
    activation: Squash,
}

/// The activations of dense layers and classifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Squash {
    Identity,
    Tanh,
    Relu,
    Gelu,
    Sigmoid,
}

impl Squash {
    /// The one that a class of PyTorch is.
    fn from_class(class: &str, of: &str) -> Result<Squash, Error> {
        Ok(match class.rsplit('.').next().unwrap_or(class) {
            "Identity" => Squash::Identity,
            "Tanh" => Squash::Tanh,
            "ReLU" => Squash::Relu,
            "GELU" => Squash::Gelu,
            "Sigmoid" => Squash::Sigmoid,
            other => {
                let what = format!("the activation {other} of {of} is not known");
                let known = "Identity, Tanh, ReLU, GELU and Sigmoid are";
                return Err(Error::unsupported(format!("activation {other}"), what, known));
            }
        })
    }
}

/// One vector through a product and an activation.
fn apply(linear: &Linear, activation: Squash, vector: &[f32]) -> Vec<f32> {
    let mut made = vec![0.0; linear.columns];
    let inside = match activation {
        Squash::Relu => Activation::Relu,
        Squash::Gelu => Activation::Gelu,
        _ => Activation::None,
    };
    let (all, rounded) = (0..linear.panels(), &mut RoundedRows::default());
    linear.apply(vector, all, &mut made, Output::Overwrite, inside, rounded);
    match activation {
        Squash::Tanh => made.iter_mut().for_each(|x| *x = x.tanh()),
        Squash::Sigmoid => made.iter_mut().for_each(|x| *x = 1.0 / (1.0 + (-*x).exp())),
        _ => {}
    }
    made
}

/// What config.json in a dense layer's folder says.
#[derive(Deserialize)]
struct Config {
    in_features: u64,
    out_features: u64,
    #[serde(default = "yes")]
    bias: bool,
    /// The class of PyTorch: `torch.nn.modules.activation.Tanh`.
    activation_function: Option<String>,
}

fn yes() -> bool {
    true
}

/// The dense layers of a model, in their order. The first gets vectors of so many values.
///
/// # Errors
/// If their files are missing, or are not what they should be.
pub(crate) fn dense_layers(
    spec: &ModelSpec,
    container: &Container,
    mut width: usize,
) -> Result<Vec<Dense>, Error> {
    let mut list = Vec::new();
    for module in spec.modules.iter().filter(|module| module.kind == DENSE) {
        let dense = Dense::load(module, container, width)?;
        width = dense.linear.columns;
        list.push(dense);
    }
    Ok(list)
}

impl Dense {
    fn load(module: &Module, container: &Container, width: usize) -> Result<Dense, Error> {
        if module.path.is_empty() {
            let what = "the model has a dense layer behind the pooling, whose weights are missing";
            return Err(Error::refused(what, "formats without attachments can't keep them"));
        }
        let name = |file: &str| format!("{}/{file}", module.path);
        let config = find(container, &name("config.json"))?.data.load()?;
        let config: Config = serde_json::from_slice(&config).map_err(|e| {
            Error::refused(format!("{} can't be understood: {e}", name("config.json")), "")
        })?;
        let (depth, columns) = (to_len(config.in_features), to_len(config.out_features));
        if depth != width || columns == 0 || columns > WIDEST {
            let what = format!("{} makes {columns} values of {depth}", name("config.json"));
            return Err(Error::refused(what, format!("vectors before it have {width} values")));
        }
        let class = config.activation_function.as_deref().unwrap_or("Tanh");
        let activation = Squash::from_class(class, &module.path)?;
        let file = name("model.safetensors");
        let bytes = find(container, &file)?.data.load()?.to_vec();
        let weights = Input::from_bytes(&file, bytes);
        let weights = Formats::builtin().open(&weights, &Options::default())?;
        let tensor = |tensor: &str, shape: &[u64]| {
            let found = weights.tensor(tensor).filter(|t| t.shape == shape);
            let what = || format!("{file} has no tensor {tensor} of the shape {shape:?}");
            found.ok_or_else(|| Error::refused(what(), "its config.json says so"))
        };
        let bias = match config.bias {
            true => tensor("linear.bias", &[columns as u64])?.values_f32(0, columns)?,
            false => vec![0.0; columns],
        };
        let weight = tensor("linear.weight", &[columns as u64, depth as u64])?;
        let linear = Linear::new(&[(weight, bias)], depth, Packing::F32, &Arena::default())?;
        Ok(Dense { linear, activation })
    }

    /// How many values a vector has behind it.
    pub(crate) fn width(&self) -> usize {
        self.linear.columns
    }
}

fn find<'a>(container: &'a Container, name: &str) -> Result<&'a Attachment, Error> {
    container.attachments.iter().find(|a| a.name == name).ok_or_else(|| {
        let hint = "modules.json names a dense layer; its weights must be stored as safetensors";
        Error::refused(format!("the model lacks the file {name}"), hint)
    })
}

impl Head {
    /// Makes a vector, or scores, of the vectors of a text's tokens, of which the first `skipped` do not
    /// count; as many of a vector's first values as there is room for.
    pub(crate) fn make(
        &self,
        rows: &[f32],
        width: usize,
        skipped: usize,
        settings: &ResolvedSettings,
        vector: &mut [f32],
    ) {
        let dense = match self {
            Head::Scores(classifier) => return classifier.score(rows, vector),
            Head::Vector(dense) => dense,
        };
        let pooling = &settings.pooling;
        let pool_all = |vector: &mut [f32]| {
            for (mode, vector) in pooling.iter().zip(vector.chunks_mut(width)) {
                pool(rows, width, skipped, mode, vector);
            }
        };
        if dense.is_empty() && !settings.centres {
            // What is cut off need not be made.
            pool_all(vector);
        } else {
            let mut made = vec![0.0; pooling.len() * width];
            pool_all(&mut made);
            for dense in dense {
                made = apply(&dense.linear, dense.activation, &made);
            }
            if settings.centres {
                let (gains, shifts) = (vec![1.0; made.len()], vec![0.0; made.len()]);
                layer_norm(Level::best(), &mut made, &gains, &shifts, CENTRING_EPSILON);
            }
            vector.copy_from_slice(&made[..vector.len()]);
        }
        if settings.normalize {
            normalize(vector);
        }
    }

    /// Whether all is made of the first token's vector.
    pub(crate) fn takes_first(&self, settings: &ResolvedSettings) -> bool {
        match self {
            Head::Scores(_) => true,
            Head::Vector(_) => settings.pooling.iter().all(|mode| *mode == Pooling::Cls),
        }
    }

    /// Whether there are dense layers behind the pooling.
    pub(crate) fn has_dense(&self) -> bool {
        !matches!(self, Head::Vector(dense) if dense.is_empty())
    }
}

/// Gives a vector unit length; zeros stay zeros.
pub(crate) fn normalize(vector: &mut [f32]) {
    // In lanes: one sum would wait for itself at every step.
    let (eights, rest) = vector.as_chunks::<8>();
    let mut squares = [0f32; 8];
    for eight in eights {
        squares.iter_mut().zip(eight).for_each(|(sum, x)| *sum += x * x);
    }
    let rest: f32 = rest.iter().map(|x| x * x).sum();
    let norm = (squares.iter().sum::<f32>() + rest).sqrt();
    let by = 1.0 / norm.max(1e-12);
    vector.iter_mut().for_each(|x| *x *= by);
}

/// Pools the vectors of tokens into one; as many of its first values as there is room for.
#[allow(clippy::cast_precision_loss)]
fn pool(rows: &[f32], width: usize, skipped: usize, pooling: &Pooling, vector: &mut [f32]) {
    let all = rows.chunks_exact(width);
    vector.fill(0.0);
    let row = match pooling {
        // Also where the tokens of the prompt do not count.
        Pooling::Cls => all.clone().next(),
        Pooling::LastToken => all.clone().next_back(),
        _ => None,
    };
    if let Some(row) = row {
        return vector.copy_from_slice(&row[..vector.len()]);
    }
    let counted = all.clone().skip(skipped);
    let count = counted.len();
    if count == 0 {
        return;
    }
    let by = match pooling {
        Pooling::Max => {
            vector.fill(f32::NEG_INFINITY);
            for row in counted {
                vector.iter_mut().zip(row).for_each(|(v, x)| *v = v.max(*x));
            }
            return;
        }
        Pooling::WeightedMean => {
            let mut sum = 0.0;
            for (place, row) in all.enumerate().skip(skipped) {
                let weight = (place + 1) as f32;
                vector.iter_mut().zip(row).for_each(|(v, x)| *v += weight * x);
                sum += weight;
            }
            return vector.iter_mut().for_each(|v| *v /= sum);
        }
        Pooling::MeanSqrtLen => 1.0 / (count as f32).sqrt(),
        // The mean; others were refused when the model was opened.
        _ => 1.0 / count as f32,
    };
    for row in counted {
        vector.iter_mut().zip(row).for_each(|(v, x)| *v += x);
    }
    vector.iter_mut().for_each(|v| *v *= by);
}
