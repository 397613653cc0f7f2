//! What people really have when a file is not what its name says.
//!
//! Files of some formats are known by their names alone, so that any bytes may stand at their
//! beginning: what names another format here must be more than a byte or two by chance.

use crate::Advice;

/// A file of another kind: the bytes that tell it, where they stand, what it is and what to do.
type Signature = (usize, &'static [u8], &'static str, &'static str);

const ZIP: &str = "a zip archive (PyTorch's .pt and NumPy's .npz are zips too)";
const UNZIP: &str = "unpack it, or save the tensors as safetensors or .npy";
const UNPACK: &str = "unpack it first";
const RESAVE: &str = "save the weights as safetensors";
const COLUMNS: &str = "save the column of vectors as .npy";
const WRONG_FILE: &str = "this is another file than the one that was meant";
const GGML: &str = "a GGML model, from before GGUF";
const FAISS: &str = "a FAISS index";

const SIGNATURES: &[Signature] = &[
    (0, b"PK\x03\x04", ZIP, UNZIP),
    (0, b"PK\x05\x06", ZIP, UNZIP),
    (0, b"\x1f\x8b\x08", "gzip-compressed data", "unpack it with `gunzip` first"),
    (0, b"BZh", "bzip2-compressed data", "unpack it with `bunzip2` first"),
    (0, b"\xfd7zXZ\0", "xz-compressed data", "unpack it with `unxz` first"),
    (0, b"]\0\0\x80\0", "LZMA-compressed data", "unpack it with `unlzma` first"),
    (0, b"\x28\xb5\x2f\xfd", "zstd-compressed data", "unpack it with `unzstd` first"),
    (0, b"\x04\x22\x4d\x18", "LZ4-compressed data", "unpack it with `unlz4` first"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", UNPACK),
    (0, b"Rar!\x1a\x07", "a RAR archive", UNPACK),
    (257, b"ustar", "a tar archive", "unpack it with `tar -xf` first"),
    (0, b"GGUF", "a GGUF model", "GGUF is not among the known formats"),
    (0, b"lmgg", GGML, "GGML is not among the known formats"),
    (0, b"fmgg", GGML, "GGML is not among the known formats"),
    (0, b"tjgg", GGML, "GGML is not among the known formats"),
    (0, b"\x89HDF\r\n\x1a\n", "an HDF5 file (as Keras saves)", RESAVE),
    (4, b"TFL3", "a TensorFlow Lite model", RESAVE),
    (0, b"PAR1", "a Parquet file", COLUMNS),
    (0, b"ARROW1\0\0", "an Arrow file", COLUMNS),
    (0, b"FEA1", "a Feather file", COLUMNS),
    (0, b"Obj\x01", "an Avro file", COLUMNS),
    (0, b"SQLite format 3\0", "an SQLite database", "export the vectors as .npy"),
    (0, b"MATLAB 5.0 MAT-file", "a MATLAB file", "save the matrix as .npy"),
    (0, b"IxF2", FAISS, "reconstruct its vectors and save them as .npy"),
    (0, b"IxFI", FAISS, "reconstruct its vectors and save them as .npy"),
    (0, b"IwFl", FAISS, "reconstruct its vectors and save them as .npy"),
    (0, b"%PDF-", "a PDF document", WRONG_FILE),
    (0, b"\x89PNG\r\n\x1a\n", "a PNG image", WRONG_FILE),
    (0, b"\xff\xd8\xff\xe0\0\x10JFIF", "a JPEG image", WRONG_FILE),
    (0, b"\x7fELF", "a program", WRONG_FILE),
    (0, b"MZ\x90\0", "a Windows program", WRONG_FILE),
];

/// Texts, by how they begin in small letters.
const TEXTS: [(&str, &str, &str); 6] = [
    (
        "version https://git-lfs",
        "a Git LFS pointer, not the file itself",
        "run `git lfs pull` in the repository, or download the file itself",
    ),
    ("<!doctype html", PAGE, PAGE_ADVICE),
    ("<html", PAGE, PAGE_ADVICE),
    ("<?xml", "an XML document", WRONG_FILE),
    ("%%matrixmarket", "a Matrix Market file", "save the matrix as .npy"),
    ("{\\rtf", "a document of a word processor", WRONG_FILE),
];
const PAGE: &str = "an HTML page";
const PAGE_ADVICE: &str = "a server answered with a web page (a login or an error); open it to see why, then download again";

/// Says what a file of no known format is, and what to do about it, by its first bytes.
pub fn recognise(bytes: &[u8]) -> Option<(&'static str, Advice)> {
    let head = &bytes[..bytes.len().min(1024)];
    let text = String::from_utf8_lossy(head);
    let text = text.trim_start_matches(['\u{feff}', ' ', '\n', '\r', '\t']).to_ascii_lowercase();
    let told = |(at, magic, ..): &&Signature| {
        head.get(*at..).is_some_and(|rest| rest.starts_with(magic)) && is_whole(head, magic)
    };
    let found = SIGNATURES.iter().find(told).map(|(_, _, what, advice)| (*what, *advice));
    let written = || TEXTS.iter().find(|t| text.starts_with(t.0)).map(|t| (t.1, t.2));
    let (what, advice) = found.or_else(written).or_else(|| by_structure(bytes, head))?;
    Some((what, advice.into()))
}

/// The same of a file that only points to another one, as a clone without Git LFS has them.
pub fn recognise_pointer(bytes: &[u8]) -> Option<(&'static str, Advice)> {
    let (start, what, advice) = TEXTS[0];
    bytes.starts_with(start.as_bytes()).then(|| (what, advice.into()))
}

/// What follows the magics that are too short by themselves.
fn is_whole(head: &[u8], magic: &[u8]) -> bool {
    match magic {
        // The size of the blocks, and then the first block or the end.
        b"BZh" => {
            let block = head.get(4..10).unwrap_or_default();
            head.get(3).is_some_and(|b| (b'1'..=b'9').contains(b))
                && (block == b"1AY&SY" || block == b"\x17\x72\x45\x38\x50\x90")
        }
        // Flags, of which three bits are reserved.
        b"\x1f\x8b\x08" => head.get(3).is_some_and(|flags| flags & 0xE0 == 0),
        _ => true,
    }
}

/// Files that are told by more than fixed bytes.
fn by_structure(bytes: &[u8], head: &[u8]) -> Option<(&'static str, &'static str)> {
    if bytes.is_empty() {
        return Some(("an empty file", "a download or copy may have failed; fetch it again"));
    }
    if is_pickle(head) {
        return Some((
            "a Python pickle, which can run code when it is opened",
            "load it where you trust it and save the tensors as safetensors",
        ));
    }
    if is_onnx(head) {
        return Some(("an ONNX model", RESAVE));
    }
    if is_sentencepiece(head) {
        return Some((
            "a SentencePiece model",
            "it is a tokenizer; the weights of the model are in another file",
        ));
    }
    if is_arrow_stream(head) {
        return Some(("an Arrow stream", COLUMNS));
    }
    if is_utf16(head) {
        return Some(("a text in UTF-16", "save it as UTF-8"));
    }
    if bytes.len() >= 16 && bytes.iter().all(|&b| b == 0) {
        return Some((
            "zeros from the start",
            "a download may have been interrupted after the space was reserved; fetch it again",
        ));
    }
    None
}

/// Protocols 2 to 5 begin with their number; older ones with the first opcode: those of lists,
/// dictionaries and instances of classes are known.
fn is_pickle(head: &[u8]) -> bool {
    match head {
        [0x80, 2..=5, rest @ ..] => begins_pickle(rest),
        [b'(', b'd' | b'l' | b't', b'p', digit, ..] => digit.is_ascii_digit(),
        [b'}' | b']', b'q', 0 | 1, next, ..] => b"(UXKJGc}]a.h".contains(next),
        [b'c', rest @ ..] => is_global(rest),
        _ => false,
    }
}

/// What stands behind the protocol: the length of a frame, a container, the name of a class, or the
/// long number that PyTorch's old files begin with.
fn begins_pickle(rest: &[u8]) -> bool {
    match rest {
        [0x95, length @ ..] => length.iter().skip(5).take(3).all(|b| *b == 0),
        [b'}' | b']' | b')' | b'N', next, ..] => b"q.(r".contains(next),
        [b'(', next, ..] => b"}](cXKJMGUN\x8a".contains(next),
        [b'X', _, _, 0, 0, ..] => true,
        [0x8a, 1..=16, ..] => true,
        [b'c', rest @ ..] => is_global(rest),
        _ => false,
    }
}

/// A module and a name in it, each in a line, and then what is done with it.
fn is_global(rest: &[u8]) -> bool {
    let mut lines = rest.splitn(3, |b| *b == b'\n');
    let mut is_name = || {
        let line = lines.next().unwrap_or_default();
        let part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.');
        !line.is_empty() && line.len() < 200 && line.iter().all(part)
    };
    let named = is_name() && is_name();
    named
        && match lines.next().unwrap_or_default() {
            [b'p', digit, ..] => digit.is_ascii_digit(),
            [b'q' | b'(' | b')', ..] => true,
            _ => false,
        }
}

/// A protocol buffer of ONNX: the version of the representation, then who produced it or the graph.
fn is_onnx(head: &[u8]) -> bool {
    let [0x08, 1..=32, tag, rest @ ..] = head else { return false };
    match (tag, rest) {
        (0x12, [length, rest @ ..]) => {
            let name = rest.get(..usize::from(*length)).unwrap_or_default();
            let next = rest.get(usize::from(*length)).copied().unwrap_or_default();
            let printable = !name.is_empty() && name.iter().all(|b| (b' '..=b'~').contains(b));
            printable && matches!(next, 0x1a | 0x22 | 0x28 | 0x32 | 0x3a | 0x42)
        }
        // The length of the graph in groups of seven bits, and then its first node or its name.
        (0x3a, rest) => {
            let at = rest.iter().take(5).position(|b| b & 0x80 == 0);
            let next = at.and_then(|at| rest.get(at + 1..at + 3));
            at.is_some_and(|at| at > 0) && next.is_some_and(|n| matches!(n[0], 0x0a | 0x12))
        }
        _ => false,
    }
}

/// A protocol buffer of pieces: the first has a text and then a score.
fn is_sentencepiece(head: &[u8]) -> bool {
    let [0x0a, outer, 0x0a, inner, rest @ ..] = head else { return false };
    let text = rest.get(..usize::from(*inner)).and_then(|t| std::str::from_utf8(t).ok());
    let behind = rest.get(usize::from(*inner));
    outer.checked_sub(*inner).is_some_and(|more| more >= 7)
        && text.is_some_and(|t| t.starts_with('<') && t.ends_with('>'))
        && behind == Some(&0x15)
}

/// A mark, and the length of the schema, whose table begins with an offset of four bytes.
fn is_arrow_stream(head: &[u8]) -> bool {
    let [0xff, 0xff, 0xff, 0xff, length @ ..] = head else { return false };
    let number = |at: usize| {
        let bytes = length.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let (Some(size), Some(root)) = (number(0), number(4)) else { return false };
    size.is_multiple_of(8) && (8..1 << 24).contains(&size) && (4..64).contains(&root) && root < size
}

/// A mark, and characters with a zero byte each.
fn is_utf16(head: &[u8]) -> bool {
    let (zero, other) = match head {
        [0xff, 0xfe, ..] => (1, 0),
        [0xfe, 0xff, ..] => (0, 1),
        _ => return false,
    };
    let mut pairs = head[2..].chunks_exact(2).take(8).peekable();
    pairs.peek().is_some() && pairs.all(|pair| pair[zero] == 0 && pair[other] != 0)
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
            // Beginnings that the usual programs write.
            (b"BZh91AY&SY\xd0\x0d", "bzip2"),
            (b"\xfd7zXZ\0\0\x04", "xz"),
            (b"]\0\0\x80\0\xff\xff", "LZMA"),
            (b"\x1f\x8b\x08\0\xc5\x11", "gzip"),
            (b"\x28\xb5\x2f\xfd\x04\x58", "zstd"),
            (b"SQLite format 3\0\x10", "SQLite"),
            (b"PAR1\x15\x04", "Parquet"),
            (b"ARROW1\0\0\xff\xff\xff\xff", "Arrow file"),
            (b"\xff\xff\xff\xff\x78\0\0\0\x10\0\0\0\0\0\x0a\0", "Arrow stream"),
            (b"\x89HDF\r\n\x1a\n\0", "HDF5"),
            (b"\x08\x08\x12\x07pytorch\x1a\x052.1.0:\xd0", "ONNX"),
            (b"\x08\x07:\xd0\x01\x0a\x20", "ONNX"),
            (b"\x0a\x0e\x0a\x05<unk>\x15\0\0\0\0\x18\x02", "SentencePiece"),
            (b"\xff\xfet\0h\0e\0 \x001\0", "UTF-16"),
            (b"\xfe\xff\x002\0 \x002\0\n", "UTF-16"),
            // pickle.dumps of a dictionary, a list and an object in protocols 0, 1 and 2.
            (b"(dp0\nVw\np1\n(lp2\nF1.0\n", "pickle"),
            (b"(lp0\nF1.5\naF2.5\na.", "pickle"),
            (b"}q\0(X\x01\0\0\0wq\x01]q\x02", "pickle"),
            (b"]q\0(G?\xf8\0\0\0\0\0\0e.", "pickle"),
            (b"ccopy_reg\n_reconstructor\np0\n(cx\n", "pickle"),
            (b"ccopyreg\n_reconstructor\nq\0(cx\n", "pickle"),
            (b"\x80\x02}q\0", "pickle"),
            (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.", "pickle"),
            (b"\x80\x04\x95\x20\0\0\0\0\0\0\0}\x94", "pickle"),
            (b"\x80\x02cgensim.models\nWord2Vec\nq\0", "pickle"),
        ] {
            let (what, _) = recognise(bytes).unwrap_or_default();
            assert!(what.contains(word), "{word}: {what:?}");
        }
        let mut tar = [0; 512];
        tar[..5].copy_from_slice(b"x.txt");
        tar[257..262].copy_from_slice(b"ustar");
        assert!(recognise(&tar).unwrap().0.contains("tar"));
    }

    /// Rows that are known by their name alone may begin with any bytes.
    #[test]
    fn other_bytes_are_not_named() {
        for bytes in [
            &b"EMBD"[..],
            b"the 0.1 0.2\n",
            b"c 0.1 0.2\nd 0.1 0.3\n",
            b"]q 1 2\n",
            b"(l 0.1 0.2\n",
            b"BZh is a word 1 2\n",
            // 640 rows of 4, 65279 rows of 4, and the like.
            b"\x80\x02\0\0\x04\0\0\0",
            b"\x80\x04\x95\x7f\x80\x12\x13\x14\x15\x16\x17\x18",
            b"\x80\x03cc\x11\x12",
            b"\xff\xfe\0\0\x04\0\0\0",
            b"\x1f\x8b\0\0\x04\0\0\0",
            b"\x08\x08\0\0\x04\0\0\0",
            b"\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01",
        ] {
            assert_eq!(recognise(bytes), None, "{}", bytes.escape_ascii());
        }
    }
}
