//! Bytes of model and embedding files to one [`Container`], and back.
//!
//! * [`source`]: where bytes come from (mapped or owned), and the files beside a file.
//! * [`wire`]: bounded reading, rules and findings, the region map.
//! * [`model`]: what every file becomes, whatever its format was.
//! * [`plan`]: what of a container fits a format, what is lost, and every byte of the files to write.
//! * [`formats`]: one folder and one description a format, and [`Formats`], the table of them all.
//! * [`sink`]: plans are carried out and files replaced atomically.
//! * [`spec`]: what a model is, in one description.
//! * [`samples`]: small made-up content, to try things out with.
//!
//! ```
//! use weighbridge_format::{Formats, Input, Options};
//!
//! let bytes = b"\x93NUMPY\x01\x00\x38\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}\n\0\0\x80\x3f";
//! let input = Input::from_bytes("one.npy", bytes.to_vec());
//! let container = Formats::builtin().open(&input, &Options::default())?;
//! assert_eq!(container.tensors[0].shape, [1]);
//! # Ok::<(), weighbridge_format::Error>(())
//! ```

#![warn(missing_docs)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

mod advice;
mod error;
pub mod formats;
pub mod model;
mod nearest;
mod options;
pub mod plan;
mod progress;
pub mod samples;
pub mod sink;
pub mod source;
pub mod spec;
pub mod wire;

pub use advice::{Advice, Listing};
pub use error::{Error, ErrorKind, ErrorReport, Problem};
pub use formats::{Format, FormatInfo, Formats, QuantizedContent, Reading};
pub use model::{Container, Encoding, Tensor, Vocabulary};
pub use nearest::nearest;
pub use options::{OptionSpec, Options};
pub use plan::Plan;
pub use progress::{Progress, Stage, Status};
#[cfg(feature = "fs")]
pub use sink::Output;
pub use source::{Input, Source, View};
pub use wire::{Finding, Findings, Severity, Unchecked};
