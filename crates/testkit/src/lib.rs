//! What the tests share: valid files of every format, broken variants of them, a file system that
//! fails on demand, and values to compare.

#![forbid(unsafe_code)]

mod compare;
mod conformance;
mod embd;
mod faults;
mod fixtures;
mod mutants;
mod words;

pub use compare::{same_values, stored, values};
pub use conformance::conformance;
pub use embd::embd_with_shifted_data;
pub use faults::FailingFiles;
pub use fixtures::{Fixture, blocks_container, fixtures, rich_container, scaled_container};
pub use mutants::{bit_flips, boundary_integers, structural_bytes, truncations};
