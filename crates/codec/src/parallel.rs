//! Loops on all cores, or on one where threads are left out.
//!
//! With the feature `threads` this is rayon. Without it the same names are the iterators of the
//! standard library, so that code is written once.

#[cfg(feature = "threads")]
pub use rayon::{current_num_threads, join, prelude::*};

#[cfg(not(feature = "threads"))]
pub use sequential::*;

/// Does work whose loops run on threads of their own. Whoever waits for it may be a thread of the
/// usual pool, which must not be needed then. Not to be called by threads of a pool: these take up
/// other work while they wait.
#[cfg(feature = "threads")]
pub fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match rayon::ThreadPoolBuilder::new().build() {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}

/// Does work whose loops run on this many threads; on those of the pool that it is called in without
/// a number, or where threads can't be started.
pub fn with_threads<T: Send>(threads: Option<usize>, work: impl FnOnce() -> T + Send) -> T {
    #[cfg(feature = "threads")]
    if let Some(threads) = threads
        && let Ok(pool) = rayon::ThreadPoolBuilder::new().num_threads(threads).build()
    {
        return pool.install(work);
    }
    let _ = threads;
    work()
}

#[cfg(not(feature = "threads"))]
mod sequential {
    use std::slice::{Chunks, ChunksExact, ChunksExactMut, ChunksMut, Iter};

    /// There is one thread.
    pub fn current_num_threads() -> usize {
        1
    }

    /// One behind the other.
    pub fn join<A, B>(a: impl FnOnce() -> A, b: impl FnOnce() -> B) -> (A, B) {
        let first = a();
        (first, b())
    }

    /// What can be walked through.
    pub trait IntoParallelIterator: IntoIterator + Sized {
        /// Its elements.
        fn into_par_iter(self) -> Self::IntoIter {
            self.into_iter()
        }
    }

    impl<I: IntoIterator> IntoParallelIterator for I {}

    /// Slices, as a whole and in parts.
    pub trait ParallelSlice<T> {
        /// The slice.
        fn slice(&self) -> &[T];

        /// Its elements.
        fn par_iter(&self) -> Iter<'_, T> {
            self.slice().iter()
        }

        /// Parts of so many elements, of which the last may have fewer.
        fn par_chunks(&self, n: usize) -> Chunks<'_, T> {
            self.slice().chunks(n)
        }

        /// Parts of exactly so many elements.
        fn par_chunks_exact(&self, n: usize) -> ChunksExact<'_, T> {
            self.slice().chunks_exact(n)
        }
    }

    impl<T> ParallelSlice<T> for [T] {
        fn slice(&self) -> &[T] {
            self
        }
    }

    /// Slices that are changed.
    pub trait ParallelSliceMut<T> {
        /// The slice.
        fn slice_mut(&mut self) -> &mut [T];

        /// Parts of so many elements, of which the last may have fewer.
        fn par_chunks_mut(&mut self, n: usize) -> ChunksMut<'_, T> {
            self.slice_mut().chunks_mut(n)
        }

        /// Parts of exactly so many elements.
        fn par_chunks_exact_mut(&mut self, n: usize) -> ChunksExactMut<'_, T> {
            self.slice_mut().chunks_exact_mut(n)
        }
    }

    impl<T> ParallelSliceMut<T> for [T] {
        fn slice_mut(&mut self) -> &mut [T] {
            self
        }
    }

    /// What rayon's iterators have more than those of the standard library.
    pub trait ParallelIterator: Iterator + Sized {
        /// Nothing is shared out.
        #[must_use]
        fn with_min_len(self, _: usize) -> Self {
            self
        }

        /// Nothing is shared out.
        #[must_use]
        fn with_max_len(self, _: usize) -> Self {
            self
        }

        /// Maps with one value that is made first.
        fn map_init<T, R>(
            self,
            init: impl Fn() -> T,
            work: impl Fn(&mut T, Self::Item) -> R,
        ) -> impl Iterator<Item = R> {
            let mut value = init();
            self.map(move |item| work(&mut value, item))
        }

        /// Does something with each, and with one value that is made first.
        fn for_each_init<T>(self, init: impl Fn() -> T, work: impl Fn(&mut T, Self::Item)) {
            let mut value = init();
            self.for_each(|item| work(&mut value, item));
        }

        /// The first result there is.
        fn find_map_first<R>(mut self, work: impl Fn(Self::Item) -> Option<R>) -> Option<R> {
            self.find_map(work)
        }

        /// Joins all results, unless one is an error.
        fn try_reduce<T, E>(
            mut self,
            identity: impl Fn() -> T,
            join: impl Fn(T, T) -> Result<T, E>,
        ) -> Result<T, E>
        where
            Self: Iterator<Item = Result<T, E>>,
        {
            self.try_fold(identity(), |all, one| join(all, one?))
        }
    }

    impl<I: Iterator> ParallelIterator for I {}

    /// The same as [`ParallelIterator`]; rayon has two.
    pub trait IndexedParallelIterator: Iterator {}

    impl<I: Iterator> IndexedParallelIterator for I {}
}
