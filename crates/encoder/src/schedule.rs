//! Who computes what: the texts of all calls wait in one queue, and as many threads as the encoder
//! may use take them from there, a batch at a time.
//!
//! A caller computes while a thread is free: its own texts and, in the same batch, those of others.
//! So many callers with a text each are as fast as one with many texts. If none is free it sleeps
//! until its texts are done or it is its turn. Threads of the pool join where there is more to do
//! than callers are awake. Calls take turns, so that a short one need not wait for a long one.

mod bundles;

pub(crate) use bundles::batches;

use crate::architectures::Batch;
use bundles::{BATCH_TOKENS, Bundle, FEW_TOKENS, bundles};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use weighbridge_format::Error;

/// The queue, and the threads that are free.
#[derive(Debug)]
pub(crate) struct Schedule {
    threads: usize,
    /// How many of them can share the work of one batch.
    most_members: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Threads that may begin to compute.
    free: usize,
    /// Threads of the pool that were called and have not come yet.
    called: usize,
    /// Calls with texts that nobody has taken yet.
    waiting: VecDeque<Waiting>,
    /// Tokens of these texts.
    tokens: usize,
}

#[derive(Debug)]
struct Waiting {
    call: Arc<Call>,
    /// The first of the call's bundles that nobody has taken.
    next: usize,
}

/// Texts that became tokens. A pair of texts is one here.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    /// The tokens of all texts, one text behind the other.
    pub ids: Vec<u32>,
    /// Where each text is.
    pub ranges: Vec<Range<usize>>,
    /// For each pair, how many tokens it has before those of the second kind; empty where texts stand
    /// alone.
    pub seconds: Vec<usize>,
    /// How many of each text's first tokens its vector is not made of.
    pub skipped: usize,
    /// Whether only the vector of each text's first token is asked for.
    pub only_first: bool,
}

impl Texts {
    pub(crate) fn batch(&self) -> Batch<'_> {
        let Texts { ids, ranges: texts, seconds, only_first, .. } = self;
        Batch { ids, texts, seconds, only_first: *only_first }
    }
}

/// Texts of one caller, and what became of them.
#[derive(Debug)]
pub(crate) struct Call {
    pub texts: Texts,
    /// The numbers of the texts, bundle by bundle.
    order: Vec<usize>,
    bundles: Vec<Bundle>,
    progress: Mutex<Progress>,
    /// For the caller, who waits with the schedule's state.
    wake: Condvar,
}

#[derive(Debug)]
struct Progress {
    /// Texts that have no vector yet.
    left: usize,
    vectors: Vec<f32>,
    failed: Option<Failure>,
    /// The caller sleeps.
    asleep: bool,
}

#[derive(Debug)]
enum Failure {
    Error(Error),
    /// Whoever computed it has panicked.
    Panic,
}

/// Some texts of a call, as places in its order.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub call: Arc<Call>,
    places: Range<usize>,
}

/// A batch that a thread has taken.
#[derive(Debug)]
pub(crate) struct Turn {
    pub parts: Vec<Part>,
    /// How many threads compute it.
    pub threads: usize,
}

/// A lock stays usable when a thread that had it has panicked: what it guards is whole at any time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Call {
    /// Texts whose vectors have so many values, for so many threads.
    pub(crate) fn new(texts: Texts, dimensions: usize, threads: usize) -> Arc<Call> {
        let count = texts.ranges.len();
        let vectors = vec![0.0; count * dimensions];
        let progress = Progress { left: count, vectors, failed: None, asleep: false };
        let progress = Mutex::new(progress);
        let (order, bundles) = bundles(&texts.ranges, threads);
        Arc::new(Call { texts, order, bundles, progress, wake: Condvar::new() })
    }

    fn is_done(&self) -> bool {
        lock(&self.progress).left == 0
    }

    /// How many of the texts are done.
    pub(crate) fn done(&self) -> usize {
        self.texts.ranges.len() - lock(&self.progress).left
    }

    /// The vectors, one behind the other, once all are done.
    pub(crate) fn result(&self) -> Result<Vec<f32>, Error> {
        let mut progress = lock(&self.progress);
        match progress.failed.take() {
            None => Ok(std::mem::take(&mut progress.vectors)),
            Some(Failure::Error(error)) => Err(error),
            Some(Failure::Panic) => panic!("another thread that computed these texts has panicked"),
        }
    }
}

impl Part {
    /// The numbers that the texts have in the call.
    pub(crate) fn numbers(&self) -> &[usize] {
        &self.call.order[self.places.clone()]
    }

    /// Writes the vector of each text, in the order of their numbers here.
    pub(crate) fn write(&self, mut write: impl FnMut(&mut [f32])) {
        let mut progress = lock(&self.call.progress);
        let dimensions = progress.vectors.len() / self.call.texts.ranges.len().max(1);
        for number in self.numbers() {
            write(&mut progress.vectors[number * dimensions..][..dimensions]);
        }
    }
}

impl Schedule {
    /// For so many threads, of which some can share the work of one batch.
    pub(crate) fn new(threads: usize, most_members: usize) -> Schedule {
        let state = State { free: threads, called: 0, waiting: VecDeque::new(), tokens: 0 };
        Schedule { threads, most_members, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Gets all texts of a call computed. `compute` computes a batch; `call_helper` asks a thread of
    /// the pool to [`Schedule::help`].
    pub(crate) fn run(
        &self,
        call: &Arc<Call>,
        compute: impl Fn(&mut Turn) -> Result<(), Error>,
        call_helper: impl Fn(),
    ) {
        if call.texts.ranges.is_empty() {
            return;
        }
        let mut state = self.lock();
        state.tokens += call.texts.ids.len();
        state.waiting.push_back(Waiting { call: call.clone(), next: 0 });
        while !call.is_done() {
            state = match self.next_turn(&mut state) {
                Some(turn) => {
                    state.wake(&call_helper);
                    drop(state);
                    self.carry_out(turn, &compute)
                }
                None => {
                    lock(&call.progress).asleep = true;
                    let state = call.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
                    lock(&call.progress).asleep = false;
                    state
                }
            };
        }
        state.wake(&call_helper);
    }

    /// Takes a call's texts out of the queue that nobody has begun with: the call ends as cancelled
    /// when those are done that somebody has.
    pub(crate) fn withdraw(&self, call: &Arc<Call>) {
        let mut state = self.lock();
        let Some(place) = state.waiting.iter().position(|w| Arc::ptr_eq(&w.call, call)) else {
            return;
        };
        let Some(Waiting { next, .. }) = state.waiting.remove(place) else { return };
        let left = &call.bundles[next..];
        state.tokens -= left.iter().map(|bundle| bundle.tokens).sum::<usize>();
        let mut progress = lock(&call.progress);
        progress.left -= left.iter().map(|bundle| bundle.places.len()).sum::<usize>();
        progress.failed.get_or_insert(Failure::Error(Error::Cancelled));
        if progress.left == 0 {
            call.wake.notify_one();
        }
    }

    /// What a thread of the pool does that was called: a batch. It is called again for the next, so
    /// that the pool can do other work in between.
    pub(crate) fn help(
        &self,
        compute: impl Fn(&mut Turn) -> Result<(), Error>,
        call_helper: impl Fn(),
    ) {
        let mut state = self.lock();
        state.called -= 1;
        if let Some(turn) = self.next_turn(&mut state) {
            state.wake(&call_helper);
            drop(state);
            state = self.carry_out(turn, &compute);
            state.wake(&call_helper);
        }
    }

    /// Threads that are free and can share the work of a batch that is not in the queue.
    pub(crate) fn take_free(&self) -> usize {
        let mut state = self.lock();
        let taken = state.free.min(self.most_members);
        state.free -= taken;
        taken
    }

    /// Gives back threads that were taken and are not needed.
    pub(crate) fn give_back(&self, threads: usize, call_helper: impl Fn()) {
        let mut state = self.lock();
        state.free += threads;
        state.wake(&call_helper);
    }

    /// The next batch, if a thread is free: texts of the call that has waited longest, and of the
    /// others while there is room. Too few texts for all threads are given several of them.
    fn next_turn(&self, state: &mut State) -> Option<Turn> {
        if state.free == 0 || state.waiting.is_empty() {
            return None;
        }
        let share = state.tokens.div_ceil(self.threads);
        let room = if share < FEW_TOKENS { BATCH_TOKENS } else { share.min(BATCH_TOKENS) };
        let mut turn = Turn { parts: Vec::new(), threads: 1 };
        let mut taken = 0;
        while let Some(Waiting { call, next }) = state.waiting.front_mut() {
            let first = *next;
            while let Some(bundle) = call.bundles.get(*next) {
                if taken > 0 && taken + bundle.tokens > room {
                    break;
                }
                taken += bundle.tokens;
                *next += 1;
            }
            if let Some((last, before)) = call.bundles[first..*next].split_last() {
                let start = before.first().unwrap_or(last).places.start;
                let places = start..last.places.end;
                turn.parts.push(Part { call: call.clone(), places });
            }
            // A call whose next texts are too long for what is left stays the first.
            if *next == first {
                break;
            }
            // Others are served before this call has its next turn.
            let is_full = *next < call.bundles.len();
            if let Some(waiting) = state.waiting.pop_front().filter(|_| is_full) {
                state.waiting.push_back(waiting);
                break;
            }
        }
        state.tokens -= taken;
        if state.waiting.is_empty() {
            turn.threads = state.free.min(self.most_members).max(1);
        }
        state.free -= turn.threads;
        Some(turn)
    }

    /// Computes a batch, and tells those whose texts are done.
    fn carry_out(
        &self,
        turn: Turn,
        compute: impl Fn(&mut Turn) -> Result<(), Error>,
    ) -> MutexGuard<'_, State> {
        let failures = turn.parts.iter().map(|_| Some(Failure::Panic)).collect();
        let mut running = Running { schedule: self, turn, failures };
        let Running { turn, failures, .. } = &mut running;
        match (compute(turn), failures.as_mut_slice()) {
            (Ok(()), all) => all.fill_with(|| None),
            (Err(error), [one]) => *one = Some(Failure::Error(error)),
            // Each call gets an error of its own, and those that don't deserve one get none.
            (Err(_), several) => {
                for (part, failure) in turn.parts.iter().zip(several) {
                    let mut alone = Turn { parts: vec![part.clone()], threads: 1 };
                    *failure = compute(&mut alone).err().map(Failure::Error);
                }
            }
        }
        drop(running);
        self.lock()
    }
}

/// A batch that is being computed. In the end, even if computing panics, its threads are free again
/// and its callers are told.
struct Running<'a> {
    schedule: &'a Schedule,
    turn: Turn,
    /// What went wrong with each part.
    failures: Vec<Option<Failure>>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // Callers look at their progress with the state locked, so that none sleeps through this.
        let mut state = self.schedule.lock();
        state.free += self.turn.threads;
        for (part, failure) in self.turn.parts.iter().zip(&mut self.failures) {
            let mut progress = lock(&part.call.progress);
            progress.left -= part.places.len();
            progress.failed = failure.take().or(progress.failed.take());
            if progress.left == 0 {
                part.call.wake.notify_one();
            }
        }
        // This thread will not hand the work over any more.
        if std::thread::panicking() {
            state.waiting.iter().for_each(|waiting| waiting.call.wake.notify_one());
        }
    }
}

impl State {
    /// Sees to it that threads which are free find the work that is there: callers who wait for it
    /// come first, then threads of the pool.
    fn wake(&mut self, call_helper: &impl Fn()) {
        let mut idle = if self.waiting.is_empty() { 0 } else { self.free };
        for Waiting { call, .. } in &self.waiting {
            if idle == 0 {
                return;
            }
            let mut progress = lock(&call.progress);
            if std::mem::take(&mut progress.asleep) {
                call.wake.notify_one();
                idle -= 1;
            }
        }
        while self.called < idle {
            self.called += 1;
            call_helper();
        }
    }
}

#[cfg(test)]
mod tests;
