//! What the hub remembers of tensors: the encodings they had, declarations, shared bytes.

use super::unpack::Bad;
use super::values::dtype_of;
use crate::model::{
    BlockCoded, Container, Data, Dialect, Encoding, Product, Scaled, Scaling, Tensor,
};
use crate::source::View;
use crate::wire::{Budget, Span};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use weighbridge_codec::block::codec_named;

#[derive(Serialize, Deserialize)]
pub(super) struct HubTensor<E = HubEncoding> {
    name: String,
    encoding: E,
    /// The tensor holds the codes themselves, not their values.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    codes: bool,
    /// Declared without data; then the shape stands here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    declared: Option<Vec<u64>>,
    /// The same bytes as another tensor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    alias: Option<String>,
    #[serde(default, skip_serializing_if = "Dialect::is_empty")]
    dialect: Dialect,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum HubEncoding {
    Plain(String),
    Divisor {
        codes: String,
        divisor: u32,
    },
    Affine {
        codes: String,
        axis: Option<usize>,
        scales: Vec<u32>,
        zero_points: Option<Vec<i32>>,
    },
    Offset {
        codes: String,
        scale: u32,
        zero: u32,
    },
    /// Nothing says what the codes stand for.
    Unscaled {
        codes: String,
    },
    /// The tensor that holds the scales; codes stand in rows of bytes, so the columns are counted here.
    Blockwise {
        method: String,
        cols: u64,
        scales: String,
    },
    /// The tensors that hold centroids, projection and norms.
    Product {
        dim: u64,
        parts: u64,
        centroids: u64,
        values: String,
        projection: Option<String>,
        norms: Option<String>,
    },
}

/// A tensor as it is to be written, with what the hub must remember of it.
pub(in super::super) struct Stored<'a> {
    pub tensor: &'a Tensor,
    pub encoding: Encoding,
    pub codes: bool,
}

/// Whether a reader of the entry can know the encoding: block codecs are named, and found in the
/// table of those that come with the library.
pub(in super::super) fn can_name(encoding: &Encoding) -> bool {
    encoding.blocks().is_none_or(|blocks| codec_named(blocks.codec.name()).is_some())
}

/// `carry` stores bytes as a further tensor and gives its name.
pub(super) fn hub_tensors(
    container: &Container,
    stored: &[Stored],
    carry: &mut dyn FnMut(&str, View) -> String,
) -> Vec<HubTensor> {
    let mut first: HashMap<(usize, Span), &str> = HashMap::new();
    let mut list = Vec::new();
    for s in stored {
        let t = s.tensor;
        let alias = t.view().filter(|v| !v.is_empty()).and_then(|view| {
            let place = view.place();
            let known = first.get(&place).copied();
            first.entry(place).or_insert(&t.name);
            known
        });
        let own = t.origin.as_ref().unwrap_or(&t.encoding);
        let own = if can_name(own) { own } else { &s.encoding };
        if *own != s.encoding || s.codes || alias.is_some() || !t.dialect.is_empty() {
            list.push(HubTensor {
                name: t.name.clone(),
                encoding: hub_encoding(t, own, carry),
                codes: s.codes,
                declared: None,
                alias: alias.map(str::to_owned),
                dialect: t.dialect.clone(),
            });
        }
    }
    for t in container.tensors.iter().filter(|t| !t.has_data()) {
        let own = t.origin.as_ref().unwrap_or(&t.encoding);
        list.push(HubTensor {
            name: t.name.clone(),
            encoding: hub_encoding(t, own, carry),
            codes: false,
            declared: Some(t.shape.clone()),
            alias: None,
            dialect: t.dialect.clone(),
        });
    }
    list
}

fn hub_encoding(
    tensor: &Tensor,
    encoding: &Encoding,
    carry: &mut dyn FnMut(&str, View) -> String,
) -> HubEncoding {
    let scaled = match encoding {
        Encoding::Plain(dtype) => return HubEncoding::Plain(dtype.name().to_owned()),
        Encoding::Blocks(blocks) => {
            return HubEncoding::Blockwise {
                method: blocks.codec.name().to_owned(),
                cols: tensor.shape.last().copied().unwrap_or(0),
                scales: carry(&format!("scales/{}", tensor.name), blocks.front.clone()),
            };
        }
        Encoding::Product(product) => {
            let mut part =
                |part: &str, view: &View| carry(&format!("{part}/{}", tensor.name), view.clone());
            return HubEncoding::Product {
                dim: product.dim,
                parts: product.parts,
                centroids: product.centroids,
                values: part("centroids", &product.values),
                projection: product.projection.as_ref().map(|v| part("projection", v)),
                norms: product.norms.as_ref().map(|v| part("norms", v)),
            };
        }
        Encoding::Scaled(scaled) => scaled,
    };
    let codes = scaled.codes.name().to_owned();
    match &scaled.scaling {
        Scaling::Unknown => HubEncoding::Unscaled { codes },
        Scaling::Divisor(divisor) => HubEncoding::Divisor { codes, divisor: divisor.to_bits() },
        Scaling::Offset { scale, zero } => {
            HubEncoding::Offset { codes, scale: scale.to_bits(), zero: zero.to_bits() }
        }
        Scaling::Affine { axis, scales, zero_points } => HubEncoding::Affine {
            codes,
            axis: *axis,
            scales: scales.iter().map(|s| s.to_bits()).collect(),
            zero_points: zero_points.clone(),
        },
    }
}

impl HubTensor {
    /// With the encoding it stands for; `carried` gives the bytes of a further tensor.
    pub(super) fn resolve(
        self,
        carried: &mut dyn FnMut(&str) -> Result<View, String>,
    ) -> Result<HubTensor<(Encoding, u64)>, String> {
        let HubTensor { name, encoding, codes, declared, alias, dialect } = self;
        let encoding = encoding_of(encoding, carried)?;
        Ok(HubTensor { name, encoding, codes, declared, alias, dialect })
    }
}

/// The encoding, and the number of columns where the tensor's shape may not say it.
fn encoding_of(
    encoding: HubEncoding,
    carried: &mut dyn FnMut(&str) -> Result<View, String>,
) -> Result<(Encoding, u64), String> {
    let (codes, scaling) = match encoding {
        HubEncoding::Plain(name) => return Ok((Encoding::Plain(dtype_of(&name)?), 0)),
        HubEncoding::Blockwise { method, cols, scales } => {
            let codec = codec_named(&method).ok_or_else(|| format!("unknown method {method:?}"))?;
            let blocks = BlockCoded::new(codec, carried(&scales)?);
            return Ok((Encoding::Blocks(Arc::new(blocks)), cols));
        }
        HubEncoding::Product { dim, parts, centroids, values, projection, norms } => {
            let values = carried(&values)?;
            let projection = projection.map(|name| carried(&name)).transpose()?;
            let norms = norms.map(|name| carried(&name)).transpose()?;
            let product = Product::new([dim, parts, centroids], values, projection, norms);
            let product = product.ok_or("the parts of product quantization do not fit")?;
            return Ok((Encoding::Product(Arc::new(product)), dim));
        }
        HubEncoding::Unscaled { codes } => (codes, Scaling::Unknown),
        HubEncoding::Divisor { codes, divisor } => {
            (codes, Scaling::Divisor(f32::from_bits(divisor)))
        }
        HubEncoding::Offset { codes, scale, zero } => {
            let (scale, zero) = (f32::from_bits(scale), f32::from_bits(zero));
            (codes, Scaling::Offset { scale, zero })
        }
        HubEncoding::Affine { codes, axis, scales, zero_points } => {
            let scales = scales.into_iter().map(f32::from_bits).collect();
            (codes, Scaling::Affine { axis, scales, zero_points })
        }
    };
    Ok((Encoding::Scaled(Arc::new(Scaled { codes: dtype_of(&codes)?, scaling })), 0))
}

pub(super) fn restore_tensors(
    list: Vec<HubTensor<(Encoding, u64)>>,
    c: &mut Container,
) -> Result<(), Bad> {
    let names = c.tensors.iter().enumerate();
    let mut place: HashMap<_, _> = names.map(|(i, t)| (t.name.clone(), i)).collect();
    // An entry may say many times, or of many tensors, that they are the same as another.
    let (mut budget, mut compared) = (Budget::for_copies(c.size), HashSet::new());
    for hub in list {
        let (encoding, cols) = hub.encoding;
        let index = place.get(&hub.name).copied();
        let shape = match (index, &hub.declared) {
            (Some(index), _) => {
                let tensor = &mut c.tensors[index];
                // Codes in blocks and of parts stand in rows of bytes.
                if hub.codes
                    && let (true, [_, last]) = (encoding.is_coded(), tensor.shape.as_mut_slice())
                {
                    *last = cols;
                }
                &tensor.shape
            }
            (None, Some(declared)) => declared,
            // A tensor that was removed since then stays removed.
            (None, None) => continue,
        };
        if encoding.byte_len(shape).is_none() || !encoding.fits(shape) {
            let why = format!("the shape or scale of tensor {:?} makes no sense", hub.name);
            return Err(why.into());
        }
        let Some(index) = index else {
            let (name, shape) = (hub.name, shape.clone());
            place.insert(name.clone(), c.tensors.len());
            c.tensors.push(Tensor::with_data(name, encoding, shape, Data::Declared));
            continue;
        };
        // A declaration that was given data since then is no declaration.
        if hub.declared.is_some() {
            continue;
        }
        let twin = hub.alias.and_then(|name| c.tensors[*place.get(&name)?].view().cloned());
        let tensor = &mut c.tensors[index];
        tensor.dialect = hub.dialect;
        if hub.codes {
            tensor.take_as_codes_of(encoding)?;
        } else if encoding != tensor.encoding {
            tensor.origin = Some(encoding);
        }
        if let (Some(twin), Data::Stored(view, _)) = (twin, &mut tensor.data)
            && compared.insert((index, twin.place()))
        {
            budget.spend(view.len(), "bytes of tensors that are said to be others")?;
            if view.same_bytes(&twin)? {
                *view = twin;
            }
        }
    }
    Ok(())
}

impl Tensor {
    /// The stored integers are the codes of `encoding`, perhaps in a wider type than it has.
    fn take_as_codes_of(&mut self, encoding: Encoding) -> Result<(), String> {
        let stored = self.encoding.stored();
        let wrong = |codes: &str| format!("tensor {:?} does not hold {codes} codes", self.name);
        match &encoding {
            Encoding::Plain(_) => return Err("codes without a scale".into()),
            Encoding::Blocks(_) | Encoding::Product(_) => {
                let bytes = self.view().map(View::len);
                if bytes != encoding.byte_len(&self.shape) {
                    return Err(wrong(&encoding.name()));
                }
                self.encoding = encoding;
            }
            Encoding::Scaled(scaled) => {
                if scaled.codes != stored && !scaled.codes.wider().contains(&stored) {
                    return Err(wrong(scaled.codes.name()));
                }
                let scaling = scaled.scaling.clone();
                self.encoding = Encoding::Scaled(Arc::new(Scaled { codes: stored, scaling }));
                self.origin = (self.encoding != encoding).then_some(encoding);
            }
        }
        Ok(())
    }
}
