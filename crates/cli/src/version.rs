//! What `--version` says: which program this is, and what it found.

use std::sync::LazyLock;
use weighbridge::codec::simd::Level;

/// The version, the commit it was made from, for which machine, and what this one has.
pub(crate) fn long() -> &'static str {
    static LONG: LazyLock<String> = LazyLock::new(|| {
        let commit = match env!("WEIGHBRIDGE_COMMIT") {
            "" => String::new(),
            commit => format!(" (commit {commit})"),
        };
        format!(
            "{}{commit}\ntarget: {}\ninstructions: {}",
            env!("CARGO_PKG_VERSION"),
            env!("WEIGHBRIDGE_TARGET"),
            instructions()
        )
    });
    &LONG
}

/// The sets of instructions that kernels are written for and this processor has.
fn instructions() -> String {
    let levels = Level::available();
    let of_processor = |l: &&Level| ![Level::PLAIN, Level::PLAIN_FUSED].contains(l);
    let found: Vec<_> = levels.iter().filter(of_processor).map(ToString::to_string).collect();
    if found.is_empty() { "plain".to_owned() } else { found.join(" ").to_lowercase() }
}
