//! A plan: every byte of the files to be written, before the first is written.

use super::{BLOCK, Encoding, Report, Tensor};
use crate::Error;
use crate::source::View;
use crate::wire::to_len;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use weighbridge_codec::{DType, Scalar, convert, element};

/// Something that makes bytes while they are written, in bounded blocks.
pub trait Produce: Debug + Send + Sync {
    /// Passes all bytes to `out`, in order. As many as were planned, or the write fails.
    ///
    /// # Errors
    /// Those of `out`, and what keeps the bytes from being made.
    fn produce(&self, out: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error>;

    /// Making the bytes takes so long that it is worth doing it while others are written.
    fn is_work(&self) -> bool {
        true
    }
}

/// One run of bytes of a planned file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Piece {
    /// These bytes.
    Bytes(Vec<u8>),
    /// So many zeros.
    Zeros(u64),
    /// Bytes of a source, as they are.
    View(View),
    /// Bytes made while writing.
    Stream {
        /// How many.
        bytes: u64,
        /// What makes them.
        from: Arc<dyn Produce>,
    },
    /// CRC32 of the bytes `start..end` of this file, which were written before; piece boundaries.
    Crc32 {
        /// The first of them.
        start: u64,
        /// The byte behind the last.
        end: u64,
    },
}

impl Piece {
    /// How many bytes.
    pub fn len(&self) -> u64 {
        match self {
            Piece::Bytes(b) => b.len() as u64,
            Piece::Zeros(n) => *n,
            Piece::View(v) => v.len() as u64,
            Piece::Stream { bytes, .. } => *bytes,
            Piece::Crc32 { .. } => 4,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A tensor's data in an encoding.
    pub fn tensor(tensor: &Tensor, encoding: &Encoding, bytes: u64) -> Piece {
        let from = match &tensor.target {
            Some(target) if target.encoding == *encoding => target.data.clone(),
            _ => Arc::new(TensorStream { tensor: tensor.clone(), encoding: encoding.clone() }),
        };
        Piece::Stream { bytes, from }
    }
}

/// A file to be written: the one that was asked for, one beside it, or one in the folder that was
/// asked for.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FilePlan {
    /// `None` for the file that was asked for, else the name of one in the same folder; of one in
    /// the planned folder, with `/` between folders.
    pub beside: Option<String>,
    /// Its bytes, in order.
    pub pieces: Vec<Piece>,
    /// Sum of the pieces' lengths so far.
    pub size: u64,
    /// A file that has all these bytes already, but for those of the first piece if that is
    /// [`Piece::Bytes`]. It is renamed instead of written.
    pub adopted: Option<PathBuf>,
}

impl FilePlan {
    /// A file with a name of its own, beside the one that was asked for or in the planned folder.
    pub fn named(name: impl Into<String>) -> FilePlan {
        FilePlan { beside: Some(name.into()), ..FilePlan::default() }
    }

    /// Adds bytes.
    pub fn push(&mut self, piece: Piece) {
        self.size += piece.len();
        self.pieces.push(piece);
    }

    /// Zeros up to an offset that was computed before.
    pub fn pad_to(&mut self, offset: u64) {
        if offset > self.size {
            self.push(Piece::Zeros(offset - self.size));
        }
    }
}

/// Every byte of the files to be written, and what is lost on the way.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Plan {
    /// Id of the format that the content came from; empty if it came from no file.
    pub from: &'static str,
    /// Id of the format that is written.
    pub to: &'static str,
    /// The file that was asked for, and those beside it; or all files of a folder.
    pub files: Vec<FilePlan>,
    /// A folder was asked for, and all files go into it.
    pub is_folder: bool,
    /// What is kept, stored otherwise and lost.
    pub report: Report,
    /// Losses are accepted.
    accepted: bool,
}

impl Plan {
    /// One file.
    pub fn single(file: FilePlan, report: Report) -> Plan {
        Plan::several(vec![file], report)
    }

    /// A file, and others beside it.
    pub fn several(files: Vec<FilePlan>, report: Report) -> Plan {
        Plan { files, report, ..Plan::default() }
    }

    /// A folder of files.
    pub fn folder(files: Vec<FilePlan>, report: Report) -> Plan {
        Plan { is_folder: true, ..Plan::several(files, report) }
    }

    /// Accepts what is lost, if `yes`. Without that, a plan that loses something is not written.
    #[must_use]
    pub fn accept_losses(mut self, yes: bool) -> Plan {
        self.accepted = yes;
        self
    }

    /// # Errors
    /// [`Error::Loss`] if something is lost and that was not accepted.
    pub(crate) fn check_losses(&self) -> Result<(), Error> {
        if self.report.losses.is_empty() || self.accepted {
            return Ok(());
        }
        Err(Error::Loss(self.report.losses.clone()))
    }

    /// Bytes of all files together.
    pub fn size(&self) -> u64 {
        self.files.iter().map(|f| f.size).sum()
    }
}

/// Streams a tensor's data in another encoding.
#[derive(Debug)]
struct TensorStream {
    tensor: Tensor,
    encoding: Encoding,
}

impl Produce for TensorStream {
    /// Bytes of a mapped file need not be copied once more.
    fn is_work(&self) -> bool {
        self.tensor.encoding != self.encoding || self.tensor.view().is_none()
    }

    fn produce(&self, out: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let tensor = &self.tensor;
        let as_it_is = tensor.encoding == self.encoding;
        if let Encoding::Product(_) = &self.encoding {
            return if as_it_is { stream_rows(tensor, out) } else { Err(no_way_back(tensor)) };
        }
        if let Encoding::Blockwise(blockwise) = &self.encoding {
            return match tensor.view().filter(|_| as_it_is) {
                Some(codes) => codes.chunks(BLOCK).try_for_each(out),
                None => blockwise.restore(tensor, out),
            };
        }
        let (mut raw, mut floats, mut made, mut decoded) = (vec![], vec![], vec![], vec![]);
        let count = tensor.count();
        for start in (0..count).step_by(BLOCK) {
            let n = to_len(count - start).min(BLOCK);
            match (&tensor.encoding, &self.encoding) {
                _ if as_it_is => {
                    out(tensor.canonical(start, n, &mut raw))?;
                    continue;
                }
                (Encoding::Plain(from), Encoding::Plain(to)) => {
                    let bytes = tensor.canonical(start, n, &mut raw);
                    convert::convert(*from, *to, bytes, n, &mut made);
                }
                // These are done with above.
                (_, Encoding::Blockwise(_) | Encoding::Product(_)) => return Ok(()),
                (_, Encoding::Plain(to)) => {
                    floats.resize(n, 0f32);
                    tensor.decode(start, &mut floats, &mut raw);
                    decoded.clear();
                    decoded.extend(floats.iter().flat_map(|v| v.to_le_bytes()));
                    convert::convert(DType::F32, *to, &decoded, n, &mut made);
                }
                // The codes in a type of another width.
                (Encoding::Scaled(a), Encoding::Scaled(b)) if a.scaling == b.scaling => {
                    let bytes = tensor.canonical(start, n, &mut raw);
                    convert::convert(a.codes, b.codes, bytes, n, &mut made);
                }
                (_, Encoding::Scaled(scaled)) => {
                    floats.resize(n, 0f32);
                    tensor.decode(start, &mut floats, &mut raw);
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
            }
            out(&made)?;
        }
        Ok(())
    }
}

/// The codes of a matrix as they are.
fn stream_rows(
    tensor: &Tensor,
    out: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let [rows, cols] = *tensor.shape.as_slice() else { return Ok(()) };
    let together = (BLOCK as u64 / cols.max(1)).max(1);
    let mut buffer = Vec::new();
    for row in (0..rows).step_by(to_len(together)) {
        let n = together.min(rows - row);
        out(tensor.row_bytes(row, n, &mut buffer).unwrap_or_default())?;
    }
    Ok(())
}

fn no_way_back(tensor: &Tensor) -> Error {
    let what = format!("tensor {:?} can't be given its old codes again", tensor.name);
    Error::refused(what, "quantizing makes new ones")
}

pub(super) fn not_recovered(name: &str, index: u64, value: f32) -> Error {
    Error::refused(
        format!(
            "value {value} at index {index} of tensor {name:?} is not a code of its recorded scale"
        ),
        "the values were changed since they were decoded; remove the \"weighbridge\" metadata entry",
    )
}
