//! What the hub remembers of subwords.

use super::unpack::Bad;
use crate::model::{Ngrams, SubwordKind, Subwords};
use crate::source::Bytes;
use crate::source::View;
use crate::wire::to_len;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Serialize, Deserialize)]
pub(super) struct HubSubwords {
    min_n: u32,
    max_n: u32,
    #[serde(flatten)]
    kind: HubKind,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum HubKind {
    Buckets {
        exponent: u32,
    },
    FastText {
        buckets: u32,
    },
    /// The tensor that holds the n-grams, each behind its length and before its row.
    Explicit {
        count: u64,
        entries: String,
    },
    Floret {
        buckets: u64,
        hashes: u32,
        seed: u32,
        bow: String,
        eow: String,
    },
}

/// `carry` stores bytes as a further tensor and gives its name.
pub(super) fn hub_subwords(
    subwords: &Subwords,
    carry: &mut dyn FnMut(&str, View) -> String,
) -> HubSubwords {
    let kind = match &subwords.kind {
        SubwordKind::Buckets { exponent } => HubKind::Buckets { exponent: *exponent },
        SubwordKind::FastText { buckets } => HubKind::FastText { buckets: *buckets },
        SubwordKind::Explicit(ngrams) => HubKind::Explicit {
            count: ngrams.len() as u64,
            entries: carry("ngrams", ngrams.entries().clone().into()),
        },
        SubwordKind::Floret { buckets, hashes, seed, bow, eow } => HubKind::Floret {
            buckets: *buckets,
            hashes: *hashes,
            seed: *seed,
            bow: bow.clone(),
            eow: eow.clone(),
        },
    };
    HubSubwords { min_n: subwords.min_n, max_n: subwords.max_n, kind }
}

impl HubSubwords {
    /// With the n-grams; `carried` gives the bytes of a further tensor.
    pub(super) fn resolve(
        self,
        carried: &mut dyn FnMut(&str) -> Result<Bytes, Bad>,
    ) -> Result<Subwords, Bad> {
        let kind = match self.kind {
            HubKind::Buckets { exponent } => SubwordKind::Buckets { exponent },
            HubKind::FastText { buckets } => SubwordKind::FastText { buckets },
            HubKind::Explicit { count, entries } => {
                let bytes = carried(&entries)?;
                let bad = |e| format!("the n-grams are damaged: {e:?}");
                let (ngrams, used) = Ngrams::parse(&bytes, to_len(count)).map_err(bad)?;
                if used != bytes.len() {
                    return Err("bytes follow the last n-gram".to_owned().into());
                }
                SubwordKind::Explicit(Arc::new(ngrams))
            }
            HubKind::Floret { buckets, hashes, seed, bow, eow } => {
                SubwordKind::Floret { buckets, hashes, seed, bow, eow }
            }
        };
        let subwords = Subwords::new(self.min_n, self.max_n, kind);
        let why = subwords.fault();
        why.map_or(Ok(subwords), |why| Err(format!("subwords: {why}").into()))
    }
}
