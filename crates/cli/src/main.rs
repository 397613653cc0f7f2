//! The program `weighbridge`: a thin shell over the library of the same name.

#![forbid(unsafe_code)]

mod args;
mod commands;
mod progress;
mod render;

use std::process::ExitCode;

fn main() -> ExitCode {
    weighbridge::source::exit_cleanly_on_signals();
    let (cli, options) = args::parse(std::env::args_os());
    match commands::run(cli, options) {
        Ok(code) => code,
        Err(error) => {
            render::error(&error);
            ExitCode::from(render::exit_code(&error))
        }
    }
}
