//! `weighbridge completions`: a script for the shell.

use std::process::ExitCode;
use weighbridge::Error;

pub(super) fn run(shell: clap_complete::Shell) -> Result<ExitCode, Error> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut crate::args::command(), "weighbridge", &mut script);
    super::print(&String::from_utf8_lossy(&script))
}
