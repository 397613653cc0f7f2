//! The other formats of the crate `finalfusion`: word2vec, text, fastText and floret, both ways.

mod common;

use common::format_of;
use finalfusion::compat::fasttext::FastTextIndexer;
use finalfusion::compat::floret::{FloretIndexer, ReadFloretText, WriteFloretText};
use finalfusion::compat::text::{ReadText, ReadTextDims, WriteText, WriteTextDims};
use finalfusion::compat::word2vec::{ReadWord2Vec, WriteWord2Vec};
use finalfusion::io::WriteEmbeddings;
use finalfusion::norms::NdNorms;
use finalfusion::prelude::{Embeddings, ReadFastText};
use finalfusion::storage::NdArray;
use finalfusion::subword::BucketIndexer;
use finalfusion::vocab::{SimpleVocab, SubwordVocab, Vocab};
use ndarray::Array2;
use std::io::Cursor;
use weighbridge::model::{MATRIX, NORMS};
use weighbridge::sink::to_memory;
use weighbridge::{Container, Formats, Input, Options};
use weighbridge_testkit::values;

const WORDS: [&str; 5] = ["grain", "grains", "Tübingen", "東京", "weighbridge"];
const UNKNOWN: [&str; 4] = ["grainy", "Tübinger", "東京都", "xy"];
const DIM: usize = 5;

/// Rows of unit length, as the crate wants them, and the lengths that they had.
fn made<V: Vocab>(vocab: V) -> Embeddings<V, NdArray> {
    let count = vocab.words_len();
    let value = |(r, c): (usize, usize)| ((r * 29 + c * 13) as f32 * 0.9).sin();
    let mut matrix = Array2::from_shape_fn((vocab.vocab_len(), DIM), value);
    for mut row in matrix.outer_iter_mut().take(count) {
        let length = row.dot(&row).sqrt();
        row /= length;
    }
    let norms = NdNorms::new((0..count).map(|i| 1.5 + i as f32).collect::<Vec<_>>());
    Embeddings::new(None, vocab, NdArray::new(matrix), norms)
}

fn simple() -> Embeddings<SimpleVocab, NdArray> {
    made(SimpleVocab::new(WORDS.map(str::to_owned)))
}

fn ours(bytes: Vec<u8>, format: &str) -> Container {
    let options = Options::default();
    let container = Formats::builtin().open(&Input::from_bytes("peer", bytes), &options).unwrap();
    assert_eq!(container.format, format);
    container
}

/// Read as a format, and written as another.
fn converted(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let container = ours(bytes.to_vec(), from);
    let plan = format_of(to).plan(&container, &Options::default()).unwrap();
    assert!(plan.report.losses.is_empty(), "{:?}", plan.report.losses);
    to_memory(&plan).unwrap().remove(0).1
}

fn floats<'a>(values: impl IntoIterator<Item = &'a f32>) -> Vec<f64> {
    values.into_iter().map(|v| f64::from(*v)).collect()
}

fn assert_close(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let most = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(most < 2e-6, "{what}: {most}");
}

/// A finalfusion file of ours has the crate's rows and norms.
fn assert_same<V: Vocab>(fifu: Vec<u8>, peer: &Embeddings<V, NdArray>, what: &str) {
    let container = ours(fifu, "finalfusion");
    let rows: Vec<f64> = peer.iter().flat_map(|(_, row)| floats(row.iter())).collect();
    let found = values(container.tensor(MATRIX).unwrap());
    assert_close(&found[..rows.len()], &rows, what);
    let norms = peer.norms().filter(|n| !n.is_empty()).map(|n| floats(n.iter()));
    let found = container.tensor(NORMS).map(values);
    assert_eq!(found.is_some(), norms.is_some(), "{what}");
    assert_close(&found.unwrap_or_default(), &norms.unwrap_or_default(), what);
    let embeddings = weighbridge::Embeddings::new(&container).unwrap();
    for word in WORDS.into_iter().chain(UNKNOWN) {
        let (found, expected) = (embeddings.lookup(word).unwrap(), peer.embedding(word));
        assert_eq!(found.is_some(), expected.is_some(), "{what}, {word}");
        if let (Some(found), Some(expected)) = (found, expected) {
            assert_close(&floats(found.vector.iter()), &floats(expected.iter()), what);
        }
    }
}

#[test]
fn words_and_rows_both_ways() {
    let peer = simple();
    let (mut binary, mut text, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    peer.write_word2vec_binary(&mut binary, true).unwrap();
    peer.write_text_dims(&mut text, true).unwrap();
    peer.write_text(&mut bare, true).unwrap();
    for (format, bytes) in [("word2vec", binary), ("text", text), ("glove", bare)] {
        let fifu = converted(&bytes, format, "finalfusion");
        assert_same(fifu.clone(), &peer, format);
        let back = converted(&fifu, "finalfusion", format);
        let mut back = Cursor::new(back);
        let read: Embeddings<SimpleVocab, NdArray> = match format {
            "word2vec" => Embeddings::read_word2vec_binary(&mut back).unwrap(),
            "text" => Embeddings::read_text_dims(&mut back).unwrap(),
            _ => Embeddings::read_text(&mut back).unwrap(),
        };
        assert_same(fifu, &read, format);
    }
}

#[test]
fn fasttext_is_read_alike() {
    let words = WORDS.map(str::to_owned);
    let peer = made(SubwordVocab::new(words, 3, 6, FastTextIndexer::new(17)));
    let mut fifu = Cursor::new(Vec::new());
    peer.write_embeddings(&mut fifu).unwrap();
    let fifu = fifu.into_inner();
    assert_same(fifu.clone(), &peer, "fastText");
    let model = converted(&fifu, "finalfusion", "fasttext");
    let read = Embeddings::read_fasttext(&mut Cursor::new(&model)).unwrap();
    assert_same(fifu, &read, "fastText, read by the crate");
    assert_same(converted(&model, "fasttext", "finalfusion"), &read, "fastText, read by us");
}

#[test]
fn floret_both_ways() {
    let indexer = FloretIndexer::new(11, 3, 2_166_136_261);
    let vocab = SubwordVocab::new_with_boundaries(Vec::new(), 2, 4, indexer, "[", "]");
    let peer = made(vocab);
    let mut bytes = Vec::new();
    peer.write_floret_text(&mut bytes).unwrap();
    let fifu = converted(&bytes, "floret", "finalfusion");
    assert_same(fifu.clone(), &peer, "floret");
    let back = converted(&fifu, "finalfusion", "floret");
    let read = Embeddings::read_floret_text(&mut Cursor::new(back)).unwrap();
    assert_same(fifu, &read, "floret again");
}
