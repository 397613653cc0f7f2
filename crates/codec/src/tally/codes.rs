//! Counts of codes of short types.

/// How often each code of 8 or 16 bits occurred, among fewer than 2^32 of them.
#[derive(Clone, Debug)]
pub struct CodeCounts {
    /// Neighbours are counted apart: adding to the same place twice would wait for memory.
    tables: Vec<u32>,
    /// How many codes there are.
    codes: usize,
}

/// Tables for codes of 8 bits, and for those of 16.
const BYTE_TABLES: usize = 8;
const PAIR_TABLES: usize = 2;
const PAIRS: usize = 1 << 16;

impl CodeCounts {
    /// Of codes of 8 bits.
    pub fn of_bytes() -> CodeCounts {
        CodeCounts { tables: vec![0; BYTE_TABLES << 8], codes: 1 << 8 }
    }

    /// Of codes of 16 bits, little-endian.
    pub fn of_pairs() -> CodeCounts {
        CodeCounts { tables: vec![0; PAIR_TABLES * PAIRS], codes: PAIRS }
    }

    /// Counts codes.
    #[allow(clippy::cast_possible_truncation, reason = "a code at a time is cut off")]
    pub fn add(&mut self, raw: &[u8]) {
        let (eights, rest) = raw.as_chunks::<8>();
        if let Ok(tables) = <&mut [u32; PAIR_TABLES * PAIRS]>::try_from(&mut self.tables[..]) {
            for eight in eights {
                let codes = u64::from_le_bytes(*eight);
                for i in 0..4 {
                    let code = usize::from((codes >> (16 * i)) as u16);
                    tables[i % PAIR_TABLES * PAIRS + code] += 1;
                }
            }
            for two in rest.as_chunks::<2>().0 {
                tables[usize::from(u16::from_le_bytes(*two))] += 1;
            }
        } else if let Ok(tables) = <&mut [u32; BYTE_TABLES << 8]>::try_from(&mut self.tables[..]) {
            for eight in eights {
                let codes = u64::from_le_bytes(*eight);
                for i in 0..8 {
                    tables[(i << 8) | usize::from((codes >> (8 * i)) as u8)] += 1;
                }
            }
            rest.iter().for_each(|code| tables[usize::from(*code)] += 1);
        }
    }

    /// How often each code occurred.
    pub fn to_vec(&self) -> Vec<u64> {
        let mut counts = vec![0; self.codes];
        for table in self.tables.chunks_exact(self.codes) {
            counts.iter_mut().zip(table).for_each(|(sum, count)| *sum += u64::from(*count));
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_counted_one_by_one() {
        let raw: Vec<u8> = (0..10_007u32).map(|i| (i * i % 251) as u8).collect();
        let (mut bytes, mut pairs) = (CodeCounts::of_bytes(), CodeCounts::of_pairs());
        bytes.add(&raw);
        pairs.add(&raw[..10_006]);
        let (mut each, mut each_pair) = (vec![0u64; 256], vec![0u64; PAIRS]);
        raw.iter().for_each(|b| each[usize::from(*b)] += 1);
        let words = raw[..10_006].chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]]));
        words.for_each(|code| each_pair[usize::from(code)] += 1);
        assert!(bytes.to_vec() == each && pairs.to_vec() == each_pair);
    }
}
