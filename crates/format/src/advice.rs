//! What would help, as data: each front end words it in its own terms.

use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// What whoever asked could do about an error, a finding or a note.
///
/// Options are called by their names in this library. A command line writes `--lossy` where a
/// binding writes `lossy=True`, so that only a front end can say how one is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Advice {
    /// There is nothing more to say.
    #[default]
    None,
    /// Something that is true whoever asked.
    Text(Cow<'static, str>),
    /// An option helps, perhaps with a value.
    Set {
        /// The option's name.
        option: &'static str,
        /// The value to give it; empty where any value, or none, will do.
        value: Cow<'static, str>,
        /// What it does, as the end of a sentence that begins with the option.
        effect: Cow<'static, str>,
    },
    /// An option takes one of these values.
    OneOf {
        /// The option's name.
        option: &'static str,
        /// The values that it takes.
        values: Vec<String>,
    },
    /// Names that were probably meant, the nearest first.
    Meant {
        /// A few of them.
        names: Vec<String>,
    },
    /// It works without an option.
    LeaveOut {
        /// The option's name.
        option: &'static str,
    },
    /// Something that can be looked at tells more.
    See(Listing),
    /// A model can be fetched.
    Pull {
        /// Its name.
        model: String,
        /// Only over the network.
        network: bool,
    },
    /// Several of these, in order.
    All(Vec<Advice>),
}

/// What can be looked at to learn more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Listing {
    /// The names of a container's tensors.
    Tensors,
    /// The metadata of a container.
    Metadata,
    /// The formats that are known.
    Formats,
    /// The findings about a file: every rule of its format, checked.
    Findings,
    /// The statistics of a tensor's values.
    Statistics,
    /// The models that are on this machine.
    Models,
}

impl Advice {
    /// An option helps: `effect` is what it does.
    pub fn set(option: &'static str, effect: impl Into<Cow<'static, str>>) -> Advice {
        Advice::Set { option, value: Cow::Borrowed(""), effect: effect.into() }
    }

    /// An option with this value helps.
    pub fn set_to(
        option: &'static str,
        value: impl Into<Cow<'static, str>>,
        effect: impl Into<Cow<'static, str>>,
    ) -> Advice {
        Advice::Set { option, value: value.into(), effect: effect.into() }
    }

    /// An option takes one of these values.
    pub fn one_of<T: Into<String>>(
        option: &'static str,
        values: impl IntoIterator<Item = T>,
    ) -> Advice {
        Advice::OneOf { option, values: values.into_iter().map(Into::into).collect() }
    }

    /// This and more.
    #[must_use]
    pub fn and(self, more: impl Into<Advice>) -> Advice {
        match (self, more.into()) {
            (only, Advice::None) | (Advice::None, only) => only,
            (Advice::All(mut list), Advice::All(more)) => {
                list.extend(more);
                Advice::All(list)
            }
            (Advice::All(mut list), more) => {
                list.push(more);
                Advice::All(list)
            }
            (first, more) => Advice::All(vec![first, more]),
        }
    }

    /// Whether there is nothing to say.
    pub fn is_none(&self) -> bool {
        *self == Advice::None
    }

    /// The first option that it is about, by name.
    pub fn option(&self) -> Option<&'static str> {
        match self {
            Advice::Set { option, .. }
            | Advice::OneOf { option, .. }
            | Advice::LeaveOut { option } => Some(option),
            Advice::All(list) => list.iter().find_map(Advice::option),
            Advice::None
            | Advice::Text(_)
            | Advice::Meant { .. }
            | Advice::See(_)
            | Advice::Pull { .. } => None,
        }
    }
}

impl From<&'static str> for Advice {
    fn from(text: &'static str) -> Advice {
        if text.is_empty() { Advice::None } else { Advice::Text(text.into()) }
    }
}

impl From<String> for Advice {
    fn from(text: String) -> Advice {
        if text.is_empty() { Advice::None } else { Advice::Text(text.into()) }
    }
}

/// In the library's own terms.
impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Advice::None => Ok(()),
            Advice::Text(text) => f.write_str(text),
            Advice::Set { option, value, effect } if value.is_empty() => {
                write!(f, "the option {option} {effect}")
            }
            Advice::Set { option, value, effect } => {
                write!(f, "the option {option} with {value} {effect}")
            }
            Advice::OneOf { option, values } => {
                write!(f, "the option {option} takes one of: {}", values.join(" "))
            }
            Advice::Meant { names } => match names.split_last() {
                Some((last, [])) => write!(f, "did you mean {last}?"),
                Some((last, first)) => write!(f, "did you mean {} or {last}?", first.join(", ")),
                None => Ok(()),
            },
            Advice::LeaveOut { option } => write!(f, "leave out the option {option}"),
            Advice::See(listing) => write!(f, "see {listing}"),
            Advice::Pull { model, network: false } => write!(f, "pulling {model} fetches it"),
            Advice::Pull { model, network: true } => {
                write!(f, "pulling {model} over the network fetches it")
            }
            Advice::All(list) => {
                for (i, advice) in list.iter().enumerate() {
                    write!(f, "{}{advice}", if i == 0 { "" } else { "; " })?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Listing::Tensors => "the names of the tensors",
            Listing::Metadata => "the metadata",
            Listing::Formats => "the table of formats",
            Listing::Findings => "the findings about the file",
            Listing::Statistics => "the statistics of the tensor",
            Listing::Models => "the models on this machine",
        })
    }
}

/// As its text, so that JSON has one string whatever the advice is.
impl Serialize for Advice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_reads_as_a_sentence() {
        let lossy = Advice::set("lossy", "puts a mark in its place");
        assert_eq!(lossy.to_string(), "the option lossy puts a mark in its place");
        let both = lossy.and(Advice::set_to("from", "glove", "reads it")).and("").and("or not");
        assert_eq!(
            both.to_string(),
            "the option lossy puts a mark in its place; the option from with glove reads it; or not"
        );
        assert_eq!(both.option(), Some("lossy"));
        assert_eq!(Advice::from(""), Advice::None);
        assert_eq!(Advice::See(Listing::Tensors).option(), None);
    }
}
