//! Taking times so that a noisy machine is fair to both sides.

use std::time::Instant;

/// Seconds of the same work, done several times.
#[derive(Clone, Debug, Default)]
pub struct Samples(pub Vec<f64>);

impl Samples {
    /// What the work takes when nothing is in its way.
    pub fn best(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

pub fn seconds<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let made = work();
    (start.elapsed().as_secs_f64(), made)
}

/// Does the works in turn, round by round, so that a slow moment hits all of them. The first round
/// warms caches and does not count.
pub fn in_turn<const N: usize>(rounds: usize, mut works: [&mut dyn FnMut(); N]) -> [Samples; N] {
    let mut samples = [const { Samples(Vec::new()) }; N];
    for round in 0..=rounds {
        for (work, samples) in works.iter_mut().zip(&mut samples) {
            let (time, ()) = seconds(work);
            if round > 0 {
                samples.0.push(time);
            }
        }
    }
    samples
}
