//! A progress bar for long work, on a terminal only.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;

/// Runs `work` with a callback that moves the bar by so many bytes.
pub(crate) fn with_bar<T>(
    total: u64,
    label: &str,
    work: impl FnOnce(&mut dyn FnMut(u64)) -> T,
) -> T {
    // Work that ends at once needs no bar.
    if total < 16 << 20 || !std::io::stderr().is_terminal() {
        return work(&mut |_| {});
    }
    let bar = ProgressBar::new(total).with_message(label.to_owned());
    let template = "{msg} [{bar:40}] {bytes}/{total_bytes} {bytes_per_sec} {eta}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    let done = work(&mut |n| bar.inc(n));
    bar.finish_and_clear();
    done
}
