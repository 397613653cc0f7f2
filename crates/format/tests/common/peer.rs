//! Word embeddings as the crate `finalfusion` makes, writes and reads them. The tests of word lookups
//! in crates/weighbridge use this file too.

#![allow(dead_code, reason = "each test program uses some of it")]

use finalfusion::compat::fasttext::FastTextIndexer;
use finalfusion::compat::floret::FloretIndexer;
use finalfusion::embeddings::Quantize;
use finalfusion::io::WriteEmbeddings;
use finalfusion::metadata::Metadata;
use finalfusion::norms::NdNorms;
use finalfusion::prelude::{Embeddings, MmapEmbeddings, ReadEmbeddings, StorageWrap, VocabWrap};
use finalfusion::storage::{NdArray, QuantizedArray, StorageView};
use finalfusion::subword::{BucketIndexer, ExplicitIndexer, FinalfusionHashIndexer};
use finalfusion::vocab::{SimpleVocab, SubwordVocab, Vocab};
use ndarray::Array2;
use rand_chacha::ChaChaRng;
use rand_chacha::rand_core::SeedableRng;
use reductive::pq::Pq;
use std::io::{BufReader, Cursor};

pub(crate) type Peer = Embeddings<VocabWrap, StorageWrap>;

const WORDS: [&str; 7] = ["grain", "grains", "a b", "Tübingen", "東京", "x", "weighbridge"];
const DIM: usize = 6;

pub(crate) fn words() -> Vec<String> {
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
pub(crate) fn made<V: Vocab>(vocab: V, metadata: Option<Metadata>) -> Embeddings<V, NdArray> {
    let count = vocab.words_len();
    let storage = NdArray::new(matrix(vocab.vocab_len(), count));
    let norms = NdNorms::new((0..count).map(|i| 0.5 + i as f32 / 3.0).collect::<Vec<_>>());
    Embeddings::new(metadata, vocab, storage, norms)
}

pub(crate) fn bucket_vocab() -> SubwordVocab<FinalfusionHashIndexer> {
    SubwordVocab::new(words(), 2, 5, FinalfusionHashIndexer::new(4))
}

/// One of every kind of vocabulary.
pub(crate) fn vocabularies() -> Vec<(&'static str, VocabWrap)> {
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

pub(crate) fn written(embeddings: &impl WriteEmbeddings) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    embeddings.write_embeddings(&mut out).unwrap();
    let bytes = out.into_inner();
    assert_eq!(embeddings.write_embeddings_len(0), bytes.len() as u64);
    bytes
}

/// As the crate reads a file, and as it maps one.
pub(crate) fn peers(bytes: &[u8]) -> [Peer; 2] {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let mut mapped = BufReader::new(std::fs::File::open(file.path()).unwrap());
    [
        Peer::read_embeddings(&mut Cursor::new(bytes)).unwrap(),
        Peer::mmap_embeddings(&mut mapped).unwrap(),
    ]
}

/// The same embeddings with their rows as product codes; lengths are kept apart if asked for.
pub(crate) fn quantized(
    vocab: VocabWrap,
    normalize: bool,
) -> Embeddings<VocabWrap, QuantizedArray> {
    let plain = made(vocab, None);
    let bits = if plain.storage().view().nrows() < 16 { 2 } else { 4 };
    let rng = ChaChaRng::seed_from_u64(7);
    plain.quantize_using::<Pq<f32>, _>(3, bits, 5, 1, normalize, rng).unwrap()
}
