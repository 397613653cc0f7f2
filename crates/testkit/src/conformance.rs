//! Real files with known content, which are not part of the repository.

use std::path::PathBuf;

/// A folder of conformance files, by default in `../shared/conformance` beside the repository.
/// Where it is absent the caller skips; that is said on standard error.
pub fn conformance(format: &str) -> Option<PathBuf> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/conformance");
    let root =
        std::env::var_os("WEIGHBRIDGE_CONFORMANCE").map_or_else(|| default.into(), PathBuf::from);
    let folder = root.join(format);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("SKIPPED: no conformance files at {}", folder.display());
    None
}
