//! Changing what a container holds.

use crate::pattern::patterns;
use crate::words::{give_words, to_explicit};
use weighbridge_codec::DType;
use weighbridge_format::model::{Records, Value};
use weighbridge_format::{Advice, Container, Error, Listing};

/// What to change of a container. Nothing is changed unless it is asked for.
///
/// ```
/// use weighbridge::{Container, Edit};
///
/// let container = Container::builder().values("w", &[2], vec![1.0, 2.0]).build()?;
/// let edited = Edit::new().rename("w", "weights").set("license", "CC0").apply(container)?;
/// assert_eq!(edited.tensors[0].name, "weights");
/// # Ok::<(), weighbridge::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Edit {
    /// Patterns of tensor names to keep; all when there are none.
    pub select: Vec<String>,
    /// Patterns of tensor names to leave out.
    pub exclude: Vec<String>,
    /// New names of tensors, metadata keys and size variables: old and new.
    pub rename: Vec<(String, String)>,
    /// Metadata keys to remove.
    pub remove: Vec<String>,
    /// Metadata values to set, as texts. A value keeps the type that it had, and a new one is a text,
    /// unless the key says a type: `rate:f32`, with the names of [`Value::type_name`].
    pub set: Vec<(String, String)>,
    /// Size variables to set.
    pub sizes: Vec<(String, u64)>,
    /// The type to store real numbers in.
    pub dtype: Option<DType>,
    /// A word for each row.
    pub words: Option<Vec<String>>,
    /// A record for each row.
    pub records: Option<Records>,
    /// Give n-grams in buckets names and rows of their own.
    pub explicit: bool,
}

impl Edit {
    /// Nothing is changed.
    pub fn new() -> Edit {
        Edit::default()
    }

    /// Keeps the tensors whose names fit, and those of other calls.
    #[must_use]
    pub fn select(mut self, pattern: impl Into<String>) -> Edit {
        self.select.push(pattern.into());
        self
    }

    /// Leaves out the tensors whose names fit.
    #[must_use]
    pub fn exclude(mut self, pattern: impl Into<String>) -> Edit {
        self.exclude.push(pattern.into());
        self
    }

    /// Renames a tensor, metadata key or size variable.
    #[must_use]
    pub fn rename(mut self, old: impl Into<String>, new: impl Into<String>) -> Edit {
        self.rename.push((old.into(), new.into()));
        self
    }

    /// Sets a metadata value from a text. It keeps the type that it had, and a new one is a text,
    /// unless the key says a type, as `rate:f32` does.
    #[must_use]
    pub fn set(mut self, key: impl Into<String>, text: impl Into<String>) -> Edit {
        self.set.push((key.into(), text.into()));
        self
    }

    /// Sets a size variable.
    #[must_use]
    pub fn set_size(mut self, name: impl Into<String>, size: u64) -> Edit {
        self.sizes.push((name.into(), size));
        self
    }

    /// Removes a metadata value.
    #[must_use]
    pub fn remove(mut self, key: impl Into<String>) -> Edit {
        self.remove.push(key.into());
        self
    }

    /// Stores real numbers in this type.
    #[must_use]
    pub fn dtype(mut self, dtype: DType) -> Edit {
        self.dtype = Some(dtype);
        self
    }

    /// Gives each row a word.
    #[must_use]
    pub fn words<T: Into<String>>(mut self, words: impl IntoIterator<Item = T>) -> Edit {
        self.words = Some(words.into_iter().map(Into::into).collect());
        self
    }

    /// Gives each row a record.
    #[must_use]
    pub fn records(mut self, records: Records) -> Edit {
        self.records = Some(records);
        self
    }

    /// Gives n-grams in buckets names and rows of their own.
    #[must_use]
    pub fn explicit(mut self) -> Edit {
        self.explicit = true;
        self
    }

    /// The container with the changes.
    ///
    /// # Errors
    /// [`Error::Refused`] where something that is to be changed is not there, a pattern fits no
    /// tensor, a text can't be read as the type that a value has, a name would be taken twice, or
    /// there are other words or records than rows.
    pub fn apply(&self, mut container: Container) -> Result<Container, Error> {
        keep_tensors(&mut container, &self.select, &self.exclude)?;
        for (old, new) in &self.rename {
            rename(&mut container, old, new)?;
        }
        for key in &self.remove {
            let before = container.metadata.len();
            container.metadata.retain(|(k, _)| k != key);
            if container.metadata.len() == before {
                let what = format!("there is no metadata {key:?}");
                let meant = Advice::meant(key, container.metadata.iter().map(|(k, _)| k));
                return Err(Error::refused(what, meant.and(Advice::See(Listing::Metadata))));
            }
        }
        for (key, text) in &self.set {
            set(&mut container, key, text)?;
        }
        for (name, size) in &self.sizes {
            match container.sizevars.iter_mut().find(|(n, _)| n == name) {
                Some((_, old)) => *old = *size,
                None => container.sizevars.push((name.clone(), *size)),
            }
        }
        container.dtype = self.dtype.or(container.dtype);
        if let Some(words) = &self.words {
            give_words(&mut container, words)?;
        }
        if let Some(records) = &self.records {
            give_records(&mut container, records)?;
        }
        if self.explicit {
            to_explicit(&mut container)?;
        }
        Ok(container)
    }
}

/// Leaves out the tensors that are not selected, or excluded.
pub(crate) fn keep_tensors(
    container: &mut Container,
    select: &[String],
    exclude: &[String],
) -> Result<(), Error> {
    let (select, exclude) = (patterns(select, container)?, patterns(exclude, container)?);
    container.tensors.retain(|t| {
        let chosen = select.is_empty() || select.iter().any(|p| p.matches(&t.name));
        chosen && !exclude.iter().any(|p| p.matches(&t.name))
    });
    Ok(())
}

/// Sets a metadata value from a text. A key that is there is that key, also where it ends like one
/// with a type.
fn set(container: &mut Container, key: &str, text: &str) -> Result<(), Error> {
    let present = |key: &str| {
        container.metadata.iter().find(|(k, _)| k == key).map(|(_, value)| value.type_name())
    };
    let with_type = key.rsplit_once(':').filter(|(name, _)| !name.is_empty());
    let (key, kind, old) = match (present(key), with_type) {
        (Some(old), _) => (key, old.clone(), Some(old)),
        (None, Some((name, kind))) if Value::is_parsed(kind) => (name, kind.to_owned(), None),
        (None, Some((name, kind))) if present(name).is_some() => {
            let what = format!("{kind:?} is not a type that metadata can be set as");
            return Err(Error::refused(what, "str, bool, f32, f64, i32, i64 and u64 are some"));
        }
        (None, _) => (key, "str".to_owned(), None),
    };
    let Some(value) = Value::parse(&kind, text) else {
        let what = match &old {
            Some(old) => format!("metadata {key:?} is {old}, and {text:?} can't be read as that"),
            None => format!("{text:?} can't be read as {kind}"),
        };
        let effect = "gives it another type, such as str";
        let advice = Advice::set_to("set", format!("{key}:TYPE=VALUE"), effect);
        return Err(Error::refused(what, advice));
    };
    container.set_value(key, value);
    Ok(())
}

fn rename(container: &mut Container, old: &str, new: &str) -> Result<(), Error> {
    let tensors = container.tensors.iter_mut().map(|t| &mut t.name);
    let keys = container.metadata.iter_mut().map(|(k, _): &mut (String, Value)| k);
    let sizevars = container.sizevars.iter_mut().map(|(k, _)| k);
    let mut found = false;
    for name in tensors.chain(keys).chain(sizevars).filter(|n| *n == old) {
        new.clone_into(name);
        found = true;
    }
    let twice = container.tensors.iter().filter(|t| t.name == new).count() > 1
        || container.metadata.iter().filter(|(k, _)| k == new).count() > 1
        || container.sizevars.iter().filter(|(k, _)| k == new).count() > 1;
    match (found, twice) {
        (true, false) => Ok(()),
        (false, _) => {
            let what = format!("nothing is named {old:?}");
            let tensors = container.tensors.iter().map(|t| &t.name);
            let keys = container.metadata.iter().map(|(k, _)| k);
            let names = tensors.chain(keys).chain(container.sizevars.iter().map(|(k, _)| k));
            let advice = Advice::meant(old, names).and(Advice::See(Listing::Tensors));
            Err(Error::refused(what, advice))
        }
        (true, true) => Err(Error::refused(format!("there is a {new:?} already"), "")),
    }
}

fn give_records(container: &mut Container, records: &Records) -> Result<(), Error> {
    let rows = container.rows().map(|r| r.count);
    let count = records.count()?;
    if let Some(rows) = rows.filter(|rows| *rows != count) {
        let what = format!("there are {count} records for {rows} rows");
        return Err(Error::refused(what, "every row has one record"));
    }
    container.records = Some(records.clone());
    Ok(())
}
