//! Signs of life during long work, on a terminal only.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// Work on fewer bytes than this ends at once.
const LONG: u64 = 16 << 20;

/// Runs `work` with a callback that moves the bar by so many bytes.
pub(crate) fn with_bar<T>(
    total: u64,
    label: &str,
    work: impl FnOnce(&mut dyn FnMut(u64)) -> T,
) -> T {
    let template = "{msg} [{bar:40}] {bytes}/{total_bytes} {bytes_per_sec} {eta}";
    if total < LONG { work(&mut |_| {}) } else { bar(total, label, template, work) }
}

/// The same for things that are counted.
pub(crate) fn with_count<T>(
    total: u64,
    label: &str,
    work: impl FnOnce(&mut dyn FnMut(u64)) -> T,
) -> T {
    bar(total, label, "{msg} [{bar:40}] {human_pos}/{human_len} {eta}", work)
}

fn bar<T>(
    total: u64,
    label: &str,
    template: &str,
    work: impl FnOnce(&mut dyn FnMut(u64)) -> T,
) -> T {
    if !std::io::stderr().is_terminal() {
        return work(&mut |_| {});
    }
    let bar = ProgressBar::new(total).with_message(label.to_owned());
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    let done = work(&mut |n| bar.inc(n));
    bar.finish_and_clear();
    done
}

/// Runs `work` on a file while something turns, for work that can't say how far it is.
pub(crate) fn with_spinner<T>(file: &std::path::Path, work: impl FnOnce() -> T) -> T {
    let size = std::fs::metadata(file).map_or(0, |m| m.len());
    if size < LONG || !std::io::stderr().is_terminal() {
        return work();
    }
    let label = crate::render::safe(&file.display().to_string());
    let spinner = ProgressBar::new_spinner().with_message(label);
    spinner.enable_steady_tick(Duration::from_millis(100));
    let done = work();
    spinner.finish_and_clear();
    done
}
