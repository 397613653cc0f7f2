//! `weighbridge metadata`: what a file says of itself, and saying it otherwise.

use super::Files;
use super::output::carry_out;
use crate::args::Metadata;
use crate::render::{Table, safe};
use std::path::Path;
use std::process::ExitCode;
use weighbridge::{
    Advice, Container, Detail, Edit, Error, Formats, Options, Output, check_metadata, summary,
};

pub(super) fn run(args: &Metadata, options: &Options, files: Files) -> Result<ExitCode, Error> {
    let files = files.accepting(&args.damage);
    let edits = !args.set.is_empty() || !args.remove.is_empty();
    if !edits && args.out.is_some() {
        let hint = "--set and --remove say what; a plain copy is a matter of `cp`";
        return Err(Error::refused("there is nothing to change", hint));
    }
    let formats = Formats::builtin();
    let container = files.open(&args.file, options)?;
    if !edits {
        return show(args, &container);
    }
    let unknown = || Error::refused(format!("there is no format {:?}", container.format), "");
    let format = formats.find(container.format).ok_or_else(unknown)?;
    check_metadata(&container, format)?;
    if (format.info().is_folder || container.sharded) && args.out.is_none() {
        let what = "is more than one file and is not replaced";
        let advice = Advice::set("out", "names where to write");
        return Err(Error::refused_file(&args.file, what, advice));
    }
    let id = format.info().id;
    if let Some(other) = args.out.as_deref().and_then(|out| belongs_elsewhere(formats, out, id)) {
        let what = format!("the name belongs to {other}, and the metadata of {id} is edited");
        return Err(Error::refused(what, "`convert --set` changes the format too"));
    }
    let mut edit = Edit::new();
    edit.set.clone_from(&args.set);
    edit.remove.clone_from(&args.remove);
    let plan = format.plan(&edit.apply(container)?, options)?.accept_losses(args.allow_loss);
    let output = Output::new(args.out.as_deref().unwrap_or(&args.file));
    let output = output.overwrite(args.force || args.out.is_none());
    let outcome = carry_out(&plan, &output, false)?;
    if args.json { super::print_json(&outcome.conversion) } else { super::print(&outcome.text()) }
}

/// The format that an extension belongs to, if that is another one.
fn belongs_elsewhere(formats: &Formats, out: &Path, id: &str) -> Option<&'static str> {
    let extension = out.extension()?.to_string_lossy().to_ascii_lowercase();
    let fits = |f: &&weighbridge::Format| f.info().extensions.iter().any(|e| **e == *extension);
    let ids: Vec<_> = formats.iter().filter(fits).map(|f| f.info().id).collect();
    ids.first().copied().filter(|_| !ids.contains(&id))
}

fn show(args: &Metadata, container: &Container) -> Result<ExitCode, Error> {
    if args.json {
        let detail = Detail::new();
        return super::print_json(&summary(container, &detail)?.metadata());
    }
    if container.metadata.is_empty() {
        return super::print("no metadata\n");
    }
    let mut table = Table::new(&["key", "value"]);
    for (key, value) in &container.metadata {
        let text = value.to_plain_text().unwrap_or_else(|| value.type_name());
        table.row(vec![safe(key), safe(&text)]);
    }
    super::print(&table.render())
}
