//! Memory that is soon needed is asked for while computing, a little at a time.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};

#[derive(Debug)]
pub(super) struct Ahead<'a>(&'a [u8]);

impl<'a> Ahead<'a> {
    #[inline(always)]
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Ahead(bytes)
    }

    /// Asks for two cache lines.
    #[inline(always)]
    #[cfg(target_arch = "x86_64")]
    pub(super) fn fetch(&mut self) {
        if let Some((two, rest)) = self.0.split_at_checked(128) {
            // SAFETY: asking for memory does nothing but that.
            unsafe {
                _mm_prefetch::<_MM_HINT_T1>(two.as_ptr().cast());
                _mm_prefetch::<_MM_HINT_T1>(two[64..].as_ptr().cast());
            }
            self.0 = rest;
        }
    }
}

/// Asks for the rows of a panel that results are about to go to: a store that has to wait for its
/// cache line holds up those behind it.
#[inline(always)]
pub(super) fn fetch_results(c: &[f32], c_row: usize, rows: usize) {
    for r in 0..rows {
        ask_for(&c[r * c_row..]);
    }
}

#[inline(always)]
#[cfg(target_arch = "x86_64")]
fn ask_for(line: &[f32]) {
    // SAFETY: asking for memory does nothing but that.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
}

#[inline(always)]
#[cfg(not(target_arch = "x86_64"))]
fn ask_for(_: &[f32]) {}
