//! Signs of life during long work, on a terminal only.

use crate::render::{grouped, safe, shortened};
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt::Write;
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};
use weighbridge::embed::{InputRows, TextRow, Texts};
use weighbridge::source::LastWords;
use weighbridge::{Error, Progress, Stage, Status};

/// Work on fewer bytes than this mostly ends at once.
const LONG: u64 = 16 << 20;

/// Work that takes longer is shown whatever its size.
const SOON: Duration = Duration::from_millis(300);

/// Bars are drawn anew so often, so that the time that is left runs down.
const TICK: Duration = Duration::from_millis(200);

/// Runs `work` with a bar that shows how far it is.
pub(crate) fn with_bar<T>(label: &str, work: impl FnOnce(&mut Progress) -> T) -> T {
    if !crate::talk::shows_progress() {
        return work(&mut Progress::none());
    }
    let began = Instant::now();
    let mut bar: Option<(Stage, ProgressBar)> = None;
    let mut tell = |status: Status| {
        match &bar {
            Some((stage, shown)) if *stage == status.stage => shown.set_position(status.done),
            _ => {
                if let Some((_, old)) = bar.take() {
                    old.finish_and_clear();
                }
                // How much there is may be unknown, and then it is what was done that tells.
                let known = status.total.unwrap_or(status.done);
                let shown = known >= long(status.stage) || began.elapsed() > SOON;
                bar = shown.then(|| (status.stage, new_bar(label, status)));
            }
        }
        ControlFlow::Continue(())
    };
    let done = work(&mut Progress::new(&mut tell));
    if let Some((_, bar)) = bar {
        bar.finish_and_clear();
    }
    done
}

/// The same for texts that are scored by a model that says how many are done.
pub(crate) fn with_scoring_bar<T>(
    label: &str,
    texts: usize,
    work: impl FnOnce(&mut dyn FnMut(usize) -> ControlFlow<()>) -> Result<T, Error>,
) -> Result<T, Error> {
    with_bar(label, |progress| {
        progress.begin(Stage::Scoring, texts as u64)?;
        work(&mut |done| match progress.reach(done as u64) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        })
    })
}

/// How much work of a stage takes long enough to be shown from the beginning.
fn long(stage: Stage) -> u64 {
    match stage {
        Stage::Writing | Stage::Fetching | Stage::Checking => LONG,
        // Each value has four bytes.
        Stage::Scanning | Stage::Quantizing | Stage::Training => LONG / 4,
        _ => 100,
    }
}

/// A bar with what is done, the rate and the time that is left, in the units of the report.
fn new_bar(label: &str, status: Status) -> ProgressBar {
    let (doing, unit) = match status.stage {
        Stage::Writing => ("writing", ""),
        Stage::Fetching => ("fetching", ""),
        Stage::Scanning => ("reading", "values"),
        Stage::Calibrating => ("calibrating", "values"),
        Stage::Quantizing => ("quantizing", "values"),
        Stage::Training => ("training", "values"),
        Stage::Comparing => ("comparing", "texts"),
        Stage::Answering => ("answering", "questions"),
        Stage::Checking => ("checking", ""),
        Stage::Merging => ("merging", "rows"),
        Stage::Scoring => ("reranking", "texts"),
        _ => ("embedding", "texts"),
    };
    let counted = match unit {
        "" => "{decimal_bytes}/{decimal_total_bytes}, {decimal_bytes_per_sec}".to_owned(),
        unit => format!("{{human_pos}}/{{human_len}} {unit}, {{rate}}"),
    };
    let bar = match status.total {
        Some(total) => {
            let template = format!("{{msg}} [{{wide_bar}}] {counted}{{left}}");
            styled_bar(ProgressBar::new(total), &template)
        }
        // Text is as long as it gets.
        None => {
            let template = "{spinner} {msg} {decimal_bytes}, {decimal_bytes_per_sec}";
            styled_bar(ProgressBar::new_spinner(), template)
        }
    };
    bar.set_message(format!("{doing} {}", shortened(label, 24)));
    bar.set_position(status.done);
    bar.reset_eta();
    bar
}

fn styled_bar(bar: ProgressBar, template: &str) -> ProgressBar {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let rate = |state: &ProgressState, out: &mut dyn Write| {
        let _ = write!(out, "{}/s", grouped(state.per_sec() as u64));
    };
    // Before anything is done nobody knows how long it takes.
    let left = |state: &ProgressState, out: &mut dyn Write| {
        if state.pos() > 0 {
            let _ = write!(out, ", {:#} left", HumanDuration(state.eta()));
        }
    };
    let bar = match ProgressStyle::with_template(template) {
        Ok(style) => {
            let style = style.progress_chars("=> ").with_key("rate", rate);
            bar.with_style(style.with_key("left", left))
        }
        Err(_) => bar,
    };
    bar.enable_steady_tick(TICK);
    bar
}

/// Runs `work` on texts with a bar that shows texts a second and the time that is left, by the bytes
/// of the input where they are known.
pub(crate) fn with_texts_bar<T>(
    bytes: Option<u64>,
    wanted: bool,
    texts: &mut InputRows<&mut Texts>,
    work: impl FnOnce(&mut dyn Iterator<Item = Result<TextRow, Error>>, &mut Progress) -> T,
) -> T {
    if !wanted || !crate::talk::shows_progress() {
        return work(texts, &mut Progress::none());
    }
    let bar = match bytes {
        Some(total) => styled_bar(ProgressBar::new(total), "[{wide_bar}] {percent}% {msg}{left}"),
        None => styled_bar(ProgressBar::new_spinner(), "{spinner} {msg}"),
    };
    // Where each text ends that was read and is not done: texts are read a window ahead.
    let ends = RefCell::new(VecDeque::new());
    let mut counted = std::iter::from_fn(|| {
        let next = texts.next();
        ends.borrow_mut().push_back(texts.get_ref().bytes_read());
        next
    });
    let (mut finished, mut resumed) = (0, 0);
    let mut began = Instant::now();
    let mut tell = |status: Status| {
        if status.stage == Stage::Resuming {
            resumed = status.done;
        }
        let new = if status.stage == Stage::Embedding { status.done } else { 0 };
        while finished < resumed + new {
            finished += 1;
            bar.set_position(ends.borrow_mut().pop_front().unwrap_or_default());
        }
        if new == 0 {
            bar.reset_eta();
            began = Instant::now();
        }
        #[allow(clippy::cast_precision_loss)]
        let speed = match new {
            0 => String::new(),
            new => format!(", {:.0} texts/s", new as f64 / began.elapsed().as_secs_f64().max(1e-3)),
        };
        bar.set_message(format!("{} texts{speed}", grouped(finished)));
        ControlFlow::Continue(())
    };
    let done = work(&mut counted, &mut Progress::new(&mut tell));
    bar.finish_and_clear();
    done
}

/// What Ctrl-C says from now on, until it is dropped; `{}` stands for a number.
pub(crate) fn last_words(text: &str) -> LastWords {
    // The bar, and the ^C that a terminal shows, are in the way.
    let start = if std::io::stderr().is_terminal() { "\r\x1b[K" } else { "" };
    LastWords::new(&format!("{start}stopped: {text}\n"))
}

/// Runs `work` on a file while something turns, for work that can't say how far it is.
pub(crate) fn with_spinner<T>(file: &Path, work: impl FnOnce() -> T) -> T {
    let size = std::fs::metadata(file).map_or(0, |m| m.len());
    with_spinner_for(size, &safe(&file.display().to_string()), work)
}

/// The same for work on so many bytes.
pub(crate) fn with_spinner_for<T>(bytes: u64, label: &str, work: impl FnOnce() -> T) -> T {
    if bytes < LONG { work() } else { while_turning(label, work) }
}

/// Something turns while `work` runs.
pub(crate) fn while_turning<T>(label: &str, work: impl FnOnce() -> T) -> T {
    if !crate::talk::shows_progress() {
        return work();
    }
    let spinner = ProgressBar::new_spinner().with_message(label.to_owned());
    spinner.enable_steady_tick(Duration::from_millis(100));
    let done = work();
    spinner.finish_and_clear();
    done
}
