//! What a block codec is: everything else asks it through this trait.

use super::{BlockType, Recipe, ScaleTooLarge};
use std::fmt::Debug;
use std::ops::Range;

/// Regions that may stand before the codes.
pub const FRONT_REGIONS: usize = 2;

/// What a part of a row has in each region before the codes.
pub type Front<'a> = [&'a [u8]; FRONT_REGIONS];
/// The same, to be written.
pub type FrontMut<'a> = [&'a mut [u8]; FRONT_REGIONS];

/// A way to store the values of a matrix as blocks of codes.
///
/// A row is `bytes` of codes for every `values` of it ([`BlockCodec::codes`]). Scales stand among
/// the codes, or in regions before the codes of all rows ([`BlockCodec::front`]). From these sizes
/// [`Layout`](super::Layout) derives where everything is.
///
/// Rows are worked on in parts that begin at a multiple of [`cut`](#method.cut) values. Quantizing
/// walks through the values twice: [`encode`](BlockCodec::encode) fixes the front and shows the
/// error, [`make_codes`](BlockCodec::make_codes) makes the codes while they are written. So only the
/// front is kept in between.
///
/// A call is for a part of a row, which is long: that it is dynamic costs nothing.
pub trait BlockCodec: Debug + Send + Sync {
    /// The short name used in files, reports and options, such as `q8`. No two codecs share one.
    fn name(&self) -> &'static str;

    /// The regions before the codes; none where scales stand among the codes.
    fn front(&self) -> [Region; FRONT_REGIONS] {
        [Region::NONE; FRONT_REGIONS]
    }

    /// The codes.
    fn codes(&self) -> Region;

    /// Every region begins at a multiple of so many bytes.
    fn alignment(&self) -> u64 {
        1
    }

    /// Fills `out` with the values from `start` on, counted from where `front` and `codes` begin.
    /// They go at least as far as the values do, and hold whatever a file may have.
    ///
    /// # Panics
    ///
    /// When `front` or `codes` are too short.
    fn decode(&self, front: Front<'_>, codes: &[u8], start: usize, out: &mut [f32]);

    /// Stores values: chooses what stands in the front, and makes the codes.
    ///
    /// # Errors
    ///
    /// When the values need a scale that can't be stored.
    ///
    /// # Panics
    ///
    /// When `front`, `codes` or the importance do not have the length that the values need.
    fn encode(
        &self,
        recipe: &Recipe<'_>,
        values: &[f32],
        front: FrontMut<'_>,
        codes: &mut [u8],
    ) -> Result<(), ScaleTooLarge>;

    /// Makes the codes once more, with the front that [`encode`](BlockCodec::encode) made of the same
    /// values.
    ///
    /// # Panics
    ///
    /// As for [`encode`](BlockCodec::encode).
    fn make_codes(&self, recipe: &Recipe<'_>, values: &[f32], front: Front<'_>, codes: &mut [u8]);

    /// Whether [`restore`](BlockCodec::restore) gives exactly these codes of a row of so many values.
    fn is_recoverable(&self, _front: Front<'_>, _codes: &[u8], _values: usize) -> bool {
        false
    }

    /// Makes the codes of values that were decoded with this front.
    ///
    /// # Errors
    ///
    /// The index of the first value that no code stands for.
    fn restore(&self, _values: &[f32], _front: Front<'_>, _codes: &mut [u8]) -> Result<(), usize> {
        Err(0)
    }

    /// Calls `found` with what no encoder would write in a row of so many values.
    fn check(
        &self,
        _front: Front<'_>,
        _codes: &[u8],
        _values: usize,
        _found: &mut dyn FnMut(Flaw),
    ) {
    }

    /// The method with signed codes that this is, if it is one. Calibration rounds their codes one
    /// by one.
    fn as_signed(&self) -> Option<BlockType> {
        None
    }
}

impl dyn BlockCodec {
    /// Rows can be cut at multiples of so many values: the most that share anything.
    pub fn cut(&self) -> usize {
        let front = self.front().into_iter().filter(|region| region.bytes > 0);
        front.map(|region| region.values).fold(self.codes().values, usize::max)
    }

    /// Bytes that so many values have in each region of the front.
    pub fn front_sizes(&self, values: usize) -> [usize; FRONT_REGIONS] {
        self.front().map(|region| region.size(values))
    }
}

/// A codec is its name.
impl PartialEq for dyn BlockCodec {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for dyn BlockCodec {}

/// So many bytes for every so many values of a row. Where a row does not end with whole ones, its
/// last values have all the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Values; those of a codec's other regions are divisors or multiples of it.
    pub values: usize,
    /// Their bytes.
    pub bytes: usize,
}

impl Region {
    /// A region without bytes.
    pub const NONE: Region = Region { values: 1, bytes: 0 };

    /// Bytes of so many values of a row.
    pub const fn size(&self, values: usize) -> usize {
        values.div_ceil(self.values) * self.bytes
    }

    /// The same; `None` when a `u64` can't say it.
    pub(super) fn checked_size(&self, values: u64) -> Option<u64> {
        values.div_ceil(self.values as u64).checked_mul(self.bytes as u64)
    }
}

/// Something in a row that no encoder would write.
#[derive(Clone, Debug, PartialEq)]
pub struct Flaw {
    /// What it is.
    pub kind: FlawKind,
    /// Which region of the front it is in; in the codes if there is none.
    pub region: Option<usize>,
    /// Its bytes among those of the row there.
    pub bytes: Range<usize>,
}

/// What may be wrong with a row.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum FlawKind {
    /// A scale that is not a finite number.
    Scale(f32),
    /// A sub-scale above the largest.
    SubScale {
        /// The sub-scale.
        found: u8,
        /// What it may be.
        largest: u8,
    },
    /// The most negative code, which has no positive counterpart.
    MostNegative {
        /// The code.
        code: i8,
        /// The value it stands for, counted from the start of the row.
        value: usize,
    },
    /// A code behind the end of the row that is not zero.
    Filling(i8),
}
