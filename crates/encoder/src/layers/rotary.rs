//! Rotary positions: queries and keys are turned by angles that grow with the position, so that their
//! product knows how far apart two tokens are.

use super::Heads;
use crate::kernels::pairwise::turn;
use std::ops::Range;
use weighbridge_codec::simd::Level;
use weighbridge_format::spec::{ModelSpec, RopeScaling};
use weighbridge_format::{Advice, Error};

/// Values of the tables of angles: for any model there is, and no more memory than a small file may ask for.
const MOST_ANGLES: usize = 1 << 24;

/// The angles of every position.
#[derive(Debug)]
pub(crate) struct Rotary {
    /// For each position the cosines of its angles, then their sines.
    angles: Vec<f32>,
    /// Angles of a position: two values of a head share one.
    half: usize,
}

impl Rotary {
    /// The angles of a model, or of its layers that attend to neighbours alone.
    ///
    /// # Errors
    /// If nothing says what they are, or they make no sense.
    pub(crate) fn new(
        spec: &ModelSpec,
        heads: Heads,
        positions: usize,
        local: bool,
    ) -> Result<Rotary, Error> {
        let Some(base) = &spec.rope_theta else {
            return Err(Error::refused(
                "the file does not say by which angles positions are turned",
                Advice::from("rope_theta in config.json says it"),
            ));
        };
        let base = spec.local_rope_theta.as_ref().filter(|_| local).unwrap_or(base).value;
        let factor = spec.rope_factor.as_ref().map_or(1.0, |fact| fact.value);
        #[allow(clippy::cast_precision_loss)]
        let width = heads.width as f64;
        let (base, divisor) = match spec.rope_scaling.value {
            RopeScaling::Linear => (base, factor),
            RopeScaling::Ntk => (base * factor, factor.powf(2.0 / width)),
            _ => (base, 1.0),
        };
        if !heads.width.is_multiple_of(2) {
            let what = format!("heads of {} values can't be turned in pairs", heads.width);
            return Err(Error::refused(what, "metadata num_attention_heads"));
        }
        // A base or a factor beyond all measure makes angles that are none.
        let is_positive = |x: f64| x.is_finite() && x > 0.0;
        if !is_positive(base) || !is_positive(divisor) {
            let what = "the angles by which positions are turned are not finite";
            return Err(Error::refused(what, "rope_theta and the factor in config.json"));
        }
        if positions.checked_mul(heads.width).is_none_or(|n| n > MOST_ANGLES) {
            let what = format!("{positions} positions of {} values are too many", heads.width);
            return Err(Error::refused(what, "max_position_embeddings in config.json says so"));
        }
        let half = heads.width / 2;
        // In f32 as the libraries have it, since far positions tell the difference.
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
        let steps: Vec<f32> =
            (0..half).map(|i| (base.powf(-2.0 * i as f64 / width) / divisor) as f32).collect();
        let mut angles = Vec::with_capacity(positions * heads.width);
        for position in 0..positions {
            #[allow(clippy::cast_precision_loss)]
            let angle = |step: &f32| f64::from(position as f32 * step);
            #[allow(clippy::cast_possible_truncation)]
            {
                angles.extend(steps.iter().map(|step| angle(step).cos() as f32));
                angles.extend(steps.iter().map(|step| angle(step).sin() as f32));
            }
        }
        Ok(Rotary { angles, half })
    }

    /// Turns the queries and keys of some heads. `qkv` has a row for each token with its query, key and
    /// value.
    pub(crate) fn apply(
        &self,
        all: Heads,
        qkv: &mut [f32],
        texts: &[Range<usize>],
        heads: Range<usize>,
    ) {
        let (level, hidden) = (Level::best(), all.hidden());
        let own = heads.start * all.width..heads.end * all.width;
        for text in texts {
            let rows = qkv[text.start * 3 * hidden..].chunks_exact_mut(3 * hidden).take(text.len());
            for (row, angles) in rows.zip(self.angles.chunks_exact(2 * self.half)) {
                let (cos, sin) = angles.split_at(self.half);
                let (queries, keys) = row.split_at_mut(hidden);
                turn(level, &mut queries[own.clone()], cos, sin);
                turn(level, &mut keys[own.clone()], cos, sin);
            }
        }
    }
}
