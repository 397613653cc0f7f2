//! The arguments of the training, which stand in front.

use crate::model::Dialect;
use crate::wire::{Cursor, Stop};

/// 793712314, little-endian.
pub(super) const MAGIC: [u8; 4] = 793_712_314u32.to_le_bytes();
pub(super) const VERSION: u32 = 12;
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
