//! How far long work is, and a way to stop it.

use crate::Error;
use std::fmt;
use std::ops::ControlFlow;

/// What is being done. It also says what is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// Bytes are written to files.
    #[default]
    Writing,
    /// Bytes come over the network or out of an archive.
    Fetching,
    /// Values are looked through for their bounds; values are counted.
    Scanning,
    /// A model is watched while it embeds texts; texts are counted.
    Calibrating,
    /// Weights are rounded; values are counted.
    Quantizing,
    /// The vectors of a model are compared with those of before; texts are counted.
    Comparing,
    /// A codebook is learned; values are counted.
    Training,
    /// Rows of an earlier run are found again; texts are counted.
    Resuming,
    /// Texts become vectors; texts are counted.
    Embedding,
    /// Questions are answered; questions are counted.
    Answering,
    /// Files are compared with their hashes; bytes are counted.
    Checking,
    /// Rows of several files become those of one; rows are counted.
    Merging,
    /// Pairs of texts get scores; pairs are counted.
    Scoring,
}

/// How far the work is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// What is being done.
    pub stage: Stage,
    /// How much of it is done.
    pub done: u64,
    /// How much there is to do, where that is known.
    pub total: Option<u64>,
}

/// Tells someone how far the work is. Whoever is told can end the work by returning
/// [`ControlFlow::Break`]: it then fails with [`Error::Cancelled`] and leaves nothing half-written.
///
/// ```
/// use std::ops::ControlFlow;
/// use weighbridge_format::{Error, Progress, Stage};
///
/// let mut stop_at_five = |status: weighbridge_format::Status| match status.done {
///     0..5 => ControlFlow::Continue(()),
///     _ => ControlFlow::Break(()),
/// };
/// let mut progress = Progress::new(&mut stop_at_five);
/// progress.begin(Stage::Writing, 10)?;
/// assert!(progress.advance(4).is_ok());
/// assert!(matches!(progress.advance(4), Err(Error::Cancelled)));
/// # Ok::<(), Error>(())
/// ```
#[derive(Default)]
pub struct Progress<'a> {
    tell: Option<&'a mut dyn FnMut(Status) -> ControlFlow<()>>,
    status: Status,
}

impl<'a> Progress<'a> {
    /// Nobody is told anything.
    pub fn none() -> Progress<'a> {
        Progress::default()
    }

    /// `tell` is called at the beginning of each stage and whenever some work was done.
    pub fn new(tell: &'a mut dyn FnMut(Status) -> ControlFlow<()>) -> Progress<'a> {
        Progress { tell: Some(tell), status: Status::default() }
    }

    /// A stage begins, with so much to do.
    ///
    /// # Errors
    /// [`Error::Cancelled`] when the work is to stop.
    pub fn begin(&mut self, stage: Stage, total: impl Into<Option<u64>>) -> Result<(), Error> {
        self.status = Status { stage, done: 0, total: total.into() };
        self.tell()
    }

    /// So much more is done.
    ///
    /// # Errors
    /// [`Error::Cancelled`] when the work is to stop.
    pub fn advance(&mut self, by: u64) -> Result<(), Error> {
        self.status.done = self.status.done.saturating_add(by);
        self.tell()
    }

    /// So much is done in all, for work that says how far it is instead of what was added.
    ///
    /// # Errors
    /// [`Error::Cancelled`] when the work is to stop.
    pub fn reach(&mut self, done: u64) -> Result<(), Error> {
        self.status.done = done;
        self.tell()
    }

    fn tell(&mut self) -> Result<(), Error> {
        let stop = self.tell.as_mut().is_some_and(|tell| tell(self.status).is_break());
        if stop { Err(Error::Cancelled) } else { Ok(()) }
    }
}

impl fmt::Debug for Progress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Progress").field(&self.status).finish()
    }
}
