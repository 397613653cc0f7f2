//! `weighbridge embed`: texts to vectors, to the terminal or into a file of any format.

use super::convert;
use crate::args::Embed;
use crate::progress::with_bar;
use crate::render::{BOLD, DIM, YELLOW, general, grouped, safe, styled};
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::File;
use std::io::{self, BufReader, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use weighbridge::embed::{self, Done, Embedded, Reading, Request, Row, Run, TEXT, Texts, jsonl};
use weighbridge::encoder::{Precision, Settings, has_bf16};
use weighbridge::{Encoder, Error, models};

pub(super) fn run(args: &Embed) -> Result<ExitCode, Error> {
    let output = args.output.as_deref().filter(|path| *path != Path::new("-"));
    if output.is_none() && args.to.as_deref().is_some_and(|to| to != jsonl::ID) {
        return Err(Error::refused("such a file needs a name", "--output names it"));
    }
    // The input first: what is wrong with it is found sooner than a model is loaded.
    let (mut texts, bytes) = open_texts(args)?;
    let settings = Settings {
        normalize: args.no_normalize.then_some(false),
        dimensions: args.dimensions,
        ..args.model.settings(args.pooling)
    };
    let model = models::find(&args.model.model)?;
    if let Some(output) = output {
        for (other, what) in [(Some(&model), "model"), (args.input.as_ref(), "input")] {
            if other.is_some_and(|other| is_same(other, output)) {
                let what = format!("{} is the {what}", output.display());
                return Err(Error::refused(what, "vectors go into another file"));
            }
        }
    }
    if settings.precision == Precision::Bf16 && !has_bf16() {
        eprintln!("note: this processor does not multiply bf16; f32 is used, which is closer");
    }
    let encoder = Encoder::open_with(model, &settings)?;
    match output {
        None => print_vectors(args, &encoder, &mut texts, bytes),
        Some(output) => write_vectors(args, settings, &encoder, &mut texts, bytes, output),
    }
}

/// Whether two names lead to one file.
fn is_same(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// The texts, and how many bytes they have where that is known.
fn open_texts(args: &Embed) -> Result<(Texts<'static>, Option<u64>), Error> {
    if !args.texts.is_empty() {
        return Ok((Texts::given(args.texts.clone()), None));
    }
    let path = args.input.as_deref().filter(|path| *path != Path::new("-"));
    let extension = path.and_then(|p| p.extension()).unwrap_or_default().to_ascii_lowercase();
    let by_name = extension == "jsonl" || extension == "ndjson";
    let reading = Reading {
        field: args.field.clone().or(by_name.then(|| TEXT.to_owned())),
        lossy: args.lossy,
        skip_bad: args.skip_bad,
    };
    let Some(path) = path else {
        if args.input.is_none() && io::stdin().is_terminal() {
            let hint = "write them behind the options, or name a file with --input";
            return Err(Error::refused("there are no texts", hint));
        }
        return Ok((Texts::new("standard input", io::stdin().lock(), &reading), None));
    };
    let io = |e| Error::io(path, e);
    let file = File::open(path).map_err(io)?;
    let meta = file.metadata().map_err(io)?;
    if meta.is_dir() {
        return Err(Error::refused(format!("{} is a folder", path.display()), "name a file"));
    }
    let input = BufReader::with_capacity(1 << 16, file);
    let bytes = meta.is_file().then_some(meta.len());
    Ok((Texts::new(&path.display().to_string(), input, &reading), bytes))
}

/// Prints vectors window by window, as long as somebody reads them.
fn print_vectors(
    args: &Embed,
    encoder: &Encoder,
    texts: &mut Texts,
    bytes: Option<u64>,
) -> Result<ExitCode, Error> {
    let terminal = io::stdout().is_terminal();
    let in_json = args.json || args.to.is_some() || args.output.is_some() || !terminal;
    // Two things on one terminal would be in each other's way.
    let mut bar = Bar::new(bytes, !terminal);
    let mut done = Done::default();
    loop {
        let rows = embed::window(texts, args.batch)?;
        if rows.is_empty() {
            break;
        }
        let vectors = embed::embed_rows(encoder, &rows)?;
        let each = rows.iter().zip(vectors.chunks_exact(encoder.dimensions()));
        let lines: String = each
            .map(|(row, vector)| match in_json {
                true => jsonl::line(&row.record, vector),
                false => short_line(row, vector),
            })
            .collect();
        if !show(&lines)? {
            return Ok(ExitCode::SUCCESS);
        }
        done.rows += rows.len() as u64;
        bar.moved(Done { bytes: texts.position(), ..done });
    }
    bar.end();
    say_skipped(texts);
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
fn short_line(row: &Row, vector: &[f32]) -> String {
    const SHOWN: usize = 5;
    let mut values: Vec<_> = vector.iter().take(SHOWN).map(|v| general(f64::from(*v))).collect();
    if vector.len() > SHOWN {
        values.push(format!("… {} values", vector.len()));
    }
    let text = safe(&shortened(&row.text));
    format!("{}\n  {}\n", styled(BOLD, text), styled(DIM, values.join("  ")))
}

/// At most a line of a terminal.
fn shortened(text: &str) -> String {
    const MOST: usize = 76;
    match text.char_indices().nth(MOST) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

fn write_vectors(
    args: &Embed,
    settings: Settings,
    encoder: &Encoder,
    texts: &mut Texts,
    bytes: Option<u64>,
    output: &Path,
) -> Result<ExitCode, Error> {
    let request = Request {
        output: output.to_owned(),
        to: args.to.clone(),
        window: args.batch,
        resume: args.resume,
        force: args.force,
        model: args.model.model.clone(),
        settings,
    };
    let mut run = request.begin(encoder, texts.field())?;
    let began = Instant::now();
    let mut bar = Bar::new(bytes, true);
    let resumed = run.embed(texts, &mut |done| bar.moved(done));
    bar.end();
    let (journal, finished) = (run.journal().to_owned(), run.finished());
    let kept = |error: Error| {
        say_kept(&journal, finished);
        error
    };
    let resumed = resumed.map_err(kept)?;
    let seconds = began.elapsed().as_secs_f64();
    let embedded = finish(run, resumed).map_err(kept)?;
    report(args, &embedded, texts, seconds)
}

fn finish(run: Run, resumed: u64) -> Result<Embedded, Error> {
    let embedded = run.finish(resumed)?;
    let conversion = &embedded.conversion;
    let (total, label) = (conversion.plan.size(), conversion.output.display().to_string());
    with_bar(total, &label, |progress| embedded.write(progress))?;
    Ok(embedded)
}

fn report(
    args: &Embed,
    embedded: &Embedded,
    texts: &Texts,
    seconds: f64,
) -> Result<ExitCode, Error> {
    let Embedded { conversion, rows, resumed, .. } = embedded;
    let dimensions = conversion.container.rows().map_or(0, |rows| rows.dim);
    if args.json {
        let mut json = convert::as_json(conversion, false);
        json["rows"] = (*rows).into();
        json["dimensions"] = dimensions.into();
        json["resumed"] = (*resumed).into();
        json["skipped"] = texts.skipped.into();
        return super::print_json(&json);
    }
    say_skipped(texts);
    let mut text = convert::text(conversion, false);
    let mut line = format!("{} vectors of {dimensions} values", grouped(*rows));
    let new = rows - resumed;
    if *resumed > 0 {
        line.push_str(&format!(", {} of them from the run before", grouped(*resumed)));
    }
    if new >= 1000 && seconds > 0.0 {
        #[allow(clippy::cast_precision_loss)]
        let speed = new as f64 / seconds;
        line.push_str(&format!(", {speed:.0} texts/s"));
    }
    text.push_str(&format!("  {} {line}\n", styled(DIM, "rows    ")));
    super::print(&text)
}

/// After an error: what was done is not lost.
fn say_kept(journal: &Path, rows: u64) {
    if rows > 0 {
        let file = safe(&journal.display().to_string());
        let note = format!("{} finished rows are kept in {file}; --resume goes on", grouped(rows));
        anstream::eprintln!("{}: {note}", styled(YELLOW, "note"));
    }
}

fn say_skipped(texts: &Texts) {
    for skipped in &texts.first_skipped {
        anstream::eprintln!(
            "{}: line {}: {}",
            styled(YELLOW, "skipped"),
            skipped.line,
            safe(&skipped.why)
        );
    }
    let listed = texts.first_skipped.len() as u64;
    match texts.skipped {
        0 => {}
        1 => anstream::eprintln!("{}: 1 line", styled(YELLOW, "skipped")),
        n if n == listed => anstream::eprintln!("{}: {n} lines", styled(YELLOW, "skipped")),
        n => anstream::eprintln!("{}: {} lines in all", styled(YELLOW, "skipped"), grouped(n)),
    }
}

/// Texts a second and the time that is left, by the bytes of the input; on a terminal only.
struct Bar {
    bar: Option<ProgressBar>,
    /// When the first text of this run was begun, and how many an earlier run had finished.
    began: (Instant, u64),
}

impl Bar {
    fn new(bytes: Option<u64>, wanted: bool) -> Bar {
        let bar = (wanted && io::stderr().is_terminal()).then(|| {
            let (bar, template) = match bytes {
                Some(total) => (ProgressBar::new(total), "[{bar:40}] {percent}% {msg} {eta} left"),
                None => (ProgressBar::new_spinner(), "{spinner} {msg}"),
            };
            match ProgressStyle::with_template(template) {
                Ok(style) => bar.with_style(style.progress_chars("=> ")),
                Err(_) => bar,
            }
        });
        Bar { bar, began: (Instant::now(), 0) }
    }

    fn moved(&mut self, done: Done) {
        let Some(bar) = &self.bar else { return };
        bar.set_position(done.bytes);
        if done.rows == done.resumed {
            bar.reset_eta();
            self.began = (Instant::now(), done.rows);
        }
        let (seconds, rows) = (self.began.0.elapsed().as_secs_f64(), done.rows - self.began.1);
        #[allow(clippy::cast_precision_loss)]
        let speed = match rows {
            0 => String::new(),
            rows => format!(", {:.0} texts/s", rows as f64 / seconds.max(1e-3)),
        };
        bar.set_message(format!("{} texts{speed}", grouped(done.rows)));
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
