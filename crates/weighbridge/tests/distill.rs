//! Distilled models: the same bytes for any number of threads, words that are added, tokens that are left out.

mod common;

use weighbridge::distill::{DistillSettings, RowType, distill};
use weighbridge::encoder::Settings;
use weighbridge::{Container, Encoder, Progress, open, plan, samples};

/// The small model of the samples.
fn teacher(folder: &std::path::Path) -> Container {
    let model = folder.join("model");
    samples::write_encoder(&model).unwrap();
    open(model).unwrap()
}

fn settings(change: impl FnOnce(&mut DistillSettings)) -> DistillSettings {
    common::with(DistillSettings::default(), |s| {
        s.dimensions = 8;
        s.rows = RowType::F32;
        change(s);
    })
}

fn tokens(container: &Container, text: &str) -> Vec<String> {
    let tokenizer = weighbridge::encoder::Tokenizer::of(container).unwrap();
    let mut ids = Vec::new();
    tokenizer.encode_into(text, 512, &mut ids);
    ids.iter().map(|id| tokenizer.token(*id).unwrap().into_owned()).collect()
}

#[test]
fn the_file_is_the_same_for_any_threads() {
    let folder = tempfile::tempdir().unwrap();
    let teacher = teacher(folder.path());
    let bytes = |threads: usize| {
        let settings = settings(|s| s.threads = Some(threads));
        let made = distill(&teacher, &settings, &mut Progress::none()).unwrap();
        plan(&made.container, "safetensors").unwrap().to_bytes().unwrap()
    };
    assert_eq!(bytes(1), bytes(3));
}

#[test]
fn it_agrees_with_its_teacher_and_has_no_special_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let teacher = teacher(folder.path());
    let all = settings(|s| s.dimensions = 1000);
    let made = distill(&teacher, &all, &mut Progress::none()).unwrap();
    let hidden = Encoder::new(&teacher, &Settings::default()).unwrap().dimensions();
    assert_eq!(made.report.dimensions, hidden);
    assert!((made.report.variance - 1.0).abs() < 1e-9);
    assert!(made.report.agreement.correlation > 0.3, "{:?}", made.report.agreement);
    assert_eq!(tokens(&made.container, "A weighbridge!"), ["a", "weigh", "##bridge", "!"]);
    assert_eq!(tokens(&made.container, "[CLS] ሴ"), tokens(&made.container, "[cls]"));
    // It is what it says it is, in every container that can say it.
    for to in ["safetensors", "mcf", "oinf"] {
        let bytes = plan(&made.container, to).unwrap().to_bytes().unwrap();
        let input = weighbridge::Input::from_bytes("static", bytes);
        let again = weighbridge::Formats::builtin().open(&input, &Default::default()).unwrap();
        let vectors = |container: &Container| {
            let encoder = Encoder::new(container, &Settings::default()).unwrap();
            encoder.embed_flat(&["a full truck", "", "the king"]).unwrap()
        };
        assert_eq!(vectors(&again), vectors(&made.container), "{to}");
    }
}

#[test]
fn words_are_added_and_tokens_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let teacher = teacher(folder.path());
    let plain = distill(&teacher, &settings(|_| ()), &mut Progress::none()).unwrap();
    let words = ["Weighbridge", "weighbridge", "full truck", "truck", "", "[unused3]"];
    let with = settings(|s| s.words = words.map(str::to_owned).to_vec());
    let made = distill(&teacher, &with, &mut Progress::none()).unwrap();
    assert_eq!(made.report.tokens, plain.report.tokens + made.report.added);
    assert_eq!(tokens(&made.container, "The weighbridge"), ["the", "weighbridge"]);
    assert_eq!(tokens(&made.container, "a full truck"), ["a", "full truck"]);
    let few = settings(|s| s.most_tokens = Some(60));
    let made = distill(&teacher, &few, &mut Progress::none()).unwrap();
    assert!(made.report.tokens < plain.report.tokens, "{}", made.report.tokens);
    assert!(!tokens(&made.container, "abc xyz").is_empty());
}

#[test]
fn rows_of_bytes_are_near() {
    let folder = tempfile::tempdir().unwrap();
    let teacher = teacher(folder.path());
    let vectors = |rows: RowType| {
        let settings = settings(|s| s.rows = rows);
        let made = distill(&teacher, &settings, &mut Progress::none()).unwrap();
        let encoder = Encoder::new(&made.container, &Settings::default()).unwrap();
        encoder.embed_flat(&["a full truck", "the king and the queen"]).unwrap()
    };
    let exact = vectors(RowType::F32);
    for (rows, most) in [(RowType::F16, 1e-3), (RowType::I8, 2e-2)] {
        for (a, b) in vectors(rows).iter().zip(&exact) {
            assert!((a - b).abs() < most, "{rows:?}: {a} {b}");
        }
    }
}

#[test]
fn what_can_not_be_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let teacher = teacher(folder.path());
    for (settings, word) in [
        (settings(|s| s.dimensions = 0), "no values"),
        (settings(|s| s.sif = Some(1.5)), "1.5"),
        (settings(|s| s.sif = Some(f64::NAN)), "NaN"),
    ] {
        let error = distill(&teacher, &settings, &mut Progress::none()).unwrap_err().to_string();
        assert!(error.contains(word), "{word}: {error}");
    }
    let stop = &mut |_| std::ops::ControlFlow::Break(());
    let stopped = distill(&teacher, &settings(|_| ()), &mut Progress::new(stop));
    assert!(matches!(stopped, Err(weighbridge::Error::Cancelled)));
}
