//! Whether metadata can be changed and nothing else.

use weighbridge_format::plan::Keeps;
use weighbridge_format::{Container, Error, Format};

/// Whether the metadata of a container can be changed in its own format, with the rest as it was.
///
/// # Errors
/// [`Error::Refused`] if the format, or the variant of it that the container came from, has no place
/// for metadata. Written anew, such a variant would become a usual file.
pub fn check_metadata(container: &Container, format: &Format) -> Result<(), Error> {
    let info = format.info();
    if info.holds.metadata == Keeps::Nothing {
        let advice = "converting to a format that does, such as safetensors, gives it a place";
        return Err(Error::refused(format!("{} holds no metadata", info.name), advice));
    }
    if let Some(variant) = (info.no_metadata)(container) {
        let advice = "converting writes the usual variant, which does";
        return Err(Error::refused(format!("{variant} has no place for metadata"), advice));
    }
    Ok(())
}
