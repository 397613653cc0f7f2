//! Words have the vectors that the crate `finalfusion` gives them, those of the file and others.

#[path = "../../format/tests/common/peer.rs"]
mod peer;

use finalfusion::embeddings::Embeddings;
use finalfusion::storage::Storage;
use finalfusion::vocab::Vocab;
use peer::{made, peers, quantized, vocabularies, written};
use weighbridge::{Formats, Input, Options};
use weighbridge_testkit::fixtures;

/// Some of the words that the others lack, of any length and script.
const UNKNOWN: [&str; 9] =
    ["", "y", "grainy", "rain", "Tübinger", "東京都", "weigh bridge", "manly queen", "\u{1F69B}\0"];

fn floats<'a>(values: impl IntoIterator<Item = &'a f32>) -> Vec<f64> {
    values.into_iter().map(|v| f64::from(*v)).collect()
}

/// The same vectors of words that are there and of others; returns how many words have one.
fn assert_same<V: Vocab, S: Storage>(bytes: &[u8], peer: &Embeddings<V, S>, what: &str) -> usize {
    let input = Input::from_bytes("peer.fifu", bytes.to_vec());
    let container = Formats::builtin().open(&input, &Options::default()).unwrap();
    let embeddings = weighbridge::Embeddings::new(&container).unwrap();
    let mut with_vector = 0;
    for word in peer.vocab().words().iter().map(String::as_str).chain(UNKNOWN) {
        let expected = peer.embedding(word).map(|e| floats(e.iter()));
        let found = embeddings.lookup(word).unwrap().map(|l| floats(l.vector.iter()));
        assert_eq!(found.is_some(), expected.is_some(), "{what}, {word:?}");
        if let (Some(found), Some(expected)) = (found, expected) {
            assert_eq!(found.len(), expected.len(), "{what}, {word:?}");
            let most = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(most <= 2e-6, "{what}, {word:?}: {most}");
            with_vector += 1;
        }
    }
    with_vector
}

#[test]
fn words_of_its_files() {
    for (what, vocab) in vocabularies() {
        let peer = made(vocab.clone(), None);
        let known = peer.vocab().words_len();
        let count = assert_same(&written(&peer), &peer, what);
        // Parts of words give vectors to others.
        assert_eq!(count > known, what != "simple", "{what}: {count} of {known}");
        for normalize in [false, true] {
            let peer = quantized(vocab.clone(), normalize);
            assert_same(&written(&peer), &peer, &format!("{what}, norms {normalize}"));
        }
    }
}

#[test]
fn words_of_our_files() {
    let mut visited = 0;
    for fixture in fixtures().iter().filter(|f| f.format == "finalfusion" && !f.unusual) {
        for peer in peers(&fixture.main) {
            assert_same(&fixture.main, &peer, fixture.content);
        }
        visited += 1;
    }
    assert!(visited >= 7, "{visited}");
}
