//! Lines of a word and its numbers.

use super::decode::{Decode, put_word};
use super::number::Number;
use crate::wire::{to_len, without_mark};
use std::ops::Range;
use weighbridge_codec::convert::Change;
use weighbridge_codec::parallel::*;

/// Lines of a file, from some place on. The file may be mapped, and then be another one at every look:
/// a part is copied before it is parsed, and nothing is a place in it that an earlier look has found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lines<'a> {
    text: &'a [u8],
    /// Where they begin in the file, and the number of the first (from 1).
    start: u64,
    first: u64,
    /// The last line ends with a line break.
    pub finished: bool,
}

/// A line that is not what it should be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadLine {
    /// Its number, counted from 1.
    pub line: u64,
    /// Its bytes in the file.
    pub span: Range<u64>,
    pub why: Why,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// So many numbers stand at its end, and then something else.
    Numbers { found: usize, then: String },
    /// The word is not UTF-8; where in the file.
    NotUtf8 { at: u64 },
}

/// The numbers and words of lines.
#[derive(Debug)]
pub(crate) struct Parsed {
    /// f32, little-endian.
    pub matrix: Vec<u8>,
    /// Words behind their lengths of 32 bits.
    pub words: Vec<u8>,
    pub rows: u64,
    pub odd: Odd,
}

/// What reading changes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Odd {
    /// Words that are not UTF-8.
    pub replaced: u64,
    /// Numbers with more digits than f32 holds.
    pub rounded: Change,
}

/// The words of some lines, and what reading them changed.
type Part = Result<(Vec<u8>, Odd), Box<BadLine>>;

/// Bytes that one thread takes at a time.
const CHUNK: usize = 1 << 20;

impl<'a> Lines<'a> {
    /// The lines from byte `start` on; empty ones at the end do not count.
    pub(crate) fn new(file: &'a [u8], start: usize, first: u64) -> Lines<'a> {
        let text = file.get(start..).unwrap_or_default();
        let content = text.trim_ascii_end();
        let finished = text[content.len()..].contains(&b'\n') || content.is_empty();
        Lines { text: content, start: start as u64, first, finished }
    }

    /// All lines of a text that has this head; a byte order mark is no part of the first.
    pub(crate) fn of_text(file: &'a [u8], head: &[u8]) -> Lines<'a> {
        Lines::new(file, head.len() - without_mark(head).len(), 1)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Where the first line begins in the file.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Where the last line ends in the file.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.text.len() as u64
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &'a [u8]> {
        split_lines(self.text)
    }

    /// The line with this index, and where it stands in the file.
    pub(crate) fn span(&self, row: u64) -> Range<u64> {
        let mut at = self.start;
        for (i, line) in (0..).zip(self.iter()) {
            if i == row {
                return at..at + line.len() as u64;
            }
            at += line.len() as u64 + 1;
        }
        self.end()..self.end()
    }

    /// Reads lines of a word and `dim` numbers.
    pub(crate) fn parse(&self, dim: usize, decode: Decode) -> Result<Parsed, Box<BadLine>> {
        let chunks = self.chunks();
        // Where a line is too short for its numbers, no memory is asked for them.
        let shortest = dim.saturating_mul(2);
        let counted: Vec<(u64, Option<u64>)> = chunks
            .par_iter()
            .map(|chunk| {
                // At one look, so that there never are more lines than bytes for their numbers.
                let (mut all, mut short) = (0, None);
                for line in split_lines(chunk.text) {
                    short = short.or((line.len() < shortest).then_some(all));
                    all += 1;
                }
                (all, short)
            })
            .collect();
        let mut before = 0;
        let mut chunks = chunks;
        for (chunk, (lines, short)) in chunks.iter_mut().zip(&counted) {
            chunk.row = before;
            before += lines;
            if let Some(i) = short {
                let line = split_lines(chunk.text).nth(to_len(*i));
                let line = line.unwrap_or_default().to_vec();
                let mut rest = vec![0; 4 * line.len().min(dim)];
                // A short line can't be good; what is wrong with it is said as of any other.
                let why = match parse_line(&line, &mut rest, &mut Change::default()) {
                    Err(why) => why,
                    Ok(_) => numbers(line.len() / 2, b""),
                };
                // An earlier line may be wrong too, and is the one to name.
                let end = (chunk.at + offset(chunk.text, *i)).saturating_sub(1);
                let earlier = self.text.get(..end).filter(|_| (1..self.text.len()).contains(&end));
                if let Some(text) = earlier {
                    Lines { text, ..*self }.parse(dim, decode)?;
                }
                return Err(Box::new(self.bad(chunk, *i, why)));
            }
        }
        let rows = before;
        let mut matrix = vec![0; to_len(rows) * dim * 4];
        let mut work = Vec::with_capacity(chunks.len());
        let mut rest = matrix.as_mut_slice();
        for (chunk, (lines, _)) in chunks.iter().zip(&counted) {
            let (part, behind) = rest.split_at_mut(to_len(*lines) * dim * 4);
            work.push((chunk, part));
            rest = behind;
        }
        let parts: Vec<Part> = work
            .into_par_iter()
            .map(|(chunk, out)| self.parse_chunk(chunk, dim, decode, out))
            .collect();
        let (mut words, mut odd) = (Vec::new(), Odd::default());
        for part in parts {
            let (mut some, part) = part?;
            words.append(&mut some);
            odd.replaced += part.replaced;
            odd.rounded.add(part.rounded);
        }
        Ok(Parsed { matrix, words, rows, odd })
    }

    fn parse_chunk(&self, chunk: &Chunk, dim: usize, decode: Decode, out: &mut [u8]) -> Part {
        let (mut words, mut odd) = (Vec::new(), Odd::default());
        let rows = out.chunks_exact_mut(dim * 4);
        let mut at = chunk.at;
        let text = chunk.text.to_vec();
        for ((i, line), out) in (0..).zip(split_lines(&text)).zip(rows) {
            let word = parse_line(line, out, &mut odd.rounded)
                .map_err(|why| Box::new(self.bad(chunk, i, why)))?;
            match decode.word(word) {
                Ok(text) => {
                    put_word(&mut words, &text);
                    odd.replaced += u64::from(std::str::from_utf8(word).is_err());
                }
                Err(bad) => {
                    let why = Why::NotUtf8 { at: self.start + (at + bad.at) as u64 };
                    return Err(Box::new(self.bad(chunk, i, why)));
                }
            }
            at += line.len() + 1;
        }
        Ok((words, odd))
    }

    fn bad(&self, chunk: &Chunk, i: u64, why: Why) -> BadLine {
        let start = self.start + (chunk.at + offset(chunk.text, i)) as u64;
        let line = split_lines(chunk.text).nth(to_len(i)).unwrap_or_default();
        BadLine { line: self.first + chunk.row + i, span: start..start + line.len() as u64, why }
    }

    fn chunks(&self) -> Vec<Chunk<'a>> {
        let mut list = Vec::new();
        let mut at = 0;
        while at < self.text.len() {
            let rest = &self.text[at..];
            let end = rest.iter().skip(CHUNK).position(|b| *b == b'\n');
            let text = &rest[..end.map_or(rest.len(), |end| end + CHUNK)];
            list.push(Chunk { text, at, row: 0 });
            at += text.len() + 1;
        }
        list
    }
}

/// Whole lines, without the line break of the last.
struct Chunk<'a> {
    text: &'a [u8],
    /// Where it begins, counted from the first line.
    at: usize,
    /// Lines before it.
    row: u64,
}

/// Where line `i` begins.
fn offset(text: &[u8], i: u64) -> usize {
    split_lines(text).take(to_len(i)).map(|line| line.len() + 1).sum()
}

fn numbers(found: usize, then: &[u8]) -> Why {
    let then = String::from_utf8_lossy(&then[..then.len().min(64)]).into_owned();
    Why::Numbers { found, then }
}

/// Fills `out` with the numbers at the end of a line and gives the word before them, which may have
/// spaces itself.
fn parse_line<'a>(line: &'a [u8], out: &mut [u8], rounded: &mut Change) -> Result<&'a [u8], Why> {
    let line = trim_end(line);
    if let Some((word, change)) = parse_usual_line(line, out) {
        rounded.add(change);
        return Ok(word);
    }
    let mut rest = line;
    for (found, slot) in out.chunks_exact_mut(4).rev().enumerate() {
        let (front, field) = split_end(rest).ok_or_else(|| numbers(found, rest))?;
        let number = Number::of_field(field).ok_or_else(|| numbers(found, field))?;
        number.put(slot, rounded);
        rest = front;
    }
    Ok(rest)
}

/// The same for a line with one word and nothing but the numbers behind it, in one go from its front.
/// None for any other, whatever is the matter with it.
fn parse_usual_line<'a>(line: &'a [u8], out: &mut [u8]) -> Option<(&'a [u8], Change)> {
    let mut rounded = Change::default();
    let (word, mut rest) = split_field(line);
    // Separators in front of it would be a part of the word.
    if word.is_empty() {
        return None;
    }
    for slot in out.chunks_exact_mut(4) {
        let field = skip_separators(rest);
        let number = match Number::at_front(field) {
            Some(number) if field.get(number.length).is_none_or(is_separator) => number,
            _ => Number::of_field(split_field(field).0)?,
        };
        number.put(slot, &mut rounded);
        rest = &field[number.length..];
    }
    rest.is_empty().then_some((word, rounded))
}

fn is_separator(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn skip_separators(text: &[u8]) -> &[u8] {
    &text[text.iter().take_while(|b| is_separator(b)).count()..]
}

/// The field at the front, and what begins with the separators behind it.
fn split_field(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(text.iter().position(is_separator).unwrap_or(text.len()))
}

/// Lines without their breaks; of an empty text one that is empty.
fn split_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = memchr::memchr(b'\n', text);
        rest = end.map(|end| &text[end + 1..]);
        Some(&text[..end.unwrap_or(text.len())])
    })
}

/// Without the separators at its end, and the first half of a Windows line break.
fn trim_end(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|b| !matches!(b, b' ' | b'\t' | b'\r'));
    &line[..end.map_or(0, |i| i + 1)]
}

/// The last field, and what stands before its separators: there may be several in a row.
pub(crate) fn split_end(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = text.iter().rposition(is_separator)?;
    let end = text[..at].iter().rposition(|b| !is_separator(b)).map_or(0, |i| i + 1);
    Some((&text[..end], &text[at + 1..]))
}

/// A number in decimal digits, exactly rounded.
pub(crate) fn parse_number(field: &[u8]) -> Option<f32> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// How many fields at the end of a line are numbers. One field is always left for the word.
pub(crate) fn numbers_at_end(line: &[u8]) -> usize {
    let mut rest = trim_end(line);
    let mut count = 0;
    while let Some((front, field)) = split_end(rest) {
        if parse_number(field).is_none() {
            break;
        }
        count += 1;
        rest = front;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;

    fn parse(text: &[u8], dim: usize) -> Result<Parsed, Box<BadLine>> {
        Lines::new(text, 0, 1).parse(dim, Decode::new(&Options::default()))
    }

    fn values(parsed: &Parsed) -> Vec<f32> {
        parsed.matrix.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
    }

    #[test]
    fn words_may_have_spaces_and_lines_any_end() {
        let text =
            b". . .  1 2\r\nat name@domain.com -1e-3 +.5 \n\xC3\xA9\t 0.1\t\t-0\n1984 1 2\n\n";
        let parsed = parse(text, 2).unwrap();
        assert_eq!(parsed.rows, 4);
        assert_eq!(values(&parsed), [1.0, 2.0, -1e-3, 0.5, 0.1, -0.0, 1.0, 2.0]);
        let words = crate::formats::wordlist::without_repeats(parsed.words, 4).unwrap();
        let words: Vec<_> = words.vocabulary.tokens().map(|w| w.into_owned()).collect();
        assert_eq!(words, [". . .", "at name@domain.com", "é", "1984"]);
    }

    /// Digits that an f32 has when it is written are not lost; those of an f64 are.
    #[test]
    fn digits_that_are_lost_are_counted() {
        let rounded = |text: &[u8]| parse(text, 2).unwrap().odd.rounded;
        // What gensim writes of f32 and f64 values; 0.5 and a tenth with zeros behind them.
        assert_eq!(
            rounded(b"a -0.0007369244 8.26997e-05\nb 0.50000000000 0.10000000000\n").changed,
            0
        );
        assert_eq!(rounded(b"a 0.123456789 16777216.0\n").changed, 0);
        let change = rounded(b"a -0.0007369244245224787 1\nb -8.269973595356034e-05 2\n");
        assert_eq!(change.changed, 2);
        assert!((1e-12..1e-10).contains(&change.largest), "{change:?}");
    }

    #[test]
    fn the_first_bad_line_is_named() {
        for (text, line, why) in [
            (&b"a 1 2\nb 1\nc 1 2\n"[..], 2, numbers(1, b"b")),
            (b"a 1 2\nb 1 x2\nc 1 2", 2, numbers(0, b"x2")),
            (b"a 1 2\n\nb 1 2\n", 2, numbers(0, b"")),
            (b"a x 2\nb", 1, numbers(1, b"x")),
            (b"1 2\n", 1, numbers(1, b"1")),
            (b"a 1 2\nb\xFF 1 2\n", 2, Why::NotUtf8 { at: 7 }),
        ] {
            let bad = parse(text, 2).unwrap_err();
            assert_eq!((bad.line, &bad.why), (line, &why), "{}", text.escape_ascii());
            let lines = text.split(|b| *b == b'\n').take(to_len(line) - 1);
            let start: usize = lines.map(|l| l.len() + 1).sum();
            assert_eq!(bad.span.start, start as u64);
        }
    }

    #[test]
    fn many_chunks_are_one_matrix() {
        let mut text = String::new();
        let rows = 3 * CHUNK / 12;
        (0..rows).for_each(|i| text += &format!("w{i} {i} 0.5\n"));
        let parsed = parse(text.as_bytes(), 2).unwrap();
        assert_eq!(parsed.rows, rows as u64);
        assert!(values(&parsed).chunks(2).enumerate().all(|(i, v)| v == [i as f32, 0.5]));
        let broken = text.replacen(&format!("w{} ", rows - 1), "w x", 1);
        assert_eq!(parse(broken.as_bytes(), 2).unwrap_err().line, rows as u64);
    }

    #[test]
    fn huge_dimensions_take_no_memory() {
        assert!(parse(b"a 1 2\n", usize::MAX / 8).is_err());
        assert!(Lines::new(b"a 1", 0, 1).finished != Lines::new(b"a 1\n", 0, 1).finished);
    }
}
