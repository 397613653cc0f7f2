//! What a model needs that the encoder does not have, by what its description says.

use crate::architectures::Architecture;
use crate::head::{DENSE, FoundClassifier};
use crate::settings::supported_pooling;
use weighbridge_format::spec::tokenizer::Step;
use weighbridge_format::spec::{Activation, Misstatement, ModelSpec, Positions, RopeScaling};
use weighbridge_format::{Advice, Container, Error};

/// Modules of sentence-transformers that are understood.
const MODULES: [&str; 5] = ["Transformer", "StaticEmbedding", "Pooling", DENSE, "Normalize"];
/// Models of tokenizers that are understood.
const TOKENIZERS: [&str; if LIBRARY { 4 } else { 2 }] = known(["", "WordPiece", "Unigram", "BPE"]);
/// Steps of tokenizers that are understood; without the crate for the others, BERT's alone.
const NORMALIZERS: [&str; if LIBRARY { 13 } else { 1 }] = known([
    "BertNormalizer",
    "Precompiled",
    "Strip",
    "Replace",
    "Prepend",
    "Lowercase",
    "StripAccents",
    "Nmt",
    "NFC",
    "NFD",
    "NFKC",
    "NFKD",
    "none",
]);
const PRE_TOKENIZERS: [&str; if LIBRARY { 8 } else { 1 }] = known([
    "BertPreTokenizer",
    "Metaspace",
    "WhitespaceSplit",
    "Whitespace",
    "ByteLevel",
    "Digits",
    "Punctuation",
    "Split",
]);
const POST_PROCESSORS: [&str; 3] = ["TemplateProcessing", "BertProcessing", "RobertaProcessing"];
/// Whether tokenizers of other kinds than BERT's can be run.
const LIBRARY: bool = cfg!(feature = "tokenizers");

/// The regular expressions of the families of models that are known. One of a stranger could take any
/// time.
const EXPRESSIONS: [&str; 6] = [
    // XLM-RoBERTa: runs of spaces.
    " {2,}",
    r"\s+",
    // GPT-2.
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    // GPT-4, Llama 3 and Qwen.
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"\p{N}{1,3}",
];

/// The first of some names, as many as there is room for.
const fn known<const N: usize, const M: usize>(names: [&'static str; N]) -> [&'static str; M] {
    let (mut list, mut i) = ([""; M], 0);
    while i < M {
        list[i] = names[i];
        i += 1;
    }
    list
}

/// Steps of a tokenizer that the encoder does not have.
pub(crate) fn unknown_steps(steps: &[Step]) -> Vec<Lack> {
    let mut list = Vec::new();
    for step in steps {
        let (known, advice) = match step.place {
            Step::NORMALIZER => (&NORMALIZERS[..], "BertNormalizer, Precompiled and others are"),
            _ => (&PRE_TOKENIZERS[..], "BertPreTokenizer, Metaspace and ByteLevel are"),
        };
        let place = step.place;
        if !known.contains(&step.kind.as_str()) {
            let (name, kind) = (format!("{place} {}", step.kind), &step.kind);
            let message = format!("the {place} {kind} is not known");
            list.push(Lack { name, message, advice: Advice::from(advice) });
        } else if let Some(expression) = step.expression.as_deref()
            && !EXPRESSIONS.contains(&expression)
        {
            let name = format!("regular expression {expression:?}");
            let message = format!("the {place} has the {name}, which is not known");
            let advice = Advice::from("only those of known families are used");
            list.push(Lack { name, message, advice });
        }
    }
    list
}

/// Something that a model needs and the encoder does not have.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Lack {
    /// Its name: `activation silu`.
    pub name: String,
    /// What is the matter, in a sentence.
    pub message: String,
    /// What there is instead.
    pub advice: Advice,
}

/// All that a model needs and the encoder does not have. If it is empty, the encoder can use the
/// model, as far as its description tells.
pub fn lacks(spec: &ModelSpec) -> Vec<Lack> {
    let mut list = Vec::new();
    let class = spec.class.as_deref().filter(|class| !class.is_empty());
    let kind = spec.architecture.as_ref().map(|fact| fact.value.as_str());
    let architecture = Architecture::of(spec);
    if architecture.is_none() || (kind.is_none() && class.is_some()) {
        let shown = match (kind, class) {
            (Some(kind), Some(class)) => format!("{kind:?} ({class})"),
            (kind, class) => format!("{:?}", kind.or(class).unwrap_or_default()),
        };
        let known: Vec<_> = Architecture::model_types().map(|id| format!("{id:?}")).collect();
        let advice = format!("supported: {}", known.join(", "));
        list.push(Lack {
            name: format!("architecture {}", kind.or(class).unwrap_or_default()),
            message: format!("the architecture {shown} is not supported"),
            advice: Advice::from(advice),
        });
        if let Some(code) = &spec.remote_code {
            list.push(Lack {
                name: format!("remote code {code}"),
                message: format!("the model needs remote code, {code}"),
                advice: Advice::from("code that comes with a model is never run"),
            });
        }
    }
    let mut add = |name: String, message: String, advice: &'static str| {
        list.push(Lack { name, message, advice: Advice::from(advice) });
    };
    let scheme = &spec.position_scheme.value;
    if architecture.is_some_and(|known| known.positions() != scheme) {
        let scheme = scheme.name();
        let message = format!("position embeddings of type \"{scheme}\" are not known");
        add(format!("position embeddings {scheme}"), message, "only those that such models have");
    }
    if architecture.is_some_and(|known| *known.positions() == Positions::Rotary) {
        for (is_said, key) in [
            (spec.rope_theta.is_some(), "rope_theta"),
            (spec.positions.is_some(), "max_position_embeddings"),
            (
                spec.local_layers.value.is_empty() || spec.local_attention.is_some(),
                "local_attention",
            ),
        ] {
            // What is said and makes no sense is an error of its own.
            if !is_said && spec.misstatements.is_empty() {
                let message = format!("nothing says the {key} of the model");
                add(format!("setting {key}"), message, "config.json would");
            }
        }
    }
    if let RopeScaling::Other(name) = &spec.rope_scaling.value {
        let message = format!("rotary positions that are stretched by \"{name}\" are not known");
        add(format!("rope scaling {name}"), message, "default, linear and ntk are");
    }
    for Misstatement { field, expected, found } in &spec.unusual {
        let key = field.rsplit(' ').next().unwrap_or(field);
        let message = format!("{field} is {found}, which is not supported");
        let advice = Advice::from(format!("{expected} is"));
        list.push(Lack { name: format!("setting {key} {found}"), message, advice });
    }
    let mut add = |name: String, message: String, advice: &'static str| {
        list.push(Lack { name, message, advice: Advice::from(advice) });
    };
    if let Activation::Other(name) = &spec.activation.value {
        let message = format!("the activation \"{name}\" is not known");
        add(format!("activation {name}"), message, "gelu, gelu_new, relu and silu are");
    }
    for module in spec.modules.iter().filter(|m| !MODULES.contains(&m.kind.as_str())) {
        add(
            format!("module {}", module.kind),
            format!(
                "modules.json names a module {} after the model, which is not supported",
                module.kind
            ),
            "Transformer, StaticEmbedding, Pooling, Dense and Normalize are",
        );
    }
    if let Some(tokenizer) = &spec.tokenizer {
        let kind = tokenizer.kind.value.as_str();
        if !TOKENIZERS.contains(&kind) {
            let message = format!("a {kind} tokenizer is not supported");
            add(format!("tokenizer {kind}"), message, "WordPiece, Unigram and BPE are");
        }
        let said = tokenizer.post_processor.as_ref().map(|fact| fact.value.as_str());
        // Nothing is put around the texts of static models.
        let is_framed = !architecture.is_some_and(Architecture::is_static);
        if let Some(kind) = said.filter(|kind| is_framed && !POST_PROCESSORS.contains(kind)) {
            let message = match kind {
                "none" => "the tokenizer has no post-processor, which is not supported".to_owned(),
                kind => format!("the post-processor {kind} is not known"),
            };
            let advice = "TemplateProcessing, BertProcessing and RobertaProcessing are";
            add(format!("post-processor {kind}"), message, advice);
        }
        // BERT's tokenizer without a word about how texts are taken apart is another one.
        let splitter = tokenizer.pre_tokenizer.as_ref().map(|fact| fact.value.as_str());
        if (kind, splitter) == ("WordPiece", Some("none")) {
            let message = "the tokenizer has no pre-tokenizer, which is not supported";
            add("pre-tokenizer none".to_owned(), message.to_owned(), "BertPreTokenizer is");
        }
        list.extend(unknown_steps(&tokenizer.steps));
    }
    if let Err(error) = supported_pooling(&spec.pooling.value) {
        list.push(error);
    }
    list
}

/// How many scores a model gives to a pair of texts by the tensors that it has; none where it has no
/// classifier behind its layers.
pub fn pair_scores(spec: &ModelSpec, container: &Container) -> Option<u64> {
    let prefix = Architecture::of(spec)?.tensors(container).prefix();
    FoundClassifier::of(container, prefix).map(|found| found.labels())
}

impl Lack {
    /// The error of a model that needs it.
    pub fn into_error(self) -> Error {
        Error::unsupported(self.name, self.message, self.advice)
    }
}

/// The architecture of a model. Models that would give wrong vectors are refused.
pub(crate) fn check(
    spec: &ModelSpec,
    pooling_is_set: bool,
) -> Result<&'static Architecture, Error> {
    let lack =
        lacks(spec).into_iter().find(|l| !(pooling_is_set && l.name.starts_with("pooling ")));
    if let Some(lack) = lack {
        return Err(lack.into_error());
    }
    if let Some(wrong) = spec.misstatements.iter().chain(&spec.unreadable).next().cloned() {
        return Err(misstated(wrong));
    }
    Architecture::of(spec).ok_or_else(|| Error::refused("the architecture is not known", ""))
}

/// The error of a setting that makes no sense. What was found is JSON with its own quotes, or a text.
pub(crate) fn misstated(wrong: Misstatement) -> Error {
    let Misstatement { field, expected, found } = wrong;
    Error::refused(format!("{field} is {found}"), format!("{expected} was expected"))
}
