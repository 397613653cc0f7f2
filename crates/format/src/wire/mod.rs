//! The level of bytes: bounded reading, rules and findings, the map of a file's regions.

mod budget;
mod bytes;
mod cursor;
mod entries;
mod finding;
mod regions;
mod stop;

pub use budget::Budget;
pub use bytes::{MARK, align_up, fnv1a32, numel, put_u16, put_u32, put_u64, to_len, without_mark};
pub use cursor::Cursor;
pub(crate) use entries::entries;
pub use finding::{Finding, Findings, Rule, Severity, Unchecked};
pub use regions::{APPENDED, Region, Regions, What};
pub use stop::Stop;

/// Bytes `start..end` of a file.
pub type Span = std::ops::Range<u64>;
