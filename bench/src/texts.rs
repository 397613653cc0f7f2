//! The texts that are embedded: one short question, sentences of many lengths, and passages.

use crate::Outcome;
use crate::wordfile::Random;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A list of texts, as a file that all sides read.
pub struct Texts {
    pub path: PathBuf,
    pub list: Vec<String>,
}

pub struct Workloads {
    /// One question.
    pub short: Texts,
    /// 1,000 texts of 5 to 60 words.
    pub mixed: Texts,
    /// Passages of 128 and of 256 tokens, of which nothing is padded.
    pub p128: Texts,
    pub p256: Texts,
    /// Some of each, for the choice among variants of a peer.
    pub trial: Texts,
    /// All of them, for the comparison of vectors.
    pub all: Texts,
}

impl Workloads {
    /// Writes the lists into a folder. They are those of the JSON file that `ENCODE_TEXTS` names, or
    /// made from numbers.
    pub fn write(folder: &Path) -> Outcome<Workloads> {
        std::fs::create_dir_all(folder)?;
        let mut lists = match std::env::var_os("ENCODE_TEXTS") {
            Some(path) if !path.is_empty() => serde_json::from_slice(&std::fs::read(path)?)?,
            _ => generate(),
        };
        let mut take = |name: &str| lists.remove(name).ok_or(format!("no texts called {name}"));
        let [short, mixed, p128, p256] = ["short", "mixed1000", "p128", "p256"].map(&mut take);
        let (short, mixed, p128, p256) = (short?, mixed?, p128?, p256?);
        let some = |list: &[String], count: usize| list.iter().take(count).cloned().collect();
        let trial: Vec<Vec<String>> = vec![some(&mixed, 96), some(&p128, 16)];
        let all = [&short, &mixed, &p128, &p256].map(Clone::clone).concat();
        Ok(Workloads {
            short: Texts::write(folder, "short", short)?,
            mixed: Texts::write(folder, "mixed", mixed)?,
            p128: Texts::write(folder, "p128", p128)?,
            p256: Texts::write(folder, "p256", p256)?,
            trial: Texts::write(folder, "trial", trial.concat())?,
            all: Texts::write(folder, "all", all)?,
        })
    }

    /// Reads what [`Workloads::write`] wrote.
    pub fn read(folder: &Path) -> Outcome<Workloads> {
        let read = |name: &str| Texts::read(folder, name);
        Ok(Workloads {
            short: read("short")?,
            mixed: read("mixed")?,
            p128: read("p128")?,
            p256: read("p256")?,
            trial: read("trial")?,
            all: read("all")?,
        })
    }
}

impl Texts {
    fn write(folder: &Path, name: &str, list: Vec<String>) -> Outcome<Texts> {
        let path = folder.join(name).with_extension("json");
        std::fs::write(&path, serde_json::to_vec(&list)?)?;
        Ok(Texts { path, list })
    }

    fn read(folder: &Path, name: &str) -> Outcome<Texts> {
        let path = folder.join(name).with_extension("json");
        let list = serde_json::from_slice(&std::fs::read(&path)?)?;
        Ok(Texts { path, list })
    }
}

/// Each of these is one token of the model, so that the length of a passage is known.
const WORDS: &str = "the of and in to was for with as on by that from his at were are which had not \
    also have her but this their who first after other new one its time been more two when would \
    over some only city year could these state then world people many system work school water \
    house company number group history music family game government university language data model \
    computer network training sentence information river bank market science research children";

fn generate() -> HashMap<String, Vec<String>> {
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    let mut random = Random(17);
    let mut some = |count: usize| -> Vec<&str> {
        (0..count).map(|_| words[random.below(words.len())]).collect()
    };
    // Two tokens are the marks around a text.
    let p128 = (0..128).map(|_| some(126).join(" ")).collect();
    let p256 = (0..64).map(|_| some(254).join(" ")).collect();
    let mixed = (0..1000)
        .map(|i| {
            // Every length is there, in an order that says nothing.
            let text = some(5 + i * 37 % 56).join(" ");
            format!("{}{}.", text[..1].to_uppercase(), &text[1..])
        })
        .collect();
    let short = vec!["How do I reset my password on this site?".to_owned()];
    let lists = [("short", short), ("mixed1000", mixed), ("p128", p128), ("p256", p256)];
    lists.map(|(name, list)| (name.to_owned(), list)).into()
}
