//! Whether a file's data is what was written, as far as its format can tell.

use super::Container;
use crate::source::Source;
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
    /// A thread looks, or has looked.
    #[cfg(feature = "threads")]
    started: std::sync::Once,
}

impl DamageCheck {
    /// Nothing is looked at yet.
    pub(crate) fn new(
        look: impl Fn() -> Result<Option<Finding>, Error> + Send + Sync + 'static,
    ) -> DamageCheck {
        DamageCheck(Arc::new(Inner {
            look: Box::new(look),
            found: OnceLock::new(),
            #[cfg(feature = "threads")]
            started: std::sync::Once::new(),
        }))
    }

    /// Begins to look, on another thread where there are threads.
    ///
    /// It is never one of a pool's: those who wait for the result may be all threads of the usual
    /// pool, and one that looked itself could meanwhile be given the work of a caller who waits.
    pub fn start(&self) {
        #[cfg(feature = "threads")]
        self.0.started.call_once(|| {
            let check = self.clone();
            let look = move || {
                let looked = || weighbridge_codec::parallel::apart(|| (check.0.look)());
                // Those who wait must hear of it, whatever happens.
                let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(looked));
                let failed = |_| Err(Error::refused("looking for damage failed", ""));
                check.0.found.get_or_init(|| found.unwrap_or_else(failed));
            };
            if std::thread::Builder::new().spawn(look).is_err() {
                self.0.found.get_or_init(&self.0.look);
            }
        });
    }

    fn found(&self) -> &Result<Option<Finding>, Error> {
        #[cfg(feature = "threads")]
        {
            self.start();
            self.0.found.wait()
        }
        #[cfg(not(feature = "threads"))]
        self.0.found.get_or_init(&self.0.look)
    }

    /// Waits until all was looked at.
    ///
    /// # Errors
    /// [`Error::Malformed`] with the first rule that damage breaks; failures of reading.
    pub fn finish(&self) -> Result<(), Error> {
        match self.found() {
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
        self.damage.as_ref().map_or(Ok(()), DamageCheck::finish)?;
        self.check_unchanged()
    }

    /// Whether the files are still what they were when they were opened.
    ///
    /// # Errors
    /// [`Error::Changed`] if one was rewritten.
    pub fn check_unchanged(&self) -> Result<(), Error> {
        self.opened.iter().try_for_each(Source::check_unchanged)
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
