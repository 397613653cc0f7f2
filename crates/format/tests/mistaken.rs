//! Files in a model directory that are not what they should be are named by what they are.

use weighbridge_format::{Error, Formats, Options};
use weighbridge_testkit::{Fixture, fixtures};

const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1\noid sha256:\
4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 90868376\n";

fn said(fixture: &Fixture) -> String {
    match Formats::builtin().open(&fixture.input(), &Options::default()) {
        Err(error @ Error::Malformed { .. }) => error.to_string(),
        other => panic!("{}: {other:?}", fixture.name),
    }
}

/// A clone without Git LFS has pointers in place of large files, or of all of them.
#[test]
fn pointers_of_git_lfs_are_named() {
    let mut visited = 0;
    for fixture in fixtures().iter().filter(|f| f.format == "hf" || f.content.contains("shard")) {
        for (i, (name, _)) in fixture.beside.iter().enumerate() {
            // What says nothing about the model is left out.
            let needed = name.ends_with(".safetensors")
                || ["config.json", "modules.json", "tokenizer.json", "vocab.txt"]
                    .contains(&&**name);
            if !needed {
                continue;
            }
            let said = said(&fixture.with_beside(i, POINTER.to_vec()));
            for part in ["a Git LFS pointer, not the file itself", "git lfs pull", name] {
                assert!(said.contains(part), "{name}: {said}");
            }
            visited += 1;
        }
    }
    assert!(visited >= 4, "{visited}");
}

/// The weights of a model in another form, or a pointer to them.
#[test]
fn weights_that_are_no_safetensors() {
    let model = fixtures().into_iter().find(|f| f.format == "hf").unwrap();
    let weights = model.beside.iter().position(|(n, _)| n == "model.safetensors").unwrap();
    for (bytes, part) in [
        (POINTER, "a Git LFS pointer"),
        (&b"<!DOCTYPE html><html>"[..], "an HTML page"),
        (b"\x80\x02}q\0(X\x01\0\0\0w", "a Python pickle"),
        (b"PK\x03\x04\0\0\x08\x08\0\0\0", "a zip archive"),
    ] {
        let said = said(&model.with_beside(weights, bytes.to_vec()));
        assert!(said.contains(part) && said.contains("model.safetensors"), "{said}");
    }
    for name in ["pytorch_model.bin", "pytorch_model-00001-of-00002.bin"] {
        let mut other = model.with_beside(weights, POINTER.to_vec());
        other.beside[weights].0 = name.to_owned();
        let said = said(&other);
        assert!(said.contains("a Git LFS pointer") && said.contains(name), "{said}");
        other.beside[weights].1 = b"PK\x03\x04".to_vec();
        let said = self::said(&other);
        assert!(said.contains("a Python pickle"), "{said}");
    }
}

/// A format that was asked for by name is not forced on a file that is known to be another.
#[test]
fn asking_for_a_format_does_not_hide_what_a_file_is() {
    for format in ["glove", "word2vec", "npy", "safetensors", "fasttext", "floret"] {
        let input = weighbridge_format::Input::from_bytes("x.bin", POINTER.to_vec());
        let options = Options::default().with("from", format);
        let error = Formats::builtin().open(&input, &options).unwrap_err().to_string();
        assert!(error.contains("Git LFS"), "{format}: {error}");
    }
}

/// A byte order mark is no part of the first token, and is named where JSON can't have it.
#[test]
fn marks_in_files_of_a_model() {
    let model = fixtures().into_iter().find(|f| f.format == "hf").unwrap();
    let marked = |name: &str| {
        let i = model.beside.iter().position(|(n, _)| n == name).unwrap();
        model.with_beside(i, [b"\xEF\xBB\xBF", model.beside[i].1.as_slice()].concat())
    };
    let open =
        |fixture: &Fixture| Formats::builtin().open(&fixture.input(), &Options::default()).unwrap();
    let (plain, list) = (open(&model), open(&marked("vocab.txt")));
    assert!(list.vocabulary.unwrap().same_as(&plain.vocabulary.unwrap()));
    let notes: Vec<_> = list.notes.iter().map(ToString::to_string).collect();
    assert!(
        notes.iter().any(|n| n.contains("vocab.txt begins with a byte order mark")),
        "{notes:?}"
    );
    let said = said(&marked("config.json"));
    assert!(said.contains("config.json") && said.contains("a byte order mark"), "{said}");
}
