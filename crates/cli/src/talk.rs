//! How much is said beside results and errors. It is decided once, for the whole process.

use crate::args::Global;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

const QUIET: u8 = 1;
const VERBOSE: u8 = 2;

static SAID: AtomicU8 = AtomicU8::new(0);

/// As the command line has it.
pub(crate) fn set(global: &Global) {
    set_color(global.color);
    let said = if global.quiet { QUIET } else { 0 } | if global.verbose { VERBOSE } else { 0 };
    SAID.store(said, Relaxed);
}

/// Colours of both streams, in what we print and in what clap prints.
pub(crate) fn set_color(choice: clap::ColorChoice) {
    match choice {
        clap::ColorChoice::Auto => anstream::ColorChoice::Auto,
        clap::ColorChoice::Always => anstream::ColorChoice::Always,
        clap::ColorChoice::Never => anstream::ColorChoice::Never,
    }
    .write_global();
}

/// Notes, progress and reports of success are not wanted.
pub(crate) fn is_quiet() -> bool {
    SAID.load(Relaxed) == QUIET
}

/// What is done is wanted in more detail.
pub(crate) fn is_verbose() -> bool {
    SAID.load(Relaxed) == VERBOSE
}

/// Whether bars and the like would be seen, and are wanted.
pub(crate) fn shows_progress() -> bool {
    !is_quiet() && std::io::stderr().is_terminal()
}
