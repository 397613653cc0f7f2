//! The methods of MCF: signed codes that are multiplied with the scale of their block.

use super::{
    BLOCK, BLOCKS_PER_SUPER, BlockCodec, BlockRow, FRONT_REGIONS, Flaw, FlawKind, Front, FrontMut,
    Quantizer, Recipe, Region, ScaleTooLarge, pack,
};
use half::f16;

/// A sub-scale has six bits.
pub(super) const LARGEST_SUB_SCALE: u8 = 63;

/// A method of MCF: the bits of a code, and how scales are stored.
///
/// A `q*` block has a scale of its own (f16). A `k*` block has a six-bit sub-scale, by which the
/// scale (f16) of its super block of eight is multiplied:
///
/// ```text
/// scale = super * (sub-scale / 32)
/// ```
///
/// The value of a code is `scale * code`. Codes are two's complement, packed LSB first; the most
/// negative one is not used. Blocks go along a row; the last of a row is filled up with zero codes.
/// Before the codes of all rows stand the scales of all rows, then the sub-scales.
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

    fn row<'a>(
        self,
        [scales, sub_scales]: Front<'a>,
        codes: &'a [u8],
        cols: usize,
    ) -> BlockRow<'a> {
        BlockRow { method: self, cols, scales, sub_scales, codes }
    }

    /// The code that decodes to exactly this value, if there is one.
    #[allow(clippy::cast_possible_truncation)]
    fn exact_code(self, value: f32, scale: f32) -> Option<u8> {
        let code = if scale == 0.0 { 0.0 } else { (value / scale).round() };
        let largest = f32::from(self.largest_code());
        let there = (-largest - 1.0..=largest).contains(&code);
        (there && (scale * code).to_bits() == value.to_bits())
            .then_some((code as i8).cast_unsigned())
    }
}

impl std::fmt::Display for BlockType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl BlockCodec for BlockType {
    fn name(&self) -> &'static str {
        match self {
            BlockType::Q8 => "q8",
            BlockType::Q4 => "q4",
            BlockType::K6 => "k6",
            BlockType::K4 => "k4",
            BlockType::K3 => "k3",
            BlockType::K2 => "k2",
        }
    }

    fn front(&self) -> [Region; FRONT_REGIONS] {
        let of_blocks = |bytes: usize| Region { values: BLOCK, bytes };
        if self.has_super_blocks() {
            [Region { values: BLOCK * BLOCKS_PER_SUPER, bytes: 2 }, of_blocks(1)]
        } else {
            [of_blocks(2), Region::NONE]
        }
    }

    fn codes(&self) -> Region {
        Region { values: BLOCK, bytes: self.block_bytes() }
    }

    fn alignment(&self) -> u64 {
        64
    }

    fn decode(&self, front: Front<'_>, codes: &[u8], start: usize, out: &mut [f32]) {
        self.row(front, codes, start + out.len()).decode_range(start, out);
    }

    fn encode(
        &self,
        recipe: &Recipe<'_>,
        values: &[f32],
        [scales, sub_scales]: FrontMut<'_>,
        codes: &mut [u8],
    ) -> Result<(), ScaleTooLarge> {
        let quantizer = Quantizer { method: *self, recipe: *recipe };
        quantizer.encode(values, scales, sub_scales, codes)?;
        check_finite(scales)
    }

    fn make_codes(
        &self,
        recipe: &Recipe<'_>,
        values: &[f32],
        [scales, sub_scales]: Front<'_>,
        codes: &mut [u8],
    ) {
        let quantizer = Quantizer { method: *self, recipe: *recipe };
        quantizer.make_codes(values, scales, sub_scales, codes);
    }

    /// No scale of zero hides a code, none is infinite, and the blocks' ends behind the last column
    /// are zero.
    fn is_recoverable(&self, front: Front<'_>, codes: &[u8], values: usize) -> bool {
        let row = self.row(front, codes, values);
        row.blocks().all(|(block, used)| {
            let (scale, codes) = (row.block_scale(block), row.block_codes(block));
            scale.is_finite()
                && codes[used..].iter().all(|&c| c == 0)
                && (scale != 0.0 || codes.iter().all(|&c| c == 0))
        })
    }

    fn restore(&self, values: &[f32], front: Front<'_>, codes: &mut [u8]) -> Result<(), usize> {
        let row = self.row(front, &[], values.len());
        let blocks = values.chunks(BLOCK).zip(codes.chunks_exact_mut(self.block_bytes()));
        for (block, (values, packed)) in blocks.enumerate() {
            let scale = row.block_scale(block);
            let mut codes = [0u8; BLOCK];
            for (i, (code, &value)) in codes.iter_mut().zip(values).enumerate() {
                *code = self.exact_code(value, scale).ok_or(block * BLOCK + i)?;
            }
            pack(*self, &codes, packed);
        }
        Ok(())
    }

    fn check(&self, front: Front<'_>, codes: &[u8], values: usize, found: &mut dyn FnMut(Flaw)) {
        let row = self.row(front, codes, values);
        if row.is_flawless() {
            return;
        }
        let most_negative = -self.largest_code() - 1;
        let per_scale = if self.has_super_blocks() { BLOCKS_PER_SUPER } else { 1 };
        for (block, used) in row.blocks() {
            if let Some(&share) = row.sub_scales.get(block).filter(|s| **s > LARGEST_SUB_SCALE) {
                let kind = FlawKind::SubScale { found: share, largest: LARGEST_SUB_SCALE };
                found(Flaw { kind, region: Some(1), bytes: block..block + 1 });
            }
            let scale = row.block_scale(block);
            if !scale.is_finite() {
                let at = 2 * (block / per_scale);
                found(Flaw { kind: FlawKind::Scale(scale), region: Some(0), bytes: at..at + 2 });
            }
            let codes = row.block_codes(block);
            let size = self.block_bytes();
            let bytes = block * size..(block + 1) * size;
            if let Some(i) = codes.iter().position(|&c| c == most_negative) {
                let kind = FlawKind::MostNegative { code: most_negative, value: block * BLOCK + i };
                found(Flaw { kind, region: None, bytes: bytes.clone() });
            }
            if let Some(&code) = codes[used..].iter().find(|&&c| c != 0) {
                found(Flaw { kind: FlawKind::Filling(code), region: None, bytes });
            }
        }
    }

    fn as_signed(&self) -> Option<BlockType> {
        Some(*self)
    }
}

/// The reference tool lets scales become infinite; a file with such values is of no use.
fn check_finite(scales: &[u8]) -> Result<(), ScaleTooLarge> {
    let (scales, _) = scales.as_chunks::<2>();
    match scales.iter().position(|scale| !f16::from_le_bytes(*scale).is_finite()) {
        None => Ok(()),
        Some(index) => {
            Err(ScaleTooLarge { index, scale: f16::from_le_bytes(scales[index]).to_f32() })
        }
    }
}
