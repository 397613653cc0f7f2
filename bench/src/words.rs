//! Word vectors: opening, looking up, neighbours, and converting, against gensim and both
//! implementations of finalfusion.

use crate::Outcome;
use crate::convert::{copy_and_sync, settle};
use crate::files::Files;
use crate::process;
use crate::python::Python;
use crate::table::{Row, memory_limit, time_beside, time_limit, time_ratio};
use crate::timing::{Samples, seconds};
use crate::wordfile::{WordFiles, convert_with_crate, shuffled};
use finalfusion::prelude::*;
use finalfusion::similarity::WordSimilarity;
use std::ffi::OsStr;
use std::fs::File;
use std::hint::black_box;
use std::io::BufReader;
use std::path::Path;
use std::process::Command;

/// First arguments of processes that measure or are measured.
pub const CONVERT: &str = "convert-with-crate";
pub const SIMILAR: &str = "measure-similar";

const OPEN_ROUNDS: usize = 12;
const LOOKUP_ROUNDS: usize = 5;
const SIMILAR_ROUNDS: usize = 30;
const CONVERT_ROUNDS: usize = 5;
const ANONYMOUS: u64 = 64 << 20;
const NEIGHBOURS: usize = 10;

const GENSIM: &str = "gensim";
const PYPI: &str = "PyPI finalfusion";
const CRATE: &str = "crate finalfusion";
const PEERS: [&str; 3] = [GENSIM, PYPI, CRATE];

type Crate = Embeddings<VocabWrap, StorageViewWrap>;

pub fn measure(files: &Files) -> Outcome<Vec<Row>> {
    let made = WordFiles::prepare(files)?;
    let mut rows = measure_open(files, &made)?;
    rows.extend(measure_lookup(files, &made)?);
    for (cores, list) in [("one core", "0"), ("all cores", "")] {
        rows.extend(measure_similar(files, &made, cores, list)?);
    }
    rows.extend(measure_convert(files, &made)?);
    Ok(rows)
}

/// Opening alone, and with finding a word: we make the table of words when it is first needed, the
/// peers while they open.
fn measure_open(files: &Files, made: &WordFiles) -> Outcome<Vec<Row>> {
    let mut python = Python::start(&files.python)?;
    let word = &shuffled()[0];
    let mut ours = [Samples::default(), Samples::default()];
    let mut peers: [[Samples; 2]; 3] = Default::default();
    for round in 0..=OPEN_ROUNDS {
        let (opened, words) = seconds(|| weighbridge::Embeddings::open(&made.finalfusion));
        let words = words?;
        let (found, row) = seconds(|| words.find(word));
        row.ok_or("the word is there")?;
        drop(words);
        let mut times = [[0.0; 2]; 3];
        times[0] = open_python(&mut python, "gensim", &made.gensim, word)?;
        times[1] = open_python(&mut python, "finalfusion", &made.finalfusion, word)?;
        let (crate_opened, words) = seconds(|| open_crate(&made.finalfusion));
        let words = words?;
        let (crate_found, vector) = seconds(|| words.embedding(word));
        vector.ok_or("the word is there")?;
        times[2] = [crate_opened, crate_opened + crate_found];
        if round > 0 {
            ours[0].0.push(opened);
            ours[1].0.push(opened + found);
            for (peer, times) in peers.iter_mut().zip(times) {
                peer.iter_mut().zip(times).for_each(|(samples, time)| samples.0.push(time));
            }
        }
    }
    let mut rows = Vec::new();
    for (which, what) in ["open 400,000 words", "open and find a word"].into_iter().enumerate() {
        for ((peer, name), limit) in peers.iter().zip(PEERS).zip([0.1, 0.1, 0.2]) {
            let what = format!("{what}; peer: {name}, mapped");
            rows.push(time_ratio(&what, &ours[which], &peer[which], limit));
        }
    }
    Ok(rows)
}

fn open_python(python: &mut Python, who: &str, path: &Path, word: &str) -> Outcome<[f64; 2]> {
    python.numbers(&["open_and_find", who, &path.to_string_lossy(), word])
}

fn open_crate(path: &Path) -> Outcome<Crate> {
    Ok(Crate::mmap_embeddings(&mut BufReader::new(File::open(path)?))?)
}

/// Time a word, over all words in random order. The peers of Python do not look at the values.
fn measure_lookup(files: &Files, made: &WordFiles) -> Outcome<Vec<Row>> {
    let mut python = Python::start(&files.python)?;
    let words = shuffled();
    open_python(&mut python, "gensim", &made.gensim, &words[0])?;
    open_python(&mut python, "finalfusion", &made.finalfusion, &words[0])?;
    let ours = weighbridge::Embeddings::open(&made.finalfusion)?;
    let theirs = open_crate(&made.finalfusion)?;
    let list = made.shuffled.to_string_lossy();
    let mut samples: [Samples; 6] = Default::default();
    for round in 0..=LOOKUP_ROUNDS {
        let each = |work: &dyn Fn(&str)| {
            seconds(|| words.iter().for_each(|word| work(word))).0 / words.len() as f64
        };
        let row = |word: &str| ours.row(ours.find(word).expect("the word is there"));
        let theirs = |word: &str| theirs.embedding(word).expect("the word is there");
        let times = [
            each(&|word| drop(black_box(row(word)))),
            each(&|word| drop(black_box(theirs(word)))),
            each(&|word| {
                black_box(row(word).expect("the row is there")[0]);
            }),
            each(&|word| {
                black_box(theirs(word)[0]);
            }),
            python.numbers::<1>(&["lookup", "gensim", &list])?[0],
            python.numbers::<1>(&["lookup", "finalfusion", &list])?[0],
        ];
        if round > 0 {
            samples.iter_mut().zip(times).for_each(|(samples, time)| samples.0.push(time));
        }
    }
    let [ours, theirs, read, read_theirs, gensim, pypi] = &samples;
    Ok([
        ("the vector of a word", ours, theirs, CRATE),
        ("the vector of a word", ours, gensim, GENSIM),
        ("the vector of a word", ours, pypi, PYPI),
        ("the vector of a word, first value read", read, read_theirs, CRATE),
    ]
    .map(|(what, ours, peer, name)| {
        time_limit(&format!("{what}; peer: {name}"), ours, peer, 300e-9)
    })
    .into())
}

/// In a process of its own with its peers in another, because both fix their threads when they
/// start.
fn measure_similar(files: &Files, made: &WordFiles, cores: &str, list: &str) -> Outcome<Vec<Row>> {
    let this = std::env::current_exe()?;
    let mut command = match list {
        "" => Command::new(&this),
        list => {
            let mut command = Command::new("taskset");
            command.arg("-c").arg(list).arg(&this);
            command
        }
    };
    let paths = [&files.python, &made.finalfusion, &made.gensim];
    let samples: [Samples; 4] = process::samples(command.arg(SIMILAR).args(paths))?;
    let [ours, peers @ ..] = &samples;
    let row = |(peer, name): (&Samples, &str)| {
        let what = format!("the 10 nearest words, {cores}; peer: {name}");
        time_ratio(&what, ours, peer, 0.5)
    };
    Ok(peers.iter().zip(PEERS).map(row).collect())
}

/// Prints a line of times of ours, and one of each peer.
pub fn similar(python: &Path, file: &Path, gensim: &Path) -> Outcome<()> {
    let mut python = Python::start(python)?;
    let words = shuffled();
    open_python(&mut python, "gensim", gensim, &words[0])?;
    open_python(&mut python, "finalfusion", file, &words[0])?;
    let ours = weighbridge::Embeddings::open(file)?;
    let theirs = open_crate(file)?;
    let mut samples: [Samples; 4] = Default::default();
    for (round, word) in words.iter().take(SIMILAR_ROUNDS + 1).enumerate() {
        let (time, hits) = seconds(|| ours.similar(word, NEIGHBOURS));
        let hits: Vec<_> = hits?.iter().map(|hit| ours.word(hit.row).into_owned()).collect();
        let (crate_time, crate_hits) = seconds(|| theirs.word_similarity(word, NEIGHBOURS, None));
        let crate_hits = crate_hits.ok_or("the word is there")?;
        same(&hits, crate_hits.iter().map(|hit| hit.word()))?;
        let mut times = [time, 0.0, 0.0, crate_time];
        for (who, slot) in [("gensim", 1), ("finalfusion", 2)] {
            let answer = python.ask(&["similar", who, word, &NEIGHBOURS.to_string()])?;
            times[slot] = answer[0].as_f64().ok_or("a time was asked for")?;
            let found = answer[1].as_array().ok_or("words were asked for")?;
            same(&hits, found.iter().filter_map(|word| word.as_str()))?;
        }
        if round > 0 {
            samples.iter_mut().zip(times).for_each(|(samples, time)| samples.0.push(time));
        }
    }
    process::print(&samples);
    Ok(())
}

/// All must find the same words; the last may differ where the sums are rounded otherwise.
fn same<'a>(ours: &[String], theirs: impl Iterator<Item = &'a str>) -> Outcome<()> {
    let common = theirs.filter(|word| ours.iter().any(|our| our == word)).count();
    if common + 1 < NEIGHBOURS {
        return Err(format!("only {common} of the nearest words are the same").into());
    }
    Ok(())
}

/// Whole processes. Ours syncs what it wrote; the crate's does so in one of two runs. No conversion is
/// faster than copying the bytes.
fn measure_convert(files: &Files, made: &WordFiles) -> Outcome<Vec<Row>> {
    let this = std::env::current_exe()?;
    let to = files.work.join("converted.fifu");
    let (from, into) = (made.word2vec.as_os_str(), to.as_os_str());
    let ours: [&OsStr; 3] = ["convert".as_ref(), from, into];
    let plain: [&OsStr; 4] = [CONVERT.as_ref(), from, into, "plain".as_ref()];
    let synced: [&OsStr; 4] = [CONVERT.as_ref(), from, into, "sync".as_ref()];
    let sides = [(&files.program, &ours[..]), (&this, &plain), (&this, &synced)];
    let mut samples: [Samples; 3] = Default::default();
    let mut copied = Samples::default();
    for round in 0..=CONVERT_ROUNDS {
        for (samples, (program, arguments)) in samples.iter_mut().zip(sides) {
            settle(&to)?;
            let (time, done) = seconds(|| process::run(program, arguments));
            done?;
            if round > 0 {
                samples.0.push(time);
            }
        }
        settle(&to)?;
        let (time, done) = seconds(|| copy_and_sync(&made.word2vec, &to));
        done?;
        if round > 0 {
            copied.0.push(time);
        }
    }
    let mut memory = [0; 2];
    for (slot, (program, arguments)) in memory.iter_mut().zip(sides) {
        settle(&to)?;
        *slot = process::peak_memory(program, arguments)?;
    }
    settle(&to)?;
    let what = "convert 400,000 words, word2vec to finalfusion";
    let [ours, plain, synced] = &samples;
    Ok(vec![
        time_ratio(&format!("{what}; peer: {CRATE}, with a sync as ours"), ours, synced, 0.6),
        time_beside(&format!("{what}; peer: {CRATE}, without a sync"), ours, plain),
        time_beside(&format!("{what}; peer: cp and sync of the input"), ours, &copied),
        memory_limit(&format!("{what}: anonymous memory"), memory[0], Some(memory[1]), ANONYMOUS),
    ])
}

/// The process that is measured.
pub fn convert(from: &Path, to: &Path, sync: &str) -> Outcome<()> {
    convert_with_crate(from, to, sync == "sync")
}
