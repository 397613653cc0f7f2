//! Prefetching: memory that is soon needed is brought into the caches while computing, a little at a
//! time. Processors other than x86-64 are left to guess.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
use std::marker::PhantomData;

/// Memory that is still to be prefetched.
#[derive(Clone, Copy, Debug)]
pub struct Prefetcher<'a> {
    /// Only an address: nothing is read.
    next: *const u8,
    bytes: usize,
    memory: PhantomData<&'a [u8]>,
}

impl<'a> Prefetcher<'a> {
    /// Memory to be prefetched step by step.
    #[inline(always)]
    pub fn new<T>(memory: &'a [T]) -> Self {
        let (next, bytes) = (memory.as_ptr().cast(), size_of_val(memory));
        Prefetcher { next, bytes, memory: PhantomData }
    }

    /// As much memory as a slice has, right behind it, whatever is there: those who walk on will need
    /// it next.
    #[inline(always)]
    pub fn behind<T>(memory: &'a [T]) -> Self {
        let bytes = size_of_val(memory);
        let next = memory.as_ptr().cast::<u8>().wrapping_add(bytes);
        Prefetcher { next, bytes, memory: PhantomData }
    }

    /// The bytes that are left.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes the first bytes away, as many as there are at most.
    #[inline(always)]
    pub fn take(&mut self, bytes: usize) -> Self {
        let taken = Prefetcher { bytes: bytes.min(self.bytes), ..*self };
        self.next = self.next.wrapping_add(taken.bytes);
        self.bytes -= taken.bytes;
        taken
    }

    /// Prefetches the next two cache lines into the L2 cache; less than that is not worth it.
    #[inline(always)]
    pub fn advance(&mut self) {
        if self.bytes >= 128 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: prefetching reads and writes nothing, whatever the address.
            #[allow(unused_unsafe, reason = "newer compilers know that it is safe")]
            unsafe {
                _mm_prefetch::<_MM_HINT_T1>(self.next.cast());
                _mm_prefetch::<_MM_HINT_T1>(self.next.wrapping_add(64).cast());
            }
            self.next = self.next.wrapping_add(128);
            self.bytes -= 128;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_memory_is_taken_once() {
        let memory = [0u32; 100];
        let mut all = Prefetcher::new(&memory);
        let mut first = all.take(300);
        assert_eq!((first.bytes(), all.bytes(), all.take(200).bytes()), (300, 100, 100));
        assert_eq!(all.bytes(), 0);
        (0..5).for_each(|_| first.advance());
        assert_eq!(first.bytes(), 300 - 256);
        let mut behind = Prefetcher::behind(&memory);
        assert_eq!(behind.bytes(), 400);
        behind.advance();
        // Behind the end as well.
        prefetch_line(&memory, usize::MAX / 8);
    }
}
