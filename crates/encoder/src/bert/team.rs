//! Threads that compute one batch together, each its own columns of every product.
//!
//! Every member has all rows and computes what is cheap by itself. Columns are handed around after
//! each product. A batch of one short text takes a millisecond and two dozen such exchanges, so
//! members wait for each other without going to sleep.

use std::hint::spin_loop;
use std::ops::Range;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What the threads have in common.
#[derive(Debug)]
pub(super) struct Team {
    size: usize,
    /// How often members have arrived at a barrier, all barriers together.
    arrived: AtomicUsize,
    /// A member has panicked, so that the others must not wait for it.
    is_broken: AtomicBool,
    /// The columns that each member hands to the others: of this exchange, and of the one before,
    /// which a slow member may still be reading.
    outgoing: Vec<[RwLock<Vec<f32>>; 2]>,
}

impl Team {
    pub(super) fn new(size: usize) -> Team {
        let outgoing = std::iter::repeat_with(Default::default).take(size).collect();
        Team { size, arrived: AtomicUsize::new(0), is_broken: AtomicBool::new(false), outgoing }
    }

    pub(super) fn member(&self, index: usize) -> Member<'_> {
        Member { team: self, index, barriers: 0 }
    }
}

/// One of the threads.
#[derive(Debug)]
pub(super) struct Member<'a> {
    team: &'a Team,
    index: usize,
    /// Barriers that this member has arrived at.
    barriers: usize,
}

impl Member<'_> {
    /// A member's share of `count` items.
    fn share_of(&self, member: usize, count: usize) -> Range<usize> {
        let size = self.team.size;
        member * count / size..(member + 1) * count / size
    }

    /// This member's share of `count` items.
    pub(super) fn share(&self, count: usize) -> Range<usize> {
        self.share_of(self.index, count)
    }

    /// Hands this member's columns of some rows to the others and takes theirs. The columns are
    /// those of `count` items of `width` columns, of which each member has its share.
    pub(super) fn exchange(
        &mut self,
        rows: &mut [f32],
        row_len: usize,
        count: usize,
        width: usize,
    ) {
        if self.team.size == 1 {
            return;
        }
        let columns = |items: Range<usize>| items.start * width..(items.end * width).min(row_len);
        let own = columns(self.share(count));
        let turn = self.barriers % 2;
        // A lock is only poisoned by a panic, which breaks the team anyway.
        if let Ok(mut outgoing) = self.team.outgoing[self.index][turn].write() {
            outgoing.clear();
            rows.chunks_exact(row_len)
                .for_each(|row| outgoing.extend_from_slice(&row[own.clone()]));
        }
        self.wait_for_all();
        for member in (0..self.team.size).filter(|m| *m != self.index) {
            let columns = columns(self.share_of(member, count));
            let Ok(incoming) = self.team.outgoing[member][turn].read() else { continue };
            let incoming = incoming.chunks_exact(columns.len().max(1));
            for (row, values) in rows.chunks_exact_mut(row_len).zip(incoming) {
                row[columns.clone()].copy_from_slice(values);
            }
        }
    }

    /// A barrier: waits until all members have arrived.
    fn wait_for_all(&mut self) {
        self.barriers += 1;
        let all = self.team.size * self.barriers;
        self.team.arrived.fetch_add(1, Ordering::AcqRel);
        let mut waited = 0u32;
        while self.team.arrived.load(Ordering::Acquire) < all {
            assert!(!self.team.is_broken.load(Ordering::Relaxed), "another thread has panicked");
            waited += 1;
            // With more threads than cores, the one that is waited for needs this one's.
            if waited.is_multiple_of(4096) { std::thread::yield_now() } else { spin_loop() }
        }
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.team.is_broken.store(true, Ordering::Relaxed);
        }
    }
}
