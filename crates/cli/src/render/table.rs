//! Columns of text.

use super::{DIM, styled};
use std::borrow::Cow;

/// Rows of cells, aligned when printed. The last column is as long as it is.
pub(crate) struct Table {
    header: Vec<&'static str>,
    right: Vec<bool>,
    /// All cells, row by row, and where each ends: thousands of rows are two allocations.
    text: String,
    ends: Vec<usize>,
}

impl Table {
    /// Column titles; those that begin with `>` are aligned to the right.
    pub(crate) fn new(titles: &[&'static str]) -> Table {
        Table {
            header: titles.iter().map(|t| t.trim_start_matches('>')).collect(),
            right: titles.iter().map(|t| t.starts_with('>')).collect(),
            text: String::new(),
            ends: Vec::new(),
        }
    }

    /// Adds a row, with a cell for every column. Only the last column has room for any length: a long
    /// cell in another would push all rows out of sight.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.header.len());
        for (column, cell) in cells.iter().enumerate() {
            let is_last = column + 1 == self.header.len();
            self.text.push_str(&if is_last { Cow::Borrowed(cell.as_str()) } else { short(cell) });
            self.ends.push(self.text.len());
        }
    }

    /// The lines, indented by two spaces.
    pub(crate) fn render(&self) -> String {
        let widths = self.widths(self.header.iter().map(|t| length(t)).collect());
        let mut out = String::new();
        for (i, title) in self.header.iter().enumerate() {
            self.put(title, i, &widths, &mut out);
        }
        styled(DIM, out.trim_end()) + "\n" + &self.body(&widths)
    }

    /// The lines without the titles.
    pub(crate) fn rows(&self) -> String {
        self.body(&self.widths(vec![0; self.header.len()]))
    }

    fn widths(&self, mut widths: Vec<usize>) -> Vec<usize> {
        for (i, cell) in self.cells().enumerate() {
            let column = i % self.header.len();
            widths[column] = widths[column].max(length(cell));
        }
        widths
    }

    fn body(&self, widths: &[usize]) -> String {
        let columns = self.header.len();
        let mut out = String::new();
        let line = widths.iter().sum::<usize>() + 2 * columns + 1;
        out.reserve(self.ends.len() / columns * line);
        for (i, cell) in self.cells().enumerate() {
            self.put(cell, i % columns, widths, &mut out);
            if i % columns == columns - 1 {
                out.truncate(out.trim_end_matches(' ').len());
                out.push('\n');
            }
        }
        out
    }

    fn cells(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(&start, &end)| &self.text[start..end])
    }

    fn put(&self, cell: &str, column: usize, widths: &[usize], out: &mut String) {
        let gap = std::iter::repeat_n(' ', widths[column] - length(cell));
        out.push_str("  ");
        if self.right[column] {
            out.extend(gap);
            out.push_str(cell);
        } else {
            out.push_str(cell);
            out.extend(gap);
        }
    }
}

/// A text with its end cut off where it is long.
pub(crate) fn short(text: &str) -> Cow<'_, str> {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]).into(),
        None => text.into(),
    }
}

/// Characters; most cells are ASCII, where bytes are characters.
fn length(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}
