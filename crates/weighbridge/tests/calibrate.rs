//! Quantizing with an eye to what weights are multiplied with.

mod common;

use common::{quantize_file as run, verdict, with};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use weighbridge::codec::block::BlockEncoder;
use weighbridge::encoder::{Aim, Rehearsed, Settings};
use weighbridge::quantize::{Calibration, Method, QuantizeReport, QuantizeSettings};
use weighbridge::{
    Container, Encoder, Error, Progress, Stage, Status, open, quantize::quantize, samples,
};

/// A folder with the small model in it.
fn model() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    samples::write_encoder(&path).unwrap();
    (folder, path)
}

fn request(method: &str, calibration: Calibration) -> QuantizeSettings {
    let method = Method::from_name(method).unwrap();
    with(QuantizeSettings::new(method), |s| s.calibration = calibration)
}

fn calibrated(method: &str) -> QuantizeSettings {
    request(method, Calibration::default())
}

fn refused(input: &Path, request: &QuantizeSettings) -> String {
    match run(input, &input.with_extension("mcf"), request) {
        Err(Error::Refused(problem) | Error::Unsupported(problem)) => problem.message,
        other => panic!("{other:?}"),
    }
}

/// What goes into the products, for texts that are not among the built-in ones.
fn inputs(container: &Container) -> Vec<(Vec<String>, Vec<f32>)> {
    let encoder = Encoder::new(container, &Settings::default()).unwrap();
    let names = encoder.products();
    let mut all: Vec<_> = names.into_iter().map(|names| (names, Vec::new())).collect();
    let text = |i: usize| {
        let words = "grain truck gravel town queen another word zebra loading lorry of the 42 quiz";
        let words: Vec<_> = words.split(' ').collect();
        let word = |j: usize| words[(i * 31 + j * j * 7 + j) % words.len()];
        (0..4 + i % 9).map(word).collect::<Vec<_>>().join(" ")
    };
    let texts: Vec<_> = (0..40).map(text).collect();
    let mut seen = 0;
    let mut observer = |product: usize, rows: &[f32]| all[product].1.extend_from_slice(rows);
    let mut tell = |more| {
        seen += more;
        Ok(())
    };
    encoder.observe(&texts, &mut observer, &mut tell).unwrap();
    assert_eq!(seen, texts.len() as u64);
    all
}

fn values(container: &Container, name: &str) -> Vec<f32> {
    let tensor = container.tensor(name).unwrap();
    tensor.values_f32(0, tensor.count() as usize).unwrap()
}

/// The squared error of all that the products give, in proportion.
fn output_error(before: &Container, after: &Container, inputs: &[(Vec<String>, Vec<f32>)]) -> f64 {
    let (mut errors, mut all) = (0.0, 0.0);
    for (names, rows) in inputs {
        for name in names {
            let width = before.tensor(name).unwrap().shape[1] as usize;
            let [weights, rounded] = [before, after].map(|container| values(container, name));
            let bias = name.replace("weight", "bias");
            let [biases, adjusted] = [before, after].map(|container| values(container, &bias));
            for x in rows.chunks_exact(width) {
                let product = |(w, b): (&[f32], &f32)| {
                    f64::from(*b) + x.iter().zip(w).map(|(x, w)| f64::from(x * w)).sum::<f64>()
                };
                let exact = weights.chunks_exact(width).zip(&biases).map(product);
                let found = rounded.chunks_exact(width).zip(&adjusted).map(product);
                for (exact, found) in exact.zip(found) {
                    errors += (exact - found).powi(2);
                    all += exact * exact;
                }
            }
        }
    }
    errors / all
}

fn container(path: &Path) -> Container {
    open(path).unwrap()
}

/// All of the work is counted: the values of what is looked up first, then those of layers, which go by
/// what became of it.
#[test]
fn every_stage_counts_up_to_its_end() {
    let (_folder, input) = model();
    let mut stages: Vec<Status> = Vec::new();
    let mut tell = |status: Status| {
        match stages.last_mut().filter(|last| last.stage == status.stage) {
            Some(last) => *last = status,
            None => stages.push(status),
        }
        ControlFlow::Continue(())
    };
    let mut progress = Progress::new(&mut tell);
    quantize(&container(&input), &calibrated("k4"), &mut progress).unwrap();
    let order: Vec<_> = stages.iter().map(|status| status.stage).collect();
    use Stage::{Calibrating, Comparing, Quantizing, Scanning};
    assert_eq!(order, [Scanning, Quantizing, Calibrating, Comparing]);
    for status in stages {
        assert!(status.done > 0 && Some(status.done) == status.total, "{status:?}");
    }
}

/// Outputs get closer, with texts that were not used for it; the file is sound and as large.
#[test]
fn outputs_are_closer_than_without() {
    let (folder, input) = model();
    let before = container(&input);
    let inputs = inputs(&before);
    for method in ["q8", "q4", "k6", "k4", "k3", "k2"] {
        let (plain, better) = (folder.path().join("plain.mcf"), folder.path().join("better.mcf"));
        let without = run(&input, &plain, &request(method, Calibration::Never)).unwrap();
        let with = run(&input, &better, &calibrated(method)).unwrap();
        assert!(without.calibrated.is_none());
        assert_eq!(without.bytes_after, with.bytes_after);
        let error = |file: &Path| output_error(&before, &container(file), &inputs);
        let (plain, better_error) = (error(&plain), error(&better));
        assert!(better_error < 0.8 * plain, "{method}: {better_error} and {plain} without");
        assert!(verdict(&better).findings.is_empty());
        let vectors = with.calibrated.unwrap();
        assert_eq!(vectors.texts, 20);
        assert!(vectors.worst_cosine <= vectors.mean_cosine && vectors.mean_cosine <= 1.0);
        assert!(vectors.mean_cosine > 0.9, "{method}: {vectors:?}");
        // The report says what comes of the file.
        let encoder = Encoder::open(&better).unwrap();
        assert_eq!(encoder.embed(&["a truck"]).unwrap()[0].len(), 32);
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let (folder, input) = model();
    let bytes = |threads: usize| {
        let output = folder.path().join(format!("{threads}.mcf"));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| run(&input, &output, &calibrated("k4"))).unwrap();
        std::fs::read(output).unwrap()
    };
    let one = bytes(1);
    assert_eq!(one, bytes(2));
    assert_eq!(one, bytes(5));
}

#[test]
fn other_methods_for_some_tensors_stand_in_nobodys_way() {
    let (folder, input) = model();
    let output = folder.path().join("out.mcf");
    let method = |report: &QuantizeReport, name: &str| {
        report.tensors.iter().find(|t| t.name == name).map(|t| t.method.clone()).unwrap()
    };
    let word = "embeddings.word_embeddings.weight";
    let mut other = calibrated("k3");
    other.overrides.push(("*word*".into(), Method::from_name("k6").unwrap()));
    other.overrides.push(("*query*".into(), Method::Keep));
    other.overrides.push(("*layer.1.attention.output*".into(), Method::Keep));
    other.overrides.push(("*intermediate*".into(), Method::from_name("int8").unwrap()));
    let report = run(&input, &output, &other).unwrap();
    assert_eq!(method(&report, word), "k6");
    assert_eq!(method(&report, "encoder.layer.0.output.dense.weight"), "k3");
    assert_eq!(method(&report, "encoder.layer.1.intermediate.dense.weight"), "int8");
    assert!(report.calibrated.unwrap().mean_cosine > 0.8);
}

/// Biases take back the mean error, and the report names them; who excludes them keeps them.
#[test]
fn biases_are_adjusted_unless_they_are_excluded() {
    let (folder, input) = model();
    let output = folder.path().join("out.mcf");
    let before = container(&input);
    let bias = "encoder.layer.1.output.dense.bias";
    let report = run(&input, &output, &calibrated("k4")).unwrap();
    assert!(report.adjusted.iter().any(|name| name == bias));
    assert!(
        report.adjusted.iter().all(|name| name.ends_with("dense.bias") || name.contains("self"))
    );
    assert!(report.kept.iter().all(|kept| !report.adjusted.contains(&kept.name)));
    assert_ne!(values(&before, bias), values(&container(&output), bias));
    let kept = with(calibrated("k4"), |s| s.exclude = vec!["*.bias".to_owned()]);
    let report = run(&input, &output, &kept).unwrap();
    assert!(report.adjusted.is_empty() && report.calibrated.unwrap().mean_cosine > 0.9);
    assert_eq!(values(&before, bias), values(&container(&output), bias));
}

/// With the old weights, a rehearsal shows the inputs and results that the model has.
#[test]
fn a_rehearsal_with_the_old_weights_changes_nothing() {
    let (_folder, input) = model();
    let before = container(&input);
    let encoder = Encoder::new(&before, &Settings::default()).unwrap();
    let texts = ["a truck of grain", "the queen", "gravel, loading and another lorry"];
    let mut seen = vec![Vec::new(); encoder.products().len()];
    let mut observer = |product: usize, rows: &[f32]| seen[product].extend_from_slice(rows);
    encoder.observe(&texts, &mut observer, &mut |_| Ok(())).unwrap();
    let near = |found: &[f32], expected: &[f32]| {
        let bound = 0.01 * expected.iter().fold(0.1, |most: f32, v| most.max(v.abs()));
        let pairs = found.iter().zip(expected);
        found.len() == expected.len() && pairs.into_iter().all(|(a, b)| (a - b).abs() <= bound)
    };
    let mut next = 0;
    let mut choose = |rehearsed: Rehearsed<'_>| {
        assert_eq!(rehearsed.product, next);
        let names = &encoder.products()[next];
        assert!(near(rehearsed.inputs, &seen[next]), "{names:?}");
        match rehearsed.aim {
            Aim::AsBefore(inputs) => assert!(near(inputs, rehearsed.inputs)),
            Aim::Results(results) => {
                let [name] = &names[..] else { panic!("{names:?}") };
                let (weights, bias) = (values(&before, name), name.replace("weight", "bias"));
                let biases = values(&before, &bias);
                let width = weights.len() / biases.len();
                let rows = rehearsed.inputs.chunks_exact(width);
                let expected = rows.flat_map(|x| {
                    let row = move |(w, b): (&[f32], &f32)| {
                        b + x.iter().zip(w).map(|(x, w)| x * w).sum::<f32>()
                    };
                    weights.chunks_exact(width).zip(&biases).map(row)
                });
                assert!(near(results, &expected.collect::<Vec<_>>()), "{name}");
            }
        }
        next += 1;
        let own = |name: &String| {
            let bias = values(&before, &name.replace("weight", "bias"));
            (before.tensor(name).unwrap().clone(), bias)
        };
        Ok(names.iter().map(own).collect())
    };
    Encoder::to_rehearse(&before).unwrap().rehearse(&before, &texts, &mut choose).unwrap();
    assert_eq!(next, encoder.products().len());
}

#[test]
fn own_texts_are_used() {
    let (folder, input) = model();
    let output = folder.path().join("out.mcf");
    // So few that most directions of the inputs are never seen.
    let own = request("k4", Calibration::Texts(vec!["a truck".to_owned()]));
    assert!(run(&input, &output, &own).unwrap().calibrated.unwrap().mean_cosine > 0.5);
}

#[test]
fn what_can_not_be_calibrated_is_refused() {
    let (folder, input) = model();
    let texts = vec!["a truck".to_owned()];
    // Weights without words.
    let bare = folder.path().join("bare.safetensors");
    std::fs::copy(input.join("model.safetensors"), &bare).unwrap();
    let usual = calibrated("k4");
    let cases = [
        (&input, calibrated("int8"), "no meaning"),
        (
            &input,
            with(usual.clone(), |s| {
                s.encoder = BlockEncoder::Reference;
            }),
            "no meaning",
        ),
        (
            &input,
            with(usual.clone(), |s| {
                s.clip = Some((-1.0, 1.0));
            }),
            "no meaning",
        ),
        (
            &input,
            with(usual.clone(), |s| {
                s.select = vec!["embeddings.*".to_owned()];
            }),
            "none of them is quantized",
        ),
        (&bare, usual, "must run the model"),
    ];
    for (input, automatic, why) in cases {
        // Nobody asked for it, so the weights are rounded by themselves.
        let output = folder.path().join("out.mcf");
        assert!(run(input, &output, &automatic).unwrap().calibrated.is_none(), "{why}");
        let asked = with(automatic, |s| {
            s.calibration = Calibration::Texts(texts.clone());
        });
        assert!(refused(input, &asked).contains(why));
    }
}
