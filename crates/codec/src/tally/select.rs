//! The value of a rank, as if by sorting.

use super::collect_between;
use crate::simd::Level;

/// From so many values on it pays to look for the few that are near the rank.
const MANY: usize = 1 << 14;

/// One of how many values tells where these are. No power of two, after which a column may come again.
const EVERY: usize = 31;

/// The value that a rank has among some, of which none may be NaN: 0 is that of the smallest.
///
/// # Panics
///
/// When there are not more values than that.
pub fn select(level: Level, values: &[f32], rank: usize) -> f32 {
    let near = if values.len() < MANY { None } else { near(level, values, rank) };
    let (mut near, place) = near.unwrap_or_else(|| (values.to_vec(), rank));
    *near.select_nth_unstable_by(place, f32::total_cmp).1
}

/// The few values near a rank, and its place among them. None where a sample misleads, as it hardly ever does.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn near(level: Level, values: &[f32], rank: usize) -> Option<(Vec<f32>, usize)> {
    let mut sample: Vec<f32> = values.iter().copied().step_by(EVERY).collect();
    // Four standard deviations of the place of a median, whose are the largest.
    let (place, away) = (rank / EVERY, 2 * (sample.len() as f64).sqrt() as usize);
    let last = sample.len() - 1;
    let mut value = |place: usize| *sample.select_nth_unstable_by(place, f32::total_cmp).1;
    let low = place.checked_sub(away).map_or(f32::NEG_INFINITY, &mut value);
    let high = Some(place + away).filter(|p| *p <= last).map_or(f32::INFINITY, value);
    let mut found = Vec::new();
    let before = collect_between(level, values, [low, high.next_up()], &mut found);
    let place = rank.checked_sub(usize::try_from(before).ok()?)?;
    (place < found.len()).then_some((found, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Also where a sample knows nothing of what there is, and where many are the same.
    #[test]
    fn ranks_are_those_of_sorting() {
        let n = 50_000;
        let mut state = 1u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 8
        };
        let spread: Vec<f32> = (0..n).map(|_| next() as f32 - 8e6).collect();
        let few: Vec<f32> = (0..n).map(|_| (next() % 3) as f32 - 1.0).collect();
        let infinite: Vec<f32> = (0..n)
            .map(|_| [f32::NEG_INFINITY, -0.0, 0.0, f32::INFINITY][next() as usize % 4])
            .collect();
        let misleading: Vec<f32> =
            (0..n).map(|i| if i % EVERY == 0 { 1e9 } else { next() as f32 }).collect();
        let mut fast = 0;
        for values in [spread.clone(), few, infinite, misleading, spread[..100].to_vec()] {
            let mut sorted = values.clone();
            sorted.sort_by(f32::total_cmp);
            let last = values.len() - 1;
            for rank in [0, 1, last / 3, last / 2, last / 2 + 1, last - 1, last] {
                for level in Level::available() {
                    let found = select(level, &values, rank);
                    assert_eq!(found.to_bits(), sorted[rank].to_bits(), "{level} {rank}");
                    let near = if values.len() < MANY { None } else { near(level, &values, rank) };
                    fast += usize::from(near.is_some_and(|(near, _)| near.len() < n / 4));
                }
            }
        }
        assert!(fast > 6, "{fast}");
    }
}
