//! Small models, made by hand.

use super::FORMAT;
use super::layout::{Args, MAGIC};
use crate::formats::testing::{check, open};
use crate::sink::to_memory;
use crate::{Container, Error, Input, Options};

const DIM: usize = 2;

/// A model of the words, with so many buckets for n-grams of 2 and 3 characters.
fn model(words: &[&str], buckets: usize, change: impl Fn(&mut Args)) -> Vec<u8> {
    let range = if buckets > 0 { (2, 3) } else { (0, 0) };
    let mut args = Args::usual().with(DIM as i32, buckets as i32, range.0, range.1);
    change(&mut args);
    let mut out = MAGIC.to_vec();
    out.extend(12u32.to_le_bytes());
    args.write(&mut out);
    for n in [words.len() as u32, words.len() as u32, 0] {
        out.extend(n.to_le_bytes());
    }
    out.extend(77i64.to_le_bytes());
    out.extend((-1i64).to_le_bytes());
    for (i, word) in words.iter().enumerate() {
        out.extend(word.as_bytes());
        out.push(0);
        out.extend((i as u64 + 10).to_le_bytes());
        out.push(0);
    }
    for rows in [words.len() + buckets, words.len()] {
        out.push(0);
        out.extend((rows as u64).to_le_bytes());
        out.extend((DIM as u64).to_le_bytes());
        out.extend((0..rows * DIM).flat_map(|i| (i as f32 / 7.0).to_le_bytes()));
    }
    out
}

fn read(bytes: &[u8]) -> Result<Container, String> {
    let input = Input::from_bytes("x.bin", bytes.to_vec());
    open(&input, &Options::default()).map_err(|e| match e {
        Error::Malformed { finding, .. } => finding.rule.to_owned(),
        other => other.to_string(),
    })
}

fn written(container: &Container) -> Vec<u8> {
    to_memory(&FORMAT.plan(container, &Options::default()).unwrap()).unwrap().remove(0).1
}

#[test]
fn vectors_are_means_and_the_file_comes_back() {
    for buckets in [0, 5] {
        let bytes = model(&["ab", "</s>", "東京"], buckets, |_| ());
        let container = read(&bytes).unwrap();
        let matrix = &container.tensors[0];
        assert_eq!(matrix.shape, [3 + buckets as u64, 2]);
        let row = |i: u64| matrix.values_f32(i * 2, 2).unwrap();
        // The word at line ends has no parts.
        assert_eq!(row(1), [2.0 / 7.0, 3.0 / 7.0]);
        if let Some(subwords) = &container.subwords {
            let mut sum = [0.0 / 7.0, 1.0 / 7.0];
            let mut count = 1.0;
            subwords.for_each_fasttext_row("ab", &mut |i| {
                row(3 + i).iter().zip(&mut sum).for_each(|(v, s)| *s += v);
                count += 1.0;
            });
            assert_eq!(count, 6.0);
            assert_eq!(row(0), sum.map(|s| s * (1.0 / count)));
        }
        assert_eq!(written(&container), bytes);
    }
}

#[test]
fn vectors_of_others_are_taken_apart() {
    let mut container = read(&model(&["ab", "cde"], 5, |_| ())).unwrap();
    let expected = container.tensors[0].values_f32(0, 14).unwrap();
    container.tensors.truncate(1);
    container.format = "finalfusion";
    container.dialect = crate::model::Dialect::new();
    let again = read(&written(&container)).unwrap();
    let found = again.tensors[0].values_f32(0, 14).unwrap();
    assert!(expected.iter().zip(&found).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?}");
}

#[test]
fn other_models_are_refused_by_name() {
    let with = |i: usize, v: i32| model(&["ab"], 5, |args| args.values[i] = v);
    assert_eq!(read(&with(7, 3)).unwrap_err(), "FT-05");
    assert_eq!(read(&with(10, 1)).unwrap_err(), "FT-04");
    assert_eq!(read(&with(0, -1)).unwrap_err(), "FT-04");
    assert_eq!(read(&with(8, 6)).unwrap_err(), "FT-10");
    let floret = model(&["ab"], 5, |args| {
        args.values[11] = 2;
        args.t = f64::from_bits(100 << 32 | 3);
    });
    assert_eq!(read(&floret).unwrap_err(), "FT-07");
    let bytes = model(&["ab"], 0, |_| ());
    let changed = |at: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        read(&bytes).unwrap_err()
    };
    assert_eq!(changed(4, 13), "FT-03");
    assert_eq!(changed(72, 1), "FT-05");
    let entry = 64 + 12 + 16;
    assert_eq!(changed(entry + 11, 1), "FT-05");
    assert_eq!(changed(entry + 12, 1), "FT-06");
    assert_eq!(changed(entry, 0xFF), "FT-09");
    // A file without the output matrix has all vectors; `verify` says that it is missing.
    let opened: Vec<_> = (0..bytes.len()).filter(|n| read(&bytes[..*n]).is_ok()).collect();
    let [short] = opened[..] else { panic!("{opened:?}") };
    let short = &bytes[..short];
    let input = Input::from_bytes("x.bin", short.to_vec());
    let (_, findings) = check(&input, &Options::default(), false).unwrap();
    assert_eq!(findings.first_error().unwrap().rule, "FT-14");
    let plan = FORMAT.plan(&read(short).unwrap(), &Options::default()).unwrap();
    assert_eq!(to_memory(&plan).unwrap().remove(0).1, short);
    assert_eq!(read(&[&bytes[..], b"x"].concat()).unwrap_err(), "FT-11");
}

/// As fastText wrote models before there were versions: without the magic, the version, the size of
/// the pruned dictionary and the bytes that tell quantized matrices.
fn first(words: &[&[u8]], buckets: usize) -> Vec<u8> {
    let args = Args::usual().with(DIM as i32, buckets as i32, 2, 3);
    let mut out = Vec::new();
    args.write(&mut out);
    for n in [words.len() as u32, words.len() as u32, 0] {
        out.extend(n.to_le_bytes());
    }
    out.extend(77i64.to_le_bytes());
    for (i, word) in words.iter().enumerate() {
        out.extend(*word);
        out.push(0);
        out.extend((i as u64 + 10).to_le_bytes());
        out.push(0);
    }
    for rows in [words.len() + buckets, words.len()] {
        out.extend((rows as u64).to_le_bytes());
        out.extend((DIM as u64).to_le_bytes());
        out.extend((0..rows * DIM).flat_map(|i| (i as f32 / 7.0).to_le_bytes()));
    }
    out
}

#[test]
fn first_models_and_version_11_are_read() {
    let words = ["ab", "</s>", "東京"];
    let today = model(&words, 5, |_| ());
    let expected = read(&today).unwrap();
    let bytes = first(&words.map(str::as_bytes), 5);
    let oldest = read(&bytes).unwrap();
    assert_eq!(oldest.layout, "without a version, with n-grams");
    assert!(!check_of(&bytes).has_errors());
    let mut bytes = today.clone();
    bytes[4] = 11;
    let eleven = read(&bytes).unwrap();
    assert_eq!(eleven.layout, "version 11, with n-grams");
    for container in [&oldest, &eleven] {
        assert_eq!(container.tensors.len(), expected.tensors.len());
        for (a, b) in container.tensors.iter().zip(&expected.tensors) {
            let n = usize::try_from(a.count()).unwrap();
            assert_eq!((&a.name, &a.shape), (&b.name, &b.shape));
            assert_eq!(a.values_f32(0, n).unwrap(), b.values_f32(0, n).unwrap(), "{}", a.name);
        }
    }
    // Today's fastText reads version 11, and the first models no longer.
    assert_eq!(written(&eleven), bytes);
    assert_eq!(written(&oldest), today);
    // Every cut is found, but for one behind the input matrix.
    let whole = first(&words.map(str::as_bytes), 5);
    let options = Options::default().with("from", "fasttext");
    let opens =
        |n: &usize| open(&Input::from_bytes("x.bin", whole[..*n].to_vec()), &options).is_ok();
    assert_eq!((0..whole.len()).filter(opens).count(), 1);
}

fn check_of(bytes: &[u8]) -> crate::wire::Findings {
    check(&Input::from_bytes("x.bin", bytes.to_vec()), &Options::default(), false).unwrap().1
}

#[test]
fn other_numbers_are_no_model_without_a_version() {
    let whole = first(&[b"ab"], 5);
    // dim, ws, wordNgrams, loss, model, minn, size, nwords, nlabels.
    for field in [0, 1, 5, 6, 7, 9, 14, 15, 16] {
        let mut bytes = whole.clone();
        bytes[4 * field..4 * field + 4].copy_from_slice(&(-1i32).to_le_bytes());
        let input = Input::from_bytes("x", bytes);
        assert!(crate::Formats::builtin().detect(&input).is_err(), "{field}");
    }
}

#[test]
fn an_empty_word_comes_back() {
    let bytes = model(&["ab", "", "c"], 5, |_| ());
    let container = read(&bytes).unwrap();
    assert!(container.vocabulary.as_ref().unwrap().find("").is_some());
    assert_eq!(written(&container), bytes);
}

/// Words of another encoding: fastText hashes the bytes, so that their vectors are made of these and
/// not of what stands for them.
#[test]
fn words_that_are_not_utf8_have_the_vectors_of_their_bytes() {
    let bytes = first(&[b"kter\xEC", b"jen"], 50);
    assert_eq!(read(&bytes).unwrap_err(), "FT-09");
    let options = Options::default().with("lossy", "true");
    let container = open(&Input::from_bytes("x.bin", bytes.clone()), &options).unwrap();
    assert_eq!(container.vocabulary.as_ref().unwrap().token(0).unwrap(), "kter\u{fffd}");
    let said: Vec<_> = container.notes.iter().map(ToString::to_string).collect();
    assert_eq!(said, ["1 word is not UTF-8: U+FFFD stands for what can't be read"]);
    let subwords = container.subwords.as_ref().unwrap();
    let (mut sum, mut count) = ([0.0 / 7.0, 1.0 / 7.0], 1.0);
    let matrix = &container.tensors[0];
    subwords.for_each_fasttext_row(b"kter\xEC", &mut |i| {
        let row = matrix.values_f32((2 + i) * 2, 2).unwrap();
        row.iter().zip(&mut sum).for_each(|(v, s)| *s += v);
        count += 1.0;
    });
    // Itself, six n-grams of two characters and five of three.
    assert_eq!(count, 12.0);
    assert_eq!(matrix.values_f32(0, 2).unwrap(), sum.map(|s| s * (1.0 / count)));
    // Written with what stands for them, they still have these vectors.
    let again = read(&written(&container)).unwrap();
    let (a, b) = (matrix.values_f32(0, 4).unwrap(), again.tensors[0].values_f32(0, 4).unwrap());
    assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-5), "{a:?} {b:?}");
}
