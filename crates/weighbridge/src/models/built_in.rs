//! The model that is always there: a static one, compiled into programs with the feature `default-model`.

use super::places::locate;
use crate::Error;
use std::path::Path;
use weighbridge_encoder::{Encoder, Settings};
use weighbridge_format::source::Access;
use weighbridge_format::{Formats, Input, Options};

/// Its name, by which it is found where no file and no cache has a model of that name.
pub const BUILT_IN: &str = "minilm-static";

/// Its bytes, where it was compiled in.
#[cfg(feature = "default-model")]
const BYTES: Option<&[u8]> = Some(include_bytes!("../../default-model/minilm-static.safetensors"));
#[cfg(not(feature = "default-model"))]
const BYTES: Option<&[u8]> = None;

/// Its name, where it was compiled in.
pub fn built_in() -> Option<&'static str> {
    BYTES.map(|_| BUILT_IN)
}

/// Whether what [`locate`] found is no file, but the model that is compiled in.
pub fn is_built_in(path: &Path) -> bool {
    built_in().is_some_and(|name| path == Path::new(name)) && !path.exists()
}

/// What was given by a path or by the name of a model, ready to be opened.
///
/// # Errors
/// Those of [`locate`], and failures of the system.
pub fn input(given: &Path, access: Access) -> Result<Input, Error> {
    let path = locate(given)?;
    match BYTES.filter(|_| is_built_in(&path)) {
        Some(bytes) => Ok(Input::from_bytes(BUILT_IN, bytes.to_vec())),
        None => Input::open_with(&path, access),
    }
}

/// Opens a model that was given by a path or a name.
///
/// # Errors
/// If there is none, or it can't be used.
pub fn encoder(given: impl AsRef<Path>, settings: &Settings) -> Result<Encoder, Error> {
    let input = input(given.as_ref(), Access::Mapped)?;
    Encoder::new(&Formats::builtin().open(&input, &Options::default())?, settings)
}
