//! Long work without the interpreter's lock: Ctrl-C stops it, and whoever wants to hears how far it is.

use crate::error::Failure;
use crate::fork::{free, with_threads};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};
use weighbridge::{Error, Progress, Stage, Status};

/// How often Python is asked.
const PAUSE: Duration = Duration::from_millis(50);

/// Does some work. `tell`, if there is one, is called with what is being done, how much of it is done,
/// and how much there is; what it raises ends the work.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    tell: Option<Py<PyAny>>,
    work: impl FnOnce(&mut Progress) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let mut raised = None;
    let done = free(py, || {
        let mut last: Option<Instant> = None;
        let mut hear = |status: Status| {
            let is_end = status.total == Some(status.done);
            if !is_end && last.is_some_and(|last| last.elapsed() < PAUSE) {
                return ControlFlow::Continue(());
            }
            last = Some(Instant::now());
            match Python::attach(|py| ask(py, tell.as_ref(), status)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    raised = Some(error);
                    ControlFlow::Break(())
                }
            }
        };
        work(&mut Progress::new(&mut hear))
    });
    match raised {
        Some(error) => Err(error),
        None => done.map_err(|error| Failure::from(error).into()),
    }
}

/// Does work that tells nobody how far it is. At Ctrl-C nobody waits for it any longer; it ends by itself,
/// and writes nothing.
pub(crate) fn awaited<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> PyResult<T> {
    let (tell, mut hear) = mpsc::channel();
    thread::spawn(move || tell.send(with_threads(work)));
    loop {
        let hear = &mut hear;
        match py.detach(move || hear.recv_timeout(PAUSE)) {
            Ok(done) => return done.map_err(|error| Failure::from(error).into()),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the thread that did the work ended early"));
            }
        }
    }
}

fn ask(py: Python<'_>, tell: Option<&Py<PyAny>>, status: Status) -> PyResult<()> {
    py.check_signals()?;
    if let Some(tell) = tell {
        tell.call1(py, (name(status.stage), status.done, status.total))?;
    }
    Ok(())
}

fn name(stage: Stage) -> String {
    format!("{stage:?}").to_lowercase()
}
