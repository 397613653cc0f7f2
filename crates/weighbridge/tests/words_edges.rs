//! Word embeddings in odd shapes: nothing is taken for what it is not, and nothing goes silently.

mod common;

use common::format_of;
use std::path::{Path, PathBuf};
use weighbridge::codec::DType;
use weighbridge::model::{MATRIX, NORMS, Subject};
use weighbridge::plan::Report;
use weighbridge::quantize::{Method, Quantization, QuantizeSettings};
use weighbridge::words::select;
use weighbridge::{
    Container, Edit, Embeddings, Encoding, Formats, Options, Progress, Tensor, View, Vocabulary,
    open, samples,
};
use weighbridge_testkit::stored;

fn tensor(name: &str, shape: Vec<u64>, values: &[f32]) -> Tensor {
    let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    stored(name, Encoding::Plain(DType::F32), shape, View::owned(bytes))
}

fn write(container: &Container, folder: &Path, name: &str, format: &str) -> (PathBuf, Report) {
    let path = folder.join(name);
    let plan = format_of(format).plan(container, &Options::default()).unwrap();
    common::write(&plan, &path);
    (path, plan.report)
}

fn losses(container: &Container, format: &str) -> Vec<String> {
    let plan = format_of(format).plan(container, &Options::default()).unwrap();
    plan.report.losses.iter().map(|l| l.what()).collect()
}

#[test]
fn norms_of_something_else_are_no_lengths() {
    let tensors = vec![tensor("w", vec![2, 2], &[1.0; 4]), tensor(NORMS, vec![2], &[2.0, 3.0])];
    let container = Container { format: "safetensors", tensors, ..Container::default() };
    let error = format_of("npy").plan(&container, &Options::default()).unwrap_err();
    assert!(error.to_string().contains("exactly one tensor"), "{error}");
}

#[test]
fn quantizing_weights_leaves_subwords_out_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut words = samples::subword_embeddings();
    words.format = "finalfusion";
    let (input, _) = write(&words, folder.path(), "words.fifu", "finalfusion");
    let output = folder.path().join("small.mcf");
    let settings = QuantizeSettings::new(Method::from_name("q8").unwrap());
    let (container, none) = (open(&input).unwrap(), &mut Progress::none());
    let job = Quantization::new(&container, &settings).unwrap();
    let is_subwords = |s: &Subject| matches!(s, Subject::Subwords(_));
    assert!(job.losses().unwrap().iter().any(|l| is_subwords(&l.subject)));
    let done = job.run(none).unwrap();
    assert!(done.plan.report.losses.iter().any(|l| is_subwords(&l.subject)));
    done.plan.accept_losses(true).write(&output, none).unwrap();
    let report = done.report;
    let made = open(&output).unwrap();
    assert_eq!(made.tensor(MATRIX).unwrap().encoding.name(), "q8");
    assert_eq!(report.tensors[0].shape, made.tensor(MATRIX).unwrap().shape);

    // Words of a quantized matrix can be selected like others.
    let some = folder.path().join("some.vec");
    let list = ["queen", "truck"].map(str::to_owned);
    let selected = select(&open(&output).unwrap(), &list).unwrap();
    let plan = format_of("text").plan(&selected.container, &Options::default()).unwrap();
    common::write(&plan, &some);
    let (all, some) = (Embeddings::open(&output).unwrap(), Embeddings::open(&some).unwrap());
    let near = |word: &str| {
        let (a, b) =
            (all.lookup(word).unwrap().unwrap().vector, some.lookup(word).unwrap().unwrap().vector);
        let length = |v: &[f32]| v.iter().map(|x| x * x).sum::<f32>().sqrt();
        let dot: f32 = a.iter().zip(b.iter()).map(|(x, y)| x * y).sum();
        dot / (length(&a) * length(&b))
    };
    assert!(near("queen") > 0.9999 && near("truck") > 0.9999);
}

#[test]
fn wide_numbers_are_not_narrowed_silently() {
    let bytes = [1e300f64, 0.5, 0.1, 1.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let wide = stored(MATRIX, Encoding::Plain(DType::F64), vec![2, 2], View::owned(bytes));
    let vocabulary = Some(Vocabulary::from_tokens(["a", "b"]));
    let mut container = Container { tensors: vec![wide], vocabulary, ..Container::default() };
    let precision = vec![format!("precision of tensor {MATRIX:?}")];
    assert_eq!(losses(&container, "finalfusion"), precision);
    container.tensors.push(tensor(NORMS, vec![2], &[1.0, 2.0]));
    for format in ["word2vec", "text"] {
        assert_eq!(losses(&container, format), precision, "{format}");
    }
}

#[test]
fn lengths_of_any_type_are_lengths() {
    let mut words = samples::word_embeddings();
    words.format = "finalfusion";
    let folder = tempfile::tempdir().unwrap();
    let words = Edit::new().dtype(DType::F16).apply(words).unwrap();
    let plan = format_of("safetensors").plan(&words, &Options::default()).unwrap();
    let path = folder.path().join("half.safetensors");
    common::write(&plan, &path);
    let half = open(&path).unwrap();
    assert_eq!(half.tensor(NORMS).unwrap().encoding.stored(), DType::F16);
    assert!(half.word_matrix().unwrap().norms.is_some());
}

#[test]
fn repeated_words_are_counted() {
    let input = weighbridge::Input::from_bytes("x.vec", b"3 1\na 1\na 2\nb 3\n".to_vec());
    let container = Formats::builtin().open(&input, &Options::default()).unwrap();
    let plan = format_of("finalfusion").plan(&container, &Options::default()).unwrap();
    let lost: Vec<_> = plan.report.losses.iter().map(|l| l.subject.clone()).collect();
    assert_eq!(lost, [Subject::RepeatedWords(1)]);
    // What is said of the lengths is true.
    assert!(plan.report.changed.iter().any(|c| c.to.contains("unit length")));
}

/// What only fastText needs is left out elsewhere, and comes back from safetensors.
#[test]
fn private_tensors_stay_at_home() {
    let folder = tempfile::tempdir().unwrap();
    let mut words = samples::single_words();
    words.format = "word2vec";
    let (path, _) = write(&words, folder.path(), "model.bin", "fasttext");
    let model = open(&path).unwrap();
    assert!(model.tensors.iter().any(|t| t.name.starts_with("fasttext/")));
    for format in ["oinf", "embd", "mcf", "npy"] {
        let plan = format_of(format).plan(&model, &Options::default()).unwrap();
        assert!(
            plan.report.ignored.iter().any(|i| i.to_string().contains("fasttext/")),
            "{format}"
        );
    }
    let (carried, report) = write(&model, folder.path(), "model.safetensors", "safetensors");
    assert!(report.ignored.is_empty() && report.losses.is_empty());
    let (back, _) = write(&open(&carried).unwrap(), folder.path(), "back.bin", "fasttext");
    assert_eq!(std::fs::read(path).unwrap(), std::fs::read(back).unwrap());
}

fn words_of(text: &str, name: &str) -> Container {
    let input = weighbridge::Input::from_bytes(name, text.as_bytes().to_vec());
    Formats::builtin().open(&input, &Options::default()).unwrap()
}

/// Rows that were left out because their words were there before are a loss wherever they would go.
#[test]
fn words_that_stand_twice_are_a_loss() {
    let source = words_of("4 2\nthe 1 2\nof 3 4\nthe 5 6\nof 7 8\n", "x.vec");
    for format in ["text", "word2vec", "fasttext", "finalfusion", "safetensors", "npy"] {
        let found = losses(&source, format);
        let rows = "2 rows of words that appear twice";
        assert!(found.iter().any(|l| l == rows), "{format}: {found:?}");
    }
    let few = select(&source, &["of".to_owned()]).unwrap().container;
    assert_eq!(losses(&few, "text"), ["2 rows of words that appear twice"]);
    // Those that a container still has go with the same loss, and the first stay.
    let matrix = tensor(MATRIX, vec![3, 1], &[1.0, 2.0, 3.0]);
    let vocabulary = Some(Vocabulary::from_tokens(["a", "b", "a"]));
    let twice = Container { tensors: vec![matrix], vocabulary, ..Container::default() };
    assert_eq!(losses(&twice, "text"), ["1 row of a word that appears twice"]);
    let plan = format_of("text").plan(&twice, &Options::default()).unwrap();
    let plan = plan.accept_losses(true);
    assert_eq!(plan.to_bytes().unwrap(), b"2 1\na 1\nb 2\n");
}

/// What a conversion adds by itself is no loss on the way back.
#[test]
fn there_and_back_needs_no_leave() {
    let folder = tempfile::tempdir().unwrap();
    let source = words_of("2 2\nthe 1 2\nof 3 4\n", "x.vec");
    for (format, name) in [
        ("mcf", "x.mcf"),
        ("embd", "x.weights"),
        ("oinf", "x.oinf"),
        ("safetensors", "x.safetensors"),
        ("finalfusion", "x.fifu"),
        ("fasttext", "x.bin"),
        ("f32bin", "x.f32bin"),
    ] {
        let (path, report) = write(&source, folder.path(), name, format);
        assert!(report.losses.is_empty(), "{format}: {:?}", report.losses);
        let travelled = open(&path).unwrap();
        for back in ["word2vec", "text", "fasttext"] {
            let found = losses(&travelled, back);
            assert!(found.is_empty(), "{format} to {back}: {found:?}");
        }
    }
    // What somebody else said stays a loss.
    let mut edited = open(folder.path().join("x.weights")).unwrap();
    edited.set_text("hidden_size", "7");
    edited.set_text("model_name", "mine");
    let found = losses(&edited, "text");
    assert_eq!(found, ["metadata \"hidden_size\"", "metadata \"model_name\""]);
}

/// Only bytes that stay the same are kept; last digits that change are counted.
#[test]
fn kept_is_said_of_equal_bytes_only() {
    let folder = tempfile::tempdir().unwrap();
    let values: String =
        (1..=40).map(|i| format!("w{i} {} {}\n", 0.1 * f64::from(i), 0.7)).collect();
    let source = words_of(&format!("40 2\n{values}"), "x.vec");
    let (binary, report) = write(&source, folder.path(), "x.w2v", "word2vec");
    assert_eq!((report.kept, report.changed[0].from.as_str()), (0, "decimal numbers"));
    let source = open(&binary).unwrap();
    let (_, report) = write(&source, folder.path(), "y.w2v", "word2vec");
    assert_eq!((report.kept, report.changed.len()), (1, 0));
    let (fifu, report) = write(&source, folder.path(), "x.fifu", "finalfusion");
    assert_eq!(report.kept, 0);
    let note = report.warnings.iter().find(|w| w.count.is_some()).expect("a count");
    let (changed, of) = note.count.unwrap();
    assert_eq!(of, 80);
    let (back, report) = write(&open(&fifu).unwrap(), folder.path(), "back.w2v", "word2vec");
    assert_eq!((report.kept, report.changed[0].from.as_str()), (0, "f32, unit length and norms"));
    let values = |path: &Path| open(path).unwrap().tensors[0].values_f32(0, 80).unwrap();
    let (a, b) = (values(&binary), values(&back));
    let differ = a.iter().zip(&b).filter(|(a, b)| a != b).count() as u64;
    assert_eq!(differ, changed, "{note}");
    let most = a.iter().zip(&b).map(|(a, b)| (f64::from(*a) - f64::from(*b)).abs());
    let most = most.fold(0.0, f64::max);
    assert!(differ > 0 && note.to_string().contains(&format!("{most:.3e}")), "{note}");
    for format in ["text", "glove", "jsonl"] {
        let plan = format_of(format).plan(&source, &Options::default()).unwrap();
        assert_eq!((plan.report.kept, plan.report.changed[0].to.as_str()), (0, "decimal numbers"));
    }
}

#[test]
fn vectors_that_are_not_finite_are_named() {
    let text = "5 2\ngood 1 2\nbad nan 1\nfar inf 0\nbetter 1 2.5\nbest 2 4\n";
    let embeddings = Embeddings::new(&words_of(text, "x.vec")).unwrap();
    assert!(embeddings.not_finite_note().is_none(), "nothing was looked at yet");
    for (word, what) in [("bad", "NaN in column 0"), ("far", "an infinity in column 0")] {
        let error = embeddings.similar(word, 3).unwrap_err();
        assert_eq!(error.kind(), weighbridge::ErrorKind::NotFound);
        assert!(error.to_string().contains(what) && error.to_string().contains("row"), "{error}");
        assert!(embeddings.analogy(["good", word, "best"], 3).is_err());
        let vector = embeddings.lookup(word).unwrap().unwrap().vector;
        assert!(embeddings.fault(word, &vector).unwrap().contains(what));
    }
    let hits = embeddings.similar("good", 9).unwrap();
    assert_eq!(hits.iter().map(|h| h.row).collect::<Vec<_>>(), [4, 3]);
    let note = embeddings.not_finite_note().unwrap();
    assert_eq!(note.count, Some((2, 5)));
    assert!(note.to_string().ends_with("the first is row 1, \"bad\""), "{note}");
    let questions = b": all\ngood better best good\ngood bad best better\ngood better best bad\n";
    let none = &mut Progress::none();
    let result = weighbridge::words::evaluate(&embeddings, questions, "q", none).unwrap();
    assert_eq!((result.total.asked, result.total.skipped), (1, 2));
}
