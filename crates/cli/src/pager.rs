//! Long output on a terminal goes through a pager.

use std::io::IsTerminal;
use terminal_size::{Height, terminal_size};

/// Shows a text in the pager that `PAGER` names, else in `less`. It returns where that is not to be: the
/// text fits the screen, standard output is no terminal, `PAGER` is empty or `cat`, or it can't be
/// started. Else this process becomes the pager, so that there is nobody left whom Ctrl-C could end
/// while the pager has the terminal.
pub(crate) fn page(text: &str) {
    let height = terminal_size().map_or(24, |(_, Height(height))| usize::from(height));
    if std::io::stdout().is_terminal() && text.lines().count() >= height {
        become_pager(text);
    }
}

#[cfg(unix)]
fn become_pager(text: &str) {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    let named = std::env::var("PAGER").unwrap_or_else(|_| "less".to_owned());
    let mut words = named.split_whitespace();
    let Some(program) = words.next().filter(|program| *program != "cat") else { return };
    let Ok(file) = unnamed_file(text) else { return };
    // A name without a folder is looked for where programs are, and not in the folder that we are in.
    let found = match program.contains('/') {
        true => std::path::PathBuf::from(program),
        false => match weighbridge::models::program(program) {
            Ok(found) => found,
            Err(_) => return,
        },
    };
    let mut pager = Command::new(found);
    if std::env::var_os("LESS").is_none() {
        // Colours, no second screen, and no waiting where one is enough.
        pager.env("LESS", "FRX");
    }
    // Only a pager that can't be started comes back from here.
    let _ = pager.args(words).stdin(file).exec();
}

/// The text in a file that has lost its name already, so that nothing is left of it.
#[cfg(unix)]
fn unnamed_file(text: &str) -> std::io::Result<std::fs::File> {
    use std::io::{Seek, Write};
    use std::os::unix::fs::OpenOptionsExt;

    let time = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
    let name = format!("weighbridge-{}-{time:x}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let mut options = std::fs::File::options();
    let mut file = options.read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

#[cfg(not(unix))]
fn become_pager(_: &str) {}
