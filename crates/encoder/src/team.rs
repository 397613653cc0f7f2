//! Threads that compute one batch together, each its own columns of every product.
//!
//! Every member has all rows and computes what is cheap by itself. Columns are handed around after
//! each product. A batch of one short text takes a millisecond and two dozen such exchanges, so
//! members wait for each other without going to sleep. A team is closed before it begins: who has
//! not come by then is not waited for.

use std::hint::spin_loop;
use std::ops::Range;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a team waits for those who were called: a few times what waking a thread takes.
const LONGEST_WAIT: Duration = Duration::from_micros(150);

/// How often a member looks whether the others have come before it lets other threads run.
const SPINS: u32 = 2000;

/// In `joined`: nobody can join any more.
const CLOSED: usize = 1 << (usize::BITS - 1);

/// What the threads have in common.
#[derive(Debug)]
pub(crate) struct Team {
    /// Members, with the mark that the team is closed.
    joined: AtomicUsize,
    /// How often members have arrived at a barrier, all barriers together.
    arrived: AtomicUsize,
    /// A member has panicked, so that the others must not wait for it.
    is_broken: AtomicBool,
    /// The columns that each member hands to the others: of this exchange, and of the one before,
    /// which a slow member may still be reading.
    outgoing: Vec<[RwLock<Vec<f32>>; 2]>,
}

impl Team {
    /// A team of at most so many, of which one is there.
    pub(crate) fn new(most: usize) -> Team {
        Team {
            joined: AtomicUsize::new(1),
            arrived: AtomicUsize::new(0),
            is_broken: AtomicBool::new(false),
            outgoing: std::iter::repeat_with(Default::default).take(most).collect(),
        }
    }

    /// Waits a moment for those who were called, and begins with those who came. The first member
    /// does this.
    pub(crate) fn close(&self) -> Member<'_> {
        if self.outgoing.len() > 1 {
            self.wait_for_members();
        }
        let size = self.joined.fetch_or(CLOSED, Ordering::AcqRel);
        Member { team: self, index: 0, size, barriers: 0 }
    }

    /// Nobody is to wait for a team whose first member can't begin.
    pub(crate) fn give_up(&self) {
        self.is_broken.store(true, Ordering::Relaxed);
        self.joined.fetch_or(CLOSED, Ordering::AcqRel);
    }

    /// Not where there is one thread: such places may have no clock.
    fn wait_for_members(&self) {
        let begun = Instant::now();
        let is_complete = || self.joined.load(Ordering::Acquire) == self.outgoing.len();
        while !is_complete() && begun.elapsed() < LONGEST_WAIT {
            spin_loop();
        }
    }

    /// Joins, and waits until the team begins; `None` if it has begun, or has members enough.
    pub(crate) fn join(&self) -> Option<Member<'_>> {
        let most = self.outgoing.len();
        let one_more = |joined: usize| (joined < most).then_some(joined + 1);
        let index = self.joined.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).ok()?;
        let mut waited = 0;
        loop {
            let joined = self.joined.load(Ordering::Acquire);
            if self.is_broken.load(Ordering::Relaxed) {
                return None;
            }
            if joined & CLOSED != 0 {
                return Some(Member { team: self, index, size: joined & !CLOSED, barriers: 0 });
            }
            wait(&mut waited);
        }
    }
}

/// Spins, and lets other threads run once that has taken long: the one that is waited for may need
/// this one's core.
fn wait(waited: &mut u32) {
    *waited = waited.saturating_add(1);
    if *waited < SPINS { spin_loop() } else { std::thread::yield_now() }
}

/// One of the threads.
#[derive(Debug)]
pub(crate) struct Member<'a> {
    team: &'a Team,
    index: usize,
    /// Members of the team.
    size: usize,
    /// Barriers that this member has arrived at.
    barriers: usize,
}

impl Member<'_> {
    /// A member's share of `count` items.
    fn share_of(&self, member: usize, count: usize) -> Range<usize> {
        let size = self.size;
        member * count / size..(member + 1) * count / size
    }

    /// This member's share of `count` items.
    pub(crate) fn share(&self, count: usize) -> Range<usize> {
        self.share_of(self.index, count)
    }

    /// Hands this member's columns of some rows to the others and takes theirs. The columns are
    /// those of `count` items of `width` columns, of which each member has its share.
    pub(crate) fn exchange(
        &mut self,
        rows: &mut [f32],
        row_len: usize,
        count: usize,
        width: usize,
    ) {
        if self.size == 1 {
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
        for member in (0..self.size).filter(|m| *m != self.index) {
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
        let all = self.size * self.barriers;
        self.team.arrived.fetch_add(1, Ordering::AcqRel);
        let mut waited = 0;
        while self.team.arrived.load(Ordering::Acquire) < all {
            assert!(!self.team.is_broken.load(Ordering::Relaxed), "another thread has panicked");
            wait(&mut waited);
        }
    }

    /// How many members the team has.
    pub(crate) fn team_size(&self) -> usize {
        self.size
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.team.is_broken.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns that members computed reach all of them, however many have come.
    #[test]
    fn members_have_all_columns_after_an_exchange() {
        for (most, coming) in [(1, 0), (2, 1), (3, 1), (4, 3), (2, 5)] {
            let team = Team::new(most);
            let work = |mut member: Member| {
                for turn in 0..50 {
                    let mut rows = vec![-1.0; 3 * 10];
                    for column in member.share(5).flat_map(|item| 2 * item..2 * item + 2) {
                        rows.chunks_exact_mut(10)
                            .for_each(|row| row[column] = (turn + column) as f32);
                    }
                    member.exchange(&mut rows, 10, 5, 2);
                    let expected = (0..30).map(|i| (turn + i % 10) as f32).collect::<Vec<_>>();
                    assert_eq!(rows, expected);
                }
                member.team_size()
            };
            std::thread::scope(|scope| {
                for _ in 0..coming {
                    scope.spawn(|| team.join().map(work));
                }
                let size = work(team.close());
                assert!((1..=most.min(coming + 1)).contains(&size), "{size} of {most}");
            });
            assert!(team.join().is_none());
        }
    }

    #[test]
    fn a_member_that_panics_ends_the_others() {
        let team = Team::new(2);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let _member = team.join().expect("in time");
                panic!("expected by the test");
            });
            // Waits until the other has come.
            while team.joined.load(Ordering::Acquire) < 2 {
                std::thread::yield_now();
            }
            let mut member = team.close();
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                member.exchange(&mut [0.0; 4], 4, 4, 1);
            }));
            assert!(result.is_err() && other.join().is_err());
        });
    }
}
