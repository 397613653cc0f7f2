//! Round trips and the conversion matrix, for every format in the table.

mod common;

use common::format_of;
use weighbridge_format::model::{NORMS, Subject, Value, WordMatrix};
use weighbridge_format::plan::Keeps;
use weighbridge_format::wire::Findings;
use weighbridge_format::{Container, Error, Format, Formats, Options};
use weighbridge_testkit::{Fixture, assert_snapshot, fixtures, same_values};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

fn open(fixture: &Fixture) -> Container {
    let about = format!("{} {}", fixture.format, fixture.content);
    Formats::builtin()
        .open(&fixture.input(), &Options::default())
        .unwrap_or_else(|e| panic!("{about}: {e}"))
}

fn write(
    container: &Container,
    format: &'static Format,
    content: &'static str,
    options: &Options,
) -> Result<Fixture, Error> {
    Fixture::from_plan(format.info(), content, &format.plan(container, options)?)
}

fn findings(fixture: &Fixture) -> Findings {
    let about = format!("{} {}", fixture.format, fixture.content);
    let (format, findings) = Formats::builtin()
        .check(&fixture.input(), &Options::default(), false)
        .unwrap_or_else(|e| panic!("{about}: {e}"));
    assert_eq!(format.info().id, fixture.format, "{about}");
    findings
}

fn same_files(a: &Fixture, b: &Fixture) -> bool {
    a.main == b.main && a.beside == b.beside
}

#[test]
fn every_format_has_fixtures_and_they_are_sound() {
    let all = fixtures();
    for format in Formats::builtin().iter().filter(|f| f.reads()) {
        let id = format.info().id;
        assert!(all.iter().any(|f| f.format == id), "{id} has no fixture");
    }
    let name = |f: &Fixture| {
        let unusual = if f.unusual { ", unusual" } else { "" };
        format!("{} {}: {} files{unusual}", f.format, f.content, f.files())
    };
    assert_snapshot(HERE, "fixtures", all.iter().map(name));
    for fixture in &all {
        let findings = findings(fixture);
        assert!(
            !findings.has_errors(),
            "{} {}: {:?}",
            fixture.format,
            fixture.content,
            findings.list()
        );
    }
}

#[test]
fn writing_what_was_read_gives_the_same_bytes() {
    let mut visited = Vec::new();
    for fixture in fixtures() {
        let format = format_of(fixture.format);
        if !format.writes() || fixture.unusual {
            continue;
        }
        let again = write(&open(&fixture), format, fixture.content, &Options::default()).unwrap();
        assert!(same_files(&again, &fixture), "{} {}", fixture.format, fixture.content);
        visited.push(format!("{} {}", fixture.format, fixture.content));
    }
    assert_snapshot(HERE, "round_trips", visited);
}

/// safetensors carries everything: X to safetensors to X is X.
#[test]
fn safetensors_is_a_lossless_hub() {
    let hub = format_of("safetensors");
    let mut visited = Vec::new();
    for fixture in fixtures() {
        let format = format_of(fixture.format);
        if !format.writes() || fixture.unusual {
            continue;
        }
        for options in [Options::default(), Options::default().with("keep-codes", "true")] {
            let about = format!("{} {} {options:?}", fixture.format, fixture.content);
            let source = open(&fixture);
            let plan = hub.plan(&source, &options).unwrap();
            assert!(plan.report.losses.is_empty(), "{about}: {:?}", plan.report.losses);
            let carried = write(&source, hub, fixture.content, &options).unwrap();
            assert!(findings(&carried).list().iter().all(|f| f.rule != "ST-09"), "{about}");
            let back =
                write(&open(&carried), format, fixture.content, &Options::default()).unwrap();
            assert!(same_files(&back, &fixture), "{about}");
        }
        visited.push(format!("{} {}", fixture.format, fixture.content));
    }
    assert_snapshot(HERE, "round_trips", visited);
}

/// Every pair of formats: what arrives is what was sent, or the report says what does not.
#[test]
fn conversion_matrix() {
    let mut visited = Vec::new();
    for fixture in fixtures() {
        let source = open(&fixture);
        for target in Formats::builtin().iter().filter(|f| f.writes() && f.reads()) {
            let about = format!("{} {} to {}", fixture.format, fixture.content, target.info().id);
            let plan = match target.plan(&source, &Options::default()) {
                Ok(plan) => plan,
                Err(Error::Refused(problem)) => {
                    assert!(!problem.message.is_empty());
                    visited.push(format!("{about}: refused"));
                    continue;
                }
                Err(other) => panic!("{about}: {other}"),
            };
            let written = write(&source, target, fixture.content, &Options::default()).unwrap();
            let sound = findings(&written);
            assert!(!sound.has_errors(), "{about}: {:?}", sound.list());
            check_report(&source, &open(&written), &plan.report, target, &about);
            visited.push(format!("{about}: {} losses", plan.report.losses.len()));
        }
    }
    assert_snapshot(HERE, "conversions", visited);
}

/// The vectors of the words are the same up to rounding, with the lengths that they had at first
/// unless those were lost.
fn same_vectors(a: &WordMatrix, b: &WordMatrix, unit: bool) -> bool {
    let (rows, dim) = (a.rows().min(b.rows()), a.dim());
    let count = usize::try_from(rows * dim).unwrap();
    let vectors = |w: &WordMatrix| if unit { w.matrix.clone() } else { w.original().unwrap() };
    let (x, y) =
        (vectors(a).values_f32(0, count).unwrap(), vectors(b).values_f32(0, count).unwrap());
    dim == b.dim() && x.iter().zip(&y).all(|(x, y)| (x - y).abs() <= 1e-6 * x.abs().max(1.0))
}

fn json(value: &Value) -> String {
    serde_json::to_string(value).unwrap()
}

/// Whatever is missing on the other side is listed, and nothing else is.
fn check_report(
    source: &Container,
    target: &Container,
    report: &weighbridge_format::plan::Report,
    format: &Format,
    about: &str,
) {
    let info = format.info();
    let lost = |what: &str| report.losses.iter().any(|l| l.what() == what);
    let left_out =
        |name: &str| lost(name) || report.ignored.iter().any(|i| name.ends_with(&i.to_string()));
    // Formats of words have the one matrix, whatever its name was, and may keep lengths apart.
    let (sent, got) = (source.word_matrix().ok(), target.word_matrix().ok());
    let unit = lost("the lengths of the rows");
    let same_vectors =
        sent.as_ref().zip(got.as_ref()).is_some_and(|(a, b)| same_vectors(a, b, unit));
    for (i, tensor) in source.tensors.iter().enumerate() {
        let is_matrix = sent.as_ref().is_some_and(|w| std::ptr::eq(w.matrix, tensor));
        let is_norms = tensor.name == NORMS && info.id != source.format;
        let by_name = target.tensor(&tensor.name);
        let arrived = if info.holds.single { target.tensors.get(i) } else { by_name };
        let arrived = arrived.or_else(|| got.as_ref().filter(|_| is_matrix).map(|w| w.matrix));
        match arrived {
            Some(arrived) => {
                let precise = !lost(&format!("precision of tensor {:?}", tensor.name));
                let same = same_values(tensor, arrived) || (is_matrix && same_vectors);
                assert_eq!(same, precise, "{about}: {}", tensor.name);
            }
            None => assert!(
                left_out(&format!("tensor {:?}", tensor.name))
                    || is_norms && (same_vectors || unit),
                "{about}: {} is gone",
                tensor.name
            ),
        }
    }
    if let Some(subwords) = &source.subwords {
        let whole = target.subwords.as_ref().is_some_and(|s| s.same_as(subwords));
        let named = lost(&format!("subwords with {} rows", subwords.rows()));
        assert_ne!(whole, named, "{about}: subwords");
    }
    for (key, value) in &source.metadata {
        let arrived = target.metadata.iter().find(|(k, _)| k == key).map(|(_, v)| v);
        let whole =
            arrived.is_some_and(|v| json(v) == json(value) && v.type_name() == value.type_name());
        let named =
            lost(&format!("metadata {key:?}")) || lost(&format!("type of metadata {key:?}"));
        // A model directory is named as the model is.
        // What the content says as well, or when the file was written, is left out without loss.
        let restated = report.ignored.contains(&Subject::Metadata(key.clone()));
        if restated {
            let sizes = [sent.as_ref().map(WordMatrix::dim), sent.as_ref().map(WordMatrix::rows)];
            let shown =
                sizes.into_iter().flatten().any(|n| value.as_text() == Some(&n.to_string()));
            assert!(!whole && (shown || key == "created_at"), "{about}: metadata {key}");
        } else if !(info.is_folder && key == "model_name") {
            assert_ne!(whole, named, "{about}: metadata {key}");
        }
        assert!(!whole || info.holds.metadata != Keeps::Nothing);
    }
    for (name, value) in &source.sizevars {
        let whole = target.sizevars.contains(&(name.clone(), *value));
        assert_ne!(whole, lost(&format!("size variable {name} := {value}")), "{about}: {name}");
    }
    if let Some(v) = &source.vocabulary {
        let same = |w: &weighbridge_format::Vocabulary| {
            // Where special tokens have no place of their own, their texts give them away.
            let mut by_text = w.clone();
            by_text.find_special();
            let special = [&w.special, &by_text.special].contains(&&v.special);
            v.tokens().eq(w.tokens()) && (special || lost("the special tokens of the vocabulary"))
        };
        let whole = target.vocabulary.as_ref().is_some_and(same) || target.records.is_some();
        assert_ne!(
            whole,
            lost(&format!("vocabulary of {} tokens", v.len())),
            "{about}: vocabulary"
        );
    }
    for a in &source.attachments {
        let whole = target
            .attachments
            .iter()
            .any(|b| b.name == a.name && b.data.same_bytes(&a.data).unwrap());
        assert_ne!(
            whole,
            left_out(&format!("attachment {:?}", a.name))
                || report.ignored.contains(&Subject::File(a.name.clone())),
            "{about}: {}",
            a.name
        );
    }
    if let Some(r) = &source.records {
        let texts = |r: &weighbridge_format::model::Records| {
            r.items().unwrap().iter().map(|i| (*i).to_owned()).collect::<Vec<_>>()
        };
        // Records that only say the word became the vocabulary.
        let words = sent.as_ref().and_then(|w| w.words.as_ref()).zip(target.vocabulary.as_ref());
        let became_words = words.is_some_and(|(a, b)| a.tokens().eq(b.tokens()))
            && texts(r).iter().all(|t| t.starts_with("{\"word\": ") && !t.contains(','));
        let arrived = target.records.as_ref().is_some_and(|s| texts(s) == texts(r));
        let whole = arrived || became_words;
        assert_ne!(whole, lost(&format!("{} row records", r.count().unwrap())), "{about}: records");
    }
}
