//! `weighbridge formats`: the table, from what the formats say of themselves.

use crate::ExitCode;
use crate::args::ListFormats;
use crate::render::{Table, styled};
use serde_json::json;
use weighbridge::codec::DType;
use weighbridge::plan::{Holds, Keeps};
use weighbridge::{Encoding, Error, Format, Formats};

pub(super) fn run(args: &ListFormats) -> Result<ExitCode, Error> {
    let formats = Formats::builtin();
    if args.json {
        return super::print_json(&formats.iter().map(as_json).collect::<Vec<_>>());
    }
    let mut out = Table::new(&["id", "?format", "use", "files", "?types", "holds"]);
    for format in formats.iter() {
        let info = format.info();
        let extensions: Vec<_> = info.extensions.iter().map(|e| format!(".{e}")).collect();
        let types: Vec<_> = types(&info.holds);
        let types =
            if types.len() > 9 { format!("{} types", types.len()) } else { types.join(" ") };
        out.row(vec![
            info.id.to_owned(),
            info.name.to_owned(),
            match (format.reads(), format.writes()) {
                (true, true) => "read, write",
                (false, true) => "write",
                _ => "read",
            }
            .to_owned(),
            extensions.join(" "),
            types,
            held(&info.holds).join(", "),
        ]);
    }
    let note = styled(crate::render::DIM, "Options of each format: weighbridge convert --help");
    super::print_text(&format!("{}\n  {note}\n", out.render()))
}

fn types(holds: &Holds) -> Vec<&'static str> {
    holds.dtypes.iter().map(|d| d.name()).collect()
}

/// What a format can hold besides values, in words.
fn held(holds: &Holds) -> Vec<&'static str> {
    let mut list = vec![if holds.single { "one tensor" } else { "tensors" }];
    let parts = [
        (!holds.blocks.is_empty() || holds.product, "quantized tensors"),
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

fn as_json(format: &Format) -> serde_json::Value {
    let info = format.info();
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
        "reads": format.reads(),
        "writes": format.writes(),
        "types": types(&info.holds),
        "holds": held(&info.holds),
        "options": options,
        "rules": info.rules.len(),
    })
}
