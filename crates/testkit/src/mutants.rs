//! Broken variants of a file, one at a time.

use weighbridge_format::wire::{What, to_len};
use weighbridge_format::{Formats, Input, Options};

/// The offsets of all bytes that are structure, not payload. All of them when the file can't be
/// opened.
pub fn structural_bytes(input: &Input) -> Vec<usize> {
    let size = to_len(input.source.len());
    let Ok(container) = Formats::builtin().open(input, &Options::default()) else {
        return (0..size).collect();
    };
    let mut payload = vec![false; size];
    for region in container.regions.list() {
        if matches!(region.what, What::Tensor(_)) {
            let span = usize::try_from(region.span.start).unwrap()
                ..usize::try_from(region.span.end).unwrap();
            payload[span].fill(true);
        }
    }
    (0..size).filter(|&i| !payload[i]).collect()
}

/// Every proper beginning of a file.
pub fn truncations(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..bytes.len()).map(|n| bytes[..n].to_vec())
}

/// Every single bit at the given places flipped.
pub fn bit_flips(bytes: &[u8], at: Vec<usize>) -> impl Iterator<Item = Vec<u8>> {
    let places = at.into_iter().flat_map(|i| (0..8).map(move |bit| (i, bit)));
    places.map(|(i, bit)| {
        let mut mutant = bytes.to_vec();
        mutant[i] ^= 1 << bit;
        mutant
    })
}

/// Numbers at the edges of what counts and sizes can be, written at the given places in 2, 4 and 8
/// bytes.
pub fn boundary_integers(bytes: &[u8], at: Vec<usize>) -> impl Iterator<Item = Vec<u8>> {
    let size = bytes.len() as u64;
    let values = [
        0,
        1,
        (1 << 31) - 1,
        1 << 31,
        (1 << 31) + 1,
        u64::from(u32::MAX),
        1 << 63,
        u64::MAX,
        size.saturating_sub(1),
        size + 1,
    ];
    let places = at.into_iter().flat_map(move |i| {
        values.into_iter().flat_map(move |v| [2, 4, 8].map(move |width| (i, v, width)))
    });
    places
        .filter(|(i, v, width)| {
            let fits = *width == 8 || *v < 1 << (8 * width) || *v == u64::MAX;
            fits && i + width <= bytes.len()
        })
        .map(|(i, v, width)| {
            let mut mutant = bytes.to_vec();
            mutant[i..i + width].copy_from_slice(&v.to_le_bytes()[..width]);
            mutant
        })
}
