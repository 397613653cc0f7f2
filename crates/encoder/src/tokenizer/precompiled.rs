//! The table of the normalizer `Precompiled`: a trie of characters, and what each becomes.
//!
//! The crate that follows it trusts it; so every place that it could lead to is looked at before.

use super::json::malformed;
use weighbridge_format::Error;

/// The most bytes that a character may become.
const LONGEST: usize = 256;

/// Checks a table, which is written in base64.
pub(super) fn check(base64: &str) -> Result<(), Error> {
    let bytes = decode(base64).ok_or_else(|| wrong("it is not base64"))?;
    let (size, rest) = bytes.split_first_chunk::<4>().ok_or_else(|| wrong("it is empty"))?;
    let size = u32::from_le_bytes(*size) as usize / 4 * 4;
    let (trie, texts) = rest.split_at_checked(size).ok_or_else(|| wrong("it is cut short"))?;
    let texts = str::from_utf8(texts).map_err(|_| wrong("what characters become is not UTF-8"))?;
    let units: Vec<u32> = trie.as_chunks().0.iter().map(|unit| u32::from_le_bytes(*unit)).collect();
    walk(&units, texts)
}

fn wrong(why: &str) -> Error {
    malformed(&format!("has a normalizer whose precompiled_charsmap can't be used: {why}"))
}

/// Follows the trie from its root to every unit that a text could lead to. A unit says where its children
/// are; child and byte are joined by an exclusive or.
fn walk(units: &[u32], texts: &str) -> Result<(), Error> {
    let leads_out = || wrong("it leads beyond its end");
    let offset = |unit: u32| (unit as usize >> 10) << ((unit & (1 << 9)) >> 6);
    let root = *units.first().ok_or_else(|| wrong("it has no root"))?;
    let mut seen = vec![false; units.len()];
    let mut waiting = vec![offset(root)];
    while let Some(base) = waiting.pop() {
        // Any byte may follow.
        if base | 0xFF >= units.len() {
            return Err(leads_out());
        }
        for byte in 1..=255usize {
            let place = base ^ byte;
            let unit = units[place];
            // The label of a unit that is no child of this one is another byte, or a mark.
            if unit & (1 << 31 | 0xFF) != byte as u32 || std::mem::replace(&mut seen[place], true) {
                continue;
            }
            let next = place ^ offset(unit);
            if unit >> 8 & 1 == 1 {
                let leaf = *units.get(next).ok_or_else(leads_out)?;
                let start = (leaf & !(1 << 31)) as usize;
                let text = texts.get(start..).ok_or_else(leads_out)?;
                if text.bytes().take(LONGEST + 1).take_while(|b| *b != 0).count() > LONGEST {
                    return Err(wrong("a character becomes a very long text"));
                }
            }
            waiting.push(next);
        }
    }
    Ok(())
}

/// The bytes of standard base64.
fn decode(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| {
        Some(u32::from(match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        }))
    };
    let body = text.trim_end_matches('=').as_bytes();
    let mut bytes = Vec::with_capacity(body.len() / 4 * 3 + 3);
    for four in body.chunks(4) {
        let mut bits = 0;
        for (i, byte) in four.iter().enumerate() {
            bits |= digit(*byte)? << (18 - 6 * i);
        }
        let whole = four.len() * 3 / 4;
        bytes.extend_from_slice(&bits.to_be_bytes()[1..=whole]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trie in which the letter `a` becomes the text at a place.
    fn table(text_at: u32, text: &str) -> Vec<u8> {
        let mut units = vec![0u32; 512];
        // The root's children are from 256 on, and so is the leaf of `a`.
        units[0] = 256 << 10;
        units[256 ^ 0x61] = (((256 ^ 0x61) ^ 0x100) << 10) | 1 << 8 | 0x61;
        units[0x100] = text_at | 1 << 31;
        let mut bytes = (units.len() as u32 * 4).to_le_bytes().to_vec();
        bytes.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
        bytes.extend_from_slice(text.as_bytes());
        bytes
    }

    fn encode(bytes: &[u8]) -> String {
        const DIGITS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        for three in bytes.chunks(3) {
            let bits = three.iter().fold(0u32, |bits, b| bits << 8 | u32::from(*b));
            let bits = bits << (8 * (3 - three.len()));
            for i in 0..=three.len() {
                text.push(char::from(DIGITS[(bits >> (18 - 6 * i) & 63) as usize]));
            }
        }
        text
    }

    #[test]
    fn base64_is_read_as_it_was_written() {
        for n in 0..50 {
            let bytes: Vec<u8> = (0..n).map(|i| (i * 37 + n) as u8).collect();
            assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
        assert_eq!(decode("QQ=="), Some(b"A".to_vec()));
        assert_eq!(decode("Q Q"), None);
    }

    #[test]
    fn tables_that_lead_nowhere_are_refused() {
        let says = |bytes: &[u8]| match check(&encode(bytes)) {
            Ok(()) => "fine".to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(says(&table(0, "A\0")), "fine");
        assert!(says(&table(3, "A\0")).contains("beyond its end"));
        assert!(says(&table(1, "é\0")).contains("beyond its end"));
        assert!(says(&table(0, &"x".repeat(1000))).contains("very long"));
        assert!(says(&table(0, "A\0")[..100]).contains("cut short"));
        assert!(says(&[]).contains("empty"));
        assert!(says(&[0; 4]).contains("no root"));
        // Every change of a byte is refused or leads nowhere that the crate could fall off.
        let sound = table(0, "A\0");
        for place in 4..sound.len() {
            for bit in 0..8 {
                let mut changed = sound.clone();
                changed[place] ^= 1 << bit;
                if check(&encode(&changed)).is_ok() {
                    let json = format!(
                        r#"{{"type": "Precompiled", "precompiled_charsmap": "{}"}}"#,
                        encode(&changed)
                    );
                    let normalizer: tokenizers::NormalizerWrapper =
                        serde_json::from_str(&json).unwrap();
                    for text in ["abc a\u{301} ÿ", "é"] {
                        let mut text = tokenizers::NormalizedString::from(text);
                        tokenizers::Normalizer::normalize(&normalizer, &mut text).unwrap();
                    }
                }
            }
        }
    }
}
