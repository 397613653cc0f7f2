//! Files beside others that describe them, under a name that several may want.

use crate::Error;
use crate::source::Source;
use std::path::Path;

/// A file beside the one that was asked for, which describes it. It has a name that all files of its
/// kind use, and where that one is taken, a name that belongs to one file alone.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Companion {
    /// The usual name, such as `meta.json`.
    pub name: &'static str,
    /// Whether the first is a description of the second.
    pub describes: fn(&Source, &Source) -> Result<bool, Error>,
}

impl Companion {
    /// A description of this name. `describes` tells whether a file of that name describes another.
    pub const fn new(
        name: &'static str,
        describes: fn(&Source, &Source) -> Result<bool, Error>,
    ) -> Companion {
        Companion { name, describes }
    }

    /// The name that belongs to one file alone: `rows.meta.json` for `rows.i8bin`.
    pub fn own_name(&self, file: &str) -> String {
        let stem = Path::new(file).file_stem().map_or(file.into(), |stem| stem.to_string_lossy());
        format!("{stem}.{}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_with_the_usual_one() {
        let companion = Companion::new("meta.json", |_, _| Ok(true));
        for (file, own) in [
            ("rows.i8bin", "rows.meta.json"),
            ("a.b.f32bin", "a.b.meta.json"),
            ("rows", "rows.meta.json"),
            (".i8bin", ".i8bin.meta.json"),
            ("", ".meta.json"),
        ] {
            assert_eq!(companion.own_name(file), own);
        }
    }
}
