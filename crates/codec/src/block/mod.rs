//! Block quantization: codes of few bits, with a scale for some values of a row.
//!
//! A [`BlockCodec`] says how much room blocks take ([`Layout`]), decodes and encodes them. All that
//! are known stand in one table, [`codecs`]; whoever has another one uses it as these.
//! [`BlockType`] are the methods of MCF.

mod codec;
mod decode;
mod encode;
mod layout;
mod recipe;
mod signed;
mod single;

pub use codec::{BlockCodec, FRONT_REGIONS, Flaw, FlawKind, Front, FrontMut, Region};
pub use encode::{Quantizer, pack};
pub use layout::{Layout, Place};
pub use recipe::{BlockEncoder, Recipe, ScaleTooLarge};
pub use signed::BlockType;
use single::BlockRow;

/// Values that have a scale in common, for the methods of MCF.
pub const BLOCK: usize = 32;
/// Blocks that have a super block's scale in common, for the `k*` methods.
pub const BLOCKS_PER_SUPER: usize = 8;

/// Every codec that comes with the library.
static CODECS: [&dyn BlockCodec; 6] = [
    &BlockType::Q8,
    &BlockType::Q4,
    &BlockType::K6,
    &BlockType::K4,
    &BlockType::K3,
    &BlockType::K2,
];

/// Every codec that comes with the library.
pub fn codecs() -> &'static [&'static dyn BlockCodec] {
    &CODECS
}

/// The codec with this name, such as `q8`.
pub fn codec_named(name: &str) -> Option<&'static dyn BlockCodec> {
    codecs().iter().copied().find(|codec| codec.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_codecs_and_regions_share_their_cuts() {
        for codec in codecs() {
            assert_eq!(codec_named(codec.name()), Some(*codec));
            let regions = codec.front().into_iter().chain([codec.codes()]);
            assert!(regions.into_iter().all(|r| codec.cut().is_multiple_of(r.values)));
        }
        assert_eq!(codec_named("q2"), None);
        assert_eq!(codecs().len(), BlockType::ALL.len());
    }
}
