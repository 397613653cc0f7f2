//! The checks that formats share: finite values, and padding of zeros.

use crate::Error;
use crate::model::{BLOCK, Container, Data, Encoding, Tensor};
use crate::source::{Source, View};
use crate::wire::{Budget, Findings, Rule, Span, What, to_len};
use std::collections::HashSet;
use weighbridge_codec::parallel::*;
use weighbridge_codec::scan;

/// Work on fewer bytes than this is done sooner than other threads wake up.
pub(super) const WORTH_SHARING: u64 = 1 << 20;

/// Applies `work` to all items, on all cores when there is enough to do. The order stays. Each thread
/// has a buffer for bytes that must be read first.
pub(super) fn try_map_all<T: Send, R: Send>(
    items: Vec<T>,
    bytes: u64,
    work: impl Fn(&mut Vec<u8>, T) -> Result<R, Error> + Send + Sync,
) -> Result<Vec<R>, Error> {
    if bytes < WORTH_SHARING {
        let mut buffer = Vec::new();
        items.into_iter().map(|item| work(&mut buffer, item)).collect()
    } else {
        items.into_par_iter().map_init(Vec::new, work).collect()
    }
}

/// Reports the first NaN or infinity of each tensor that has one. Codes with a scale are integers
/// and pass.
pub(super) fn check_finite(
    container: &Container,
    rule: Rule,
    findings: &mut Findings,
) -> Result<(), Error> {
    if !findings.wants(rule) {
        return Ok(());
    }
    let mut blocks = Vec::new();
    let mut bytes = 0;
    let mut budget = Budget::for_values(container.size);
    let mut seen = HashSet::new();
    for tensor in &container.tensors {
        // Many names for the same bytes are no more work than one.
        let fresh = |view: &&View| seen.insert((view.place(), tensor.encoding.stored()));
        let plain = matches!(tensor.encoding, Encoding::Plain(_) | Encoding::Scaled(_));
        if let Some(view) = tensor.view().filter(|_| plain).filter(fresh) {
            bytes += view.len();
            budget.spend(view.len(), "bytes of tensors, which overlap")?;
            blocks.extend((0..tensor.count()).step_by(BLOCK).map(|start| (tensor, start)));
        }
    }
    let mut last: Option<&Tensor> = None;
    for (tensor, index) in try_map_all(blocks, bytes, first_of_block)?.into_iter().flatten() {
        if last.is_some_and(|l| std::ptr::eq(l, tensor)) {
            continue;
        }
        last = Some(tensor);
        let value = tensor.scalar(index)?.map_or_else(String::new, |s| s.to_string());
        let file = tensor.view().map_or("", |view| container.file_of(view));
        findings.push(
            rule.at(place(container, tensor, index))
                .in_file(file)
                .field(format!("tensor {:?}", tensor.name))
                .expected("finite numbers")
                .found(format!("{value} at index {index}")),
        );
    }
    Ok(())
}

/// Reports padding, and bytes that nothing refers to, where they are not zero.
pub(super) fn check_padding(
    container: &Container,
    source: &Source,
    rule: Rule,
    findings: &mut Findings,
) -> Result<(), Error> {
    const TOGETHER: u64 = 1 << 20;
    if !findings.wants(rule) {
        return Ok(());
    }
    let mut buffer = Vec::new();
    for what in [What::Padding, What::Unknown] {
        for span in container.regions.of(what) {
            let mut start = span.start;
            while start < span.end {
                let end = span.end.min(start + TOGETHER);
                let bytes = source.read(start..end, &mut buffer)?;
                if let Some(i) = scan::first_non_zero(bytes) {
                    let at = start + i as u64;
                    findings.push(rule.at(at..at + 1).expected("0").found(bytes[i]));
                    break;
                }
                start = end;
            }
        }
    }
    Ok(())
}

/// The first of a block of a tensor that begins at element `start`.
fn first_of_block<'a>(
    raw: &mut Vec<u8>,
    (tensor, start): (&'a Tensor, u64),
) -> Result<Option<(&'a Tensor, u64)>, Error> {
    let n = to_len(tensor.count() - start).min(BLOCK);
    let bytes = tensor.canonical(start, n, raw)?;
    let at = scan::first_non_finite(tensor.encoding.stored(), bytes, n);
    Ok(at.map(|at| (tensor, start + at as u64)))
}

/// The bytes of an element; of the whole array where its place is not that of its index.
fn place(container: &Container, tensor: &Tensor, index: u64) -> Span {
    let Data::Stored(view, arrangement) = &tensor.data else { return 0..0 };
    let (span, bits) = (view.span(), tensor.encoding.stored().bits());
    if arrangement.column_major {
        // Such an array may have been read into memory, where it has another place.
        let number = container.tensors.iter().position(|t| std::ptr::eq(t, tensor));
        let in_file = number.and_then(|i| container.regions.of(What::Tensor(i)).next());
        return in_file.unwrap_or(span);
    }
    span.start + index * bits / 8..span.start + ((index + 1) * bits).div_ceil(8)
}
