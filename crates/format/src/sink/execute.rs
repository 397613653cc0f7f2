//! Streaming planned files, with their checksums computed on the way.

#[cfg(feature = "threads")]
use super::ahead::produce_ahead;
use crate::plan::{FilePlan, Piece, Plan, check_growth};
use crate::{Error, Progress, Stage};
use sha2::{Digest, Sha256};
use std::io::Write;
use std::path::Path;

/// Checksums of the pieces written so far; overlapping ranges are combined, not computed twice.
#[derive(Default)]
struct PieceSums {
    /// End offset and checksum of each piece.
    pieces: Vec<(u64, crc32fast::Hasher)>,
}

impl PieceSums {
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

/// What is known of a plan's files that are written so far.
pub(super) struct Run {
    /// Later files tell the checksums of others.
    wanted: bool,
    checksums: Vec<u32>,
    /// The same of SHA-256.
    wants_hashes: bool,
    hashes: Vec<Sha256>,
    /// Bytes that were written, and that may be. Text may turn out to be too much.
    written: u64,
    most: u64,
}

impl Run {
    pub(super) fn of(plan: &Plan) -> Run {
        let wanted = plan.pieces().any(|piece| matches!(piece, Piece::Crc32OfFile { .. }));
        let wants_hashes = plan.pieces().any(|piece| matches!(piece, Piece::Sha256OfFile { .. }));
        let (checksums, hashes) = (Vec::new(), Vec::new());
        Run { wanted, checksums, wants_hashes, hashes, written: 0, most: plan.most }
    }

    /// The next file is there already, and is read once more if need be.
    #[cfg(feature = "fs")]
    pub(super) fn add_file(&mut self, path: &Path) -> Result<(), Error> {
        let (mut crc, mut hash) = (crc32fast::Hasher::new(), Sha256::new());
        if self.wanted || self.wants_hashes {
            let io = |e| Error::io(path, e);
            let mut file = std::fs::File::open(path).map_err(io)?;
            let mut buffer = vec![0; 1 << 20];
            loop {
                match std::io::Read::read(&mut file, &mut buffer).map_err(io)? {
                    0 => break,
                    n => {
                        crc.update(&buffer[..n]);
                        self.hash(&mut hash, &buffer[..n]);
                    }
                }
            }
        }
        self.checksums.push(crc.finalize());
        self.hashes.push(hash);
        Ok(())
    }

    /// Adds bytes to the hash of a file, if somebody wants it.
    fn hash(&self, hash: &mut Sha256, bytes: &[u8]) {
        if self.wants_hashes {
            hash.update(bytes);
        }
    }
}

/// Writes the pieces and checks each against its planned length, if it has one.
pub(super) fn execute(
    plan: &FilePlan,
    path: &Path,
    out: &mut dyn Write,
    run: &mut Run,
    progress: &mut Progress,
) -> Result<(), Error> {
    const ZEROS: [u8; 4096] = [0; 4096];
    let checked = run.wanted || plan.pieces.iter().any(|p| matches!(p, Piece::Crc32 { .. }));
    let (mut checksums, mut hash) = (PieceSums::default(), Sha256::new());
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
                run.hash(&mut hash, block);
                out.write_all(block).map_err(|e| Error::io(path, e))?;
                progress.advance(block.len() as u64)?;
            }
            written += bytes.len() as u64;
            match piece {
                Piece::Text(_) => check_growth(run.written + written, run.most),
                _ => Ok(()),
            }
        };
        match piece {
            Piece::Bytes(bytes) => put(bytes)?,
            Piece::View(view) => view.for_each_block(1 << 20, &mut put)?,
            Piece::Zeros(n) => {
                let mut left = *n;
                while left > 0 {
                    let some = left.min(ZEROS.len() as u64);
                    put(&ZEROS[..crate::wire::to_len(some)])?;
                    left -= some;
                }
            }
            #[cfg(feature = "threads")]
            Piece::Stream { bytes, from } if *bytes >= WORTH_A_THREAD && from.is_work() => {
                produce_ahead(&**from, &mut put)?;
            }
            Piece::Stream { from, .. } => from.produce(&mut put)?,
            #[cfg(feature = "threads")]
            Piece::Text(text) if text.least() >= WORTH_A_THREAD / TEXT_GROWS => {
                produce_ahead(text.from(), &mut put)?;
            }
            Piece::Text(text) => text.from().produce(&mut put)?,
            Piece::Crc32 { start, end } => put(&checksums.over(*start, *end).to_le_bytes())?,
            Piece::Crc32OfFile { file } => {
                // A file that comes later has no checksum yet, and then too few bytes are made.
                let crc = run.checksums.get(*file).map(|crc| format!("{crc:08x}"));
                put(crc.unwrap_or_default().as_bytes())?;
            }
            Piece::Sha256OfFile { file } => {
                let hash = run.hashes.get(*file).map(|hash| hash.clone().finalize());
                let digits = hash.map(|h| h.iter().map(|b| format!("{b:02x}")).collect::<String>());
                put(digits.unwrap_or_default().as_bytes())?;
            }
        }
        at += written;
        run.written += written;
        let planned = match piece {
            Piece::Text(text) => text.remember(written),
            piece => piece.len(),
        };
        if written != planned {
            let error = format!("planned {planned} bytes but made {written}");
            return Err(Error::io(path, std::io::Error::other(error)));
        }
        checksums.pieces.push((at, crc));
    }
    run.checksums.push(checksums.over(0, at));
    run.hashes.push(hash);
    Ok(())
}

/// Fewer bytes are made and written sooner than another thread is there.
#[cfg_attr(not(feature = "threads"), allow(dead_code))]
const WORTH_A_THREAD: u64 = 16 << 20;

/// Text mostly has so many times the fewest bytes that it can have, or more.
#[cfg(feature = "threads")]
const TEXT_GROWS: u64 = 4;

impl Plan {
    /// Writes the one file to anything that takes bytes.
    ///
    /// # Errors
    /// [`Error::Loss`] if something is lost and that was not accepted; [`Error::Refused`] if there
    /// are several files; failures of reading and writing.
    pub fn write_to(&self, out: &mut dyn Write, progress: &mut Progress) -> Result<(), Error> {
        self.check_accepted()?;
        let [file] = self.files.as_slice() else {
            let what = format!("{} is {} files, not one", self.to, self.files.len());
            return Err(Error::refused(what, ""));
        };
        // What was given away can't be taken back.
        self.check_damage()?;
        self.stream(file, Path::new("output"), out, progress)
    }

    /// Writes one of the files by itself.
    fn stream(
        &self,
        file: &FilePlan,
        path: &Path,
        out: &mut dyn Write,
        progress: &mut Progress,
    ) -> Result<(), Error> {
        progress.begin(Stage::Writing, self.known_size())?;
        execute(file, path, out, &mut Run::of(self), progress)?;
        out.flush().map_err(|e| Error::io(path, e))
    }

    /// The bytes of the file that was asked for, without those beside it.
    ///
    /// # Errors
    /// [`Error::Loss`] if something is lost and that was not accepted; [`Error::Refused`] for a
    /// folder; failures of reading.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        self.check_accepted()?;
        let Some(file) = self.files.iter().find(|f| f.beside.is_none()) else {
            return Err(Error::refused(format!("{} is a folder of files", self.to), ""));
        };
        self.check_damage()?;
        let mut bytes = Vec::new();
        self.stream(file, Path::new("memory"), &mut bytes, &mut Progress::none())?;
        Ok(bytes)
    }

    /// The bytes of all files, each with its name; the one that was asked for has none.
    ///
    /// # Errors
    /// [`Error::Loss`] if something is lost and that was not accepted; failures of reading.
    pub fn to_files(&self) -> Result<Vec<MemoryFile>, Error> {
        self.check_accepted()?;
        self.check_damage()?;
        to_memory(self)
    }
}

/// A written file: its name when it is one beside the main file, and its bytes.
pub type MemoryFile = (Option<String>, Vec<u8>);

/// The planned files as bytes, whatever is lost.
///
/// # Errors
/// Failures of reading.
pub fn to_memory(plan: &Plan) -> Result<Vec<MemoryFile>, Error> {
    let mut files = Vec::new();
    let mut run = Run::of(plan);
    for file in &plan.files {
        let mut bytes = Vec::new();
        let path = Path::new("memory");
        execute(file, path, &mut bytes, &mut run, &mut Progress::none())?;
        files.push((file.beside.clone(), bytes));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Produce;
    use crate::plan::Text;

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
    fn a_file_can_tell_the_checksum_of_another() {
        let mut rows = FilePlan::default();
        rows.push(Piece::Bytes(b"rows".to_vec()));
        rows.push(Piece::Zeros(5000));
        let mut about = FilePlan::named("about");
        about.push(Piece::Crc32OfFile { file: 0 });
        let files = vec![rows.clone(), about.clone()];
        let made = to_memory(&Plan::several(files, Default::default())).unwrap();
        assert_eq!(made[1].1, format!("{:08x}", crc32fast::hash(&made[0].1)).into_bytes());
        // It must have been written before.
        let files = vec![about, rows.clone()];
        assert!(to_memory(&Plan::several(files, Default::default())).is_err());
        let mut about = FilePlan::named("about");
        about.push(Piece::Sha256OfFile { file: 0 });
        let made =
            to_memory(&Plan::several(vec![rows, about.clone()], Default::default())).unwrap();
        // What `sha256sum` says of these bytes.
        let said = "57ec0067bbc7c47d879721e5353967908ca71759af4a2ece05590e2d9a17ac04";
        assert_eq!(std::str::from_utf8(&made[1].1).unwrap(), said);
        assert!(to_memory(&Plan::several(vec![about], Default::default())).is_err());
    }

    /// Counts up; long enough to be made on another thread.
    #[derive(Debug)]
    struct Counting(u64);

    impl Produce for Counting {
        fn produce(&self, out: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
            (0..self.0 / 8).step_by(1 << 12).try_for_each(|start| {
                let numbers = start..start + (1 << 12);
                out(&numbers.flat_map(u64::to_le_bytes).collect::<Vec<_>>())
            })
        }
    }

    #[test]
    fn what_is_made_ahead_arrives_in_order() {
        let mut file = FilePlan::default();
        file.push(Piece::Bytes(b"head".to_vec()));
        let from = std::sync::Arc::new(Counting(WORTH_A_THREAD));
        file.push(Piece::Stream { bytes: WORTH_A_THREAD, from });
        let made = to_memory(&Plan::single(file, Default::default())).unwrap().remove(0).1;
        let (numbers, _) = made[4..].as_chunks::<8>();
        assert!((0..).zip(numbers).all(|(i, n)| u64::from_le_bytes(*n) == i));
        assert_eq!(numbers.len() as u64 * 8, WORTH_A_THREAD);
    }

    #[test]
    fn writing_that_fails_ends_the_making() {
        struct Full(usize);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let mut file = FilePlan::default();
        let from = std::sync::Arc::new(Counting(WORTH_A_THREAD));
        file.push(Piece::Stream { bytes: WORTH_A_THREAD, from });
        let out = &mut Full(3 << 20);
        let run = &mut Run::of(&Plan::default());
        let error = execute(&file, Path::new("x"), out, run, &mut Progress::none()).unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error}");
    }

    /// Text of this many bytes in a plan that allows so many.
    fn plan_of_text(bytes: u64, most: u64) -> Plan {
        let mut file = FilePlan::default();
        file.push(Piece::Bytes(b"head".to_vec()));
        file.push(Piece::Text(Text::new(std::sync::Arc::new(Counting(bytes)), 2)));
        let mut plan = Plan::single(file, Default::default());
        plan.most = most;
        plan
    }

    #[test]
    fn text_is_as_long_as_it_gets() {
        let bytes = WORTH_A_THREAD;
        let plan = plan_of_text(bytes, u64::MAX);
        assert_eq!((plan.size(), plan.known_size()), (6, None));
        let made = to_memory(&plan).unwrap().remove(0).1;
        assert_eq!(made.len() as u64, 4 + bytes);
        assert_eq!((plan.size(), plan.known_size()), (4 + bytes, Some(4 + bytes)));
        // The same, if it is only counted.
        let counted = plan_of_text(bytes, u64::MAX);
        assert_eq!(counted.files[0].count().unwrap(), 4 + bytes);
        assert_eq!(counted.known_size(), Some(4 + bytes));
    }

    #[test]
    fn text_of_another_length_than_before_is_an_error() {
        #[derive(Debug, Default)]
        struct Growing(std::sync::atomic::AtomicUsize);
        impl Produce for Growing {
            fn produce(
                &self,
                out: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
            ) -> Result<(), Error> {
                out(&vec![7; self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed)])
            }
        }
        let mut file = FilePlan::default();
        file.push(Piece::Text(Text::new(std::sync::Arc::new(Growing::default()), 0)));
        let plan = Plan::single(file, Default::default());
        assert_eq!(to_memory(&plan).unwrap()[0].1, b"");
        assert!(to_memory(&plan).is_err());
    }

    #[test]
    fn text_ends_where_it_becomes_too_much() {
        let bytes = 1 << 20;
        assert!(to_memory(&plan_of_text(bytes, bytes + 4)).is_ok());
        let error = to_memory(&plan_of_text(bytes, bytes + 3)).unwrap_err();
        assert!(matches!(error, Error::Limit { most, .. } if most == bytes + 3), "{error}");
        // What can't be short enough is not begun.
        assert!(plan_of_text(bytes, 5).to_bytes().is_err());
    }

    #[test]
    fn a_stream_of_the_wrong_length_is_an_error() {
        #[derive(Debug)]
        struct Short;
        impl Produce for Short {
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
