//! What is asked of an encoder, and why it may refuse.

/// How values are quantized, whatever the codec is.
#[derive(Clone, Copy, Debug)]
pub struct Recipe<'a> {
    /// How scales and codes are chosen.
    pub encoder: BlockEncoder,
    /// Bounds that values are clamped to first.
    pub clip: (f32, f32),
    /// How much the squared error of each column counts, at least 0; all count the same without it.
    /// [`BlockEncoder::Reference`] has no use for it.
    pub importance: Option<&'a [f32]>,
}

/// How scales and codes are chosen for values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockEncoder {
    /// Searches for scales with a small squared error.
    Best,
    /// Makes the same bytes as the reference tool of the format that the codec comes from.
    Reference,
}

/// The error of values that need a scale beyond the range of f16.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScaleTooLarge {
    /// Which scale of the row: of a block, or of a super block.
    pub index: usize,
    /// The scale that the values need.
    pub scale: f32,
}

impl std::fmt::Display for ScaleTooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "scale {} of the row is {}, beyond the range of f16", self.index, self.scale)
    }
}

impl std::error::Error for ScaleTooLarge {}
