//! Threads that compute one batch together, each its own columns of every product.
//!
//! Every member has all rows and computes what is cheap by itself. Columns are handed around after
//! each product. A batch of one short text takes a millisecond and two dozen such exchanges, so
//! members wait for each other without going to sleep.

use std::hint::spin_loop;
use std::ops::Range;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[derive(Debug)]
pub(super) struct Team {
    size: usize,
    /// Members that came to a meeting, all meetings together.
    arrived: AtomicUsize,
    /// A member has panicked, so that there will be no more meetings.
    is_broken: AtomicBool,
    /// What each member hands to the others: of this meeting, and of the one before, which a slow
    /// member may still be reading.
    parts: Vec<[RwLock<Vec<f32>>; 2]>,
}

impl Team {
    pub(super) fn new(size: usize) -> Team {
        let parts = std::iter::repeat_with(Default::default).take(size).collect();
        Team { size, arrived: AtomicUsize::new(0), is_broken: AtomicBool::new(false), parts }
    }

    pub(super) fn member(&self, index: usize) -> Member<'_> {
        Member { team: self, index, meetings: 0 }
    }
}

#[derive(Debug)]
pub(super) struct Member<'a> {
    team: &'a Team,
    index: usize,
    meetings: usize,
}

impl Member<'_> {
    /// The share of a member of so many things.
    fn share_of(&self, member: usize, count: usize) -> Range<usize> {
        let size = self.team.size;
        member * count / size..(member + 1) * count / size
    }

    /// This member's share of so many things.
    pub(super) fn share(&self, count: usize) -> Range<usize> {
        self.share_of(self.index, count)
    }

    /// Hands this member's columns of some rows to the others and takes theirs. `count` things of
    /// `width` columns were shared out.
    pub(super) fn exchange(&mut self, rows: &mut [f32], row: usize, count: usize, width: usize) {
        if self.team.size == 1 {
            return;
        }
        let columns = |things: Range<usize>| things.start * width..(things.end * width).min(row);
        let own = columns(self.share(count));
        let turn = self.meetings % 2;
        // A lock is only poisoned by a panic, which breaks the team anyway.
        if let Ok(mut part) = self.team.parts[self.index][turn].write() {
            part.clear();
            rows.chunks_exact(row).for_each(|row| part.extend_from_slice(&row[own.clone()]));
        }
        self.meet();
        for member in (0..self.team.size).filter(|m| *m != self.index) {
            let columns = columns(self.share_of(member, count));
            let Ok(part) = self.team.parts[member][turn].read() else { continue };
            let parts = part.chunks_exact(columns.len().max(1));
            for (row, part) in rows.chunks_exact_mut(row).zip(parts) {
                row[columns.clone()].copy_from_slice(part);
            }
        }
    }

    /// Waits until all are here.
    fn meet(&mut self) {
        self.meetings += 1;
        let all = self.team.size * self.meetings;
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
