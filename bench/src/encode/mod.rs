//! Sentence embedding with all-MiniLM-L6-v2 on one core and on two, from text to vector, against
//! ONNX Runtime, OpenVINO, sentence-transformers, candle and rten.

mod sides;
mod start;

use crate::files::Files;
use crate::table::{Row, cosines, rate_beside, rate_ratio, time_beside, time_limit};
use crate::texts::Workloads;
use crate::timing::Samples;
use crate::{Outcome, process};
use sides::{BLOCK_GRAPHS, F32_GRAPHS, INT8_GRAPHS, Made, Side, choose};
use std::path::Path;
use std::process::Command;
use weighbridge::codec::simd::Level;
use weighbridge::encoder::Precision;

pub const CHILD: &str = "encode";

const ROUNDS: usize = 3;
/// The short text, in each round.
const SHORT_RUNS: usize = 100;

/// Those whose times a measuring process prints, in this order.
const SIDES: usize = 13;
const OURS: usize = 0;
const OURS_Q8: usize = 1;
/// With one thread though there are two cores, so that both speeds are of the same moments.
const OURS_ALONE: usize = 2;
const ORT: usize = 3;
const ORT_INT8: usize = 4;
const OPENVINO: usize = 5;
const OPENVINO_INT8: usize = 6;
const RTEN: usize = 7;
const RTEN_INT8: usize = 8;
const TORCH: usize = 9;
const CANDLE: usize = 10;
/// Rounded in blocks, so that the vectors stay near.
const ORT_BLOCKS: usize = 11;
const OPENVINO_GROUPS: usize = 12;

const NAMES: [&str; SIDES] = [
    "ours",
    "ours",
    "ours on one",
    "ONNX Runtime",
    "ONNX Runtime int8",
    "OpenVINO",
    "OpenVINO int8",
    "rten",
    "rten int8",
    "sentence-transformers",
    "candle",
    "ONNX Runtime int8 in blocks",
    "OpenVINO int8 in groups",
];
const F32_PEERS: [usize; 5] = [ORT, OPENVINO, RTEN, TORCH, CANDLE];
const INT8_PEERS: [usize; 5] = [ORT_INT8, OPENVINO_INT8, RTEN_INT8, ORT_BLOCKS, OPENVINO_GROUPS];

/// The lowest cosine that a rounded side may have to be one that q8 is measured by.
const NEAR: f64 = 0.99;

const WORKLOADS: usize = 4;
const MIXED: usize = 0;
const P128: usize = 1;
const P256: usize = 2;
const SHORT: usize = 3;

pub fn measure(files: &Files) -> Outcome<Vec<Row>> {
    let texts = Workloads::write(&files.work.join("texts"))?;
    let made = Made::prepare(files, &texts.trial)?;
    let lengths = [&texts.mixed, &texts.p128, &texts.p256, &texts.short].map(|t| t.list.len());
    let (one, _) = measure_cores(&made, 1)?;
    let (two, found) = measure_cores(&made, 2)?;
    let mut rows = Vec::new();
    // Of f32: the fastest peer has the target, the others are shown beside.
    for (what, workload, limits) in [
        ("mixed texts", MIXED, [Some(1.05), Some(1.0)]),
        ("passages of 128 tokens", P128, [Some(1.05), Some(1.15)]),
        ("passages of 256 tokens", P256, [None, None]),
    ] {
        for ((cores, times), limit) in [("one core", &one), ("two cores", &two)].iter().zip(limits)
        {
            let times = &times[workload];
            for (place, peer) in fastest(times, F32_PEERS).into_iter().enumerate() {
                let what = format!("f32, {what}, {cores}; peer: {}", NAMES[peer]);
                let limit = limit.filter(|_| place == 0);
                rows.push(rates(&what, &times[OURS], &times[peer], lengths[workload], limit));
            }
        }
    }
    for (what, workload) in [("mixed texts", MIXED), ("passages of 128 tokens", P128)] {
        let (what, times) =
            (format!("f32, {what}, two cores; peer: ours, one thread"), &two[workload]);
        let count = lengths[workload];
        rows.push(rates(&what, &times[OURS], &times[OURS_ALONE], count, Some(1.85)));
    }
    // Processors that multiply bytes are asked for more.
    let limit = if Level::best().has_byte_products() { 1.5 } else { 1.0 };
    for (what, workload) in
        [("mixed texts", MIXED), ("passages of 128 tokens", P128), ("passages of 256 tokens", P256)]
    {
        for (cores, times) in [("one core", &one), ("two cores", &two)] {
            let times = &times[workload];
            let peers = fastest(times, INT8_PEERS);
            let near = peers.into_iter().find(|&peer| found[peer][0] >= NEAR);
            let nearest = near.or(peers.first().copied());
            for peer in peers {
                let what = format!("q8, {what}, {cores}; peer: {}", NAMES[peer]);
                let limit = (nearest == Some(peer)).then_some(limit);
                rows.push(rates(&what, &times[OURS_Q8], &times[peer], lengths[workload], limit));
            }
        }
    }
    for (cores, times, limits) in [
        ("one core", &one[SHORT], [None, None]),
        ("two cores", &two[SHORT], [Some(1.6e-3), Some(1.0e-3)]),
    ] {
        let sides = [
            ("f32", OURS, fastest(times, F32_PEERS)[0]),
            ("q8", OURS_Q8, fastest(times, INT8_PEERS)[0]),
        ];
        for ((precision, ours, peer), limit) in sides.into_iter().zip(limits) {
            let what = format!("{precision}, a short text, {cores}; peer: {}", NAMES[peer]);
            rows.push(match limit {
                Some(limit) => time_limit(&what, &times[ours], &times[peer], limit),
                None => time_beside(&what, &times[ours], &times[peer]),
            });
        }
    }
    rows.extend(start::measure(files, &made)?);
    let what = "lowest / mean cosine to sentence-transformers";
    for (precision, ours, peers) in [("f32", OURS, &F32_PEERS[..]), ("q8", OURS_Q8, &INT8_PEERS)] {
        for &peer in peers {
            let what = format!("{precision}, {what}; peer: {}", NAMES[peer]);
            rows.push(cosines(&what, found[ours], found[peer]));
        }
    }
    Ok(rows)
}

fn rates(what: &str, ours: &Samples, peer: &Samples, count: usize, limit: Option<f64>) -> Row {
    match limit {
        Some(limit) => rate_ratio(what, ours, peer, count, "texts/s", limit),
        None => rate_beside(what, ours, peer, count, "texts/s"),
    }
}

/// In the order of their best times.
fn fastest<const N: usize>(times: &[Samples; SIDES], mut peers: [usize; N]) -> [usize; N] {
    peers.sort_by(|&a, &b| times[a].best().total_cmp(&times[b].best()));
    peers
}

type Times = [[Samples; SIDES]; WORKLOADS];

/// In processes of their own, because all sides fix their threads when they start. Returns the
/// times of each workload and side, and each side's cosines.
fn measure_cores(made: &Made, cores: usize) -> Outcome<(Times, [[f64; 2]; SIDES])> {
    let list = (0..cores).map(|core| core.to_string()).collect::<Vec<_>>().join(",");
    let mut command = Command::new("taskset");
    command.arg("-c").arg(list).arg(std::env::current_exe()?);
    command.arg(CHILD).args(made.paths()).arg(cores.to_string());
    let lines: [Samples; (WORKLOADS + 1) * SIDES] = process::samples(&mut command)?;
    let mut lines = lines.into_iter();
    let mut next = || lines.next().unwrap_or_default();
    let times = std::array::from_fn(|_| std::array::from_fn(|_| next()));
    let cosines = std::array::from_fn(|_| match next().0.as_slice() {
        [lowest, mean] => [*lowest, *mean],
        _ => [f64::NAN; 2],
    });
    Ok((times, cosines))
}

/// The measuring process. Prints a line of times for each workload and side, then a line of the
/// lowest and the mean cosine for each side.
pub fn child(paths: &[&Path], cores: usize) -> Outcome<()> {
    let made = Made::from_paths(paths)?;
    let texts = Workloads::read(&made.texts)?;
    let mut sides: [Side; SIDES] = [
        Side::ours(&made.embd, Precision::F32, cores)?,
        Side::ours(&made.mcf, Precision::Q8, cores)?,
        Side::ours(&made.embd, Precision::F32, 1)?,
        choose("ONNX Runtime", &texts.trial, &F32_GRAPHS, |graph| made.ort(graph, cores))?,
        choose("ONNX Runtime", &texts.trial, &INT8_GRAPHS, |graph| made.ort(graph, cores))?,
        Side::peer(made.openvino("f32", cores))?,
        Side::peer(made.openvino("int8", cores))?,
        Side::peer(made.rten("f32-plain", cores))?,
        Side::peer(made.rten("int8-plain-column", cores))?,
        Side::peer(made.torch(cores))?,
        Side::peer(made.candle(cores))?,
        choose("ONNX Runtime in blocks", &texts.trial, &BLOCK_GRAPHS, |graph| {
            made.ort(graph, cores)
        })?,
        Side::peer(made.openvino("int8-groups", cores))?,
    ];
    for side in &mut sides {
        side.embed(&texts.trial, 1)?;
        side.embed(&texts.short, SHORT_RUNS)?;
    }
    let mut samples: Times = Default::default();
    for _ in 0..ROUNDS {
        let workloads = [&texts.mixed, &texts.p128, &texts.p256, &texts.short];
        for (number, (texts, samples)) in workloads.into_iter().zip(&mut samples).enumerate() {
            let runs = if number == SHORT { SHORT_RUNS } else { 1 };
            for (who, (side, samples)) in sides.iter_mut().zip(samples).enumerate() {
                // With one core it would be the first side again.
                if who != OURS_ALONE || cores > 1 {
                    samples.0.extend(side.embed(texts, runs)?);
                }
            }
        }
    }
    samples.iter().for_each(|samples| process::print(samples));
    let file = made.texts.join("vectors.f32");
    let right = sides[TORCH].vectors(&texts.all, &file)?;
    let dimensions = right.len() / texts.all.list.len();
    for (who, side) in sides.iter_mut().enumerate() {
        let vectors = side.vectors(&texts.all, &file)?;
        if vectors.len() != right.len() {
            return Err(format!("{} made vectors of another size", NAMES[who]).into());
        }
        let pairs = vectors.chunks(dimensions).zip(right.chunks(dimensions));
        let found: Vec<f64> = pairs.map(|(a, b)| cosine(a, b)).collect();
        let lowest = found.iter().copied().fold(f64::INFINITY, f64::min);
        let mean = found.iter().sum::<f64>() / found.len() as f64;
        // Speed says nothing of a side that computes something else.
        let is_rounded = who == OURS_Q8 || INT8_PEERS.contains(&who);
        if !is_rounded && (lowest.is_nan() || lowest < 0.999) {
            return Err(format!("{} is not the same model: cosine {lowest}", NAMES[who]).into());
        }
        process::print(&[Samples(vec![lowest, mean])]);
    }
    Ok(())
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}
