//! The program `weighbridge`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    weighbridge::source::exit_cleanly_on_signals();
    ExitCode::from(weighbridge_cli::run(std::env::args_os()).number())
}
