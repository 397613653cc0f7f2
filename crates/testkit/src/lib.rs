//! What the tests share: valid files of every format, broken variants of them, sources that hand out
//! bytes in pieces or fail on demand, values to compare, data from outside the repository, and lists that must not
//! shrink.

#![forbid(unsafe_code)]

mod bombs;
mod compare;
pub mod data;
mod embd;
mod fixtures;
mod mutants;
mod ranges;
mod snapshot;
mod words;

pub use bombs::{Bomb, bombs};
pub use compare::{same_values, stored, values};
pub use embd::embd_with_shifted_data;
pub use fixtures::{Fixture, blocks_container, dated, fixtures, rich_container, scaled_container};
pub use mutants::{bit_flips, boundary_integers, structural_bytes, truncations};
pub use ranges::{Ranges, Reads};
pub use snapshot::assert_snapshot;
