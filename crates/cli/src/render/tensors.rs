//! The overview of a container, and the map of its bytes.

use super::declarations::{run, value_at};
use super::{BOLD, DIM, Table, general, grouped, safe, size, styled};
use weighbridge::model::{SubwordKind, Subwords, Value};
use weighbridge::{Container, Detail, Error, Stats, Tensor, describe_region, stats};

pub(crate) fn overview(container: &Container, detail: &Detail) -> Result<String, Error> {
    let mut out = String::new();
    let title = |text: &str| format!("\n{}\n", styled(BOLD, text));
    if !container.metadata.is_empty() {
        out.push_str(&title("metadata"));
        let mut table = Table::new(&["key", "value"]);
        for (key, value) in &container.metadata {
            table.row(vec![safe(key), short_value(value)]);
        }
        out.push_str(&table.render());
    }
    for (name, value) in &container.sizevars {
        out.push_str(&format!("  {} := {value}\n", safe(name)));
    }
    let chosen: Vec<_> = detail.chosen(container)?.collect();
    out.push_str(&title(&format!("tensors ({})", chosen.len())));
    let mut table = Table::new(&["name", "type", "shape", ">offset", ">bytes"]);
    for t in &chosen {
        let offset = match t.view() {
            Some(v) => format!("{:#x}", v.span().start),
            None if t.has_data() => "rows".to_owned(),
            None => "declared".to_owned(),
        };
        let bytes = t.stored_len().map(grouped).unwrap_or_default();
        table.row(vec![
            safe(&t.name),
            t.encoding.name().into_owned(),
            format!("{:?}", t.shape),
            offset,
            bytes,
        ]);
    }
    out.push_str(&table.render());
    if detail.stats || detail.values {
        for tensor in &chosen {
            out.push_str(&tensor_detail(tensor, detail)?);
        }
    }
    if let Some(v) = &container.vocabulary {
        out.push_str(&title(&format!("vocabulary ({} tokens)", grouped(v.len() as u64))));
        for (name, id) in &v.special {
            let token = usize::try_from(*id).ok().and_then(|i| v.token(i)).unwrap_or_default();
            out.push_str(&format!("  {name:<5} {id:>6}  {}\n", safe(&token)));
        }
        if detail.vocabulary {
            for (id, token) in v.tokens().enumerate() {
                out.push_str(&format!("  {id:>6}  {}\n", safe(&token)));
            }
        }
    }
    if let Some(subwords) = &container.subwords {
        out.push_str(&title("subwords"));
        out.push_str(&format!("  {}\n", subwords_text(subwords)));
    }
    if !container.attachments.is_empty() {
        out.push_str(&title("attachments"));
        for a in &container.attachments {
            out.push_str(&format!("  {}  {}\n", safe(&a.name), size(a.data.len())));
        }
    }
    if let Some(r) = &container.records {
        out.push_str(&title(&format!("records ({})", grouped(r.count()))));
        for item in r.items().iter().take(3) {
            out.push_str(&format!("  {}\n", safe(item)));
        }
    }
    Ok(out)
}

fn short_value(value: &Value) -> String {
    const MOST: usize = 80;
    let text = safe(&value.to_plain_text().unwrap_or_else(|| value.type_name()));
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

fn tensor_detail(tensor: &Tensor, detail: &Detail) -> Result<String, Error> {
    let mut out = format!("\n{}\n", styled(BOLD, safe(&tensor.name)));
    if detail.values && tensor.has_data() {
        let count = usize::try_from(tensor.count()).unwrap_or(usize::MAX);
        let shown = run(0, count, &|i| value_at(tensor, i as u64))?;
        out.push_str(&format!("  {shown}\n"));
    }
    if detail.stats
        && let Some(s) = stats(tensor)?
    {
        out.push_str(&statistics(&s));
    }
    Ok(out)
}

fn statistics(s: &Stats) -> String {
    let mut out = String::new();
    let numbers =
        [("min", s.min), ("max", s.max), ("mean", s.mean), ("median", s.median), ("std", s.std)];
    let shown: Vec<_> =
        numbers.iter().map(|(n, v)| format!("{} {}", styled(DIM, n), general(*v))).collect();
    out.push_str(&format!("  {}\n", shown.join("  ")));
    let counts = [("NaN", s.nan), ("infinite", s.inf), ("zero", s.zero)];
    let shown: Vec<_> =
        counts.iter().map(|(n, c)| format!("{} {}", styled(DIM, n), grouped(*c))).collect();
    out.push_str(&format!("  {}\n", shown.join("  ")));
    let most = s.histogram.iter().map(|b| b.count).max().unwrap_or(1).max(1);
    for bin in &s.histogram {
        let eighths = usize::try_from(bin.count * 240 / most).unwrap_or(0);
        out.push_str(&format!(
            "  {:>12} .. {:<12} {} {}\n",
            general(bin.low),
            general(bin.high),
            bar(eighths),
            styled(DIM, grouped(bin.count))
        ));
    }
    out
}

/// A bar of so many eighths of a character.
pub(crate) fn bar(eighths: usize) -> String {
    let parts = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    format!("{}{}", "█".repeat(eighths / 8), parts[eighths % 8])
}

pub(crate) fn region_map(container: &Container) -> String {
    let mut table = Table::new(&[">start", ">end", ">bytes", "what"]);
    for r in container.regions.list() {
        table.row(vec![
            format!("{:#x}", r.span.start),
            format!("{:#x}", r.span.end),
            grouped(r.span.end - r.span.start),
            safe(&describe_region(container, r.what)),
        ]);
    }
    format!("\n{}\n{}", styled(BOLD, "bytes"), table.render())
}

fn subwords_text(subwords: &Subwords) -> String {
    let rows = grouped(subwords.rows());
    let how = match &subwords.kind {
        SubwordKind::Buckets { .. } => format!("in {rows} buckets"),
        SubwordKind::FastText { .. } => format!("in {rows} buckets, as fastText has them"),
        SubwordKind::Explicit(ngrams) => {
            format!("{} of them by name, in {rows} rows", grouped(ngrams.len() as u64))
        }
        SubwordKind::Floret { hashes, seed, bow, eow, .. } => format!(
            "in {rows} buckets by {hashes} hashes with seed {seed}, between {} and {}",
            safe(bow),
            safe(eow)
        ),
    };
    format!("n-grams of {} to {} characters, {how}", subwords.min_n, subwords.max_n)
}
