//! Open, check, convert and shrink files of embeddings and model weights, and use them.
//!
//! The walk is `Input -> Container -> Edit -> Plan -> file, writer or bytes`, and every step is a
//! function on values:
//!
//! ```
//! use weighbridge::quantize::{Method, QuantizeSettings};
//! use weighbridge::{Container, Edit, Progress, plan, quantize};
//!
//! # fn main() -> Result<(), weighbridge::Error> {
//! # let rows = (0..64).map(|i| (i as f32).sin()).collect();
//! let container = Container::builder().values("w", &[2, 32], rows).build()?;
//!
//! // Convert it.
//! let renamed = Edit::new().rename("w", "weights").apply(container)?;
//! let bytes = plan(&renamed, "safetensors")?.to_bytes()?;
//!
//! // Quantize it.
//! let settings = QuantizeSettings::new(Method::from_name("q8").unwrap());
//! let small = quantize(&renamed, &settings, &mut Progress::none())?;
//! assert!(small.report.loss.relative_rmse < 0.01);
//! # let folder = std::env::temp_dir().join(format!("weighbridge-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder).unwrap();
//! small.plan.write(folder.join("small.mcf"), &mut Progress::none())?;
//!
//! // Open what was written.
//! let small = weighbridge::open(folder.join("small.mcf"))?;
//! assert_eq!(small.tensors[0].encoding.name(), "q8");
//! # std::fs::remove_dir_all(&folder).unwrap();
//! # Ok(())
//! # }
//! ```
//!
//! * [`open`] a file of any format, or bytes ([`Formats::open`]), as a [`Container`], or build one;
//! * [`verify()`] an input against every rule of its format;
//! * [`Edit`] a container, [`plan()`] it in another format with every loss listed, and write that;
//! * [`quantize()`] its weights into fewer bits, with the error measured;
//! * [`distill`] a static model out of a sentence model;
//! * [`Embeddings`]: words to vectors, and to their neighbours;
//! * [`Encoder`]: texts to vectors, with a model of any family in docs/models.md; [`embed`] many into a file;
//! * [`summary()`] and [`stats()`] tell what is inside, [`diff()`] how two containers differ.
//!
//! Errors have kinds that can be matched, see [`Error`]. Long work takes a [`Progress`], which can
//! stop it. Formats of others are added with [`Formats::with`].
//!
//! Files are mapped, read at positions ([`source::Access`]), or come from anything that gives ranges
//! of bytes ([`source::ReadRange`]).
//!
//! # Features
//!
//! All but the last are on by default. Without any, everything works from memory: no files, no threads, no clock.
//!
//! | feature | what it adds |
//! |---|---|
//! | `fs` | files and folders of the system, and the time of day |
//! | `mmap` | mapping files into memory |
//! | `signals` | removing unfinished files when the process is told to end |
//! | `threads` | working on all cores |
//! | `models` | models by name: the caches, the hub, PyPI |
//! | `tokenizers` | tokenizers of other kinds than BERT's |
//! | `default-model` | a small static model that is always there; not on by default |

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod array;
#[cfg(feature = "fs")]
mod conversion;
mod describe;
mod diff;
pub mod distill;
mod edit;
pub mod embed;
pub mod index;
mod metadata;
#[cfg(feature = "models")]
pub mod models;
mod pattern;
mod quantization;
pub mod quantize;
pub mod records;
mod rows;
mod stats;
mod summary;
pub mod table;
mod verify;
pub mod words;

pub use array::Array;
#[cfg(feature = "fs")]
pub use conversion::{Conversion, ConvertedFile, QuantizedFile};
pub use describe::parse_description;
pub use diff::{
    Compared, ContentDifference, DiffSettings, Difference, TensorDifference, ValueDifference,
    VectorDifference, default_texts, diff, diff_vectors,
};
pub use edit::Edit;
pub use index::{Index, Recall, recall};
pub use metadata::{check_changes, check_metadata};
pub use pattern::Pattern;
pub use quantization::Quantization;
pub use quantize::quantize;
pub use rows::TensorRows;
pub use stats::{Bin, Stats, stats};
pub use summary::{
    Detail, ModelSummary, Summary, describe_region, model_summary, summary, vocabulary,
};
pub use verify::{Verdict, verify};
pub use weighbridge_codec as codec;
pub use weighbridge_encoder::{self as encoder, Encoder, Reranker};
pub use weighbridge_format::{
    Advice, Container, Encoding, Error, ErrorKind, ErrorReport, Finding, Findings, Format,
    FormatInfo, Formats, Input, Listing, OptionSpec, Options, Plan, Problem, Progress,
    QuantizedContent, Reading, Severity, Stage, Status, Tensor, Unchecked, View, Vocabulary,
    formats, model, plan, samples, sink, source, spec, wire,
};
pub use weighbridge_search as search;
pub use words::{Embeddings, Lookup};

#[cfg(feature = "fs")]
use std::path::Path;
#[cfg(feature = "fs")]
pub use weighbridge_format::Output;

/// Opens a file (or a model directory) of any format that comes with the library.
///
/// # Errors
/// [`Error::NotFound`] and [`Error::Io`] if it can't be read, [`Error::Unrecognised`] if it is of no
/// known format, [`Error::Malformed`] if it breaks a rule of its format.
#[cfg(feature = "fs")]
pub fn open(path: impl AsRef<Path>) -> Result<Container, Error> {
    Formats::builtin().open(&Input::open(path.as_ref())?, &Options::default())
}

/// Plans a container in a format, by its id.
///
/// # Errors
/// [`Error::Refused`] if there is no such format, or the container does not fit it.
pub fn plan(container: &Container, format: &str) -> Result<Plan, Error> {
    Formats::builtin().named(format, "to")?.plan(container, &Options::default())
}
