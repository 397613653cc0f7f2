//! Sources that hand out their bytes in other ways than a file does.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weighbridge_format::Source;
use weighbridge_format::source::ReadRange;

/// Bytes that are read range by range: so many at a time, until a read fails or meets another file.
#[derive(Debug)]
pub struct Ranges {
    bytes: Vec<u8>,
    most: usize,
    fails_at: u64,
    changes_at: u64,
    changed: Vec<u8>,
    read: Arc<Reads>,
}

/// What was read so far.
#[derive(Debug, Default)]
pub struct Reads {
    calls: AtomicU64,
    bytes: AtomicU64,
}

impl Reads {
    /// How often something was read.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// How many bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Ranges {
    /// As many bytes as are asked for.
    pub fn new(bytes: Vec<u8>) -> Ranges {
        Ranges {
            bytes,
            most: usize::MAX,
            fails_at: u64::MAX,
            changes_at: u64::MAX,
            changed: Vec::new(),
            read: Arc::default(),
        }
    }

    /// So many bytes at most, each time.
    #[must_use]
    pub fn at_most(self, most: usize) -> Ranges {
        Ranges { most, ..self }
    }

    /// The read with this number fails, counted from 0; those behind it succeed again.
    #[must_use]
    pub fn failing_at(self, read: u64) -> Ranges {
        Ranges { fails_at: read, ..self }
    }

    /// From the read with this number on there are other bytes, as many as before.
    #[must_use]
    pub fn changing_at(self, read: u64, changed: Vec<u8>) -> Ranges {
        assert_eq!(changed.len(), self.bytes.len());
        Ranges { changes_at: read, changed, ..self }
    }

    /// Counts reads together with other sources.
    #[must_use]
    pub fn counted(self, read: &Arc<Reads>) -> Ranges {
        Ranges { read: read.clone(), ..self }
    }

    /// The source of these bytes.
    pub fn source(self) -> Source {
        Source::from_ranges("ranges", self)
    }
}

impl ReadRange for Ranges {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let read = self.read.calls.fetch_add(1, Ordering::Relaxed);
        if read == self.fails_at {
            return Err(io::Error::other("this read was told to fail"));
        }
        let bytes = if read < self.changes_at { &self.bytes } else { &self.changed };
        let start = usize::try_from(offset).unwrap().min(bytes.len());
        let n = out.len().min(self.most).min(bytes.len() - start);
        out[..n].copy_from_slice(&bytes[start..start + n]);
        self.read.bytes.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }

    /// Nothing is kept of what was read, so that everything must be read.
    fn is_cheap(&self) -> bool {
        true
    }
}
