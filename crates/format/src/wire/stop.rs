//! Why reading stops.

use super::Finding;
use crate::Error;

/// Why reading stopped: a broken rule that makes the rest unreadable, or another failure.
#[derive(Debug)]
pub enum Stop {
    /// A rule of the format is broken.
    Broken(Box<Finding>),
    /// Something else went wrong.
    Failed(Error),
}

impl Stop {
    /// The same about a file beside the main one, by its name in the folder.
    #[must_use]
    pub fn in_file(self, name: &str) -> Stop {
        match self {
            Stop::Broken(finding) => Stop::from(finding.in_file(name)),
            failed => failed,
        }
    }

    /// Nothing where a rule is broken; other failures stay.
    ///
    /// # Errors
    /// What kept the bytes from being read.
    pub fn unless_broken<T>(read: Result<T, Stop>) -> Result<Option<T>, Error> {
        match read {
            Ok(value) => Ok(Some(value)),
            Err(Stop::Broken(_)) => Ok(None),
            Err(Stop::Failed(error)) => Err(error),
        }
    }
}

impl From<Box<Finding>> for Stop {
    fn from(finding: Box<Finding>) -> Self {
        Stop::Broken(finding)
    }
}

impl From<Finding> for Stop {
    fn from(finding: Finding) -> Self {
        Stop::Broken(Box::new(finding))
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Failed(error)
    }
}
