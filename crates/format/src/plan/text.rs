//! Text that is made while it is written.

use crate::Error;
use crate::model::Produce;
use std::sync::{Arc, OnceLock};

/// Text whose length nobody knows before it is made, such as numbers in as few digits as they need.
/// Clones know it as soon as one of them was written.
#[derive(Clone, Debug)]
pub struct Text {
    from: Arc<dyn Produce>,
    least: u64,
    made: Arc<OnceLock<u64>>,
}

impl Text {
    /// Text of at least so many bytes.
    pub fn new(from: Arc<dyn Produce>, least: u64) -> Text {
        Text { from, least, made: Arc::default() }
    }

    /// What makes it.
    pub fn from(&self) -> &dyn Produce {
        &*self.from
    }

    /// The fewest bytes that it can have; as many as it has, once it was made.
    pub fn least(&self) -> u64 {
        self.made().unwrap_or(self.least)
    }

    /// How many bytes it has, if it was made before.
    pub fn made(&self) -> Option<u64> {
        self.made.get().copied()
    }

    /// How many bytes it has. It is made for that, if need be, and not kept.
    ///
    /// # Errors
    /// What keeps it from being made.
    pub fn count(&self) -> Result<u64, Error> {
        if let Some(bytes) = self.made() {
            return Ok(bytes);
        }
        let mut bytes = 0;
        self.from.produce(&mut |part| {
            bytes += part.len() as u64;
            Ok(())
        })?;
        Ok(self.remember(bytes))
    }

    /// It was made with so many bytes. It must have as many as the first time, which are returned.
    pub(crate) fn remember(&self, bytes: u64) -> u64 {
        *self.made.get_or_init(|| bytes)
    }
}
