//! The vocabulary of a tokenizer.json: skipped, or read without an allocation a token.

use super::{Misstatement, TOKENIZER, misstatement};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// A vocabulary of which nothing was kept but its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkippedVocabulary {
    tokens: u64,
}

impl SkippedVocabulary {
    /// How many tokens it lists.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }
}

/// Tokens with their numbers, as they stand in the file. There are none where the vocabulary is not a
/// map, as in other kinds of models.
#[derive(Clone, Debug, Default)]
pub struct NumberedTokens {
    tokens: TokenList,
    ids: Vec<u32>,
}

impl NumberedTokens {
    fn from_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<NumberedTokens, A::Error> {
        let mut listed = NumberedTokens::default();
        while map.next_key_seed(Append(&mut listed.tokens))?.is_some() {
            listed.ids.push(map.next_value()?);
        }
        Ok(listed)
    }

    /// Adds a token with the next number.
    pub(super) fn append(&mut self, token: &str) -> Result<(), Misstatement> {
        // There are fewer tokens than bytes of them.
        self.ids.push(u32::try_from(self.ids.len()).unwrap_or(u32::MAX));
        self.tokens.push(token)
    }

    /// The tokens, in the order of the file.
    pub(super) fn tokens(&self) -> impl Iterator<Item = &str> {
        self.tokens.iter()
    }

    /// The tokens in the order of their numbers.
    ///
    /// # Errors
    /// If the numbers are not those from 0 on.
    pub fn in_order(self) -> Result<TokenList, Misstatement> {
        let NumberedTokens { tokens, ids } = self;
        // As many places as tokens: nothing is allocated from a number in the file.
        let mut places = vec![None; ids.len()];
        let mut is_sorted = true;
        for (place_in_file, &id) in ids.iter().enumerate() {
            is_sorted &= place_in_file == id as usize;
            match places.get_mut(id as usize) {
                Some(slot) if slot.is_none() => *slot = Some(place_in_file),
                _ => {
                    let token = tokens.get(place_in_file).unwrap_or_default();
                    let found = format!("{token:?}: {id}, which is too large or given twice");
                    let field = format!("{TOKENIZER} model.vocab");
                    return Err(misstatement(field, "every number from 0 on once", found));
                }
            }
        }
        if is_sorted {
            return Ok(tokens);
        }
        let mut ordered = TokenList::default();
        for token in places.into_iter().flatten().filter_map(|place| tokens.get(place)) {
            ordered.push(token)?;
        }
        Ok(ordered)
    }
}

/// Tokens one behind the other in one text.
#[derive(Clone, Debug, Default)]
pub struct TokenList {
    text: String,
    ends: Vec<u32>,
}

impl TokenList {
    /// Appends a token.
    ///
    /// # Errors
    /// If there would be more than 4 GB of them.
    pub fn push(&mut self, token: &str) -> Result<(), Misstatement> {
        self.text.push_str(token);
        let end = u32::try_from(self.text.len()).map_err(|_| {
            let found = format!("{} bytes of tokens", self.text.len());
            misstatement("the vocabulary".to_owned(), "at most 4 GB", found)
        })?;
        self.ends.push(end);
        Ok(())
    }

    /// The token at a place.
    pub fn get(&self, place: usize) -> Option<&str> {
        let end = *self.ends.get(place)?;
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.text.get(start as usize..end as usize)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len()).filter_map(|place| self.get(place))
    }

    /// The text of all, and where each ends in it.
    pub fn into_parts(self) -> (String, Vec<u32>) {
        (self.text, self.ends)
    }
}

impl<'de> Deserialize<'de> for NumberedTokens {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<NumberedTokens, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = NumberedTokens;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a vocabulary")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                NumberedTokens::from_map(map)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(NumberedTokens::default())
            }
        }
        deserializer.deserialize_any(Entries)
    }
}

/// The tokens of any kind of model: a map to numbers, or a list of tokens with scores.
#[derive(Clone, Debug, Default)]
pub(super) struct AnyTokens(pub(super) NumberedTokens);

impl<'de> Deserialize<'de> for AnyTokens {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AnyTokens, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = AnyTokens;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("tokens with numbers, or a list of tokens with scores")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                NumberedTokens::from_map(map).map(AnyTokens)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut listed = NumberedTokens::default();
                while let Some((token, _)) = seq.next_element::<(String, IgnoredAny)>()? {
                    listed.append(&token).map_err(|wrong| {
                        serde::de::Error::custom(format!("{}: {}", wrong.field, wrong.found))
                    })?;
                }
                Ok(AnyTokens(listed))
            }
        }
        deserializer.deserialize_any(Entries)
    }
}

/// Appends a string to the tokens, without allocating it on its own.
struct Append<'a>(&'a mut TokenList);

impl<'de> DeserializeSeed<'de> for Append<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Append<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a token")
    }

    fn visit_str<E: serde::de::Error>(self, token: &str) -> Result<(), E> {
        self.0.push(token).map_err(|wrong| E::custom(format!("{}: {}", wrong.field, wrong.found)))
    }
}

impl<'de> Deserialize<'de> for SkippedVocabulary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Counter;
        impl<'de> Visitor<'de> for Counter {
            type Value = SkippedVocabulary;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a vocabulary")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut tokens = 0;
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                    tokens += 1;
                }
                Ok(SkippedVocabulary { tokens })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut tokens = 0;
                while seq.next_element::<IgnoredAny>()?.is_some() {
                    tokens += 1;
                }
                Ok(SkippedVocabulary { tokens })
            }
        }
        deserializer.deserialize_any(Counter)
    }
}
