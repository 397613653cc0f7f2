//! What is inside a container, as JSON.

use crate::stats::stats;
use serde_json::{Map, Value as Json, json};
use weighbridge_format::model::scalar_json;
use weighbridge_format::wire::What;
use weighbridge_format::{Container, Tensor};

/// How much a summary tells.
#[derive(Clone, Debug, Default)]
pub struct Detail {
    /// Glob of the tensors to list.
    pub tensors: Option<String>,
    pub stats: bool,
    pub values: bool,
    pub vocabulary: bool,
    pub bytes: bool,
}

impl Detail {
    /// The tensors that are to be listed.
    pub fn chosen<'a>(&'a self, container: &'a Container) -> impl Iterator<Item = &'a Tensor> {
        let glob = self.tensors.as_ref().and_then(|g| glob::Pattern::new(g).ok());
        container.tensors.iter().filter(move |t| glob.as_ref().is_none_or(|g| g.matches(&t.name)))
    }
}

/// The object that `inspect --json` prints. Its shape is documented in docs/json.md.
pub fn summary(container: &Container, detail: &Detail) -> Json {
    let metadata: Map<_, _> =
        container.metadata.iter().map(|(k, v)| (k.clone(), v.to_json())).collect();
    let sizevars: Map<_, _> =
        container.sizevars.iter().map(|(k, v)| (k.clone(), (*v).into())).collect();
    let tensors: Vec<_> = detail.chosen(container).map(|t| tensor_json(t, detail)).collect();
    let vocabulary = container.vocabulary.as_ref().map(|v| {
        let special: Map<_, _> =
            v.special.iter().map(|(n, id)| (n.clone(), (*id).into())).collect();
        let mut object = json!({"size": v.len(), "special": special});
        if detail.vocabulary {
            object["tokens"] = v.tokens().collect();
        }
        object
    });
    let attachments: Vec<_> = container
        .attachments
        .iter()
        .map(|a| json!({"name": a.name, "bytes": a.data.len()}))
        .collect();
    let rows = container
        .rows()
        .map(|r| json!({"count": r.count, "dim": r.dim, "records": container.records.is_some()}));
    let mut object = json!({
        "format": container.format,
        "layout": container.layout,
        "size": container.size,
        "metadata": metadata,
        "sizevars": sizevars,
        "tensors": tensors,
        "vocabulary": vocabulary,
        "attachments": attachments,
        "rows": rows,
    });
    if detail.bytes {
        let regions = container.regions.list().iter().map(|r| {
            json!({"start": r.span.start, "end": r.span.end, "what": describe_region(container, r.what)})
        });
        object["regions"] = regions.collect();
    }
    object
}

fn tensor_json(tensor: &Tensor, detail: &Detail) -> Json {
    let mut object = json!({
        "name": tensor.name,
        "encoding": tensor.encoding.name(),
        "shape": tensor.shape,
        "offset": tensor.view().map(|v| v.span().start),
        "bytes": tensor.view().map(|v| v.len()),
    });
    if detail.stats {
        object["stats"] = json!(stats(tensor));
    }
    if detail.values && tensor.view().is_some() {
        let count = tensor.count();
        let some = count.min(5);
        let take = |from: u64| -> Json {
            (from..from + some).filter_map(|i| tensor.scalar(i)).map(scalar_json).collect()
        };
        object["first"] = take(0);
        object["last"] = take(count - some);
    }
    object
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
