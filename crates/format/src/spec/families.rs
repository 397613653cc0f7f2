//! How models of known families make one vector of a text, where no file of theirs says it: copies
//! often lack the files that would.

use super::{Fact, ModelSpec, Pooling, SaidBy};

/// A family, known by how the names of its models begin.
struct Family {
    /// Its name.
    name: &'static str,
    /// How names begin, in small letters.
    start: &'static str,
    /// What they have in them behind that; any do where it is empty.
    part: &'static str,
    /// The pooling; none where models of such names give no vectors.
    pooling: Option<Pooling>,
    /// Whether vectors have unit length, where that is published.
    normalize: Option<bool>,
}

const fn family(
    name: &'static str,
    start: &'static str,
    part: &'static str,
    pooling: Pooling,
    normalize: Option<bool>,
) -> Family {
    Family { name, start, part, pooling: Some(pooling), normalize }
}

/// As their model cards and the `1_Pooling` of the originals say. The first that fits counts.
static FAMILIES: [Family; 25] = [
    Family { name: "bge", start: "bge-reranker", part: "", pooling: None, normalize: None },
    family("bge", "bge-multilingual-gemma2", "", Pooling::LastToken, Some(true)),
    family("bge", "bge-en-icl", "", Pooling::LastToken, Some(true)),
    family("bge", "bge-", "", Pooling::Cls, Some(true)),
    family("snowflake-arctic-embed", "snowflake-arctic-embed", "", Pooling::Cls, Some(true)),
    family("mxbai-embed", "mxbai-embed-xsmall", "", Pooling::Mean, None),
    family("mxbai-embed", "mxbai-embed", "", Pooling::Cls, None),
    family("e5", "e5-mistral", "", Pooling::LastToken, Some(true)),
    family("e5", "e5-", "", Pooling::Mean, Some(true)),
    family("e5", "multilingual-e5-", "", Pooling::Mean, Some(true)),
    family("gte", "gte-qwen", "", Pooling::LastToken, Some(true)),
    family("gte", "gte-multilingual", "", Pooling::Cls, Some(true)),
    family("gte", "gte-modernbert", "", Pooling::Cls, None),
    family("gte", "gte-", "-en-v1.5", Pooling::Cls, None),
    family("gte", "gte-", "", Pooling::Mean, Some(true)),
    family("all-MiniLM", "all-minilm-", "", Pooling::Mean, Some(true)),
    family("all-mpnet", "all-mpnet-", "", Pooling::Mean, Some(true)),
    family("paraphrase", "paraphrase-", "", Pooling::Mean, Some(false)),
    family("multi-qa", "multi-qa-", "-dot-", Pooling::Cls, Some(false)),
    family("multi-qa", "multi-qa-", "-cos-", Pooling::Mean, Some(true)),
    family("jina-embeddings", "jina-embeddings-v2", "", Pooling::Mean, None),
    family("jina-embeddings", "jina-embeddings-v3", "", Pooling::Mean, None),
    family("nomic-embed", "nomic-embed-text", "", Pooling::Mean, Some(true)),
    family("granite-embedding", "granite-embedding-", "", Pooling::Cls, None),
    family("qwen3-embedding", "qwen3-embedding", "", Pooling::LastToken, Some(true)),
];

/// Models that were trained so that a vector's first values are one by themselves: how their names begin, how
/// many values, and whether a layer normalization comes before cutting. As their model cards say.
static SHORTENED: [(&str, &[u64], bool); 5] = [
    ("nomic-embed-text-v1.5", &[64, 128, 256, 512], true),
    ("modernbert-embed-base", &[256], false),
    ("snowflake-arctic-embed-m-v1.5", &[256], false),
    ("snowflake-arctic-embed-m-v2", &[256], false),
    ("snowflake-arctic-embed-l-v2", &[256], false),
];

/// Sets what the family says and the model does not, by the first of these names that is known.
pub(super) fn add(spec: &mut ModelSpec, names: &[&str]) {
    let shortened = |name: &&str| {
        let fits = |name: &str| SHORTENED.iter().find(|(start, ..)| name.starts_with(start));
        first_of(name, fits)
    };
    if let Some((start, values, norm)) = names.iter().find_map(shortened)
        && spec.matryoshka.is_empty()
    {
        spec.matryoshka = values.to_vec();
        let said_by = SaidBy::Family((*start).to_owned());
        if *norm && spec.matryoshka_norm.is_assumed() {
            spec.matryoshka_norm = Fact { value: true, said_by };
        }
    }
    let Some(family) = names.iter().find_map(|name| find(name)) else { return };
    let said_by = || SaidBy::Family(family.name.to_owned());
    if let Some(pooling) = family.pooling.clone().filter(|_| spec.pooling.is_assumed()) {
        spec.pooling = Fact { value: vec![pooling], said_by: said_by() };
    }
    if let Some(value) = family.normalize.filter(|_| spec.normalize.is_assumed()) {
        spec.normalize = Fact { value, said_by: said_by() };
    }
}

/// The family of a name: of the hub (`org/name`), of a cache (`models--org--name`, `org_name`), or
/// of a folder.
fn find(name: &str) -> Option<&'static Family> {
    first_of(name, |name| {
        FAMILIES.iter().find(|family| {
            name.strip_prefix(family.start).is_some_and(|rest| rest.contains(family.part))
        })
    })
}

/// What fits a name, or what is behind an organisation in it.
fn first_of<T>(name: &str, fits: impl Fn(&str) -> Option<T>) -> Option<T> {
    let last = last_part(name).to_ascii_lowercase();
    let last = last.rsplit("--").next().unwrap_or(&last);
    let behind_org = last.split_once('_').map(|(_, rest)| rest);
    fits(last).or_else(|| fits(behind_org?))
}

/// A name without the organisation or the folders before it.
pub(super) fn last_part(name: &str) -> &str {
    name.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_families() {
        let pooling = |name: &str| find(name).and_then(|family| family.pooling.clone());
        for name in [
            "BAAI/bge-small-en-v1.5",
            "bge-m3",
            "/root/.cache/torch/sentence_transformers/BAAI_bge-base-en/",
            "BAAI--bge-large-zh",
            "C:\\models\\bge-base-en",
            "Snowflake/snowflake-arctic-embed-m-v1.5",
            "mixedbread-ai/mxbai-embed-large-v1",
            "Alibaba-NLP/gte-base-en-v1.5",
            "multi-qa-mpnet-base-dot-v1",
        ] {
            assert_eq!(pooling(name), Some(Pooling::Cls), "{name}");
        }
        for name in [
            "intfloat/multilingual-e5-small",
            "e5-base-v2",
            "thenlper/gte-small",
            "sentence-transformers/all-MiniLM-L6-v2",
            "jinaai/jina-embeddings-v2-base-en",
            "mixedbread-ai/mxbai-embed-xsmall-v1",
        ] {
            assert_eq!(pooling(name), Some(Pooling::Mean), "{name}");
        }
        assert_eq!(pooling("intfloat/e5-mistral-7b-instruct"), Some(Pooling::LastToken));
        assert!(find("BAAI/bge-reranker-base").is_some_and(|family| family.pooling.is_none()));
        for name in ["", "/", "bert-base-uncased", "my-bge-model", "gte", "tiny"] {
            assert!(find(name).is_none(), "{name}");
        }
    }
}
