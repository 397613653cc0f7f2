//! Word embeddings in odd shapes: nothing is taken for what it is not, and nothing goes silently.

use std::path::{Path, PathBuf};
use weighbridge::model::{MATRIX, NORMS, Report};
use weighbridge::quantize::Method;
use weighbridge::words::{Selection, select};
use weighbridge::{
    Container, Embeddings, Encoding, Error, Options, QuantizeRequest, Tensor, View, Vocabulary,
    codec::DType, find, open, open_with, quantize, samples, sink,
};

fn tensor(name: &str, shape: Vec<u64>, values: &[f32]) -> Tensor {
    let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    Tensor::stored(name, Encoding::Plain(DType::F32), shape, View::owned(bytes))
}

fn write(container: &Container, folder: &Path, name: &str, format: &str) -> (PathBuf, Report) {
    let path = folder.join(name);
    let plan = find(format).unwrap().plan(container, &Options::default()).unwrap();
    sink::write(&plan, &path, &sink::RealFiles, &mut |_| {}).unwrap();
    (path, plan.report)
}

fn losses(container: &Container, format: &str) -> Vec<String> {
    let plan = find(format).unwrap().plan(container, &Options::default()).unwrap();
    plan.report.losses.into_iter().map(|l| l.what).collect()
}

#[test]
fn norms_of_something_else_are_no_lengths() {
    let tensors = vec![tensor("w", vec![2, 2], &[1.0; 4]), tensor(NORMS, vec![2], &[2.0, 3.0])];
    let container = Container { format: "safetensors", tensors, ..Container::default() };
    let error = find("npy").unwrap().plan(&container, &Options::default()).unwrap_err();
    assert!(error.to_string().contains("exactly one tensor"), "{error}");
}

#[test]
fn quantizing_weights_leaves_subwords_out_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut words = samples::subword_embeddings();
    words.format = "finalfusion";
    let (input, _) = write(&words, folder.path(), "words.fifu", "finalfusion");
    let output = folder.path().join("small.mcf");
    let mut request = QuantizeRequest::new(Method::from_name("q8").unwrap());
    let error = quantize(&input, Some(&output), &request).unwrap_err();
    assert!(matches!(error, Error::Loss(_)), "{error}");
    request.allow_loss = true;
    let (conversion, report) =
        quantize(&input, Some(&output), &request).unwrap().run(&mut |_| {}).unwrap();
    conversion.write(&mut |_| {}).unwrap();
    assert!(conversion.plan.report.losses.iter().any(|l| l.what.starts_with("subwords")));
    let made = open(&output).unwrap();
    assert_eq!(made.tensor(MATRIX).unwrap().encoding.name(), "q8");
    assert_eq!(report.tensors[0].shape, made.tensor(MATRIX).unwrap().shape);

    // Words of a quantized matrix can be selected like others.
    let some = folder.path().join("some.vec");
    let selection = Selection { allow_loss: true, ..Selection::default() };
    let list = ["queen", "truck"].map(str::to_owned);
    select(&output, &list, &some, &selection).unwrap().0.write(&mut |_| {}).unwrap();
    let (all, some) = (Embeddings::open(&output).unwrap(), Embeddings::open(&some).unwrap());
    let near = |word: &str| {
        let (a, b) = (all.lookup(word).unwrap().vector, some.lookup(word).unwrap().vector);
        let length = |v: &[f32]| v.iter().map(|x| x * x).sum::<f32>().sqrt();
        let dot: f32 = a.iter().zip(b.iter()).map(|(x, y)| x * y).sum();
        dot / (length(&a) * length(&b))
    };
    assert!(near("queen") > 0.9999 && near("truck") > 0.9999);
}

#[test]
fn wide_numbers_are_not_narrowed_silently() {
    let bytes = [1e300f64, 0.5, 0.1, 1.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let wide = Tensor::stored(MATRIX, Encoding::Plain(DType::F64), vec![2, 2], View::owned(bytes));
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
    let options = Options::default().with("dtype", "f16");
    let plan = find("safetensors").unwrap().plan(&words, &options).unwrap();
    let path = folder.path().join("half.safetensors");
    sink::write(&plan, &path, &sink::RealFiles, &mut |_| {}).unwrap();
    let half = open(&path).unwrap();
    assert_eq!(half.tensor(NORMS).unwrap().encoding.stored(), DType::F16);
    assert!(half.word_matrix().unwrap().norms.is_some());
}

#[test]
fn repeated_words_are_counted() {
    let input = weighbridge::Input::from_bytes("x.vec", b"3 1\na 1\na 2\nb 3\n".to_vec());
    let container = open_with(&input, &Options::default()).unwrap();
    let plan = find("finalfusion").unwrap().plan(&container, &Options::default()).unwrap();
    assert!(plan.report.warnings.iter().any(|w| w.starts_with("1 rows are left out")));
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
        let plan = find(format).unwrap().plan(&model, &Options::default()).unwrap();
        assert!(plan.report.ignored.iter().any(|i| i.contains("fasttext/")), "{format}");
    }
    let (carried, report) = write(&model, folder.path(), "model.safetensors", "safetensors");
    assert!(report.ignored.is_empty() && report.losses.is_empty());
    let (back, _) = write(&open(&carried).unwrap(), folder.path(), "back.bin", "fasttext");
    assert_eq!(std::fs::read(path).unwrap(), std::fs::read(back).unwrap());
}
