//! How much may be written of a file: tensors that share a range, or that a few codes stand for, could
//! fill a disk.

use super::Plan;
use crate::model::{Container, Encoding, NO_FORMAT, Tensor};
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

    /// Whether its values alone, a byte each at least where they have to be computed, would be too
    /// much. Some formats have to go through them all to say how much they write.
    pub(crate) fn check_values_fit(&self) -> Result<(), Error> {
        let mut seen = HashSet::new();
        let coded = |t: &&Tensor| matches!(t.encoding, Encoding::Product(_));
        let distinct = self.tensors.iter().filter(coded).filter(|t| {
            let place = t.view().map(|view| view.place());
            place.is_none_or(|place| seen.insert(place))
        });
        let least = distinct.fold(0u64, |sum, t| sum.saturating_add(t.count()));
        check(least, self.most_output())
    }
}

impl Plan {
    /// # Errors
    /// [`Error::Limit`] if more would be written than the input allows, and that was not accepted.
    pub(crate) fn check_growth(&self) -> Result<(), Error> {
        check(self.size(), self.most)
    }
}

fn check(bytes: u64, most: u64) -> Result<(), Error> {
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
