//! Prefetching: memory that is soon needed is loaded into the caches while computing, a little at a
//! time.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};

/// Memory that is still to be prefetched.
#[derive(Debug)]
pub(super) struct Prefetcher<'a>(&'a [u8]);

impl<'a> Prefetcher<'a> {
    #[inline(always)]
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Prefetcher(bytes)
    }

    /// Prefetches the next two cache lines.
    #[inline(always)]
    #[cfg(target_arch = "x86_64")]
    pub(super) fn advance(&mut self) {
        if let Some((two, rest)) = self.0.split_at_checked(128) {
            // SAFETY: prefetching has no effect but on the caches.
            unsafe {
                _mm_prefetch::<_MM_HINT_T1>(two.as_ptr().cast());
                _mm_prefetch::<_MM_HINT_T1>(two[64..].as_ptr().cast());
            }
            self.0 = rest;
        }
    }
}

/// Prefetches the rows of a panel that results are about to be stored in: a store that has to wait
/// for its cache line holds up those behind it.
#[inline(always)]
pub(super) fn prefetch_results(c: &[f32], c_stride: usize, rows: usize) {
    for r in 0..rows {
        prefetch_line(&c[r * c_stride..]);
    }
}

#[inline(always)]
#[cfg(target_arch = "x86_64")]
fn prefetch_line(line: &[f32]) {
    // SAFETY: prefetching has no effect but on the caches.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
}

#[inline(always)]
#[cfg(not(target_arch = "x86_64"))]
fn prefetch_line(_: &[f32]) {}
