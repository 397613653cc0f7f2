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
    assert!(plan.report.warnings.iter().any(|w| w.count == Some((1, 3))));
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
