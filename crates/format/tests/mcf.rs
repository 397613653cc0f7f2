//! MCF in detail: model directories packed and unpacked, shared payloads, odd integers, and files
//! that mean harm.

mod common;

use common::{format_of, open};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use weighbridge_codec::DType;
use weighbridge_format::model::{Attachment, Scaled, Scaling, Subject};
use weighbridge_format::plan::Loss;
use weighbridge_format::sink::to_memory;
use weighbridge_format::{
    Container, Encoding, Error, Formats, Input, Options, Output, Progress, Tensor, View, samples,
};
use weighbridge_testkit::stored;

fn bytes(container: &Container, format: &str, options: &Options) -> Vec<u8> {
    let plan = format_of(format).plan(container, options).unwrap();
    to_memory(&plan).unwrap().remove(0).1
}

fn read(name: &str, bytes: Vec<u8>) -> Container {
    Formats::builtin().open(&Input::from_bytes(name, bytes), &Options::default()).unwrap()
}

fn rules(bytes: Vec<u8>) -> Vec<&'static str> {
    let input = Input::from_bytes("x.mcf", bytes);
    let (_, findings) = Formats::builtin().check(&input, &Options::default(), false).unwrap();
    findings.list().iter().map(|f| f.rule).collect()
}

/// Every file of a folder with its content.
fn tree(folder: &Path, prefix: &str, out: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            tree(&entry.path(), &format!("{name}/"), out);
        } else {
            out.insert(name, std::fs::read(entry.path()).unwrap());
        }
    }
}

fn put(folder: &Path, files: &[(String, Vec<u8>)]) {
    for (name, content) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
}

/// From file to file, without a loss.
fn step(from: &Path, to: &Path, format: &str) {
    let plan = format_of(format).plan(&open(from).unwrap(), &Options::default()).unwrap();
    plan.write(Output::new(to).overwrite(true), &mut Progress::none()).unwrap();
}

/// Packs a directory into MCF, and through safetensors too, and unpacks it again.
fn survives(files: &[(String, Vec<u8>)]) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    put(&at("model"), files);
    step(&at("model"), &at("packed.mcf"), "mcf");
    step(&at("packed.mcf"), &at("carried.safetensors"), "safetensors");
    step(&at("carried.safetensors"), &at("again.mcf"), "mcf");
    assert_eq!(std::fs::read(at("packed.mcf")).unwrap(), std::fs::read(at("again.mcf")).unwrap());
    assert_eq!(rules(std::fs::read(at("packed.mcf")).unwrap()), [""; 0]);
    step(&at("again.mcf"), &at("unpacked"), "hf");
    let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
    tree(&at("model"), "", &mut before);
    tree(&at("unpacked"), "", &mut after);
    assert!(before == after, "{:?} {:?}", before.keys(), after.keys());
    assert_eq!(before.len(), files.len());
}

#[test]
fn a_model_directory_packs_and_unpacks_to_the_same_bytes() {
    let mut files = samples::model_directory().unwrap();
    files.push(("assets/deep/notes.txt".into(), b"\xff not UTF-8".to_vec()));
    files.push(("empty.txt".into(), Vec::new()));
    survives(&files);
}

#[test]
fn shards_keep_their_headers() {
    let mut files = samples::model_directory().unwrap();
    files.retain(|(name, _)| name != "model.safetensors");
    let model = samples::tiny_model();
    let mut map = serde_json::Map::new();
    for (number, part) in model.tensors.chunks(9).enumerate() {
        let name = format!("model-{:05}-of-00002.safetensors", number + 1);
        part.iter().for_each(|t| drop(map.insert(t.name.clone(), name.as_str().into())));
        let shard =
            Container { tensors: part.to_vec(), format: "safetensors", ..Container::default() };
        files.push((name, bytes(&shard, "safetensors", &Options::default())));
    }
    let index = serde_json::json!({"metadata": {"total_size": 1}, "weight_map": map});
    files.push(("model.safetensors.index.json".into(), index.to_string().into_bytes()));
    survives(&files);
}

#[test]
fn a_folder_in_the_way_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    put(&at("model"), &samples::model_directory().unwrap());
    put(&at("full"), &[("mine.txt".into(), b"mine".to_vec())]);
    std::fs::create_dir(at("empty")).unwrap();
    let plan = format_of("hf").plan(&open(at("model")).unwrap(), &Options::default()).unwrap();
    for force in [false, true] {
        let output = Output::new(at("full")).overwrite(force);
        assert!(matches!(plan.write(output, &mut Progress::none()), Err(Error::Refused(_))));
    }
    assert_eq!(std::fs::read(at("full/mine.txt")).unwrap(), b"mine");
    step(&at("model"), &at("empty"), "hf");
    assert!(open(at("empty")).is_ok());
}

fn tensor(name: &str, encoding: Encoding, shape: &[u64], data: Vec<u8>) -> Tensor {
    stored(name, encoding, shape.to_vec(), View::owned(data))
}

#[test]
fn equal_tensors_are_stored_once_when_asked() {
    let plain = Encoding::Plain(DType::F32);
    let tensors = vec![
        tensor("a", plain.clone(), &[4, 64], vec![7; 1024]),
        tensor("b", plain.clone(), &[4, 64], vec![7; 1024]),
        tensor("c", plain.clone(), &[64, 4], vec![7; 1024]),
        tensor("d", plain, &[4, 64], vec![9; 1024]),
    ];
    let container = Container { tensors, ..Container::default() };
    let whole = bytes(&container, "mcf", &Options::default());
    let once = bytes(&container, "mcf", &Options::default().with("dedup", "true"));
    assert_eq!(whole.len() - once.len(), 1024);
    assert_eq!(rules(once.clone()), [""; 0]);
    let file = read("x.mcf", once.clone());
    for t in &container.tensors {
        assert!(
            file.tensor(&t.name).unwrap().view().unwrap().same_bytes(t.view().unwrap()).unwrap()
        );
    }
    // What shares its bytes goes on sharing them.
    assert_eq!(bytes(&file, "mcf", &Options::default()), once);
}

#[test]
fn integers_without_a_scale_have_no_values() {
    let unscaled = |codes| Encoding::Scaled(Arc::new(Scaled { codes, scaling: Scaling::Unknown }));
    let tensors = vec![
        tensor("eight", unscaled(DType::I8), &[2, 3], vec![1, 2, 3, 250, 251, 252]),
        tensor("four", unscaled(DType::U4), &[3, 1], vec![0x9F, 0x08]),
    ];
    let container = Container { tensors, format: "mcf", ..Container::default() };
    let packed = bytes(&container, "mcf", &Options::default());
    let mut found = rules(packed.clone());
    found.dedup();
    assert_eq!(found, ["MCF-32", "MCF-31", "MCF-32", "MCF-31"]);
    let file = read("x.mcf", packed.clone());
    for (tensor, name) in file.tensors.iter().zip(["i8:unscaled", "u4:unscaled"]) {
        assert_eq!(tensor.encoding.name(), name);
        let errors = [
            tensor.values_f32(0, 2).map(|_| ()).unwrap_err(),
            tensor.scalar(0).map(|_| ()).unwrap_err(),
            tensor.for_each_block(|_| ()).unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(&error, Error::Unsupported(p) if p.subject == tensor.name), "{error}");
        }
    }
    // The codes travel through safetensors and back; other formats get whole numbers, and lose that
    // they were codes.
    let plan = format_of("safetensors").plan(&file, &Options::default()).unwrap();
    assert_eq!((plan.report.losses.len(), plan.report.warnings.len()), (0, 2));
    let carried = read("x.safetensors", bytes(&file, "safetensors", &Options::default()));
    assert!(carried.tensors.iter().all(|t| !t.encoding.has_values()));
    assert_eq!(bytes(&carried, "mcf", &Options::default()), packed);
    let plan = format_of("oinf").plan(&file, &Options::default()).unwrap();
    assert_eq!(plan.report.losses.len(), 2);
    assert_eq!(
        plan.report.losses[0].to_string(),
        "type of tensor \"eight\": it has codes without a scale, which are kept as whole numbers"
    );
    let numbers = plan.accept_losses(true).to_bytes().unwrap();
    let numbers = read("x.oinf", numbers);
    assert_eq!(
        numbers.tensor("eight").unwrap().values_f32(0, 6).unwrap(),
        [1.0, 2.0, 3.0, -6.0, -5.0, -4.0]
    );
    assert_eq!(numbers.tensor("four").unwrap().values_f32(0, 3).unwrap(), [15.0, 9.0, 8.0]);
    // A type for real numbers that was asked for is not given to what has no values.
    let asked = Container { dtype: Some(DType::F16), ..file };
    let plan = format_of("oinf").plan(&asked, &Options::default()).unwrap();
    assert_eq!(plan.report.losses.len(), 2);
}

#[test]
fn scales_are_kept_between_formats() {
    let scaled = |codes, zero_points: Option<Vec<i32>>| {
        let scaling = Scaling::Affine { axis: None, scales: vec![0.25], zero_points };
        Encoding::Scaled(Arc::new(Scaled { codes, scaling }))
    };
    let odd = Scaling::Offset { scale: 0.5, zero: 1.75 };
    let offset = Encoding::Scaled(Arc::new(Scaled { codes: DType::I8, scaling: odd }));
    let tensors = vec![
        tensor("weights", scaled(DType::I8, None), &[3], vec![129, 0, 127]),
        tensor("lowest", scaled(DType::I8, None), &[3], vec![128, 0, 127]),
        tensor("zero", scaled(DType::I4, Some(vec![-3])), &[3], vec![0x78, 0x01]),
        tensor("offset", offset, &[2], vec![1, 2]),
    ];
    let container = Container { tensors, ..Container::default() };
    let packed = bytes(&container, "mcf", &Options::default());
    assert_eq!(rules(packed.clone()), [""; 0]);
    let file = read("x.mcf", packed.clone());
    for t in &container.tensors {
        let n = usize::try_from(t.count()).unwrap();
        assert_eq!(
            file.tensor(&t.name).unwrap().values_f32(0, n).unwrap(),
            t.values_f32(0, n).unwrap(),
            "{}",
            t.name
        );
    }
    assert_eq!(file.tensor("offset").unwrap().values_f32(0, 2).unwrap(), [-0.375, 0.125]);
    // OINF has whole zero points only: those stay codes, the other becomes values.
    let carried = read("x.oinf", bytes(&file, "oinf", &Options::default()));
    let names = ["weights", "lowest", "zero", "offset"];
    let kinds = names.map(|n| carried.tensor(n).unwrap().encoding.name().into_owned());
    assert_eq!(kinds, ["i8:scaled", "i8:scaled", "i4:scaled", "f32"]);
    let hub = read("x.safetensors", bytes(&file, "safetensors", &Options::default()));
    assert_eq!(bytes(&hub, "mcf", &Options::default()), packed);
}

#[test]
fn sections_of_unknown_types_travel() {
    let mut container = samples::tiny_model();
    let data = View::owned(b"what only someone else knows".to_vec());
    let name = "/mcf/section-0x0abc".to_owned();
    container.attachments.push(Attachment { name: name.clone(), data, described: false });
    let packed = bytes(&container, "mcf", &Options::default());
    assert_eq!(rules(packed.clone()), [""; 0]);
    let carried = read(
        "x.safetensors",
        bytes(&read("x.mcf", packed.clone()), "safetensors", &Options::default()),
    );
    assert!(carried.attachments.iter().any(|a| a.name == name));
    assert_eq!(bytes(&carried, "mcf", &Options::default()), packed);
}

/// Values that were changed on the way are no codes any more.
#[test]
fn edited_values_are_not_made_codes_again() {
    let blocks = weighbridge_testkit::blocks_container();
    let packed = read("x.mcf", bytes(&blocks, "mcf", &Options::default()));
    let mut carried = read("x.safetensors", bytes(&packed, "safetensors", &Options::default()));
    for tensor in &mut carried.tensors {
        let doubled: Vec<u8> = tensor
            .values_f32(0, 120)
            .unwrap()
            .iter()
            .flat_map(|v| (2.0 * v).to_le_bytes())
            .collect();
        tensor.data =
            weighbridge_format::model::Data::Stored(View::owned(doubled), Default::default());
    }
    let plan = format_of("mcf").plan(&carried, &Options::default()).unwrap();
    let refused = to_memory(&plan).unwrap_err().to_string();
    assert!(refused.contains("is not a code of its recorded scale"), "{refused}");
}

/// Fields of ModelInfo and entries of the same key both arrive.
#[test]
fn entries_beside_fields_are_kept() {
    use weighbridge_format::model::Value;
    let mut container = samples::tiny_model();
    container.set_text("entry:vocab_size", "another");
    container.metadata.push(("entry:model_name".into(), Value::Number(DType::U32, 7)));
    let packed = bytes(&container, "mcf", &Options::default());
    assert_eq!(rules(packed.clone()), [""; 0]);
    let file = read("x.mcf", packed.clone());
    assert_eq!(file.text("vocab_size"), container.text("vocab_size"));
    assert_eq!(file.text("entry:vocab_size"), Some("another"));
    assert!(file.metadata.iter().any(|(k, v)| k == "entry:model_name" && v.type_name() == "u32"));
    assert_eq!(bytes(&file, "mcf", &Options::default()), packed);
}

/// What lies in a folder beside the model arrives, or is listed.
#[test]
fn odd_files_of_a_directory_are_carried_or_listed() {
    let mut files = samples::model_directory().unwrap();
    let shard = files.iter().find(|(n, _)| n == "model.safetensors").unwrap().1.clone();
    files.push(("model-lora.safetensors".into(), shard));
    files.push(("mcf/section-0x0003".into(), b"a file like others".to_vec()));
    survives(&files);
    files.push(("model.onnx".into(), vec![1]));
    files.push((".git/config".into(), vec![2]));
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), &files);
    #[cfg(unix)]
    std::os::unix::fs::symlink("nowhere", folder.path().join("broken")).unwrap();
    let container = open(folder.path()).unwrap();
    let listed = ["model.onnx", ".git/", "broken"];
    assert!(
        listed.iter().all(|l| container.ignored.contains(&Subject::File((*l).to_owned()))),
        "{:?}",
        container.ignored
    );
    // A name that MCF has another use for.
    files.push(("x.safetensors.header".into(), vec![3]));
    put(folder.path(), &files);
    let container = open(folder.path()).unwrap();
    let refused = format_of("mcf").plan(&container, &Options::default());
    assert!(matches!(refused, Err(Error::Refused(_))));
}

/// Types that MCF lacks come back from the wider ones, with the header that names them.
#[test]
fn types_that_mcf_lacks_come_back_in_a_directory() {
    let mut files = samples::model_directory().unwrap();
    files.retain(|(name, _)| name != "model.safetensors");
    let tensors = vec![
        tensor("mask", Encoding::Plain(DType::Bool), &[3], vec![0, 1, 1]),
        tensor("small", Encoding::Plain(DType::F8E4M3), &[4], vec![1, 0x40, 0xC1, 0x7E]),
    ];
    let model = Container { tensors, format: "safetensors", ..Container::default() };
    files.push(("model.safetensors".into(), bytes(&model, "safetensors", &Options::default())));
    survives(&files);
}

/// Thousands of sections, keys and names for the same bytes.
#[test]
fn many_small_parts_are_no_trouble() {
    let mut container = samples::tiny_model();
    for i in 0..5_000u32 {
        let name = format!("/mcf/section-0x{:04x}", 0x1_0000 + i);
        container.attachments.push(Attachment {
            name,
            data: View::owned(vec![]),
            described: false,
        });
        container.set_text(&format!("key {i}"), "x");
        let mut alias = container.tensors[0].clone();
        alias.name = format!("alias {i}");
        container.tensors.push(alias);
    }
    let packed = bytes(&container, "mcf", &Options::default());
    assert_eq!(rules(packed.clone()), [""; 0]);
    let file = read("x.mcf", packed.clone());
    assert_eq!((file.attachments.len(), file.tensors.len()), (5_001, 5_021));
    let carried = read("x.safetensors", bytes(&file, "safetensors", &Options::default()));
    assert_eq!(bytes(&carried, "mcf", &Options::default()), packed);
}

/// The same codes with two scales are two payloads; in OINF they may be one blob.
#[test]
fn other_scales_are_another_payload() {
    let data = View::owned(vec![1, 2, 3, 4]);
    let scaled = |scale: f32| {
        let scaling = Scaling::Affine { axis: None, scales: vec![scale], zero_points: None };
        Encoding::Scaled(Arc::new(Scaled { codes: DType::I8, scaling }))
    };
    let tensors = vec![
        stored("x", scaled(0.5), vec![4], data.clone()),
        stored("y", scaled(2.0), vec![4], data),
    ];
    let container = Container { tensors, ..Container::default() };
    for options in [Options::default(), Options::default().with("dedup", "true")] {
        let file = read("x.mcf", bytes(&container, "mcf", &options));
        assert_eq!(file.tensor("x").unwrap().values_f32(0, 4).unwrap(), [0.5, 1.0, 1.5, 2.0]);
        assert_eq!(file.tensor("y").unwrap().values_f32(0, 4).unwrap(), [2.0, 4.0, 6.0, 8.0]);
    }
}

/// Keys that look like those beside fields are keys like others.
#[test]
fn keys_are_kept_as_they_are() {
    let mut container = samples::tiny_model();
    for key in ["entry:foo", "foo", "entry:entry:vocab_size", "entry:vocab_size"] {
        container.set_text(key, format!("value of {key}"));
    }
    let packed = bytes(&container, "mcf", &Options::default());
    assert_eq!(rules(packed.clone()), [""; 0]);
    let file = read("x.mcf", packed);
    for (key, value) in &container.metadata {
        assert_eq!(file.text(key), value.as_text(), "{key}");
    }
    // A key that means a file is said to be lost; a name that is none is refused.
    container.set_text("file:x", "text");
    let plan = format_of("mcf").plan(&container, &Options::default()).unwrap();
    assert_eq!(plan.report.losses.len(), 1);
    container.tensors[0].name.clear();
    assert!(format_of("mcf").plan(&container, &Options::default()).is_err());
}

/// A vocabulary that only travels as a file is no loss where it is a vocabulary again.
#[test]
fn embd_comes_back_without_loss() {
    let model = samples::tiny_model();
    let packed = read("x.mcf", bytes(&model, "mcf", &Options::default()));
    let plan = format_of("embd").plan(&packed, &Options::default()).unwrap();
    assert!(plan.report.losses.is_empty(), "{:?}", plan.report.losses);
    assert!(packed.vocabulary.unwrap().same_as(model.vocabulary.as_ref().unwrap()));
}

/// A file by the specification: header, directory, and sections of these types.
fn by_hand(sections: &[(u32, &[u8])], directory_first: bool, minor: u16, flags: u64) -> Vec<u8> {
    let size = 24 * sections.len();
    let mut at: usize = if directory_first { 40 + size } else { 40 };
    let mut places = Vec::new();
    for (kind, content) in sections {
        at = at.next_multiple_of(8);
        places.push((*kind, at, *content));
        at += content.len();
    }
    let directory = if directory_first { 40 } else { at.next_multiple_of(8) };
    let end = if directory_first { at } else { directory + size };
    let mut out = b"MCF\0\x01\0".to_vec();
    out.extend(minor.to_le_bytes());
    out.extend(40u32.to_le_bytes());
    out.extend((sections.len() as u32).to_le_bytes());
    for word in [directory as u64, end as u64, flags] {
        out.extend(word.to_le_bytes());
    }
    let mut table = Vec::new();
    for (kind, at, content) in &places {
        table.extend(kind.to_le_bytes());
        table.extend(1u32.to_le_bytes());
        table.extend((*at as u64).to_le_bytes());
        table.extend((content.len() as u64).to_le_bytes());
    }
    if directory_first {
        out.extend(&table);
    }
    for (_, at, content) in &places {
        out.resize(*at, 0);
        out.extend(*content);
    }
    if !directory_first {
        out.resize(directory, 0);
        out.extend(&table);
    }
    out
}

/// No section is required: data without an index is carried, also through the hub, and what can't hold
/// it says so.
#[test]
fn data_without_an_index_is_carried() {
    let data: Vec<u8> = (0..=255).collect();
    let records = [1u32.to_le_bytes(), 0u32.to_le_bytes()].concat();
    let all: [&[(u32, &[u8])]; 3] =
        [&[(4, &data)], &[(2, &records), (4, &data)], &[(4, b""), (0x102, b"{}")]];
    for sections in all {
        for directory_first in [false, true] {
            let file = by_hand(sections, directory_first, 1, 1);
            assert_eq!(rules(file.clone()), [""; 0], "{sections:?}");
            let container = read("x.mcf", file.clone());
            assert!(container.tensors.is_empty());
            let names: Vec<_> = container.attachments.iter().map(|a| a.name.as_str()).collect();
            assert!(names.contains(&"/mcf/section-0x0004"), "{names:?}");
            let again = bytes(&container, "mcf", &Options::default());
            assert_eq!(again, file);
            let hub = bytes(&container, "safetensors", &Options::default());
            let back = bytes(&read("x.safetensors", hub), "mcf", &Options::default());
            assert_eq!(back, file);
            // OINF carries it as well, and EMBD has no place for it.
            let oinf = bytes(&container, "oinf", &Options::default());
            let carried = read("x.oinf", oinf).attachments;
            assert_eq!(carried.len(), container.attachments.len());
            let plan = format_of("embd").plan(&container, &Options::default()).unwrap();
            let lost = |l: &Loss| l.what().contains("section-0x0004");
            assert!(plan.report.losses.iter().any(lost), "{:?}", plan.report);
        }
    }
}

/// Beside tensors there is no room for such a section; that is a loss, not a broken file.
#[test]
fn tensors_take_the_place_of_data_without_an_index() {
    let mut model = samples::tiny_model();
    let name = "/mcf/section-0x0004".to_owned();
    model.attachments.push(Attachment { name, data: View::owned(vec![1; 9]), described: false });
    let plan = format_of("mcf").plan(&model, &Options::default()).unwrap();
    assert!(plan.report.losses.iter().any(|l| l.what().contains("section-0x0004")));
    assert_eq!(rules(to_memory(&plan).unwrap().remove(0).1), [""; 0]);
}

/// The places that the specification draws, other minor versions and flags, and directories in the
/// order of the file are as good as those of the reference writer, and stay.
#[test]
fn what_the_specification_draws_is_nothing_unusual() {
    // One tensor "w" of one f32, whose payload begins at byte 128 of the file.
    let mut index = Vec::new();
    for word in [1u32, 3, 1, 1] {
        index.extend(word.to_le_bytes());
    }
    for word in [48u64, 88, 96, 1] {
        index.extend(word.to_le_bytes());
    }
    for word in [0u32, 1, 1, 1, 0, 0] {
        index.extend(word.to_le_bytes());
    }
    for word in [128u64, 4, 1] {
        index.extend(word.to_le_bytes());
    }
    index.push(b'w');
    let data = |padding: usize| [&vec![0; padding][..], &1.5f32.to_le_bytes()].concat();
    for directory_first in [true, false] {
        let data = data(if directory_first { 40 } else { 88 });
        for flags in [0, 1] {
            let sections: [(u32, &[u8]); 2] = [(4, &data), (3, &index)];
            let file = by_hand(&sections, directory_first, 1, flags);
            assert_eq!(file[128..132], 1.5f32.to_le_bytes());
            // The second order puts the payload where no writer of ours would.
            let expected: &[&str] = if directory_first { &[] } else { &["MCF-43"] };
            assert_eq!(rules(file.clone()), expected);
            let container = read("x.mcf", file.clone());
            assert_eq!(container.tensors[0].values_f32(0, 1).unwrap(), [1.5]);
            if directory_first {
                let mut again = file.clone();
                again[32] |= 1;
                assert_eq!(bytes(&container, "mcf", &Options::default()), again);
                let mut older = file;
                older[6] = 0;
                assert_eq!(rules(older), [""; 0]);
            }
        }
    }
}

#[test]
fn a_file_of_nothing_is_a_file() {
    let nothing = bytes(&Container::default(), "mcf", &Options::default());
    assert_eq!(rules(nothing.clone()), [""; 0]);
    assert!(read("x.mcf", nothing).tensors.is_empty());
}
