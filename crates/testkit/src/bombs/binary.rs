//! OINF, MCF and EMBD: tables whose entries may point anywhere.

use super::{Bomb, narrow, pad_to, u16s, u32s, u64s};

const TEXT: u32 = 14;
const ARRAY: u32 = 15;
const BOOL: u32 = 12;
const U8: u32 = 5;
const I8: u32 = 1;
const F32: u32 = 10;

pub(super) fn bombs(size: usize) -> Vec<Bomb> {
    let half = size / 2;
    let oinf = |name, file: Oinf| Bomb::file(name, "bomb.oinf", file.to_bytes());
    let zeros = half / 4;
    vec![
        oinf("oinf-texts", Oinf::metadata(half, TEXT, "", text(half))),
        oinf("oinf-arrays", Oinf::metadata(half, ARRAY, "", array(BOOL, &[half as u64], half))),
        oinf("oinf-utf8", Oinf::metadata(half, ARRAY, ".utf8", array(U8, &[half as u64], half))),
        oinf("oinf-ranks", Oinf::metadata(half, ARRAY, "", array(U8, &vec![1; half / 8], 1))),
        oinf("oinf-files", Oinf::attachments(half)),
        oinf("oinf-overlap", Oinf::overlapping(half)),
        oinf("oinf-tensors", Oinf::tensors(half, F32, &[zeros as u64], 4 * zeros)),
        oinf("oinf-booleans", Oinf::tensors(half, BOOL, &[1, half as u64], half)),
        oinf("oinf-matrices", Oinf::tensors(half, F32, &[zeros as u64 / 64, 64], zeros / 64 * 256)),
        oinf("oinf-empty", Oinf::tensors(2 * half, F32, &[0], 0)),
        oinf("oinf-scales", Oinf::scales(half)),
        oinf("oinf-one-scale-each", Oinf::different_scales(half)),
        oinf("oinf-declared", Oinf::declared(2 * half)),
        Bomb::file("mcf-tensors", "bomb.mcf", mcf(half, false)),
        Bomb::file("mcf-blocks", "bomb.mcf", mcf(half, true)),
        Bomb::file("embd-tensors", "bomb.weights", embd(half)),
    ]
}

fn text(length: usize) -> Vec<u8> {
    let mut out = narrow(length).to_le_bytes().to_vec();
    out.resize(4 + length, b'a');
    pad_to(&mut out, 8);
    out
}

fn array(tag: u32, shape: &[u64], bytes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    u32s(&mut out, &[tag, narrow(shape.len())]);
    u64s(&mut out, shape);
    // Spaces are no name, and 1 is a boolean.
    out.resize(out.len() + bytes, if tag == BOOL { 1 } else { b' ' });
    pad_to(&mut out, 8);
    out
}

/// Tables with places that count from the start of the data, which is put right at the end.
#[derive(Default)]
struct Oinf {
    metadata: Vec<(String, u32, u64, u64)>,
    tensors: Vec<OinfTensor>,
    data: Vec<u8>,
}

struct OinfTensor {
    name: String,
    tag: u32,
    shape: Vec<u64>,
    /// Size and offset; none of a declaration.
    data: Option<(u64, u64)>,
    scales: Option<(u64, u64)>,
}

impl Oinf {
    /// So many bytes of entries that share a value.
    fn metadata(room: usize, tag: u32, suffix: &str, data: Vec<u8>) -> Oinf {
        let size = data.len() as u64;
        let entry = |i| (format!("k{i:07}{suffix}"), tag, size, 0);
        Oinf { metadata: (0..room / 40).map(entry).collect(), data, ..Oinf::default() }
    }

    fn attachments(half: usize) -> Oinf {
        let data = array(U8, &[half as u64], half);
        let size = data.len() as u64;
        let entry = |i| (format!("attachment.f{i:07}"), ARRAY, size, 0);
        Oinf { metadata: (0..half / 48).map(entry).collect(), data, ..Oinf::default() }
    }

    /// Tensors of half the data, each of which begins a little behind the one before.
    fn overlapping(half: usize) -> Oinf {
        let data = vec![1; half / 8 * 8];
        let bytes = half as u64 / 16 * 4;
        let tensor = |i: usize| OinfTensor {
            name: format!("t{i:07}"),
            tag: F32,
            shape: vec![bytes / 4],
            data: Some((bytes, 8 * i as u64)),
            scales: None,
        };
        Oinf { tensors: (0..half / 70).map(tensor).collect(), data, ..Oinf::default() }
    }

    /// So many bytes of tensors that share their data.
    fn tensors(room: usize, tag: u32, shape: &[u64], bytes: usize) -> Oinf {
        let tensor = |i| OinfTensor {
            name: format!("t{i:07}"),
            tag,
            shape: shape.to_vec(),
            data: Some((bytes as u64, 0)),
            scales: None,
        };
        let count = room / (60 + 8 * shape.len());
        Oinf { tensors: (0..count).map(tensor).collect(), data: vec![1; bytes], ..Oinf::default() }
    }

    /// Tensors that share codes and scales.
    fn scales(half: usize) -> Oinf {
        let rows = half / 8;
        let mut data = vec![1; rows];
        pad_to(&mut data, 8);
        let at = data.len() as u64;
        // Symmetric, one scale a row.
        u32s(&mut data, &[1, 2, 0, 0]);
        u64s(&mut data, &[0, rows as u64, 0, 0]);
        (0..rows).for_each(|_| data.extend(0.5f32.to_le_bytes()));
        pad_to(&mut data, 8);
        let size = data.len() as u64 - at;
        let tensor = |i| OinfTensor {
            name: format!("t{i:07}"),
            tag: I8,
            shape: vec![rows as u64, 1],
            data: Some((rows as u64, 0)),
            scales: Some((size, at)),
        };
        Oinf { tensors: (0..half / 76).map(tensor).collect(), data, ..Oinf::default() }
    }

    /// Tensors that share codes and have a scale of their own.
    fn different_scales(half: usize) -> Oinf {
        let mut data = vec![1; half];
        pad_to(&mut data, 8);
        let mut tensors = Vec::new();
        for i in 0..half / 140 {
            let at = data.len() as u64;
            u32s(&mut data, &[1, 1, 0, 0]);
            u64s(&mut data, &[0, 1, 0, 0]);
            data.extend((1.0 + i as f32).to_le_bytes());
            pad_to(&mut data, 8);
            tensors.push(OinfTensor {
                name: format!("t{i:07}"),
                tag: I8,
                shape: vec![half as u64 / 8, 8],
                data: Some((half as u64 / 8 * 8, 0)),
                scales: Some((data.len() as u64 - at, at)),
            });
        }
        Oinf { tensors, data, ..Oinf::default() }
    }

    /// Tensors of a size that no disk has, without data.
    fn declared(room: usize) -> Oinf {
        let tensor = |i| OinfTensor {
            name: format!("t{i:07}"),
            tag: F32,
            shape: vec![1 << 30, 1 << 28],
            data: None,
            scales: None,
        };
        Oinf { tensors: (0..room / 76).map(tensor).collect(), ..Oinf::default() }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let name = |out: &mut Vec<u8>, text: &str| {
            u32s(out, &[narrow(text.len())]);
            out.extend(text.as_bytes());
            let used = 4 + text.len();
            out.resize(out.len() + used.next_multiple_of(8) - used, 0);
        };
        // Twice: with the places that the first time shows.
        let tables = |base: u64| {
            let (mut metadata, mut tensors) = (Vec::new(), Vec::new());
            for (key, tag, size, at) in &self.metadata {
                name(&mut metadata, key);
                u32s(&mut metadata, &[*tag, 0]);
                u64s(&mut metadata, &[*size, base + at]);
            }
            for t in &self.tensors {
                name(&mut tensors, &t.name);
                let flags = u32::from(t.data.is_some()) | u32::from(t.scales.is_some()) << 1;
                u32s(&mut tensors, &[t.tag, narrow(t.shape.len()), flags]);
                u64s(&mut tensors, &t.shape);
                for place in [t.data, t.scales] {
                    let (size, at) = place.map_or((0, 0), |(size, at)| (size, base + at));
                    u64s(&mut tensors, &[size, at]);
                }
            }
            pad_to(&mut metadata, 8);
            pad_to(&mut tensors, 8);
            (metadata, tensors)
        };
        let (metadata, tensors) = tables(0);
        let base = (72 + metadata.len() + tensors.len()) as u64;
        let (metadata, tensors) = tables(base);
        let mut out = b"OINF\0".to_vec();
        u32s(&mut out, &[2, 0, 0, narrow(self.metadata.len()), narrow(self.tensors.len()), 0]);
        let at_tensors = 72 + metadata.len() as u64;
        u64s(&mut out, &[72, 72, at_tensors, base, base + self.data.len() as u64]);
        pad_to(&mut out, 8);
        [out, metadata, tensors, self.data.clone()].concat()
    }
}

/// An index of tensors that share a payload: plain values, or codes in blocks.
fn mcf(half: usize, blocks: bool) -> Vec<u8> {
    let (kind, cols) = if blocks { (0x20, 64u64) } else { (1, 64) };
    let row = if blocks { 64 + 4 } else { 256 };
    let rows = (half / row) as u64;
    let count = half / 56;
    // Scales (f16, one for each 32 values) up to a multiple of 64, then the codes.
    let front = if blocks { (rows * 4).next_multiple_of(64) } else { 0 };
    let bytes = if blocks { front + (rows * 64).next_multiple_of(64) } else { rows * 256 };
    let data_at = 64u64;
    let index_at = data_at + bytes.next_multiple_of(64);
    let mut out = b"MCF\0".to_vec();
    u16s(&mut out, &[1, 1]);
    let index_size = 48 + 40 * count + 16 + 8 * count;
    let directory = (index_at + index_size as u64).next_multiple_of(8);
    u32s(&mut out, &[40, 2]);
    u64s(&mut out, &[directory, directory + 48, 1]);
    out.resize(64, 0);
    // A half in every pair of bytes, and codes that are no most negative one.
    (0..front / 2).for_each(|_| out.extend(0x3800u16.to_le_bytes()));
    out.resize((64 + bytes) as usize, 1);
    out.resize(index_at as usize, 0);
    u32s(&mut out, &[1, 3, narrow(count), 2]);
    let dims_at = 48 + 40 * count as u64;
    u64s(&mut out, &[48, dims_at, dims_at + 16, 8 * count as u64]);
    for i in 0..count {
        u32s(&mut out, &[narrow(8 * i), 8, kind, 2, 0, 0]);
        u64s(&mut out, &[data_at, bytes]);
    }
    u64s(&mut out, &[rows, cols]);
    (0..count).for_each(|i| out.extend(format!("t{i:07}").as_bytes()));
    pad_to(&mut out, 8);
    u32s(&mut out, &[3, 1]);
    u64s(&mut out, &[index_at, index_size as u64]);
    u32s(&mut out, &[4, 1]);
    u64s(&mut out, &[data_at, bytes]);
    out
}

/// The indexed layout, with tensors that share their data.
fn embd(half: usize) -> Vec<u8> {
    let (count, data) = (half / 40, half / 4 * 4);
    let data_at = 64 + 40 * count;
    let total = data_at + data + 16;
    let mut out = b"EMBD".to_vec();
    u16s(&mut out, &[1, 0]);
    u32s(&mut out, &[0, 64, 0, 0, 0, 64, narrow(count), narrow(data_at)]);
    u64s(&mut out, &[data as u64, total as u64, 0]);
    for i in 0..count {
        let name = format!("t{i:07}");
        let hash =
            name.bytes().fold(0x811C_9DC5u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
        u32s(&mut out, &[hash]);
        out.extend([0, 1]);
        u16s(&mut out, &[8]);
        u32s(&mut out, &[narrow(data / 4), 0, 0, 0]);
        u64s(&mut out, &[0]);
    }
    (0..count).for_each(|i| out.extend(format!("t{i:07}").as_bytes()));
    out.resize(data_at + data, 1);
    u32s(&mut out, &[0, 0]);
    out.extend(b"DBME\0\0\0\0");
    out
}
