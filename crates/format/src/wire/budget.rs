//! How much may be made of a file: entries that share bytes could make a small one large.

use crate::Error;

/// Bytes that may yet be made of a file, in proportion to its size. Sound files stay far below: what
/// they refer to, they refer to once or a few times.
#[derive(Clone, Debug)]
pub struct Budget {
    most: u64,
    left: u64,
}

impl Budget {
    /// So many times a file's size may be copied from it, or written of it.
    pub const GROWTH: u64 = 16;
    /// Whatever a file's size, this much may be copied from it.
    const COPIES: u64 = 16 << 20;
    /// Values may be gone through more often than copied, and cost no memory.
    const WORK: (u64, u64) = (64, 256 << 20);

    /// For copies from a file of this size, or of what is written of it.
    pub fn for_copies(size: u64) -> Budget {
        Budget::new(size.saturating_mul(Budget::GROWTH).max(Budget::COPIES))
    }

    /// For values that are gone through, in a file of this size; each counts as four bytes.
    pub fn for_values(size: u64) -> Budget {
        let (times, least) = Budget::WORK;
        Budget::new(size.saturating_mul(times).max(least))
    }

    /// So many bytes.
    pub fn new(most: u64) -> Budget {
        Budget { most, left: most }
    }

    /// How much there was at first.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// Takes some bytes of `what`.
    ///
    /// # Errors
    /// [`Error::Limit`] if so many are not left.
    pub fn spend(&mut self, bytes: u64, what: &str) -> Result<(), Error> {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| Error::limit(what, self.most))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_is_gone() {
        let mut budget = Budget::for_copies(1 << 20);
        budget.spend(16 << 20, "texts").unwrap();
        let Err(Error::Limit { what, most, .. }) = budget.spend(1, "texts") else { panic!() };
        assert_eq!((what.as_str(), most), ("texts", 16 << 20));
        assert_eq!(Budget::for_copies(u64::MAX).most(), u64::MAX);
        assert_eq!(Budget::for_copies(2 << 20).most(), 32 << 20);
    }
}
