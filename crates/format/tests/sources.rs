//! The same results wherever the bytes of a file come from, and errors where they don't come.

use std::sync::Arc;
use weighbridge_format::sink::MemoryFile;
use weighbridge_format::{Container, Error, ErrorKind, Formats, Input, Options};
use weighbridge_testkit::{Fixture, Ranges, Reads, assert_snapshot, dated, fixtures, values};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// Everything that can be said of a file: what is in it, the rules that it breaks, and the bytes
/// that it is written as again.
#[derive(Debug, PartialEq)]
struct Told {
    tensors: Vec<(String, Vec<u64>, Vec<u64>)>,
    findings: String,
    facts: String,
    written: Vec<MemoryFile>,
}

fn tell(input: &Input) -> Result<Told, Error> {
    let options = Options::default();
    let (format, findings) = Formats::builtin().check(input, &options, false)?;
    let container = Formats::builtin().open(input, &options)?;
    let mut tensors = Vec::new();
    for tensor in &container.tensors {
        let mut bits = Vec::new();
        tensor.for_each_block(|block| bits.extend(block.iter().map(|v| v.to_bits())))?;
        tensors.push((tensor.name.clone(), tensor.shape.clone(), bits));
    }
    let target = if format.writes() { format } else { Formats::builtin().find("npy").unwrap() };
    // What has no date of its own would get that of the second in which it is written.
    let plan = target.plan(&container, &dated())?.accept_losses(true);
    Ok(Told {
        tensors,
        findings: format!("{:?}", findings.list()),
        facts: facts(&container),
        written: plan.to_files()?,
    })
}

fn facts(c: &Container) -> String {
    let words: Vec<_> = c.vocabulary.iter().flat_map(|v| v.tokens()).collect();
    let metadata: Vec<_> = c.metadata.iter().map(|(k, v)| (k, v.to_plain_text())).collect();
    let (layout, regions) = (&c.layout, c.regions.list());
    format!("{layout} {metadata:?} {words:?} {:?} {:?} {regions:?}", c.notes, c.ignored)
}

fn about(fixture: &Fixture) -> String {
    format!("{} {}", fixture.format, fixture.content)
}

#[test]
fn whole_in_pieces_or_byte_by_byte_is_the_same() {
    let mut visited = Vec::new();
    for fixture in fixtures() {
        let expected =
            tell(&fixture.input()).unwrap_or_else(|e| panic!("{}: {e}", about(&fixture)));
        for most in [usize::MAX, 4096, 7, 1] {
            let input = fixture.input_from(|bytes| Ranges::new(bytes).at_most(most));
            let found = tell(&input).unwrap_or_else(|e| panic!("{} {most}: {e}", about(&fixture)));
            assert!(found == expected, "{} {most}", about(&fixture));
        }
        visited.push(about(&fixture));
    }
    assert_snapshot(HERE, "sources", visited);
}

/// Whichever read it is that fails, the error arrives: nothing is made of what could not be read.
#[test]
fn a_read_that_fails_is_an_error() {
    let mut failures = 0;
    for fixture in fixtures() {
        let reads = Arc::new(Reads::default());
        tell(&fixture.input_from(|bytes| Ranges::new(bytes).counted(&reads))).unwrap();
        let all = reads.calls();
        // Some walks have thousands of reads: the first ones, and others spread over the rest.
        let step = usize::try_from((all / 60).max(1)).unwrap();
        for read in (0..all.min(40)).chain((40..all).step_by(step)) {
            let reads = Arc::new(Reads::default());
            let ranges = |bytes| Ranges::new(bytes).counted(&reads).failing_at(read);
            match tell(&fixture.input_from(ranges)) {
                Err(error) if error.kind() == ErrorKind::Io => failures += 1,
                Err(error) => panic!("{}, read {read} of {all}: {error:?}", about(&fixture)),
                Ok(_) => panic!("{}, read {read} of {all} failed unnoticed", about(&fixture)),
            }
        }
    }
    assert!(failures > 500, "{failures}");
}

/// A model of 90 MB is opened without reading its weights.
#[test]
fn opening_a_model_reads_little() {
    let Some(folder) = weighbridge_testkit::data::minilm() else { return };
    let weights = std::fs::read(folder.join("model.safetensors")).unwrap();
    let beside = ["config.json", "tokenizer.json", "vocab.txt", "tokenizer_config.json"];
    let beside = beside
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), std::fs::read(folder.join(name)).ok()?)));
    let mut files: Vec<_> = beside.collect();
    files.push(("model.safetensors".to_owned(), weights.clone()));
    let mut input = Input::in_memory("all-MiniLM-L6-v2", Vec::new(), files);
    input.is_folder = true;
    let options = dated();
    let model = Formats::builtin().open(&input, &Options::default()).unwrap();
    let written = |id: &str| {
        let format = Formats::builtin().find(id).unwrap();
        format.plan(&model, &options).unwrap().accept_losses(true).to_bytes().unwrap()
    };
    for (name, bytes) in [
        ("model.safetensors", weights),
        ("model.weights", written("embd")),
        ("model.mcf", written("mcf")),
    ] {
        assert!(bytes.len() > 80_000_000, "{name}");
        let reads = Arc::new(Reads::default());
        let source = Ranges::new(bytes).counted(&reads).source();
        let opened =
            Formats::builtin().open(&Input::from_source(name, source), &Options::default());
        let opened = opened.unwrap();
        assert!(opened.tensors.len() > 100, "{name}");
        assert!(reads.bytes() < 2_000_000, "{name}: {} bytes read", reads.bytes());
        // A tensor's values are read when they are asked for, and no others.
        let (before, tensor) = (reads.bytes(), &opened.tensors[3]);
        assert!(!values(tensor).is_empty());
        assert_eq!(reads.bytes() - before, tensor.stored_len().unwrap(), "{name}");
    }
}

#[test]
#[cfg(feature = "fs")]
fn a_file_that_changes_after_it_was_opened_is_an_error() {
    use weighbridge_format::source::Access;
    let mut visited = 0;
    for fixture in fixtures().into_iter().filter(|f| !f.is_folder && f.main.len() > 16) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(&fixture.name);
        for (name, bytes) in &fixture.beside {
            std::fs::write(folder.path().join(name), bytes).unwrap();
        }
        std::fs::write(&path, &fixture.main).unwrap();
        let input = Input::open_with(&path, Access::Reads).unwrap();
        let container = Formats::builtin().open(&input, &Options::default()).unwrap();
        // Texts are parsed into memory: nothing is left to be read.
        if container.tensors.iter().all(|t| t.view().is_none_or(|v| v.resident().is_some())) {
            continue;
        }
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_len(fixture.main.len() as u64 - 1).unwrap();
        let read = container.tensors.iter().try_for_each(|t| t.for_each_block(|_| {}));
        assert!(matches!(read, Err(Error::Changed { .. })), "{}: {read:?}", about(&fixture));
        visited += 1;
    }
    assert!(visited > 20, "{visited}");
}

/// Words are read, vectors are not.
#[test]
fn opening_word_vectors_reads_the_words() {
    let words: Vec<String> = (0..5000).map(|i| format!("word{i}")).collect();
    let values = (0..5000 * 300).map(|i| (i % 97) as f32 / 97.0).collect();
    let container = Container::builder().rows(300, values);
    let container = container.words(words.iter().map(String::as_str)).build().unwrap();
    let format = Formats::builtin().find("finalfusion").unwrap();
    let bytes = format.plan(&container, &Options::default()).unwrap().to_bytes().unwrap();
    let (reads, size) = (Arc::new(Reads::default()), bytes.len() as u64);
    let source = Ranges::new(bytes).counted(&reads).source();
    let opened =
        Formats::builtin().open(&Input::from_source("x.fifu", source), &Options::default());
    assert_eq!(opened.unwrap().vocabulary.unwrap().token(4999).unwrap(), "word4999");
    assert!(size > 6_000_000 && reads.bytes() < 400_000, "{} of {size}", reads.bytes());
}

/// A column-major array is read into memory; where its bytes are in the file stays known.
#[test]
fn findings_name_the_bytes_of_the_file() {
    let header = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}";
    let mut bytes = b"\x93NUMPY\x01\0".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend([0; 20]);
    bytes.extend(f32::NAN.to_le_bytes());
    let start = bytes.len() as u64 - 24;
    for source in [Ranges::new(bytes.clone()).source(), weighbridge_format::Source::from_vec(bytes)]
    {
        let input = Input::from_source("x.npy", source);
        let (_, findings) = Formats::builtin().check(&input, &Options::default(), false).unwrap();
        let [finding] = findings.list() else { panic!("{findings:?}") };
        assert_eq!((finding.start, finding.end), (start, start + 24));
    }
}

/// Tensors of two shards may stand at the same places of their files.
#[test]
fn every_shard_is_looked_at() {
    let shard = |name: &str, value: f32| {
        let container = Container::builder().values(name, &[2], vec![value, 1.0]).build().unwrap();
        let format = Formats::builtin().find("safetensors").unwrap();
        format.plan(&container, &Options::default()).unwrap().to_bytes().unwrap()
    };
    let index = r#"{"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}"#;
    let beside = vec![
        ("1.safetensors".to_owned(), shard("a", 0.0)),
        ("2.safetensors".to_owned(), shard("b", f32::NAN)),
    ];
    let name = "model.safetensors.index.json";
    let input = Input::in_memory(name, index.as_bytes().to_vec(), beside);
    let (_, findings) = Formats::builtin().check(&input, &Options::default(), false).unwrap();
    assert!(findings.list().iter().any(|f| f.field.contains("\"b\"")), "{findings:?}");
}
