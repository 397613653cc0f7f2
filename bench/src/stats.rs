//! Statistics of tensors, against reading their bytes and no more.

use crate::files::Files;
use crate::search::limits::read;
use crate::table::{Row, throughput_beside, throughput_ratio};
use crate::timing::{Samples, in_turn};
use crate::{Outcome, process};
use std::hint::black_box;
use std::process::Command;
use weighbridge::codec::DType;
use weighbridge::codec::convert::convert;
use weighbridge::model::{Scaled, Scaling};
use weighbridge::quantize::{Method, QuantizeSettings};
use weighbridge::{
    Container, Encoding, Formats, Input, Options, Progress, Tensor, View, quantize, stats,
};

/// The first argument of the process that measures: the number of threads is fixed when it starts.
pub const CHILD: &str = "measure-stats";
const ROUNDS: usize = 8;

/// Values of every tensor: many times what caches hold.
const VALUES: usize = 64 << 20;
const COLUMNS: usize = 4096;

/// What is measured, the bytes of a value that reading is compared with, and the share of its
/// speed that is asked for. What is decoded is compared with the f32 that it stands for.
const CASES: [(&str, u64, f64); 6] = [
    ("f32", 4, 1.0 / 3.0),
    ("f16", 2, 1.0 / 3.0),
    ("bf16", 2, 1.0 / 3.0),
    ("int8", 1, 1.0 / 3.0),
    ("int8 with a scale a row, as f32", 4, 1.0 / 3.0),
    ("q8 blocks, as f32", 4, 1.0 / 3.0),
];

/// What statistics of small types come down to, and so the limit of their speed: an increment for each two
/// bytes, of counts that are bytes too and are not looked at when they are full. The types.
const COUNTED: [DType; 2] = [DType::F16, DType::I8];

/// Where f32 are not in the caches, their statistics need two walks: no value can be counted before the
/// smallest and the largest are known.
const WALKS: usize = 2;

pub fn measure(_: &Files) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for (cores, threads) in [("one thread", "1"), ("all cores", "0")] {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(CHILD).env("RAYON_NUM_THREADS", threads);
        let samples: [Samples; 2 * (CASES.len() + COUNTED.len() + 1)] =
            process::samples(&mut command)?;
        let (ours, counted) = samples.split_at(2 * CASES.len());
        for (pair, (name, size, share)) in ours.chunks_exact(2).zip(CASES) {
            let what = format!("statistics of {name}, {cores}; peer: reading the bytes");
            let bytes = VALUES as u64 * size;
            rows.push(throughput_ratio(&what, &pair[0], &pair[1], bytes, share));
        }
        // It is of one thread, whatever the statistics have.
        if threads == "1" {
            for (pair, dtype) in counted.chunks_exact(2).zip(COUNTED) {
                let what = format!(
                    "only an increment for each 16 bits of {dtype}, {cores}; peer: reading the bytes"
                );
                let bytes = VALUES as u64 * dtype.bits() / 8;
                rows.push(throughput_beside(&what, &pair[0], &pair[1], bytes));
            }
            let walks = &counted[2 * COUNTED.len()..];
            let what = format!(
                "only reading f32 {WALKS} times, from the first to the last, {cores}; peer: reading the bytes"
            );
            rows.push(throughput_beside(&what, &walks[0], &walks[1], VALUES as u64 * 4));
        }
    }
    Ok(rows)
}

/// Prints a line of times of ours, and one of reading, for each case.
pub fn child() -> Outcome<()> {
    let floats = weights();
    let raw: Vec<u8> = floats.iter().flat_map(|v| v.to_le_bytes()).collect();
    let plain = |dtype| {
        let mut bytes = Vec::new();
        convert(DType::F32, dtype, &raw, VALUES, &mut bytes);
        tensor(dtype, bytes)
    };
    let codes = || floats.iter().map(|v| (v * 1000.0).clamp(-127.0, 127.0) as i8 as u8).collect();
    let shape = [(VALUES / COLUMNS) as u64, COLUMNS as u64];
    let scales = (0..VALUES / COLUMNS).map(|row| 0.01 + row as f32 * 1e-6).collect();
    let scaling = Scaling::Affine { axis: Some(0), scales, zero_points: None };
    let rows = Encoding::Scaled(Scaled { codes: DType::I8, scaling }.into());
    let mut tensors = vec![
        plain(DType::F32)?,
        plain(DType::F16)?,
        plain(DType::BF16)?,
        tensor(DType::I8, codes())?,
        Tensor::stored("x", rows, shape.to_vec(), View::owned(codes()))?,
    ];
    let container = Container::builder().values("weight", &shape, floats).build()?;
    let settings = QuantizeSettings::new(Method::from_name("q8").ok_or("there is q8")?);
    let bytes = quantize(&container, &settings, &mut Progress::none())?.plan.to_bytes()?;
    drop(container);
    let blocks =
        Formats::builtin().open(&Input::from_bytes("blocks.mcf", bytes), &Options::default())?;
    tensors.extend(blocks.tensors);
    let sides = tensors.iter().map(|tensor| {
        // What is decoded is compared with f32, which are there.
        let view = tensor.view().filter(|_| matches!(tensor.encoding, Encoding::Plain(_)));
        let bytes = view.and_then(View::resident).unwrap_or(&raw);
        in_turn(
            ROUNDS,
            [&mut || drop(black_box(stats(tensor).expect("it is in memory"))), &mut || {
                black_box(read(black_box(bytes)));
            }],
        )
    });
    let mut all = sides.collect::<Vec<_>>().concat();
    for dtype in COUNTED {
        let plain = |t: &&Tensor| t.encoding == Encoding::Plain(dtype);
        let view = tensors.iter().find(plain).and_then(Tensor::view);
        let bytes = view.and_then(View::resident).ok_or("it is in memory")?;
        let mut counts = vec![0u8; 1 << 16];
        all.extend(in_turn(
            ROUNDS,
            [&mut || count(black_box(bytes), &mut counts), &mut || {
                black_box(read(black_box(bytes)));
            }],
        ));
        black_box(&counts);
    }
    let walk = |_| raw.as_chunks::<64>().0.iter().fold([0u64; 8], add_line);
    all.extend(in_turn(
        ROUNDS,
        [&mut || drop(black_box((0..WALKS).map(walk).collect::<Vec<_>>())), &mut || {
            black_box(read(black_box(&raw)));
        }],
    ));
    process::print(&all);
    Ok(())
}

fn add_line(mut sums: [u64; 8], line: &[u8; 64]) -> [u64; 8] {
    for (sum, eight) in sums.iter_mut().zip(line.as_chunks::<8>().0) {
        *sum = sum.wrapping_add(u64::from_le_bytes(*eight));
    }
    sums
}

fn count(bytes: &[u8], counts: &mut [u8]) {
    let Some(counts) = counts.first_chunk_mut::<{ 1 << 16 }>() else { return };
    for eight in bytes.as_chunks::<8>().0 {
        let eight = u64::from_le_bytes(*eight);
        for i in 0..4 {
            let count = &mut counts[usize::from((eight >> (16 * i)) as u16)];
            *count = count.wrapping_add(1);
        }
    }
}

fn tensor(dtype: DType, bytes: Vec<u8>) -> Outcome<Tensor> {
    Ok(Tensor::stored("x", Encoding::Plain(dtype), vec![VALUES as u64], View::owned(bytes))?)
}

/// Numbers that are spread as weights are: most are near zero, none far away.
fn weights() -> Vec<f32> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let parts: [u64; 4] = std::array::from_fn(|i| state >> (i * 16) & 0xFFFF);
        let sum: u64 = parts.iter().sum::<u64>() + (state.wrapping_mul(0x9E37_79B9) >> 48);
        (sum as f32 / 65536.0 - 2.5) * 0.03
    };
    (0..VALUES).map(|_| next()).collect()
}
