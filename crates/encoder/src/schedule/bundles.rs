//! Which texts are computed together.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Tokens that go through the model together: enough that reading the weights costs little, and few
/// enough that what is between the products stays in the caches.
pub(super) const BATCH_TOKENS: usize = 128;

/// What a batch may have beyond that: it is made of whole texts.
const MOST_TOKENS: usize = BATCH_TOKENS + BATCH_TOKENS / 8;

/// With fewer tokens a thread than this, threads divide up the columns of each product instead of
/// the texts.
pub(super) const FEW_TOKENS: usize = 24;

/// Texts that are computed together, as places in the order of their call.
#[derive(Debug)]
pub(super) struct Bundle {
    pub places: Range<usize>,
    pub tokens: usize,
}

/// Texts of a call in bundles, the largest first, and their numbers in that order. Bundles have nearly as
/// many tokens, and there are as many for every thread: with small ones for the rest, weights would be read
/// for few tokens, and with a long text at the end one thread would work on while all others have nothing
/// to do.
pub(super) fn bundles(texts: &[Range<usize>], threads: usize) -> (Vec<usize>, Vec<Bundle>) {
    let tokens: usize = texts.iter().map(ExactSizeIterator::len).sum();
    let share = tokens.div_ceil(threads);
    let is_shared = share >= FEW_TOKENS;
    let count = if is_shared { threads * share.div_ceil(BATCH_TOKENS) } else { 1 };
    let mut order: Vec<usize> = (0..texts.len()).collect();
    order.sort_by_key(|number| Reverse(texts[*number].len()));
    // Each text, the longest first, goes where there is least.
    let mut numbers = vec![Vec::new(); count.min(texts.len())];
    let mut smallest: BinaryHeap<_> = (0..numbers.len()).map(|i| Reverse((0, i))).collect();
    for number in order {
        let length = texts[number].len();
        let fits = |tokens: usize| tokens == 0 || tokens + length <= MOST_TOKENS;
        let (tokens, i) = match smallest.pop() {
            Some(Reverse((tokens, i))) if fits(tokens) => (tokens, i),
            full => {
                smallest.extend(full);
                numbers.push(Vec::new());
                (0, numbers.len() - 1)
            }
        };
        numbers[i].push(number);
        smallest.push(Reverse((tokens + length, i)));
    }
    let mut filled: Vec<_> = smallest.into_iter().map(|Reverse(bundle)| bundle).collect();
    filled.sort_unstable_by_key(|(tokens, i)| (Reverse(*tokens), *i));
    let (mut order, mut bundles) = (Vec::with_capacity(texts.len()), Vec::new());
    for (tokens, i) in filled.into_iter().filter(|(_, i)| !numbers[*i].is_empty()) {
        let start = order.len();
        order.extend(&numbers[i]);
        bundles.push(Bundle { places: start..order.len(), tokens });
    }
    (order, bundles)
}

/// Texts in batches, one batch behind the other, whoever computes them.
pub(crate) fn batches(texts: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut batches = Vec::new();
    let (mut first, mut sum) = (0, 0);
    for (i, text) in texts.iter().enumerate() {
        if sum > 0 && sum + text.len() > BATCH_TOKENS {
            batches.push(first..i);
            (first, sum) = (i, 0);
        }
        sum += text.len();
    }
    if first < texts.len() {
        batches.push(first..texts.len());
    }
    batches
}
