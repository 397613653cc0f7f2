//! What is inside a container, as JSON.

use crate::stats::{Stats, stats};
use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use std::borrow::Cow;
use weighbridge_codec::Scalar;
use weighbridge_format::model::{SubwordKind, Subwords, scalar_json};
use weighbridge_format::wire::What;
use weighbridge_format::{Container, Tensor};

/// How much a summary tells.
#[derive(Clone, Debug, Default)]
pub struct Detail {
    /// Which tensors to list, by name; all when there is none.
    pub tensors: Option<glob::Pattern>,
    pub stats: bool,
    pub values: bool,
    pub vocabulary: bool,
    pub bytes: bool,
}

impl Detail {
    /// The tensors that are to be listed.
    pub fn chosen<'a>(&'a self, container: &'a Container) -> impl Iterator<Item = &'a Tensor> {
        container
            .tensors
            .iter()
            .filter(|t| self.tensors.as_ref().is_none_or(|g| g.matches(&t.name)))
    }
}

/// The object that `inspect --json` prints. Its shape is documented in docs/json.md.
#[derive(Debug, Serialize)]
pub struct Summary<'a> {
    format: &'a str,
    layout: &'a str,
    size: u64,
    metadata: Map<String, Json>,
    sizevars: Map<String, Json>,
    tensors: Vec<TensorSummary<'a>>,
    vocabulary: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subwords: Option<Json>,
    attachments: Vec<Json>,
    rows: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    regions: Option<Vec<RegionSummary>>,
}

#[derive(Debug, Serialize)]
struct TensorSummary<'a> {
    name: &'a str,
    encoding: Cow<'static, str>,
    shape: &'a [u64],
    offset: Option<u64>,
    bytes: Option<u64>,
    /// Asked for or not; a tensor without values has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<Option<Stats>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<Json>,
}

#[derive(Debug, Serialize)]
struct RegionSummary {
    start: u64,
    end: u64,
    what: String,
}

/// Everything that is to be said of a container.
pub fn summary<'a>(container: &'a Container, detail: &'a Detail) -> Summary<'a> {
    let vocabulary = container.vocabulary.as_ref().map(|v| {
        let special: Map<_, _> =
            v.special.iter().map(|(n, id)| (n.clone(), (*id).into())).collect();
        let mut object = json!({"size": v.len(), "special": special});
        if detail.vocabulary {
            object["tokens"] = v.tokens().collect();
        }
        object
    });
    let attachments = container.attachments.iter();
    let regions = container.regions.list().iter().map(|r| {
        let what = describe_region(container, r.what);
        RegionSummary { start: r.span.start, end: r.span.end, what }
    });
    Summary {
        format: container.format,
        layout: &container.layout,
        size: container.size,
        metadata: container.metadata.iter().map(|(k, v)| (k.clone(), v.to_json())).collect(),
        sizevars: container.sizevars.iter().map(|(k, v)| (k.clone(), (*v).into())).collect(),
        tensors: detail.chosen(container).map(|t| tensor_summary(t, detail)).collect(),
        vocabulary,
        subwords: container.subwords.as_ref().map(subwords_summary),
        attachments: attachments.map(|a| json!({"name": a.name, "bytes": a.data.len()})).collect(),
        rows: container.rows().map(
            |r| json!({"count": r.count, "dim": r.dim, "records": container.records.is_some()}),
        ),
        regions: detail.bytes.then(|| regions.collect()),
    }
}

fn subwords_summary(subwords: &Subwords) -> Json {
    let mut object =
        json!({"min_n": subwords.min_n, "max_n": subwords.max_n, "rows": subwords.rows()});
    object["kind"] = match &subwords.kind {
        SubwordKind::Buckets { .. } => "buckets",
        SubwordKind::FastText { .. } => "fasttext",
        SubwordKind::Explicit(_) => "explicit",
        SubwordKind::Floret { .. } => "floret",
    }
    .into();
    match &subwords.kind {
        SubwordKind::Explicit(ngrams) => object["ngrams"] = ngrams.len().into(),
        SubwordKind::Floret { hashes, seed, bow, eow, .. } => {
            object["hashes"] = (*hashes).into();
            object["seed"] = (*seed).into();
            object["brackets"] = json!([bow, eow]);
        }
        _ => {}
    }
    object
}

fn tensor_summary<'a>(tensor: &'a Tensor, detail: &Detail) -> TensorSummary<'a> {
    let count = tensor.count();
    let some = count.min(5);
    let values = |from: u64| -> Option<Json> {
        let shown = detail.values && tensor.has_data();
        shown.then(|| {
            (from..from + some).filter_map(|i| tensor.scalar(i)).map(number_json).collect()
        })
    };
    TensorSummary {
        name: &tensor.name,
        encoding: tensor.encoding.name(),
        shape: &tensor.shape,
        offset: tensor.view().map(|v| v.span().start),
        bytes: tensor.stored_len(),
        stats: detail.stats.then(|| stats(tensor)),
        first: values(0),
        last: values(count - some),
    }
}

/// A value as a JSON number; of a complex one the real part.
fn number_json(value: Scalar) -> Json {
    match value {
        Scalar::Complex(re, _) => scalar_json(Scalar::Float(f64::from(re))),
        other => scalar_json(other),
    }
}

/// What some bytes are, in words.
pub fn describe_region(container: &Container, what: What) -> String {
    let name = |i: usize| container.tensors.get(i).map_or("?", |t| &t.name);
    match what {
        What::Structure(name) => name.to_owned(),
        What::Tensor(i) => format!("tensor {:?}", name(i)),
        What::Scales(i) => format!("scales of tensor {:?}", name(i)),
        What::Metadata(i) => format!("metadata value {i}"),
        What::Vocabulary => "vocabulary".to_owned(),
        What::Padding => "padding".to_owned(),
        What::Unknown => "nothing refers to this".to_owned(),
    }
}
