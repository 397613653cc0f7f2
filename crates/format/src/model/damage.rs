//! Whether a file's data is what was written, as far as its format can tell.

use super::Container;
use crate::wire::Finding;
use crate::{Advice, Error};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A look at all of a file's data for damage: checksums, and codes that can't be. Opening a file does
/// not read that much. Whoever passes the data on asks here, so that a flipped bit is not written
/// into a file that then looks sound.
///
/// It happens once, however many ask, and on another thread if it was started before.
#[derive(Clone)]
pub struct DamageCheck(Arc<Inner>);

/// Finds the first rule that damage breaks.
type Look = dyn Fn() -> Result<Option<Finding>, Error> + Send + Sync;

struct Inner {
    look: Box<Look>,
    found: OnceLock<Result<Option<Finding>, Error>>,
}

impl DamageCheck {
    /// Nothing is looked at yet.
    pub(crate) fn new(
        look: impl Fn() -> Result<Option<Finding>, Error> + Send + Sync + 'static,
    ) -> DamageCheck {
        DamageCheck(Arc::new(Inner { look: Box::new(look), found: OnceLock::new() }))
    }

    /// Begins to look, on another thread where there are threads.
    pub fn start(&self) {
        #[cfg(feature = "threads")]
        if self.0.found.get().is_none() {
            let check = self.clone();
            // Without a thread it is done when somebody asks for the result.
            let _ = std::thread::Builder::new().spawn(move || {
                check.0.found.get_or_init(&check.0.look);
            });
        }
    }

    /// Waits until all was looked at.
    ///
    /// # Errors
    /// [`Error::Malformed`] with the first rule that damage breaks; failures of reading.
    pub fn finish(&self) -> Result<(), Error> {
        match self.0.found.get_or_init(&self.0.look) {
            Ok(None) => Ok(()),
            Ok(Some(finding)) => {
                let go_on = Advice::set("allow-damage", "goes on with the damaged data");
                let hint = finding.hint.clone().and(go_on);
                Err(Error::malformed(&finding.file, finding.clone().hint(hint)))
            }
            Err(error) => Err(error.again()),
        }
    }
}

impl fmt::Debug for DamageCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DamageCheck").field("found", &self.0.found).finish_non_exhaustive()
    }
}

impl Container {
    /// Looks for damage in the file that the container was read from, unless that is accepted.
    ///
    /// # Errors
    /// As [`DamageCheck::finish`].
    pub fn check_damage(&self) -> Result<(), Error> {
        self.damage.as_ref().map_or(Ok(()), DamageCheck::finish)
    }

    /// Begins to look for damage, on another thread.
    pub fn start_damage_check(&self) {
        if let Some(check) = &self.damage {
            check.start();
        }
    }

    /// Uses the data as it is, damaged or not, if `yes`.
    #[must_use]
    pub fn accept_damage(mut self, yes: bool) -> Container {
        self.damage.take_if(|_| yes);
        self
    }
}
