//! The overview of a container, and the map of its bytes.

use super::declarations::{run, value_at};
use super::{BOLD, DIM, Table, general, grouped, safe, short, size, styled};
use weighbridge::model::{Once, SubwordKind, Subwords, Value};
use weighbridge::{
    Container, Detail, Error, Quantization, Stats, Tensor, Vocabulary, describe_region, stats,
    vocabulary,
};

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
    let mut titles = vec!["name", "type", "shape", ">offset", ">bytes"];
    if chosen.iter().any(|t| t.encoding.is_quantized()) {
        titles.push("quantized");
    }
    let mut table = Table::new(&titles);
    for t in &chosen {
        let offset = match t.view() {
            Some(v) => format!("{:#x}", v.span().start),
            None if t.has_data() => "rows".to_owned(),
            None => "declared".to_owned(),
        };
        let bytes = t.stored_len().map(grouped).unwrap_or_default();
        let mut row = vec![
            safe(&t.name),
            t.encoding.name().into_owned(),
            format!("{:?}", t.shape),
            offset,
            bytes,
            quantized(t).unwrap_or_default(),
        ];
        row.truncate(titles.len());
        table.row(row);
    }
    out.push_str(&table.render());
    if detail.stats || detail.values {
        let mut once = Once::new([container]);
        for tensor in &chosen {
            out.push_str(&tensor_detail(tensor, detail, &mut once)?);
        }
    }
    let listed = if detail.vocabulary { vocabulary(container)? } else { None };
    if detail.vocabulary && listed.is_none() {
        out.push_str("\nno vocabulary\n");
    }
    if let Some(v) = listed.as_deref().or(container.vocabulary.as_ref()) {
        out.push_str(&title(&format!("vocabulary ({} tokens)", grouped(v.len() as u64))));
        for (name, id) in &v.special {
            let token = usize::try_from(*id).ok().and_then(|i| v.token(i)).unwrap_or_default();
            out.push_str(&format!("  {name:<5} {id:>6}  {}\n", safe(&token)));
        }
        if detail.vocabulary {
            out.push_str(&tokens(v));
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
        out.push_str(&title(&format!("records ({})", grouped(r.count()?))));
        for item in r.some(0..3)? {
            out.push_str(&format!("  {}\n", safe(&item)));
        }
    }
    Ok(out)
}

fn short_value(value: &Value) -> String {
    let text = safe(&value.to_plain_text().unwrap_or_else(|| value.type_name()));
    short(&text).into_owned()
}

/// A token a line, after its number.
pub(super) fn tokens(vocabulary: &Vocabulary) -> String {
    let line =
        |(id, token): (usize, std::borrow::Cow<str>)| format!("  {id:>6}  {}\n", safe(&token));
    vocabulary.tokens().enumerate().map(line).collect()
}

/// How the codes of a tensor become values, in a few words.
pub(super) fn quantized(tensor: &Tensor) -> Option<String> {
    let range = |values: &mut dyn Iterator<Item = f64>| {
        let (low, high) = values
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        format!("{} to {}", general(low), general(high))
    };
    Some(match Quantization::of(&tensor.encoding)? {
        Quantization::Divisor { divisor } => format!("divided by {}", general(divisor.into())),
        Quantization::Scales { axis, count, scales, zero_points } => {
            let scales: Vec<f64> = scales.into_iter().map(f64::from).collect();
            let (mut text, zeros) = match (axis, scales.as_slice()) {
                (None, [scale]) => (format!("scale {}", general(*scale)), "zero point"),
                (axis, _) => {
                    let axis = axis.map(|axis| format!(" on axis {axis}")).unwrap_or_default();
                    let range = range(&mut scales.iter().copied());
                    (format!("{} scales{axis}, {range}", grouped(count as u64)), "zero points")
                }
            };
            match zero_points.as_deref() {
                None => {}
                Some([zero]) => text.push_str(&format!(", {zeros} {}", general(*zero))),
                Some(list) => {
                    text.push_str(&format!(", {zeros} {}", range(&mut list.iter().copied())));
                }
            }
            text
        }
        Quantization::Unknown => "no scale, so the values are not known".to_owned(),
        Quantization::Blocks { values } => format!("blocks of {}", grouped(values as u64)),
        Quantization::Parts { parts, centroids, rotated, norms } => format!(
            "{parts} parts of {centroids} centroids{}{}",
            if rotated { ", rotated" } else { "" },
            if norms { ", norms" } else { "" }
        ),
        _ => return None,
    })
}

fn tensor_detail<'a>(
    tensor: &'a Tensor,
    detail: &Detail,
    once: &mut Once<'a, Option<Stats>>,
) -> Result<String, Error> {
    let mut out = format!("\n{}\n", styled(BOLD, short(&safe(&tensor.name))));
    if !tensor.encoding.has_values() && (detail.values || detail.stats) {
        out.push_str("  the values are not known: these are codes without a scale\n");
        return Ok(out);
    }
    if detail.values && tensor.has_data() {
        let count = usize::try_from(tensor.count()).unwrap_or(usize::MAX);
        let shown = run(0, count, &|i| value_at(tensor, i as u64))?;
        out.push_str(&format!("  {shown}\n"));
    }
    if detail.stats {
        match once.of([tensor], || stats(tensor))? {
            Some(s) => out.push_str(&statistics(&s)),
            None if tensor.has_data() && tensor.count() > 0 => {
                out.push_str("  no statistics of complex numbers\n");
            }
            None => out.push_str("  no values\n"),
        }
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
