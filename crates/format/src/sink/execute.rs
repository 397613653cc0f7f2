//! Streaming one planned file, with its checksums computed on the way.

use crate::Error;
use crate::model::{FilePlan, Piece, Plan};
use std::io::Write;
use std::path::Path;

/// Told how many bytes were written since the last call.
pub type Progress<'a> = &'a mut dyn FnMut(u64);

/// Checksums of the pieces written so far; overlapping ranges are combined, not computed twice.
#[derive(Default)]
struct Checksums {
    /// End offset and checksum of each piece.
    pieces: Vec<(u64, crc32fast::Hasher)>,
}

impl Checksums {
    fn over(&self, start: u64, end: u64) -> u32 {
        let mut total = crc32fast::Hasher::new();
        let mut from = 0;
        for (to, crc) in &self.pieces {
            if from >= start && *to <= end {
                total.combine(crc);
            }
            from = *to;
        }
        total.finalize()
    }
}

/// Writes the pieces and checks each against its planned length.
pub(super) fn execute(
    plan: &FilePlan,
    path: &Path,
    out: &mut dyn Write,
    progress: Progress,
) -> Result<(), Error> {
    const ZEROS: [u8; 4096] = [0; 4096];
    let checked = plan.pieces.iter().any(|p| matches!(p, Piece::Crc32 { .. }));
    let mut checksums = Checksums::default();
    let mut at = 0;
    for piece in &plan.pieces {
        let mut crc = crc32fast::Hasher::new();
        let mut written = 0;
        let mut put = |bytes: &[u8]| {
            // Blocks of a bounded size, so that progress moves within a large tensor.
            for block in bytes.chunks(1 << 20) {
                if checked {
                    crc.update(block);
                }
                out.write_all(block).map_err(|e| Error::io(path, e))?;
                progress(block.len() as u64);
            }
            written += bytes.len() as u64;
            Ok(())
        };
        match piece {
            Piece::Bytes(bytes) => put(bytes)?,
            Piece::View(view) => put(view)?,
            Piece::Zeros(n) => {
                let mut left = *n;
                while left > 0 {
                    let some = left.min(ZEROS.len() as u64);
                    put(&ZEROS[..crate::wire::to_len(some)])?;
                    left -= some;
                }
            }
            Piece::Stream { from, .. } => from.produce(&mut put)?,
            Piece::Crc32 { start, end } => put(&checksums.over(*start, *end).to_le_bytes())?,
        }
        at += written;
        if written != piece.len() {
            let error = format!("planned {} bytes but made {written}", piece.len());
            return Err(Error::io(path, std::io::Error::other(error)));
        }
        checksums.pieces.push((at, crc));
    }
    Ok(())
}

/// A written file: its name when it is one beside the main file, and its bytes.
pub type MemoryFile = (Option<String>, Vec<u8>);

/// The planned files as bytes.
pub fn to_memory(plan: &Plan) -> Result<Vec<MemoryFile>, Error> {
    let mut files = Vec::new();
    for file in &plan.files {
        let mut bytes = Vec::new();
        execute(file, Path::new("memory"), &mut bytes, &mut |_| {})?;
        files.push((file.beside.clone(), bytes));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_checksums_are_those_of_the_bytes() {
        let mut file = FilePlan::default();
        file.push(Piece::Bytes(b"header".to_vec()));
        file.push(Piece::Zeros(10_000));
        file.push(Piece::Bytes(b"data".to_vec()));
        let end = file.size;
        file.push(Piece::Crc32 { start: 6, end });
        file.push(Piece::Crc32 { start: 0, end });
        let bytes = &to_memory(&Plan::single(file, Default::default())).unwrap()[0].1;
        let body = &bytes[..10_010];
        assert_eq!(bytes[10_010..10_014], crc32fast::hash(&body[6..]).to_le_bytes());
        assert_eq!(bytes[10_014..10_018], crc32fast::hash(body).to_le_bytes());
    }

    #[test]
    fn a_stream_of_the_wrong_length_is_an_error() {
        #[derive(Debug)]
        struct Short;
        impl crate::model::Produce for Short {
            fn produce(
                &self,
                out: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
            ) -> Result<(), Error> {
                out(b"abc")
            }
        }
        let mut file = FilePlan::default();
        file.push(Piece::Stream { bytes: 4, from: std::sync::Arc::new(Short) });
        assert!(to_memory(&Plan::single(file, Default::default())).is_err());
    }
}
