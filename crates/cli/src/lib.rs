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
use std::time::Instant;

/// With which code a process should end. Unlike the standard library's it can be asked for the number,
/// which is for whoever ends the process in another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitCode(u8);

impl ExitCode {
    /// All is well.
    pub const SUCCESS: ExitCode = ExitCode(0);
    /// Something is not.
    pub const FAILURE: ExitCode = ExitCode(1);

    /// The number.
    pub fn number(self) -> u8 {
        self.0
    }
}

impl From<u8> for ExitCode {
    fn from(number: u8) -> ExitCode {
        ExitCode(number)
    }
}

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
