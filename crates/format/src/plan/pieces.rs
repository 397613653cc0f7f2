//! A plan: every byte of the files to be written, before the first is written.

use super::stream::TensorStream;
use super::{Companion, Report, Text};
use crate::Error;
use crate::model::{DamageCheck, Encoding, Produce, Tensor};
use crate::source::{Source, View};
use std::path::PathBuf;
use std::sync::Arc;

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
    /// Text made while writing, which may have any length. What stands behind it has no place yet, so
    /// that no checksum is one of a range behind it.
    Text(Text),
    /// CRC32 of the bytes `start..end` of this file, which were written before; piece boundaries.
    Crc32 {
        /// The first of them.
        start: u64,
        /// The byte behind the last.
        end: u64,
    },
    /// CRC32 of another file of the plan, which was written before, as eight hexadecimal digits.
    Crc32OfFile {
        /// Its number.
        file: usize,
    },
    /// SHA-256 of another file of the plan, which was written before, as 64 hexadecimal digits.
    Sha256OfFile {
        /// Its number.
        file: usize,
    },
}

impl Piece {
    /// How many bytes; of text that was not made yet, the fewest that it can have.
    pub fn len(&self) -> u64 {
        match self {
            Piece::Bytes(b) => b.len() as u64,
            Piece::Zeros(n) => *n,
            Piece::View(v) => v.len(),
            Piece::Stream { bytes, .. } => *bytes,
            Piece::Text(text) => text.least(),
            Piece::Crc32 { .. } => 4,
            Piece::Crc32OfFile { .. } => 8,
            Piece::Sha256OfFile { .. } => 64,
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
    /// It describes the file that was asked for, and gets a name of its own where the one of
    /// `beside` is that of another file's description. Where the folder is known that is decided.
    pub companion: Option<Companion>,
    /// Its bytes, in order.
    pub pieces: Vec<Piece>,
    /// Sum of the pieces' lengths so far, as they were when they were added.
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

    /// How large the file is, once it is written. Text is made for that if it was not made before.
    ///
    /// # Errors
    /// What keeps the text from being made.
    pub fn count(&self) -> Result<u64, Error> {
        let counted = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.count(),
            piece => Ok(piece.len()),
        });
        counted.sum()
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
    /// Tells whether what is written comes of damaged data. Nothing is, then.
    pub damage: Option<DamageCheck>,
    /// The files that the content comes from. Where one was rewritten meanwhile, nothing is written.
    pub opened: Vec<Source>,
    /// Losses are accepted.
    accepted: bool,
    /// Bytes that may be written.
    pub(crate) most: u64,
}

impl Plan {
    /// One file.
    pub fn single(file: FilePlan, report: Report) -> Plan {
        Plan::several(vec![file], report)
    }

    /// A file, and others beside it.
    pub fn several(files: Vec<FilePlan>, report: Report) -> Plan {
        Plan { files, report, most: u64::MAX, ..Plan::default() }
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
    /// [`Error::Loss`] if something is lost, [`Error::Limit`] if far more is written than was read,
    /// and that was not accepted.
    pub(crate) fn check_accepted(&self) -> Result<(), Error> {
        self.check_growth()?;
        if self.report.losses.is_empty() || self.accepted {
            return Ok(());
        }
        Err(Error::Loss(self.report.losses.clone()))
    }

    /// Begins to look for damage, while the files are being written.
    #[cfg(feature = "fs")]
    pub(crate) fn start_damage_check(&self) {
        if let Some(check) = &self.damage {
            check.start();
        }
    }

    /// # Errors
    /// [`Error::Malformed`] if what is written comes of damaged data, [`Error::Changed`] if that was
    /// rewritten meanwhile.
    pub(crate) fn check_damage(&self) -> Result<(), Error> {
        self.damage.as_ref().map_or(Ok(()), DamageCheck::finish)?;
        self.opened.iter().try_for_each(Source::check_unchanged)
    }

    /// Bytes of all files together. Text that was not made yet has more than counts here.
    pub fn size(&self) -> u64 {
        self.pieces().map(Piece::len).sum()
    }

    /// The same, where it is known before anything is written.
    pub(crate) fn known_size(&self) -> Option<u64> {
        let open = |piece: &Piece| matches!(piece, Piece::Text(text) if text.made().is_none());
        (!self.pieces().any(open)).then(|| self.size())
    }

    pub(crate) fn pieces(&self) -> impl Iterator<Item = &Piece> {
        self.files.iter().flat_map(|file| &file.pieces)
    }
}
