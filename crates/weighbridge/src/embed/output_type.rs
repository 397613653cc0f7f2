//! What the values of vectors are stored as: floats, a byte each, or a bit each. Bytes and bits are
//! those of sentence-transformers, computed in f32 as it does.

use serde::{Deserialize, Serialize};
use weighbridge_codec::{Class, DType};
use weighbridge_format::wire::to_len;
use weighbridge_format::{Advice, Container, Encoding, Error, Tensor};

use super::MadeWith;

/// A type that values of vectors are stored as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputType {
    /// As they are computed.
    #[default]
    F32,
    /// Rounded to 16 bits.
    F16,
    /// 256 steps between the ends of each dimension, from -128 on.
    Int8,
    /// The same from 0 on.
    Uint8,
    /// A bit a value, which says whether it is positive; eight in a byte, the first one highest, less
    /// 128.
    Binary,
    /// The same bytes as they are.
    Ubinary,
}

impl OutputType {
    /// All of them.
    pub const ALL: [OutputType; 6] = [
        OutputType::F32,
        OutputType::F16,
        OutputType::Int8,
        OutputType::Uint8,
        OutputType::Binary,
        OutputType::Ubinary,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            OutputType::F32 => "f32",
            OutputType::F16 => "f16",
            OutputType::Int8 => "int8",
            OutputType::Uint8 => "uint8",
            OutputType::Binary => "binary",
            OutputType::Ubinary => "ubinary",
        }
    }

    /// The type of this name, also as Python calls it.
    pub fn from_name(name: &str) -> Option<OutputType> {
        let name = match name {
            "float32" => "f32",
            "float16" => "f16",
            name => name,
        };
        OutputType::ALL.into_iter().find(|t| t.name() == name)
    }

    /// What is stored.
    pub const fn dtype(self) -> DType {
        match self {
            OutputType::F32 => DType::F32,
            OutputType::F16 => DType::F16,
            OutputType::Int8 | OutputType::Binary => DType::I8,
            OutputType::Uint8 | OutputType::Ubinary => DType::U8,
        }
    }

    /// How many numbers are stored of a vector with so many values.
    pub const fn width(self, dim: usize) -> usize {
        match self {
            OutputType::Binary | OutputType::Ubinary => dim.div_ceil(8),
            _ => dim,
        }
    }

    /// Numbers are codes, which say nothing without the ranges or are bits.
    pub const fn is_coded(self) -> bool {
        !matches!(self, OutputType::F32 | OutputType::F16)
    }

    /// It takes the ends of each dimension.
    pub const fn needs_ranges(self) -> bool {
        matches!(self, OutputType::Int8 | OutputType::Uint8)
    }
}

/// Between which values each dimension lies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Ranges {
    /// The lower ends.
    pub low: Vec<f32>,
    /// The upper ends.
    pub high: Vec<f32>,
}

impl Ranges {
    /// Ends that are known; none if there are not as many of both.
    pub fn new(low: Vec<f32>, high: Vec<f32>) -> Option<Ranges> {
        (low.len() == high.len()).then_some(Ranges { low, high })
    }

    /// Those of no vectors yet.
    pub fn nothing(dim: usize) -> Ranges {
        Ranges { low: vec![f32::INFINITY; dim], high: vec![f32::NEG_INFINITY; dim] }
    }

    /// Widens them to some vectors that lie one behind the other.
    pub fn add(&mut self, vectors: &[f32]) {
        for vector in vectors.chunks_exact(self.low.len().max(1)) {
            for ((low, high), value) in self.low.iter_mut().zip(&mut self.high).zip(vector) {
                *low = low.min(*value);
                *high = high.max(*value);
            }
        }
    }

    /// Those that a file of vectors says its codes were made with, else those of its own values.
    ///
    /// # Errors
    /// [`Error::Refused`] if it has no matrix of numbers, or not two rows; if it can't be read.
    pub fn of(container: &Container) -> Result<Ranges, Error> {
        let stored = MadeWith::of(container)?.and_then(|made| made.output);
        if let Some(ranges) = stored.as_ref().and_then(|stored| stored.ranges.clone()) {
            return Ok(ranges);
        }
        let coded =
            stored.is_some_and(|stored| stored.output_type().is_none_or(OutputType::is_coded));
        let [tensor] = container.tensors.as_slice() else {
            return Err(no_ranges("it does not hold one matrix"));
        };
        match tensor.shape[..] {
            _ if coded => Err(no_ranges("its rows are bits")),
            _ if is_of_codes(tensor) => Err(no_ranges(
                "it holds codes and does not say their ranges, which a file beside it may",
            )),
            [0 | 1, _] => Err(no_ranges("it has not two rows")),
            [_, dim] => Ranges::of_rows(tensor, to_len(dim)),
            _ => Err(no_ranges("it holds no matrix")),
        }
    }

    /// Those of a matrix, in bounded memory.
    pub(super) fn of_rows(tensor: &Tensor, dim: usize) -> Result<Ranges, Error> {
        const VALUES: usize = 1 << 18;
        let rows = tensor.shape.first().copied().unwrap_or(0);
        let mut ranges = Ranges::nothing(dim);
        let (together, mut raw) = ((VALUES / dim.max(1)).max(1) as u64, Vec::new());
        for row in (0..rows).step_by(to_len(together)) {
            let mut values = vec![0.0; to_len(together.min(rows - row)) * dim];
            tensor.rows_f32(row, &mut values, &mut raw)?;
            ranges.add(&values);
        }
        Ok(ranges)
    }

    /// How far apart the codes of a dimension are.
    fn step(low: f32, high: f32) -> f32 {
        let step = (high - low) / 255.0;
        if step == 0.0 { 1.0 } else { step }
    }

    /// The largest step of all dimensions: what a code can be off by.
    pub fn largest_step(&self) -> f32 {
        let steps = self.low.iter().zip(&self.high).map(|(low, high)| (high - low) / 255.0);
        steps.fold(0.0, f32::max)
    }
}

/// Whether numbers are whole ones by their type: codes of values that nothing here tells.
fn is_of_codes(tensor: &Tensor) -> bool {
    matches!(tensor.encoding, Encoding::Plain(dtype) if dtype.class() != Class::Float)
}

fn no_ranges(why: &str) -> Error {
    let what = format!("no file to take the ranges of: {why}");
    Error::refused(what, Advice::set("ranges", "names a file of vectors of the same model"))
}

/// What a file of vectors says of how their values are stored. Its JSON is described in docs/json.md.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StoredAs {
    /// The name of the [`OutputType`].
    #[serde(rename = "type")]
    pub name: String,
    /// The ends of each dimension, where codes were made with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranges: Option<Ranges>,
}

impl StoredAs {
    /// Values of this type.
    pub fn new(output: OutputType, ranges: Option<Ranges>) -> StoredAs {
        StoredAs { name: output.name().to_owned(), ranges }
    }

    /// The type, if it is a known one.
    pub fn output_type(&self) -> Option<OutputType> {
        OutputType::from_name(&self.name)
    }
}

/// The refusal of codes that need ranges, where there is but one vector to find them in.
pub(super) fn one_vector(to: OutputType) -> Error {
    let what = "one vector does not say between which ends its values lie, which";
    let advice = Advice::set("ranges", "names a file that tells them");
    Error::refused(format!("{what} {} needs", to.name()), advice)
}

/// The stored bytes of vectors that lie one behind the other, little-endian. Without ranges, those
/// of the vectors themselves are taken where the type needs them.
///
/// ```
/// use weighbridge::embed::{OutputType, quantize};
///
/// let vectors = [0.0, 1.0, 255.0, 0.5];
/// assert_eq!(quantize(&vectors, 2, OutputType::Uint8, None).unwrap(), [0, 254, 255, 0]);
/// assert_eq!(quantize(&vectors, 2, OutputType::Ubinary, None).unwrap(), [0b0100_0000, 0b1100_0000]);
/// ```
///
/// # Errors
/// [`Error::Refused`] if ranges are needed and there is but one vector, or they are of another number
/// of values.
pub fn quantize(
    vectors: &[f32],
    dim: usize,
    to: OutputType,
    ranges: Option<&Ranges>,
) -> Result<Vec<u8>, Error> {
    let mut own = None;
    if to.needs_ranges() && ranges.is_none() {
        if vectors.len() / dim.max(1) == 1 {
            return Err(one_vector(to));
        }
        own.insert(Ranges::nothing(dim)).add(vectors);
    }
    let ranges = ranges.or(own.as_ref());
    if let Some(ranges) = ranges.filter(|_| to.needs_ranges()) {
        check_ranges(ranges, dim)?;
    }
    let mut out = Vec::new();
    for vector in vectors.chunks_exact(dim.max(1)) {
        encode(vector, to, ranges, &mut out);
    }
    Ok(out)
}

/// # Errors
/// [`Error::Refused`] if the ranges are not those of so many dimensions.
pub(super) fn check_ranges(ranges: &Ranges, dim: usize) -> Result<(), Error> {
    if ranges.low.len() == dim && ranges.high.len() == dim {
        return Ok(());
    }
    let what = format!("the ranges are of {} values, and the vectors have {dim}", ranges.low.len());
    Err(Error::refused(what, Advice::set("ranges", "names a file of vectors of the same model")))
}

/// Adds the bytes of one vector.
pub(super) fn encode(vector: &[f32], to: OutputType, ranges: Option<&Ranges>, out: &mut Vec<u8>) {
    match to {
        OutputType::F32 => out.extend(vector.iter().flat_map(|v| v.to_le_bytes())),
        OutputType::F16 => {
            out.extend(vector.iter().flat_map(|v| half::f16::from_f32(*v).to_le_bytes()));
        }
        OutputType::Int8 | OutputType::Uint8 => {
            let Some(Ranges { low, high }) = ranges else { return };
            let turn = if to == OutputType::Int8 { 128 } else { 0 };
            out.extend(vector.iter().zip(low).zip(high).map(|((value, low), high)| {
                let code = ((value - low) / Ranges::step(*low, *high)).floor();
                // The nearest of 0 to 255; as a byte with a sign it is 128 less.
                (code as u8).wrapping_sub(turn)
            }));
        }
        OutputType::Binary | OutputType::Ubinary => {
            let turn = if to == OutputType::Binary { 128 } else { 0 };
            out.extend(vector.chunks(8).map(|values| {
                let bits = values.iter().enumerate().map(|(i, v)| u8::from(*v > 0.0) << (7 - i));
                bits.fold(0, |byte, bit| byte | bit).wrapping_sub(turn)
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What NumPy gives by the formulas of sentence-transformers 6.2.
    #[test]
    fn codes_are_those_of_sentence_transformers() {
        let vectors = [0.1, -0.2, 0.30, 0.0, -0.1, 0.25, 0.05, 0.0, 0.2, -0.15, -0.4, 0.0];
        let codes = |to| quantize(&vectors, 4, to, None).unwrap();
        let signed = |to| codes(to).into_iter().map(u8::cast_signed).collect::<Vec<_>>();
        assert_eq!(codes(OutputType::Uint8), [170, 0, 255, 0, 0, 255, 163, 0, 255, 28, 0, 0]);
        assert_eq!(
            signed(OutputType::Int8),
            [42, -128, 127, -128, -128, 127, 35, -128, 127, -100, -128, -128]
        );
        assert_eq!(codes(OutputType::Ubinary), [0b1010_0000, 0b0110_0000, 0b1000_0000]);
        assert_eq!(signed(OutputType::Binary), [32, -32, 0]);
        let nine: Vec<f32> = (0..9).map(|i| if i % 4 == 0 { 1.0 } else { -1.0 }).collect();
        assert_eq!(
            quantize(&nine, 9, OutputType::Ubinary, None).unwrap(),
            [0b1000_1000, 0b1000_0000]
        );
    }

    /// What lies out of the ranges gets the code of the nearer end.
    #[test]
    fn values_out_of_the_ranges_are_clamped() {
        let ranges = Ranges::new(vec![0.0, -1.0], vec![255.0, -1.0]).unwrap();
        let vectors = [-3.0, -2.5, 300.0, 9.9, 7.99, -1.0];
        let codes = quantize(&vectors, 2, OutputType::Uint8, Some(&ranges)).unwrap();
        assert_eq!(codes, [0, 0, 255, 10, 7, 0]);
        assert!(quantize(&vectors, 3, OutputType::Int8, Some(&ranges)).is_err());
        assert!(quantize(&vectors, 6, OutputType::Int8, None).is_err());
        assert!(quantize(&[], 6, OutputType::Int8, None).unwrap().is_empty());
    }
}
