//! Counts of codes of short types.
//!
//! An increment waits for the store of the one before at the same place, and stores are what there are
//! fewest of. So codes of 8 bits are counted two at a time, and counts are bytes, which the nearest cache
//! has room for: one that is full goes over into another table.

/// How often each code of 8 or 16 bits occurred, among fewer than 2^32 of them.
#[derive(Clone, Debug)]
pub struct CodeCounts(Counts);

#[derive(Clone, Debug)]
enum Counts {
    /// Few codes of 8 bits, one by one.
    Bytes(Vec<u32>),
    /// Codes of 8 bits, two by two, and those that were left over.
    Twos(Pairs, Vec<u64>),
    /// Codes of 16 bits.
    Pairs(Pairs),
}

/// Counts of 16 bits at a time.
#[derive(Clone, Debug)]
struct Pairs {
    /// The last byte of each count: a table, or one for each of some neighbours.
    last: Vec<u8>,
    /// How often that was full.
    full: Vec<u32>,
    /// Neighbours were often the same among the last that were counted.
    apart: bool,
}

/// So many codes of 8 bits are worth tables for two at a time.
const MANY: u64 = 1 << 20;

const BYTES: usize = 1 << 8;
const PAIRS: usize = 1 << 16;

/// Tables for codes of 8 bits, one by one; for those of 16 bits where neighbours are often the same.
const BYTE_TABLES: usize = 8;
const PAIR_TABLES: usize = 4;

/// Bytes that are counted in the same way, and the first of them, which tell how the next ones are: whether more
/// than one of so many neighbours are the same.
const TOGETHER: usize = 1 << 14;
const ASKED: usize = 1 << 9;
const OFTEN: usize = 16;

impl CodeCounts {
    /// Of about so many codes of 8 bits.
    pub fn of_bytes(count: u64) -> CodeCounts {
        CodeCounts(if count < MANY {
            Counts::Bytes(vec![0; BYTE_TABLES * BYTES])
        } else {
            Counts::Twos(Pairs::new(), vec![0; BYTES])
        })
    }

    /// Of codes of 16 bits, little-endian.
    pub fn of_pairs() -> CodeCounts {
        CodeCounts(Counts::Pairs(Pairs::new()))
    }

    /// Counts codes.
    pub fn add(&mut self, raw: &[u8]) {
        match &mut self.0 {
            Counts::Bytes(tables) => add_bytes(tables, raw),
            Counts::Pairs(pairs) => pairs.add(raw),
            Counts::Twos(pairs, left) => {
                pairs.add(raw);
                let (_, rest) = raw.as_chunks::<2>();
                rest.iter().for_each(|code| left[usize::from(*code)] += 1);
            }
        }
    }

    /// How often each code occurred.
    pub fn to_vec(&self) -> Vec<u64> {
        match &self.0 {
            Counts::Bytes(tables) => {
                let mut counts = vec![0; BYTES];
                for table in tables.chunks_exact(BYTES) {
                    counts.iter_mut().zip(table).for_each(|(sum, count)| *sum += u64::from(*count));
                }
                counts
            }
            Counts::Twos(pairs, left) => {
                let mut counts = left.clone();
                // A row of the table has the same second code.
                for (second, row) in pairs.to_vec().chunks_exact(BYTES).enumerate() {
                    counts[second] += row.iter().sum::<u64>();
                    counts.iter_mut().zip(row).for_each(|(sum, count)| *sum += count);
                }
                counts
            }
            Counts::Pairs(pairs) => pairs.to_vec(),
        }
    }
}

#[allow(clippy::cast_possible_truncation, reason = "a code at a time is cut off")]
fn add_bytes(tables: &mut [u32], raw: &[u8]) {
    let Some(tables) = tables.first_chunk_mut::<{ BYTE_TABLES * BYTES }>() else { return };
    let (eights, rest) = raw.as_chunks::<8>();
    for eight in eights {
        let codes = u64::from_le_bytes(*eight);
        for i in 0..8 {
            tables[i * BYTES + usize::from((codes >> (8 * i)) as u8)] += 1;
        }
    }
    rest.iter().for_each(|code| tables[usize::from(*code)] += 1);
}

impl Pairs {
    fn new() -> Pairs {
        Pairs { last: vec![0; PAIRS], full: vec![0; PAIRS], apart: false }
    }

    fn add(&mut self, raw: &[u8]) {
        for part in raw.chunks(TOGETHER) {
            // Neighbours that are the same are counted apart; else there are fewer places to be cached.
            if self.apart {
                self.last.resize(PAIR_TABLES * PAIRS, 0);
                self.add_to::<PAIR_TABLES>(part);
            } else {
                self.add_to::<1>(part);
            }
            // Of the next ones, by these, which are there now.
            let asked = part[..part.len().min(ASKED)].as_chunks::<4>().0;
            let same = asked.iter().filter(|four| four[..2] == four[2..]).count();
            self.apart = same * OFTEN > asked.len();
        }
    }

    #[allow(clippy::cast_possible_truncation, reason = "a code at a time is cut off")]
    fn add_to<const TABLES: usize>(&mut self, raw: &[u8]) {
        let (last, _) = self.last.as_chunks_mut::<PAIRS>();
        let (Some(last), Some(full)) =
            (last.first_chunk_mut::<TABLES>(), self.full.first_chunk_mut::<PAIRS>())
        else {
            return;
        };
        let mut add = |table: usize, code: u16| {
            let code = usize::from(code);
            let count = &mut last[table][code];
            *count = count.wrapping_add(1);
            if *count == 0 {
                full[code] += 1;
            }
        };
        let (eights, rest) = raw.as_chunks::<8>();
        for eight in eights {
            let codes = u64::from_le_bytes(*eight);
            for i in 0..4 {
                add(i % TABLES, (codes >> (16 * i)) as u16);
            }
        }
        rest.as_chunks::<2>().0.iter().for_each(|code| add(0, u16::from_le_bytes(*code)));
    }

    fn to_vec(&self) -> Vec<u64> {
        let mut counts: Vec<u64> =
            self.full.iter().map(|full| u64::from(*full) << u8::BITS).collect();
        for table in self.last.chunks_exact(PAIRS) {
            counts.iter_mut().zip(table).for_each(|(sum, count)| *sum += u64::from(*count));
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spread, the same for long, and mostly the same; more often than a byte counts; in pieces of any length.
    #[test]
    fn codes_are_counted_as_one_by_one() {
        let spread: Vec<u8> =
            (0..100_007u32).map(|i| (u64::from(i) * u64::from(i) % 251) as u8).collect();
        let same = vec![7; 100_001];
        let mostly: Vec<u8> =
            (0..90_001u32).map(|i| if i % 5 == 0 { i as u8 } else { 0 }).collect();
        for raw in [spread.clone(), same.clone(), mostly.clone(), [spread, mostly, same].concat()] {
            let mut each = vec![0u64; BYTES];
            raw.iter().for_each(|b| each[usize::from(*b)] += 1);
            for count in [0, MANY] {
                let mut bytes = CodeCounts::of_bytes(count);
                raw.chunks(30_001).for_each(|part| bytes.add(part));
                assert_eq!(bytes.to_vec(), each);
            }
            let mut pairs = CodeCounts::of_pairs();
            raw.chunks(30_002).for_each(|part| pairs.add(part));
            let mut each = vec![0u64; PAIRS];
            let twos = raw.as_chunks::<2>().0;
            twos.iter().for_each(|two| each[usize::from(u16::from_le_bytes(*two))] += 1);
            assert!(pairs.to_vec() == each);
        }
        assert_eq!(CodeCounts::of_pairs().to_vec().iter().sum::<u64>(), 0);
    }
}
