//! Hostile input: every format in the table survives every mutant of its fixtures without a panic,
//! and opening allocates no more than the bytes present allow.

mod common;

use common::format_of;
use peak_alloc::PeakAlloc;
use rayon::prelude::*;
use std::sync::Mutex;
use weighbridge_format::{Error, Formats, Options};
use weighbridge_testkit::{
    Fixture, assert_snapshot, bit_flips, boundary_integers, fixtures, structural_bytes, truncations,
};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;
/// The meter counts all threads, so that one test measures at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Opening allocates no more than the bytes present allow. Alone, because the meter counts all
/// threads.
fn check_memory(fixture: &Fixture) {
    let input = fixture.input();
    let present = fixture.main.len() + fixture.beside.iter().map(|(_, b)| b.len()).sum::<usize>();
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    drop(Formats::builtin().open(&input, &Options::default()));
    let used = MEMORY.peak_usage().saturating_sub(before);
    assert!(used <= (1 << 20) + 4 * present, "{}: {used} bytes for {present}", fixture.name);
}

/// Warnings that a text was cut within its last line. Whole texts may end so as well.
const UNFINISHED: [&str; 3] = ["TXT-07", "FLORET-07", "JSONL-10"];

/// Opens and checks a mutant. Returns whether it was called sound, without any doubt about its end.
fn is_sound(fixture: &Fixture) -> bool {
    match Formats::builtin().check(&fixture.input(), &Options::default(), false) {
        Ok((_, findings)) => {
            let doubtful = findings.list().iter().any(|f| UNFINISHED.contains(&f.rule));
            !findings.has_errors() && !doubtful
        }
        Err(Error::Unrecognised { .. } | Error::Malformed { .. } | Error::Refused(_)) => false,
        Err(other) => panic!("{}: {other}", fixture.name),
    }
}

/// Made a few at a time: all together they would fill the memory.
type Mutants<'a> = Box<dyn Iterator<Item = Vec<u8>> + 'a>;

/// Checks mutants on all cores, and the memory of every fourth. Returns how many there were, and the
/// sizes of those that were called sound.
fn run(mutants: Mutants, with: impl Fn(Vec<u8>) -> Fixture) -> (u64, Vec<usize>) {
    let (mut mutants, mut count, mut sound) = (mutants.peekable(), 0, Vec::new());
    while mutants.peek().is_some() {
        let some: Vec<Fixture> = mutants.by_ref().take(256).map(&with).collect();
        some.iter().step_by(4).for_each(check_memory);
        count += some.len() as u64;
        sound.par_extend(some.par_iter().filter(|m| is_sound(m)).map(|m| m.main.len()));
    }
    (count, sound)
}

/// Runs a sweep over the main file and the files beside it. How many mutants there are of each
/// fixture is in a file; which of those of the main file were called sound is returned.
fn sweep(
    name: &str,
    make: impl for<'a> Fn(&Fixture, &'a [u8], bool) -> Mutants<'a>,
) -> Vec<String> {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    let (mut counts, mut all_sound) = (Vec::new(), Vec::new());
    for fixture in fixtures() {
        let mutants = make(&fixture, &fixture.main, true);
        let (mut count, sound) = run(mutants, |m| fixture.with_main(m));
        let about = format!("{} {}", fixture.format, fixture.content);
        all_sound.extend(sound.iter().map(|size| format!("{about} ({size} bytes)")));
        for (i, (_, bytes)) in fixture.beside.iter().enumerate() {
            count += run(make(&fixture, bytes, false), |m| fixture.with_beside(i, m)).0;
        }
        counts.push(format!("{about}: {count}"));
    }
    assert_snapshot(env!("CARGO_MANIFEST_DIR"), name, counts);
    all_sound
}

/// The places to damage: structure in the main file, everything in small files beside it.
fn places(fixture: &Fixture, bytes: &[u8], main: bool) -> Vec<usize> {
    if main { structural_bytes(&fixture.input()) } else { (0..bytes.len().min(600)).collect() }
}

#[test]
fn every_truncation_is_found() {
    let sound = sweep("truncations", |fixture, bytes, main| {
        let step = if main { 1 } else { bytes.len() / 200 + 1 };
        // Nothing tells a file that ends behind a line from a whole one, where no count is kept.
        let open_ended = main && format_of(fixture.format).info().open_ended;
        let found = move |cut: &Vec<u8>| !(open_ended && cut.ends_with(b"\n"));
        Box::new(truncations(bytes).step_by(step).filter(found))
    });
    assert_eq!(sound, Vec::<String>::new());
}

#[test]
fn every_structural_bit_flip_is_survived() {
    sweep("bit_flips", |f, bytes, main| Box::new(bit_flips(bytes, places(f, bytes, main))));
}

#[test]
fn boundary_integers_everywhere_are_survived() {
    sweep("boundary_integers", |f, bytes, main| {
        let at = places(f, bytes, main);
        Box::new(boundary_integers(bytes, at))
    });
}

#[test]
fn trailing_bytes_are_found() {
    let sound = sweep("trailing_bytes", |_, bytes, main| {
        let tails = [&[0][..], &[0; 8], &[1; 64], b"}"];
        let wanted = main && !bytes.is_empty();
        Box::new(tails.into_iter().filter(move |_| wanted).map(move |tail| [bytes, tail].concat()))
    });
    assert_eq!(sound, Vec::<String>::new());
}

#[test]
fn checksums_catch_every_bit() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    let fixture =
        fixtures().into_iter().find(|f| f.format == "embd" && f.content == "model").unwrap();
    assert!(is_sound(&fixture));
    let everywhere: Vec<_> = (0..fixture.main.len()).collect();
    for (i, mutant) in bit_flips(&fixture.main, everywhere).enumerate() {
        assert!(!is_sound(&fixture.with_main(mutant)), "bit {} of byte {:#x}", i % 8, i / 8);
    }
}
