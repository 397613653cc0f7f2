//! What was computed so far, on disk beside the output: a run that was ended in any way, even by
//! force, goes on from there.
//!
//! * `OUT.partial`: the rows, as the output will have them where its layout allows that, else as f32
//!   values;
//! * `OUT.partial.records`: a line with a JSON object for each row, written before the row;
//! * `OUT.partial.windows`: a line for each window, written after its rows: a checksum, how many rows
//!   there are, the bytes of their records, and what storing them changed;
//! * `OUT.partial.hashes`: a hash of each row's text, so that a text is found again. It is made anew by
//!   every run, since every run reads the texts;
//! * `OUT.partial.json`: what the rows depend on. The journal exists when this file does.
//!
//! The checksum is a CRC-32 over the window before it (its checksum), the rest of the line, the
//! records and the rows. Going on, every window is compared with it: rows that were damaged, moved or
//! never reached the disk are made anew, with all that follow.

use super::known::{HASH_BYTES, TextHash};
use super::sync::Sync;
use super::texts::TextRow;
use crc32fast::Hasher;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use weighbridge_format::model::Records;
use weighbridge_format::plan::{RowFigures, RowLayout};
use weighbridge_format::sink::open_own;
use weighbridge_format::source::{Access, Source};
use weighbridge_format::{Advice, Error, View};

/// A line of a window is never longer.
const LONGEST_LINE: u64 = 1 << 16;

/// What the rows depend on: names and values, for people too.
pub(super) type Facts = serde_json::Map<String, serde_json::Value>;

/// A window that is done.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Window {
    /// Bytes of its line.
    #[serde(skip)]
    line: u64,
    /// Its checksum, as its line has it.
    #[serde(skip)]
    checksum: u32,
    /// The checksum of what comes before its records.
    #[serde(skip)]
    before: u32,
    /// Bytes of the records.
    records: u64,
    #[serde(flatten)]
    figures: RowFigures,
}

impl Window {
    /// A line behind a window with this checksum.
    fn parse(line: &[u8], previous: u32) -> Option<Window> {
        let (checksum, text) = line.strip_suffix(b"\n")?.split_at_checked(8)?;
        let checksum = u32::from_str_radix(std::str::from_utf8(checksum).ok()?, 16).ok()?;
        let window: Window = serde_json::from_slice(text).ok()?;
        Some(Window { line: line.len() as u64, checksum, before: after(previous, text), ..window })
    }

    /// The line of a window behind one with this checksum, with its records and rows.
    fn close(&mut self, previous: u32, content: [&[u8]; 2]) -> Vec<u8> {
        let text = [b" ".to_vec(), serde_json::to_vec(self).unwrap_or_default()].concat();
        self.before = after(previous, &text);
        self.checksum = content.into_iter().fold(self.before, after);
        let line = [format!("{:08x}", self.checksum).as_bytes(), &text, b"\n"].concat();
        self.line = line.len() as u64;
        line
    }
}

/// The checksum of what has this one, with some bytes behind it.
fn after(checksum: u32, bytes: &[u8]) -> u32 {
    let mut hasher = Hasher::new_with_initial(checksum);
    hasher.update(bytes);
    hasher.finalize()
}

#[derive(Debug)]
pub(super) struct Journal {
    paths: Paths,
    rows: File,
    records: File,
    windows: File,
    hashes: File,
    /// The records of rows that were there, as far as they were compared.
    earlier: BufReader<File>,
    /// The windows that were there, the next one last.
    available: Vec<Window>,
    /// Bytes in front of the rows, and of each row.
    front: u64,
    row_bytes: u64,
    /// Windows that are known to be right, added up, and the bytes of their lines.
    finished: Window,
    window_bytes: u64,
    appending: bool,
    /// What it holds is known, so that it can be removed if that is nothing.
    is_known: bool,
    sync: Sync,
}

#[derive(Debug)]
struct Paths {
    rows: PathBuf,
    records: PathBuf,
    windows: PathBuf,
    hashes: PathBuf,
    facts: PathBuf,
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
            windows: with(".partial.windows"),
            hashes: with(".partial.hashes"),
            facts: with(".partial.json"),
        }
    }
}

/// What to do about a journal that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnExisting {
    Refuse,
    Resume,
    Replace,
}

/// What helps where a journal is of another run.
fn start_over() -> Advice {
    Advice::set("overwrite", "starts over")
}

impl Journal {
    /// The fact that names the model; another name alone is no other model.
    pub(super) const MODEL: &str = "model";
    /// The fact that tells models apart.
    pub(super) const WEIGHTS: &str = "weights";
    /// The fact that tells ways of computing apart: tokenizers, processors.
    pub(super) const VECTORS: &str = "vectors";
    /// The fact that tells how rows are stored.
    pub(super) const LAYOUT: &str = "row layout";

    /// The name of the layout that the rows of a journal have, if there is one.
    pub(super) fn layout_of(output: &Path) -> Option<String> {
        let facts = Paths::beside(output).facts;
        let text =
            facts.symlink_metadata().ok()?.is_file().then(|| std::fs::read(facts).ok())??;
        let facts: Facts = serde_json::from_slice(&text).ok()?;
        facts.get(Journal::LAYOUT)?.as_str().map(str::to_owned)
    }

    /// Begins a journal, or goes on with one.
    pub(super) fn open(
        output: &Path,
        facts: &Facts,
        layout: &RowLayout,
        dimensions: usize,
        existing: OnExisting,
    ) -> Result<Journal, Error> {
        let paths = Paths::beside(output);
        // Whatever it is: only a file of ours is taken for a journal below.
        let exists = paths.facts.symlink_metadata().is_ok();
        // One that holds nothing yet is simply begun again.
        let windows = paths.windows.symlink_metadata();
        let holds_some = windows.is_ok_and(|file| !file.is_file() || file.len() > 0);
        if exists && holds_some && existing == OnExisting::Refuse {
            let what = "is of a run that was not finished";
            let advice = Advice::set("resume", "goes on with it").and(start_over());
            return Err(Error::refused_file(&paths.rows, what, advice));
        }
        // Without the facts they are no journal, and may be anyone's; but for empty ones, of a run that
        // was ended while it began.
        let is_someones = |path: &&&PathBuf| {
            path.symlink_metadata().is_ok_and(|file| !file.is_file() || file.len() > 0)
        };
        let others = [&paths.rows, &paths.records, &paths.windows, &paths.hashes];
        if let Some(other) = others.iter().find(is_someones).filter(|_| !exists) {
            let what = "is there, and not of an unfinished run";
            return Err(Error::refused_file(
                other,
                what,
                "this run would write it: move it away, or name another output",
            ));
        }
        let open = |path: &Path| {
            // What could not be made is the output, as far as anybody knows.
            open_own(path, Some(output)).map_err(|e| match e.kind() {
                ErrorKind::InvalidInput => refused_link(path),
                _ => Error::io(if path.exists() { path } else { output }, e),
            })
        };
        let resume = exists && holds_some && existing == OnExisting::Resume;
        if exists {
            open(&paths.facts)?;
        }
        if resume {
            compare_facts(&paths, facts)?;
        }
        let rows = open(&paths.rows)?;
        // Let go of by the system when the process ends, however it does.
        if rows.try_lock().is_err() {
            return Err(Error::refused_file(&paths.rows, "is in use", "another run is writing it"));
        }
        let (records, windows) = (open(&paths.records)?, open(&paths.windows)?);
        let hashes = open(&paths.hashes)?;
        hashes.set_len(0).map_err(|e| Error::io(&paths.hashes, e))?;
        let earlier = BufReader::new(open(&paths.records)?);
        let dim = dimensions as u64;
        let mut journal = Journal {
            paths,
            rows,
            records,
            windows,
            hashes,
            earlier,
            available: Vec::new(),
            front: (layout.front)(0, dim).len() as u64,
            row_bytes: (layout.encoding)().byte_len(&[1, dim]).unwrap_or(0).max(1),
            finished: Window::default(),
            window_bytes: 0,
            appending: false,
            is_known: false,
            sync: Sync::new(),
        };
        if resume {
            journal.available = journal.stored_windows()?;
            journal.is_known = true;
        } else {
            journal.is_known = true;
            journal.begin(facts)?;
        }
        Ok(journal)
    }

    fn begin(&mut self, facts: &Facts) -> Result<(), Error> {
        // Without windows there are no rows, whatever the facts say, and whenever this is interrupted.
        self.windows.set_len(0).map_err(|e| Error::io(&self.paths.windows, e))?;
        let text = serde_json::to_string_pretty(facts).unwrap_or_default() + "\n";
        let io = |e| Error::io(&self.paths.facts, e);
        let mut file = open_own(&self.paths.facts, None).map_err(io)?;
        file.set_len(0).and_then(|()| file.write_all(text.as_bytes())).map_err(io)?;
        self.cut()
    }

    /// The windows whose rows are all there, the first one last.
    fn stored_windows(&self) -> Result<Vec<Window>, Error> {
        let bytes = self.rows.metadata().map_err(|e| Error::io(&self.paths.rows, e))?.len();
        let mut rows = bytes.saturating_sub(self.front) / self.row_bytes;
        let file = File::open(&self.paths.windows);
        let file = file.map_err(|e| Error::io(&self.paths.windows, e))?;
        let mut list: Vec<Window> = Vec::new();
        let (mut lines, mut line) = (BufReader::new(file), Vec::new());
        loop {
            line.clear();
            // A longer line is none of ours.
            let read = lines.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line);
            read.map_err(|e| Error::io(&self.paths.windows, e))?;
            let previous = list.last().map_or(0, |window| window.checksum);
            // A part of a line is what a failing machine did not get written.
            let Some(window) = Window::parse(&line, previous) else { break };
            let Some(left) = rows.checked_sub(window.figures.rows) else { break };
            rows = left;
            list.push(window);
        }
        list.reverse();
        Ok(list)
    }

    /// Rows that are done.
    pub(super) fn finished(&self) -> u64 {
        self.finished.figures.rows
    }

    /// What storing them changed.
    pub(super) fn figures(&self) -> RowFigures {
        self.finished.figures
    }

    pub(super) fn path(&self) -> &Path {
        &self.paths.rows
    }

    /// Takes the next rows for done if the journal has them all; it is an error if it has others.
    pub(super) fn has(&mut self, rows: &[TextRow]) -> Result<bool, Error> {
        let count = rows.len() as u64;
        let Some(window) = self.available.last().copied().filter(|_| !self.appending) else {
            return Ok(false);
        };
        let Some(records) = self.intact(&window)? else { return Ok(false) };
        let lines = records.split(|b| *b == b'\n');
        for ((row, line), number) in rows.iter().zip(lines).zip(self.finished() + 1..) {
            // Behind the last line there is nothing.
            if number > self.finished() + window.figures.rows {
                break;
            }
            if line != row.record.as_bytes() {
                let what = format!(
                    "row {number} of {} is of another text than the input has there",
                    self.paths.rows.display()
                );
                return Err(other_input(what));
            }
        }
        if window.figures.rows != count {
            return Ok(false);
        }
        self.available.pop();
        self.add(&window);
        Ok(true)
    }

    /// The records of the next window, if they and its rows are what was written.
    fn intact(&mut self, window: &Window) -> Result<Option<Vec<u8>>, Error> {
        let mut records = Vec::new();
        let read = self.earlier.by_ref().take(window.records).read_to_end(&mut records);
        read.map_err(|e| Error::io(&self.paths.records, e))?;
        let mut checksum = Hasher::new_with_initial(window.before);
        checksum.update(&records);
        let io = |e| Error::io(&self.paths.rows, e);
        let start = self.front + self.finished() * self.row_bytes;
        (&self.rows).seek(SeekFrom::Start(start)).map_err(io)?;
        let mut rows = (&self.rows).take(window.figures.rows.saturating_mul(self.row_bytes));
        let mut buffer = vec![0; 1 << 16];
        loop {
            match rows.read(&mut buffer).map_err(io)? {
                0 => break,
                n => checksum.update(&buffer[..n]),
            }
        }
        let is_intact = rows.limit() == 0 && checksum.finalize() == window.checksum;
        Ok(is_intact.then_some(records))
    }

    fn add(&mut self, window: &Window) {
        self.finished.records += window.records;
        self.finished.figures.add(&window.figures);
        self.finished.checksum = window.checksum;
        self.window_bytes += window.line;
    }

    /// Adds rows with their bytes, behind the finished ones.
    pub(super) fn append(
        &mut self,
        rows: &[TextRow],
        bytes: &[u8],
        figures: &RowFigures,
    ) -> Result<(), Error> {
        self.cut()?;
        let mut text = Vec::new();
        for row in rows {
            text.extend_from_slice(row.record.as_bytes());
            text.push(b'\n');
        }
        // A window counts once its line is there, so that all else has to be there before.
        self.records.write_all(&text).map_err(|e| Error::io(&self.paths.records, e))?;
        self.rows.write_all(bytes).map_err(|e| Error::io(&self.paths.rows, e))?;
        let mut window =
            Window { records: text.len() as u64, figures: *figures, ..Window::default() };
        let line = window.close(self.finished.checksum, [&text, bytes]);
        self.add(&window);
        let io = |e| Error::io(&self.paths.windows, e);
        self.windows.write_all(&line).map_err(io)?;
        // A line may be on the disk before its rows are: going on, its checksum tells.
        let synced = self.sync.when_due([&self.records, &self.rows, &self.windows]);
        synced.map_err(|e| Error::io(&self.paths.rows, e))
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
        let rows = self.front + self.finished() * self.row_bytes;
        cut(&mut self.rows, &self.paths.rows, rows)?;
        cut(&mut self.records, &self.paths.records, self.finished.records)?;
        cut(&mut self.windows, &self.paths.windows, self.window_bytes)?;
        self.appending = true;
        Ok(())
    }

    /// The input is at its end: what the journal has more is of another one.
    pub(super) fn complete(&mut self) -> Result<(), Error> {
        let more: u64 = self.available.iter().map(|w| w.figures.rows).sum();
        if !self.appending && more > 0 {
            let (finished, rows) = (self.finished(), self.finished() + more);
            let what =
                format!("{} has {rows} rows, and the input {finished}", self.paths.rows.display());
            return Err(other_input(what));
        }
        self.sync.finish().map_err(|e| Error::io(&self.paths.rows, e))?;
        self.cut()
    }

    /// The rows' bytes, mapped.
    pub(super) fn rows(&self) -> Result<View, Error> {
        let end = self.front + self.finished() * self.row_bytes;
        mapped(&self.paths.rows, self.front..end)
    }

    /// The records, mapped.
    pub(super) fn records(&self) -> Result<Records, Error> {
        let lines = mapped(&self.paths.records, 0..self.finished.records)?.in_place()?;
        Ok(Records::from_checked_lines(lines))
    }

    /// The bytes of a row that is finished.
    pub(super) fn row(&self, row: u64, out: &mut Vec<u8>) -> Result<(), Error> {
        let io = |e| Error::io(&self.paths.rows, e);
        let at = self.front + row * self.row_bytes;
        (&self.rows).seek(SeekFrom::Start(at)).map_err(io)?;
        let (before, wanted) = (out.len() as u64, self.row_bytes);
        (&self.rows).take(wanted).read_to_end(out).map_err(io)?;
        let end = self.front + self.finished() * self.row_bytes;
        (&self.rows).seek(SeekFrom::Start(end)).map_err(io)?;
        match out.len() as u64 - before == wanted {
            true => Ok(()),
            false => Err(io(ErrorKind::UnexpectedEof.into())),
        }
    }

    /// Bytes of a row.
    pub(super) fn row_bytes(&self) -> u64 {
        self.row_bytes
    }

    /// Adds the hashes of the next rows.
    pub(super) fn add_hashes(&self, hashes: &[TextHash]) -> Result<(), Error> {
        let io = |e| Error::io(&self.paths.hashes, e);
        (&self.hashes).seek(SeekFrom::End(0)).map_err(io)?;
        (&self.hashes).write_all(hashes.as_flattened()).map_err(io)
    }

    /// The hash of a row.
    pub(super) fn hash(&self, row: u64) -> Result<TextHash, Error> {
        let io = |e| Error::io(&self.paths.hashes, e);
        (&self.hashes).seek(SeekFrom::Start(row * HASH_BYTES as u64)).map_err(io)?;
        let mut hash = TextHash::default();
        (&self.hashes).read_exact(&mut hash).map_err(io)?;
        Ok(hash)
    }

    /// The hashes of all rows, mapped, and the file that has them.
    pub(super) fn hashes(&self) -> Result<(View, &Path), Error> {
        let end = self.finished() * HASH_BYTES as u64;
        Ok((mapped(&self.paths.hashes, 0..end)?, &self.paths.hashes))
    }

    /// Whether there is one.
    pub(super) fn exists(output: &Path) -> bool {
        Paths::beside(output).facts.symlink_metadata().is_ok()
    }

    /// Removes it; the windows first, without which it holds nothing, and the facts last, by which the
    /// rest is known to be ours.
    pub(super) fn remove(&self) {
        let Paths { facts, rows, records, windows, hashes } = &self.paths;
        for path in [windows, rows, records, hashes, facts] {
            // What is left does no harm: the output is there.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for Journal {
    /// A run that failed before its first row leaves nothing to go on with.
    fn drop(&mut self) {
        if self.is_known && self.finished() == 0 && self.available.is_empty() {
            self.remove();
        }
    }
}

fn mapped(path: &Path, range: std::ops::Range<u64>) -> Result<View, Error> {
    let source = Source::open(path, Access::Mapped).map_err(|e| Error::io(path, e))?;
    let view = source.view(range);
    view.ok_or_else(|| Error::io(path, std::io::ErrorKind::UnexpectedEof.into()))
}

/// What stands where a file of the journal belongs, and is none.
fn refused_link(path: &Path) -> Error {
    let what = "is a link, or no file at all, where the rows of an unfinished run are kept";
    Error::refused_file(path, what, "move it away, or name another output")
}

fn other_input(what: String) -> Error {
    let advice = Advice::from("the input is not the one that the run began with");
    Error::refused(what, advice.and(start_over()))
}

/// Refuses to go on where other rows would come out, and says what differs.
fn compare_facts(paths: &Paths, facts: &Facts) -> Result<(), Error> {
    let path = &paths.facts;
    let text = std::fs::read(path).map_err(|e| Error::io(path, e))?;
    let earlier: Facts = serde_json::from_slice(&text)
        .map_err(|e| Error::refused_file(path, &format!("is damaged: {e}"), start_over()))?;
    for (name, now) in facts {
        let then = earlier.get(name).unwrap_or(&serde_json::Value::Null);
        if then != now && name != Journal::MODEL {
            let model = earlier.get(Journal::MODEL).and_then(|v| v.as_str()).unwrap_or("?");
            let what = match name.as_str() {
                Journal::WEIGHTS => {
                    format!("the model has other weights than {model} had when the run began")
                }
                Journal::VECTORS => {
                    format!("the model gives other vectors than {model} gave when the run began")
                }
                Journal::LAYOUT => format!(
                    "the run began with rows stored as {then}, which can't become rows stored as {now}"
                ),
                _ => format!("the run began with another {name}: {then}, and not {now}"),
            };
            let same = Advice::set("resume", "goes on with the same model, settings and input");
            return Err(Error::refused(what, same.and(start_over())));
        }
    }
    Ok(())
}
