//! Quantizing: what is chosen, what is refused, what comes out.

mod common;

use common::{format_of, quantize_file as run, verdict, with};
use std::path::{Path, PathBuf};
use weighbridge::codec::DType;
use weighbridge::codec::block::BlockEncoder;
use weighbridge::quantize::{Domain, Importance, Method, Quantization, QuantizeSettings};
use weighbridge::{
    Container, DiffSettings, Encoding, Error, Formats, Options, Progress, QuantizedContent, Tensor,
    View, diff, open, quantize,
};
use weighbridge_testkit::stored;

fn tensor(name: &str, shape: &[u64], value: impl Fn(u64) -> f32) -> Tensor {
    let count: u64 = shape.iter().product();
    let bytes = (0..count).flat_map(|i| value(i).to_le_bytes()).collect();
    stored(name, Encoding::Plain(DType::F32), shape.to_vec(), View::owned(bytes))
}

/// Numbers around zero that look random.
fn noise(i: u64) -> f32 {
    let mixed = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    let even = mixed as f32 / 16_777_216.0 - 0.5;
    even * even * even
}

fn model(folder: &Path) -> PathBuf {
    let tensors = vec![
        tensor("layer.a.weight", &[40, 300], noise),
        tensor("layer.b.weight", &[3, 33], |i| noise(i + 7)),
        // A row longer than what is worked on at a time, and a matrix of one column.
        tensor("wide", &[2, 70_000], |i| noise(i * 3)),
        tensor("thin", &[50, 1], noise),
        tensor("bias", &[40], noise),
        stored("ids", Encoding::Plain(DType::I64), vec![1, 1], View::owned(vec![0; 8])),
    ];
    write(
        folder,
        "model.safetensors",
        Container { tensors, format: "safetensors", ..Container::default() },
    )
}

fn write(folder: &Path, name: &str, container: Container) -> PathBuf {
    let path = folder.join(name);
    let plan = format_of("safetensors").plan(&container, &Options::default()).unwrap();
    common::write(&plan, &path);
    path
}

fn request(method: &str) -> QuantizeSettings {
    QuantizeSettings::new(Method::from_name(method).unwrap())
}

/// Every method writes a sound file, and the report says what comparing the files says.
#[test]
fn the_report_is_what_the_file_holds() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (model(folder.path()), folder.path().join("out.mcf"));
    let original = open(&input).unwrap();
    let weights = QuantizedContent::Weights;
    let of_weights = |name: &&str| Method::from_name(name).unwrap().content() == weights;
    for method in Method::NAMES.into_iter().filter(of_weights) {
        for encoder in [BlockEncoder::Best, BlockEncoder::Reference] {
            let request = with(request(method), |s| {
                s.encoder = encoder;
            });
            if method.starts_with("int") && encoder == BlockEncoder::Reference {
                assert!(matches!(run(&input, &output, &request), Err(Error::Refused(_))));
                continue;
            }
            let report = run(&input, &output, &request).unwrap();
            let verdict = verdict(&output);
            assert!(verdict.findings.is_empty(), "{method}: {:?}", verdict.findings);
            assert_eq!(report.tensors.len(), 4);
            assert_eq!(report.kept.len(), 2);
            let quantized = open(&output).unwrap();
            let compared = diff(&original, &quantized, &DiffSettings::new()).unwrap();
            for t in &report.tensors {
                let same = compared.tensors.iter().find(|d| d.name == t.name).unwrap();
                let values = same.values.unwrap();
                let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(1e-3);
                assert!(close(values.relative_rmse, t.loss.relative_rmse), "{method} {}", t.name);
                assert!(close(values.cosine, t.loss.cosine) && values.max_abs == t.loss.max_error);
            }
            assert_eq!(report.bytes_after, std::fs::metadata(&output).unwrap().len());
        }
    }
}

#[test]
fn activations_of_any_rank_and_range() {
    let folder = tempfile::tempdir().unwrap();
    let tensors = vec![
        tensor("far", &[3, 5, 7], |i| 1000.0 + noise(i)),
        tensor("flat", &[9], |_| -2.5),
        tensor("zero", &[2, 2], |_| 0.0),
        tensor("skewed", &[64, 4], |i| noise(i).abs()),
    ];
    let container = Container { tensors, format: "safetensors", ..Container::default() };
    let input = write(folder.path(), "x.safetensors", container);
    let output = folder.path().join("x.mcf");
    for method in ["int8", "int4"] {
        let request = with(request(method), |s| {
            s.domain = Domain::Activations;
        });
        let report = run(&input, &output, &request).unwrap();
        assert_eq!(report.tensors.len(), 4, "{:?}", report.kept);
        assert!(verdict(&output).findings.is_empty());
        for t in &report.tensors {
            let most = if method == "int8" { 0.02 } else { 0.2 };
            assert!(t.loss.relative_rmse < most, "{method} {}: {:?}", t.name, t.loss);
        }
    }
}

#[test]
fn tensors_are_chosen_by_name_size_and_override() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (model(folder.path()), folder.path().join("out.mcf"));
    let methods = |request: &QuantizeSettings| {
        run(&input, &output, request).unwrap();
        let file = open(&output).unwrap();
        ["layer.a.weight", "layer.b.weight", "wide", "thin", "bias"]
            .map(|name| file.tensor(name).unwrap().encoding.name().into_owned())
    };
    let selected = with(request("k4"), |s| {
        s.select = vec!["layer.*".into()];
    });
    assert_eq!(methods(&selected), ["k4", "k4", "f32", "f32", "f32"]);
    let excluded = with(request("q8"), |s| {
        s.exclude = vec!["*.b.*".into()];
    });
    assert_eq!(methods(&excluded), ["q8", "f32", "q8", "q8", "f32"]);
    let keep = |name: &str| Method::from_name(name).unwrap();
    let overrides = vec![("layer.*".into(), keep("q8")), ("*.b.*".into(), keep("keep"))];
    let overridden = with(request("k2"), |s| {
        s.overrides = overrides;
    });
    assert_eq!(methods(&overridden), ["q8", "f32", "k2", "k2", "f32"]);
    let large = with(request("k6"), |s| {
        s.min_bytes = 40_000;
    });
    assert_eq!(methods(&large), ["k6", "f32", "k6", "f32", "f32"]);
    let nothing = with(request("k6"), |s| {
        s.select = vec!["no such".into()];
    });
    assert!(matches!(run(&input, &output, &nothing), Err(Error::Refused(_))));
}

#[test]
fn nan_and_infinite_values_are_refused_by_name_and_index() {
    let folder = tempfile::tempdir().unwrap();
    let bad = |i: u64| if i == 65_999 { f32::INFINITY } else { noise(i) };
    let tensors = vec![tensor("fine", &[2, 2], noise), tensor("bad", &[1000, 100], bad)];
    let container = Container { tensors, format: "safetensors", ..Container::default() };
    let input = write(folder.path(), "x.safetensors", container);
    let output = folder.path().join("x.mcf");
    for method in ["q8", "int8"] {
        let error = run(&input, &output, &request(method)).unwrap_err().to_string();
        assert!(error.contains("\"bad\"") && error.contains("inf at index 65999"), "{error}");
    }
    assert!(!output.exists());
    let without = with(request("q8"), |s| {
        s.exclude = vec!["bad".into()];
    });
    run(&input, &output, &without).unwrap();
    // A scale that f16 has no room for.
    let huge = vec![tensor("huge", &[2, 32], |i| 1e9 * noise(i))];
    let container = Container { tensors: huge, format: "safetensors", ..Container::default() };
    let input = write(folder.path(), "h.safetensors", container);
    let error = run(&input, &output, &request("k4")).unwrap_err().to_string();
    assert!(error.contains("\"huge\"") && error.contains("f16"), "{error}");
    let clipped = with(request("k4"), |s| {
        s.clip = Some((-1e5, 1e5));
    });
    run(&input, &output, &clipped).unwrap();
}

#[test]
fn importance_moves_the_error_to_columns_that_count_less() {
    let folder = tempfile::tempdir().unwrap();
    let input = model(folder.path());
    let output = folder.path().join("out.mcf");
    let weight = |i: u64| if i.is_multiple_of(5) { 100.0 } else { 0.5 };
    let tensors = vec![tensor("layer.a.weight", &[300], weight)];
    let container = Container { tensors, format: "safetensors", ..Container::default() };
    let importance = Importance::new(&container).unwrap();
    let error = |importance: Option<Importance>| {
        let select = vec!["layer.a.weight".to_owned()];
        run(
            &input,
            &output,
            &with(request("k3"), |s| (s.importance, s.select) = (importance, select)),
        )
        .unwrap();
        let (before, after) = (open(&input).unwrap(), open(&output).unwrap());
        let values =
            |c: &Container| c.tensor("layer.a.weight").unwrap().values_f32(0, 12_000).unwrap();
        let pairs = values(&before).into_iter().zip(values(&after)).zip(0u64..);
        pairs.map(|((a, b), i)| f64::from(weight(i % 300)) * f64::from(a - b).powi(2)).sum::<f64>()
    };
    assert!(error(Some(importance.clone())) < 0.9 * error(None));
    // A file whose columns fit no tensor is a mistake.
    let other = with(request("k3"), |s| {
        s.importance = Some(importance);
        s.select = vec!["wide".into()];
    });
    assert!(matches!(run(&input, &output, &other), Err(Error::Refused(_))));
}

#[test]
fn rows_become_i8bin_with_its_rules() {
    let folder = tempfile::tempdir().unwrap();
    let tensors = vec![tensor("rows", &[20, 64], noise)];
    let container = Container { tensors, format: "safetensors", ..Container::default() };
    let input = write(folder.path(), "x.safetensors", container);
    let output = folder.path().join("x.i8bin");
    // These rows are not of unit length.
    assert!(run(&input, &output, &request("i8")).is_err());
    let options = Options::default().with("normalize", "true");
    let report = run(&input, &output, &with(request("i8"), |s| s.options = options)).unwrap();
    assert!(report.loss.relative_rmse > 0.0 && report.loss.relative_rmse < 0.03);
    assert_eq!((report.bits_per_weight, report.tensors[0].bytes_after), (8.0, 1280));
    assert!(verdict(&output).ok);
}

#[test]
fn bounds_without_zero_leave_the_ends_of_rows_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (model(folder.path()), folder.path().join("out.mcf"));
    for method in ["q8", "k4"] {
        for encoder in [BlockEncoder::Best, BlockEncoder::Reference] {
            let clip = Some((5.0, 10.0));
            let request = with(request(method), |s| {
                s.encoder = encoder;
                s.clip = clip;
            });
            run(&input, &output, &request).unwrap();
            let verdict = verdict(&output);
            assert!(verdict.findings.is_empty(), "{method}: {:?}", verdict.findings);
        }
    }
}

#[test]
fn what_has_no_meaning_is_refused_before_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (model(folder.path()), folder.path().join("out.mcf"));
    let container = open(&input).unwrap();
    let refused = |settings: &QuantizeSettings| {
        matches!(Quantization::new(&container, settings), Err(Error::Refused(_)))
    };
    let options = Options::default().with("layout", "stream");
    assert!(refused(&with(request("q8"), |s| s.options = options)));
    assert!(refused(&with(request("i8"), |s| s.clip = Some((0.0, 1.0)))));
    assert!(!refused(&request("q8")));
    // What is written names its format, and what else is lost is known before the work.
    let job = request("q8");
    let job = Quantization::new(&container, &job).unwrap();
    assert_eq!(job.format().info().id, "mcf");
    assert!(job.losses().unwrap().iter().all(|l| l.what().contains("ids")));
    std::fs::write(&output, b"old").unwrap();
    let done = quantize(&container, &request("q8"), &mut Progress::none()).unwrap();
    let plan = done.plan.accept_losses(true);
    assert!(matches!(plan.write(&output, &mut Progress::none()), Err(Error::Refused(_))));
    assert_eq!(std::fs::read(&output).unwrap(), b"old");
    // A declaration has no values to quantize.
    let later = Tensor::declared("later", Encoding::Plain(DType::F32), vec![4, 4]);
    let declared = Container { tensors: vec![later], ..Container::default() };
    assert!(quantize(&declared, &request("q8"), &mut Progress::none()).is_err());
    // Formats among which none is for the method.
    let none = with(request("q8"), |s| s.formats = Formats::default());
    assert!(none.method.format(&none.formats).is_ok());
}
