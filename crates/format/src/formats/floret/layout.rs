//! The first line.

use crate::model::{SubwordKind, Subwords};
use crate::wire::without_mark;

/// Everything but the rows.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub subwords: Subwords,
    pub dim: u64,
    /// Bytes of the line with its end.
    pub length: usize,
}

/// No header of six numbers and two brackets is longer.
const LONGEST: usize = 1024;

impl Header {
    /// `buckets dim minn maxn hashes seed bow eow`.
    pub(super) fn parse(bytes: &[u8]) -> Option<Header> {
        let text = without_mark(bytes);
        let end = text.iter().take(LONGEST).position(|b| *b == b'\n')?;
        let line = std::str::from_utf8(&text[..end]).ok()?;
        let fields = line.trim_end_matches('\r').split(' ').filter(|field| !field.is_empty());
        let fields: Vec<&str> = fields.collect();
        let [buckets, dim, min_n, max_n, hashes, seed, bow, eow] = *fields.as_slice() else {
            return None;
        };
        let kind = SubwordKind::Floret {
            buckets: buckets.parse().ok()?,
            hashes: hashes.parse().ok()?,
            seed: seed.parse().ok()?,
            bow: bow.to_owned(),
            eow: eow.to_owned(),
        };
        let subwords = Subwords::new(min_n.parse().ok()?, max_n.parse().ok()?, kind);
        Some(Header {
            subwords,
            dim: dim.parse().ok()?,
            length: bytes.len() - text.len() + end + 1,
        })
    }
}
