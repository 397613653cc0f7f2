//! Who computes what, with texts whose vectors are numbers.

use super::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, yield_now};

/// A call of texts of so many tokens, all with this number.
fn call(id: u32, lengths: &[usize]) -> Arc<Call> {
    call_for(1, id, lengths)
}

/// The same for several threads.
fn call_for(threads: usize, id: u32, lengths: &[usize]) -> Arc<Call> {
    let (mut ids, mut texts) = (Vec::new(), Vec::new());
    for length in lengths {
        texts.push(ids.len()..ids.len() + length);
        ids.resize(ids.len() + length, id);
    }
    Call::new(Texts { ids, ranges: texts, ..Texts::default() }, 1, threads)
}

/// The vector of a text is its number of tokens and its token's number.
fn compute(turn: &mut Turn) -> Result<(), Error> {
    for part in &turn.parts {
        if part.call.texts.ids.contains(&BAD) {
            return Err(Error::refused("a bad token", ""));
        }
        assert!(!part.call.texts.ids.contains(&PANIC), "expected by the test");
        let mut texts = part.numbers().iter().map(|number| &part.call.texts.ranges[*number]);
        part.write(|vector| {
            let text = texts.next().unwrap();
            vector[0] = (1000 * text.len()) as f32 + part.call.texts.ids[text.start] as f32;
        });
    }
    Ok(())
}

const BAD: u32 = 98;
const PANIC: u32 = 99;

#[test]
fn a_call_that_is_withdrawn_ends_with_what_was_begun() {
    let (schedule, long, turns) = (Schedule::new(1, 1), call(1, &[100; 10]), AtomicUsize::new(0));
    let stopped = |turn: &mut Turn| {
        if turns.fetch_add(1, Ordering::Relaxed) == 2 {
            schedule.withdraw(&long);
            schedule.withdraw(&long);
        }
        compute(turn)
    };
    schedule.run(&long, stopped, || ());
    assert_eq!((turns.load(Ordering::Relaxed), long.done()), (3, 10));
    assert!(matches!(long.result(), Err(Error::Cancelled)));
    let state = schedule.lock();
    assert_eq!((state.tokens, state.free), (0, 1));
    drop(state);
    let next = call(2, &[5]);
    schedule.run(&next, compute, || ());
    assert_eq!(next.result().unwrap(), [5002.0]);
}

/// A long text at the end would leave other threads without work. Vectors are in the order of texts.
#[test]
fn the_longest_texts_are_first() {
    let lengths = [5, 90, 7, 200, 90];
    let (schedule, call, seen) = (Schedule::new(1, 1), call(3, &lengths), Mutex::default());
    let noted = |turn: &mut Turn| {
        let numbers = turn.parts.iter().flat_map(|part| part.numbers().to_vec());
        lock::<Vec<_>>(&seen).extend(numbers);
        compute(turn)
    };
    schedule.run(&call, noted, || ());
    assert_eq!(*lock(&seen), [3, 1, 4, 2, 0]);
    assert_eq!(call.result().unwrap(), lengths.map(|n| (1000 * n + 3) as f32));
}

/// Calls that wait while the only thread is busy, and the batches that come of them.
fn held_up(calls: &[Arc<Call>]) -> Vec<usize> {
    let (schedule, first) = (Schedule::new(1, 1), call(0, &[1]));
    let parts = Mutex::new(Vec::new());
    let counted = |turn: &mut Turn| {
        lock(&parts).push(turn.parts.len());
        // The first batch lasts until all others wait.
        while turn.parts[0].call.texts.ids[0] == 0 && schedule.lock().waiting.len() < calls.len() {
            yield_now();
        }
        compute(turn)
    };
    thread::scope(|scope| {
        scope.spawn(|| schedule.run(&first, counted, || ()));
        while schedule.lock().free > 0 {
            yield_now();
        }
        for call in calls {
            scope.spawn(|| {
                let run = || schedule.run(call, counted, || ());
                // What computed other texts too may have panicked.
                drop(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)));
            });
        }
    });
    assert_eq!(schedule.lock().free, 1);
    assert_eq!(schedule.lock().tokens, 0);
    parts.into_inner().unwrap()
}

#[test]
fn texts_of_several_callers_share_a_batch() {
    let calls: Vec<_> = (1..=5).map(|id| call(id, &[2, id as usize])).collect();
    assert_eq!(held_up(&calls), [1, 5]);
    for (call, id) in calls.iter().zip(1..) {
        let id = id as f32;
        assert_eq!(call.result().unwrap(), [2000.0 + id, 1000.0 * id + id]);
    }
}

#[test]
fn errors_reach_those_who_deserve_them() {
    let calls = [call(1, &[3]), call(BAD, &[3]), call(2, &[3])];
    // All together, then one by one.
    assert_eq!(held_up(&calls), [1, 3, 1, 1, 1]);
    assert!(calls[1].result().is_err());
    assert_eq!(calls[0].result().unwrap(), [3001.0]);
    assert_eq!(calls[2].result().unwrap(), [3002.0]);
}

#[test]
fn a_panic_keeps_nobody_waiting() {
    // Too many tokens for one batch.
    let calls = [call(1, &[100]), call(PANIC, &[100]), call(2, &[100]), call(3, &[100])];
    assert_eq!(held_up(&calls).len(), 5);
    for (call, id) in [(&calls[0], 1), (&calls[2], 2), (&calls[3], 3)] {
        assert_eq!(call.result().unwrap(), [100_000.0 + id as f32]);
    }
    assert!(std::panic::catch_unwind(|| calls[1].result()).is_err());
}

/// Threads of a pool come when there is more than callers can take.
#[test]
fn helpers_are_called_and_share_the_work() {
    let (schedule, helpers) = (Schedule::new(3, 3), AtomicUsize::new(0));
    // Whether a helper called another, which does not come here.
    let lost = AtomicBool::new(false);
    let many = call(7, &[50; 40]);
    thread::scope(|scope| {
        let call_helper = || {
            helpers.fetch_add(1, Ordering::Relaxed);
            scope.spawn(|| schedule.help(compute, || lost.store(true, Ordering::Relaxed)));
        };
        schedule.run(&many, compute, call_helper);
    });
    assert!(helpers.load(Ordering::Relaxed) >= 2);
    assert_eq!(many.result().unwrap(), [50_007.0; 40]);
    let state = schedule.lock();
    assert!(state.free == 3 && (state.called == 0 || lost.into_inner()));
}

/// A text that never fits behind others comes first when it has waited.
#[test]
fn long_texts_are_not_overtaken_for_ever() {
    let schedule = Schedule::new(1, 1);
    let mut state = schedule.lock();
    for call in [call(1, &[100]), call(2, &[500]), call(3, &[100])] {
        state.tokens += call.texts.ids.len();
        state.waiting.push_back(Waiting { call, next: 0 });
    }
    let mut order = Vec::new();
    while let Some(turn) = schedule.next_turn(&mut state) {
        order.push(turn.parts[0].call.texts.ids[0]);
        state.free = 1;
    }
    assert_eq!(order, [1, 2, 3]);
}

/// Threads that were taken for other work are found by those who wait.
#[test]
fn threads_that_are_given_back_are_used() {
    let (schedule, waiting) = (Schedule::new(2, 2), call(5, &[4]));
    assert_eq!((schedule.take_free(), schedule.take_free()), (2, 0));
    thread::scope(|scope| {
        scope.spawn(|| schedule.run(&waiting, compute, || ()));
        while !lock(&waiting.progress).asleep {
            yield_now();
        }
        schedule.give_back(2, || ());
    });
    assert_eq!(waiting.result().unwrap(), [4005.0]);
}

/// What is left of a queue has all threads that are free.
#[test]
fn few_texts_get_several_threads() {
    let schedule = Schedule::new(8, 4);
    let turn = |calls: &[Arc<Call>]| {
        let mut state = schedule.lock();
        for call in calls {
            state.tokens += call.texts.ids.len();
            state.waiting.push_back(Waiting { call: call.clone(), next: 0 });
        }
        let turn = schedule.next_turn(&mut state).unwrap();
        let texts: usize = turn.parts.iter().map(|part| part.places.len()).sum();
        (texts, turn.threads)
    };
    assert_eq!(turn(&[call_for(8, 1, &[9, 9])]), (2, 4));
    // Texts of 60 tokens for each of eight threads.
    assert_eq!(turn(&[call_for(8, 1, &[60; 8])]), (1, 1));
}

/// Every thread is given as much, in batches that are neither small nor too large.
#[test]
fn bundles_are_shared_out_evenly() {
    let ranges = |lengths: &[usize]| {
        let mut end = 0;
        let ends = lengths.iter().map(|length| {
            (end, {
                end += length;
                end
            })
        });
        ends.map(|(start, end)| start..end).collect::<Vec<_>>()
    };
    let tokens = |lengths: &[usize], threads| {
        let (mut order, bundles) = bundles(&ranges(lengths), threads);
        for bundle in &bundles {
            let texts = &order[bundle.places.clone()];
            assert_eq!(texts.iter().map(|i| lengths[*i]).sum::<usize>(), bundle.tokens);
        }
        order.sort_unstable();
        assert!(order.into_iter().eq(0..lengths.len()));
        bundles.iter().map(|bundle| bundle.tokens).collect::<Vec<_>>()
    };
    let mixed = [8, 45, 26, 63, 44, 25, 62, 43, 24, 61, 42, 23, 60, 41, 22];
    assert_eq!(tokens(&mixed, 1), [126, 125, 114, 113, 111]);
    assert_eq!(tokens(&mixed, 2), [110, 109, 101, 95, 87, 87]);
    assert_eq!(tokens(&[100; 10], 1), [100; 10]);
    assert_eq!(tokens(&[300, 20, 200, 4, 100], 2), [300, 200, 100, 20, 4]);
    // One batch, but for what is too much.
    assert_eq!(tokens(&[10; 4], 2), [40]);
    assert_eq!(tokens(&[10; 40], 64), [140, 140, 120]);
    // An empty text has a vector too.
    assert_eq!(tokens(&[0, 0], 2), [0]);
    assert!(tokens(&[], 2).is_empty());
}
