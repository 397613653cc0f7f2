//! Block quantization: signed codes of 2 to 8 bits, a scale for every 32 of a row.
//!
//! The six methods of MCF. A `q*` block has a scale of its own (f16). A `k*` block has a six-bit
//! sub-scale (`sub_scales`), by which the scale (f16) of its super block of eight is multiplied:
//!
//! ```text
//! scale = super * (sub-scale / 32)
//! ```
//!
//! The value of a code is `scale * code`. Codes are two's complement, packed LSB first; the most
//! negative one is not used. Blocks go along a row; the last of a row is filled up with zero codes.

mod decode;
mod encode;
mod layout;
mod single;

pub use encode::{BlockEncoder, Recipe, ScaleTooLarge, pack};
pub use layout::{BlockRow, BlockRows, Layout};

/// Values that have a scale in common.
pub const BLOCK: usize = 32;
/// Blocks that have a super block's scale in common, for the `k*` methods.
pub const BLOCKS_PER_SUPER: usize = 8;

/// A method of block quantization: the bits of a code, and how scales are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum BlockType {
    /// Codes of eight bits, a scale for each block: 8.5 bits a value.
    Q8,
    /// Codes of four bits, a scale for each block: 4.5 bits a value.
    Q4,
    /// Codes of six bits, a sub-scale for each block: about 6.3 bits a value.
    K6,
    /// Codes of four bits, a sub-scale for each block: about 4.3 bits a value.
    K4,
    /// Codes of three bits, a sub-scale for each block: about 3.3 bits a value.
    K3,
    /// Codes of two bits, a sub-scale for each block: about 2.3 bits a value.
    K2,
}

impl BlockType {
    /// Every method.
    pub const ALL: [BlockType; 6] =
        [BlockType::Q8, BlockType::Q4, BlockType::K6, BlockType::K4, BlockType::K3, BlockType::K2];

    /// The short name used in files, reports and options, such as `q8`.
    pub const fn name(self) -> &'static str {
        match self {
            BlockType::Q8 => "q8",
            BlockType::Q4 => "q4",
            BlockType::K6 => "k6",
            BlockType::K4 => "k4",
            BlockType::K3 => "k3",
            BlockType::K2 => "k2",
        }
    }

    /// The method with this short name.
    pub fn from_name(name: &str) -> Option<BlockType> {
        BlockType::ALL.into_iter().find(|m| m.name() == name)
    }

    /// Bits of a code.
    pub const fn bits(self) -> usize {
        match self {
            BlockType::Q8 => 8,
            BlockType::K6 => 6,
            BlockType::Q4 | BlockType::K4 => 4,
            BlockType::K3 => 3,
            BlockType::K2 => 2,
        }
    }

    /// The largest code; the smallest is its negative.
    pub const fn largest_code(self) -> i8 {
        i8::MAX >> (8 - self.bits())
    }

    /// Bytes of a block's codes.
    pub const fn block_bytes(self) -> usize {
        BLOCK * self.bits() / 8
    }

    /// Whether eight blocks make a super block with one scale, and each block has a sub-scale:
    /// `k*`.
    pub const fn has_super_blocks(self) -> bool {
        matches!(self, BlockType::K6 | BlockType::K4 | BlockType::K3 | BlockType::K2)
    }
}

impl std::fmt::Display for BlockType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
