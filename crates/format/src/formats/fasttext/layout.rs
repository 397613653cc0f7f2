//! The arguments of the training, which stand in front.

use crate::model::Dialect;
use crate::wire::{Cursor, Stop};

/// 793712314, little-endian.
pub(super) const MAGIC: [u8; 4] = 793_712_314u32.to_le_bytes();
/// What is written. Version 11 has the same layout.
pub(super) const VERSION: u32 = 12;
pub(super) const VERSIONS: [u32; 2] = [11, VERSION];

/// The two ways in which the parts of a model follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Behind a magic and a version.
    Versioned(u32),
    /// Before there were versions (2016): neither these nor anything about quantizing.
    First,
}

impl Layout {
    /// Where the arguments begin.
    pub(super) fn arguments(self) -> u64 {
        if self == Layout::First { 0 } else { 8 }
    }
}

/// Bytes of the arguments and of the counts behind them, in the first layout.
const FIRST_FRONT: usize = ARGUMENTS + 3 * 4 + 8;
pub(super) const ARGUMENTS: usize = 12 * 4 + 8;

/// A file of the first layout, which has nothing else to know it by: every number is one that a
/// training can have, and words can follow.
pub(super) fn is_first(head: &[u8], size: u64) -> bool {
    let Some((front, words)) = head.split_at_checked(FIRST_FRONT) else { return false };
    let number = |i: usize| i32::from_le_bytes(std::array::from_fn(|k| front[4 * i + k]));
    let values: [i32; 12] = std::array::from_fn(number);
    let t = f64::from_le_bytes(std::array::from_fn(|k| front[48 + k]));
    let [dim, ws, epoch, min_count, neg, word_ngrams, loss, model, bucket, min_n, max_n, rate] =
        values;
    let usual = (1..=1 << 16).contains(&dim)
        && (1..=1000).contains(&ws)
        && (1..=100_000).contains(&epoch)
        && (0..=1 << 24).contains(&min_count)
        && (0..=10_000).contains(&neg)
        && (1..=64).contains(&word_ngrams)
        && (1..=3).contains(&loss)
        && (1..=3).contains(&model)
        && bucket >= 0
        && (0..=64).contains(&min_n)
        && (0..=64).contains(&max_n)
        && rate >= 0
        && (0.0..=1.0).contains(&t);
    let (entries, nwords, labels) = (number(14), number(15), number(16));
    // A word takes a byte to end it, its count and what kind of entry it is.
    let room = size.saturating_sub(FIRST_FRONT as u64) / 10;
    let counted = nwords > 0 && labels >= 0 && nwords.checked_add(labels) == Some(entries);
    let fits = u64::try_from(entries).is_ok_and(|n| n <= room);
    usual && counted && fits && words.iter().take(1 << 16).any(|b| *b == 0)
}
/// `model` of a text classifier.
pub(super) const SUPERVISED: i32 = 3;

/// Names of private tensors: the words' own rows, how often each word was seen, the output matrix.
pub(super) const OWN_ROWS: &str = "fasttext/words";
pub(super) const COUNTS: &str = "fasttext/counts";
pub(super) const OUTPUT: &str = "fasttext/output";

/// Names of the arguments, in order.
pub(super) const NAMES: [&str; 12] = [
    "dim",
    "ws",
    "epoch",
    "minCount",
    "neg",
    "wordNgrams",
    "loss",
    "model",
    "bucket",
    "minn",
    "maxn",
    "lrUpdateRate",
];

/// The arguments.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Args {
    pub values: [i32; 12],
    /// The sampling threshold.
    pub t: f64,
}

/// Where some of them stand.
const DIM: usize = 0;
const MODEL: usize = 7;
const BUCKET: usize = 8;
const MIN_N: usize = 9;
const MAX_N: usize = 10;
const UPDATE_RATE: usize = 11;

impl Args {
    pub(super) fn read(c: &mut Cursor) -> Result<Args, Stop> {
        let mut values = [0; 12];
        for (value, name) in values.iter_mut().zip(NAMES) {
            *value = c.u32(name)?.cast_signed();
        }
        Ok(Args { values, t: f64::from_bits(c.u64("t")?) })
    }

    /// What fastText would be told to train skip-grams with its usual settings.
    pub(super) fn usual() -> Args {
        Args { values: [100, 5, 5, 1, 5, 1, 2, 2, 0, 0, 0, 100], t: 1e-4 }
    }

    pub(super) fn with(mut self, dim: i32, bucket: i32, min_n: i32, max_n: i32) -> Args {
        self.values[DIM] = dim;
        self.values[BUCKET] = bucket;
        // Without n-grams the smallest length means nothing and stays as it was.
        if max_n > 0 && self.values[MIN_N].max(1) != min_n {
            self.values[MIN_N] = min_n;
        }
        self.values[MAX_N] = max_n;
        self
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        self.values.iter().for_each(|v| out.extend_from_slice(&v.to_le_bytes()));
        out.extend_from_slice(&self.t.to_bits().to_le_bytes());
    }

    pub(super) fn dim(&self) -> i32 {
        self.values[DIM]
    }

    pub(super) fn is_supervised(&self) -> bool {
        self.values[MODEL] == SUPERVISED
    }

    /// Buckets, shortest and longest n-gram.
    pub(super) fn ngrams(&self) -> (i32, i32, i32) {
        (self.values[BUCKET], self.values[MIN_N], self.values[MAX_N])
    }

    /// floret has two numbers more between `maxn` and `lrUpdateRate`, under the same magic and
    /// version. Then its mode (1 or 2) stands where the rate should, and the threshold is made of
    /// two whole numbers: as a fraction next to nothing.
    pub(super) fn is_floret(&self) -> bool {
        matches!(self.values[UPDATE_RATE], 1 | 2) && self.t != 0.0 && self.t.abs() < 1e-200
    }

    pub(super) fn to_dialect(&self) -> Dialect {
        let mut dialect = Dialect::new();
        dialect.insert("args".to_owned(), self.values.to_vec().into());
        // As bits: decimal digits could round.
        dialect.insert("t".to_owned(), self.t.to_bits().into());
        dialect
    }

    pub(super) fn from_dialect(dialect: &Dialect) -> Option<Args> {
        let list = dialect.get("args")?.as_array()?;
        let values: Option<Vec<i32>> =
            list.iter().map(|v| i32::try_from(v.as_i64()?).ok()).collect();
        let t = f64::from_bits(dialect.get("t")?.as_u64()?);
        Some(Args { values: values?.try_into().ok()?, t })
    }
}

/// Says in the dialect that the file has no output matrix.
pub(super) const NO_OUTPUT: &str = "no_output";

/// Which version the file was of, in the dialect.
pub(super) const VERSION_KEY: &str = "version";
