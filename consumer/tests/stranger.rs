//! What a stranger does with the library, with nothing but what is public.

use std::ops::ControlFlow;
use std::sync::Arc;
use weighbridge::codec::DType;
use weighbridge::embed::{EmbedFile, EmbedSettings, embed};
use weighbridge::model::Subject;
use weighbridge::plan::LossKind;
use weighbridge::quantize::{Method, QuantizeSettings};
use weighbridge::{
    Container, DiffSettings, Edit, Embeddings, Encoder, Error, ErrorKind, Formats, Input, Options,
    Output, Progress, Stage, Status, diff, quantize, samples, summary, verify,
};
use weighbridge_consumer::TOY;

fn words() -> Container {
    let rows = (0..24).map(|i| (i as f32 * 0.7).sin()).collect();
    Container::builder()
        .rows(8, rows)
        .words(["truck", "lorry", "gravel"])
        .metadata("license", "CC0")
        .build()
        .unwrap()
}

#[test]
fn a_format_of_ones_own() {
    let formats = Formats::builtin().with(&TOY);
    let input = Input::from_bytes("x.toy", b"#toy\nw 2x2 1 2 3 4\nb 2 0.5 -1\n".to_vec());
    assert_eq!(formats.detect(&input).unwrap().info().id, "toy");
    let container = formats.open(&input, &Options::default()).unwrap();
    assert_eq!(container.tensors[0].shape, [2, 2]);
    assert_eq!(container.tensors[1].values_f32(0, 2).unwrap(), [0.5, -1.0]);
    assert!(verify(&formats, &input, &Options::default(), false).unwrap().ok);

    // To a format that comes with the library, and back.
    let bytes = weighbridge::plan(&container, "safetensors").unwrap().to_bytes().unwrap();
    let there = Input::from_bytes("x.safetensors", bytes);
    let there = formats.open(&there, &Options::default()).unwrap();
    let back = formats.target("y.toy", None).unwrap().plan(&there, &Options::default()).unwrap();
    assert_eq!((back.from, back.to), ("safetensors", "toy"));
    assert_eq!(back.to_bytes().unwrap(), input.source.head().unwrap());

    // Its rules are findings like others.
    let broken = Input::from_bytes("x.toy", b"#toy\nw 2 1 2\nb two 0\n".to_vec());
    match formats.open(&broken, &Options::default()) {
        Err(Error::Malformed { file, finding }) => {
            assert_eq!((file.as_str(), finding.rule), ("x.toy", "TOY-01"));
            assert_eq!((finding.start, finding.end), (13, 20));
        }
        other => panic!("{other:?}"),
    }
    // Without it, nobody knows such files.
    let unknown = Formats::builtin().open(&input, &Options::default()).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Unrecognised);
}

#[test]
fn a_container_by_hand_becomes_bytes_of_every_format() {
    let mut written = Vec::new();
    let model = samples::tiny_model();
    let single = Container::builder().rows(2, vec![0.6, 0.8, 1.0, 0.0]).build().unwrap();
    for format in Formats::builtin().with(&TOY).iter().filter(|f| f.writes()) {
        let id = format.info().id;
        for container in [words(), model.clone(), single.clone()] {
            let Ok(plan) = format.plan(&container, &Options::default()) else { continue };
            let files = plan.accept_losses(true).to_files().unwrap();
            assert!(files.iter().any(|(_, bytes)| !bytes.is_empty()), "{id}");
            written.push(id);
        }
    }
    written.dedup();
    // Model directories take a config.json, and floret what floret made.
    let all: Vec<_> = Formats::builtin().with(&TOY).iter().map(|f| f.info().id).collect();
    let missing: Vec<_> = all.iter().filter(|id| !written.contains(id)).collect();
    assert_eq!(missing, [&"floret", &"hf"]);
}

/// Arrays outlive the container that they came from, and can go to other threads.
#[test]
fn bytes_have_an_owner() {
    let container = Arc::new(words());
    let view = container.tensors[0].view().unwrap().clone();
    drop(container);
    let first = std::thread::spawn(move || view.load().unwrap()[..4].to_vec()).join().unwrap();
    assert_eq!(first, 0f32.to_le_bytes());
}

#[test]
fn losses_are_data() {
    let half = Edit::new().dtype(DType::F16).apply(words()).unwrap();
    let plan = weighbridge::plan(&half, "npy").unwrap();
    let Err(Error::Loss(losses)) = plan.to_bytes() else { panic!("nothing is lost") };
    let rounded = losses.iter().find(|l| l.kind == LossKind::Precision).unwrap();
    assert_eq!(rounded.subject, Subject::Tensor("embeddings".to_owned()));
    let figures = rounded.rounding.as_ref().unwrap();
    assert!(figures.changed > 0 && figures.of == 24 && figures.largest < 1e-3);
    let json = serde_json::to_value(rounded).unwrap();
    assert_eq!(json["what"], "precision of tensor \"embeddings\"");
    assert!(losses.iter().any(|l| l.subject == Subject::Vocabulary(3)));
    // Whoever knows it accepts it.
    assert_eq!(plan.accept_losses(true).to_bytes().unwrap().len(), 128 + 2 * 24);
}

#[test]
fn errors_are_matched_not_read() {
    let missing = weighbridge::open("no such file").unwrap_err();
    assert!(matches!(&missing, Error::NotFound(p) if p.file == "no such file"));
    let json = serde_json::to_value(missing.report()).unwrap();
    assert_eq!((&json["kind"], &json["file"]), (&"not-found".into(), &"no such file".into()));
    let refused = Edit::new().select("nothing*").apply(words()).unwrap_err();
    assert_eq!(refused.kind().exit_code(), 2);
    let wrong = Container::builder().values("w", &[3], vec![1.0]).build();
    assert!(matches!(wrong, Err(Error::Refused(_))));
    let twice = Container::builder().values("w", &[1], vec![1.0]).values("w", &[1], vec![1.0]);
    assert!(matches!(twice.build(), Err(Error::Refused(_))));
    let unknown = Embeddings::new(&words()).unwrap().similar("no word", 1).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::NotFound);
    let option = Options::default().with("rounding", "up");
    let rows = Container::builder().rows(2, vec![0.6, 0.8]).build().unwrap();
    let i8bin = Formats::builtin().find("i8bin").unwrap();
    match i8bin.plan(&rows, &option) {
        Err(Error::Refused(problem)) => assert_eq!(problem.subject, "rounding"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_verbs_return_is_json() {
    let container = words();
    let text = serde_json::to_value(summary(&container, &Default::default()).unwrap()).unwrap();
    assert_eq!(text["rows"]["dim"], 8);
    let other = words();
    let same = diff(&container, &other, &DiffSettings::new()).unwrap();
    assert_eq!(serde_json::to_value(&same).unwrap()["same"], true);
    let settings = QuantizeSettings::new(Method::from_name("q8").unwrap());
    let done = quantize(&container, &settings, &mut Progress::none()).unwrap();
    let report = serde_json::to_value(&done.report).unwrap();
    assert!(report["relative_rmse"].as_f64().unwrap() < 0.01);
    let bytes = done.plan.accept_losses(true).to_bytes().unwrap();
    let small = Input::from_bytes("small.mcf", bytes);
    let small = Formats::builtin().open(&small, &Options::default()).unwrap();
    assert_eq!(small.tensors[0].encoding.name(), "q8");
}

#[test]
fn texts_are_embedded_and_a_long_run_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    samples::write_encoder(&at("model")).unwrap();
    let encoder = Encoder::open(at("model")).unwrap();
    let mut vectors = Vec::new();
    embed(&encoder, ["a truck", "a lorry"], 8, &mut vectors, &mut Progress::none()).unwrap();
    assert_eq!(vectors.len(), 2 * encoder.dimensions());

    // Into a file, with an end after some windows; what was done is gone on with.
    let format = Formats::builtin().find("i8bin").unwrap();
    let mut settings = EmbedSettings::new(at("v.i8bin"), format);
    settings.window = 8;
    let texts = || (0..100).map(|i| format!("text {i}"));
    let mut file = EmbedFile::begin(&encoder, settings.clone()).unwrap();
    let mut stop = |status: Status| match status.done {
        0..32 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    };
    let stopped = embed(&encoder, texts(), 8, &mut file, &mut Progress::new(&mut stop));
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(!at("v.i8bin").exists());
    drop(file);
    settings.resume = true;
    let mut file = EmbedFile::begin(&encoder, settings).unwrap();
    let done = embed(&encoder, texts(), 8, &mut file, &mut Progress::none()).unwrap();
    assert_eq!((done.rows, done.resumed), (100, 32));
    file.finish().unwrap().write(&mut Progress::none()).unwrap();
    assert_eq!(weighbridge::open(at("v.i8bin")).unwrap().records.unwrap().count().unwrap(), 100);
    assert!(!at("v.i8bin.partial").exists());
}

/// Quantizing is stopped at any of its stages, and so is writing; nothing is left.
#[test]
fn any_stage_can_be_stopped() {
    let rows: Vec<f32> = (0..600 * 32).map(|i| (i as f32 * 0.37).sin()).collect();
    let names: Vec<String> = (0..600).map(|i| format!("w{i}")).collect();
    let container = Container::builder()
        .rows(32, rows)
        .words(names.iter().map(String::as_str))
        .build()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let settings = QuantizeSettings::new(Method::from_name("pq").unwrap());
    for stage in [Stage::Training, Stage::Quantizing, Stage::Writing] {
        let mut stop = |status: Status| match status.stage == stage && status.done > 0 {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let mut progress = Progress::new(&mut stop);
        let path = folder.path().join("small.fifu");
        let done = quantize(&container, &settings, &mut progress)
            .and_then(|q| q.plan.accept_losses(true).write(Output::new(&path), &mut progress));
        assert!(matches!(done, Err(Error::Cancelled)), "{stage:?}: {done:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{stage:?}");
    }
}
