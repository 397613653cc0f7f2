//! The notation of the OINF specification: `B := 4`, `w1: f32[16, 32] = { … }`.

use super::tensors::{quantized, tokens};
use super::{general, safe};
use weighbridge::codec::{DType, Scalar};
use weighbridge::model::{Array, Once, Value};
use weighbridge::wire::to_len;
use weighbridge::{Container, Detail, Error, Stats, Tensor, stats, vocabulary};

/// Size variables, metadata and tensors with previews; with statistics when they are asked for.
pub(crate) fn declarations(container: &Container, detail: &Detail) -> Result<String, Error> {
    let mut out = String::new();
    for (name, value) in &container.sizevars {
        out.push_str(&format!("{} := {value}\n", safe(name)));
    }
    if !container.sizevars.is_empty() {
        out.push('\n');
    }
    for (key, value) in &container.metadata {
        out.push_str(&format!("{}: {}\n", safe(key), declared_value(value)?));
    }
    let listed = if detail.vocabulary { vocabulary(container)? } else { None };
    if detail.vocabulary && listed.is_none() {
        out.push_str("\nno vocabulary\n");
    }
    if let Some(v) = listed.as_deref().or(container.vocabulary.as_ref()) {
        let special: Vec<_> = v.special.iter().map(|(n, id)| format!("{n} {id}")).collect();
        let special =
            if special.is_empty() { String::new() } else { format!(", {}", special.join(", ")) };
        out.push_str(&format!("vocabulary: {} tokens{special}\n", v.len()));
        if detail.vocabulary {
            out.push_str(&tokens(v));
        }
    }
    for a in &container.attachments {
        out.push_str(&format!("attachment {}: {} bytes\n", safe(&a.name), a.data.len()));
    }
    if let Some(records) = &container.records {
        out.push_str(&format!("records: {}\n", records.count()?));
    }
    if out.ends_with('\n') && !out.ends_with("\n\n") {
        out.push('\n');
    }
    let mut once = Once::new([container]);
    for tensor in detail.chosen(container)? {
        out.push_str(&declared_tensor(tensor, detail, &mut once)?);
        out.push('\n');
    }
    Ok(out)
}

fn declared_value(value: &Value) -> Result<String, Error> {
    let kind = value.type_name();
    Ok(match value {
        Value::Text(text) => format!("{kind} = \"{}\"", safe(text)),
        Value::Bits { bytes, .. } => {
            let first: Vec<_> = bytes.iter().take(4).map(|b| format!("{b:02x}")).collect();
            format!("{kind} = {}", first.join(" "))
        }
        Value::Array(a) => {
            let at = |i: usize| Ok(scalar(a.scalar(i), a.dtype));
            format!("{kind} = {}", values(&a.shape, Array::count(a), at)?)
        }
        other => {
            format!("{kind} = {}", other.to_plain_text().map(|t| number(&t)).unwrap_or_default())
        }
    })
}

/// A float's text with six digits, everything else as it is.
fn number(text: &str) -> String {
    match text.parse::<f64>() {
        Ok(v) if text.parse::<i128>().is_err() => general(v),
        _ => text.to_owned(),
    }
}

fn declared_tensor<'a>(
    tensor: &'a Tensor,
    detail: &Detail,
    once: &mut Once<'a, Option<Stats>>,
) -> Result<String, Error> {
    let dims: Vec<_> = tensor.shape.iter().map(u64::to_string).collect();
    let dtype = tensor.encoding.name();
    let kind =
        if dims.is_empty() { dtype.to_string() } else { format!("{dtype}[{}]", dims.join(", ")) };
    let name = safe(&tensor.name);
    let count = usize::try_from(tensor.count()).unwrap_or(usize::MAX);
    if !tensor.has_data() || count == 0 {
        return Ok(format!("{name}: {kind} -- uninitialized\n"));
    }
    let at = |i: usize| value_at(tensor, i as u64);
    if count == 1 {
        return Ok(format!("{name}: {dtype} = {}\n", at(0)?));
    }
    let mut out = format!("{name}: {kind} = {}\n", values(&tensor.shape, count, at)?);
    if let Some(quantized) = quantized(tensor) {
        out.push_str(&format!("- {quantized}\n"));
    }
    if detail.stats
        && let Some(s) = once.of([tensor], || stats(tensor))?
    {
        let bytes = tensor.stored_len().map_or(0, to_len);
        out.push_str(&statistics(&s, bytes));
    }
    Ok(out)
}

fn scalar(value: Scalar, dtype: DType) -> String {
    match value {
        Scalar::Int(v) => v.to_string(),
        Scalar::UInt(v) if dtype == DType::Bool => (v != 0).to_string(),
        Scalar::UInt(v) => v.to_string(),
        Scalar::Float(v) => general(v),
        complex @ Scalar::Complex(..) => complex.to_string(),
    }
}

/// One value of a tensor as text.
pub(super) fn value_at(tensor: &Tensor, index: u64) -> Result<String, Error> {
    let value = tensor.scalar(index)?;
    Ok(value.map_or(String::new(), |v| scalar(v, tensor.encoding.stored())))
}

/// Up to ten values, else the first and last five.
pub(super) fn run(
    start: usize,
    count: usize,
    at: &impl Fn(usize) -> Result<String, Error>,
) -> Result<String, Error> {
    let items: Result<Vec<_>, Error> = if count <= 10 {
        (start..start + count).map(at).collect()
    } else {
        let first = (start..start + 5).map(at);
        let last = (start + count - 5..start + count).map(at);
        first.chain([Ok("...".to_owned())]).chain(last).collect()
    };
    Ok(format!("{{ {} }}", items?.join(", ")))
}

/// A vector in one line; of a matrix as many first rows as it has dimensions.
fn values(
    shape: &[u64],
    count: usize,
    at: impl Fn(usize) -> Result<String, Error>,
) -> Result<String, Error> {
    if shape.len() <= 1 {
        return run(0, count, &at);
    }
    let all = usize::try_from(shape[0]).unwrap_or(usize::MAX);
    let rows = all.min(shape.len()).min(5);
    let width = count.checked_div(all).unwrap_or(0);
    let mut lines = vec!["{ ".to_owned()];
    for row in 0..rows {
        lines.push(format!("{} ,", run(row * width, width, &at)?));
    }
    if all > rows {
        lines.push("...".to_owned());
    }
    lines.push("}".to_owned());
    Ok(lines.join("\n"))
}

fn statistics(s: &Stats, bytes: usize) -> String {
    let bins: Vec<_> = s
        .histogram
        .iter()
        .filter(|b| b.count > 0)
        .map(|b| format!("([{}, {}], {})", general(b.low), general(b.high), b.count))
        .collect();
    let mut out = format!(
        "- [nbytes: {bytes}, min: {}, max: {}, mean: {}, median: {}, std: {}]\n- hist: {{{}}}\n",
        general(s.min),
        general(s.max),
        general(s.mean),
        general(s.median),
        general(s.std),
        bins.join(", ")
    );
    if s.nan + s.inf > 0 {
        out.push_str(&format!("- {} NaN, {} infinite\n", s.nan, s.inf));
    }
    out
}
