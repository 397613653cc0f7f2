//! `weighbridge man`: manual pages, made from the help.

use crate::ExitCode;
use crate::args::Man;
use clap::Command;
use clap_mangen::Man as Page;
use clap_mangen::roff::{Roff, roman};
use std::path::Path;
use weighbridge::{Advice, Error};

pub(super) fn run(args: &Man) -> Result<ExitCode, Error> {
    let mut program = crate::args::command();
    program = program.disable_help_subcommand(true);
    program.build();
    if let Some(folder) = &args.output {
        return write_all(&program, folder);
    }
    let Some(verb) = &args.verb else { return super::print(&page(&program)?) };
    let Some(found) = verbs(&program).find(|c| c.get_name() == verb) else {
        let names: Vec<_> = verbs(&program).map(Command::get_name).collect();
        let meant = Advice::meant(verb, &names);
        let advice = meant.and(format!("the verbs are {}", names.join(" ")));
        return Err(Error::refused(format!("there is no verb {verb:?}"), advice));
    };
    super::print(&page(found)?)
}

fn verbs(program: &Command) -> impl Iterator<Item = &Command> {
    program.get_subcommands().filter(|c| c.get_name() != "help")
}

fn write_all(program: &Command, folder: &Path) -> Result<ExitCode, Error> {
    std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
    let mut written = 0;
    for command in std::iter::once(program).chain(verbs(program)) {
        let path =
            folder.join(format!("{}.1", command.get_display_name().unwrap_or("weighbridge")));
        std::fs::write(&path, page(command)?).map_err(|e| Error::io(&path, e))?;
        written += 1;
    }
    super::report(&format!("wrote {written} pages into {}\n", folder.display()))
}

fn page(command: &Command) -> Result<String, Error> {
    let page =
        Page::new(command.clone()).source(concat!("weighbridge ", env!("CARGO_PKG_VERSION")));
    let mut roff = Vec::new();
    let made = (|| {
        page.render_title(&mut roff)?;
        page.render_name_section(&mut roff)?;
        page.render_synopsis_section(&mut roff)?;
        page.render_description_section(&mut roff)?;
        page.render_options_section(&mut roff)?;
        if command.has_subcommands() {
            page.render_subcommands_section(&mut roff)?;
        }
        more(command).to_writer(&mut roff)
    })();
    made.map_err(|e| Error::io(Path::new("the page"), e))?;
    Ok(String::from_utf8_lossy(&roff).into_owned())
}

/// What stands below the options in the help, line by line.
fn more(command: &Command) -> Roff {
    const EXAMPLES: &str = "Examples:\n";
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (notes, examples) = text.split_once(EXAMPLES).unwrap_or((&text, ""));
    let mut roff = Roff::new();
    for (title, text) in [("NOTES", notes), ("EXAMPLES", examples)] {
        if !text.is_empty() {
            roff.control("SH", [title]);
            for line in text.trim_end().lines() {
                // Prose is filled, a line of text to type is not.
                match line.is_empty() {
                    true => roff.control("PP", []),
                    false => roff.text([roman(line)]).control("br", []),
                };
            }
        }
    }
    roff
}
