//! Every rule of every format is broken by some file: by a mutant of a fixture, or by one made here.

mod common;

use common::format_of;
use serde_json::json;
use std::collections::BTreeSet;
use weighbridge_format::sink::to_memory;
use weighbridge_format::wire::What;
use weighbridge_format::{Container, Error, Formats, Options};
use weighbridge_testkit::{
    Fixture, bit_flips, boundary_integers, embd_with_shifted_data, fixtures, structural_bytes,
    truncations,
};

/// The rules that a file breaks.
fn broken(fixture: &Fixture, options: &Options) -> Vec<&'static str> {
    match Formats::builtin().check(&fixture.input(), options, false) {
        Ok((_, findings)) => findings.list().iter().map(|f| f.rule).collect(),
        Err(Error::Unrecognised { .. } | Error::Refused(_)) => Vec::new(),
        Err(other) => panic!("{}: {other}", fixture.name),
    }
}

fn fixture(format: &str, content: &str) -> Fixture {
    let found = fixtures().into_iter().find(|f| f.format == format && f.content == content);
    found.unwrap_or_else(|| panic!("no fixture {format} {content}"))
}

/// A file that breaks a rule which damage in one place hardly breaks.
struct Made {
    rule: &'static str,
    fixture: Fixture,
    options: Options,
}

fn made(rule: &'static str, fixture: Fixture) -> Made {
    Made { rule, fixture, options: Options::default() }
}

#[test]
fn every_rule_is_broken_by_some_file() {
    let mut seen = BTreeSet::new();
    // A sample of the mutants that robust.rs runs through in full.
    for fixture in fixtures() {
        let mut note = |f: Fixture| seen.extend(broken(&f, &Options::default()));
        let at = structural_bytes(&fixture.input());
        let main = &fixture.main;
        truncations(main).step_by(97).for_each(|m| note(fixture.with_main(m)));
        bit_flips(main, at.clone()).step_by(3).for_each(|m| note(fixture.with_main(m)));
        if !main.is_empty() {
            boundary_integers(main, at).step_by(17).for_each(|m| note(fixture.with_main(m)));
        }
        for (i, (_, bytes)) in fixture.beside.iter().enumerate() {
            truncations(bytes).step_by(11).for_each(|m| note(fixture.with_beside(i, m)));
        }
    }
    let made =
        binary_files().into_iter().chain(rows()).chain(folders()).chain(words()).chain(lines());
    for Made { rule, fixture, options } in made {
        let rules = broken(&fixture, &options);
        assert!(rules.contains(&rule), "{rule} is not among {rules:?}");
        seen.insert(rule);
    }
    let all = Formats::builtin().iter().flat_map(|f| f.info().rules).map(|r| r.id);
    let missing: BTreeSet<_> = all.filter(|id| !seen.contains(id)).collect();
    assert_eq!(missing, BTreeSet::new());
}

fn binary_files() -> Vec<Made> {
    let embd = fixture("embd", "model");
    let shifted = embd_with_shifted_data(&embd.main, 8, false);
    let mut twice = embd.main.clone();
    let at = twice.windows(13).position(|w| w == b"model_version").unwrap();
    twice[at..at + 13].copy_from_slice(b"embedding_dim");
    let mut nan = fixture("npy", "rows");
    let end = nan.main.len();
    nan.main[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    // An array of more elements than numbers can count.
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 9999999999, 9999999999), }\n";
    let mut npy = b"\x93NUMPY\x01\x00".to_vec();
    npy.extend_from_slice(&u16::try_from(header.len()).unwrap().to_le_bytes());
    npy.extend_from_slice(header.as_bytes());
    // The scheme of a quantization payload turned from symmetric to asymmetric.
    let scaled = fixture("oinf", "scaled");
    let container = Formats::builtin().open(&scaled.input(), &Options::default()).unwrap();
    let scales =
        container.regions.list().iter().find(|r| matches!(r.what, What::Scales(_))).unwrap();
    let mut oinf = scaled.main.clone();
    let at = usize::try_from(scales.span.start).unwrap();
    let symmetric = (at..oinf.len())
        .step_by(8)
        .find(|&i| oinf[i..i + 12] == [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    oinf[symmetric.unwrap()] = 2;
    let mut safetensors = 3u64.to_le_bytes().to_vec();
    safetensors.extend_from_slice(b"{ }");
    let words = fixture("finalfusion", "words");
    let longer = [&words.main[..], b"x"].concat();
    let mut negative = words.main.clone();
    // The sign of the last norm.
    *negative.last_mut().unwrap() |= 0x80;
    let explicit = fixture("finalfusion", "explicit");
    let short = without_indices(&explicit.main);
    let mcf = fixture("mcf", "model");
    let cut = mcf.main[..20].to_vec();
    let mut flag = embd.main.clone();
    flag[20..28].fill(0);
    let mut date = embd.main.clone();
    let at = date.windows(10).position(|w| w == b"created_at").unwrap();
    date[at + 10] = b'x';
    let mut newer = mcf.main.clone();
    newer[6] = 7;
    let mut null = 24u64.to_le_bytes().to_vec();
    null.extend_from_slice(b"{\"__metadata__\": null}   ");
    vec![
        made("EMBD-33", embd.with_main(flag)),
        made("EMBD-34", embd.with_main(date)),
        made("MCF-44", mcf.with_main(newer)),
        made("ST-13", fixture("safetensors", "model").with_main(null)),
        made("FIFU-26", words.with_main(without_listed_norms(&words.main))),
        made("FIFU-08", words.with_main(longer)),
        made("FIFU-24", words.with_main(negative)),
        made("FIFU-25", explicit.with_main(short)),
        made("MCF-01", mcf.with_main(cut)),
        made("EMBD-15", embd.with_main(twice)),
        made("EMBD-26", embd.with_main(shifted)),
        made("NPY-08", nan),
        made("NPY-06", fixture("npy", "rows").with_main(npy)),
        made("OINF-22", scaled.with_main(oinf)),
        made("ST-12", fixture("safetensors", "model").with_main(safetensors)),
    ]
}

/// A finalfusion file whose explicit vocabulary, behind the metadata, does not count its indices.
fn without_indices(file: &[u8]) -> Vec<u8> {
    let number = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
    let chunks = usize::from(file[8]);
    let metadata = usize::try_from(number(12 + 4 * chunks + 4)).unwrap();
    let at = 12 + 4 * chunks + 12 + metadata + 4;
    let ngrams = number(at + 16);
    let mut short = file.to_vec();
    short[at..at + 8].copy_from_slice(&(number(at) - 8 * ngrams).to_le_bytes());
    short
}

/// A finalfusion file that leaves its norms, which are its last chunk, out of the list.
fn without_listed_norms(file: &[u8]) -> Vec<u8> {
    let mut short = file.to_vec();
    short[8] -= 1;
    let last = 12 + 4 * usize::from(short[8]);
    assert_eq!(short.drain(last..last + 4).collect::<Vec<_>>(), [6, 0, 0, 0]);
    short
}

/// A file of rows with another meta.json.
fn with_meta(f: &Fixture, meta: serde_json::Value) -> Fixture {
    f.with_beside(0, meta.to_string().into_bytes())
}

fn rows() -> Vec<Made> {
    let f = fixture("i8bin", "rows");
    let meta: serde_json::Value = serde_json::from_slice(&f.beside[0].1).unwrap();
    let change = |key: &str, value: serde_json::Value| {
        let mut changed = meta.clone();
        changed[key] = value;
        with_meta(&f, changed)
    };
    let mut alone = f.clone();
    alone.beside.clear();
    alone.main = f.main.repeat(8);
    let mut no_version = meta.clone();
    no_version.as_object_mut().unwrap().remove("version");
    // Codes of rows whose norm is off.
    let coded = |code: fn(f32) -> f32| {
        let made = |b: &u8| (code(f32::from(b.cast_signed())) as i8).cast_unsigned();
        f.with_main(f.main.iter().map(made).collect())
    };
    let options = Options::default().with("rounding", "truncate");
    // Enough rows to tell how many codes are 0.
    let value = |i: u32| i.wrapping_mul(2_654_435_761).cast_signed() as f32 / 2.1e9;
    let sample =
        Container::builder().values("rows", &[40, 512], (0..40 * 512).map(value).collect());
    let options = options.with("normalize", "true");
    let plan = format_of("i8bin").plan(&sample.build().unwrap(), &options).unwrap();
    let mut truncated = alone.with_main(to_memory(&plan).unwrap().remove(0).1);
    truncated.name = "truncated.i8bin".into();
    let mut lowest = f.main.clone();
    lowest[5] = 0x80;
    let mut one_off = f.main.clone();
    one_off[..64].fill(0);
    let floats = fixture("f32bin", "rows");
    let mut nan = floats.main.clone();
    nan[8..12].copy_from_slice(&f32::NAN.to_le_bytes());
    let mut zero = floats.main.clone();
    zero[..256].fill(0);
    vec![
        made("I8-02", change("shape", json!([6, 0]))),
        made("I8-03", alone),
        Made { rule: "I8-04", fixture: f.clone(), options: Options::default().with("dim", "32") },
        made("I8-06", with_meta(&f, json!([{"name": "old"}]))),
        made("I8-07", with_meta(&f, no_version)),
        made("I8-08", change("version", json!("9.9"))),
        made("I8-09", change("quantization", json!({"dtype": "int4", "scale_factor": 7}))),
        made("I8-10", change("records", json!([{}]))),
        made("I8-11", f.with_main(lowest)),
        made("I8-12", coded(|c| if c > 19.0 { c + 1.0 } else { c })),
        made("I8-13", truncated),
        made("I8-14", f.with_main(one_off)),
        made("I8-15", floats.with_main(nan)),
        made("I8-16", floats.with_main(zero)),
        made("I8-17", change("checksum", json!("00000000"))),
    ]
}

/// JSON lines, each file with one thing wrong.
fn lines() -> Vec<Made> {
    let made = |rule: &'static str, text: &str| {
        made(rule, fixture("jsonl", "rows").with_main(text.as_bytes().to_vec()))
    };
    let long = format!("{{\"a\": \"{}\", \"vector\": [1]}}\n", "x".repeat(64 << 20));
    vec![
        made("JSONL-01", "{\"vector\": [1]}\n[2]\n"),
        made("JSONL-02", "{\"text\": \"truck\"}\n"),
        made("JSONL-03", "{\"vector\": [1], \"vector\": [1]}\n"),
        made("JSONL-04", "{\"vector\": [\"1\"]}\n"),
        made("JSONL-05", "{\"vector\": [1]}\n{\"vector\": [1, 2]}\n"),
        made("JSONL-06", "{\"vector\": [1e39]}\n"),
        made("JSONL-07", &long),
        made("JSONL-08", "{\"vector\": []}\n"),
        made("JSONL-09", "{\"vector\": [null]}\n"),
        made("JSONL-10", "{\"vector\": [1]}"),
        made("JSONL-11", "\u{feff}{\"vector\": [1]}\n"),
    ]
}

fn folders() -> Vec<Made> {
    let f = fixture("hf", "folder");
    let without = |name: &str| {
        let mut changed = f.clone();
        changed.beside.retain(|(n, _)| n != name);
        changed
    };
    let with = |name: &str, bytes: Vec<u8>| {
        let mut changed = without(name);
        changed.beside.push((name.to_owned(), bytes));
        changed
    };
    let mut pickled = without("model.safetensors");
    pickled.beside.push(("pytorch_model.bin".into(), vec![0x80, 2]));
    let tokenizer = json!({"model": {"type": "WordPiece", "vocab": {"a": 0}}, "normalizer": {"type": "Replace"}});
    let config = json!({"model_type": "bert", "hidden_size": 99});
    let mut weights = f.beside.iter().find(|(n, _)| n == "model.safetensors").unwrap().1.clone();
    let end = weights.len();
    weights[end - 4..].copy_from_slice(&f32::INFINITY.to_le_bytes());
    let index = |map: serde_json::Value| {
        let mut changed = fixture("safetensors", "model");
        changed.name = "model.safetensors.index.json".into();
        changed.main = json!({"weight_map": map}).to_string().into_bytes();
        changed
    };
    vec![
        made("HF-01", without("model.safetensors")),
        made("HF-03", pickled),
        made("HF-04", with("vocab.txt", vec![b'a', 0xFF])),
        made("HF-05", with("tokenizer.json", tokenizer.to_string().into_bytes())),
        made("HF-06", with("config.json", config.to_string().into_bytes())),
        made("HF-07", with("model.safetensors", weights)),
        made("ST-10", index(json!("nothing"))),
        made("ST-11", index(json!({"x": "../../etc/passwd"}))),
    ]
}

/// Word vectors as text and as binary, each with one thing wrong.
fn words() -> Vec<Made> {
    let file = |format: &str, bytes: &[u8]| fixture(format, "model").with_main(bytes.to_vec());
    let text = |rule: &'static str, text: &str| made(rule, file("text", text.as_bytes()));
    let floret = |rule: &'static str, header: &str, rows: &str| {
        let text = format!("{header}\n{rows}");
        made(rule, fixture("floret", "floret").with_main(text.into_bytes()))
    };
    let word2vec = |rule: &'static str, header: &str, rows: &[(&[u8], f32)]| {
        let mut bytes = header.as_bytes().to_vec();
        rows.iter().for_each(|(w, v)| bytes.extend([w, &b" "[..], &v.to_le_bytes()].concat()));
        made(rule, file("word2vec", &bytes))
    };
    let model = fixture("fasttext", "fasttext");
    // Where the output matrix begins.
    let container = Formats::builtin().open(&model.input(), &Options::default()).unwrap();
    let is_output = |what: What| what == What::Structure("output matrix header");
    let output = container.regions.list().iter().find(|r| is_output(r.what)).unwrap();
    let output = usize::try_from(output.span.start).unwrap();
    let fasttext = |rule: &'static str, at: usize, bytes: &[u8]| {
        let mut changed = model.main.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        let options = Options::default().with("from", "fasttext");
        Made { rule, fixture: model.with_main(changed), options }
    };
    // The first entry begins behind the arguments and five numbers.
    const FIRST: usize = 8 + 48 + 8 + 28;
    let length = model.main[FIRST..].iter().position(|b| *b == 0).unwrap();
    let mut twice = model.main.clone();
    let second = FIRST + length + 10;
    let next = twice[second..].iter().position(|b| *b == 0).unwrap();
    let word = twice[FIRST..FIRST + length].to_vec();
    twice.splice(second..second + next, word);
    let longer = [&model.main[..], b"x"].concat();
    // The last value of the input matrix: the output matrix behind it has 20 rows of 10.
    let last = model.main.len() - 20 * 10 * 4 - 17 - 4;
    vec![
        text("TXT-01", "rows 2\na 1\n"),
        text("TXT-02", "0 2\n"),
        text("TXT-03", "2 1\na 1\n"),
        text("TXT-04", "1 1\na 1\nb 2\n"),
        text("TXT-05", "2 1\na 1\nb x\n"),
        made("TXT-06", file("text", b"1 1\n\xFF 1\n")),
        text("TXT-07", "1 1\na 1"),
        text("TXT-08", "2 1\na 1\na 2\n"),
        text("TXT-09", "1 1\na inf\n"),
        text("TXT-10", "\u{feff}1 1\na 1\n"),
        floret("FLORET-01", "1 1 2 3 2 7", "0 1\n"),
        floret("FLORET-02", "1 1 2 3 9 7 < >", "0 1\n"),
        floret("FLORET-03", "2 1 2 3 2 7 < >", "0 1\n"),
        floret("FLORET-04", "1 1 2 3 2 7 < >", "0 1\n1 1\n"),
        floret("FLORET-05", "1 1 2 3 2 7 < >", "0 x\n"),
        floret("FLORET-06", "1 1 2 3 2 7 < >", "1 1\n"),
        floret("FLORET-07", "1 1 2 3 2 7 < >", "0 1"),
        floret("FLORET-08", "1 1 2 3 2 7 < >", "0 nan\n"),
        floret("FLORET-09", "\u{feff}1 1 2 3 2 7 < >", "0 1\n"),
        word2vec("W2V-01", "one row\n", &[]),
        word2vec("W2V-02", "1 0\n", &[]),
        word2vec("W2V-03", "2 1\n", &[(b"a", 1.0)]),
        word2vec("W2V-04", "1 1\n", &[(b"a", 1.0), (b"b", 1.0)]),
        word2vec("W2V-05", "1 1\n", &[(b"\xFF", 1.0)]),
        word2vec("W2V-06", "2 1\n", &[(b"a", 1.0), (b"a", 2.0)]),
        word2vec("W2V-07", "1 1\n", &[(b"a", f32::NAN)]),
        fasttext("FT-02", 0, b"x"),
        fasttext("FT-03", 4, &[13]),
        fasttext("FT-04", 8, &[0; 4]),
        fasttext("FT-05", 8 + 28, &[3]),
        fasttext("FT-06", FIRST - 8, &[1, 0, 0, 0, 0, 0, 0, 0]),
        fasttext("FT-07", 8 + 44, &[2, 0, 0, 0, 3, 0, 0, 0, 100, 0, 0, 0]),
        fasttext("FT-08", FIRST - 28, &[1, 0, 0, 0]),
        fasttext("FT-09", FIRST, &[0xFF]),
        fasttext("FT-10", 8 + 32, &[6]),
        made("FT-11", model.with_main(longer)),
        made("FT-14", model.with_main(model.main[..output].to_vec())),
        made("FT-12", model.with_main(twice)),
        fasttext("FT-13", last, &f32::NAN.to_le_bytes()),
    ]
}
