//! Carrying out a plan: bytes to a writer, and files replaced atomically.

mod atomic;
mod blocks;
mod execute;
mod folder;

pub use atomic::{FileSystem, OutFile, RealFiles, write};
pub use execute::{MemoryFile, Progress, to_memory};
