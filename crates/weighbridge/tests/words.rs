//! Words to vectors and neighbours: the same from every format, and what the definition says.

mod common;

use common::{convert, format_of};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use weighbridge::codec::DType;
use weighbridge::model::{SubwordKind, Subwords};
use weighbridge::words::{evaluate, parse_words, select, to_explicit};
use weighbridge::{
    Container, Conversion, Edit, Embeddings, Encoding, Formats, Input, Options, Output, Progress,
    Status, View, open, samples,
};
use weighbridge_testkit::stored;

fn write(container: &Container, folder: &Path, name: &str, format: &str) -> PathBuf {
    let path = folder.join(name);
    let mut container = container.clone();
    container.format = format_of(format).info().id;
    let plan = format_of(format).plan(&container, &Options::default()).unwrap();
    common::write(&plan, &path);
    path
}

/// The words with rows for buckets behind them.
fn with_buckets() -> Container {
    let mut container = samples::word_embeddings();
    let subwords = Subwords::new(3, 5, SubwordKind::Buckets { exponent: 6 });
    let matrix = &container.tensors[0];
    let mut values = matrix.values_f32(0, 200).unwrap();
    values.extend((0..64 * 10).map(|i| ((i * 7919 % 997) as f32 - 500.0) / 700.0));
    let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let encoding = Encoding::Plain(DType::F32);
    container.tensors[0] = stored("embeddings", encoding, vec![20 + 64, 10], View::owned(bytes));
    container.subwords = Some(subwords);
    container
}

fn names(words: &Embeddings, word: &str, k: usize) -> Vec<String> {
    let hits = words.similar(word, k).unwrap();
    hits.iter().map(|hit| words.word(hit.row).into_owned()).collect()
}

#[test]
fn neighbours_are_those_of_the_definition() {
    let folder = tempfile::tempdir().unwrap();
    let words = Embeddings::open(write(
        &samples::word_embeddings(),
        folder.path(),
        "words.fifu",
        "finalfusion",
    ))
    .unwrap();
    assert_eq!((words.len(), words.dim()), (20, 10));
    for row in 0..words.len() {
        let word = words.word(row).into_owned();
        assert_eq!(words.find(&word), Some(row));
        let cosine = |other: usize| -> f64 {
            let (a, b) = (words.row(row).unwrap(), words.row(other).unwrap());
            let dot = |x: &[f32], y: &[f32]| -> f64 {
                x.iter().zip(y).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
            };
            dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt()
        };
        let mut expected: Vec<usize> = (0..words.len()).filter(|r| *r != row).collect();
        expected.sort_by(|a, b| cosine(*b).total_cmp(&cosine(*a)));
        let found = words.similar(&word, 7).unwrap();
        assert_eq!(found.iter().map(|h| h.row).collect::<Vec<_>>(), expected[..7]);
        assert!(found.iter().all(|h| (f64::from(h.score) - cosine(h.row)).abs() < 1e-6));
    }
    let queen = words.analogy(["man", "king", "woman"], 1).unwrap();
    assert_eq!(words.word(queen[0].row), "queen");
    assert_eq!(words.similar("truck", usize::MAX).unwrap().len(), 19);
    assert!(words.similar("truck", 0).unwrap().is_empty());
}

#[test]
fn every_format_gives_the_same_neighbours() {
    let folder = tempfile::tempdir().unwrap();
    let all = samples::word_embeddings();
    let (mut visited, mut expected) = (0, None);
    for format in Formats::builtin().iter().map(|f| f.info()) {
        let plan = format_of(format.id).plan(&all, &Options::default().with("escape", "true"));
        let Ok(plan) = plan else { continue };
        if format.is_folder || !format_of(format.id).reads() {
            continue;
        }
        let path = folder.path().join(format!("{}.x", format.id));
        common::write(&plan, &path);
        let options = Options::default().with("from", format.id).with("escape", "true");
        let words = Embeddings::new(
            &Formats::builtin().open(&Input::open(&path).unwrap(), &options).unwrap(),
        )
        .unwrap();
        // Rows without words go by their numbers.
        let of =
            |row: usize| if format.id == "npy" { row.to_string() } else { words.word(row).into() };
        let mut found = Vec::new();
        for row in [0, 6, 17] {
            let hits = words.similar(&of(row), 3).unwrap();
            found.extend(hits.iter().map(|h| h.row));
        }
        assert_eq!(&found, expected.get_or_insert_with(|| found.clone()), "{}", format.id);
        visited += 1;
    }
    assert!(visited >= 10, "{visited}");
}

#[test]
fn unknown_words_are_made_of_their_parts() {
    let folder = tempfile::tempdir().unwrap();
    let container = with_buckets();
    let path = write(&container, folder.path(), "buckets.fifu", "finalfusion");
    let words = Embeddings::open(&path).unwrap();
    assert_eq!(words.len(), 20);
    assert!(words.lookup("truck").unwrap().unwrap().known);
    let made = words.lookup("trucks").unwrap().unwrap();
    assert!(!made.known);
    let length: f32 = made.vector.iter().map(|v| v * v).sum();
    assert!((length - 1.0).abs() < 1e-5);
    let mut sum = vec![0f64; 10];
    container.subwords.as_ref().unwrap().for_each_row("trucks", &mut |row| {
        let values = container.tensors[0].values_f32((20 + row) * 10, 10).unwrap();
        sum.iter_mut().zip(values).for_each(|(s, v)| *s += f64::from(v));
    });
    let length = sum.iter().map(|v| v * v).sum::<f64>().sqrt();
    let close = |(a, b): (&f32, &f64)| (f64::from(*a) - b / length).abs() < 1e-5;
    assert!(made.vector.iter().zip(&sum).all(close));
    // Nothing is like a word that has no n-gram, and rows of buckets are no answers.
    assert!(words.lookup("").unwrap().is_none());
    assert!(words.similar("trucks", 99).unwrap().iter().all(|h| h.row < 20));
    let error = words.similar("", 3).unwrap_err().to_string();
    assert!(error.contains("no vector"), "{error}");
}

#[test]
fn explicit_subwords_make_the_same_vectors() {
    let folder = tempfile::tempdir().unwrap();
    let buckets = Embeddings::new(&with_buckets()).unwrap();
    let mut container = with_buckets();
    to_explicit(&mut container).unwrap();
    let path = write(&container, folder.path(), "explicit.fifu", "finalfusion");
    let named = Embeddings::open(&path).unwrap();
    // All n-grams of these stand in words that are known.
    for word in ["man", "weigh", "bridge", "ruck"] {
        let (a, b) = (buckets.lookup(word).unwrap(), named.lookup(word).unwrap());
        if word == "man" {
            assert_eq!(a, b);
        }
        assert_eq!(a.is_some(), b.is_some(), "{word}");
    }
    let ngrams_of = |word: &str, of: &Container| {
        let mut rows = Vec::new();
        let subwords = of.subwords.as_ref().unwrap();
        subwords.for_each_ngram(word, &mut |ngram, row| {
            rows.extend(row.map(|r| (ngram.to_owned(), r)));
        });
        rows
    };
    // Each n-gram of a known word has the row that its bucket had.
    let (before, after) = (with_buckets(), open(&path).unwrap());
    for word in before.vocabulary.as_ref().unwrap().tokens() {
        let pairs = ngrams_of(&word, &before).into_iter().zip(ngrams_of(&word, &after));
        for ((ngram, old), (same, new)) in pairs {
            assert_eq!(ngram, same);
            let row = |c: &Container, r: u64| c.tensors[0].values_f32((20 + r) * 10, 10).unwrap();
            assert_eq!(row(&before, old), row(&after, new));
        }
    }
    let SubwordKind::Explicit(ngrams) = &after.subwords.as_ref().unwrap().kind else { panic!() };
    assert!(ngrams.is_dense() && ngrams.is_ordered());
}

#[test]
fn some_words_are_kept_with_what_they_need() {
    let folder = tempfile::tempdir().unwrap();
    let input = write(&with_buckets(), folder.path(), "all.fifu", "finalfusion");
    let output = folder.path().join("some.fifu");
    let list = ["queen", "new york", "man", "queen", "nothing"].map(str::to_owned);
    let selected = select(&open(&input).unwrap(), &list).unwrap();
    assert_eq!(selected.unknown, ["nothing"]);
    let plan = format_of("finalfusion").plan(&selected.container, &Options::default()).unwrap();
    plan.write(&output, &mut Progress::none()).unwrap();
    let (all, some) = (Embeddings::open(&input).unwrap(), Embeddings::open(&output).unwrap());
    let kept: Vec<_> = (0..some.len()).map(|row| some.word(row).into_owned()).collect();
    assert_eq!(kept, ["man", "queen", "new york"]);
    for word in &kept {
        assert_eq!(all.lookup(word).unwrap(), some.lookup(word).unwrap(), "{word}");
    }
    assert!(
        !some.lookup("que").unwrap().unwrap().known
            && !some.lookup("yorks").unwrap().unwrap().known
    );
    // The lengths go with their words.
    let (before, after) = (open(&input).unwrap(), open(&output).unwrap());
    let norm =
        |c: &Container, i: usize| c.tensor("norms").unwrap().values_f32(i as u64, 1).unwrap()[0];
    assert_eq!(norm(&after, 1), norm(&before, all.find("queen").unwrap()));
}

#[test]
fn analogies_are_counted_by_section() {
    let words = Embeddings::new(&samples::word_embeddings()).unwrap();
    let text = ": family\nman king woman queen\nman king woman king\nman king woman nobody\n: none\n\n: more\nman woman king queen\n";
    let mut last = Status::default();
    let mut tell = |status: Status| {
        last = status;
        ControlFlow::Continue(())
    };
    let progress = &mut Progress::new(&mut tell);
    let found = evaluate(&words, text.as_bytes(), "questions", progress).unwrap();
    let figures: Vec<_> = found
        .sections
        .iter()
        .map(|s| (s.section.as_str(), s.score.correct, s.score.asked, s.score.skipped))
        .collect();
    assert_eq!(figures, [("family", 1, 2, 1), ("none", 0, 0, 0), ("more", 1, 1, 0)]);
    assert_eq!((found.total.accuracy, last.done, last.total), (Some(2.0 / 3.0), 4, Some(4)));
    assert_eq!(found.sections[1].score.accuracy, None);
    let bad = evaluate(&words, b": a\nman king\n", "questions", &mut Progress::none());
    let error = bad.unwrap_err().to_string();
    assert!(error.contains("questions: line 2"), "{error}");
}

#[test]
fn rows_get_words_from_a_list() {
    let folder = tempfile::tempdir().unwrap();
    let input = write(&samples::unit_vectors(), folder.path(), "rows.npy", "npy");
    let output = folder.path().join("named.fifu");
    let list = parse_words("a\nb c\n東京\nd\ne\nf\n".as_bytes(), "list").unwrap();
    convert(&input, &output, None, &Edit::new().words(list)).unwrap();
    let words = Embeddings::open(&output).unwrap();
    assert_eq!((words.find("東京"), words.find("b c"), words.len()), (Some(2), Some(1), 6));
    assert_eq!(names(&words, "a", 5).len(), 5);
    let few = Edit::new().words(["a", "b"]);
    let error = convert(&input, &output, None, &few).unwrap_err().to_string();
    assert!(error.contains("2 words") && error.contains("6 rows"), "{error}");
}

/// Text is as long as it gets; whoever asks before it is written is told the same.
#[test]
fn the_size_of_text_is_known_before_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let (words, options) = (samples::single_words(), Options::default());
    for format in ["text", "glove", "jsonl"] {
        let to = Output::new(folder.path().join(format));
        let planned = || format_of(format).plan(&words, &options).unwrap().accept_losses(true);
        let before = Conversion::new(&planned(), &to, false).unwrap();
        let plan = planned();
        plan.write(to.clone(), &mut Progress::none()).unwrap();
        let after = Conversion::new(&plan, &to, true).unwrap();
        let size = std::fs::metadata(&to.path).unwrap().len();
        assert_eq!((before.files[0].bytes, after.files[0].bytes), (size, size), "{format}");
    }
}
