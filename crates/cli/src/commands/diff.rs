//! `weighbridge diff`: two files, part by part; or two models, by the vectors that they give.

use super::Files;
use crate::ExitCode;
use crate::args::Diff;
use crate::progress::with_spinner;
use crate::render::{BOLD, GREEN, RED, SHOWN, Table, general, grouped, more, safe, styled};
use std::path::Path;
use weighbridge::embed::texts_of_lines;
use weighbridge::encoder::Settings;
use weighbridge::{
    ContentDifference, DiffSettings, Difference, Error, Options, TensorDifference,
    VectorDifference, default_texts, diff, diff_vectors,
};

pub(super) fn run(args: &Diff, options: &Options, files: Files) -> Result<ExitCode, Error> {
    let files = files.accepting(&args.damage);
    if let Some(texts) = &args.texts {
        return by_vectors(args, texts, options, files);
    }
    let first = files.open(&args.first, options)?;
    let second = files.open(&args.second, options)?;
    let settings = DiffSettings::new().tolerance(args.tolerance).tensors_only(args.tensors_only);
    let difference = with_spinner(&args.first, || diff(&first, &second, &settings))?;
    if args.json {
        super::print_json(&difference)?;
    } else {
        super::print_text(&text(&difference, args.all))?;
    }
    Ok(ExitCode::from(u8::from(!difference.same)))
}

fn by_vectors(
    args: &Diff,
    texts: &Path,
    options: &Options,
    files: Files,
) -> Result<ExitCode, Error> {
    let texts = if texts == Path::new("default") { default_texts() } else { read_texts(texts)? };
    let settings = Settings::default();
    let difference = with_spinner(&args.first, || {
        let first = files.encoder(&args.first, options, &settings)?;
        let second = files.encoder(&args.second, options, &settings)?;
        diff_vectors(&first, &second, &texts, args.tolerance)
    })?;
    if args.json {
        super::print_json(&difference)?;
    } else {
        super::print_text(&vectors_text(&difference))?;
    }
    Ok(ExitCode::from(u8::from(!difference.same)))
}

fn read_texts(path: &Path) -> Result<Vec<String>, Error> {
    let texts = super::text_input::read_input(path)?;
    texts_of_lines(&path.display().to_string(), &texts[..])
}

fn vectors_text(d: &VectorDifference) -> String {
    let mut out = format!(
        "{}: vectors of {} texts, {} values each\n",
        verdict(d.same),
        grouped(d.texts),
        d.dimensions
    );
    let mut line = |label: &str, what: String| {
        out.push_str(&format!("  {} {what}\n", styled(BOLD, format!("{label:<10}"))));
    };
    line("cosine", format!("{:.6} on average, {:.6} at worst", d.mean_cosine, d.worst_cosine));
    if d.worst_cosine < d.mean_cosine {
        line("worst", format!("{:?}", safe(&d.worst_text)));
    }
    line("values", format!("differ by {} at most", general(d.max_abs)));
    let kept = 100.0 * d.neighbours_kept;
    let changed = grouped(d.nearest_changed);
    let near = (d.texts - 1).min(10);
    line(
        "nearest",
        format!("of {changed} texts changed; of the {near} nearest of each, {kept:.1} % stayed"),
    );
    out
}

fn verdict(same: bool) -> String {
    if same { styled(GREEN, "the same") } else { styled(RED, "different") }
}

fn text(d: &Difference, all: bool) -> String {
    let mut out = String::new();
    for (label, names) in
        [("only in the first:", &d.only_first), ("only in the second:", &d.only_second)]
    {
        for name in names.iter().take(shown(all)) {
            out.push_str(&format!("{} {}\n", styled(RED, label), safe(name)));
        }
        out.push_str(&more(names.len().saturating_sub(shown(all)), "--all lists them"));
    }
    let (mut differing, same): (Vec<_>, Vec<_>) = d.tensors.iter().partition(|t| !t.same);
    if !differing.is_empty() {
        let mut table = Table::new(&[
            "tensor",
            "types",
            "shapes",
            "?>changed",
            "?>max abs",
            ">relative rmse",
            ">cosine",
        ]);
        if differing.len() > shown(all) {
            // What can't be compared at all comes first, then the largest errors.
            let error = |t: &TensorDifference| t.values.map_or(f64::INFINITY, |v| v.relative_rmse);
            differing.sort_by(|a, b| error(b).total_cmp(&error(a)));
        }
        for t in differing.iter().take(shown(all)) {
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
        out.push_str(&more(differing.len().saturating_sub(shown(all)), "--all lists them"));
    }
    if !d.contents.is_empty() {
        out.push_str(&contents(&d.contents, shown(all)));
    }
    let stored_otherwise = same.iter().filter(|t| t.encodings.0 != t.encodings.1).count();
    let mut what = match d.same {
        true => format!("{} {}", d.compared, if d.compared.is_one() { "is" } else { "are" }),
        false => format!("{} of {} common tensors agree", same.len(), d.tensors.len()),
    };
    if d.same {
        what.push_str(" the same");
    }
    if stored_otherwise > 0 {
        let are = if stored_otherwise == 1 { "is" } else { "are" };
        what.push_str(&format!("; {stored_otherwise} {are} stored in another type"));
    }
    match d.same {
        true => out.push_str(&format!("{}\n", styled(GREEN, what))),
        false => out.push_str(&format!("{}: {what}\n", verdict(false))),
    }
    out
}

/// What differs beside the tensors.
fn contents(list: &[ContentDifference], shown: usize) -> String {
    let mut table = Table::new(&["what", "first", "second"]);
    let side = |side: &Option<String>| side.as_deref().map_or("-".to_owned(), safe);
    for difference in list.iter().take(shown) {
        let what = safe(&difference.what.to_string());
        table.row(vec![what, side(&difference.first), side(&difference.second)]);
    }
    table.render() + &more(list.len().saturating_sub(shown), "--all lists them")
}

/// How many rows of a list are shown.
fn shown(all: bool) -> usize {
    if all { usize::MAX } else { SHOWN }
}
