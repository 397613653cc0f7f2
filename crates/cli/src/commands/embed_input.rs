//! The texts of `weighbridge embed`: where they come from, and what is said of them.

use crate::args::Embed;
use crate::render::{YELLOW, grouped, marked, safe};
use std::io::{self, BufReader, IsTerminal};
use std::path::Path;
use weighbridge::embed::{TextOptions, Texts, jsonl};
use weighbridge::source::open_input;
use weighbridge::{Error, Format, Formats};

/// Rows of the format are lines of text, which can be printed one by one.
pub(super) fn is_of_lines(format: &Format) -> bool {
    format.info().open_ended && format.info().is_of_rows()
}

/// The texts, and how many bytes they have where that is known.
pub(super) fn open_texts(args: &Embed) -> Result<(Texts<'static>, Option<u64>), Error> {
    if !args.texts.is_empty() {
        return Ok((Texts::given(args.texts.clone()), None));
    }
    let path = args.input.as_deref().filter(|path| *path != Path::new("-"));
    let extension = path.and_then(|p| p.extension()).unwrap_or_default().to_ascii_lowercase();
    let lines = Formats::builtin().iter().filter(|f| is_of_lines(f));
    let by_name = lines.flat_map(|f| f.info().extensions).any(|e| extension == *e);
    // What is asked for otherwise is no table, whatever its name.
    let may_be_table = !args.lines && args.field.is_none();
    let table = may_be_table.then(|| args.table.options(path)).flatten();
    // Which of the two it is, a flag decides.
    let by_name = by_name && table.is_none();
    let options = TextOptions {
        // What is named so is JSON lines, unless each line is asked for as it is.
        field: args.field.clone().or((by_name && !args.lines).then(|| jsonl::TEXT.to_owned())),
        lossy: args.lossy,
        skip_bad: args.skip_bad,
        lines: args.lines,
        table,
    };
    let Some(path) = path else {
        if args.input.is_none() && io::stdin().is_terminal() {
            let hint = "give them as arguments, or name a file with --input";
            return Err(Error::refused("there are no texts", hint));
        }
        let input = BufReader::with_capacity(1 << 16, io::stdin().lock());
        return Ok((Texts::new("standard input", input, &options), None));
    };
    let io = |e| Error::io(path, e);
    if path.is_dir() {
        return Err(Error::refused_file(path, "is a folder", "name a file"));
    }
    let file = open_input(path).map_err(io)?;
    let meta = file.metadata().map_err(io)?;
    let input = BufReader::with_capacity(1 << 16, file);
    let bytes = meta.is_file().then_some(meta.len());
    Ok((Texts::new(&path.display().to_string(), input, &options), bytes))
}

/// Says of a table what nobody asked for: which column was taken, and what others are called.
pub(super) fn say_column(texts: &Texts) {
    let Some(column) = texts.column() else { return };
    if column.by_itself {
        let note =
            format!("the column {:?} holds the texts; --column chooses another", column.name);
        super::say_note(&note);
    }
    if !column.made.is_empty() {
        const LISTED: usize = 5;
        let list: Vec<_> = column.made.iter().take(LISTED).map(String::as_str).collect();
        let more = if column.made.len() > LISTED { ", …" } else { "" };
        let called = format!("{}{more}", list.join(", "));
        super::say_note(&format!("columns without a name of their own are called {called}"));
    }
}

pub(super) fn say_skipped(args: &Embed, texts: &Texts) {
    if crate::talk::is_quiet() {
        return;
    }
    let what = if args.texts.is_empty() { "line" } else { "text" };
    for skipped in &texts.first_skipped {
        crate::render::say!(
            "{}: {what} {}: {}",
            marked(YELLOW, "skipped"),
            skipped.line,
            safe(&skipped.why)
        );
    }
    let listed = texts.first_skipped.len() as u64;
    match texts.skipped {
        0 => {}
        1 => crate::render::say!("{}: 1 {what}", marked(YELLOW, "skipped")),
        n if n == listed => crate::render::say!("{}: {n} {what}s", marked(YELLOW, "skipped")),
        n => crate::render::say!("{}: {} {what}s in all", marked(YELLOW, "skipped"), grouped(n)),
    }
}
