//! Lists of texts behind their lengths.

use super::{Cursor, Rule, Severity, Span, Stop};
use crate::Error;
use crate::source::{Bytes, Source};

/// The bytes of `count` entries that stand in `span`: a length of `WIDTH` bytes, the text, and `behind`
/// more bytes each. Those behind them are not read, and where the entries go beyond the span, those
/// that do not. So memory is taken for entries that are there, whatever a count says.
///
/// # Errors
/// If they can't be read.
pub(crate) fn entries<const WIDTH: usize>(
    source: &Source,
    span: Span,
    count: u64,
    behind: u64,
) -> Result<Bytes, Error> {
    const ANY: Rule = Rule { id: "", severity: Severity::Error, title: "" };
    // What is mapped or in memory need not be looked at twice.
    if source.resident().is_some() {
        return source.in_place(span);
    }
    let mut c = Cursor::new(source, span.clone(), ANY);
    let mut walk = || -> Result<(), Stop> {
        for _ in 0..count {
            let mut length = [0; 8];
            length[..WIDTH].copy_from_slice(c.take(WIDTH as u64, "")?);
            c.skip(u64::from_le_bytes(length).saturating_add(behind), "")?;
        }
        Ok(())
    };
    Stop::unless_broken(walk())?;
    source.bytes(span.start..c.position())
}
