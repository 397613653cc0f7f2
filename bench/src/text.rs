//! Word vectors as text: written and read as whole processes that sync what they wrote, beside gensim,
//! which does the same in a process that stays.

use crate::Outcome;
use crate::convert::{copy_and_sync, settle};
use crate::files::Files;
use crate::process;
use crate::python::Python;
use crate::table::{Row, memory_alone, memory_limit, time_beside, time_limit};
use crate::timing::{Samples, seconds};
use crate::wordfile::WordFiles;
use std::ffi::OsStr;
use std::path::Path;

/// gensim takes minutes and is measured once, between the rounds of the others.
const ROUNDS: usize = 3;
const ANONYMOUS: u64 = 64 << 20;

pub fn measure(files: &Files) -> Outcome<Vec<Row>> {
    let made = WordFiles::prepare(files)?;
    let mut python = Python::start(&files.python)?;
    let (text, copy) = (files.work.join("converted.vec"), files.work.join("copied.vec"));
    let (binary, read) = (files.work.join("read.w2v"), files.work.join("read.fifu"));
    let convert = |from: &Path, to: &Path| -> Outcome<f64> {
        settle(to)?;
        let (time, done) = seconds(|| process::run(&files.program, &arguments(from, to)));
        done?;
        Ok(time)
    };
    let mut samples: [Samples; 4] = Default::default();
    let mut peer: [Samples; 2] = Default::default();
    for round in 0..=ROUNDS {
        let written = convert(&made.word2vec, &text)?;
        let times = [convert(&text, &read)?, convert(&text, &binary)?];
        settle(&copy)?;
        let (copied, done) = seconds(|| copy_and_sync(&text, &copy));
        done?;
        settle(&copy)?;
        if round > 0 {
            let times = [written, times[0], times[1], copied];
            samples.iter_mut().zip(times).for_each(|(samples, time)| samples.0.push(time));
        }
        if round == ROUNDS / 2 {
            let paths = [&made.word2vec, &copy].map(|path| path.to_string_lossy());
            let times: [f64; 2] = python.numbers(&["text_of_gensim", &paths[0], &paths[1]])?;
            peer = times.map(|time| Samples(vec![time]));
            settle(&copy)?;
        }
    }
    settle(&read)?;
    settle(&binary)?;
    let reading = process::peak_memory(&files.program, &arguments(&text, &read))?;
    settle(&read)?;
    settle(&text)?;
    let writing = process::peak_memory(&files.program, &arguments(&made.word2vec, &text))?;
    settle(&text)?;
    let [ours, to_finalfusion, to_word2vec, copied] = &samples;
    let [gensim, gensim_read] = &peer;
    let (out, back) = ("400,000 words to text", "400,000 words from text");
    Ok(vec![
        time_limit(&format!("{out}; peer: gensim, without a sync"), ours, gensim, 5.0),
        time_beside(&format!("{out}; peer: cp and sync of the text"), ours, copied),
        memory_limit(&format!("{out}: anonymous memory"), writing, None, ANONYMOUS),
        time_limit(
            &format!("{back} to finalfusion; peer: gensim, reading alone"),
            to_finalfusion,
            gensim_read,
            3.0,
        ),
        time_limit(&format!("{back} to word2vec; peer: the same"), to_word2vec, gensim_read, 3.0),
        memory_alone(&format!("{back} (458 MiB of values): anonymous memory"), reading),
    ])
}

fn arguments<'a>(from: &'a Path, to: &'a Path) -> [&'a OsStr; 4] {
    ["convert".as_ref(), "--quiet".as_ref(), from.as_os_str(), to.as_os_str()]
}
