//! Word embeddings, arrays and rows: few bytes that stand for many values.

use super::{Bomb, narrow, u32s, u64s};

pub(super) fn bombs(size: usize) -> Vec<Bomb> {
    let fifu = |name, bytes| Bomb::file(name, "bomb.fifu", bytes);
    vec![
        fifu("fifu-wide-codes", quantized(size, false)),
        fifu("fifu-projection", quantized(size, true)),
        fifu("fifu-dotted", with_metadata(&vec!["a"; size / 2].join("."), "=1")),
        fifu("fifu-nested", with_metadata("a=", &"[".repeat(size))),
        fifu(
            "fifu-tables",
            with_metadata(&format!("[{}]\n", "a".repeat(size / 2)), &keys(size / 2)),
        ),
        fifu("fifu-ngrams", explicit(size)),
        Bomb::file(
            "fasttext-long-word",
            "bomb.bin",
            fasttext(&["a".repeat(size).as_str()], 1, i32::MAX),
        ),
        Bomb::file("fasttext-long-words", "bomb.bin", fasttext(&long_words(size), 1, 1000)),
        Bomb::file(
            "fasttext-wide",
            "bomb.bin",
            fasttext(&["a"], narrow(size / 12).cast_signed(), 0),
        ),
        Bomb::file("npy-no-columns", "bomb.npy", npy("(1152921504606846976, 0)", "<f4", 0)),
        Bomb::file("npy-columns", "bomb.npy", npy(&format!("({}, 2)", size / 2), "|i1", size)),
        Bomb::file("word2vec-many", "bomb.bin", b"99999999999 1\na \0\0\0\0\n".to_vec()),
        Bomb::file(
            "word2vec-wide",
            "bomb.vec",
            format!("1 {0}\na{1}\n", size / 2, " 0".repeat(size / 2)).into_bytes(),
        ),
        Bomb::file(
            "text-words",
            "bomb.vec",
            format!("{} 1\n{}", size / 10, numbered(size / 10)).into_bytes(),
        ),
        rows(
            "i8bin-wide",
            &format!(
                r#"{{"version":"1.0","quantization":{{"dtype":"int8","scale_factor":127}},"shape":[1,{size}],"records":[{{}}]}}"#
            ),
            size,
        ),
        rows("i8bin-records", &records(size), size / 20),
        rows("i8bin-nested", &"[{\"a\":".repeat(size / 6), 64),
    ]
}

fn chunk(out: &mut Vec<u8>, kind: u32, data: &dyn Fn(usize) -> Vec<u8>) {
    let data = data(out.len() + 12);
    u32s(out, &[kind]);
    u64s(out, &[data.len() as u64]);
    out.extend(data);
}

fn fifu(chunks: &[u32]) -> Vec<u8> {
    let mut out = b"FiFu".to_vec();
    u32s(&mut out, &[0, narrow(chunks.len())]);
    u32s(&mut out, chunks);
    out
}

/// Zeros up to a multiple of four, at least one; `at` is where the data began in the file.
fn align(data: &mut Vec<u8>, at: usize) {
    let zeros = 4 - (at + data.len()) % 4;
    data.resize(data.len() + zeros, 0);
}

/// Rows of one byte each that stand for wide rows.
fn quantized(size: usize, projection: bool) -> Vec<u8> {
    let half = size / 2;
    let wide = if projection { (half / 4).isqrt() } else { half / 4 };
    let mut out = fifu(&[9, 4]);
    chunk(&mut out, 9, &|_| {
        let mut data = Vec::new();
        u32s(&mut data, &[3, 6]);
        u64s(&mut data, &[half as u64]);
        u32s(&mut data, &[1, 0, 1]);
        data.push(b'<');
        u32s(&mut data, &[1]);
        data.push(b'>');
        data
    });
    chunk(&mut out, 4, &|at| {
        let mut data = Vec::new();
        u32s(&mut data, &[u32::from(projection), 0, 1, narrow(wide), 1]);
        u64s(&mut data, &[half as u64]);
        u32s(&mut data, &[1, 10]);
        align(&mut data, at);
        let floats = wide + if projection { wide * wide } else { 0 };
        (0..floats).for_each(|_| data.extend(0.5f32.to_le_bytes()));
        data.resize(data.len() + half, 0);
        data
    });
    out
}

/// One word, and metadata in TOML.
fn with_metadata(start: &str, end: &str) -> Vec<u8> {
    let mut out = fifu(&[5, 1, 2]);
    chunk(&mut out, 5, &|_| format!("{start}{end}").into_bytes());
    chunk(&mut out, 1, &|_| words(&["a"]));
    chunk(&mut out, 2, &|at| matrix(1, 4, at));
    out
}

fn words(list: &[&str]) -> Vec<u8> {
    let mut data = (list.len() as u64).to_le_bytes().to_vec();
    for word in list {
        u32s(&mut data, &[narrow(word.len())]);
        data.extend(word.as_bytes());
    }
    data
}

fn matrix(rows: u64, columns: u32, at: usize) -> Vec<u8> {
    let mut data = Vec::new();
    u64s(&mut data, &[rows]);
    u32s(&mut data, &[columns, 10]);
    align(&mut data, at);
    (0..rows * u64::from(columns)).for_each(|_| data.extend(0.5f32.to_le_bytes()));
    data
}

fn keys(room: usize) -> String {
    (0..room / 11).map(|i| format!("k{i:07}=1\n")).collect()
}

/// Many n-grams that share a row.
fn explicit(size: usize) -> Vec<u8> {
    let count = size / 19;
    let mut out = fifu(&[8, 2]);
    chunk(&mut out, 8, &|_| {
        let mut data = Vec::new();
        u64s(&mut data, &[1, count as u64]);
        u32s(&mut data, &[1, 1_000_000, 1]);
        data.push(b'a');
        for i in 0..count {
            u32s(&mut data, &[7]);
            data.extend(format!("{i:07}").as_bytes());
            u64s(&mut data, &[0]);
        }
        data
    });
    chunk(&mut out, 2, &|at| matrix(2, 4, at));
    out
}

/// Words of a fastText model, with n-grams of up to so many characters, which share a row.
fn fasttext<S: AsRef<str>>(words: &[S], dim: i32, maxn: i32) -> Vec<u8> {
    let mut out = vec![0xBA, 0x16, 0x4F, 0x2F];
    u32s(&mut out, &[12]);
    for argument in [dim, 5, 5, 1, 5, 1, 2, 2, 1, 1, maxn, 100] {
        out.extend(argument.to_le_bytes());
    }
    out.extend(1e-4f64.to_le_bytes());
    u32s(&mut out, &[narrow(words.len()), narrow(words.len()), 0]);
    u64s(&mut out, &[words.len() as u64, u64::MAX]);
    for word in words {
        out.extend(word.as_ref().as_bytes());
        out.push(0);
        u64s(&mut out, &[1]);
        out.push(0);
    }
    for rows in [words.len() + usize::from(maxn >= 0), words.len()] {
        out.push(0);
        u64s(&mut out, &[rows as u64, u64::from(dim.unsigned_abs())]);
        let values = rows as u64 * u64::from(dim.unsigned_abs());
        (0..values).for_each(|_| out.extend(0.5f32.to_le_bytes()));
    }
    out
}

fn long_words(size: usize) -> Vec<String> {
    (0..size / 10_000).map(|i| format!("{i:05}{}", "a".repeat(9_990))).collect()
}

fn npy(shape: &str, descr: &str, bytes: usize) -> Vec<u8> {
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': True, 'shape': {shape}, }}");
    while !(header.len() + 11).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend(u16::try_from(header.len()).unwrap_or(0).to_le_bytes());
    out.extend(header.as_bytes());
    out.resize(out.len() + bytes, 1);
    out
}

fn numbered(count: usize) -> String {
    (0..count).map(|i| format!("w{i:06} 1\n")).collect()
}

/// Rows of bytes with what a meta.json says of them.
fn rows(name: &'static str, meta: &str, bytes: usize) -> Bomb {
    let mut bomb = Bomb::file(name, "embeddings.i8bin", vec![1; bytes]);
    bomb.files.push(("meta.json".to_owned(), meta.as_bytes().to_vec()));
    bomb
}

fn records(size: usize) -> String {
    let count = size / 20;
    let list = vec![r#"{"a":[[[[[]]]]]}"#; count].join(",");
    format!(
        r#"{{"version":"1.0","quantization":{{"dtype":"int8","scale_factor":127}},"shape":[{count},1],"records":[{list}]}}"#
    )
}
