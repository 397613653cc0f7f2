//! `weighbridge completions`: a script for the shell, which asks the program while one types.

use crate::ExitCode;
use clap_complete::CompleteEnv;
use clap_complete::env::Shells;
use std::ffi::OsString;
use weighbridge::Error;

/// Set by the scripts when they ask.
const VARIABLE: &str = "WEIGHBRIDGE_COMPLETE";
const NAME: &str = "weighbridge";

/// In a folder of `fpath`, the script is called like a function the first time, and answers then too.
const AUTOLOAD: &str = "
if [ \"$funcstack[1]\" = \"_weighbridge\" ]; then
    _clap_dynamic_completer_weighbridge \"$@\"
fi
";

pub(super) fn run(shell: clap_complete::Shell) -> Result<ExitCode, Error> {
    let mut script = Vec::new();
    if let Some(shell) = Shells::builtins().completer(&shell.to_string()) {
        let written = shell.write_registration(VARIABLE, NAME, NAME, NAME, &mut script);
        written.map_err(|e| Error::io(std::path::Path::new("the script"), e))?;
    }
    if shell == clap_complete::Shell::Zsh {
        script.extend_from_slice(AUTOLOAD.as_bytes());
    }
    super::print(&String::from_utf8_lossy(&script))
}

/// Answers a script that asks how a command line could go on; `None` where none does.
pub(crate) fn complete(arguments: &[OsString]) -> Option<ExitCode> {
    let folder = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(crate::args::command).var(VARIABLE);
    match asked.try_complete(arguments.iter().cloned(), folder.as_deref()) {
        Ok(false) => None,
        Ok(true) => Some(ExitCode::SUCCESS),
        // The shell shows nothing then.
        Err(_) => Some(ExitCode::FAILURE),
    }
}
