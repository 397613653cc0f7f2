//! Numbers as they stand in model files.
//!
//! * [`DType`]: every element type that any of the formats knows, with its width and its kind.
//! * [`Scalar`]: one value, wide enough to hold any of them exactly.
//! * [`element`]: reading and writing single values of a type.
//! * [`convert`]: whole slices from one type to another, and how much that changes the values.
//! * [`minifloat`]: floats of eight bits and fewer.
//! * [`scan`]: looking for NaN and infinity.
//! * [`block`]: block quantization: codecs, and the table of them.
//! * [`dot`]: products of rows with vectors, as they are stored.
//! * [`gram`]: sums of products of columns, over many rows.
//! * [`integer`]: whole tensors as integers with one scale.
//! * [`memory`]: memory for weights, in huge pages.
//! * [`panel`]: vectors packed side by side for products with many.
//! * [`parallel`]: loops on all cores, where there are threads.
//! * [`product`]: product quantization, the codes of word embeddings.
//! * [`simd`]: vectors for each kind of processor, which the kernels are written with.
//! * [`tally`]: counts and moments of many values.

#![warn(missing_docs)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

pub mod block;
pub mod convert;
pub mod dot;
mod dtype;
pub mod element;
pub mod gram;
pub mod integer;
#[allow(unsafe_code)]
pub mod memory;
pub mod minifloat;
pub mod panel;
pub mod parallel;
pub mod product;
pub mod scan;
#[allow(unsafe_code)]
pub mod simd;
pub mod tally;

pub use dtype::{Class, DType};
pub use element::Scalar;
