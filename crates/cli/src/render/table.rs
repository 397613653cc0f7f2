//! Columns of text.

use super::fit::{columns_of, shortened, width};
use super::{DIM, grouped, styled};
use std::borrow::Cow;

/// Rows of cells, aligned when printed, and brought to the width of the terminal.
pub(crate) struct Table {
    header: Vec<&'static str>,
    kinds: Vec<Kind>,
    /// All cells, row by row, and where each ends: thousands of rows are two allocations.
    text: String,
    ends: Vec<usize>,
}

#[derive(Clone, Copy)]
struct Kind {
    right: bool,
    /// Left out where there is no room.
    optional: bool,
}

/// How wide each column is; none of those that are left out.
type Widths = Vec<Option<usize>>;

/// Text keeps so many columns before others are left out, and then so many.
const COMFORTABLE: usize = 26;
const TIGHT: usize = 9;

impl Table {
    /// Column titles. Those that begin with `>` are aligned to the right and never shortened; those
    /// that begin with `?` (or `?>`) are left out where there is no room. The last column, if it is
    /// neither, goes on below itself; other text loses its middle.
    pub(crate) fn new(titles: &[&'static str]) -> Table {
        let kind = |t: &&str| Kind {
            right: t.trim_start_matches('?').starts_with('>'),
            optional: t.starts_with('?'),
        };
        Table {
            header: titles.iter().map(|t| t.trim_start_matches(['?', '>'])).collect(),
            kinds: titles.iter().map(kind).collect(),
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
        self.render_to(width())
    }

    fn render_to(&self, width: Option<usize>) -> String {
        let titles = self.header.iter().map(|t| columns_of(t)).collect();
        let widths = self.fitted(self.natural(titles), width);
        let mut out = String::new();
        for (column, title) in self.header.iter().enumerate() {
            self.put(title, column, &widths, &mut out);
        }
        styled(DIM, out.trim_end()) + "\n" + &self.body(&widths)
    }

    /// The lines without the titles.
    pub(crate) fn rows(&self) -> String {
        self.body(&self.fitted(self.natural(vec![0; self.header.len()]), width()))
    }

    fn natural(&self, mut widths: Vec<usize>) -> Vec<usize> {
        for (i, cell) in self.cells().enumerate() {
            let column = i % self.header.len();
            widths[column] = widths[column].max(columns_of(cell));
        }
        widths
    }

    /// Widths that fit: columns with nothing in them go first, text is shortened a little, then columns
    /// are left out from the right, then text is shortened more.
    fn fitted(&self, natural: Vec<usize>, width: Option<usize>) -> Widths {
        let mut widths: Widths = natural.into_iter().map(Some).collect();
        let Some(width) = width else { return widths };
        let too_wide = |widths: &Widths| {
            let used: usize = widths.iter().flatten().map(|w| w + 2).sum();
            used.saturating_sub(width)
        };
        if too_wide(&widths) > 0 {
            let filled = self.natural(vec![0; widths.len()]);
            let empty = |(width, filled): (&mut Option<usize>, usize)| {
                *width = width.filter(|_| filled > 0);
            };
            widths.iter_mut().zip(filled).for_each(empty);
        }
        let is_text = |column: &usize| !self.kinds[*column].right && !self.kinds[*column].optional;
        let shrink = |widths: &mut Widths, least: usize| {
            for _ in 0..too_wide(widths) {
                let texts = (0..widths.len()).filter(is_text);
                let Some(widest) = texts.max_by_key(|c| widths[*c]) else { return };
                let Some(w) = widths[widest].as_mut().filter(|w| **w > least) else { return };
                *w -= 1;
            }
        };
        let mut shrunk = widths.clone();
        shrink(&mut shrunk, COMFORTABLE);
        for column in (0..widths.len()).rev().filter(|c| self.kinds[*c].optional) {
            if too_wide(&shrunk) == 0 {
                break;
            }
            widths[column] = None;
            shrunk = widths.clone();
            shrink(&mut shrunk, COMFORTABLE);
        }
        shrink(&mut shrunk, TIGHT);
        shrunk
    }

    fn body(&self, widths: &Widths) -> String {
        let columns = self.header.len();
        let mut out = String::new();
        let line = widths.iter().flatten().sum::<usize>() + 2 * columns + 1;
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

    fn put(&self, cell: &str, column: usize, widths: &Widths, out: &mut String) {
        let Some(width) = widths[column] else { return };
        out.push_str("  ");
        let is_last = column + 1 == widths.len();
        if is_last && !self.kinds[column].right && columns_of(cell) > width {
            let before: usize = widths[..column].iter().flatten().map(|w| w + 2).sum();
            return below_itself(cell, width, before + 2, out);
        }
        let cell = shortened(cell, width);
        let gap = std::iter::repeat_n(' ', width - columns_of(&cell));
        if self.kinds[column].right {
            out.extend(gap);
            out.push_str(&cell);
        } else {
            out.push_str(&cell);
            out.extend(gap);
        }
    }
}

/// Writes words on as many lines as they need, each after so many spaces.
fn below_itself(text: &str, width: usize, indent: usize, out: &mut String) {
    let mut at = 0;
    for word in text.split(' ') {
        let word = shortened(word, width);
        let columns = columns_of(&word);
        if at > 0 && at + 1 + columns > width {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            at = 0;
        } else if at > 0 {
            out.push(' ');
            at += 1;
        }
        out.push_str(&word);
        at += columns;
    }
}

/// What is said of rows that are not shown, and how to see them.
pub(crate) fn more(rows: usize, how: &str) -> String {
    match rows {
        0 => String::new(),
        n => format!("  {}\n", styled(DIM, format!("… and {} more; {how}", grouped(n as u64)))),
    }
}

/// A text with its middle cut out where it is long.
pub(crate) fn short(text: &str) -> Cow<'_, str> {
    const MOST: usize = 81;
    shortened(text, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["name", ">bytes", "?>more", "what"]);
        let name = "encoder.layer.0.attention.self.query.weight";
        table.row(vec![name.into(), "1,024".into(), "12345678".into(), "a few words of it".into()]);
        table.row(vec!["x".into(), "5".into(), "1".into(), "b".into()]);
        table
    }

    #[test]
    fn without_a_terminal_nothing_is_cut() {
        let text = table().render_to(None);
        assert!(
            text.contains("encoder.layer.0.attention.self.query.weight  1,024  12345678  a few")
        );
    }

    #[test]
    fn names_are_shortened_first_then_columns_left_out_then_words_wrapped() {
        let lines = |width| {
            let text = table().render_to(Some(width));
            assert!(text.lines().all(|l| columns_of(l) <= width), "{text}");
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(
            lines(70)[1],
            "  encoder.layer.0…elf.query.weight  1,024  12345678  a few words of it"
        );
        assert_eq!(lines(54)[1], "  encoder.laye….query.weight  1,024  a few words of it");
        let narrow = lines(40);
        assert_eq!(narrow[1], "  encoder….weight  1,024  a few words of");
        assert_eq!(narrow[2], "                          it");
        assert_eq!(narrow[3], "  x                    5  b");
    }
}
