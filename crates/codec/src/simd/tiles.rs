//! Products of tiles: sixteen rows of a matrix with sixteen columns of another at once, for processors
//! that have registers and instructions for them (AMX).
//!
//! Values are bf16, sums f32. How a sum is made is defined by `add_products`; processors have its bits.

use super::Level;
use std::array::from_fn;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use std::cell::Cell;
use std::marker::PhantomData;

/// Rows of a tile, and columns of one.
pub const SIDE: usize = 16;

/// Values of a row or column that a tile holds.
pub const DEPTH: usize = 32;

/// The bits of bf16: `DEPTH` values of each of sixteen rows. Each is a line of the cache: loads that
/// touch two take twice as long.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct RowTile(pub [[i16; DEPTH]; SIDE]);

/// The bits of bf16: as many values of each of sixteen columns, two of each column on a line.
pub type ColumnTile = [[[i16; 2]; SIDE]; DEPTH / 2];

/// The sums of rows with columns.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Sums(pub [[f32; SIDE]; SIDE]);

impl RowTile {
    /// A tile of zeros.
    pub const ZERO: RowTile = RowTile([[0; DEPTH]; SIDE]);
}

impl Sums {
    /// Sums of nothing.
    pub const ZERO: Sums = Sums([[0.0; SIDE]; SIDE]);
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
thread_local! {
    /// How many have the right on this thread: the last of them gives back what was prepared.
    static HOLDERS: Cell<usize> = const { Cell::new(0) };
}

/// The right to multiply tiles on this thread, for which the processor is prepared as long as it lives.
#[derive(Debug)]
pub struct TileProducts {
    level: Level,
    /// What is prepared is the core that the thread runs on.
    one_thread: PhantomData<*const ()>,
}

impl TileProducts {
    /// Prepares the processor. Where a level has no tiles, products are those of the definition.
    pub fn new(level: Level) -> TileProducts {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        if level.has_tiles() {
            HOLDERS.set(HOLDERS.get() + 1);
            // Whoever has it already, as others in this process may have prepared tiles of another shape
            // since. Nothing is in them between two products.
            // SAFETY: the processor has tiles and the system allows them, see the level.
            unsafe { super::amx::prepare() };
        }
        TileProducts { level, one_thread: PhantomData }
    }

    /// The sums of up to two times sixteen rows with as many columns, replacing what `sums` held. Each
    /// side has one tile behind the other, all sides as many. What is soon needed is prefetched on the way.
    ///
    /// # Panics
    ///
    /// When a side has more tiles than another one.
    #[inline]
    pub fn multiply<const R: usize, const C: usize>(
        &mut self,
        rows: [&[RowTile]; R],
        columns: [&[ColumnTile]; C],
        soon: &[ColumnTile],
        sums: &mut [[Sums; C]; R],
    ) {
        const { assert!(1 <= R && R <= 2 && 1 <= C && C <= 2, "one or two of each side") };
        let count = rows[0].len();
        assert!(rows.iter().all(|side| side.len() == count), "rows of as many tiles");
        assert!(columns.iter().all(|side| side.len() == count), "columns of as many tiles");
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        if self.level.has_tiles() && count > 0 {
            let rows = [rows[0].as_ptr(), rows[R - 1].as_ptr()];
            let columns = [columns[0].as_ptr(), columns[C - 1].as_ptr()];
            let lines = size_of_val(soon).div_ceil(64).div_ceil(count);
            let soon = (soon.as_ptr().cast(), lines);
            let sums = sums.as_flattened_mut().as_mut_ptr();
            // SAFETY: the processor was prepared on this thread. There are `count` tiles behind each
            // pointer, and `R * C` sums.
            unsafe {
                match (R, C) {
                    (1, 1) => super::amx::multiply_1_1(rows, columns, count, soon, sums),
                    (1, _) => super::amx::multiply_1_2(rows, columns, count, soon, sums),
                    (_, 1) => super::amx::multiply_2_1(rows, columns, count, soon, sums),
                    _ => super::amx::multiply_2_2(rows, columns, count, soon, sums),
                }
            }
            return;
        }
        let _ = (self.level, soon);
        for (rows, sums) in rows.iter().zip(sums) {
            for (columns, sums) in columns.iter().zip(sums) {
                *sums = Sums::ZERO;
                rows.iter().zip(*columns).for_each(|(row, column)| add_products(row, column, sums));
            }
        }
    }
}

impl Drop for TileProducts {
    fn drop(&mut self) {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        if self.level.has_tiles() && HOLDERS.replace(HOLDERS.get() - 1) == 1 {
            // SAFETY: the processor has tiles, see the level, and nobody else here needs them.
            unsafe { super::amx::release() };
        }
    }
}

/// The definition: products of values with even numbers are added up, and those with odd numbers, by
/// multiply-adds that round once; then both, and that is added to the sum. Subnormal numbers are zeros
/// on the way.
fn add_products(rows: &RowTile, columns: &ColumnTile, sums: &mut Sums) {
    for (row, sums) in rows.0.iter().zip(&mut sums.0) {
        for (column, sum) in sums.iter_mut().enumerate() {
            let mut parts = [0.0; 2];
            for (pair, line) in row.as_chunks::<2>().0.iter().zip(columns) {
                parts =
                    from_fn(|i| flushed(wide(pair[i]).mul_add(wide(line[column][i]), parts[i])));
            }
            *sum = flushed(flushed(*sum) + flushed(parts[0] + parts[1]));
        }
    }
}

/// The value of bf16.
fn wide(bits: i16) -> f32 {
    flushed(f32::from_bits(u32::from(bits.cast_unsigned()) << 16))
}

/// Zero for what is subnormal.
fn flushed(x: f32) -> f32 {
    if x.is_subnormal() { 0f32.copysign(x) } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random bf16 with exponents around that of one, now and then something odd.
    fn random(state: &mut u64, odd: &[u16]) -> i16 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let random = (*state >> 40) as u32;
        let bits = match odd.get((random >> 16) as usize) {
            Some(odd) => *odd,
            None => (random & 0x807F | (112 + (random >> 8 & 31)) << 7) as u16,
        };
        bits.cast_signed()
    }

    fn products<const R: usize, const C: usize>(
        level: Level,
        rows: &[RowTile],
        columns: &[ColumnTile],
    ) -> Vec<u32> {
        let count = rows.len() / 2;
        let mut sums = [[Sums([[7.0; SIDE]; SIDE]); C]; R];
        let sides =
            (from_fn(|i| &rows[i * count..][..count]), from_fn(|i| &columns[i * count..][..count]));
        TileProducts::new(level).multiply::<R, C>(sides.0, sides.1, columns, &mut sums);
        let sums = sums.as_flattened().iter().flat_map(|sums| sums.0.as_flattened());
        sums.map(|sum| if sum.is_nan() { u32::MAX } else { sum.to_bits() }).collect()
    }

    /// To the bit, also with infinities, NaN, zeros and subnormal numbers.
    #[test]
    fn products_have_the_bits_of_their_definition() {
        let odd = [0x7F80, 0xFF80, 0x7FC0, 0, 0x8000, 1, 0x8001, 0x7F, 0x0080, 0x7F7F, 0xFF7F];
        let mut state = 1;
        for level in Level::available() {
            for count in [0, 1, 2, 3, 12] {
                for odd in [&[], &odd[3..9], &odd[..]] {
                    let mut next = || random(&mut state, odd);
                    let rows: Vec<RowTile> =
                        (0..2 * count).map(|_| RowTile(from_fn(|_| from_fn(|_| next())))).collect();
                    let columns: Vec<ColumnTile> = (0..2 * count)
                        .map(|_| from_fn(|_| from_fn(|_| [next(), next()])))
                        .collect();
                    macro_rules! compare {
                        ($($rows:literal $columns:literal)*) => {$({
                            let of = |level| products::<$rows, $columns>(level, &rows, &columns);
                            assert_eq!(of(level), of(Level::PLAIN), "{level} {count} {odd:?}");
                        })*};
                    }
                    compare!(1 1  1 2  2 1  2 2);
                }
            }
        }
    }

    /// The right of one does not end with that of another.
    #[test]
    fn rights_on_a_thread_overlap() {
        let (rows, columns) = ([RowTile([[0x3F80; DEPTH]; SIDE])], [[[[0x4000; 2]; SIDE]; 16]]);
        for level in Level::available() {
            let mut first = TileProducts::new(level);
            let second = TileProducts::new(level);
            let mut sums = [[Sums::ZERO]];
            drop(second);
            first.multiply([&rows], [&columns], &[], &mut sums);
            assert_eq!(sums[0][0].0, [[64.0; SIDE]; SIDE], "{level}");
            drop(first);
            let mut sums = [[Sums::ZERO]];
            TileProducts::new(level).multiply([&rows], [&columns], &[], &mut sums);
            assert_eq!(sums[0][0].0, [[64.0; SIDE]; SIDE], "{level}");
        }
    }

    #[test]
    fn the_definition_is_a_product() {
        let bits = |value: i16| half::bf16::from_f32(value.into()).to_bits().cast_signed();
        let row = RowTile(from_fn(|r| from_fn(|k| bits((r + 2 * k) as i16))));
        let column: ColumnTile =
            from_fn(|line| from_fn(|c| from_fn(|i| bits(c as i16 - (2 * line + i) as i16))));
        let mut sums = Sums([[0.5; SIDE]; SIDE]);
        add_products(&row, &column, &mut sums);
        for r in 0..SIDE {
            for c in 0..SIDE {
                let products = (0..DEPTH).map(|k| (r + 2 * k) as f32 * (c as f32 - k as f32));
                assert_eq!(sums.0[r][c], 0.5 + products.sum::<f32>());
            }
        }
    }

    #[test]
    fn sides_that_are_too_short_panic() {
        let (row, column) = ([RowTile::ZERO; 2], [[[[0; 2]; SIDE]; DEPTH / 2]; 2]);
        let fails = |level, rows: usize, columns: usize| {
            let multiply = || {
                let mut sums = [[Sums::ZERO; 2]; 2];
                let (rows, columns) = ([&row[..], &row[..rows]], [&column[..], &column[..columns]]);
                TileProducts::new(level).multiply(rows, columns, &[], &mut sums);
            };
            std::panic::catch_unwind(multiply).is_err()
        };
        for level in Level::available() {
            assert!(fails(level, 1, 2) && fails(level, 2, 1) && !fails(level, 2, 2), "{level}");
        }
    }
}
