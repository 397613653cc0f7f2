//! The native half of the npm package: rows that are searched, files, texts, as thin as they can be.
//! What promises, typed arrays and workers look like is TypeScript, in web/src; what other bindings
//! need too is the library.
//!
//! Two modules are made of it: with the feature `files` everything but the rows, and without it the rows
//! alone, so that a page that only searches has little to load.

#[cfg(feature = "files")]
mod container;
#[cfg(feature = "files")]
mod encoder;
#[cfg(feature = "files")]
mod error;
#[cfg(not(feature = "files"))]
mod rows;
#[cfg(feature = "files")]
mod source;
