//! Files of words, questions and texts that a verb holds in memory as a whole.

use std::io::Read;
use std::path::Path;
use weighbridge::Error;
use weighbridge::source::open_input;

/// None is larger; what is, is something else, or has no end.
const LARGEST: u64 = 256 << 20;

/// All of a file, or of a pipe.
pub(super) fn read_input(path: &Path) -> Result<Vec<u8>, Error> {
    let file = open_input(path).map_err(|e| Error::io(path, e))?;
    read_all(file, &path.display().to_string())
}

/// All that comes out of something with this name.
pub(super) fn read_all(input: impl Read, name: &str) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = input.take(LARGEST + 1).read_to_end(&mut bytes);
    read.map_err(|e| Error::io(Path::new(name), e))?;
    match bytes.len() as u64 > LARGEST {
        true => Err(Error::limit(format!("bytes of {name}"), LARGEST)),
        false => Ok(bytes),
    }
}
