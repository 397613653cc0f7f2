//! Work on tensors that share their data is done once.

use super::{Container, Data, Encoding, NO_FORMAT, Tensor};
use crate::Error;
use crate::wire::{Budget, Span};
use std::collections::HashMap;

/// What there is too much of.
const WHAT: &str = "bytes of values that are made of far fewer in the file";

/// What was found out about tensors (or pairs of them), by their data. Thousands of names for one
/// range of a file are no more work than one; ranges that are not the same but overlap, or that are
/// read in many ways, come to an end with the budget.
#[derive(Debug)]
pub struct Once<'a, T, const N: usize = 1> {
    known: HashMap<[(usize, Span); N], Vec<Found<'a, T, N>>>,
    budget: Budget,
}

/// The tensors that were looked at, and what was found.
type Found<'a, T, const N: usize> = ([&'a Tensor; N], T);

impl<'a, T: Clone, const N: usize> Once<'a, T, N> {
    /// For tensors of these containers.
    pub fn new(containers: [&Container; N]) -> Self {
        let size = containers.iter().fold(0, |sum: u64, c| sum.saturating_add(c.size));
        let is_free = containers.iter().any(|c| c.may_grow || c.format == NO_FORMAT);
        let budget = if is_free { Budget::new(u64::MAX) } else { Budget::for_values(size) };
        Once { known: HashMap::new(), budget }
    }

    /// What `look` finds out, or found out before about tensors with the same data.
    ///
    /// # Errors
    /// Those of `look`; [`Error::Limit`] if there are far more values to look at than the files have
    /// bytes.
    pub fn of(
        &mut self,
        tensors: [&'a Tensor; N],
        look: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let places = tensors.map(|t| t.view().map(|view| view.place()));
        let place =
            places.iter().all(Option::is_some).then(|| places.map(Option::unwrap_or_default));
        if let Some(place) = &place {
            let mut known = self.known.get(place).into_iter().flatten();
            let same = |others: &[&Tensor; N]| (0..N).all(|i| tensors[i].same_data(others[i]));
            if let Some((_, found)) = known.find(|(others, _)| same(others)) {
                return Ok(found.clone());
            }
        }
        for tensor in tensors.iter().filter(|t| t.has_data()) {
            let bytes = tensor.count().saturating_mul(4);
            self.budget.spend(bytes, WHAT)?;
        }
        let found = look()?;
        if let Some(place) = place {
            self.known.entry(place).or_default().push((tensors, found.clone()));
        }
        Ok(found)
    }
}

impl Container {
    /// Whether so many values can be gone through, one by one.
    ///
    /// # Errors
    /// [`Error::Limit`] if there are far more than the file has bytes.
    pub fn limit_values(&self, values: u64) -> Result<(), Error> {
        match self.may_grow || self.format == NO_FORMAT {
            true => Ok(()),
            false => Budget::for_values(self.size).spend(values.saturating_mul(4), WHAT),
        }
    }
}

impl Tensor {
    /// The same bytes of the same file, which mean the same values in the same order.
    pub fn same_data(&self, other: &Tensor) -> bool {
        let (Data::Stored(a, arranged), Data::Stored(b, arranged_b)) = (&self.data, &other.data)
        else {
            return false;
        };
        // Scales belong to rows and columns; plain values are the same in any shape.
        let plain = matches!(self.encoding, Encoding::Plain(_)) && !arranged.column_major;
        a.same_place(b)
            && arranged == arranged_b
            && (plain || self.shape == other.shape)
            && self.encoding == other.encoding
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::View;
    use weighbridge_codec::DType;

    #[test]
    fn shared_data_is_looked_at_once() {
        let view = View::owned(vec![0; 64]);
        let other = View::owned(vec![0; 64]);
        let tensor = |view: &View, dtype, shape: &[u64]| {
            Tensor::unchecked("t", Encoding::Plain(dtype), shape.to_vec(), view.clone())
        };
        let tensors = [
            tensor(&view, DType::F32, &[16]),
            tensor(&view, DType::F32, &[4, 4]),
            tensor(&view, DType::I32, &[16]),
            tensor(&other, DType::F32, &[16]),
        ];
        let (mut once, mut looks) = (Once::new([&Container::default()]), 0);
        for tensor in &tensors {
            once.of([tensor], || {
                looks += 1;
                Ok(())
            })
            .unwrap();
        }
        // Another shape is no other data; another type and another file are.
        assert_eq!(looks, 3);
    }

    #[test]
    fn there_is_an_end_to_data_that_is_read_in_other_ways() {
        let view = View::owned(vec![0; 1 << 20]);
        let tensors: Vec<_> = (0..1 << 12)
            .map(|i| {
                let part = view.part(i..view.len()).unwrap();
                let shape = vec![part.len()];
                Tensor::unchecked("t", Encoding::Plain(DType::U8), shape, part)
            })
            .collect();
        let mut once =
            Once::new([&Container { size: 1 << 20, format: "oinf", ..Container::default() }]);
        let stopped = tensors.iter().find_map(|t| once.of([t], || Ok(())).err());
        assert!(matches!(stopped, Some(Error::Limit { .. })));
    }
}
