//! Work in processes that were forked.
//!
//! Threads don't survive a fork: loops on all cores would wait for ever for threads of the parent. So a
//! child has threads of its own.

use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// How many forks lie between this process and the one that imported the package.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The threads of a child, of its child, and so on. Those of the parent can neither be used nor dropped.
static POOLS: [OnceLock<Option<ThreadPool>>; 8] = [const { OnceLock::new() }; 8];

/// Called in every child, right after the fork.
#[pyfunction]
pub(crate) fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Does work without the interpreter's lock, with threads that are there.
pub(crate) fn free<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(|| with_threads(work))
}

/// Does work with threads that are there.
pub(crate) fn with_threads<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let generation = FORKS.load(Ordering::Relaxed) as usize;
    let Some(place) = generation.checked_sub(1) else { return work() };
    // One thread that is made for this call does for those that are too far down.
    let small = || ThreadPoolBuilder::new().num_threads(1).build();
    match POOLS.get(place) {
        Some(pool) => match pool.get_or_init(|| ThreadPoolBuilder::new().build().ok()) {
            Some(pool) => pool.install(work),
            None => work(),
        },
        None => match small() {
            Ok(pool) => pool.install(work),
            Err(_) => work(),
        },
    }
}
