//! What is inside a container, as JSON.

use crate::pattern::{Pattern, must_fit};
use crate::quantization::Quantization;
use crate::stats::{Stats, stats};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json, json};
use std::borrow::Cow;
use weighbridge_codec::Scalar;
use weighbridge_encoder as encoder;
use weighbridge_format::model::{Once, SubwordKind, Subwords, Value};
use weighbridge_format::spec::tokenizer::{TOKENIZER, all_tokens};
use weighbridge_format::spec::{ModelSpec, Module};
use weighbridge_format::wire::{Budget, What};
use weighbridge_format::{Container, Error, Formats, Tensor, Vocabulary};

/// How much a summary tells.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Detail {
    /// Which tensors to list, by name; all when there is none.
    pub tensors: Option<Pattern>,
    /// With statistics of the values.
    pub stats: bool,
    /// With the first and last values.
    pub values: bool,
    /// With all tokens of the vocabulary.
    pub vocabulary: bool,
    /// With what every byte is.
    pub bytes: bool,
}

impl Detail {
    /// The names, types and shapes.
    pub fn new() -> Detail {
        Detail::default()
    }

    /// The tensors that are to be listed.
    ///
    /// # Errors
    /// [`Error::Refused`] if the pattern fits no tensor.
    pub fn chosen<'a>(
        &'a self,
        container: &'a Container,
    ) -> Result<impl Iterator<Item = &'a Tensor>, Error> {
        let pattern = self.tensors.as_ref();
        pattern.map_or(Ok(()), |pattern| must_fit(pattern, container))?;
        let fits = move |t: &&Tensor| pattern.is_none_or(|pattern| pattern.matches(&t.name));
        Ok(container.tensors.iter().filter(fits))
    }
}

/// What is inside a container. Its JSON is described in docs/json.md.
#[derive(Debug, Serialize)]
pub struct Summary<'a> {
    format: &'a str,
    layout: &'a str,
    flags: Vec<String>,
    size: u64,
    #[serde(serialize_with = "as_map")]
    metadata: &'a [(String, Value)],
    sizevars: Map<String, Json>,
    tensors: Vec<TensorSummary<'a>>,
    vocabulary: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subwords: Option<Json>,
    attachments: Vec<Json>,
    rows: Option<Json>,
    model: Option<ModelSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    regions: Option<Vec<RegionSummary>>,
}

/// The model that a container holds.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct ModelSummary {
    /// What is known of it.
    #[serde(flatten)]
    pub spec: ModelSpec,
    /// What keeps the encoder from using it, by name.
    pub lacks: Vec<String>,
    /// How many scores its classifier gives to a pair of texts; none where it has no classifier.
    pub pair_scores: Option<u64>,
}

#[derive(Debug, Serialize)]
struct TensorSummary<'a> {
    name: &'a str,
    encoding: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quantization: Option<Quantization>,
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

impl Summary<'_> {
    /// The metadata alone, as it stands in the summary.
    pub fn metadata(&self) -> impl Serialize {
        struct Metadata<'a>(&'a [(String, Value)]);
        impl Serialize for Metadata<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                as_map(&self.0, serializer)
            }
        }
        Metadata(self.metadata)
    }
}

/// The model that a container holds, if it is one.
///
/// # Errors
/// If the files in it can't be read.
pub fn model_summary(container: &Container) -> Result<Option<ModelSummary>, Error> {
    let spec = ModelSpec::of(container)?;
    if spec.architecture.is_none() {
        return Ok(None);
    }
    let mut lacks: Vec<_> = encoder::lacks(&spec).into_iter().map(|lack| lack.name).collect();
    if spec.tokenizer.is_none() {
        lacks.push("vocabulary".to_owned());
    }
    // A vocabulary by itself is used as BERT's are.
    let is_alone = !container.attachments.iter().any(|a| a.name == TOKENIZER);
    if let Some(vocabulary) = container.vocabulary.as_ref().filter(|_| is_alone) {
        let missing = encoder::Tokenizer::missing_token(vocabulary);
        lacks.extend(missing.map(|token| format!("token {token}")));
    }
    let known = spec.known_architecture();
    for (tensor, found) in known.into_iter().flat_map(|a| a.tensors_in(container)) {
        match found {
            None if tensor.required => lacks.push(format!("tensor {}", tensor.name)),
            Some(found) if !found.encoding.has_values() => {
                lacks.push(format!("a scale of tensor {}", tensor.name));
            }
            _ => {}
        }
    }
    // Formats without attachments lose the weights that stand behind the model.
    let is_lost = |module: &&Module| module.kind == "Dense" && module.path.is_empty();
    lacks.extend(spec.modules.iter().filter(is_lost).map(|_| "weights of module Dense".to_owned()));
    let wrong = spec.misstatements.iter().chain(&spec.unreadable);
    lacks.extend(wrong.map(|wrong| format!("a valid {}", wrong.field)));
    let pair_scores = encoder::pair_scores(&spec, container);
    Ok(Some(ModelSummary { spec, lacks, pair_scores }))
}

/// All tokens of a container: those of its vocabulary, or of the tokenizer.json in it, whatever kind
/// of tokenizer that describes.
///
/// # Errors
/// [`Error::Unsupported`] if the tokenizer.json has a vocabulary that can't be listed.
pub fn vocabulary(container: &Container) -> Result<Option<Cow<'_, Vocabulary>>, Error> {
    if let Some(vocabulary) = &container.vocabulary {
        return Ok(Some(Cow::Borrowed(vocabulary)));
    }
    let Some(file) = container.attachments.iter().find(|a| a.name == TOKENIZER) else {
        return Ok(None);
    };
    let tokens = all_tokens(&file.data.load()?).map_err(|wrong| {
        let message = format!("{} has {}, not {}", wrong.field, wrong.found, wrong.expected);
        Error::unsupported("vocabulary", message, "")
    })?;
    let mut vocabulary = Vocabulary::from_tokens(tokens.iter());
    vocabulary.find_special();
    Ok(Some(Cow::Owned(vocabulary)))
}

/// Everything that is to be said of a container.
///
/// # Errors
/// If values that are asked for can't be read; [`Error::Refused`] if there are no such tensors.
pub fn summary<'a>(container: &'a Container, detail: &'a Detail) -> Result<Summary<'a>, Error> {
    let listed = if detail.vocabulary { vocabulary(container)? } else { None };
    let vocabulary = listed.as_deref().or(container.vocabulary.as_ref()).map(|v| {
        let special: Map<_, _> =
            v.special.iter().map(|(n, id)| (n.clone(), (*id).into())).collect();
        let mut object = json!({"size": v.len(), "special": special});
        if detail.vocabulary {
            object["tokens"] = v.tokens().collect();
        }
        object
    });
    let attachments = container.attachments.iter();
    let (mut once, mut listed_scales) =
        (Once::new([container]), Budget::for_copies(container.size));
    let tensors = detail.chosen(container)?.map(|t| {
        let summary = tensor_summary(t, detail, &mut once)?;
        if let Some(Quantization::Scales { scales, .. }) = &summary.quantization {
            listed_scales
                .spend(4 * scales.len() as u64, "bytes of scales, in tensors that share them")?;
        }
        Ok(summary)
    });
    let regions = container.regions.list().iter().map(|r| {
        let what = describe_region(container, r.what);
        RegionSummary { start: r.span.start, end: r.span.end, what }
    });
    let info = Formats::builtin().find(container.format).map(|f| f.info());
    let summary = Summary {
        format: container.format,
        layout: &container.layout,
        flags: info.map(|info| (info.flags)(container)).unwrap_or_default(),
        size: container.size,
        metadata: &container.metadata,
        sizevars: container.sizevars.iter().map(|(k, v)| (k.clone(), (*v).into())).collect(),
        tensors: tensors.collect::<Result<_, Error>>()?,
        vocabulary,
        subwords: container.subwords.as_ref().map(subwords_summary),
        attachments: attachments.map(|a| json!({"name": a.name, "bytes": a.data.len()})).collect(),
        rows: container.rows().map(
            |r| json!({"count": r.count, "dim": r.dim, "records": container.records.is_some()}),
        ),
        model: model_summary(container)?,
        regions: detail.bytes.then(|| regions.collect()),
    };
    container.check_unchanged()?;
    Ok(summary)
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

fn tensor_summary<'a>(
    tensor: &'a Tensor,
    detail: &Detail,
    once: &mut Once<'a, Option<Stats>>,
) -> Result<TensorSummary<'a>, Error> {
    let count = tensor.count();
    let some = count.min(5);
    let values = |from: u64| -> Result<Option<Json>, Error> {
        if !(detail.values && tensor.has_data() && tensor.encoding.has_values()) {
            return Ok(None);
        }
        let shown = (from..from + some).map(|i| tensor.scalar(i));
        let shown = shown.collect::<Result<Vec<_>, Error>>()?;
        Ok(Some(shown.into_iter().flatten().map(number_json).collect()))
    };
    Ok(TensorSummary {
        name: &tensor.name,
        encoding: tensor.encoding.name(),
        quantization: Quantization::of(&tensor.encoding),
        shape: &tensor.shape,
        offset: tensor.view().map(|v| v.span().start),
        bytes: tensor.stored_len(),
        stats: match (detail.stats, tensor.encoding.has_values()) {
            (true, true) => Some(once.of([tensor], || stats(tensor))?),
            (true, false) => Some(None),
            (false, _) => None,
        },
        first: values(0)?,
        last: values(count - some)?,
    })
}

/// Pairs as the members of an object.
fn as_map<S: Serializer>(pairs: &&[(String, Value)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(key, value)| (key, value)))
}

/// A value as a JSON number. JSON has no NaN, no infinity and no complex numbers: they become texts.
fn number_json(value: Scalar) -> Json {
    match value {
        Scalar::Int(v) => v.into(),
        Scalar::UInt(v) => v.into(),
        Scalar::Float(v) if v.is_finite() => v.into(),
        Scalar::Float(v) => v.to_string().into(),
        complex @ Scalar::Complex(..) => complex.to_string().into(),
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
