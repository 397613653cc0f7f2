//! Text to vectors with the weights of a file.

pub mod tokenizer;
