//! Text embeddings: text to vectors, with the weights of a model in a file.
//!
//! * [`Encoder`]: opens a model and embeds texts.
//! * [`Reranker`]: opens a model that scores pairs of texts.
//! * [`ModelId`]: which model it was.
//! * [`tokenizer`]: text to tokens, as the model's own tokenizer does it.
//! * `architectures`: tokens to vectors, one file and one line in a table an architecture.
//! * `head`: one vector of the vectors of a text's tokens.
//! * `layers`: what models are made of: linear layers, attention, normalization.
//! * `kernels`: the arithmetic, for each kind of processor.
//! * `schedule`, `team`: texts of many callers share batches and threads.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod architectures;
mod encoder;
mod head;
mod id;
mod kernels;
mod layers;
mod pool;
mod rerank;
mod schedule;
mod settings;
mod support;
mod team;
mod tensors;
pub mod tokenizer;

pub use architectures::{Aim, ChosenWeights, Rehearsed};
pub use encoder::{Encoder, PromptChoice, Purpose};
pub use id::ModelId;
pub use rerank::{Ranked, Reranker};
pub use settings::{Assumption, Pooling, Precision, Settings};
pub use support::{Lack, lacks, pair_scores};
pub use tokenizer::Tokenizer;
pub use weighbridge_format::Error;
pub use weighbridge_format::spec::Prompt;

/// Whether the processor has instructions that multiply bf16. Where it does not,
/// [`Precision::Bf16`] computes in f32.
pub fn has_bf16() -> bool {
    weighbridge_codec::simd::Level::best().has_bf16_products()
}
