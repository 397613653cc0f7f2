//! What a model needs that the encoder does not have, by what its description says.

use crate::architectures::Architecture;
use crate::settings::supported_pooling;
use weighbridge_format::spec::{Activation, Misstatement, ModelSpec, Positions};
use weighbridge_format::{Advice, Error};

/// Modules of sentence-transformers that are understood.
const MODULES: [&str; 3] = ["Transformer", "Pooling", "Normalize"];
/// Parts of tokenizers that are understood, beside BERT's own in files that name none.
const NORMALIZERS: [&str; 2] = ["BertNormalizer", "none"];
const PRE_TOKENIZERS: [&str; 1] = ["BertPreTokenizer"];
const POST_PROCESSORS: [&str; 3] = ["TemplateProcessing", "BertProcessing", "RobertaProcessing"];

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
    }
    let mut add = |name: String, message: String, advice: &'static str| {
        list.push(Lack { name, message, advice: Advice::from(advice) });
    };
    if spec.position_scheme.value != Positions::Absolute {
        let scheme = spec.position_scheme.value.name();
        let message = format!("position embeddings of type \"{scheme}\" are not known");
        add(format!("position embeddings {scheme}"), message, "only absolute ones, as in BERT");
    }
    if let Activation::Other(name) = &spec.activation.value {
        let message = format!("the activation \"{name}\" is not known");
        add(format!("activation {name}"), message, "gelu, gelu_new and relu are");
    }
    for module in spec.modules.iter().filter(|m| !MODULES.contains(&m.kind.as_str())) {
        add(
            format!("module {}", module.kind),
            format!(
                "modules.json names a module {} after the model, which is not supported",
                module.kind
            ),
            "Transformer, Pooling and Normalize are",
        );
    }
    if let Some(tokenizer) = &spec.tokenizer {
        let kind = tokenizer.kind.value.as_str();
        if !["", "WordPiece"].contains(&kind) {
            let message = format!("a {kind} tokenizer is not supported");
            add(format!("tokenizer {kind}"), message, "WordPiece, as in BERT, is");
        }
        for (part, said, known, advice) in [
            ("normalizer", &tokenizer.normalizer, &NORMALIZERS[..], "BertNormalizer is"),
            ("pre-tokenizer", &tokenizer.pre_tokenizer, &PRE_TOKENIZERS, "BertPreTokenizer is"),
            (
                "post-processor",
                &tokenizer.post_processor,
                &POST_PROCESSORS,
                "TemplateProcessing, BertProcessing and RobertaProcessing are",
            ),
        ] {
            let kind = said.as_ref().map(|fact| fact.value.as_str());
            match kind.filter(|kind| !known.contains(kind)) {
                None => {}
                Some("none") => {
                    let message = format!("the tokenizer has no {part}, which is not supported");
                    add(format!("{part} none"), message, advice);
                }
                Some(kind) => {
                    let message = format!("the {part} {kind} is not known");
                    add(format!("{part} {kind}"), message, advice);
                }
            }
        }
    }
    if let Err(error) = supported_pooling(&spec.pooling.value) {
        list.push(error);
    }
    list
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
