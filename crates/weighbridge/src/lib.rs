//! Open, check, convert and shrink files of embeddings and model weights.
//!
//! * [`open`] a file of any format as a [`Container`];
//! * [`verify()`] it against every rule of its format;
//! * [`convert()`] it into another format, with every loss listed before a byte is written;
//! * [`quantize()`] its weights into fewer bits, with the error measured;
//! * [`Embeddings`]: words to vectors, and to their neighbours;
//! * [`Encoder`]: texts to vectors, with a model of BERT's family; [`embed`] many into a file;
//! * [`edit_metadata`] of a file, with the rest as it was;
//! * [`summary()`] and [`stats()`] tell what is inside, [`diff()`] how two files differ.
//!
//! ```no_run
//! # fn main() -> Result<(), weighbridge::Error> {
//! let container = weighbridge::open("minilm.weights")?;
//! for tensor in &container.tensors {
//!     println!("{} {} {:?}", tensor.name, tensor.encoding.name(), tensor.shape);
//! }
//! let words = container.tensor("embeddings.word_embeddings.weight").unwrap();
//! let first_row = words.values_f32(0, 384);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

pub mod convert;
mod diff;
pub mod embed;
mod metadata;
pub mod models;
pub mod quantize;
pub mod samples;
mod stats;
mod summary;
mod verify;
pub mod words;

pub use convert::{Conversion, Request, convert, pattern};
pub use diff::{Difference, TensorDifference, ValueDifference, diff};
pub use metadata::{MetadataRequest, edit_metadata};
pub use quantize::{QuantizeReport, QuantizeRequest, quantize};
pub use stats::{Bin, Stats, stats};
pub use summary::{Detail, Summary, describe_region, summary};
pub use verify::{Verdict, verify};
pub use weighbridge_codec as codec;
pub use weighbridge_encoder::{self as encoder, Encoder};
pub use weighbridge_format::{
    Container, Encoding, Error, Finding, Findings, Format, FormatInfo, Input, OptionSpec, Options,
    Severity, Tensor, View, Vocabulary, check, find, model, sink, source, table, wire,
};
pub use weighbridge_search as search;
pub use words::{Embeddings, Lookup};

pub use weighbridge_format::open as open_with;

use std::path::Path;

/// Opens a file (or a model directory) of any known format.
pub fn open(path: impl AsRef<Path>) -> Result<Container, Error> {
    open_with(&Input::open(path.as_ref())?, &Options::default())
}
