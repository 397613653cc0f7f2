//! What was computed so far, on disk beside the output: a run that was ended in any way, even by
//! force, goes on from there.
//!
//! * `OUT.partial`: the rows as f32 values;
//! * `OUT.partial.records`: a line with a JSON object for each row, written before the row;
//! * `OUT.partial.json`: what the rows depend on. The journal exists when this file does;
//! * `OUT.partial.document`: at the end, the records as one JSON document.

use super::texts::Row;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use weighbridge_format::{Error, Source, View};

/// What is lost at most when the machine fails, rather than the process.
const SYNC_EVERY: Duration = Duration::from_secs(2);

/// What the rows depend on: names and values, for people too.
pub(super) type Facts = serde_json::Map<String, serde_json::Value>;

#[derive(Debug)]
pub(super) struct Journal {
    paths: Paths,
    rows: File,
    records: File,
    /// The records of rows that were there, as far as they were compared.
    earlier: BufReader<File>,
    row_bytes: u64,
    /// Whole rows that were there.
    available: u64,
    /// Rows that are known to be right, and bytes of their records.
    finished: u64,
    record_bytes: u64,
    appending: bool,
    synced: Instant,
}

#[derive(Debug)]
struct Paths {
    rows: PathBuf,
    records: PathBuf,
    facts: PathBuf,
    document: PathBuf,
}

impl Paths {
    fn beside(output: &Path) -> Paths {
        let with = |ending: &str| {
            let mut name = OsString::from(output);
            name.push(ending);
            PathBuf::from(name)
        };
        Paths {
            rows: with(".partial"),
            records: with(".partial.records"),
            facts: with(".partial.json"),
            document: with(".partial.document"),
        }
    }
}

/// What to do about a journal that is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attitude {
    pub resume: bool,
    pub force: bool,
}

impl Journal {
    /// Begins a journal, or goes on with one.
    pub(super) fn open(
        output: &Path,
        facts: &Facts,
        dimensions: usize,
        attitude: Attitude,
    ) -> Result<Journal, Error> {
        let paths = Paths::beside(output);
        let exists = paths.facts.exists();
        if exists && !attitude.resume && !attitude.force {
            let what = format!("{} is of a run that was not finished", paths.rows.display());
            return Err(Error::refused(what, "--resume goes on with it, --force starts over"));
        }
        // Without the facts they are no journal, and may be anyone's.
        let others = [&paths.rows, &paths.records, &paths.document];
        if let Some(other) =
            others.into_iter().find(|p| p.symlink_metadata().is_ok()).filter(|_| !exists)
        {
            let what = format!("{} is there, and not of an unfinished run", other.display());
            return Err(Error::refused(
                what,
                "this run would write it: move it away, or name another output",
            ));
        }
        let resume = exists && attitude.resume;
        if resume {
            compare_facts(&paths, facts)?;
        }
        let open = |path: &Path| {
            let file =
                File::options().read(true).write(true).create(true).truncate(false).open(path);
            file.map_err(|e| Error::io(path, e))
        };
        let rows = open(&paths.rows)?;
        // Let go of by the system when the process ends, however it does.
        if rows.try_lock().is_err() {
            let what = format!("{} is in use", paths.rows.display());
            return Err(Error::refused(what, "another run is writing it"));
        }
        let records = open(&paths.records)?;
        let earlier = BufReader::new(open(&paths.records)?);
        let mut journal = Journal {
            paths,
            rows,
            records,
            earlier,
            row_bytes: 4 * dimensions.max(1) as u64,
            available: 0,
            finished: 0,
            record_bytes: 0,
            appending: false,
            synced: Instant::now(),
        };
        if resume {
            journal.available = journal.stored_rows()?;
        } else {
            journal.begin(facts)?;
        }
        Ok(journal)
    }

    fn begin(&mut self, facts: &Facts) -> Result<(), Error> {
        self.cut()?;
        let text = serde_json::to_string_pretty(facts).unwrap_or_default() + "\n";
        std::fs::write(&self.paths.facts, text).map_err(|e| Error::io(&self.paths.facts, e))
    }

    fn stored_rows(&self) -> Result<u64, Error> {
        let bytes = self.rows.metadata().map_err(|e| Error::io(&self.paths.rows, e))?.len();
        Ok(bytes / self.row_bytes)
    }

    /// Rows that are done.
    pub(super) fn finished(&self) -> u64 {
        self.finished
    }

    pub(super) fn path(&self) -> &Path {
        &self.paths.rows
    }

    /// Takes the next rows for done if the journal has them all; it is an error if it has others.
    pub(super) fn has(&mut self, window: &[Row]) -> Result<bool, Error> {
        if self.appending || self.finished + window.len() as u64 > self.available {
            return Ok(false);
        }
        let mut bytes = 0;
        let mut found = Vec::new();
        for (row, number) in window.iter().zip(self.finished + 1..) {
            let expected = row.record.len() as u64 + 1;
            found.clear();
            let read = self.earlier.by_ref().take(expected).read_to_end(&mut found);
            read.map_err(|e| Error::io(&self.paths.records, e))?;
            match found.split_last() {
                Some((b'\n', record)) if record == row.record.as_bytes() => bytes += expected,
                // A part of a line: what a failing machine did not get written.
                _ if !found.contains(&b'\n') && found.len() as u64 != expected => return Ok(false),
                _ => {
                    let what = format!(
                        "row {number} of {} is of another text than the input has there",
                        self.paths.rows.display()
                    );
                    return Err(Error::refused(
                        what,
                        "the input is not the one that the run began with; --force starts over",
                    ));
                }
            }
        }
        self.finished += window.len() as u64;
        self.record_bytes += bytes;
        Ok(true)
    }

    /// Adds rows with their vectors, behind the finished ones.
    pub(super) fn append(&mut self, window: &[Row], vectors: &[f32]) -> Result<(), Error> {
        self.cut()?;
        let mut text = Vec::new();
        for row in window {
            text.extend_from_slice(row.record.as_bytes());
            text.push(b'\n');
        }
        let bytes: Vec<u8> = vectors.iter().flat_map(|v| v.to_le_bytes()).collect();
        // A row counts once all its bytes are there, so that its record has to be there before.
        self.records.write_all(&text).map_err(|e| Error::io(&self.paths.records, e))?;
        self.rows.write_all(&bytes).map_err(|e| Error::io(&self.paths.rows, e))?;
        self.finished += window.len() as u64;
        self.record_bytes += text.len() as u64;
        if self.synced.elapsed() >= SYNC_EVERY {
            self.records.sync_data().map_err(|e| Error::io(&self.paths.records, e))?;
            self.rows.sync_data().map_err(|e| Error::io(&self.paths.rows, e))?;
            self.synced = Instant::now();
        }
        Ok(())
    }

    /// Removes what stands behind the finished rows: rows of a window that was not finished.
    fn cut(&mut self) -> Result<(), Error> {
        if self.appending {
            return Ok(());
        }
        let cut = |file: &mut File, path: &Path, length: u64| {
            let done = file.set_len(length).and_then(|()| file.seek(SeekFrom::Start(length)));
            done.map(|_| ()).map_err(|e| Error::io(path, e))
        };
        cut(&mut self.rows, &self.paths.rows, self.finished * self.row_bytes)?;
        cut(&mut self.records, &self.paths.records, self.record_bytes)?;
        self.appending = true;
        Ok(())
    }

    /// The input is at its end: what the journal has more is of another one.
    pub(super) fn complete(&mut self) -> Result<(), Error> {
        if !self.appending && self.available > self.finished {
            let what = format!(
                "{} has {} rows, and the input {}",
                self.paths.rows.display(),
                self.available,
                self.finished
            );
            return Err(Error::refused(
                what,
                "the input is not the one that the run began with; --force starts over",
            ));
        }
        self.cut()
    }

    /// The rows' bytes, mapped.
    pub(super) fn view(&self) -> Result<View, Error> {
        let path = &self.paths.rows;
        let source = Source::open(path).map_err(|e| Error::io(path, e))?;
        let view = source.view(0..self.finished * self.row_bytes);
        view.ok_or_else(|| Error::io(path, io::ErrorKind::UnexpectedEof.into()))
    }

    /// Calls `each` with the records, in order.
    pub(super) fn for_each_record(
        &self,
        mut each: impl FnMut(&str) -> io::Result<()>,
    ) -> Result<(), Error> {
        let path = &self.paths.records;
        let mut go = || -> io::Result<()> {
            let mut lines = BufReader::new(File::open(path)?);
            let mut line = String::new();
            for _ in 0..self.finished {
                line.clear();
                lines.read_line(&mut line)?;
                each(line.trim_end_matches('\n'))?;
            }
            Ok(())
        };
        go().map_err(|e| Error::io(path, e))
    }

    /// All records in one JSON array, with a text before and behind it, mapped.
    pub(super) fn document(&self, before: &str, behind: &str) -> Result<View, Error> {
        let path = &self.paths.document;
        let file = File::create(path).map_err(|e| Error::io(path, e))?;
        let mut out = BufWriter::with_capacity(1 << 16, file);
        out.write_all(before.as_bytes()).map_err(|e| Error::io(path, e))?;
        let mut separator = "[";
        self.for_each_record(|record| {
            out.write_all(separator.as_bytes())?;
            separator = ", ";
            out.write_all(record.as_bytes())
        })?;
        let open = if self.finished == 0 { "[" } else { "" };
        let end = format!("{open}]{behind}");
        out.write_all(end.as_bytes()).and_then(|()| out.flush()).map_err(|e| Error::io(path, e))?;
        let source = Source::open(path).map_err(|e| Error::io(path, e))?;
        let length = source.len();
        source.view(0..length).ok_or_else(|| Error::io(path, io::ErrorKind::UnexpectedEof.into()))
    }

    /// Removes it; the facts first, without which there is no journal.
    pub(super) fn remove(&self) {
        for path in [&self.paths.facts, &self.paths.rows, &self.paths.records, &self.paths.document]
        {
            // What is left does no harm: the output is there.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for Journal {
    /// A run that failed before its first row leaves nothing to go on with.
    fn drop(&mut self) {
        if self.finished == 0 && self.available == 0 {
            self.remove();
        }
    }
}

/// Refuses to go on where other rows would come out, and says what differs.
fn compare_facts(paths: &Paths, facts: &Facts) -> Result<(), Error> {
    let path = &paths.facts;
    let text = std::fs::read(path).map_err(|e| Error::io(path, e))?;
    let earlier: Facts = serde_json::from_slice(&text).map_err(|e| {
        let what = format!("{} is damaged: {e}", path.display());
        Error::refused(what, "--force starts over")
    })?;
    for (name, now) in facts {
        let then = earlier.get(name).unwrap_or(&serde_json::Value::Null);
        if then != now && name != super::MODEL_FACT {
            let model = earlier.get(super::MODEL_FACT).and_then(|v| v.as_str()).unwrap_or("?");
            let what = match name.as_str() {
                super::VECTORS_FACT => {
                    format!("the model gives other vectors than {model} gave when the run began")
                }
                _ => format!("the run began with another {name}: {then}, and not {now}"),
            };
            return Err(Error::refused(
                what,
                "--resume goes on with the same model, settings and input; --force starts over",
            ));
        }
    }
    Ok(())
}
