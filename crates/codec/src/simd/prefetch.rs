//! Prefetching: memory that is soon needed is brought into the caches while computing, a little at a
//! time. Processors other than x86-64 are left to guess.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};

/// Memory that is still to be prefetched.
#[derive(Debug)]
pub struct Prefetcher<'a, T>(&'a [T]);

impl<'a, T> Prefetcher<'a, T> {
    /// Values of two cache lines.
    const STEP: usize = 128 / size_of::<T>();

    /// Memory to be prefetched step by step.
    #[inline(always)]
    pub fn new(memory: &'a [T]) -> Self {
        Prefetcher(memory)
    }

    /// Prefetches the next two cache lines into the L2 cache.
    #[inline(always)]
    pub fn advance(&mut self) {
        if let Some((two, rest)) = self.0.split_at_checked(Self::STEP) {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: prefetching reads and writes nothing, whatever the address.
            #[allow(unused_unsafe, reason = "newer compilers know that it is safe")]
            unsafe {
                _mm_prefetch::<_MM_HINT_T1>(two.as_ptr().cast());
                _mm_prefetch::<_MM_HINT_T1>(two.as_ptr().wrapping_byte_add(64).cast());
            }
            let _ = two;
            self.0 = rest;
        }
    }
}

/// Prefetches the cache line with the value at an index, which may be behind the end, into the L1
/// cache: a store that has to wait for its line holds up those behind it.
#[inline(always)]
pub fn prefetch_line<T>(values: &[T], index: usize) {
    let _address = values.as_ptr().wrapping_add(index);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching reads and writes nothing, whatever the address.
    #[allow(unused_unsafe, reason = "newer compilers know that it is safe")]
    unsafe {
        _mm_prefetch::<_MM_HINT_T0>(_address.cast());
    }
}
