//! The crate `finalfusion`: what it writes is read to the same vectors and written again byte for
//! byte; what we write it reads, mapped or not, and writes again byte for byte.

mod common;

use common::format_of;
use finalfusion::compat::fasttext::FastTextIndexer;
use finalfusion::compat::floret::FloretIndexer;
use finalfusion::embeddings::Quantize;
use finalfusion::io::{ReadMetadata, WriteEmbeddings};
use finalfusion::metadata::Metadata;
use finalfusion::norms::NdNorms;
use finalfusion::prelude::{Embeddings, MmapEmbeddings, ReadEmbeddings, StorageWrap, VocabWrap};
use finalfusion::storage::{NdArray, Storage, StorageView};
use finalfusion::subword::{BucketIndexer, ExplicitIndexer, FinalfusionHashIndexer};
use finalfusion::vocab::{SimpleVocab, SubwordVocab, Vocab};
use ndarray::Array2;
use rand_chacha::ChaChaRng;
use rand_chacha::rand_core::SeedableRng;
use reductive::pq::Pq;
use std::io::{BufReader, Cursor};
use weighbridge::model::{MATRIX, NORMS, Value};
use weighbridge::sink::to_memory;
use weighbridge::{Container, Formats, Input, Options, samples};
use weighbridge_testkit::{Fixture, fixtures, stored, values};

type Peer = Embeddings<VocabWrap, StorageWrap>;

const WORDS: [&str; 7] = ["grain", "grains", "a b", "Tübingen", "東京", "x", "weighbridge"];
/// Some of the words that the others lack, of any length and script.
const UNKNOWN: [&str; 9] =
    ["", "y", "grainy", "rain", "Tübinger", "東京都", "weigh bridge", "manly queen", "\u{1F69B}\0"];
const DIM: usize = 6;

fn words() -> Vec<String> {
    WORDS.map(str::to_owned).into()
}

/// Values that look irregular; the first rows have unit length.
fn matrix(rows: usize, unit: usize) -> Array2<f32> {
    let value = |(r, c): (usize, usize)| ((r * 31 + c * 17 + r * c) as f32 * 0.7).sin();
    let mut matrix = Array2::from_shape_fn((rows, DIM), value);
    for mut row in matrix.outer_iter_mut().take(unit) {
        let length = row.dot(&row).sqrt();
        row /= length;
    }
    matrix
}

/// Embeddings as the crate makes them: with norms, and metadata if given.
fn made<V: Vocab>(vocab: V, metadata: Option<Metadata>) -> Embeddings<V, NdArray> {
    let count = vocab.words_len();
    let storage = NdArray::new(matrix(vocab.vocab_len(), count));
    let norms = NdNorms::new((0..count).map(|i| 0.5 + i as f32 / 3.0).collect::<Vec<_>>());
    Embeddings::new(metadata, vocab, storage, norms)
}

fn bucket_vocab() -> SubwordVocab<FinalfusionHashIndexer> {
    SubwordVocab::new(words(), 2, 5, FinalfusionHashIndexer::new(4))
}

/// One of every kind of vocabulary.
fn vocabularies() -> Vec<(&'static str, VocabWrap)> {
    let pairs = [("<gr", 9), ("gra", 4), ("ain", 9), ("東京>", 7), ("rain", 4), ("bri", 100)];
    let pairs = pairs.map(|(ngram, index)| (ngram.to_owned(), index));
    let (indexer, _) = ExplicitIndexer::new_with_indices(pairs);
    let floret = |hashes, bow: &str, eow: &str| {
        let indexer = FloretIndexer::new(23, hashes, 2_166_136_261);
        SubwordVocab::new_with_boundaries(Vec::new(), 2, 4, indexer, bow, eow)
    };
    vec![
        ("simple", SimpleVocab::new(words()).into()),
        ("bucket", bucket_vocab().into()),
        ("one character", SubwordVocab::new(words(), 1, 30, FinalfusionHashIndexer::new(0)).into()),
        ("fastText", SubwordVocab::new(words(), 3, 6, FastTextIndexer::new(13)).into()),
        ("explicit", SubwordVocab::new(words(), 3, 4, indexer).into()),
        ("made explicit", bucket_vocab().to_explicit().unwrap().0.into()),
        ("floret", floret(2, "<", ">").into()),
        ("floret with brackets", floret(4, "[東", "").into()),
    ]
}

fn written(embeddings: &impl WriteEmbeddings) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    embeddings.write_embeddings(&mut out).unwrap();
    let bytes = out.into_inner();
    assert_eq!(embeddings.write_embeddings_len(0), bytes.len() as u64);
    bytes
}

/// As the crate reads a file, and as it maps one.
fn peers(bytes: &[u8]) -> [Peer; 2] {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let mut mapped = BufReader::new(std::fs::File::open(file.path()).unwrap());
    [
        Peer::read_embeddings(&mut Cursor::new(bytes)).unwrap(),
        Peer::mmap_embeddings(&mut mapped).unwrap(),
    ]
}

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

/// The same words, rows, norms and vectors, of words that are there and of others.
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
    let embeddings = weighbridge::Embeddings::new(container).unwrap();
    for word in list.iter().map(String::as_str).chain(UNKNOWN) {
        let expected = peer.embedding(word);
        let expected = expected.map(|e| e.iter().map(|v| f64::from(*v)).collect::<Vec<_>>());
        let found = embeddings.lookup(word);
        let found = found.map(|l| l.vector.iter().map(|v| f64::from(*v)).collect::<Vec<_>>());
        assert_eq!(found.is_some(), expected.is_some(), "{what}, {word:?}");
        if let (Some(found), Some(expected)) = (found, expected) {
            assert_close(&found, &expected, 2e-6, &format!("{what}, {word:?}"));
        }
    }
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
            let rng = ChaChaRng::seed_from_u64(7);
            let what = format!("{what}, norms {normalize}");
            let plain = made(vocab.clone(), None);
            let bits = if plain.storage().view().nrows() < 16 { 2 } else { 4 };
            let peer = plain.quantize_using::<Pq<f32>, _>(3, bits, 5, 1, normalize, rng).unwrap();
            assert_read(&peer, &written(&peer), &what);
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
        ("common.dims", Value::Number(weighbridge::codec::DType::I64, 6)),
        ("common.rate", Value::Number(weighbridge::codec::DType::F64, 0.05f64.to_bits())),
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
    let view = weighbridge::View::owned(bytes);
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
