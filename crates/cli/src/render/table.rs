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
        let length = |s: &str| s.chars().count();
        let width = |i: usize| {
            let cells = self.rows.iter().filter_map(|r| r.get(i)).map(|c| length(c));
            cells.chain([length(self.header[i])]).max().unwrap_or(0)
        };
        let widths: Vec<_> = (0..self.header.len()).map(width).collect();
        let line = |cells: &[String]| {
            let mut out = String::new();
            for (i, cell) in cells.iter().enumerate() {
                let gap = " ".repeat(widths[i].saturating_sub(length(cell)));
                out.push_str("  ");
                if self.right[i] {
                    out.push_str(&gap);
                    out.push_str(cell);
                } else {
                    out.push_str(cell);
                    out.push_str(&gap);
                }
            }
            out.trim_end().to_owned()
        };
        let titles: Vec<_> = self.header.iter().map(|t| (*t).to_owned()).collect();
        let mut out = styled(DIM, line(&titles)) + "\n";
        for row in &self.rows {
            out.push_str(&line(row));
            out.push('\n');
        }
        out
    }
}
