//! Memory mapping.
//!
//! A mapped file that another process cuts short raises SIGBUS when the missing pages are touched.
//! Library users decide for themselves what to do about it; the program installs the handler of
//! [`super::signal`], which turns the signal into an error message and exit code 4.

use super::{Inner, Source};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;

pub(super) fn open(path: &Path) -> std::io::Result<Source> {
    let mut file = File::open(path)?;
    let meta = file.metadata()?;
    // A device has no end.
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if meta.file_type().is_char_device() || meta.file_type().is_block_device() {
            return Err(std::io::Error::new(ErrorKind::InvalidInput, "it is a device, not a file"));
        }
    }
    if !meta.is_file() || meta.len() == 0 {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        return Ok(Source::from_vec(bytes));
    }
    // SAFETY: the mapping is read-only and private to us. What Rust can't promise is that no other
    // process writes to the file meanwhile: changed bytes are read as whatever they are (every
    // parser bounds-checks what it reads, and re-reads nothing it relied on for memory safety), and
    // a file cut short raises SIGBUS, see above.
    let map = unsafe { memmap2::Mmap::map(&file)? };
    Ok(Source(Arc::new(Inner::Mapped(map))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapped_and_owned_files_give_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, b"hello").unwrap();
        let source = open(&path).unwrap();
        assert!(matches!(&*source.0, Inner::Mapped(_)));
        assert_eq!(source.bytes(), b"hello");
        // A view keeps the mapping alive.
        let view = source.view(1..3).unwrap();
        drop(source);
        assert_eq!(&*view, b"el");
        std::fs::write(&path, b"").unwrap();
        assert!(open(&path).unwrap().is_empty());
    }
}
