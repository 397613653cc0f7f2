//! Changing the metadata of a file and nothing else.

use crate::convert::Conversion;
use std::path::{Path, PathBuf};
use weighbridge_format::model::Keeps;
use weighbridge_format::{Container, Error, Input, Options, find, open, table};

/// What to change.
#[derive(Clone, Debug, Default)]
pub struct MetadataRequest {
    /// Values to set; they keep the type that they had where the text allows it.
    pub set: Vec<(String, String)>,
    pub remove: Vec<String>,
    /// Where to write; else the file itself is replaced.
    pub out: Option<PathBuf>,
    pub options: Options,
    pub allow_loss: bool,
    /// Replace an existing `out`.
    pub force: bool,
}

/// Plans the same file, in its own format, with other metadata.
pub fn edit_metadata(input: &Path, request: &MetadataRequest) -> Result<Conversion, Error> {
    let mut container = open(&Input::open(input)?, &request.options)?;
    let unknown = || Error::refused(format!("there is no format {:?}", container.format), "");
    let format = find(container.format).ok_or_else(unknown)?;
    let info = format.info();
    if info.holds.metadata == Keeps::Nothing {
        let hint = "`convert --set` writes one that does, such as .safetensors";
        return Err(Error::refused(format!("{} holds no metadata", info.name), hint));
    }
    if let Some(variant) = has_no_place(&container) {
        let hint = "`convert --set` writes the usual variant";
        return Err(Error::refused(format!("{variant} has no place for metadata"), hint));
    }
    let several = info.is_folder || container.layout == "sharded";
    if several && request.out.is_none() {
        let what = format!("{} is more than one file and is not replaced", input.display());
        return Err(Error::refused(what, "--out names where to write"));
    }
    if let Some(other) = request.out.as_deref().and_then(|out| belongs_elsewhere(out, info.id)) {
        let what =
            format!("the name belongs to {other}, and the metadata of {} is edited", info.id);
        return Err(Error::refused(what, "`convert --set` changes the format too"));
    }
    for key in &request.remove {
        let before = container.metadata.len();
        container.metadata.retain(|(k, _)| k != key);
        if container.metadata.len() == before {
            let hint = "`weighbridge metadata FILE` lists what there is";
            return Err(Error::refused(format!("there is no metadata {key:?}"), hint));
        }
    }
    for (key, text) in &request.set {
        container.set_as_before(key, text);
    }
    let plan = format.plan(&container, &request.options)?;
    let output = request.out.as_deref().unwrap_or(input).components().collect();
    let force = request.force || request.out.is_none();
    Ok(Conversion { container, format, plan, output, allow_loss: request.allow_loss, force })
}

/// The format that an extension belongs to, if that is another one.
fn belongs_elsewhere(out: &Path, id: &str) -> Option<&'static str> {
    let extension = out.extension()?.to_string_lossy().to_ascii_lowercase();
    let mut of = table().iter().map(|f| f.info()).filter(|i| i.extensions.contains(&&*extension));
    let first = of.clone().next()?;
    of.all(|info| info.id != id).then_some(first.id)
}

/// Variants of formats that have no metadata where the usual ones do. Written anew, such a file would
/// become a usual one.
fn has_no_place(container: &Container) -> Option<&'static str> {
    match container.format {
        "embd" if container.layout.starts_with("stream") => Some("the stream layout of EMBD"),
        "finalfusion" if container.dialect.contains_key("draft") => {
            Some("the early draft of finalfusion")
        }
        _ => None,
    }
}
