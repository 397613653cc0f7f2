//! Product quantization on all cores, against faiss: 100,000 rows of 300 values in 30 bytes each.

use crate::Outcome;
use crate::files::Files;
use crate::python::Python;
use crate::table::{Row, error_ratio, rate_ratio, time_ratio};
use crate::timing::{Samples, seconds};
use crate::wordfile::Random;
use rayon::prelude::*;
use std::path::Path;
use weighbridge::codec::product::Training;

const ROWS: usize = 100_000;
const DIM: usize = 300;
const PARTS: usize = 30;
/// Rows that a thread takes at a time.
const TOGETHER: usize = 2400;
const SEEDS: u64 = 3;

pub fn measure(files: &Files) -> Outcome<Vec<Row>> {
    measure_with(files, false, SEEDS)
}

/// With a rotation. It is trained once, because the peer takes minutes.
pub fn measure_rotated(files: &Files) -> Outcome<Vec<Row>> {
    measure_with(files, true, 1)
}

fn measure_with(files: &Files, rotate: bool, seeds: u64) -> Outcome<Vec<Row>> {
    let name = if rotate { "OPQ" } else { "PQ" };
    let mut python = Python::start(&files.python)?;
    let mut table = Vec::new();
    for (kind, rows) in [("normal rows", normal()), ("clustered rows", clustered())] {
        let path = files.work.join("rows.f32");
        write(&path, &rows)?;
        let (mut ours, mut peer): ([Samples; 3], [Samples; 3]) = Default::default();
        for seed in 1..=seeds {
            let [dim, parts, number] = [DIM, PARTS, seed as usize].map(|n| n.to_string());
            let path = path.to_string_lossy();
            let request = ["quantize", &path, &dim, &parts, &number, &name.to_lowercase()];
            let theirs = python.numbers::<3>(&request)?;
            let found = quantize(&rows, rotate, seed)?;
            for (samples, values) in [(&mut ours, found), (&mut peer, theirs)] {
                samples.iter_mut().zip(values).for_each(|(s, value)| s.0.push(value));
            }
        }
        // The next rows get a process that does not know these.
        python = Python::start(&files.python)?;
        std::fs::remove_file(path)?;
        let what = |what: &str| format!("{what}, {kind}; peer: faiss {name}");
        let label = name.to_lowercase();
        table.extend([
            time_ratio(&what(&format!("train {label}")), &ours[0], &peer[0], 1.0 / 3.0),
            rate_ratio(&what(&format!("encode {label}")), &ours[1], &peer[1], ROWS, "rows/s", 5.0),
            error_ratio(&what(&format!("squared error of {label}")), &ours[2], &peer[2], 1.0),
        ]);
    }
    Ok(table)
}

/// Seconds for training and for encoding, and the mean squared error of a row.
fn quantize(rows: &[f32], rotate: bool, seed: u64) -> Outcome<[f64; 3]> {
    let training = Training { rotate, seed, ..Training::new(PARTS) };
    let (trained, codebook) =
        seconds(|| training.train(rows, DIM, &mut |_| std::ops::ControlFlow::Continue(())));
    let codebook = codebook?;
    let mut codes = vec![0; rows.len() / DIM * PARTS];
    let (encoded, ()) = seconds(|| {
        let rows = rows.par_chunks(DIM * TOGETHER);
        let codes = codes.par_chunks_mut(PARTS * TOGETHER);
        codes.zip(rows).for_each(|(codes, rows)| codebook.encode(rows, codes));
    });
    let mut again = vec![0.0; rows.len()];
    codebook.decode(&codes, &mut again);
    let square = |(a, b): (&f32, &f32)| f64::from(a - b).powi(2);
    let error: f64 = rows.iter().zip(&again).map(square).sum();
    Ok([trained, encoded, error / (rows.len() / DIM) as f64])
}

fn normal() -> Vec<f32> {
    let mut random = Random(5);
    let mut rows: Vec<f32> = (0..ROWS * DIM).map(|_| random.normal()).collect();
    to_unit_length(&mut rows);
    rows
}

/// Around 200 centres, in 60 directions of which each is weaker than the one before, with noise
/// that is not the same for all values.
fn clustered() -> Vec<f32> {
    const RANK: usize = 60;
    let mut random = Random(6);
    let mut normals = |n: usize| (0..n).map(|_| random.normal()).collect::<Vec<f32>>();
    let centres = normals(200 * RANK);
    let mut directions = normals(RANK * DIM);
    for (i, direction) in directions.chunks_exact_mut(DIM).enumerate() {
        direction.iter_mut().for_each(|v| *v *= 0.9f32.powi(i as i32));
    }
    let noise: Vec<f32> = normals(DIM).iter().map(|v| 0.1 + 0.1 * v.abs()).collect();
    let mut rows = vec![0.0; ROWS * DIM];
    for row in rows.chunks_exact_mut(DIM) {
        let centre = &centres[random.below(200) * RANK..][..RANK];
        row.iter_mut().zip(&noise).for_each(|(v, noise)| *v = noise * random.normal());
        for (direction, centre) in directions.chunks_exact(DIM).zip(centre) {
            let by = centre + 0.7 * random.normal();
            row.iter_mut().zip(direction).for_each(|(v, d)| *v += by * d);
        }
    }
    to_unit_length(&mut rows);
    rows
}

fn to_unit_length(rows: &mut [f32]) {
    for row in rows.chunks_exact_mut(DIM) {
        let length = row.iter().map(|v| v * v).sum::<f32>().sqrt();
        row.iter_mut().for_each(|v| *v /= length);
    }
}

fn write(path: &Path, rows: &[f32]) -> Outcome<()> {
    let bytes: Vec<u8> = rows.iter().flat_map(|v| v.to_le_bytes()).collect();
    Ok(std::fs::write(path, bytes)?)
}
