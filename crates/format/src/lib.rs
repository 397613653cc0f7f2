//! Bytes of model and embedding files to one [`Container`], and back.
//!
//! * [`source`]: where bytes come from (mapped or owned), and the files beside a file.
//! * [`wire`]: bounded reading, rules and findings, the region map.
//! * [`model`]: what every file becomes, whatever its format was.
//! * [`formats`]: one folder a format behind the [`Format`] trait, and the one table of them all.
//! * [`sink`]: plans are executed and files replaced atomically.
//!
//! ```
//! use weighbridge_format::{Input, Options, open};
//!
//! let bytes = b"\x93NUMPY\x01\x00\x38\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}\n\0\0\x80\x3f";
//! let input = Input::from_bytes("one.npy", bytes.to_vec());
//! let container = open(&input, &Options::default())?;
//! assert_eq!(container.tensors[0].shape, [1]);
//! # Ok::<(), weighbridge_format::Error>(())
//! ```

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

mod error;
pub mod formats;
pub mod model;
mod options;
pub mod sink;
pub mod source;
pub mod wire;

pub use error::Error;
pub use formats::{Format, FormatInfo, check, detect, find, open, read, table};
pub use model::{Container, Encoding, Tensor, Vocabulary};
pub use options::{OptionSpec, Options};
pub use source::{Input, Source, View};
pub use wire::{Finding, Findings, Severity};
