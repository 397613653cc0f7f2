//! `weighbridge embed`: texts to vectors, to the terminal or into a file of any format.

use super::Files;
use super::embed_input::{is_of_lines, open_texts, say_column, say_skipped};
use super::output::Outcome;
use crate::ExitCode;
use crate::args::Embed;
use crate::progress::{last_words, while_turning, with_bar, with_texts_bar};
use crate::render::{
    BOLD, DIM, YELLOW, general, grouped, marked, safe, safe_json, shortened, styled, width,
};
use serde::Serialize;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Instant;
use weighbridge::embed::{
    self, EmbedFile, EmbedSettings, Embedded, EmbeddedFile, InputRows, OutputType, RowSink,
    TextRow, Texts, Wanted, jsonl,
};
use weighbridge::encoder::{Purpose, Settings};
use weighbridge::source::LastWords;
use weighbridge::{Conversion, Encoder, Error, Formats, Options, Output, Progress, models};

pub(super) fn run(args: &Embed, options: &Options, files: Files) -> Result<ExitCode, Error> {
    let files = files.accepting(&args.damage);
    let output = args.output.as_deref().filter(|path| *path != Path::new("-"));
    let formats = Formats::builtin();
    // What has no name is printed, and only lines can be.
    let named = args.to.as_deref().map(|to| formats.named(to, "to")).transpose()?;
    if output.is_none() && named.is_some_and(|format| !is_of_lines(format)) {
        return Err(Error::refused("such a file needs a name", "--output names it"));
    }
    // The input first: what is wrong with it is found sooner than a model is loaded.
    let (mut texts, bytes) = open_texts(args)?;
    if output.is_none() && args.stored.output_type.is_some_and(|to| to != OutputType::F32) {
        let hint = "--output names a file that holds others";
        return Err(Error::refused("vectors are printed as f32", hint));
    }
    texts.check()?;
    say_column(&texts);
    super::say_files(&args.texts, |name| format!("-i {name} reads it"));
    let settings = Settings {
        normalize: args.no_normalize.then_some(false),
        dimensions: args.dimensions,
        ..args.model.settings(args.pooling)
    };
    let model = models::find(&args.model.model)?;
    if let Some(output) = output {
        for (other, what) in [(Some(&model), "model"), (args.input.as_ref(), "input")] {
            if other.is_some_and(|other| is_same(other, output)) {
                let what = format!("is the {what}");
                return Err(Error::refused_file(output, &what, "vectors go into another file"));
            }
        }
    }
    super::say_built_in(&model, args.json);
    let encoder = files.encoder(&model, options, &settings)?;
    let encoder = super::prompts::prompted(&encoder, args.prompt.as_deref(), Purpose::Document);
    let Some(output) = output else {
        return print_vectors(args, &encoder, &mut texts, bytes);
    };
    let format = formats.target(&output.to_string_lossy(), args.to.as_deref())?;
    let mut file = EmbedSettings::new(Output::new(output).overwrite(args.force), format);
    file.shard = args.shard;
    if args.skip_bad && format.info().unit_rows {
        texts.skip_zeros(&encoder);
    }
    if args.dry_run {
        return dry_run(args, &encoder, &mut texts, &file);
    }
    file.window = args.batch;
    file.resume = args.resume;
    file.model.clone_from(&args.model.model);
    // One that is no file is found by its name.
    file.model_path = Some(model).filter(|model| !models::is_built_in(model));
    file.settings = settings;
    file.form = texts.form();
    file.output_type = args.stored.output_type;
    file.ranges = files.ranges(&args.stored, options)?;
    file.reuse.clone_from(&args.reuse);
    file.manifest = args.manifest;
    write_vectors(args, &encoder, &mut texts, bytes, file)
}

/// Whether two names lead to one file.
fn is_same(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Texts that are embedded before their vectors are printed: nobody waits long for the first, and
/// there are enough to share out.
const PRINTED: usize = 64;

/// Prints vectors window by window, as long as somebody reads them.
fn print_vectors(
    args: &Embed,
    encoder: &Encoder,
    texts: &mut Texts,
    bytes: Option<u64>,
) -> Result<ExitCode, Error> {
    let terminal = io::stdout().is_terminal();
    let in_json = args.json || args.to.is_some() || args.output.is_some() || !terminal;
    let window = args.batch.min(PRINTED);
    let mut nobody_reads = false;
    let mut sink = |rows: &[TextRow], vectors: &[f32]| {
        let each = rows.iter().zip(vectors.chunks_exact(encoder.dimensions()));
        let lines: String = each
            .map(|(row, vector)| match in_json {
                true => safe_json(&jsonl::line(&row.record, vector)),
                false => short_line(row, vector),
            })
            .collect();
        nobody_reads = !show(&lines)?;
        // Nothing that follows would be read either.
        if nobody_reads { Err(Error::Cancelled) } else { Ok(()) }
    };
    let done = if args.texts.is_empty() && bytes.is_none() {
        // Who writes a text to a pipe gets its vector without writing more.
        embed::embed_as_they_come(encoder, texts, window, &mut sink, &mut Progress::none())
    } else {
        // Two things on one terminal would be in each other's way.
        with_texts_bar(bytes, !terminal, &mut InputRows::new(texts, None), |texts, progress| {
            embed::embed(encoder, texts, window, &mut sink, progress)
        })
    };
    match done {
        Err(Error::Cancelled) if nobody_reads => return Ok(ExitCode::SUCCESS),
        done => super::say_cut(done?.cut, encoder.max_tokens()),
    }
    say_skipped(args, texts);
    Ok(ExitCode::SUCCESS)
}

/// Prints; `false` when nobody reads any more.
fn show(text: &str) -> Result<bool, Error> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(e) => Err(Error::io(Path::new("standard output"), e)),
    }
}

/// A text and the first of its values.
fn short_line(row: &TextRow, vector: &[f32]) -> String {
    const SHOWN: usize = 5;
    let mut values: Vec<_> = vector.iter().take(SHOWN).map(|v| general(f64::from(*v))).collect();
    if vector.len() > SHOWN {
        values.push(format!("… {} values", vector.len()));
    }
    let text = safe(&row.text);
    let text = shortened(&text, width().unwrap_or(80));
    format!("{}\n  {}\n", styled(BOLD, text), styled(DIM, values.join("  ")))
}

#[derive(Serialize)]
struct Planned {
    to: &'static str,
    written: bool,
    rows: u64,
    dimensions: usize,
    skipped: u64,
    needs: Option<String>,
}

/// Reads the texts and says what would become of them.
fn dry_run(
    args: &Embed,
    encoder: &Encoder,
    texts: &mut Texts,
    file: &EmbedSettings,
) -> Result<ExitCode, Error> {
    let mut rows = 0;
    for text in InputRows::new(texts.by_ref(), file.shard) {
        text?;
        rows += 1;
    }
    let needs = file.output.obstacle().map(|error| crate::hints::sentence(&error));
    let (info, dimensions) = (file.format.info(), encoder.dimensions());
    if args.json {
        let (to, skipped) = (info.id, texts.skipped);
        return super::print_json(&Planned {
            to,
            written: false,
            rows,
            dimensions,
            skipped,
            needs,
        });
    }
    say_skipped(args, texts);
    let name = styled(BOLD, safe(&file.output.path.display().to_string()));
    let rows = grouped(rows);
    let mut text =
        format!("would write {name}: {}, {rows} vectors of {dimensions} values\n", info.name);
    if let Some(needs) = needs {
        text.push_str(&format!("  {} {}\n", styled(YELLOW, "needs   "), safe(&needs)));
    }
    super::print_text(&text)
}

fn write_vectors(
    args: &Embed,
    encoder: &Encoder,
    texts: &mut Texts,
    bytes: Option<u64>,
    settings: EmbedSettings,
) -> Result<ExitCode, Error> {
    let shard = settings.shard;
    let mut file = match settings.reuse.is_empty() {
        true => EmbedFile::begin(encoder, settings)?,
        // All bytes of the files are compared with their hashes.
        false => while_turning("earlier files", || EmbedFile::begin(encoder, settings))?,
    };
    let began = Instant::now();
    let name = safe(&file.journal().display().to_string());
    let words = last_words("nothing was written");
    let mut sink = Kept { file: &mut file, words: None, name };
    let mut rows = InputRows::new(&mut *texts, shard);
    let done = with_texts_bar(bytes, true, &mut rows, |rows, progress| {
        embed::embed(encoder, rows, args.batch, &mut sink, progress)
    });
    let input = rows.id();
    let counted = sink.words;
    file.set_input(input);
    let (journal, finished) = (file.journal().to_owned(), file.finished());
    let kept = |error: Error| {
        say_kept(&journal, finished);
        error
    };
    let done = done.map_err(kept)?;
    let seconds = began.elapsed().as_secs_f64();
    let file = finish(file).map_err(kept)?;
    drop(counted);
    drop(words);
    report(args, encoder, &file, done, texts, seconds)
}

/// A file that says on Ctrl-C how much of it is kept.
struct Kept<'a> {
    file: &'a mut EmbedFile,
    /// Once something is kept.
    words: Option<LastWords>,
    /// Of the journal.
    name: String,
}

impl Kept<'_> {
    fn count(&mut self, before: u64) {
        let finished = self.file.finished();
        if before == 0 && finished > 0 {
            let name = &self.name;
            let text = format!("{{}} texts are kept in {name}; --resume goes on");
            self.words = Some(last_words(&text));
        }
        if let Some(words) = &self.words {
            words.count(finished);
        }
    }
}

impl RowSink for Kept<'_> {
    fn has(&mut self, rows: &[TextRow]) -> Result<bool, Error> {
        let before = self.file.finished();
        let has = self.file.has(rows);
        self.count(before);
        has
    }

    fn wanted(&mut self, rows: &[TextRow]) -> Result<Wanted, Error> {
        self.file.wanted(rows)
    }

    fn take(&mut self, rows: &[TextRow], vectors: &[f32]) -> Result<(), Error> {
        let before = self.file.finished();
        let taken = self.file.take(rows, vectors);
        self.count(before);
        taken
    }
}

fn finish(file: EmbedFile) -> Result<EmbeddedFile, Error> {
    let file = file.finish()?;
    let label = safe(&file.output.path.display().to_string());
    with_bar(&label, |progress| file.write(progress))?;
    Ok(file)
}

#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    conversion: &'a Conversion,
    rows: u64,
    dimensions: usize,
    resumed: u64,
    reused: u64,
    repeated: u64,
    skipped: u64,
    cut: u64,
    assumed: Vec<String>,
}

fn report(
    args: &Embed,
    encoder: &Encoder,
    file: &EmbeddedFile,
    done: Embedded,
    texts: &Texts,
    seconds: f64,
) -> Result<ExitCode, Error> {
    let outcome = Outcome::new(&file.plan, &file.output, true)?;
    let (rows, dimensions, resumed) = (file.rows, file.dimensions, done.resumed);
    if args.json {
        let (conversion, skipped) = (&outcome.conversion, texts.skipped);
        let assumed = encoder.assumed().iter().map(ToString::to_string).collect();
        let Embedded { reused, repeated, cut, .. } = done;
        return super::print_json(&Line {
            conversion,
            rows,
            dimensions,
            resumed,
            reused,
            repeated,
            skipped,
            cut,
            assumed,
        });
    }
    say_skipped(args, texts);
    super::say_cut(done.cut, encoder.max_tokens());
    let mut text = outcome.text();
    let mut line = format!("{} vectors of {dimensions} values", grouped(rows));
    let new = rows - resumed;
    for (count, what) in [
        (resumed, "from the run before"),
        (done.reused, "from earlier files"),
        (done.repeated, "with the text of a row before"),
    ] {
        if count > 0 {
            line.push_str(&format!(", {} of them {what}", grouped(count)));
        }
    }
    if new >= 1000 && seconds > 0.0 {
        #[allow(clippy::cast_precision_loss)]
        let speed = new as f64 / seconds;
        line.push_str(&format!(", {speed:.0} texts/s"));
    }
    text.push_str(&format!("  {} {line}\n", styled(DIM, "rows    ")));
    super::report(&text)
}

/// After an error: what was done is not lost.
fn say_kept(journal: &Path, rows: u64) {
    if rows > 0 {
        let file = safe(&journal.display().to_string());
        let note = format!("{} finished rows are kept in {file}; --resume goes on", grouped(rows));
        crate::render::say!("{}: {note}", marked(YELLOW, "note"));
    }
}
