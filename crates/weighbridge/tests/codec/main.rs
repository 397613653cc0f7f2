//! A block codec that the library knows nothing of, with scales among its codes, goes through every
//! verb: what a codec is stands in its trait, and nowhere else.

mod toy;

use std::fs;
use toy::{Interleaved, TOY, blocks};
use weighbridge::codec::block::{BlockCodec, BlockEncoder, Recipe};
use weighbridge::quantize::{Calibration, Method, QuantizeSettings, Quantized};
use weighbridge::{
    Container, DiffSettings, Embeddings, Error, Formats, Input, Options, Progress, Tensor, View,
    diff, quantize, stats, summary, verify,
};
use weighbridge_testkit::data;

fn formats() -> Formats {
    Formats::builtin().with(&TOY)
}

/// Numbers around zero that look random.
fn noise(i: usize) -> f32 {
    let mixed = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    mixed as f32 / 16_777_216.0 - 0.5
}

/// Rows that end within a block, a row longer than what is worked on at a time, and a vector.
fn weights() -> Container {
    let values = |n: usize| (0..n).map(noise).collect();
    Container::builder()
        .values("ragged", &[7, 70], values(7 * 70))
        .values("wide", &[2, 70_001], values(2 * 70_001))
        .values("small", &[1, 1], vec![0.25])
        .build()
        .unwrap()
}

fn settings(method: Method) -> QuantizeSettings {
    let mut settings = QuantizeSettings::new(method);
    settings.formats = formats();
    settings
}

fn quantized(container: &Container) -> Quantized {
    quantize(container, &settings(Method::Blocks(&Interleaved)), &mut Progress::none()).unwrap()
}

fn open(name: &str, bytes: Vec<u8>) -> Container {
    formats().open(&Input::from_bytes(name, bytes), &Options::default()).unwrap()
}

fn all(tensor: &Tensor) -> Vec<f32> {
    tensor.values_f32(0, usize::try_from(tensor.count()).unwrap()).unwrap()
}

/// A block's values as its bytes have them: the bits of the scale by themselves.
fn by_hand(block: &[u8]) -> Vec<f32> {
    let bits = u16::from_le_bytes([block[0], block[1]]);
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3FF) / 1024.0);
    let scale = match exponent {
        0 => fraction * 2f64.powi(-14),
        _ => (1.0 + fraction) * 2f64.powi(exponent - 15),
    };
    // The product of eleven and seven bits is exact.
    block[2..].iter().map(|code| (scale * f64::from(code.cast_signed())) as f32).collect()
}

fn rows_by_hand(codes: &[u8], cols: usize) -> Vec<f32> {
    let rows = codes.chunks_exact(34 * cols.div_ceil(32));
    rows.flat_map(|row| row.chunks_exact(34).flat_map(by_hand).take(cols)).collect()
}

#[test]
fn values_and_errors_are_those_of_the_formula() {
    let original = weights();
    let made = quantized(&original);
    assert_eq!((made.plan.to, made.report.tensors.len()), ("toy", 3));
    let file = open("w.toy", made.plan.to_bytes().unwrap());
    for (tensor, plain) in file.tensors.iter().zip(&original.tensors) {
        assert_eq!(tensor.encoding.name(), "toy8");
        let (cols, values) = (usize::try_from(tensor.shape[1]).unwrap(), all(tensor));
        let codes = tensor.view().unwrap().load().unwrap();
        assert_eq!(values, rows_by_hand(&codes, cols), "{}", tensor.name);
        // No code is off by more than a half, and the scale by no more than f16 rounds.
        let far = |(v, p): (&f32, &f32)| (v - p).abs() > 0.5 / 127.0 * (0.5 + 0.1);
        assert!(!values.iter().zip(all(plain)).any(|(v, p)| far((v, &p))), "{}", tensor.name);
        for start in (0..values.len()).step_by(values.len() / 40 + 1) {
            for n in [1, 31, 100].map(|n: usize| n.min(values.len() - start)) {
                let part = tensor.values_f32(start as u64, n).unwrap();
                assert_eq!(part, values[start..start + n], "{} {start}", tensor.name);
            }
        }
        let mut row = vec![0.0; cols];
        let last = tensor.shape[0] - 1;
        tensor.rows_f32(last, &mut row, &mut Vec::new()).unwrap();
        assert_eq!(row, values[values.len() - cols..]);
        let stats = stats(tensor).unwrap().unwrap();
        assert_eq!((stats.count, stats.nan), (values.len() as u64, 0));
        assert_eq!(stats.max, f64::from(values.iter().copied().fold(f32::MIN, f32::max)));
    }
    // The error that was measured is the one that the file has.
    let compared = diff(&original, &file, &DiffSettings::new()).unwrap();
    for done in &made.report.tensors {
        let found = compared.tensors.iter().find(|t| t.name == done.name).unwrap();
        assert_eq!(found.encodings, ("f32".into(), "toy8".into()));
        let (found, told) = (found.values.unwrap().relative_rmse, done.loss.relative_rmse);
        assert!((found - told).abs() < 1e-9 && told < 0.01, "{}: {found} {told}", done.name);
        assert_eq!(done.method, "toy8");
    }
    let ragged = made.report.tensors.iter().find(|t| t.name == "ragged").unwrap();
    assert_eq!(ragged.bytes_after, 7 * 3 * 34);
}

#[test]
fn files_are_written_again_inspected_and_checked() {
    let bytes = quantized(&weights()).plan.to_bytes().unwrap();
    let file = open("w.toy", bytes.clone());
    let plan = formats().find("toy").unwrap().plan(&file, &Options::default()).unwrap();
    assert!(plan.report.losses.is_empty() && plan.report.changed.is_empty());
    assert_eq!(plan.to_bytes().unwrap(), bytes);
    let text = serde_json::to_string(&summary(&file, &Default::default()).unwrap()).unwrap();
    assert!(text.contains("toy8"), "{text}");

    let check = |bytes: Vec<u8>| {
        let input = Input::from_bytes("w.toy", bytes);
        verify(&formats(), &input, &Options::default(), false).unwrap()
    };
    assert!(check(bytes.clone()).findings.is_empty());
    let mut broken = bytes;
    let codes = file.tensors[0].view().unwrap().span();
    let second_scale = usize::try_from(codes.start).unwrap() + 34;
    broken[second_scale..second_scale + 2].copy_from_slice(&0x7C00u16.to_le_bytes());
    let verdict = check(broken);
    let finding = &verdict.findings[0];
    assert_eq!((finding.rule, finding.start), ("TOY-02", second_scale as u64));
}

/// Formats that don't hold it get the values, exactly.
#[test]
fn others_get_values() {
    let file = open("w.toy", quantized(&weights()).plan.to_bytes().unwrap());
    let mut written = Vec::new();
    for format in Formats::builtin().iter().filter(|f| f.writes()) {
        let id = format.info().id;
        for options in [Options::default(), Options::default().with("keep-codes", "true")] {
            let Ok(plan) = format.plan(&file, &options) else { continue };
            let name = format!("w.{}", format.info().extensions.first().unwrap_or(&""));
            let changed = plan.report.changed.iter().any(|c| (&*c.from, &*c.to) == ("toy8", "f32"));
            let lost = !plan.report.losses.is_empty();
            let files = plan.accept_losses(true).to_files().unwrap();
            let input = Input::from_bytes(&name, files[0].1.clone());
            let Ok(back) = Formats::builtin().open(&input, &Options::default()) else { continue };
            let verdict = verify(&formats(), &input, &Options::default(), false).unwrap();
            // EMBD misses metadata. That safetensors has none shows that its entry was understood.
            let sound = verdict.ok && (id != "safetensors" || verdict.findings.is_empty());
            assert!(sound, "{id}: {:?}", verdict.findings);
            if !lost {
                assert!(changed, "{id}");
                assert!(
                    diff(&file, &back, &DiffSettings::new().tensors_only(true)).unwrap().same,
                    "{id}"
                );
                assert!(back.tensors.iter().all(|t| t.encoding.name() == "f32"), "{id}");
                written.push(id);
            }
        }
    }
    written.dedup();
    assert!(["mcf", "oinf", "safetensors"].iter().all(|id| written.contains(id)), "{written:?}");

    // And the other way round: blocks of another codec are values here.
    let q8 = settings(Method::from_name("q8").unwrap());
    let mcf = quantize(&weights(), &q8, &mut Progress::none()).unwrap();
    assert_eq!(mcf.plan.to, "mcf");
    let mcf = open("w.mcf", mcf.plan.to_bytes().unwrap());
    let plan = formats().find("toy").unwrap().plan(&mcf, &Options::default()).unwrap();
    let here = open("w.toy", plan.to_bytes().unwrap());
    assert!(here.tensors.iter().all(|t| t.encoding.name() == "f32"));
    assert!(diff(&mcf, &here, &DiffSettings::new()).unwrap().same);
}

/// A row has its scales with it, so that it keeps its codes wherever it goes.
#[test]
fn rows_keep_their_codes() {
    let file = open("w.toy", quantized(&weights()).plan.to_bytes().unwrap());
    let ragged = &file.tensors[0];
    let values = all(ragged);
    let rows = [6, 0, 3];
    let expected: Vec<f32> =
        rows.iter().flat_map(|r| values[r * 70..][..70].iter().copied()).collect();
    let picked = ragged.pick_rows(rows.map(|r| r as u64).to_vec()).unwrap();
    assert_eq!(picked.encoding.name(), "toy8");
    assert_eq!(all(&picked), expected);
    assert_eq!(picked.values_f32(75, 40).unwrap(), expected[75..115]);
    assert_eq!(all(&ragged.first_rows(2).unwrap()), values[..140]);
    let container = Container { tensors: vec![picked], ..Container::default() };
    for id in ["toy", "safetensors"] {
        let plan = formats().find(id).unwrap().plan(&container, &Options::default()).unwrap();
        let back = open(&format!("p.{id}"), plan.to_bytes().unwrap());
        assert_eq!(all(&back.tensors[0]), expected, "{id}");
        assert_eq!(back.tensors[0].encoding.name(), if id == "toy" { "toy8" } else { "f32" });
    }
}

#[test]
fn words_are_found_among_such_rows() {
    let vectors: Vec<f32> = (0..4 * 48).map(noise).collect();
    let words = Container::builder().rows(48, vectors).words(["a", "b", "c", "d"]).build().unwrap();
    let mut coded = words.clone();
    let made = quantized(&Container { vocabulary: None, ..words.clone() });
    let file = open("w.toy", made.plan.to_bytes().unwrap());
    coded.tensors[0].encoding = file.tensors[0].encoding.clone();
    coded.tensors[0].data = file.tensors[0].data.clone();
    let rows = |container: &Container| -> Vec<usize> {
        let hits = Embeddings::new(container).unwrap().similar("a", 3).unwrap();
        hits.iter().map(|hit| hit.row).collect()
    };
    assert_eq!(rows(&coded), rows(&words));
}

#[test]
fn what_does_not_go_together_is_refused() {
    let method = Method::Blocks(&Interleaved);
    let none = method.format(Formats::builtin()).unwrap_err();
    assert!(matches!(none, Error::Unsupported(_)), "{none:?}");
    let refused = |settings: &QuantizeSettings, container: &Container| {
        let error = quantize(container, settings, &mut Progress::none()).unwrap_err();
        assert!(matches!(error, Error::Refused(_)), "{error:?}");
        error.to_string()
    };
    for other in ["q8", "int8"] {
        let mut mixed = settings(method);
        mixed.overrides = vec![("wide".to_owned(), Method::from_name(other).unwrap())];
        assert!(refused(&mixed, &weights()).contains(other));
        let mut mixed = settings(Method::from_name(other).unwrap());
        mixed.overrides = vec![("wide".to_owned(), method)];
        assert!(refused(&mixed, &weights()).contains("toy8"));
    }
    let mut calibrated = settings(method);
    calibrated.calibration = Calibration::Texts(vec!["a text".to_owned()]);
    refused(&calibrated, &weights());
    let huge = Container::builder().values("huge", &[2, 40], vec![1e9; 80]).build().unwrap();
    let why = refused(&settings(method), &huge);
    assert!(why.contains("row 0") && why.contains("beyond the range of f16"), "{why}");
}

/// What the package `gguf` makes of the same values, byte for byte, and of the bytes.
#[test]
fn blocks_are_those_of_gguf() {
    let Some(folder) = data::reference("gguf") else { return };
    let json = fs::read(folder.join("quantized.gguf.expected.json")).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let tensors = json["tensors"].as_array().unwrap();
    let entry = tensors.iter().find(|t| t["type"] == "Q8_0").unwrap();
    let number = |key: &str| usize::try_from(entry[key].as_u64().unwrap()).unwrap();
    let gguf = fs::read(folder.join("quantized.gguf")).unwrap();
    let codes = &gguf[number("offset_in_file")..][..number("bytes")];
    let values = |file: &str| {
        let container = open(file, fs::read(folder.join(file)).unwrap());
        all(container.tensors.iter().find(|t| t.name == "Q8_0").unwrap())
    };
    let source = values("quantized.gguf.source.safetensors");
    let mut made = vec![0; codes.len()];
    let clip = (f32::MIN, f32::MAX);
    let recipe = Recipe { encoder: BlockEncoder::Reference, clip, importance: None };
    for (row, made) in source.chunks_exact(64).zip(made.chunks_exact_mut(68)) {
        Interleaved.encode(&recipe, row, Default::default(), made).unwrap();
    }
    assert_eq!(made, codes);
    let tensor = Tensor::stored("w", blocks(), vec![4, 64], View::owned(codes.to_vec())).unwrap();
    assert_eq!(all(&tensor), values("quantized.gguf.expected.safetensors"));
}
