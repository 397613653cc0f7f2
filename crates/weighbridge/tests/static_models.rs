//! Static models go through every container, can be quantized, and are refused where they make no sense.

mod common;

use common::{convert, quantize_file, verdict};
use std::path::Path;
use weighbridge::encoder::Settings;
use weighbridge::model::{Container, Tensor};
use weighbridge::quantize::{Calibration, Method, QuantizeSettings};
use weighbridge::source::View;
use weighbridge::{Edit, Encoder, open};
use weighbridge_testkit::data::{STATIC_MODELS as MODELS, reference};

/// The texts that the libraries were asked for.
fn texts(folder: &Path) -> Vec<String> {
    let json = std::fs::read(folder.join("expected.json")).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    json["texts"].as_array().unwrap().iter().map(|t| t.as_str().unwrap().to_owned()).collect()
}

fn vectors(model: &Path, texts: &[String]) -> Vec<f32> {
    Encoder::open(model).unwrap().embed_flat(texts).unwrap()
}

#[test]
fn every_container_has_the_same_model() {
    let place = tempfile::tempdir().unwrap();
    let mut visited = 0;
    for name in MODELS {
        let Some(folder) = reference(&format!("families/static/{name}")) else { return };
        let texts = texts(&folder);
        let wanted = vectors(&folder, &texts);
        let findings = verdict(&folder).findings;
        assert!(findings.is_empty(), "{name}: {findings:?}");
        let first = Encoder::open(&folder).unwrap().id(None).unwrap();
        for to in ["m.safetensors", "m.mcf", "m.oinf", "m"] {
            let path = place.path().join(to);
            let format = (to == "m").then_some("hf");
            convert(&folder, &path, format, &Edit::default()).unwrap();
            assert_eq!(vectors(&path, &texts), wanted, "{name} as {to}");
            let other = Encoder::open(&path).unwrap().id(None).unwrap();
            assert!(first.has_weights_of(&other), "{name} as {to}");
            remove(&path);
            visited += 1;
        }
    }
    assert_eq!(visited, 24);
}

fn remove(path: &Path) {
    if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }.unwrap();
}

#[test]
fn quantized_tables_give_nearly_the_same() {
    let place = tempfile::tempdir().unwrap();
    let mut visited = 0;
    for name in ["model2vec", "model2vec-mapping", "model2vec-unigram", "sentence-transformers"] {
        let Some(folder) = reference(&format!("families/static/{name}")) else { return };
        let texts = texts(&folder);
        let encoder = Encoder::open(&folder).unwrap();
        let wanted = encoder.embed(&texts).unwrap();
        for calibration in [Calibration::Never, Calibration::Automatic] {
            let path = place.path().join(format!("{name}.{visited}.mcf"));
            let mut settings = QuantizeSettings::new(Method::from_name("q8").unwrap());
            (settings.min_bytes, settings.calibration) = (0, calibration);
            quantize_file(&folder, &path, &settings).unwrap();
            let found = Encoder::open(&path).unwrap().embed(&texts).unwrap();
            for ((a, b), text) in found.iter().zip(&wanted).zip(&texts) {
                let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
                let (dot, lengths) = (dot(a, b), (dot(a, a) * dot(b, b)).sqrt());
                assert!(dot >= 0.999 * lengths, "{name}: {text:?}: {dot} {lengths}");
            }
            visited += 1;
        }
    }
    assert_eq!(visited, 8);
}

/// A small model, with one tensor changed.
fn changed(name: &str, change: impl Fn(&mut Tensor)) -> Option<Container> {
    let folder = reference(&format!("families/static/{}", MODELS[2]))?;
    let mut container = open(folder).unwrap();
    let tensor = container.tensors.iter_mut().find(|tensor| tensor.name == name).unwrap();
    change(tensor);
    Some(container)
}

#[test]
fn what_makes_no_sense_is_refused() {
    let whole = |values: &[i64]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let tokens = 509;
    let mapping = |place: usize, row: i64| {
        let mut rows = vec![0; tokens];
        rows[place] = row;
        whole(&rows)
    };
    let weights = |value: f32| {
        let mut list = vec![1.0; tokens];
        list[7] = value;
        list.iter().flat_map(|v: &f32| v.to_le_bytes()).collect::<Vec<u8>>()
    };
    let cases: [(&str, Vec<u64>, Vec<u8>, &str); 9] = [
        ("mapping", vec![509], mapping(3, 150), "token 3 the row 150"),
        ("mapping", vec![509], mapping(508, -1), "token 508 the row -1"),
        ("mapping", vec![509], mapping(0, i64::MAX), "token 0 the row about 922337203685477"),
        ("mapping", vec![508], whole(&vec![0; 508]), "weights has the shape [509]"),
        ("mapping", vec![1, 509], whole(&vec![0; 509]), "[1, 509]"),
        ("weights", vec![509], weights(f32::NAN), "NaN"),
        ("weights", vec![509], weights(f32::NEG_INFINITY), "infinite"),
        ("weights", vec![3], weights(1.0)[..12].to_vec(), "[3]"),
        ("embeddings", vec![0, 32], Vec::new(), "[0, 32]"),
    ];
    for (name, shape, bytes, word) in cases {
        let set = |tensor: &mut Tensor| {
            let (encoding, view) = (tensor.encoding.clone(), View::owned(bytes.clone()));
            *tensor = Tensor::stored(name, encoding, shape.clone(), view).unwrap();
        };
        let Some(container) = changed(name, set) else { return };
        let error = Encoder::new(&container, &Settings::default()).unwrap_err().to_string();
        assert!(error.contains(word), "{name} {shape:?}: {error}");
    }
    // A table without one of its rows: tokens would have none.
    let Some(container) = changed("embeddings", |tensor| tensor.name = "other".into()) else {
        return;
    };
    let error = Encoder::new(&container, &Settings::default()).unwrap_err().to_string();
    assert!(error.contains("lacks the tensor embeddings"), "{error}");
    // Values of the table show in the vectors that they are part of.
    let Some(container) = changed("embeddings", |tensor| {
        let values = vec![f32::NAN; 150 * 32];
        let view = View::owned(values.iter().flat_map(|v| v.to_le_bytes()).collect());
        let encoding = tensor.encoding.clone();
        *tensor = Tensor::stored("embeddings", encoding, vec![150, 32], view).unwrap();
    }) else {
        return;
    };
    let encoder = Encoder::new(&container, &Settings::default()).unwrap();
    let error = encoder.embed(&["hello"]).unwrap_err().to_string();
    assert!(error.contains("NaN"), "{error}");
    assert_eq!(encoder.embed(&[""]).unwrap(), [vec![0.0; 32]]);
}
