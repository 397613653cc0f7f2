//! Every byte has a name: the map of a file.

use super::Span;

/// What some bytes are. Small and without text, so that mapping 10,000 tensors costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A header, footer, table or other structure.
    Structure(&'static str),
    /// The payload of the tensor with this index.
    Tensor(usize),
    /// The scales of the tensor with this index.
    Scales(usize),
    /// A blob that belongs to the metadata entry with this index.
    Metadata(usize),
    /// The tokens of the vocabulary.
    Vocabulary,
    /// Bytes between others that should be zero.
    Padding,
    /// Bytes that nothing refers to.
    Unknown,
}

/// Bytes behind the end of a file, which something added to it.
pub const APPENDED: What = What::Structure("appended bytes");

/// Some bytes of a file with what they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The bytes.
    pub span: Span,
    /// What they are.
    pub what: What,
}

/// The regions of a file, in any order until [`Regions::finish`].
#[derive(Clone, Debug, Default)]
pub struct Regions {
    list: Vec<Region>,
    entries: Vec<(String, Span)>,
}

impl Regions {
    /// Adds some bytes, unless there are none.
    pub fn add(&mut self, span: Span, what: What) {
        if span.start < span.end {
            self.list.push(Region { span, what });
        }
    }

    /// Says where the value of a metadata key stands.
    pub fn add_entry(&mut self, key: impl Into<String>, span: Span) {
        self.entries.push((key.into(), span));
    }

    /// Where the value of a metadata key stands, if the format has said it.
    pub fn entry(&self, key: &str) -> Option<Span> {
        self.entries.iter().find(|(k, _)| k == key).map(|(_, span)| span.clone())
    }

    /// All regions.
    pub fn list(&self) -> &[Region] {
        &self.list
    }

    /// Sorts the map, fills the gaps of a file of `size` bytes with `Unknown` (short runs in front
    /// of a region that `alignment` explains become `Padding`), and returns the first pair that
    /// overlaps without being the same range.
    pub fn finish(&mut self, size: u64, alignment: u64) -> Option<(Region, Region)> {
        self.list.sort_by_key(|r| (r.span.start, r.span.end));
        let mut gaps = Vec::new();
        let mut overlap = None;
        let mut widest: Option<&Region> = None;
        let mut end = 0;
        for region in &self.list {
            if region.span.start > end {
                gaps.push(gap(end..region.span.start, alignment));
            } else if let Some(last) = widest
                && region.span.start < end
                && last.span != region.span
                && overlap.is_none()
            {
                overlap = Some((last.clone(), region.clone()));
            }
            if region.span.end > end {
                end = region.span.end;
                widest = Some(region);
            }
        }
        if end < size {
            gaps.push(gap(end..size, alignment));
        }
        if !gaps.is_empty() {
            self.list.append(&mut gaps);
            self.list.sort_by_key(|r| (r.span.start, r.span.end));
        }
        overlap
    }

    /// Renumbers tensors after their list was put in another order.
    pub fn renumber(&mut self, new: impl Fn(usize) -> What) {
        for region in &mut self.list {
            if let What::Tensor(old) = region.what {
                region.what = new(old);
            }
        }
    }

    /// Where a file of so many bytes ends, without what was appended to it.
    pub fn end(&self, size: u64) -> u64 {
        self.of(APPENDED).next().map_or(size, |span| span.start)
    }

    /// Where something is.
    pub fn of(&self, what: What) -> impl Iterator<Item = Span> {
        self.list.iter().filter(move |r| r.what == what).map(|r| r.span.clone())
    }
}

fn gap(span: Span, alignment: u64) -> Region {
    let explains = |a: u64| span.end - span.start < a && span.end.is_multiple_of(a);
    let aligns = explains(alignment) || explains(alignment.min(8));
    Region { what: if aligns { What::Padding } else { What::Unknown }, span }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_and_overlaps_are_found() {
        let mut r = Regions::default();
        r.add(0..10, What::Structure("header"));
        r.add(16..24, What::Tensor(0));
        r.add(16..24, What::Tensor(1));
        r.add(40..48, What::Tensor(2));
        assert_eq!(r.finish(50, 8), None);
        assert_eq!(r.of(What::Padding).next(), Some(10..16));
        assert_eq!(r.of(What::Unknown).collect::<Vec<_>>(), [24..40, 48..50]);
        r.add(20..22, What::Tensor(3));
        let (a, b) = r.finish(50, 8).unwrap();
        assert_eq!((a.span, b.span), (16..24, 20..22));
    }
}
