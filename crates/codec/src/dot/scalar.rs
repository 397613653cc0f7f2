//! The definition of a dot product: eight accumulators, whatever the processor.

/// How many accumulators there are.
pub(super) const LANES: usize = 8;

/// Each row with each query, and the squared lengths of the rows if `SQUARES`. A row begins
/// `stride` values behind the one before, a query right behind it. Value `i` is accumulated into
/// sum `i % 8` by a fused multiply-add; vectors are padded with zeros to a multiple of eight.
pub(super) fn tile<const ROWS: usize, const QUERIES: usize, const SQUARES: bool>(
    rows: &[f32],
    queries: &[f32],
    dim: usize,
    stride: usize,
) -> ([[f32; ROWS]; QUERIES], [f32; ROWS]) {
    let row = |r: usize| &rows[r * stride..][..dim];
    let query = |q: usize| &queries[q * dim..][..dim];
    (
        std::array::from_fn(|q| std::array::from_fn(|r| dot(row(r), query(q)))),
        std::array::from_fn(|r| if SQUARES { dot(row(r), row(r)) } else { 0.0 }),
    )
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    let mut accumulate = |a: &[f32; LANES], b: &[f32; LANES]| {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum = a.mul_add(*b, *sum);
        }
    };
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks(), b.as_chunks());
    for (a, b) in a.iter().zip(b) {
        accumulate(a, b);
    }
    if !a_rest.is_empty() {
        accumulate(&zero_padded(a_rest), &zero_padded(b_rest));
    }
    total(sums)
}

/// At most eight values, and zeros behind them. So few are faster one by one than by a call that
/// copies memory.
pub(super) fn zero_padded(values: &[f32]) -> [f32; LANES] {
    std::array::from_fn(|i| values.get(i).copied().unwrap_or(0.0))
}

fn total(s: [f32; LANES]) -> f32 {
    ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
}
