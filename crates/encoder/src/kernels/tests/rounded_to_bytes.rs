//! Products of bytes.

use super::*;

/// The results of rows and weights rounded to bytes.
fn byte_products(level: Level, case: &Case) -> Vec<f32> {
    let mut packed = bytes::Packed::new(case.columns, case.depth, &Arena::default());
    packed.panels_mut().for_each(|(first, mut panel)| {
        panel.pack(level, case.rows_of_panel(first), case.depth, false, &mut Vec::new());
    });
    let mut rounded = bytes::ByteRows::default();
    rounded.round_rows(level, &case.a, case.depth);
    case.results(true, |results| {
        bytes::multiply(level, &rounded, &packed, case.all(), results);
    })
}

#[test]
fn bytes_have_the_bits_of_their_definition_and_are_near() {
    // Values on one side of zero, and one that sticks out, too.
    let mut high = Case::new((9, 70, 20));
    high.a.iter_mut().for_each(|x| *x += 5.0);
    high.a[3] = 40.0;
    for case in SIZES.map(Case::new).into_iter().chain([high]) {
        for level in Level::available() {
            let c = byte_products(level, &case);
            assert_eq!(c, byte_products(level.definition(), &case), "{level} {:?}", case.all());
            // The sum of a block of weights is exact, then multiplied by both scales and added, as is the
            // lowest value of the row's.
            case.assert_near(&c, 6 * case.depth.div_ceil(32) + 4, |a, b| {
                let bound = |(a, b): (&[f32], &[f32])| {
                    let [least, most] = [f32::min, f32::max].map(|f| a.iter().copied().reduce(f));
                    let range = f64::from(most.unwrap()) - f64::from(least.unwrap());
                    let blocks = a.chunks(32).zip(b.chunks(32));
                    let bound = |(a, b): (&[f32], &[f32])| {
                        rounding_bound(a, b, [range / 254.0, largest(b) / 127.0])
                    };
                    blocks.map(bound).sum::<f64>()
                };
                a.chunks(64).zip(b.chunks(64)).map(bound).sum()
            });
        }
    }
}

#[test]
fn bytes_that_were_rounded_before_lose_nothing() {
    // A row that holds one thing at a time reads the weights out.
    let codes: Vec<f32> = (0..32).map(|i| (i * 37 % 241) as f32 - 120.0).collect();
    let weights: Vec<f32> = codes.iter().map(|code| code * 0.0123).collect();
    for level in Level::available() {
        let mut packed = bytes::Packed::new(1, 32, &Arena::default());
        packed
            .panels_mut()
            .for_each(|(_, mut panel)| panel.pack(level, &weights, 32, true, &mut Vec::new()));
        for (i, weight) in weights.iter().enumerate() {
            let mut row = vec![0.0; 32];
            row[i] = 1.0;
            let mut rounded = bytes::ByteRows::default();
            rounded.round_rows(level, &row, 32);
            let mut c = [0.0];
            let (start, activation) = (Start::Zero, Activation::None);
            let results = Results { start, activation, c: &mut c, stride: 1 };
            bytes::multiply(level, &rounded, &packed, (0..1, 0..1), results);
            // Both scales, their product and the result are rounded.
            let bound = 4.0 * ROUNDING as f32 * weight.abs();
            assert!((c[0] - weight).abs() <= bound, "{level} {i}: {} {weight}", c[0]);
        }
    }
}

/// What rows of 64 values are rounded to, read out by the products with each of them alone.
fn rounded_to_bytes(level: Level, rows: &[f32]) -> Vec<f32> {
    let unit: Vec<f32> = (0..64 * 64).map(|i| f32::from(u8::from(i % 65 == 0))).collect();
    let mut packed = bytes::Packed::new(64, 64, &Arena::default());
    packed.panels_mut().for_each(|(first, mut panel)| {
        let columns = &unit[first * 64..][..PANEL * 64];
        panel.pack(level, columns, 64, false, &mut Vec::new());
    });
    let mut rounded = bytes::ByteRows::default();
    rounded.round_rows(level, rows, 64);
    let mut c = vec![0.0; rows.len()];
    let (start, activation) = (Start::Zero, Activation::None);
    let results = Results { start, activation, c: &mut c, stride: 64 };
    bytes::multiply(level, &rounded, &packed, (0..rows.len() / 64, 0..4), results);
    c
}

/// Also where values hardly differ, where the middle is rounded by more than a code.
#[test]
fn bytes_of_a_row_are_near_its_values() {
    for (most, apart) in [(100.0, 33.0 * 2f32.powi(-17)), (-7.0, 2e-6), (0.0, 1e-3), (1e38, -9e37)]
    {
        for place in [0, 1, 31, 32, 63] {
            let mut row = [most; 64];
            row[place] += apart;
            let bound = (row[place] - most).abs() / 254.0 + 4.0 * f32::EPSILON * most.abs();
            for level in Level::available() {
                for (found, value) in rounded_to_bytes(level, &row).iter().zip(row) {
                    let off = (found - value).abs();
                    assert!(off <= bound, "{level} {most} {apart} {place}: {found} {value}");
                }
            }
        }
    }
}

/// What is not finite stays so, in its own row alone; large numbers are finite.
#[test]
fn bytes_keep_what_is_not_finite() {
    for level in Level::available() {
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e38] {
            let mut rows = [0.5; 3 * 64];
            // In the same lane, so that sums of them would be infinite.
            rows[64..128].iter_mut().step_by(16).for_each(|x| *x = value);
            let found = rounded_to_bytes(level, &rows);
            for (row, found) in found.chunks_exact(64).enumerate() {
                let is_finite = found.iter().all(|x| x.is_finite());
                assert_eq!(is_finite, row != 1 || value.is_finite(), "{level} {value} {row}");
                assert!(row == 1 || found.iter().all(|x| (x - 0.5).abs() < 1e-6), "{level} {row}");
            }
        }
    }
}
