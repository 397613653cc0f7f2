//! How much may be written of a file: tensors that share a range, or that a few codes stand for, could
//! fill a disk.

use super::{Holds, Plan};
use crate::model::{Container, Encoding, NO_FORMAT, Scaling};
use crate::wire::Budget;
use crate::{Advice, Error};
use std::collections::HashSet;

impl Container {
    /// Allows what is written to be more than [`Budget::GROWTH`] times as large as the file, if `yes`.
    #[must_use]
    pub fn accept_growth(mut self, yes: bool) -> Container {
        self.may_grow |= yes;
        self
    }

    /// Bytes that may be written of it; any number if it came from no file.
    pub(crate) fn most_output(&self) -> u64 {
        let files = self.attachments.iter().map(|a| a.data.len());
        let input = files.fold(self.size, u64::saturating_add);
        match self.may_grow || self.format == NO_FORMAT {
            true => u64::MAX,
            false => Budget::for_copies(input).most(),
        }
    }

    /// Whether so many bytes may be written of it.
    ///
    /// # Errors
    /// [`Error::Limit`] if that is far more than it has.
    pub fn limit_output(&self, bytes: u64) -> Result<(), Error> {
        check_growth(bytes, self.most_output())
    }

    /// Whether what is made of it would be too much before it is laid out: scales, which may be shared
    /// by tensors here and stand beside each there, and where codes of parts become values, these.
    /// Text that is made of them is known to be too long only when it has become so.
    pub(crate) fn check_output(&self, holds: &Holds) -> Result<(), Error> {
        let mut seen = HashSet::new();
        let mut least = 0u64;
        for tensor in &self.tensors {
            least = least.saturating_add(match &tensor.encoding {
                Encoding::Scaled(scaled) => match &scaled.scaling {
                    Scaling::Affine { scales, .. } => 4 * scales.len() as u64,
                    _ => 0,
                },
                Encoding::Product(_) if !holds.product => {
                    let place = tensor.view().map(|view| view.place());
                    let fresh = place.is_none_or(|place| seen.insert(place));
                    if fresh { tensor.count() } else { 0 }
                }
                _ => 0,
            });
        }
        self.limit_output(least)
    }
}

impl Plan {
    /// # Errors
    /// [`Error::Limit`] if more would be written than the input allows, and that was not accepted.
    pub(crate) fn check_growth(&self) -> Result<(), Error> {
        check_growth(self.size(), self.most)
    }
}

/// Whether so many bytes may be written, where that is the most.
pub(crate) fn check_growth(bytes: u64, most: u64) -> Result<(), Error> {
    if bytes <= most {
        return Ok(());
    }
    let times = Budget::GROWTH;
    let what = format!("{bytes} bytes of output, more than {times} times the input");
    Err(Error::Limit {
        what,
        most,
        advice: Advice::set("allow-growth", "writes them all the same"),
    })
}
