//! Carrying out a plan: bytes to a writer, and files replaced atomically.

#[cfg(feature = "threads")]
mod ahead;
#[cfg(feature = "fs")]
mod atomic;
#[cfg(feature = "fs")]
mod beside;
#[cfg(feature = "fs")]
mod blocks;
#[cfg(feature = "fs")]
mod everything;
mod execute;
#[cfg(feature = "fs")]
mod folder;
#[cfg(feature = "fs")]
mod output;
#[cfg(feature = "fs")]
mod place;

#[cfg(feature = "fs")]
pub use atomic::{FileSystem, OutFile, RealFiles, write};
#[cfg(feature = "fs")]
pub use beside::open_own;
pub use execute::{MemoryFile, to_memory};
#[cfg(feature = "fs")]
pub use output::Output;
