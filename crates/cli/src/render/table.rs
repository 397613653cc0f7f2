//! Columns of text.

use super::{DIM, styled};

/// Rows of cells, aligned when printed. The last column is as long as it is.
pub(crate) struct Table {
    header: Vec<&'static str>,
    right: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Column titles; those that begin with `>` are aligned to the right.
    pub(crate) fn new(titles: &[&'static str]) -> Table {
        Table {
            header: titles.iter().map(|t| t.trim_start_matches('>')).collect(),
            right: titles.iter().map(|t| t.starts_with('>')).collect(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The lines, indented by two spaces.
    pub(crate) fn render(&self) -> String {
        let length = |s: &str| if s.is_ascii() { s.len() } else { s.chars().count() };
        let mut widths: Vec<_> = self.header.iter().map(|t| length(t)).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = length(cell).max(*width);
            }
        }
        let line = |out: &mut String, cells: &mut dyn Iterator<Item = &str>| {
            let spaces = |out: &mut String, n: usize| out.extend(std::iter::repeat_n(' ', n));
            for (i, cell) in cells.enumerate() {
                let gap = widths[i].saturating_sub(length(cell));
                spaces(out, if self.right[i] { 2 + gap } else { 2 });
                out.push_str(cell);
                if !self.right[i] {
                    spaces(out, gap);
                }
            }
            out.truncate(out.trim_end_matches(' ').len());
        };
        let mut out = String::new();
        line(&mut out, &mut self.header.iter().copied());
        out = styled(DIM, out);
        for row in &self.rows {
            out.push('\n');
            line(&mut out, &mut row.iter().map(String::as_str));
        }
        out.push('\n');
        out
    }
}
