//! The threads that an encoder computes with.

#[cfg(feature = "threads")]
use std::panic::{AssertUnwindSafe, catch_unwind};
use weighbridge_format::{Advice, Error};

/// The most threads that can be asked for; more only take memory and time.
const MOST_THREADS: usize = 1024;

/// A pool of its own, when a number of threads was asked for; else that of the caller.
#[derive(Debug)]
pub(crate) struct Pool {
    #[cfg(feature = "threads")]
    own: Option<rayon::ThreadPool>,
    threads: usize,
}

impl Pool {
    pub(crate) fn new(threads: Option<usize>) -> Result<Pool, Error> {
        match threads {
            Some(0) => {
                let advice = Advice::set("threads", "is at least 1");
                Err(Error::refused("0 threads can't do anything", advice))
            }
            Some(n) if n > MOST_THREADS => {
                let what = format!("{n} threads are too many");
                Err(Error::refused(what, format!("at most {MOST_THREADS}")))
            }
            _ => Pool::start(threads),
        }
    }

    #[cfg(feature = "threads")]
    fn start(threads: Option<usize>) -> Result<Pool, Error> {
        let start = |n: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build();
            pool.map_err(|e| Error::refused(format!("{n} threads: {e}"), ""))
        };
        let own = threads.map(start).transpose()?;
        Ok(Pool { own, threads: threads.unwrap_or_else(rayon::current_num_threads) })
    }

    #[cfg(not(feature = "threads"))]
    fn start(_: Option<usize>) -> Result<Pool, Error> {
        Ok(Pool { threads: 1 })
    }

    /// How many threads there are.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Has work done by one of the threads, some time.
    #[cfg(feature = "threads")]
    pub(crate) fn spawn(&self, work: impl FnOnce() + Send + 'static) {
        // A panic reaches those who wait for the work; it must not end the process.
        let work = || drop(catch_unwind(AssertUnwindSafe(work)));
        match &self.own {
            Some(own) => own.spawn(work),
            None => rayon::spawn(work),
        }
    }

    /// There is no thread that could.
    #[cfg(not(feature = "threads"))]
    pub(crate) fn spawn(&self, _: impl FnOnce() + Send + 'static) {}

    /// Does work whose loops use these threads.
    pub(crate) fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        #[cfg(feature = "threads")]
        if let Some(own) = &self.own {
            return own.install(work);
        }
        work()
    }
}
