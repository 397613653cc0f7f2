//! Product quantization: what is written is what the report says, and convert reconstructs it.

mod common;

use common::{convert, format_of, quantize_file as run};
use std::path::Path;
use weighbridge::codec::DType;
use weighbridge::model::{MATRIX, NORMS};
use weighbridge::quantize::{Method, ProductSettings, QuantizeSettings};
use weighbridge::{
    Container, Edit, Encoding, Options, Progress, Tensor, View, Vocabulary, open, quantize,
};
use weighbridge_testkit::stored;

const ROWS: usize = 500;
const DIM: usize = 24;

/// Words around a few directions, of many lengths.
fn container(unit: bool) -> Container {
    let mut state = 7u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    let centers: Vec<f32> = (0..9 * DIM).map(|_| next()).collect();
    let mut values = Vec::new();
    for row in 0..ROWS {
        let center = &centers[row % 9 * DIM..][..DIM];
        let mut vector: Vec<f32> = center.iter().map(|c| c + 0.3 * next()).collect();
        let length = vector.iter().map(|v| v * v).sum::<f32>().sqrt();
        let wanted = if unit { 1.0 } else { 1.0 + row as f32 };
        vector.iter_mut().for_each(|v| *v *= wanted / length);
        values.extend(vector);
    }
    let words: Vec<_> = (0..ROWS).map(|i| format!("w{i}")).collect();
    Container {
        format: "finalfusion",
        tensors: vec![tensor(MATRIX, vec![ROWS as u64, DIM as u64], &values)],
        vocabulary: Some(Vocabulary::from_tokens(words.iter().map(String::as_str))),
        ..Container::default()
    }
}

fn tensor(name: &str, shape: Vec<u64>, values: &[f32]) -> Tensor {
    let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    stored(name, Encoding::Plain(DType::F32), shape, View::owned(bytes))
}

fn write(container: &Container, path: &Path) {
    let plan = format_of("finalfusion").plan(container, &Options::default()).unwrap();
    common::write(&plan, path);
}

fn request(method: &str, subquantizers: u64, bits: u32) -> QuantizeSettings {
    let product = ProductSettings { subquantizers: Some(subquantizers), bits, seed: 3 };
    let mut settings = QuantizeSettings::new(Method::from_name(method).unwrap());
    settings.product = product;
    settings
}

#[test]
fn the_report_is_what_the_file_holds() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.fifu"), folder.path().join("out.fifu"));
    let back = folder.path().join("back.fifu");
    for unit in [true, false] {
        let original = container(unit);
        write(&original, &input);
        for method in ["pq", "opq"] {
            let report = run(&input, &output, &request(method, 8, 6)).unwrap();
            let made = open(&output).unwrap();
            let Encoding::Product(product) = &made.tensors[0].encoding else { panic!("no codes") };
            assert_eq!((product.parts, product.centroids, product.dim), (8, 64, DIM as u64));
            assert_eq!(product.projection.is_some(), method == "opq");
            // Lengths are kept apart unless all are one.
            assert_eq!(product.norms.is_some(), !unit);
            let count = ROWS * DIM;
            let before = original.tensors[0].values_f32(0, count).unwrap();
            let after = made.tensors[0].values_f32(0, count).unwrap();
            let squares =
                |v: &mut dyn Iterator<Item = f32>| -> f64 { v.map(|v| f64::from(v).powi(2)).sum() };
            let error = squares(&mut before.iter().zip(&after).map(|(a, b)| a - b));
            let relative = (error / squares(&mut before.iter().copied())).sqrt();
            assert!((relative - report.loss.relative_rmse).abs() < 1e-6, "{relative} {report:?}");
            assert!(relative < 0.3 && report.loss.cosine > 0.95, "{method} {report:?}");
            assert!(report.recall_at_10.unwrap() > 0.3, "{report:?}");
            // `convert` reconstructs the same values.
            convert(&output, &back, None, &Edit::new().dtype(DType::F32)).unwrap();
            let plain = open(&back).unwrap();
            assert_eq!(plain.tensors[0].encoding, Encoding::Plain(DType::F32));
            assert_eq!(plain.tensors[0].values_f32(0, count).unwrap(), after);
        }
    }
}

#[test]
fn a_seed_gives_the_same_bytes_with_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.fifu");
    write(&container(false), &input);
    let made = |threads: usize, seed: u64| {
        let output = folder.path().join("out.fifu");
        let mut request = request("opq", 6, 5);
        request.product.seed = seed;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| run(&input, &output, &request)).unwrap();
        std::fs::read(&output).unwrap()
    };
    assert_eq!(made(1, 3), made(2, 3));
    assert_ne!(made(2, 3), made(2, 4));
}

#[test]
fn words_norms_and_subwords_stay() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.fifu"), folder.path().join("out.fifu"));
    let mut words = container(true);
    let norms: Vec<f32> = (0..ROWS).map(|i| i as f32).collect();
    words.tensors.push(tensor(NORMS, vec![ROWS as u64], &norms));
    words.set_text("description", "kept");
    write(&words, &input);
    run(&input, &output, &request("pq", 12, 8)).unwrap();
    let made = open(&output).unwrap();
    assert_eq!(made.tensor(NORMS).unwrap().values_f32(0, ROWS).unwrap(), norms);
    assert_eq!(made.text("description"), Some("kept"));
    assert!(made.vocabulary.unwrap().same_as(words.vocabulary.as_ref().unwrap()));
    // What is quantized is not quantized again.
    let quantized = open(&output).unwrap();
    let again = quantize(&quantized, &request("pq", 12, 8), &mut Progress::none());
    let again = again.unwrap_err().to_string();
    assert!(again.contains("quantized already"), "{again}");
}

#[test]
fn what_can_not_be_done_is_said_before_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.fifu");
    write(&container(true), &input);
    let refused = |request: &QuantizeSettings| {
        let container = open(&input).unwrap();
        quantize(&container, request, &mut Progress::none()).unwrap_err().to_string()
    };
    assert!(refused(&request("pq", 7, 8)).contains("one of: 1 2 3 4 6 8 12 24"));
    assert!(refused(&request("pq", 0, 8)).contains("can't be cut"));
    assert!(refused(&request("pq", 8, 9)).contains("1 to 8"));
    assert!(refused(&request("k4", 8, 8)).contains("no meaning"));
    let mut chosen = request("opq", 8, 8);
    chosen.select = vec!["*".to_owned()];
    assert!(refused(&chosen).contains("subquantizers"));
    let mut broken = container(true);
    let mut values = broken.tensors[0].values_f32(0, ROWS * DIM).unwrap();
    values[5 * DIM] = f32::NAN;
    broken.tensors[0] = tensor(MATRIX, vec![ROWS as u64, DIM as u64], &values);
    write(&broken, &input);
    assert!(refused(&request("pq", 8, 4)).contains("no codebook"));
}
