//! The crate `finalfusion`: what it writes is read to the same vectors and written again byte for
//! byte; what we write it reads, mapped or not, and writes again byte for byte.

mod common;
#[path = "common/peer.rs"]
mod peer;

use common::format_of;
use finalfusion::embeddings::Embeddings;
use finalfusion::io::ReadMetadata;
use finalfusion::metadata::Metadata;
use finalfusion::storage::Storage;
use finalfusion::vocab::{SimpleVocab, Vocab};
use peer::{made, peers, quantized, vocabularies, words, written};
use std::io::Cursor;
use weighbridge_format::model::{MATRIX, NORMS, Value};
use weighbridge_format::sink::to_memory;
use weighbridge_format::{Container, Formats, Input, Options, samples};
use weighbridge_testkit::{Fixture, fixtures, stored, values};

fn ours(bytes: &[u8]) -> Container {
    Formats::builtin()
        .open(&Input::from_bytes("peer.fifu", bytes.to_vec()), &Options::default())
        .unwrap()
}

/// A container as a format writes it.
fn as_format(container: &Container, format: &str) -> Vec<u8> {
    let plan = format_of(format).plan(container, &Options::default()).unwrap();
    assert!(plan.report.losses.is_empty(), "{:?}", plan.report.losses);
    to_memory(&plan).unwrap().remove(0).1
}

fn assert_close(found: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let most = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(most <= tolerance, "{what}: {most}");
}

/// The same words, rows and norms.
fn assert_same<V: Vocab, S: Storage>(
    container: &Container,
    peer: &Embeddings<V, S>,
    tolerance: f64,
    what: &str,
) {
    let list: Vec<String> = container
        .vocabulary
        .as_ref()
        .map(|v| v.tokens().map(|t| t.into_owned()).collect())
        .unwrap_or_default();
    assert_eq!(list, peer.vocab().words(), "{what}");
    let tensor = container.tensor(MATRIX).unwrap();
    let (rows, dim) = peer.storage().shape();
    assert_eq!(tensor.shape, [rows as u64, dim as u64], "{what}");
    for (row, found) in values(tensor).chunks(dim).enumerate() {
        let expected = peer.storage().embedding(row);
        let expected: Vec<_> = expected.iter().map(|v| f64::from(*v)).collect();
        assert_close(found, &expected, tolerance, &format!("{what}, row {row}"));
    }
    let norms = peer.norms().map(|n| n.iter().map(|v| f64::from(*v)).collect::<Vec<_>>());
    assert_eq!(container.tensor(NORMS).map(values), norms, "{what}");
}

/// A file of the crate is sound, holds the same, and comes back byte for byte.
fn assert_read(peer: &Embeddings<impl Vocab, impl Storage>, bytes: &[u8], what: &str) {
    let input = Input::from_bytes("peer.fifu", bytes.to_vec());
    let (_, findings) = Formats::builtin().check(&input, &Options::default(), false).unwrap();
    assert!(findings.list().is_empty(), "{what}: {:?}", findings.list());
    let container = ours(bytes);
    assert_same(&container, peer, 0.0, what);
    assert!(as_format(&container, "finalfusion") == bytes, "{what}: other bytes");
    let carried = as_format(&container, "safetensors");
    let carried = Input::from_bytes("carried.safetensors", carried);
    let carried = Formats::builtin().open(&carried, &Options::default()).unwrap();
    assert!(as_format(&carried, "finalfusion") == bytes, "{what}: other bytes by safetensors");
}

#[test]
fn its_vocabularies_are_read_and_written_again() {
    for (what, vocab) in vocabularies() {
        let peer = made(vocab, None);
        assert_read(&peer, &written(&peer), what);
        // The crate makes none without norms, but it keeps what it reads.
        let mut without = ours(&written(&peer));
        without.tensors.retain(|t| t.name != NORMS);
        let bytes = as_format(&without, "finalfusion");
        for peer in peers(&bytes) {
            assert!(peer.norms().is_none());
            assert_read(&peer, &bytes, &format!("{what} without norms"));
        }
    }
}

#[test]
fn its_quantized_matrices_are_read_and_written_again() {
    for (what, vocab) in vocabularies() {
        for normalize in [false, true] {
            let peer = quantized(vocab.clone(), normalize);
            assert_read(&peer, &written(&peer), &format!("{what}, norms {normalize}"));
        }
    }
}

#[test]
fn its_metadata_is_read_and_written_again() {
    let text = "title = \"wörds\"\n[common]\ndims = 6\nrate = 0.05\nfast = true\n[common.deep]\nlist = [1, 2]\n";
    let mut container = ours(&written(&made(SimpleVocab::new(words()), None)));
    container.dialect = serde_json::from_value(serde_json::json!({ "toml": text })).unwrap();
    let values = [
        ("title", Value::Text("wörds".to_owned())),
        ("common.dims", Value::Number(weighbridge_codec::DType::I64, 6)),
        ("common.rate", Value::Number(weighbridge_codec::DType::F64, 0.05f64.to_bits())),
        ("common.fast", Value::Bool(true)),
        ("common.deep.list", Value::Text("[1, 2]".to_owned())),
    ];
    container.metadata = values.map(|(name, value)| (name.to_owned(), value)).into();
    let bytes = as_format(&container, "finalfusion");
    let metadata = Option::<Metadata>::read_metadata(&mut Cursor::new(&bytes)).unwrap().unwrap();
    assert_eq!(metadata["common"]["deep"]["list"][1].as_integer(), Some(2));

    let peer = made(SimpleVocab::new(words()), Some(metadata));
    let again = written(&peer);
    assert_read(&peer, &again, "metadata");
    let sorted = |container: &Container| {
        let pair =
            |(name, value): &(String, Value)| (name.clone(), serde_json::to_string(value).unwrap());
        let mut list: Vec<_> = container.metadata.iter().map(pair).collect();
        list.sort();
        list
    };
    assert_eq!(sorted(&ours(&again)), sorted(&container));
}

/// Everything that we write in the usual dialect: the crate sees the same, and would write the same.
#[test]
fn ours_are_read_and_written_again_by_it() {
    let ours_of = |f: &Fixture| f.format == "finalfusion" && !f.unusual;
    let list: Vec<_> = fixtures().into_iter().filter(ours_of).collect();
    let contents: Vec<_> = list.iter().map(|f| f.content).collect();
    for wanted in
        ["words", "buckets", "fasttext", "explicit", "floret", "product", "rotated product"]
    {
        assert!(contents.contains(&wanted), "{wanted} of {contents:?}");
    }
    for fixture in list {
        let container = ours(&fixture.main);
        // A rotation adds up products, in an order of one's own.
        let tolerance = if fixture.content.starts_with("rotated") { 1e-6 } else { 0.0 };
        for mut peer in peers(&fixture.main) {
            assert_same(&container, &peer, tolerance, fixture.content);
            let mut expected = fixture.main.clone();
            if container.metadata.len() > 1 {
                // It sorts them.
                peer.set_metadata(None);
                let (metadata, dialect) = Default::default();
                let without = Container { metadata, dialect, ..container.clone() };
                expected = as_format(&without, "finalfusion");
            }
            assert!(written(&peer) == expected, "{}: other bytes", fixture.content);
        }
    }
}

/// Rows of another format have unit length there, as the crate wants them, and the lengths apart.
#[test]
fn converted_rows_have_the_lengths_that_they_had() {
    let mut container = samples::word_embeddings();
    container.tensors.retain(|t| t.name == MATRIX);
    let original: Vec<f64> = values(&container.tensors[0]).iter().map(|v| v * 3.0).collect();
    let bytes = original.iter().flat_map(|v| (*v as f32).to_le_bytes()).collect();
    let (encoding, shape) =
        (container.tensors[0].encoding.clone(), container.tensors[0].shape.clone());
    let view = weighbridge_format::View::owned(bytes);
    container.tensors[0] = stored(MATRIX, encoding, shape, view);
    container.format = "safetensors";
    for peer in peers(&as_format(&container, "finalfusion")) {
        assert_eq!(peer.len(), 20);
        for ((_, found), row) in peer.iter_with_norms().zip(original.chunks(10)) {
            let length = found.embedding.dot(&found.embedding).sqrt();
            assert!((length - 1.0).abs() < 1e-6 && (found.norm - 3.0).abs() < 1e-5);
            let whole: Vec<_> = found.into_unnormalized().iter().map(|v| f64::from(*v)).collect();
            assert_close(&whole, row, 1e-5, "a row");
        }
    }
}
