//! Both formats from end to end, in memory.

mod document;

use super::quantize::tests::unit_rows;
use super::{F32, I8};
use crate::formats::testing::{check, open};
use crate::formats::{Format, Formats};
use crate::model::{Encoding, Tensor};
use crate::plan::Plan;
use crate::sink::to_memory;
use crate::{Container, Error, Findings, Input, Options, Severity, View};
use weighbridge_codec::DType;

fn input(name: &str, bytes: &[u8], meta: Option<&str>) -> Input {
    let beside = meta.map(|m| ("meta.json".to_owned(), m.as_bytes().to_vec()));
    Input::in_memory(name, bytes.to_vec(), beside.into_iter().collect())
}

fn meta(kind: &str, rows: usize, dim: usize) -> String {
    let (dtype, scale) = if kind == "i8bin" { ("int8", "127") } else { ("float32", "1.0") };
    format!(
        "{{\"version\": \"1.0\", \"quantization\": {{\"dtype\": \"{dtype}\", \"scale_factor\": {scale}}}, \"shape\": [{rows}, {dim}], \"records\": [{}]}}",
        vec!["{\"n\":1}"; rows].join(",")
    )
}

fn matrix(rows: &[Vec<f32>]) -> Container {
    let bytes = rows.iter().flatten().flat_map(|v| v.to_le_bytes()).collect();
    let shape = vec![rows.len() as u64, rows.first().map_or(4, Vec::len) as u64];
    let encoding = Encoding::Plain(DType::F32);
    let tensor = Tensor::unchecked("x", encoding, shape, View::owned(bytes));
    Container { format: "npy", tensors: vec![tensor], ..Container::default() }
}

fn files(plan: &Plan) -> (Vec<u8>, String) {
    let mut files = to_memory(plan).unwrap();
    assert_eq!(files[1].0.as_deref(), Some("meta.json"));
    (files.remove(0).1, String::from_utf8(files.remove(0).1).unwrap())
}

fn rules(findings: &Findings) -> Vec<&'static str> {
    findings.list().iter().map(|f| f.rule).collect()
}

fn structure(input: &Input, options: &Options) -> Vec<&'static str> {
    rules(&Formats::builtin().read(input, options).unwrap().findings)
}

/// What `verify` says of rows of codes.
fn verify(rows: &[Vec<i8>]) -> Findings {
    let bytes: Vec<u8> = rows.iter().flatten().map(|c| c.cast_unsigned()).collect();
    let text = meta("i8bin", rows.len(), rows[0].len());
    check(&input("x.i8bin", &bytes, Some(&text)), &Options::default(), false).unwrap().1
}

fn scaled(scale: f32, how: fn(f32) -> f32) -> Vec<Vec<i8>> {
    let code = |v: &f32| how(v * 127.0 * scale) as i8;
    unit_rows(40, 512, 1).iter().map(|row| row.iter().map(code).collect()).collect()
}

#[test]
fn the_shape_comes_from_dim_then_meta_then_habit() {
    let none = Options::default();
    let dim = |n: &str| Options::default().with("dim", n);
    let text = meta("i8bin", 4, 6);
    let with = input("x.i8bin", &[1; 24], Some(&text));
    let container = open(&with, &none).unwrap();
    assert_eq!(
        (container.tensors[0].shape.as_slice(), container.layout.as_str()),
        (&[4, 6][..], "version 1.0")
    );
    assert_eq!(&*container.records.unwrap().to_document().unwrap(), text.as_bytes());
    assert_eq!(structure(&with, &none), [""; 0]);
    assert_eq!(structure(&with, &dim("6")), [""; 0]);
    // A different width: said, and the records do not fit any more.
    assert_eq!(structure(&with, &dim("3")), ["I8-04"]);
    assert_eq!(structure(&with, &dim("7")), ["I8-04", "I8-01"]);
    assert!(matches!(open(&with, &dim("0")), Err(Error::Refused { .. })));

    let alone = input("x.i8bin", &[1; 1024], None);
    assert_eq!(structure(&alone, &none), ["I8-03"]);
    assert_eq!(open(&alone, &none).unwrap().tensors[0].shape, [2, 512]);
    let container = open(&alone, &dim("256")).unwrap();
    assert_eq!(
        (container.tensors[0].shape.as_slice(), container.layout.as_str()),
        (&[4, 256][..], "no meta.json")
    );
    assert_eq!(structure(&input("x.i8bin", &[1; 1000], None), &none), ["I8-03", "I8-01"]);
    assert_eq!(structure(&input("x.f32bin", &[1; 20], None), &dim("5")), [""; 0]);
    assert_eq!(
        structure(&input("x.f32bin", &[1; 21], None), &dim(&u64::MAX.to_string())),
        ["I8-01"]
    );
}

#[test]
fn sizes_are_the_specifications() {
    let text = meta("i8bin", 4, 6);
    let found = |size: usize| {
        let input = input("x.i8bin", &vec![1; size], Some(&text));
        Formats::builtin().read(&input, &Options::default()).unwrap().findings.into_list().remove(0)
    };
    let finding = found(23);
    assert_eq!(
        finding.message,
        "Embedding file size mismatch: expected 24 bytes (4 cards × 6 dims), got 23 bytes."
    );
    assert!(finding.hint.to_string().contains("export_for_browser.py"));
    assert!(found(48).hint.to_string().contains("float16"));
    assert!(found(96).hint.to_string().contains("f32bin"));
}

#[test]
fn codes_out_of_range_are_errors_with_their_index() {
    let mut rows = scaled(1.0, f32::round_ties_even);
    rows[2][3] = -128;
    let findings = verify(&rows);
    let finding = findings.first_error().unwrap();
    assert_eq!((finding.rule, finding.start), ("I8-11", 2 * 512 + 3));
    assert!(finding.message.starts_with("Invalid int8 value at index 1027: -128."));
}

#[test]
fn norms_are_judged_together() {
    assert!(verify(&scaled(1.0, f32::round_ties_even)).is_clean());
    // The exporter's cast: one warning, with the range.
    let truncated = verify(&scaled(1.0, f32::trunc));
    assert_eq!(rules(&truncated), ["I8-13"]);
    assert!(truncated.list()[0].found.starts_with("0.9"));
    assert!(!truncated.has_errors());
    // Slightly off: one warning that names the worst row.
    let mut near = scaled(1.0, f32::round_ties_even);
    near[7] = scaled(1.015, f32::round_ties_even).remove(7);
    near[9] = scaled(0.987, f32::round_ties_even).remove(9);
    let findings = verify(&near);
    assert_eq!(rules(&findings), ["I8-12"]);
    assert!(findings.list()[0].message.starts_with("2 of 40 rows"));
    assert!(findings.list()[0].field.starts_with("row "));
    // One row far off among good ones, truncated ones, and an empty one.
    for how in [f32::round_ties_even, f32::trunc] {
        let mut far = scaled(1.0, how);
        far[5] = vec![0; 512];
        far[6] = scaled(0.7, how).remove(6);
        let findings = verify(&far);
        let errors: Vec<_> =
            findings.list().iter().filter(|f| f.severity == Severity::Error).collect();
        assert!(errors.iter().all(|f| f.rule == "I8-14"));
        assert!(errors.iter().any(|f| f.field == "row 5" && f.hint.to_string().contains("zeros")));
    }
    // Truncating can't halve a norm: many errors, of which ten are named.
    let half = verify(&scaled(0.5, f32::round_ties_even));
    assert_eq!(rules(&half), ["I8-14"; 11]);
    assert_eq!(half.list()[10].field, "30 more rows behind row 9");
    let mut empty = vec![vec![0; 20_000]; 3];
    empty[0][0] = 1;
    assert_eq!(rules(&verify(&empty)), ["I8-14"; 3]);
}

#[test]
fn f32_rows_are_checked_for_numbers_only() {
    let mut rows = unit_rows(20, 8, 1);
    rows[3] = vec![0.0; 8];
    rows[4][1] = f32::INFINITY;
    rows[5].iter_mut().for_each(|v| *v *= 9.0);
    let bytes: Vec<u8> = rows.iter().flatten().flat_map(|v| v.to_le_bytes()).collect();
    let input = input("x.f32bin", &bytes, Some(&meta("f32bin", 20, 8)));
    let findings = check(&input, &Options::default(), false).unwrap().1;
    assert_eq!(rules(&findings), ["I8-15", "I8-16"]);
    assert_eq!(findings.list()[0].field, "row 4, column 1");
    assert_eq!(findings.list()[1].field, "row 3");
}

#[test]
fn what_was_read_is_written_again() {
    let bytes: Vec<u8> =
        scaled(1.0, f32::trunc).iter().flatten().map(|c| c.cast_unsigned()).collect();
    let text = meta("i8bin", 40, 512);
    let container = open(&input("x.i8bin", &bytes, Some(&text)), &Options::default()).unwrap();
    let plan = I8.plan(&container, &Options::default()).unwrap();
    assert!(plan.report.losses.is_empty() && plan.report.kept == 1);
    assert_eq!(files(&plan), (bytes.clone(), text.clone()));
    // Values that were decoded on the way are codes still.
    let mut travelled = container.clone();
    let values: Vec<u8> = container.tensors[0]
        .values_f32(0, 40 * 512)
        .unwrap()
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    let encoding = Encoding::Plain(DType::F32);
    travelled.tensors[0] = Tensor {
        origin: Some(container.tensors[0].encoding.clone()),
        ..Tensor::unchecked("embeddings", encoding, vec![40, 512], View::owned(values))
    };
    let plan = I8.plan(&travelled, &Options::default().with("rounding", "truncate")).unwrap();
    assert!(plan.report.losses.is_empty() && plan.report.warnings.len() == 1);
    assert_eq!(files(&plan), (bytes.clone(), text));
    // As f32 with a meta.json of its own, and as int8 again, normalized.
    let (floats, meta) = files(&F32.plan(&container, &Options::default()).unwrap());
    assert!(meta.starts_with(r#"{"version": "1.0", "quantization": {"dtype": "float32", "scale_factor": 1.0, "original_dtype": "float32", "note": "#));
    let sum = crc32fast::hash(&floats);
    assert!(meta.contains(&format!(r#""shape": [40, 512], "checksum": "{sum:08x}", "records": "#)));
    assert!(meta.contains(r#""records": [{"n":1}, {"n":1}, "#));
    let container = open(&input("x.f32bin", &floats, Some(&meta)), &Options::default()).unwrap();
    let error = I8.plan(&container, &Options::default()).unwrap_err().to_string();
    assert!(error.contains("row 0 has norm 0.9") && error.contains("normalize"), "{error}");
    // Multiples of 1 / 127 that are stretched a little round down more often than up.
    let options = Options::default().with("normalize", "true").with("rounding", "nearest-norm");
    let plan = I8.plan(&container, &options).unwrap();
    let (codes, meta) = files(&plan);
    assert!(meta.contains(r#""dtype": "int8", "scale_factor": 127, "#));
    let input = input("x.i8bin", &codes, Some(&meta));
    assert!(check(&input, &Options::default(), false).unwrap().1.is_clean());
}

#[test]
fn renormalizing_gives_unit_rows() {
    let bytes: Vec<u8> =
        scaled(1.0, f32::trunc).iter().flatten().map(|c| c.cast_unsigned()).collect();
    let input = input("x.i8bin", &bytes, Some(&meta("i8bin", 40, 512)));
    let container = open(&input, &Options::default().with("renormalize", "true")).unwrap();
    assert_eq!(container.tensors[0].encoding, Encoding::Plain(DType::F32));
    for row in 0..40 {
        let norm = super::quantize::norm(&container.tensors[0].values_f32(row * 512, 512).unwrap());
        assert!((norm - 1.0).abs() < 1e-6);
    }
    assert!(I8.plan(&container, &Options::default()).is_ok());
}

#[test]
fn rows_that_are_no_unit_vectors_are_refused_by_number() {
    let refused = |row: Vec<f32>, format: &Format, normalize: bool| {
        let mut rows = unit_rows(300, 4, 1);
        rows[200] = row;
        let options = Options::default().with("normalize", normalize.to_string());
        format.plan(&matrix(&rows), &options).err().map(|e| e.to_string())
    };
    let long = vec![1.0, 1.0, 0.0, 0.0];
    assert!(refused(long.clone(), &I8, false).unwrap().contains("row 200 has norm 1.414214"));
    assert_eq!(refused(long.clone(), &I8, true), None);
    assert_eq!(refused(long, &F32, false), None);
    for normalize in [false, true] {
        assert!(refused(vec![0.0; 4], &I8, normalize).unwrap().contains("row 200 is all zeros"));
        for format in [&I8, &F32] {
            let error = refused(vec![1.0, 0.0, f32::NAN, 0.0], format, normalize).unwrap();
            assert!(error.contains("row 200 holds NaN in column 2"), "{error}");
        }
    }
    assert_eq!(refused(vec![0.0; 4], &F32, false), None);
    assert!(refused(vec![0.0; 4], &F32, true).unwrap().contains("row 200"));
}

#[test]
fn precision_and_norms_are_reported() {
    let rows = unit_rows(400, 512, 1);
    let plan = I8.plan(&matrix(&rows), &Options::default().with("rounding", "truncate")).unwrap();
    assert!(plan.report.warnings[0].text.starts_with("400 of 400 rows"));
    let loss = &plan.report.losses[0];
    assert_eq!(loss.what(), "precision of tensor \"x\"");
    assert!(loss.why.starts_with("f32 to i8:scaled: ") && loss.why.contains(" of 204800 values"));
    let plan =
        I8.plan(&matrix(&rows), &Options::default().with("rounding", "nearest-norm")).unwrap();
    assert!(plan.report.warnings.is_empty());
    let (codes, meta) = files(&plan);
    let strict = input("x.i8bin", &codes, Some(&meta));
    assert!(check(&strict, &Options::default(), false).unwrap().1.is_clean());
    // Nothing changes, nothing is lost.
    let exact = matrix(&[vec![1.0, 0.0], vec![0.0, -1.0]]);
    let plan = I8.plan(&exact, &Options::default()).unwrap();
    assert!(plan.report.losses.is_empty());
    assert_eq!(files(&plan).0, [127, 0, 0, 0x81]);
    assert!(I8.plan(&exact, &Options::default().with("rounding", "up")).is_err());
}

#[test]
fn only_one_matrix_can_be_written() {
    let mut container = matrix(&unit_rows(2, 4, 1));
    container.tensors[0].shape = vec![8];
    for format in [&I8, &F32] {
        let error = format.plan(&container, &Options::default()).unwrap_err().to_string();
        assert!(error.contains("1 dimensions"), "{error}");
        let none = Container::default();
        assert!(format.plan(&none, &Options::default()).is_err());
        // No rows at all are a file without bytes.
        let empty = format.plan(&matrix(&[]), &Options::default()).unwrap();
        assert_eq!(files(&empty).0.len(), 0);
    }
}

/// Rows that are only too short are not called truncated: their codes of 0 are no more than others.
#[test]
fn rows_that_were_scaled_are_not_called_truncated() {
    for factor in [0.93, 0.96] {
        let findings = verify(&scaled(factor, f32::round_ties_even));
        assert!(!rules(&findings).contains(&"I8-13"), "{factor}: {:?}", findings.list());
        assert!(findings.has_errors());
    }
    let near = verify(&scaled(0.985, f32::round_ties_even));
    assert_eq!(rules(&near), ["I8-12"]);
    assert!(!near.list()[0].hint.to_string().contains("truncat"), "{:?}", near.list());
    // Few large components, many small ones: zeros are many however they came to be.
    let peaked = |factor: f32, how: fn(f32) -> f32| -> Vec<Vec<i8>> {
        let code = |v: &f32| how(v * factor * 127.0) as i8;
        unit_rows(40, 512, 5).iter().map(|row| row.iter().map(code).collect()).collect()
    };
    let undecided = verify(&peaked(0.95, f32::round_ties_even));
    assert_eq!(rules(&undecided), ["I8-13"]);
    assert!(undecided.list()[0].message.contains("may have been"), "{:?}", undecided.list());
}

#[test]
fn rows_of_zeros_and_no_rows_are_files() {
    let options = Options::default();
    // Zeros first, without and with a meta.json.
    let mut rows = vec![0u8; 4 * 512];
    rows.extend([127].iter().chain([0; 511].iter()));
    let first = input("x.i8bin", &rows, None);
    assert_eq!(open(&first, &options).unwrap().tensors[0].shape, [5, 512]);
    for (name, bytes) in [("x.i8bin", 512), ("x.f32bin", 2048)] {
        let format = name.split('.').next_back().unwrap();
        let zeros = input(name, &vec![0; 3 * bytes], Some(&meta(format, 3, 512)));
        assert_eq!(open(&zeros, &options).unwrap().tensors[0].shape, [3, 512], "{name}");
        // No rows, as the meta.json says; without one it is an empty file.
        let none = input(name, &[], Some(&meta(format, 0, 512)));
        assert_eq!(open(&none, &options).unwrap().tensors[0].shape, [0, 512], "{name}");
        assert!(check(&none, &options, false).unwrap().1.is_clean());
        let empty = open(&input(name, &[], None), &options);
        assert!(matches!(empty, Err(Error::Unrecognised { .. })), "{name}");
    }
    // The first bytes of a gzip file are codes like others, if the meta.json counts them.
    let codes = [[0x1f, 0x8b, 0x08].as_slice(), &[0; 5]].concat();
    assert!(open(&input("x.i8bin", &codes, Some(&meta("i8bin", 1, 8))), &options).is_ok());
    assert!(open(&input("x.i8bin", &codes, None), &options.clone().with("dim", "8")).is_err());
    // A pointer that stands for the file is none, whatever the meta.json says.
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n";
    let refused = open(&input("x.i8bin", pointer, Some(&meta("i8bin", 3, 512))), &options);
    assert!(matches!(refused, Err(Error::Unrecognised { .. })));
}

/// Whatever the format itself accepts comes back from formats that hold the values.
#[test]
fn rows_within_the_range_are_written_as_they_are() {
    let codes = scaled(1.0, f32::round_ties_even);
    let values: Vec<Vec<f32>> =
        codes.iter().map(|row| row.iter().map(|&c| f32::from(c) / 127.0).collect()).collect();
    let plan = I8.plan(&matrix(&values), &Options::default()).unwrap();
    assert!(plan.report.losses.is_empty(), "{:?}", plan.report.losses);
    let bytes = to_memory(&plan).unwrap().remove(0).1;
    assert_eq!(bytes, codes.concat().iter().map(|c| c.cast_unsigned()).collect::<Vec<_>>());
    let uneven = plan.report.warnings.iter().find(|w| w.text.contains("off 1 by more than 0.001"));
    assert!(uneven.is_some(), "{:?}", plan.report.warnings);
    // Beyond the range rows are refused.
    let mut short = values;
    short[3].iter_mut().for_each(|v| *v *= 0.98);
    let refused = I8.plan(&matrix(&short), &Options::default());
    assert!(matches!(refused, Err(Error::Refused(_))));
}
