//! `weighbridge inspect`: what is inside.

use super::Files;
use crate::ExitCode;
use crate::args::Inspect;
use crate::progress::with_spinner;
use crate::render::{self, BOLD, safe, styled, width, wrapped};
use weighbridge::{Container, Detail, Error, Formats, ModelSummary, Options};

pub(super) fn run(args: &Inspect, options: &Options, files: Files) -> Result<ExitCode, Error> {
    let mut detail = Detail::new();
    detail.tensors = args.tensors.as_deref().map(str::parse).transpose()?;
    (detail.stats, detail.values) = (args.stats, args.values);
    (detail.vocabulary, detail.bytes) = (args.vocab, args.bytes);
    let container = files.open(&args.file, options)?;
    if args.json {
        return super::print_json(&weighbridge::summary(&container, &detail)?);
    }
    // Only statistics read the data.
    let make = || text(args, &container, &detail);
    let text = if args.stats { with_spinner(&args.file, make) } else { make() }?;
    if !super::quickstart::is_running() {
        crate::pager::page(&wrapped(&text, width()));
    }
    super::print_text(&text)
}

fn text(args: &Inspect, container: &Container, detail: &Detail) -> Result<String, Error> {
    let info = Formats::builtin().find(container.format).map(|f| f.info());
    let mut out = format!(
        "{}: {}, {}, {}\n",
        styled(BOLD, safe(&args.file.display().to_string())),
        info.map_or(container.format, |i| i.name),
        safe(&container.layout),
        render::size(container.size)
    );
    if let Some(model) = weighbridge::model_summary(container)? {
        out.push_str(&model_line(&model));
    }
    let flags = info.map(|info| (info.flags)(container)).unwrap_or_default();
    if !flags.is_empty() {
        out.push_str(&format!("flags: {}\n", flags.join(", ")));
    }
    if info.is_some_and(|i| i.declarations) {
        out.push('\n');
        out.push_str(&render::declarations(container, detail)?);
    } else {
        out.push_str(&render::overview(container, detail)?);
    }
    if args.bytes {
        out.push_str(&render::region_map(container));
    }
    container.check_unchanged()?;
    Ok(out)
}

/// What the model is, and which verb can use it.
pub(super) fn model_line(model: &ModelSummary) -> String {
    const MOST: usize = 5;
    // Vectors of a model that was trained to score pairs mean nothing, unless it says how it pools.
    let verbs = match model.pair_scores {
        Some(1) if model.spec.modules.is_empty() => "`rerank`",
        Some(1) => "`embed` and `rerank`",
        _ => "`embed`",
    };
    let usable = match (model.lacks.as_slice(), model.pair_scores) {
        ([], Some(scores)) if scores != 1 => {
            format!(
                "{verbs} can use it, and `rerank` not: its classifier gives a pair {scores} scores"
            )
        }
        ([], _) => format!("{verbs} can use it"),
        (lacks, _) => {
            let shown = lacks.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join(", ");
            let more = lacks.len().saturating_sub(MOST);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{verbs} can't use it: it would need {shown}{more}")
        }
    };
    format!("{}; {}\n", safe(&model.spec.to_string()), safe(&usable))
}
