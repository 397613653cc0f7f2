//! Bringing files to the disk while the work goes on: a disk may take seconds for what was written in
//! the last two.

use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

/// How often that is done. When the machine fails, rather than the process, at most what was made since
/// the last two times is lost.
const EVERY: Duration = Duration::from_secs(2);

/// When files were synced last, and whether they are being synced.
#[derive(Debug)]
pub(super) struct Sync {
    begun: Instant,
    #[cfg(feature = "threads")]
    running: Option<std::thread::JoinHandle<io::Result<()>>>,
}

impl Sync {
    pub(super) fn new() -> Sync {
        Sync {
            begun: Instant::now(),
            #[cfg(feature = "threads")]
            running: None,
        }
    }

    /// Begins to sync the files, one behind the other, if it is time and the last sync has ended. What that
    /// failed with is told here.
    pub(super) fn when_due(&mut self, files: [&File; 3]) -> io::Result<()> {
        if self.begun.elapsed() < EVERY {
            return Ok(());
        }
        self.begin(files)
    }

    #[cfg(feature = "threads")]
    fn begin(&mut self, files: [&File; 3]) -> io::Result<()> {
        if self.running.as_ref().is_some_and(|running| !running.is_finished()) {
            return Ok(());
        }
        self.finish()?;
        let [a, b, c] = files.map(File::try_clone);
        let files = [a?, b?, c?];
        self.begun = Instant::now();
        let sync = move || files.iter().try_for_each(File::sync_data);
        self.running = Some(std::thread::Builder::new().spawn(sync)?);
        Ok(())
    }

    #[cfg(not(feature = "threads"))]
    fn begin(&mut self, files: [&File; 3]) -> io::Result<()> {
        files.into_iter().try_for_each(File::sync_data)?;
        self.begun = Instant::now();
        Ok(())
    }

    /// Waits for a sync that was begun.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        #[cfg(feature = "threads")]
        if let Some(running) = self.running.take() {
            return running.join().unwrap_or_else(|_| Err(io::Error::other("syncing panicked")));
        }
        Ok(())
    }
}
