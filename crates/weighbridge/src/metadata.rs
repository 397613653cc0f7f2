//! Whether metadata can be changed and nothing else.

use crate::Edit;
use weighbridge_format::formats::MetadataChange;
use weighbridge_format::plan::Keeps;
use weighbridge_format::{Container, Error, Format};

/// Whether the metadata of a container can be changed in its own format, with the rest as it was.
///
/// # Errors
/// [`Error::Refused`] if the format, or the variant of it that the container came from, has no place
/// for metadata or size variables: written anew, such a variant would become a usual file. And where
/// [`check_changes`] refuses.
pub fn check_metadata(container: &Container, edit: &Edit, format: &Format) -> Result<(), Error> {
    let info = format.info();
    let advice = "converting to a format that does, such as safetensors, gives it a place";
    if info.holds.metadata == Keeps::Nothing {
        return Err(Error::refused(format!("{} holds no metadata", info.name), advice));
    }
    if !edit.sizes.is_empty() && !info.holds.sizevars {
        return Err(Error::refused(format!("{} holds no size variables", info.name), advice));
    }
    if let Some(variant) = (info.no_metadata)(container) {
        let advice = "converting writes the usual variant, which does";
        return Err(Error::refused(format!("{variant} has no place for metadata"), advice));
    }
    check_changes(container, edit, format)
}

/// Whether what is set and removed is so in a file of a format: some metadata is demanded by the
/// format, and some is said by other parts of the file.
///
/// # Errors
/// [`Error::Refused`] for metadata that would stay as it is, or come back.
pub fn check_changes(container: &Container, edit: &Edit, format: &Format) -> Result<(), Error> {
    let removed = edit.remove.iter().map(|key| (key, MetadataChange::Remove));
    let set = edit.set.iter().map(|(key, text)| (key, MetadataChange::Set(text)));
    for (key, change) in removed.chain(set) {
        if let Some(why) = (format.info().fixed_metadata)(container, key, change)? {
            let done = match change {
                MetadataChange::Set(_) => "set to that",
                MetadataChange::Remove => "removed",
            };
            return Err(Error::refused(format!("metadata {key:?} can't be {done}: {why}"), ""));
        }
    }
    Ok(())
}
