//! Which of some names was probably meant.

use crate::Advice;
use crate::wire::to_len;

/// So many names are suggested at most.
const SUGGESTED: usize = 3;
/// Letters that may be wrong in a long name.
const WRONG: usize = 3;
/// Names that are looked at: more would take longer than anybody waits for a hint.
const LOOKED_AT: usize = 1 << 20;
/// Longer names are not mistyped but made up.
const LONGEST: usize = 256;

impl Advice {
    /// Suggests the names that are nearest to one that is not among them; nothing where none is
    /// near. Capitals do not count, and a name that ends with `.name` or `/name` is near.
    pub fn meant<T: AsRef<str>>(name: &str, there: impl IntoIterator<Item = T>) -> Advice {
        let names = nearest(name, there);
        if names.is_empty() { Advice::None } else { Advice::Meant { names } }
    }
}

/// The names that are nearest to one, the nearest first. Time and memory are bounded.
pub fn nearest<T: AsRef<str>>(name: &str, there: impl IntoIterator<Item = T>) -> Vec<String> {
    let wanted: Vec<char> = name.chars().flat_map(char::to_lowercase).take(LONGEST + 1).collect();
    if wanted.is_empty() || wanted.len() > LONGEST {
        return Vec::new();
    }
    // Of short names nothing would be left with several letters wrong.
    let allowed = (wanted.len() / 3).min(WRONG);
    let ends = [format!(".{name}"), format!("/{name}")];
    let asked = latin(name);
    let mut best: Vec<(usize, String)> = Vec::new();
    let mut letters = Vec::new();
    let mut rows = Rows::default();
    for other in there.into_iter().take(LOOKED_AT) {
        let other = other.as_ref();
        // With as many as there is room for, only nearer ones count.
        let allowed = match best.get(SUGGESTED - 1) {
            Some((0, _)) => break,
            Some((worst, _)) => worst - 1,
            None => allowed,
        };
        let distance = if ends.iter().any(|end| other.ends_with(end)) {
            Some(0)
        } else {
            // UTF-8 has at most four bytes a letter. Each letter that is missing is a slip of its own,
            // which leaves few names to be compared.
            let fits = other.len() + allowed >= wanted.len()
                && other.len() <= 4 * (wanted.len() + allowed)
                && to_len((asked & !latin(other)).count_ones().into()) <= allowed;
            letters.clear();
            fits.then(|| letters.extend(other.chars().flat_map(char::to_lowercase)));
            fits.then(|| rows.distance(&wanted, &letters, allowed)).flatten()
        };
        if let Some(distance) = distance
            && !best.iter().any(|(_, there)| there == other)
        {
            let at = best.partition_point(|(d, _)| *d <= distance);
            best.insert(at, (distance, other.to_owned()));
            best.truncate(SUGGESTED);
        }
    }
    best.into_iter().map(|(_, name)| name).collect()
}

/// Which Latin letters a name has, a bit for each.
fn latin(name: &str) -> u32 {
    let letters = name.bytes().filter(u8::is_ascii_alphabetic);
    letters.fold(0, |set, letter| set | 1 << (letter.to_ascii_lowercase() - b'a'))
}

/// The last three rows of the table of distances.
#[derive(Default)]
struct Rows([Vec<usize>; 3]);

impl Rows {
    /// Letters to insert, remove, replace or swap with the next one; `None` if more than allowed.
    fn distance(&mut self, a: &[char], b: &[char], allowed: usize) -> Option<usize> {
        if a.len().abs_diff(b.len()) > allowed {
            return None;
        }
        let [before, last, row] = &mut self.0;
        last.clear();
        last.extend(0..=b.len());
        for (i, x) in a.iter().enumerate() {
            row.clear();
            row.push(i + 1);
            for (j, y) in b.iter().enumerate() {
                let mut least =
                    (last[j] + usize::from(x != y)).min(row[j] + 1).min(last[j + 1] + 1);
                if i > 0 && j > 0 && *x == b[j - 1] && *y == a[i - 1] {
                    least = least.min(before[j - 1] + 1);
                }
                row.push(least);
            }
            // Two rows, because a swap reaches over one.
            if row.iter().chain(last.iter()).min().is_none_or(|least| *least > allowed) {
                return None;
            }
            std::mem::swap(before, last);
            std::mem::swap(last, row);
        }
        last.last().copied().filter(|distance| *distance <= allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(a: &str, b: &str) -> Option<usize> {
        let letters = |text: &str| text.chars().collect::<Vec<_>>();
        Rows::default().distance(&letters(a), &letters(b), 3)
    }

    #[test]
    fn distances_count_slips_of_the_finger() {
        for (a, b, expected) in [
            ("glove", "glove", Some(0)),
            ("glove", "gloves", Some(1)),
            ("glove", "golve", Some(1)),
            ("mcf", "fcm", Some(2)),
            ("saftensors", "safetensors", Some(1)),
            ("", "abc", Some(3)),
            ("", "abcd", None),
            ("abcdef", "uvwxyz", None),
            ("straße", "strasse", Some(2)),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn the_nearest_come_first_and_few_of_them() {
        let there = ["lorry", "truck", "trunk", "track", "struck", "TRUCK", "Truck"];
        assert_eq!(nearest("trcuk", there), ["truck", "TRUCK", "Truck"]);
        assert_eq!(nearest("truk", there)[0], "truck");
        assert_eq!(nearest("lory", there), ["lorry"]);
        assert_eq!(nearest("wheat", there), [""; 0]);
        assert_eq!(nearest("x", ["y", "xy"]), [""; 0]);
        assert_eq!(nearest("", there), [""; 0]);
        assert_eq!(nearest("weight", ["encoder.weight", "bias"]), ["encoder.weight"]);
        assert_eq!(Advice::meant("lory", there).to_string(), "did you mean lorry?");
        assert!(Advice::meant("wheat", there).is_none());
    }

    #[test]
    fn large_vocabularies_and_long_names_are_no_burden() {
        let words: Vec<_> = (0..400_000).map(|i| format!("word{i}")).collect();
        assert_eq!(nearest("wrod77777", &words)[0], "word77777");
        let long = "a".repeat(1 << 20);
        assert_eq!(nearest(&long, [&long]), [""; 0]);
        assert_eq!(nearest("short", [&long]), [""; 0]);
        // An endless list ends.
        assert_eq!(nearest("short", std::iter::repeat("a")), [""; 0]);
    }
}
