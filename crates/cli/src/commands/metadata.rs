//! `weighbridge metadata`: what a file says of itself, and saying it otherwise.

use super::convert::{as_json, text};
use crate::args::Metadata;
use crate::progress::with_bar;
use crate::render::{Table, safe};
use std::process::ExitCode;
use weighbridge::{Error, Input, MetadataRequest, Options, edit_metadata};

pub(super) fn run(args: &Metadata, options: Options) -> Result<ExitCode, Error> {
    if args.set.is_empty() && args.remove.is_empty() {
        if args.out.is_some() {
            let hint = "--set and --remove say what; a plain copy is a matter of `cp`";
            return Err(Error::refused("there is nothing to change", hint));
        }
        return show(args, &options);
    }
    let request = MetadataRequest {
        set: args.set.clone(),
        remove: args.remove.clone(),
        out: args.out.clone(),
        options,
        allow_loss: args.allow_loss,
        force: args.force,
    };
    let change = edit_metadata(&args.file, &request)?;
    let (total, label) = (change.plan.size(), change.output.display().to_string());
    with_bar(total, &safe(&label), |progress| change.write(progress))?;
    if args.json {
        super::print_json(&as_json(&change, false))
    } else {
        super::print(&text(&change, false))
    }
}

fn show(args: &Metadata, options: &Options) -> Result<ExitCode, Error> {
    let container = weighbridge::open_with(&Input::open(&args.file)?, options)?;
    if args.json {
        let values = container.metadata.iter().map(|(key, v)| (key.clone(), v.to_json()));
        return super::print_json(&values.collect::<serde_json::Map<_, _>>());
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
