//! The program `weighbridge` as a library: a thin shell over the library of the same name.
//!
//! [`run`] is all of it. The program calls it, and so can a package that carries the program.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod args;
mod commands;
mod hints;
mod pager;
mod progress;
mod render;
mod talk;
mod version;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

/// Runs a command line, the program's name first, and says with which code the process should end.
/// Output goes to standard output, messages to standard error.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let Some(code) = commands::complete(&arguments) {
        return code;
    }
    talk::set_color(args::color_of(&arguments));
    match args::parse(&arguments) {
        Ok(command) => {
            talk::set(&command.global);
            let began = Instant::now();
            let (json, verb) = (command.json, command.name.clone());
            let code = hints::speaking_for(&verb, || {
                commands::run(command).unwrap_or_else(|error| {
                    render::failure(&error, json);
                    ExitCode::from(error.kind().exit_code())
                })
            });
            commands::say_detail(|| format!("took {:.2} s", began.elapsed().as_secs_f64()));
            code
        }
        Err(usage) => render::usage(&usage, &arguments),
    }
}
