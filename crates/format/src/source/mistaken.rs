//! What people really have when a file is not what its name says.

use crate::Advice;

/// Says what a file of no known format is, and what to do about it, by its first bytes.
pub fn recognise(bytes: &[u8]) -> Option<(&'static str, Advice)> {
    let head = &bytes[..bytes.len().min(1024)];
    let text = String::from_utf8_lossy(head);
    let text = text.trim_start_matches(['\u{feff}', ' ', '\n', '\r', '\t']).to_ascii_lowercase();
    let starts = |magic: &[u8]| head.starts_with(magic);
    let (what, advice) = if bytes.is_empty() {
        ("an empty file", "a download or copy may have failed; fetch it again")
    } else if text.starts_with("version https://git-lfs") {
        (
            "a Git LFS pointer, not the file itself",
            "run `git lfs pull` in the repository, or download the file itself",
        )
    } else if text.starts_with("<!doctype html") || text.starts_with("<html") {
        (
            "an HTML page",
            "a server answered with a web page (a login or an error); open it to see why, then download again",
        )
    } else if starts(b"PK\x03\x04") || starts(b"PK\x05\x06") {
        (
            "a zip archive (PyTorch's .pt and NumPy's .npz are zips too)",
            "unpack it, or save the tensors as safetensors or .npy",
        )
    } else if starts(b"\x1f\x8b") {
        ("gzip-compressed data", "unpack it with `gunzip` first")
    } else if starts(b"GGUF") {
        ("a GGUF model", "GGUF is not among the known formats")
    } else if starts(b"\x89HDF\r\n\x1a\n") {
        ("an HDF5 file", "save the weights as safetensors")
    } else if starts(b"\x80\x02")
        || starts(b"\x80\x03")
        || starts(b"\x80\x04")
        || starts(b"\x80\x05")
    {
        (
            "a Python pickle, which can run code when it is opened",
            "load it where you trust it and save the tensors as safetensors",
        )
    } else if bytes.len() >= 16 && head.iter().all(|&b| b == 0) {
        (
            "zeros from the start",
            "a download may have been interrupted after the space was reserved; fetch it again",
        )
    } else {
        return None;
    };
    Some((what, advice.into()))
}

#[cfg(test)]
mod tests {
    use super::recognise;

    #[test]
    fn usual_mistakes() {
        for (bytes, word) in [
            (&b""[..], "empty"),
            (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n", "LFS"),
            (b"\n <!DOCTYPE html><html>", "HTML"),
            (b"PK\x03\x04rest", "zip"),
            (b"\x80\x04\x95", "pickle"),
            (&[0; 64], "zeros"),
        ] {
            assert!(recognise(bytes).unwrap().0.contains(word), "{word}");
        }
        assert_eq!(recognise(b"EMBD"), None);
    }
}
