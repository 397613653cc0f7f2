//! The front of a description: what stands before its records.

use super::meta::Members;
use crate::Error;
use crate::model::scan;
use crate::source::{Bytes, Source};

/// A description without its records, which stand at its end. None where it is small enough to be
/// read at once, where members of ours may stand behind the records, or where it is not what it
/// should be: then it is read whole.
pub(super) fn front(source: &Source) -> Result<Option<Bytes>, Error> {
    let (size, mut length) = (source.len(), source.head()?.len() as u64);
    if size <= length || !ends_with_records(source)? {
        return Ok(None);
    }
    while length < size {
        let bytes = source.bytes(0..length)?;
        if let Some(outline) = outline(&bytes) {
            let members = serde_json::from_slice::<Members>(&outline);
            let is_all = members.is_ok_and(|members| {
                members.version.is_some()
                    && members.quantization.is_some()
                    && members.shape.is_some()
            });
            return Ok(is_all.then(|| Bytes::owned(outline)));
        }
        // What stands in front of the records is longer than usual.
        length = length.saturating_mul(4);
    }
    Ok(None)
}

/// The members in front of the records, as an object.
fn outline(text: &[u8]) -> Option<Vec<u8>> {
    let mut members = scan::Members::of(text, scan::skip_space(text, 0))?;
    while let Some((key, at)) = members.head() {
        if scan::is_key(text.get(key.clone())?, "records") {
            let front = text.get(..key.start)?.trim_ascii_end();
            let front = front.strip_suffix(b",").unwrap_or(front);
            return (text.get(at) == Some(&b'[')).then(|| [front, b"}"].concat());
        }
        members.behind(scan::skip_value(text, at)?);
    }
    None
}

/// Whether an array of objects, or an empty one, is the last member of a document.
fn ends_with_records(source: &Source) -> Result<bool, Error> {
    const LOOK: u64 = 256;
    let tail = source.bytes(source.len().saturating_sub(LOOK)..source.len())?;
    let array = tail.trim_ascii_end().strip_suffix(b"}").map(<[u8]>::trim_ascii_end);
    let inside = array.and_then(|array| array.strip_suffix(b"]")).map(<[u8]>::trim_ascii_end);
    Ok(inside.is_some_and(|inside| inside.ends_with(b"}") || inside.ends_with(b"[")))
}

/// The members of a description, as far as these are told by what stands in front of the records.
pub(super) fn text_of(source: &Source) -> Result<Bytes, Error> {
    match front(source)? {
        Some(front) => Ok(front),
        None => source.bytes(0..source.len()),
    }
}
