//! Tensors that are the same bytes of a source stay one range in the target.

use crate::model::{Encoding, Tensor};
use crate::wire::Span;
use std::collections::HashMap;

/// Where data was placed, by where it came from.
#[derive(Debug, Default)]
pub struct SharedData<'a> {
    placed: HashMap<Span, Vec<(&'a Tensor, Encoding, u64)>>,
}

impl<'a> SharedData<'a> {
    /// The offset at which the very bytes that `tensor` would be stored as already are.
    pub fn offset(&self, tensor: &Tensor, encoding: &Encoding) -> Option<u64> {
        let view = tensor.view().filter(|v| !v.is_empty())?;
        let same = |(first, stored, _): &&(&Tensor, Encoding, u64)| {
            let as_they_are = first.encoding == *stored && tensor.encoding == *encoding;
            let alike = first.encoding == tensor.encoding && stored == encoding;
            // Scales belong to rows and columns; plain values are the same in any shape.
            let shaped = first.shape == tensor.shape || matches!(encoding, Encoding::Plain(_));
            let there = first.view().is_some_and(|v| v.same_place(view));
            there && shaped && (as_they_are || alike)
        };
        self.placed.get(&view.span())?.iter().find(same).map(|(_, _, offset)| *offset)
    }

    /// Notes where the data of a tensor was placed.
    pub fn place(&mut self, tensor: &'a Tensor, encoding: &Encoding, offset: u64) {
        if let Some(view) = tensor.view() {
            let list = self.placed.entry(view.span()).or_default();
            list.push((tensor, encoding.clone(), offset));
        }
    }
}
