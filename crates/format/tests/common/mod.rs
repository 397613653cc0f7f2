//! What the tests of formats share: from a file to a container, and to a file.

#![allow(dead_code, reason = "each test program uses some of it")]

#[cfg(feature = "fs")]
#[allow(unused_imports, reason = "each test program uses some of it")]
pub(crate) use files::{assert_clean, findings, open, write};
use weighbridge_format::{Format, Formats};

/// A format that comes with the library.
pub(crate) fn format_of(id: &str) -> &'static Format {
    Formats::builtin().find(id).unwrap()
}

#[cfg(feature = "fs")]
mod files {
    use std::path::Path;
    use weighbridge_format::sink::{self, RealFiles};
    use weighbridge_format::{
        Container, Error, Finding, Findings, Formats, Input, Options, Plan, Progress,
    };

    /// The content of a file or a model directory.
    pub(crate) fn open(path: impl AsRef<Path>) -> Result<Container, Error> {
        Formats::builtin().open(&Input::open(path.as_ref())?, &Options::default())
    }

    /// The rules of its format that a file breaks.
    pub(crate) fn findings(path: &Path) -> Findings {
        let input = Input::open(path).unwrap();
        Formats::builtin().check(&input, &Options::default(), false).unwrap().1
    }

    /// A file breaks no rule, not even one that only warns.
    pub(crate) fn assert_clean(path: &Path) {
        let findings = findings(path);
        let list: &[Finding] = findings.list();
        assert!(list.is_empty(), "{}: {list:?}", path.display());
    }

    /// Writes a plan, whatever is lost and whatever was there.
    pub(crate) fn write(plan: &Plan, path: &Path) {
        sink::write(plan, path, &RealFiles, &mut Progress::none()).unwrap();
    }
}
