//! Metadata that is changed, in every format: what was asked for changes, and nothing else.

use std::collections::BTreeMap;
#[cfg(feature = "fs")]
use std::path::Path;
use weighbridge::model::{SubwordKind, Value};
use weighbridge::plan::Keeps;
use weighbridge::{
    Container, Edit, Encoding, Error, Format, Formats, Input, Options, check_metadata,
};
#[cfg(feature = "fs")]
use weighbridge_testkit::data;
use weighbridge_testkit::{Fixture, fixtures};

/// Everything that a file holds, so that two can be compared: by key, as text.
fn content(container: &Container) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (key, value) in &container.metadata {
        all.insert(format!("metadata {key}"), said(value));
    }
    for (name, size) in &container.sizevars {
        all.insert(format!("size {name}"), size.to_string());
    }
    for tensor in &container.tensors {
        let mut raw = Vec::new();
        if tensor.has_data() {
            match tensor.view() {
                Some(view) => raw.extend_from_slice(&view.load().unwrap()),
                None => tensor
                    .for_each_block(|b| raw.extend(b.iter().flat_map(|v| v.to_le_bytes())))
                    .unwrap(),
            }
        }
        let scales = match &tensor.encoding {
            Encoding::Scaled(scaled) => format!("{scaled:?}"),
            _ => String::new(),
        };
        let encoding = tensor.encoding.name();
        let said = format!("{encoding} {scales} {:?} {raw:?}", tensor.shape);
        all.insert(format!("tensor {}", tensor.name), said);
    }
    if let Some(words) = &container.vocabulary {
        let tokens: Vec<_> = words.tokens().collect();
        all.insert("vocabulary".to_owned(), format!("{tokens:?} {:?}", words.special));
    }
    if let Some(subwords) = &container.subwords {
        let ngrams: Vec<_> = match &subwords.kind {
            SubwordKind::Explicit(ngrams) => ngrams.iter().collect(),
            _ => Vec::new(),
        };
        let kind = std::mem::discriminant(&subwords.kind);
        let (least, most, rows) = (subwords.min_n, subwords.max_n, subwords.rows());
        all.insert("subwords".to_owned(), format!("{least} {most} {rows} {kind:?} {ngrams:?}"));
    }
    for a in &container.attachments {
        all.insert(format!("file {}", a.name), format!("{:?}", &*a.data.load().unwrap()));
    }
    if let Some(records) = &container.records {
        all.insert("records".to_owned(), format!("{:?}", records.items().unwrap()));
    }
    all
}

fn said(value: &Value) -> String {
    format!("{} {}", value.type_name(), serde_json::to_string(value).unwrap())
}

/// The container as it is after an edit was written and read again; the error where it is refused.
fn written(container: &Container, edit: &Edit, name: &str) -> Result<(Container, Fixture), Error> {
    let format: &Format = Formats::builtin().find(container.format).unwrap();
    check_metadata(container, edit, format)?;
    let plan = format.plan(&edit.apply(container.clone())?, &Options::default())?;
    if !plan.report.losses.is_empty() {
        return Err(Error::Loss(plan.report.losses));
    }
    let mut fixture = Fixture::from_plan(format.info(), "edited", &plan)?;
    name.clone_into(&mut fixture.name);
    Ok((Formats::builtin().open(&fixture.input(), &Options::default())?, fixture))
}

/// A text of the type that a value has, and the value that it is.
fn other(value: &Value) -> Option<(String, Value)> {
    let texts = ["other words", "1", "0", "true", "false"].into_iter();
    let mut values =
        texts.filter_map(|t| Some((t.to_owned(), Value::parse(&value.type_name(), t)?)));
    values.find(|(_, new)| said(new) != said(value))
}

/// Sets and removes each value by itself, and a new one. Says how many changes were made and refused.
fn check(container: &Container, name: &str) -> (usize, usize) {
    let before = content(container);
    let (mut made, mut refused) = (0, 0);
    let mut expect = |edit: &Edit, change: &dyn Fn(&mut BTreeMap<String, String>), what: &str| {
        let mut expected = before.clone();
        change(&mut expected);
        match written(container, edit, name) {
            Err(Error::Refused(_)) => refused += 1,
            Err(error) => panic!("{name}: {what}: {error}"),
            Ok((after, _)) => {
                made += 1;
                let after = content(&after);
                let keys = expected.keys().chain(after.keys());
                let differs: Vec<_> = keys.filter(|k| expected.get(*k) != after.get(*k)).collect();
                assert!(differs.is_empty(), "{name}: {what}: {differs:?}");
            }
        }
    };
    for (key, value) in &container.metadata {
        let entry = format!("metadata {key}");
        let gone = |all: &mut BTreeMap<_, _>| _ = all.remove(&entry);
        expect(&Edit::new().remove(key), &gone, &format!("removing {key}"));
        if let Some((text, new)) = other(value) {
            let set = |all: &mut BTreeMap<_, _>| _ = all.insert(entry.clone(), said(&new));
            expect(&Edit::new().set(key, text), &set, &format!("setting {key}"));
        }
    }
    for (size, _) in &container.sizevars {
        let set =
            |all: &mut BTreeMap<_, _>| _ = all.insert(format!("size {size}"), "77".to_owned());
        expect(&Edit::new().set_size(size, 77), &set, &format!("sizing {size}"));
    }
    let new = |all: &mut BTreeMap<String, String>| {
        all.insert("metadata note.new".to_owned(), "str \"hello\"".to_owned());
    };
    expect(&Edit::new().set("note.new", "hello"), &new, "adding");
    (made, refused)
}

/// A value that is added and removed again leaves the bytes that there were.
fn check_back(container: &Container, name: &str, bytes: &[u8]) {
    let (with, _) = written(container, &Edit::new().set("note.new", "hello"), name).unwrap();
    let (_, file) = written(&with, &Edit::new().remove("note.new"), name).unwrap();
    assert!(file.main == bytes, "{name} is not as it was");
}

fn has_place(container: &Container) -> bool {
    let info = Formats::builtin().find(container.format).unwrap().info();
    info.holds.metadata != Keeps::Nothing && (info.no_metadata)(container).is_none()
}

#[test]
fn every_format_changes_what_was_asked_for() {
    let mut formats = BTreeMap::new();
    for fixture in fixtures() {
        let input = fixture.input();
        let container = Formats::builtin().open(&input, &Options::default()).unwrap();
        if !has_place(&container) {
            continue;
        }
        let (made, _) = check(&container, &fixture.name);
        *formats.entry(fixture.format).or_insert(0) += made;
        if !fixture.is_folder {
            check_back(&container, &fixture.name, &fixture.main);
        }
    }
    let ids: Vec<_> = formats.keys().copied().collect();
    assert_eq!(ids, ["embd", "finalfusion", "hf", "mcf", "oinf", "safetensors"]);
    assert!(formats.values().all(|made| *made > 0), "{formats:?}");
}

/// Files that others wrote, with what they say and don't say.
#[test]
#[cfg(feature = "fs")]
fn files_of_others_change_where_asked_for() {
    let mut visited = 0;
    for part in ["embd", "oinf", "oinf/v2", "mcf", "finalfusion"] {
        let Some(folder) = data::conformance(part) else { return };
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if !path.is_file() || name.ends_with(".json") || name.ends_with("verify.txt") {
                continue;
            }
            let container = open(&path);
            if has_place(&container) {
                visited += 1;
                check(&container, &name);
                check_back(&container, &name, &std::fs::read(&path).unwrap());
            }
        }
    }
    assert_eq!(visited, 44);
}

#[test]
#[cfg(feature = "fs")]
fn model_directories_of_others_change_where_asked_for() {
    for family in ["bert-dense", "mpnet", "qwen3", "xlmr-unigram"] {
        let Some(folder) = data::reference(&format!("families/{family}")) else { return };
        let (made, refused) = check(&open(&folder), family);
        assert!(made > 0 && refused > 0, "{family}: {made} made, {refused} refused");
    }
}

#[cfg(feature = "fs")]
fn open(path: &Path) -> Container {
    Formats::builtin().open(&Input::open(path).unwrap(), &Options::default()).unwrap()
}

/// A file that lacks keys of EMBD's list is not completed, in EMBD and by way of safetensors.
#[test]
fn what_a_file_does_not_say_is_not_added() {
    let formats = Formats::builtin();
    let embd = formats.find("embd").unwrap();
    let fixture =
        fixtures().into_iter().find(|f| f.format == "embd" && f.content == "model").unwrap();
    let mut container = formats.open(&fixture.input(), &Options::default()).unwrap();
    container.metadata.retain(|(key, _)| key == "model_name");
    let (bare, _) = written(&container, &Edit::new().set("note", "x"), "bare.weights").unwrap();
    let keys: Vec<_> = bare.metadata.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["model_name", "note"]);
    let carried = formats.find("safetensors").unwrap().plan(&bare, &Options::default()).unwrap();
    let input = Input::in_memory("x.safetensors", carried.to_bytes().unwrap(), vec![]);
    let carried = formats.open(&input, &Options::default()).unwrap();
    let plans = [&bare, &carried].map(|c| embd.plan(c, &Options::default()).unwrap());
    assert_eq!(plans[0].to_bytes().unwrap(), plans[1].to_bytes().unwrap());
    assert_eq!(plans[0].report.warnings.len(), 9);
}

#[test]
fn types_are_kept_or_named() {
    let (f32, i64) = (weighbridge::codec::DType::F32, weighbridge::codec::DType::I64);
    let mut base = Container::builder().values("w", &[1], vec![1.0]).build().unwrap();
    base.metadata = vec![
        ("lr".to_owned(), Value::Number(f32, 0.25f32.to_bits().into())),
        ("a:str".to_owned(), Value::Number(i64, 3)),
    ];
    let set = |key: &str, text: &str| {
        let edited = Edit::new().set(key, text).apply(base.clone());
        edited
            .map(|c| c.metadata.iter().map(|(k, v)| format!("{k} {}", said(v))).collect::<Vec<_>>())
    };
    assert_eq!(set("lr", "0.5").unwrap(), ["lr f32 0.5", "a:str i64 3"]);
    assert_eq!(set("lr:str", "abc").unwrap(), ["lr str \"abc\"", "a:str i64 3"]);
    assert_eq!(set("n:u8", "7").unwrap()[2], "n u8 7");
    assert_eq!(set("n:x", "7").unwrap()[2], "n:x str \"7\"");
    // A key that is there is meant as it stands there.
    assert_eq!(set("a:str", "4").unwrap()[1], "a:str i64 4");
    for (key, text, expected) in [
        ("lr", "abc", "metadata \"lr\" is f32, and \"abc\" can't be read as that"),
        ("lr:i64", "0.5", "\"0.5\" can't be read as i64"),
        ("n:bool", "yes", "\"yes\" can't be read as bool"),
        ("lr:float", "1", "\"float\" is not a type that metadata can be set as"),
    ] {
        let error = set(key, text).unwrap_err();
        assert!(matches!(error, Error::Refused(_)));
        assert_eq!(error.message(), expected);
    }
}
