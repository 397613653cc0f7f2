//! Parts of a source: views, which say where bytes are, and bytes that are there.

use super::Source;
use crate::Error;
use crate::wire::{Span, to_len};
use std::ops::Deref;
use std::sync::Arc;

/// Some bytes of a [`Source`], which it keeps alive. The range was checked when it was made; the
/// bytes may yet have to be read.
#[derive(Clone, Debug)]
pub struct View {
    source: Source,
    span: Span,
}

impl View {
    pub(super) fn new(source: Source, span: Span) -> View {
        View { source, span }
    }

    /// Bytes that belong to no file.
    pub fn owned(bytes: Vec<u8>) -> View {
        let span = 0..bytes.len() as u64;
        View { source: Source::from_vec(bytes), span }
    }

    /// How many bytes.
    pub fn len(&self) -> u64 {
        self.span.end - self.span.start
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.span.is_empty()
    }

    /// Where the bytes stand in their file.
    pub fn span(&self) -> Span {
        self.span.clone()
    }

    /// Whether the bytes are some of this source.
    pub fn is_in(&self, source: &Source) -> bool {
        self.source.is(source)
    }

    /// What the bytes are some of.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The very same bytes of the same file, not just equal ones.
    pub fn same_place(&self, other: &View) -> bool {
        Arc::ptr_eq(&self.source.0, &other.source.0) && self.span == other.span
    }

    /// What tells the view from those of other bytes: equal exactly where [`View::same_place`] holds,
    /// while the source lives.
    pub fn place(&self) -> (usize, Span) {
        (Arc::as_ptr(&self.source.0).addr(), self.span())
    }

    /// Part of this view, counted from its start.
    pub fn part(&self, range: Span) -> Option<View> {
        let span = self.within(range)?;
        Some(View { source: self.source.clone(), span })
    }

    /// A part as bytes of the file; `None` when it leaves the view.
    fn within(&self, range: Span) -> Option<Span> {
        let start = self.span.start.checked_add(range.start)?;
        let end = self.span.start.checked_add(range.end)?;
        (start <= end && end <= self.span.end).then_some(start..end)
    }

    /// Some of the bytes, counted from the view's start: borrowed where they are mapped or in memory,
    /// else read into `buffer`.
    ///
    /// # Errors
    /// If they can't be read, or the range leaves the view.
    #[inline]
    pub fn read<'a>(&'a self, range: Span, buffer: &'a mut Vec<u8>) -> Result<&'a [u8], Error> {
        if let Some(bytes) =
            self.resident().and_then(|all| all.get(to_len(range.start)..to_len(range.end)))
        {
            return Ok(bytes);
        }
        self.source.read(self.within(range).unwrap_or(u64::MAX..u64::MAX), buffer)
    }

    /// All bytes, where they are mapped or in memory, see [`Source::resident`].
    #[inline]
    pub fn resident(&self) -> Option<&[u8]> {
        self.source.resident()?.get(to_len(self.span.start)..to_len(self.span.end))
    }

    /// All bytes to keep, which nobody changes: a part of the memory, else a copy.
    ///
    /// # Errors
    /// If they can't be read.
    pub fn load(&self) -> Result<Bytes, Error> {
        Ok(self.in_place()?.settled())
    }

    /// All bytes as they lie in the mapping or in memory, else a copy. They are for values, which may
    /// be any bytes, and for what is copied when it is used: those of a mapped file may change between
    /// two looks.
    ///
    /// # Errors
    /// If they can't be read.
    pub fn in_place(&self) -> Result<Bytes, Error> {
        if self.resident().is_some() {
            return Ok(Bytes { view: self.clone(), at: self.span.start });
        }
        let view = View::owned(self.source.to_vec(self.span())?);
        Ok(Bytes { view, at: self.span.start })
    }

    /// Passes all bytes to `each`, in blocks of at most so many.
    ///
    /// # Errors
    /// If they can't be read, and those of `each`.
    pub fn for_each_block<E: From<Error>>(
        &self,
        most: u64,
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut buffer = Vec::new();
        let mut start = 0;
        while start < self.len() {
            let end = self.len().min(start + most);
            each(self.read(start..end, &mut buffer)?)?;
            start = end;
        }
        Ok(())
    }

    /// Where `look`, which is shown all bytes in blocks, first finds something, and that byte.
    ///
    /// # Errors
    /// If they can't be read.
    pub fn find(&self, look: impl Fn(&[u8]) -> Option<usize>) -> Result<Option<(u64, u8)>, Error> {
        const TOGETHER: u64 = 1 << 18;
        let mut buffer = Vec::new();
        let mut start = 0;
        while start < self.len() {
            let end = self.len().min(start + TOGETHER);
            let block = self.read(start..end, &mut buffer)?;
            if let Some((i, byte)) = look(block).and_then(|i| Some((i, *block.get(i)?))) {
                return Ok(Some((start + i as u64, byte)));
            }
            start = end;
        }
        Ok(None)
    }

    /// The last byte; none where there are no bytes.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn last(&self) -> Result<Option<u8>, Error> {
        let Some(at) = self.len().checked_sub(1) else { return Ok(None) };
        Ok(self.read(at..self.len(), &mut Vec::new())?.first().copied())
    }

    /// The same bytes here and there.
    ///
    /// # Errors
    /// If they can't be read.
    pub fn same_bytes(&self, other: &View) -> Result<bool, Error> {
        const TOGETHER: u64 = 1 << 18;
        if self.same_place(other) || self.len() != other.len() {
            return Ok(self.len() == other.len());
        }
        let (mut here, mut there) = (Vec::new(), Vec::new());
        let mut start = 0;
        while start < self.len() {
            let range = start..self.len().min(start + TOGETHER);
            start = range.end;
            if self.read(range.clone(), &mut here)? != other.read(range, &mut there)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Bytes that are there: in memory, or mapped where they were asked for in place. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Bytes {
    /// Of a resident source.
    view: View,
    /// Where they stood in the file that they were read from.
    at: u64,
}

impl Bytes {
    /// Bytes that belong to no file.
    pub fn owned(bytes: Vec<u8>) -> Bytes {
        Bytes { view: View::owned(bytes), at: 0 }
    }

    /// The same bytes in memory of our own. Those of a mapped file may change at any time, and text that
    /// was found to be UTF-8 must not: whoever keeps a `&str` keeps it of these.
    #[must_use]
    pub fn settled(&self) -> Bytes {
        match self.view.source.is_mapped() {
            true => Bytes { view: View::owned(self.to_vec()), at: self.at },
            false => self.clone(),
        }
    }

    /// Where the bytes stand, or stood, in their file.
    pub fn span(&self) -> Span {
        self.at..self.at + self.view.len()
    }

    /// Some of them; `None` when there are fewer.
    pub fn part(&self, range: std::ops::Range<usize>) -> Option<Bytes> {
        let at = self.at.checked_add(range.start as u64)?;
        Some(Bytes { view: self.view.part(range.start as u64..range.end as u64)?, at })
    }
}

/// By content, wherever they lie.
impl PartialEq for Bytes {
    fn eq(&self, other: &Bytes) -> bool {
        **self == **other
    }
}

impl Default for Bytes {
    fn default() -> Bytes {
        Bytes::owned(Vec::new())
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.view.resident().unwrap_or_default()
    }
}

/// The bytes as a view of where they are now.
impl From<Bytes> for View {
    fn from(bytes: Bytes) -> View {
        bytes.view
    }
}
