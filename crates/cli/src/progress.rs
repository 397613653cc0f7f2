//! Signs of life during long work, on a terminal only.

use indicatif::{ProgressBar, ProgressStyle};
use std::ops::ControlFlow;
use std::time::Duration;
use weighbridge::{Progress, Stage, Status};

/// Work on fewer bytes than this ends at once.
const LONG: u64 = 16 << 20;

/// Runs `work` with a bar that shows how far it is.
pub(crate) fn with_bar<T>(label: &str, work: impl FnOnce(&mut Progress) -> T) -> T {
    if !crate::talk::shows_progress() {
        return work(&mut Progress::none());
    }
    let mut bar: Option<(Stage, ProgressBar)> = None;
    let mut tell = |status: Status| {
        match &bar {
            Some((stage, shown)) if *stage == status.stage => shown.set_position(status.done),
            _ => {
                if let Some((_, old)) = bar.take() {
                    old.finish_and_clear();
                }
                bar = new_bar(label, status).map(|new| (status.stage, new));
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

/// A bar for a stage that takes long enough.
fn new_bar(label: &str, status: Status) -> Option<ProgressBar> {
    let total = status.total?;
    let (template, long) = match status.stage {
        Stage::Writing | Stage::Fetching => {
            ("{msg} [{bar:40}] {bytes}/{total_bytes} {bytes_per_sec} {eta}", LONG)
        }
        // Each value has four bytes.
        Stage::Quantizing | Stage::Training => {
            ("{msg} [{bar:40}] {human_pos}/{human_len} values {eta}", LONG / 4)
        }
        _ => ("{msg} [{bar:40}] {human_pos}/{human_len} {eta}", 0),
    };
    if total < long {
        return None;
    }
    let bar = ProgressBar::new(total).with_message(label.to_owned());
    bar.set_position(status.done);
    Some(match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style.progress_chars("=> ")),
        Err(_) => bar,
    })
}

/// Runs `work` on a file while something turns, for work that can't say how far it is.
pub(crate) fn with_spinner<T>(file: &std::path::Path, work: impl FnOnce() -> T) -> T {
    let size = std::fs::metadata(file).map_or(0, |m| m.len());
    if size < LONG {
        return work();
    }
    while_turning(&crate::render::safe(&file.display().to_string()), work)
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
