//! The texts that a model is watched with.

use crate::embed::texts_of_lines;
use std::io::BufRead;
use weighbridge_format::Error;

/// Sentences on all kinds of subjects, one a line.
const BUILT_IN: &str = include_str!("texts.txt");

/// What else models meet: queries, names, notes, code, other languages.
const VARIED: &str = include_str!("varied.txt");

/// One in so many of the built-in sentences is only for comparing.
const HELD_OUT: usize = 4;

/// Which texts a model is watched with while its weights are rounded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Calibration {
    /// Texts of many kinds that come with the program, if the model can be run and the method goes with it.
    #[default]
    Automatic,
    /// None: weights are rounded by themselves.
    Never,
    /// These texts. What can't be calibrated is refused.
    Texts(Vec<String>),
}

impl Calibration {
    /// The lines of a text, without blank ones; `name` is what messages call it.
    ///
    /// # Errors
    /// [`Error::Unrecognised`] for what is not lines of text, failures of the system.
    pub fn from_lines(name: &str, input: impl BufRead) -> Result<Calibration, Error> {
        texts_of_lines(name, input).map(Calibration::Texts)
    }

    /// The texts for codes of so many bits. The finer they are, the fewer errors there are to make up
    /// for, and the fewer texts tell how.
    pub(super) fn texts(&self, bits: usize) -> Vec<String> {
        let mut texts = match self {
            Calibration::Never => Vec::new(),
            Calibration::Automatic => built_in(false),
            Calibration::Texts(texts) => texts.clone(),
        };
        texts.extend(mixed(&texts));
        if *self == Calibration::Automatic {
            texts.extend(VARIED.lines().map(str::to_owned));
            let every = if bits >= 6 { 2 } else { 1 };
            texts = texts.into_iter().step_by(every).collect();
        }
        texts
    }
}

/// Texts that no calibration sees.
pub(super) fn held_out() -> Vec<String> {
    built_in(true)
}

fn built_in(held_out: bool) -> Vec<String> {
    let lines = BUILT_IN.lines().enumerate();
    lines.filter(|(i, _)| (i % HELD_OUT == 0) == held_out).map(|(_, l)| l.to_owned()).collect()
}

/// The words of the texts dealt out anew, in as many texts of other lengths. Models also meet what is
/// not a sentence, and are fed with other values there.
fn mixed(texts: &[String]) -> Vec<String> {
    let mut words: Vec<&str> = texts.iter().flat_map(|t| t.split_whitespace()).collect();
    // The same for the same texts: numbers of a generator of Lehmer's kind.
    let mut state = 1_u64;
    let mut below = |n: usize| {
        state = state * 48_271 % 2_147_483_647;
        (state % n.max(1) as u64) as usize
    };
    for i in (1..words.len()).rev() {
        words.swap(i, below(i + 1));
    }
    let mut made = Vec::new();
    let mut rest = &words[..];
    while !rest.is_empty() {
        let (text, behind) = rest.split_at(rest.len().min(3 + below(30)));
        made.push(text.join(" "));
        rest = behind;
    }
    made
}
