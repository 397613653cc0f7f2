//! What is said of a file is so, and what is promised to be said is said: appended bytes, versions that
//! are newer than those that are known, the file of several that a finding is about, what could not be
//! checked, and losses of nothing.

mod common;

use common::format_of;
use weighbridge_format::model::{Records, Subject};
use weighbridge_format::plan::Report;
use weighbridge_format::{
    Container, Error, Finding, Findings, Formats, Input, Options, Unchecked, samples,
};
use weighbridge_testkit::fixtures;

fn check(input: &Input, quick: bool) -> Findings {
    Formats::builtin().check(input, &Options::default(), quick).unwrap().1
}

fn planned(format: &str, container: &Container) -> Vec<u8> {
    let options = Options::default().with("created-at", "2025-01-16T12:00:00Z");
    let plan = format_of(format).plan(container, &options).unwrap();
    plan.accept_losses(true).to_bytes().unwrap()
}

/// Formats that know where their files end say that something was appended, where and how much, and
/// nothing else that would not be so.
#[test]
fn appended_bytes_are_called_appended() {
    let mut seen = Vec::new();
    for fixture in fixtures().into_iter().filter(|f| !f.is_folder && !f.unusual) {
        let known =
            ["embd", "mcf", "oinf", "finalfusion", "npy", "safetensors", "fasttext", "word2vec"];
        if !known.contains(&fixture.format) || fixture.name.ends_with(".json") {
            continue;
        }
        let end = fixture.main.len() as u64;
        let before = check(&fixture.input(), false).into_list();
        for more in [&b"x"[..], b"appended", &[0; 64], &[7; 4096]] {
            let longer = fixture.with_main([&fixture.main, more].concat());
            let findings = check(&longer.input(), false).into_list();
            let is_new =
                |f: &&Finding| !before.iter().any(|b| b.rule == f.rule && b.start == f.start);
            let new: Vec<_> = findings.iter().filter(is_new).collect();
            let [appended] = new[..] else { panic!("{}: {new:#?}", fixture.name) };
            assert!(appended.message.contains("appended after the end"), "{appended:?}");
            assert_eq!((appended.start, appended.end), (end, end + more.len() as u64));
            let count =
                if more.len() == 1 { "1 byte is" } else { &format!("{} bytes are", more.len()) };
            assert!(appended.message.starts_with(count), "{}", appended.message);
        }
        seen.push(fixture.format);
    }
    seen.dedup();
    assert!(seen.len() >= 8, "{seen:?}");
}

#[test]
fn newer_minor_versions_are_named() {
    let model = samples::tiny_model();
    // EMBD without checksums, so that another version is no damage.
    let mut embd = planned("embd", &model);
    embd[6] = 7;
    embd[8] &= !4;
    embd[56..60].fill(0);
    let end = embd.len() - 16;
    embd[end..end + 8].fill(0);
    let mut mcf = planned("mcf", &model);
    mcf[6] = 7;
    for (name, bytes, known) in [("x.weights", embd, "1.0"), ("x.mcf", mcf, "1.1")] {
        let findings = check(&Input::from_bytes(name, bytes), false);
        let [finding] = findings.list() else { panic!("{name}: {:?}", findings.list()) };
        assert_eq!(finding.message, format!("version 1.7 is newer than {known}"));
        assert!(!findings.has_errors());
    }
}

#[test]
fn what_could_not_be_checked_is_said() {
    let model = samples::tiny_model();
    let embd = Input::from_bytes("x.weights", planned("embd", &model));
    assert_eq!(check(&embd, false).unchecked, []);
    assert_eq!(check(&embd, true).unchecked, [Unchecked::Data]);
    let stream = Options::default().with("layout", "stream");
    let plan = format_of("embd").plan(&model, &stream).unwrap().accept_losses(true);
    let stream = Input::from_bytes("x.weights", plan.to_bytes().unwrap());
    assert_eq!(check(&stream, false).unchecked, [Unchecked::Checksums]);
    let mcf = Input::from_bytes("x.mcf", planned("mcf", &model));
    assert_eq!(check(&mcf, true).unchecked, [Unchecked::Data, Unchecked::Checksums]);
    let glove = Options::default().with("from", "glove");
    let text = Input::from_bytes("x.txt", b"a 1 2\nb 3 4\n".to_vec());
    let (_, findings) = Formats::builtin().check(&text, &glove, false).unwrap();
    assert_eq!(findings.unchecked, [Unchecked::Checksums, Unchecked::Length]);
    // What stands behind an error that ends the reading was not looked at.
    let cut = Input::from_bytes("x.mcf", planned("mcf", &model)[..20].to_vec());
    assert_eq!(check(&cut, false).unchecked, [Unchecked::Rest]);
}

/// A folder of a model in two shards, the last value of the second no number.
fn sharded() -> Vec<(String, Vec<u8>)> {
    let model = samples::tiny_model();
    let mut files = samples::model_directory().unwrap();
    files.retain(|(name, _)| name != "model.safetensors");
    let mut map = serde_json::Map::new();
    for (number, part) in model.tensors.chunks(9).enumerate() {
        let name = format!("model-{number}.safetensors");
        part.iter().for_each(|t| drop(map.insert(t.name.clone(), name.as_str().into())));
        let shard = Container { tensors: part.to_vec(), ..Container::default() };
        files.push((name, planned("safetensors", &shard)));
    }
    let last = files.last_mut().unwrap();
    let end = last.1.len();
    last.1[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    let index = serde_json::json!({ "weight_map": map });
    files.push(("model.safetensors.index.json".into(), index.to_string().into_bytes()));
    files
}

#[test]
fn a_finding_names_its_file_as_it_was_given() {
    let at = |path: &str, mut input: Input| {
        input.path = path.to_owned();
        check(&input, false).into_list()
    };
    // The file itself.
    let mut mcf = planned("mcf", &samples::tiny_model());
    mcf.push(0);
    let found = at("some/where/x.mcf", Input::from_bytes("x.mcf", mcf));
    assert!(found.iter().all(|f| f.file == "some/where/x.mcf"), "{found:?}");
    // A shard, opened by the index.
    let files = sharded();
    let (name, index) = files.last().cloned().unwrap();
    let shards = Input::in_memory(&name, index, files.clone());
    let found = at("m/model.safetensors.index.json", shards);
    let nan: Vec<_> = found.iter().filter(|f| f.rule == "ST-08").collect();
    let last = &files[files.len() - 2];
    assert_eq!(nan[0].file, format!("m/{}", last.0));
    assert_eq!(nan[0].end, last.1.len() as u64);
    // The same in a folder, and a setting in one of its files.
    let mut files = sharded();
    let config = files.iter_mut().find(|(name, _)| name == "config.json").unwrap();
    let mut json: serde_json::Value = serde_json::from_slice(&config.1).unwrap();
    json["num_attention_heads"] = "abc".into();
    config.1 = json.to_string().into_bytes();
    let mut folder = Input::in_memory("m", Vec::new(), files);
    folder.is_folder = true;
    let found = at("models/m/", folder);
    let file = |rule: &str| found.iter().find(|f| f.rule == rule).map(|f| f.file.as_str());
    assert_eq!(file("HF-07"), Some(format!("models/m/{}", last.0).as_str()));
    assert_eq!(file("MODEL-02"), Some("models/m/config.json"));
    // meta.json beside a file of rows.
    let meta =
        br#"{"quantization":{"dtype":"int8","scale_factor":127},"shape":[1,2],"records":[{}]}"#;
    let beside = vec![("meta.json".to_owned(), meta.to_vec())];
    let found = at("a/x.i8bin", Input::in_memory("x.i8bin", vec![127, 0], beside));
    let [version] = &found[..] else { panic!("{found:?}") };
    assert_eq!((version.rule, version.file.as_str()), ("I8-07", "a/meta.json"));
    // Errors name it too.
    let mut input = Input::from_bytes("x.npy", b"\x93NUMPY".to_vec());
    input.path = "far/away/x.npy".to_owned();
    let error = Formats::builtin().open(&input, &Options::default()).unwrap_err();
    assert!(matches!(&error, Error::Malformed { file, .. } if file == "far/away/x.npy"), "{error}");
}

#[test]
fn nothing_is_no_loss() {
    let mut report = Report::new();
    for nothing in [Subject::Records(0), Subject::Vocabulary(0), Subject::Subwords(0)] {
        report.lose(nothing, "the format has none");
    }
    assert!(report.losses.is_empty(), "{:?}", report.losses);
    report.lose(Subject::Records(1), "the format has none");
    assert_eq!(report.losses[0].what(), "1 row record");
    let mut rows = samples::unit_vectors();
    rows.tensors =
        Container::builder().values("embeddings", &[0, 4], Vec::new()).build().unwrap().tensors;
    let empty = br#"{"shape": [0, 4], "records": []}"#.to_vec();
    rows.records =
        Some(Records::parse(weighbridge_format::View::owned(empty).load().unwrap()).unwrap());
    let plan = format_of("npy").plan(&rows, &Options::default()).unwrap();
    assert!(
        !plan.report.losses.iter().any(|l| l.what().contains("0 row")),
        "{:?}",
        plan.report.losses
    );
}
