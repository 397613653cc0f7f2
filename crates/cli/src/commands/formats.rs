//! `weighbridge formats`: the table, from what the formats say of themselves.

use crate::args::Formats;
use crate::render::{Table, styled};
use serde_json::json;
use std::process::ExitCode;
use weighbridge::codec::DType;
use weighbridge::model::{Holds, Keeps};
use weighbridge::{Encoding, Error, FormatInfo, table};

pub(super) fn run(args: &Formats) -> Result<ExitCode, Error> {
    let all = table().iter().map(|f| f.info());
    if args.json {
        return super::print_json(&all.map(as_json).collect::<Vec<_>>());
    }
    let mut out = Table::new(&["id", "format", "use", "files", "types", "holds"]);
    for info in all {
        let extensions: Vec<_> = info.extensions.iter().map(|e| format!(".{e}")).collect();
        let types: Vec<_> = types(&info.holds);
        let types =
            if types.len() > 9 { format!("{} types", types.len()) } else { types.join(" ") };
        out.row(vec![
            info.id.to_owned(),
            info.name.to_owned(),
            if info.writes { "read, write" } else { "read" }.to_owned(),
            extensions.join(" "),
            types,
            held(&info.holds).join(", "),
        ]);
    }
    let note = styled(crate::render::DIM, "Options of each format: weighbridge convert --help");
    super::print(&format!("{}\n  {note}\n", out.render()))
}

fn types(holds: &Holds) -> Vec<&'static str> {
    holds.dtypes.iter().map(|d| d.name()).collect()
}

/// What a format can hold besides values, in words.
fn held(holds: &Holds) -> Vec<&'static str> {
    let mut list = vec![if holds.single { "one tensor" } else { "tensors" }];
    let parts = [
        (holds.blockwise || holds.product, "quantized tensors"),
        (holds.metadata == Keeps::Typed, "typed metadata"),
        (holds.metadata == Keeps::Text, "metadata"),
        (holds.sizevars, "size variables"),
        (holds.vocabulary, "vocabulary"),
        (holds.subwords, "subwords"),
        (holds.attachments, "attachments"),
        ((holds.declared)(&Encoding::Plain(DType::F32)), "declared tensors"),
        (holds.records, "row records"),
    ];
    list.extend(parts.into_iter().filter(|(has, _)| *has).map(|(_, name)| name));
    list
}

fn as_json(info: &FormatInfo) -> serde_json::Value {
    let options: Vec<_> = info
        .options
        .iter()
        .map(|o| json!({"name": o.name, "choices": o.choices, "help": o.help}))
        .collect();
    json!({
        "id": info.id,
        "name": info.name,
        "summary": info.summary,
        "extensions": info.extensions,
        "reads": true,
        "writes": info.writes,
        "types": types(&info.holds),
        "holds": held(&info.holds),
        "options": options,
        "rules": info.rules.len(),
    })
}
