//! `weighbridge diff`: two files, tensor by tensor.

use super::Files;
use crate::args::Diff;
use crate::progress::with_spinner;
use crate::render::{GREEN, RED, Table, general, safe, styled};
use std::process::ExitCode;
use weighbridge::{Difference, Error, Options, diff};

pub(super) fn run(args: &Diff, files: Files) -> Result<ExitCode, Error> {
    let options = Options::default();
    let first = files.open(&args.first, &options)?;
    let second = files.open(&args.second, &options)?;
    let difference = with_spinner(&args.first, || diff(&first, &second, args.tolerance))?;
    if args.json {
        super::print_json(&difference)?;
    } else {
        super::print(&text(&difference))?;
    }
    Ok(ExitCode::from(u8::from(!difference.same)))
}

fn text(d: &Difference) -> String {
    let mut out = String::new();
    for (label, names) in
        [("only in the first:", &d.only_first), ("only in the second:", &d.only_second)]
    {
        for name in names {
            out.push_str(&format!("{} {}\n", styled(RED, label), safe(name)));
        }
    }
    let (differing, same): (Vec<_>, Vec<_>) = d.tensors.iter().partition(|t| !t.same);
    if !differing.is_empty() {
        let mut table = Table::new(&[
            "tensor",
            "types",
            "shapes",
            ">changed",
            ">max abs",
            ">relative rmse",
            ">cosine",
        ]);
        for t in &differing {
            let pair = |a: String, b: String| if a == b { a } else { format!("{a}, {b}") };
            let figures = match t.values {
                Some(v) => [
                    v.changed.to_string(),
                    general(v.max_abs),
                    general(v.relative_rmse),
                    general(v.cosine),
                ],
                None => [const { String::new() }; 4],
            };
            let mut row = vec![
                safe(t.name),
                pair(t.encodings.0.to_string(), t.encodings.1.to_string()),
                pair(format!("{:?}", t.shapes.0), format!("{:?}", t.shapes.1)),
            ];
            row.extend(figures);
            table.row(row);
        }
        out.push_str(&table.render());
    }
    let stored_otherwise = same.iter().filter(|t| t.encodings.0 != t.encodings.1).count();
    let verdict = if d.same { styled(GREEN, "the same") } else { styled(RED, "different") };
    out.push_str(&format!("{verdict}: {} of {} common tensors agree", same.len(), d.tensors.len()));
    if stored_otherwise > 0 {
        out.push_str(&format!(", {stored_otherwise} of them in other types"));
    }
    out.push('\n');
    out
}
