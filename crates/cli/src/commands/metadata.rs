//! `weighbridge metadata`: what a file says of itself, and saying it otherwise.

use super::Files;
use super::output::{carry_out, planned};
use crate::ExitCode;
use crate::args::Metadata;
use crate::render::{Table, safe};
use std::path::Path;
use weighbridge::{
    Advice, Container, Detail, Error, Formats, Options, Output, check_metadata, summary,
};

pub(super) fn run(args: &Metadata, options: &Options, files: Files) -> Result<ExitCode, Error> {
    let files = files.accepting(&args.damage).growing(&args.growth);
    let is_shown = args.edits.is_empty();
    if is_shown && args.output.is_some() {
        let hint = "--set, --set-size and --remove say what; `cp` makes a plain copy";
        return Err(Error::refused("there is nothing to change", hint));
    }
    let formats = Formats::builtin();
    let container = files.open(&args.file, options)?;
    if is_shown {
        return show(args, &container);
    }
    let unknown = || Error::refused(format!("there is no format {:?}", container.format), "");
    let format = formats.find(container.format).ok_or_else(unknown)?;
    let edit = args.edits.edit();
    check_metadata(&container, &edit, format)?;
    if (format.info().is_folder || container.sharded) && args.output.is_none() {
        let what = "consists of several files, which can't be changed in place";
        let advice = Advice::set("output", "names where to write");
        return Err(Error::refused_file(&args.file, what, advice));
    }
    let id = format.info().id;
    if let Some(other) = args.output.as_deref().and_then(|out| belongs_elsewhere(formats, out, id))
    {
        let what = format!("the extension is that of {other}, but the input is {id}");
        return Err(Error::refused(what, "`convert --set` changes the format too"));
    }
    let container = edit.apply(container)?;
    let plan =
        planned(&args.file, || format.plan(&container, options))?.accept_losses(args.allow_loss);
    let output = Output::new(args.output.as_deref().unwrap_or(&args.file));
    let output = output.overwrite(args.force || args.output.is_none());
    let outcome = carry_out(&plan, &output, args.dry_run)?;
    if args.json { super::print_json(&outcome.conversion) } else { outcome.tell("") }
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
    if container.metadata.is_empty() && container.sizevars.is_empty() {
        return super::print("no metadata\n");
    }
    let mut out = String::new();
    if !container.metadata.is_empty() {
        let mut table = Table::new(&["key", "type", "value"]);
        for (key, value) in &container.metadata {
            let as_json = || serde_json::to_string(value).unwrap_or_default();
            let text = value.to_plain_text().unwrap_or_else(as_json);
            table.row(vec![safe(key), value.type_name(), safe(&text)]);
        }
        out = table.render();
    }
    for (name, size) in &container.sizevars {
        out.push_str(&format!("  {} := {size}\n", safe(name)));
    }
    super::print_text(&out)
}
