//! Rows of values that lie apart from each other, for loops that take some of each at a time.
//!
//! Whether the values are there is checked once for all, and how many are left once for every step:
//! a check for each row and value would take as long as the arithmetic.

use std::marker::PhantomData;

/// The start of a row, and how far it is to the next.
#[derive(Clone, Copy, Debug)]
struct Place<'a, T> {
    first: *const T,
    stride: usize,
    values: PhantomData<&'a [T]>,
}

impl<'a, T> Place<'a, T> {
    /// That of the first of `rows` rows.
    ///
    /// # Panics
    ///
    /// When one of them has no `width` values.
    #[inline(always)]
    fn new(values: &'a [T], stride: usize, rows: usize, width: usize) -> Self {
        let end = match rows.checked_sub(1) {
            Some(last) => last.checked_mul(stride).and_then(|start| start.checked_add(width)),
            None => Some(0),
        };
        assert!(end.is_some_and(|end| end <= values.len()), "rows within the values");
        Place { first: values.as_ptr(), stride, values: PhantomData }
    }

    /// `N` values of a row.
    ///
    /// # Safety
    ///
    /// The row has so many values.
    #[inline(always)]
    unsafe fn row<const N: usize>(&self, row: usize) -> &'a [T; N] {
        // SAFETY: the caller knows that they are there; the slice that they are of lives long enough.
        unsafe { &*self.first.wrapping_add(row * self.stride).cast() }
    }
}

/// `N` rows, which are walked through side by side.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a, T, const N: usize> {
    place: Place<'a, T>,
    left: usize,
}

impl<'a, T, const N: usize> Rows<'a, T, N> {
    /// Rows of `width` values, the starts of which are `stride` apart.
    ///
    /// # Panics
    ///
    /// When one of them goes beyond the end.
    #[inline(always)]
    pub fn new(values: &'a [T], stride: usize, width: usize) -> Self {
        Rows { place: Place::new(values, stride, N, width), left: width }
    }

    /// The next `M` values of each row; `None` when not so many are left.
    #[inline(always)]
    pub fn take<const M: usize>(&mut self) -> Option<[&'a [T; M]; N]> {
        self.left = self.left.checked_sub(M)?;
        // SAFETY: so many were left in every row.
        let values = std::array::from_fn(|row| unsafe { self.place.row(row) });
        // Behind the last value it may be outside, but then nothing is read.
        self.place.first = self.place.first.wrapping_add(M);
        Some(values)
    }
}

/// Rows of `N` values, which are walked through one behind the other.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a, T, const N: usize> {
    place: Place<'a, T>,
    left: usize,
}

impl<'a, T, const N: usize> Lines<'a, T, N> {
    /// So many lines, the starts of which are `stride` apart.
    ///
    /// # Panics
    ///
    /// When one of them goes beyond the end.
    #[inline(always)]
    pub fn new(values: &'a [T], stride: usize, count: usize) -> Self {
        Lines { place: Place::new(values, stride, count, N), left: count }
    }

    /// The next `M` lines; `None` when not so many are left.
    #[inline(always)]
    pub fn take<const M: usize>(&mut self) -> Option<[&'a [T; N]; M]> {
        self.left = self.left.checked_sub(M)?;
        // SAFETY: so many lines were left.
        let lines = std::array::from_fn(|line| unsafe { self.place.row(line) });
        // Behind the last line it may be outside, but then nothing is read.
        self.place.first = self.place.first.wrapping_add(M * self.place.stride);
        Some(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn rows_and_lines_are_those_of_the_slice() {
        let values: Vec<u16> = (0..40).collect();
        for stride in 0..15 {
            for width in 0..15usize {
                let fits = 2 * stride + width <= values.len();
                let rows = || Rows::<u16, 3>::new(&values, stride, width);
                assert_eq!(catch_unwind(rows).is_ok(), fits, "{stride} {width}");
                if fits {
                    let mut rows = rows();
                    for at in (0..width - width % 2).step_by(2) {
                        let expected = [0, 1, 2].map(|r| &values[r * stride + at..][..2]);
                        assert_eq!(rows.take::<2>().unwrap().map(|two| &two[..]), expected);
                    }
                    assert_eq!((rows.take::<2>(), rows.take::<2>()), (None, None));
                }
                let count = width;
                let fits = count == 0 || (count - 1) * stride + 3 <= values.len();
                let lines = || Lines::<u16, 3>::new(&values, stride, count);
                assert_eq!(catch_unwind(lines).is_ok(), fits, "{stride} {count}");
                if fits {
                    let mut lines = lines();
                    for at in (0..count - count % 2).step_by(2) {
                        let expected = [at, at + 1].map(|i| &values[i * stride..][..3]);
                        assert_eq!(lines.take::<2>().unwrap().map(|line| &line[..]), expected);
                    }
                    assert_eq!(lines.take::<2>(), None);
                }
            }
        }
        assert!(catch_unwind(|| Lines::<u16, 3>::new(&[], usize::MAX, 3)).is_err());
        assert!(catch_unwind(|| Rows::<u16, 2>::new(&[], usize::MAX, 3)).is_err());
    }
}
