//! Text embeddings: text to vectors, with the weights of a model in a file.
//!
//! * [`Encoder`]: opens a model and embeds texts.
//! * [`tokenizer`]: text to tokens, as the model's own tokenizer does it.
//! * `bert`: tokens to vectors.
//! * `kernels`: the arithmetic, for each kind of processor.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod bert;
mod encoder;
mod family;
mod kernels;
mod pool;
mod settings;
pub mod tokenizer;

pub use encoder::Encoder;
pub use settings::{Pooling, Precision, Settings, token_limit};
pub use tokenizer::Tokenizer;
pub use weighbridge_format::Error;

/// Whether the processor has instructions that multiply bf16. Where it does not,
/// [`Precision::Bf16`] computes in f32.
pub fn has_bf16() -> bool {
    weighbridge_codec::simd::Level::best().has_bf16_products()
}
