//! A tensor's data in an encoding, made block by block while it is written.

use crate::Error;
use crate::model::{
    BLOCK, BlockCoded, Data, Encoding, Produce, Tensor, blocks_in_order, row_parts,
};
use crate::wire::to_len;
use weighbridge_codec::{DType, Scalar, convert, element};

/// Streams a tensor's data in another encoding.
#[derive(Debug)]
pub(super) struct TensorStream {
    pub tensor: Tensor,
    pub encoding: Encoding,
}

impl Produce for TensorStream {
    /// Bytes of a mapped file need not be copied once more.
    fn is_work(&self) -> bool {
        self.tensor.encoding != self.encoding
            || self.tensor.view().is_none_or(|v| v.resident().is_none())
    }

    fn produce(&self, out: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let tensor = &self.tensor;
        let as_it_is = tensor.encoding == self.encoding;
        if as_it_is && matches!(tensor.data, Data::Rows(_)) {
            return stream_rows(tensor, out);
        }
        if self.encoding.is_coded() {
            return match (self.encoding.blocks(), tensor.plain_view()) {
                (_, Some(codes)) if as_it_is => codes.for_each_block(BLOCK as u64, out),
                (Some(blocks), _) => restore(blocks, tensor, out),
                (None, _) => Err(no_way_back(tensor)),
            };
        }
        let (mut raw, mut floats, mut made, mut decoded) = (vec![], vec![], vec![], vec![]);
        let count = tensor.count();
        for start in (0..count).step_by(BLOCK) {
            let n = to_len(count - start).min(BLOCK);
            match (&tensor.encoding, &self.encoding) {
                _ if as_it_is => {
                    out(tensor.canonical(start, n, &mut raw)?)?;
                    continue;
                }
                (Encoding::Plain(from), Encoding::Plain(to)) => {
                    let bytes = tensor.canonical(start, n, &mut raw)?;
                    convert::convert(*from, *to, bytes, n, &mut made);
                }
                // Whose values are not known.
                (from, Encoding::Plain(to)) if !from.has_values() => {
                    let bytes = tensor.canonical(start, n, &mut raw)?;
                    convert::convert(from.stored(), *to, bytes, n, &mut made);
                }
                (_, Encoding::Plain(to)) => {
                    floats.resize(n, 0f32);
                    tensor.decode(start, &mut floats, &mut raw)?;
                    decoded.clear();
                    decoded.extend(floats.iter().flat_map(|v| v.to_le_bytes()));
                    convert::convert(DType::F32, *to, &decoded, n, &mut made);
                }
                // The codes in a type of another width.
                (Encoding::Scaled(a), Encoding::Scaled(b)) if a.scaling == b.scaling => {
                    let bytes = tensor.canonical(start, n, &mut raw)?;
                    convert::convert(a.codes, b.codes, bytes, n, &mut made);
                }
                (_, Encoding::Scaled(scaled)) => {
                    floats.resize(n, 0f32);
                    tensor.decode(start, &mut floats, &mut raw)?;
                    made.clear();
                    made.resize((n * to_len(scaled.codes.bits())).div_ceil(8), 0);
                    let mut channels = scaled.channels(start, &tensor.shape);
                    for (i, &value) in floats.iter().enumerate() {
                        let code = scaled.exact_code(value, channels.next());
                        let code = code
                            .and_then(|c| i64::try_from(c).ok())
                            .ok_or_else(|| not_recovered(&tensor.name, start + i as u64, value))?;
                        element::write(scaled.codes, &mut made, i, Scalar::Int(code));
                    }
                }
                // Rows of codes are done with above.
                _ => return Ok(()),
            }
            out(&made)?;
        }
        Ok(())
    }
}

/// The rows of a matrix that do not lie together, as they are.
fn stream_rows(
    tensor: &Tensor,
    out: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let [rows, cols] = *tensor.shape.as_slice() else { return Ok(()) };
    let together = (BLOCK as u64 / cols.max(1)).max(1);
    let collect = |i: u64, buffer: &mut Vec<u8>| {
        let row = i * together;
        tensor.row_bytes(row, together.min(rows - row), buffer).map(drop)
    };
    let bytes = tensor.encoding.byte_len(&[together, cols]).unwrap_or(u64::MAX);
    blocks_in_order(rows.div_ceil(together), bytes, collect, |rows| out(rows))
}

fn no_way_back(tensor: &Tensor) -> Error {
    let what = format!("tensor {:?} can't be given its old codes again", tensor.name);
    Error::refused(what, "quantizing makes new ones")
}

fn not_recovered(name: &str, index: u64, value: f32) -> Error {
    Error::refused(
        format!(
            "value {value} at index {index} of tensor {name:?} is not a code of its recorded scale"
        ),
        "the values were changed since they were decoded; remove the \"weighbridge\" metadata entry",
    )
}

/// Passes the codes of values that were decoded with this front before to `out`.
fn restore(
    blocks: &BlockCoded,
    tensor: &Tensor,
    out: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let Some(layout) = blocks.layout(&tensor.shape) else { return Ok(()) };
    let (codec, front) = (blocks.codec, blocks.front_bytes()?);
    let mut codes = Vec::new();
    for part in row_parts(layout.rows, layout.cols, codec.cut()) {
        let front = layout.front_of(front, part.row, part.col..part.col + part.len as u64);
        let start = part.row * layout.cols + part.col;
        let values = tensor.values_f32(start, part.len)?;
        codes.clear();
        codes.resize(codec.codes().size(part.len), 0);
        codec
            .restore(&values, front, &mut codes)
            .map_err(|i| not_recovered(&tensor.name, start + i as u64, values[i]))?;
        out(&codes)?;
    }
    Ok(())
}
