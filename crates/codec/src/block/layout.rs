//! Where everything of a quantized matrix lies.

use super::{BlockCodec, FRONT_REGIONS, Front, FrontMut, Region};
use std::ops::Range;

/// The regions of a quantized matrix: the front, then the codes; zeros between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// How the matrix is quantized.
    pub codec: &'static dyn BlockCodec,
    /// Rows of the matrix.
    pub rows: u64,
    /// Columns of the matrix: values of a row.
    pub cols: u64,
    /// The regions before the codes.
    pub front: [Place; FRONT_REGIONS],
    /// The codes.
    pub codes: Place,
    /// Bytes of all regions together.
    pub size: u64,
}

/// Where a region lies. The bytes of a row lie together, and rows lie one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Where it begins, in bytes.
    pub start: u64,
    /// Bytes of a row.
    pub row_bytes: u64,
    region: Region,
}

impl Layout {
    /// The layout of a matrix; `None` when its size is more than a `u64` can say.
    pub fn new(codec: &'static dyn BlockCodec, rows: u64, cols: u64) -> Option<Layout> {
        // Where the next region begins, before it is aligned.
        let mut end = 0u64;
        let mut place = |region: Region| {
            let start = end.checked_next_multiple_of(codec.alignment())?;
            let row_bytes = region.checked_size(cols)?;
            end = start.checked_add(rows.checked_mul(row_bytes)?)?;
            Some(Place { start, row_bytes, region })
        };
        let [first, second] = codec.front();
        let front = [place(first)?, place(second)?];
        let codes = place(codec.codes())?;
        Some(Layout { codec, rows, cols, front, codes, size: end })
    }

    /// Bytes of all codes.
    pub fn codes_size(&self) -> u64 {
        self.size - self.codes.start
    }

    /// The bytes between the regions.
    pub fn gaps(&self) -> [Range<u64>; FRONT_REGIONS] {
        let [first, second] = self.front;
        let end = |place: Place| place.start + self.rows * place.row_bytes;
        [end(first)..second.start, end(second)..self.codes.start]
    }

    /// Where some values of a row are among the codes, in bytes from the first code on.
    pub fn codes_of(&self, row: u64, cols: Range<u64>) -> Range<u64> {
        self.codes.of_row(row, cols)
    }

    /// What some values of a row have in the front, of which all bytes are given. They begin where a
    /// row can be cut.
    ///
    /// # Panics
    ///
    /// When there are no such values, or `front` ends before theirs does.
    pub fn front_of<'a>(&self, front: &'a [u8], row: u64, cols: Range<u64>) -> Front<'a> {
        assert!(row < self.rows && cols.end <= self.cols);
        self.front.map(|place| {
            let bytes = place.of_row(row, cols.clone());
            &front[len(place.start + bytes.start)..len(place.start + bytes.end)]
        })
    }

    /// What a row has in the front, to be written.
    ///
    /// # Panics
    ///
    /// When there is no such row, or `front` ends before its bytes do.
    pub fn front_of_mut<'a>(&self, front: &'a mut [u8], row: u64) -> FrontMut<'a> {
        assert!(row < self.rows);
        let [first, second] = self.front;
        let (before, behind) = front.split_at_mut(len(second.start));
        let part = |bytes: &'a mut [u8], place: Place| {
            &mut bytes[len(row * place.row_bytes)..][..len(place.row_bytes)]
        };
        [part(before, first), part(behind, second)]
    }

    /// All bytes before the codes, of the fronts of all parts in their order.
    pub fn join_fronts<'a>(&self, parts: impl Iterator<Item = Front<'a>> + Clone) -> Vec<u8> {
        let mut front = Vec::with_capacity(len(self.codes.start));
        for (region, place) in self.front.iter().enumerate() {
            front.resize(len(place.start), 0);
            parts.clone().for_each(|part| front.extend_from_slice(part[region]));
        }
        front.resize(len(self.codes.start), 0);
        front
    }
}

impl Place {
    /// Where some values of a row are, in bytes from the region's start on.
    fn of_row(&self, row: u64, cols: Range<u64>) -> Range<u64> {
        let (values, bytes) = (self.region.values as u64, self.region.bytes as u64);
        let row = row * self.row_bytes;
        row + cols.start / values * bytes..row + cols.end.div_ceil(values) * bytes
    }
}

/// A place inside a slice, whose length is a `usize`.
fn len(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::BlockType;
    use super::*;

    #[test]
    fn regions_begin_at_multiples_of_64() {
        // 33 x 300: ten blocks and two super blocks a row.
        let k4 = Layout::new(&BlockType::K4, 33, 300).unwrap();
        let starts = |l: &Layout| (l.front[1].start, l.codes.start, l.size);
        assert_eq!(starts(&k4), (192, 576, 576 + 33 * 10 * 16));
        assert_eq!(k4.gaps(), [33 * 4..192, 192 + 330..576]);
        let q8 = Layout::new(&BlockType::Q8, 33, 300).unwrap();
        assert_eq!(starts(&q8), (704, 704, 704 + 33 * 10 * 32));
        assert_eq!(Layout::new(&BlockType::K2, u64::MAX, 2), None);
        assert_eq!(Layout::new(&BlockType::Q4, 2, u64::MAX), None);
    }

    #[test]
    fn rows_are_where_the_layout_says() {
        let layout = Layout::new(&BlockType::K3, 3, 600).unwrap();
        let front: Vec<u8> = (0..layout.codes.start).map(|i| (i % 251) as u8).collect();
        assert_eq!(layout.front_of(&front, 2, 0..600), [&front[12..18], &front[64 + 38..64 + 57]]);
        assert_eq!(layout.front_of(&front, 2, 256..600)[0], &front[14..18]);
        assert_eq!(layout.front_of(&front, 2, 256..300)[1], &front[64 + 46..64 + 48]);
        assert_eq!(layout.codes_of(1, 0..600), 19 * 12..2 * 19 * 12);
        assert_eq!(layout.codes_of(0, 256..289), 8 * 12..10 * 12);
        let mut copy = front.clone();
        for row in 0..3 {
            let [scales, sub_scales] = layout.front_of_mut(&mut copy, row);
            let same = layout.front_of(&front, row, 0..600);
            assert_eq!([&*scales, &*sub_scales], same);
        }
        let parts = (0..3)
            .flat_map(|row| [0..256, 256..600].map(|cols| layout.front_of(&front, row, cols)));
        let joined = layout.join_fronts(parts);
        let [first, second] = layout.gaps().map(|gap| len(gap.start)..len(gap.end));
        assert!(joined[first.clone()].iter().chain(&joined[second.clone()]).all(|b| *b == 0));
        assert_eq!(joined.len(), front.len());
        assert_eq!(joined[..first.start], front[..first.start]);
        assert_eq!(joined[first.end..second.start], front[first.end..second.start]);
    }
}
