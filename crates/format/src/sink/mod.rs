//! Carrying out a plan: bytes to a writer, and files replaced atomically.

mod atomic;
mod blocks;
mod execute;
mod folder;
mod output;

pub use atomic::{FileSystem, OutFile, RealFiles, write};
pub use execute::{MemoryFile, to_memory};
pub use output::Output;
