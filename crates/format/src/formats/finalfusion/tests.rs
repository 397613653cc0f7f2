//! Small files made by hand, most of them hostile.

use crate::formats::testing::{check, find, open};
use crate::sink::to_memory;
use crate::wire::{put_u32, put_u64};
use crate::{Input, Options};

/// The data of a chunk, put together.
#[derive(Clone, Default)]
struct Data(Vec<u8>);

impl Data {
    fn u32(mut self, n: u32) -> Self {
        put_u32(&mut self.0, n);
        self
    }

    fn u64(mut self, n: u64) -> Self {
        put_u64(&mut self.0, n);
        self
    }

    fn text(self, text: &[u8]) -> Self {
        let mut longer = self.u32(u32::try_from(text.len()).unwrap());
        longer.0.extend_from_slice(text);
        longer
    }

    /// A mark for the padding, and zeros behind it.
    fn zeros(mut self, n: usize) -> Chunk {
        let at = self.0.len();
        self.0.resize(at + n, 0);
        (Some(at), self)
    }

    fn alone(self) -> Chunk {
        (None, self)
    }
}

/// Where the padding belongs, and the data without it.
type Chunk = (Option<usize>, Data);

fn file(chunks: Vec<(u32, Chunk)>) -> Vec<u8> {
    let mut out = Data(b"FiFu".to_vec()).u32(0).u32(u32::try_from(chunks.len()).unwrap());
    out = chunks.iter().fold(out, |out, (number, _)| out.u32(*number));
    for (number, (at, Data(mut data))) in chunks {
        if let Some(at) = at {
            let padding = 4 - (out.0.len() + 12 + at) % 4;
            data.splice(at..at, std::iter::repeat_n(0, padding));
        }
        out = out.u32(number).u64(data.len() as u64);
        out.0.extend(data);
    }
    out.0
}

fn words() -> Chunk {
    Data::default().u64(2).text(b"ab").text(b"cd").alone()
}

fn buckets(number: u32, min_n: u32, max_n: u32) -> Chunk {
    let fields = Data::default().u64(2).u32(min_n).u32(max_n).u32(number);
    fields.text(b"ab").text(b"cd").alone()
}

fn floret(buckets: u64, hashes: u32) -> Chunk {
    let fields = Data::default().u32(3).u32(4).u64(buckets).u32(hashes).u32(7);
    fields.text(b"<").text(b">").alone()
}

fn explicit(ngrams: &[(&[u8], u64)]) -> Chunk {
    let fields = Data::default().u64(2).u64(ngrams.len() as u64).u32(3).u32(6);
    let start = fields.text(b"ab").text(b"cd");
    ngrams.iter().fold(start, |out, (text, index)| out.text(text).u64(*index)).alone()
}

fn matrix(rows: u64, columns: u32, zeros: usize) -> Chunk {
    Data::default().u64(rows).u32(columns).u32(10).zeros(zeros)
}

fn codes(parts: u32, dim: u32, centroids: u32, rows: u64) -> Chunk {
    let fields = Data::default().u32(0).u32(0).u32(parts).u32(dim).u32(centroids);
    fields.u64(rows).u32(1).u32(10).zeros(64)
}

fn norms(count: u64, zeros: usize) -> Chunk {
    Data::default().u64(count).u32(10).zeros(zeros)
}

/// The rules that a file breaks.
fn broken(bytes: Vec<u8>) -> Vec<&'static str> {
    let input = Input::from_bytes("x.fifu", bytes);
    let (_, findings) = check(&input, &Options::default(), false).unwrap();
    findings.list().iter().map(|f| f.rule).collect()
}

#[test]
fn sizes_that_no_file_has_are_errors() {
    let max = u64::MAX;
    let cases = [
        ("FIFU-07", vec![(1, words()), (2, matrix(max, 3, 24))]),
        ("FIFU-07", vec![(1, words()), (2, matrix(1 << 62, u32::MAX, 24))]),
        ("FIFU-07", vec![(1, words()), (2, matrix(1 << 62, 4, 0))]),
        ("FIFU-17", vec![(1, words()), (2, matrix(2, 0, 0))]),
        // Rows without columns take no bytes: nothing bounds their number.
        ("FIFU-17", vec![(3, buckets(63, 3, 6)), (2, matrix((1 << 63) + 2, 0, 0))]),
        (
            "FIFU-17",
            vec![(3, buckets(40, 3, 6)), (2, matrix((1 << 40) + 2, 0, 0)), (6, norms(2, 8))],
        ),
        ("FIFU-17", vec![(9, floret(max, 2)), (2, matrix(max, 0, 0))]),
        ("FIFU-16", vec![(3, buckets(63, 3, 6)), (2, matrix(4, 3, 48))]),
        ("FIFU-12", vec![(3, buckets(64, 3, 6)), (2, matrix(4, 3, 48))]),
        ("FIFU-12", vec![(3, buckets(u32::MAX, 3, 6)), (2, matrix(4, 3, 48))]),
        ("FIFU-12", vec![(3, buckets(1, 5, 3)), (2, matrix(4, 3, 48))]),
        ("FIFU-12", vec![(3, buckets(1, 0, 3)), (2, matrix(4, 3, 48))]),
        ("FIFU-12", vec![(7, buckets(0, 3, 6)), (2, matrix(2, 3, 24))]),
        ("FIFU-12", vec![(9, floret(0, 2)), (2, matrix(0, 3, 0))]),
        ("FIFU-12", vec![(9, floret(2, 5)), (2, matrix(2, 3, 24))]),
        ("FIFU-18", vec![(9, floret(2, 2)), (2, matrix(2, 3, 24)), (6, norms(2, 8))]),
        ("FIFU-17", vec![(1, words()), (4, codes(2, 4, 0, 2))]),
        ("FIFU-17", vec![(1, words()), (4, codes(2, 4, 257, 2))]),
        ("FIFU-17", vec![(1, words()), (4, codes(2, 4, u32::MAX, 2))]),
        ("FIFU-17", vec![(1, words()), (4, codes(3, 4, 2, 2))]),
        ("FIFU-17", vec![(1, words()), (4, codes(0, 4, 2, 2))]),
        ("FIFU-07", vec![(1, words()), (4, codes(2, 4, 2, max))]),
        ("FIFU-13", vec![(8, explicit(&[(b"ab>", max)])), (2, matrix(3, 3, 36))]),
        ("FIFU-13", vec![(8, explicit(&[(b"ab>", 0), (b"<ab", 2)])), (2, matrix(4, 3, 48))]),
        ("FIFU-13", vec![(8, explicit(&[(b"ab>", 0), (b"ab>", 1)])), (2, matrix(4, 3, 48))]),
        ("FIFU-09", vec![(8, explicit(&[(b"\xc3", 0)])), (2, matrix(3, 3, 36))]),
    ];
    for (i, (rule, chunks)) in cases.into_iter().enumerate() {
        assert_eq!(broken(file(chunks)), [rule], "case {i}");
    }
    let many = Data::default().u64(max).text(b"ab").alone();
    assert_eq!(broken(file(vec![(1, many), (2, matrix(2, 3, 24))])), ["FIFU-07"]);
}

/// The Python package leaves the indices out of the length. All else is as it should be.
#[test]
fn a_length_without_the_indices_is_repaired() {
    let ngrams: [(&[u8], u64); 3] = [(b"<ab", 0), (b"ab>", 1), (b"<cd", 2)];
    let right = file(vec![(8, explicit(&ngrams)), (2, matrix(5, 3, 60))]);
    let mut short = right.clone();
    let at = 12 + 2 * 4 + 4;
    short[at] -= 3 * 8;
    assert_eq!(broken(right.clone()), Vec::<&str>::new());
    assert_eq!(broken(short.clone()), ["FIFU-25"]);
    let container = open(&Input::from_bytes("x", short.clone()), &Options::default()).unwrap();
    let plan = find("finalfusion").unwrap().plan(&container, &Options::default()).unwrap();
    assert!(to_memory(&plan).unwrap()[0].1 == right);
    short[at] += 8;
    assert_eq!(broken(short), ["FIFU-07"]);
}

#[test]
fn what_is_missing_in_a_chunk_is_not_missing_in_the_file() {
    let mut bytes = file(vec![(1, words()), (2, matrix(2, 3, 24))]);
    let length = bytes.len() - 44 - 8;
    bytes[length] = 12;
    let (_, findings) = check(&Input::from_bytes("x", bytes), &Options::default(), false).unwrap();
    let finding = &findings.list()[0];
    assert_eq!(finding.rule, "FIFU-07");
    assert!(
        finding.hint.to_string().contains("chunk")
            && !finding.hint.to_string().contains("cut short")
    );
}

/// Zeros and line ends in words, an empty word, explicit n-grams of none, and floret's chunk of no
/// norms are unusual, and come back as they were.
#[test]
fn unusual_files_are_written_again() {
    let odd = Data::default().u64(3).text(b"a\0b\n").text(b"").text(b" ").alone();
    let files = [
        vec![(1, odd), (2, matrix(3, 3, 36))],
        vec![(8, explicit(&[])), (2, matrix(2, 3, 24))],
        vec![(9, floret(2, 4)), (2, matrix(2, 3, 24)), (6, norms(0, 0))],
        vec![(5, Data::default().alone()), (1, words()), (2, matrix(2, 3, 24))],
    ];
    let format = find("finalfusion").unwrap();
    for chunks in files {
        let bytes = file(chunks);
        assert!(broken(bytes.clone()).is_empty());
        let container = open(&Input::from_bytes("x", bytes.clone()), &Options::default()).unwrap();
        let plan = format.plan(&container, &Options::default()).unwrap();
        assert!(plan.report.losses.is_empty(), "{:?}", plan.report.losses);
        assert!(to_memory(&plan).unwrap()[0].1 == bytes);
    }
}

/// A code without a centroid has no value: whoever asks for one is told, and other rows are not lost.
#[test]
fn codes_without_a_centroid_have_no_values() {
    // Three centroids of two values, and a code for each of two rows.
    let fields = Data::default().u32(0).u32(0).u32(1).u32(2).u32(3).u64(2).u32(1).u32(10);
    let mut bytes = file(vec![(1, words()), (4, fields.zeros(2 * 3 * 4 + 2))]);
    let last = bytes.len() - 1;
    bytes[last] = 3;
    let container =
        open(&Input::from_bytes("far/x.fifu", bytes.clone()), &Options::default()).unwrap();
    let matrix = &container.tensors[0];
    assert_eq!(matrix.values_f32(0, 2).unwrap(), [0.0; 2]);
    let error = matrix.values_f32(2, 2).unwrap_err();
    let crate::Error::Malformed { file, finding } = &error else { panic!("{error}") };
    assert_eq!(
        (finding.rule, finding.start, file.as_str()),
        ("FIFU-21", last as u64, "far/x.fifu")
    );
    assert!(finding.field.ends_with("row 1"), "{error}");
    // What keeps the codes needs no values, and what holds values can't be written.
    let again = find("finalfusion").unwrap().plan(&container, &Options::default()).unwrap();
    assert_eq!(to_memory(&again).unwrap().remove(0).1, bytes);
    let plan = find("text").unwrap().plan(&container, &Options::default());
    assert!(plan.and_then(|plan| to_memory(&plan)).is_err());
}
