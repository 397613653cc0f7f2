//! The threads that an encoder computes with.

use weighbridge_format::{Advice, Error};

/// The most threads that can be asked for; more only take memory and time.
const MOST_THREADS: usize = 1024;

/// A pool of its own, when a number of threads was asked for; else that of the caller.
#[derive(Debug)]
pub(crate) struct Pool {
    #[cfg(feature = "threads")]
    own: Option<rayon::ThreadPool>,
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
        Ok(Pool { own: threads.map(start).transpose()? })
    }

    #[cfg(not(feature = "threads"))]
    fn start(_: Option<usize>) -> Result<Pool, Error> {
        Ok(Pool {})
    }

    /// Does work whose loops use these threads.
    pub(crate) fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        #[cfg(feature = "threads")]
        if let Some(own) = &self.own {
            return own.install(work);
        }
        work()
    }
}
