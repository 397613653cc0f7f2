//! Cleaning, lower case, accents and Chinese characters.

use super::unicode::{self, CONTROL, MARK, SPACE};

/// What happens to the characters of a text before it is taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Casing {
    /// Upper case becomes lower case.
    pub lower_case: bool,
    /// Accents and other nonspacing marks are taken off their letters.
    pub strip_accents: bool,
    /// Chinese characters are words of their own.
    pub split_chinese: bool,
    /// Control characters are taken out, all white space becomes spaces.
    pub clean: bool,
}

impl Casing {
    /// The settings of uncased models, which know lower case only.
    pub const UNCASED: Casing =
        Casing { lower_case: true, strip_accents: true, split_chinese: true, clean: true };
    /// The settings of cased models, which tell upper from lower case.
    pub const CASED: Casing = Casing { lower_case: false, strip_accents: false, ..Self::UNCASED };
    /// The settings of models without a normalizer.
    pub const UNCHANGED: Casing =
        Casing { lower_case: false, strip_accents: false, split_chinese: false, clean: false };
}

/// Takes characters and hands over the normalized ones.
#[derive(Debug)]
pub(super) struct Normalizer {
    casing: Casing,
    /// Characters that are ordered by their combining class before they are handed over. Marks that
    /// are stripped anyway are not put in: that does not change the order of the others.
    waiting: Vec<(u8, char)>,
}

impl Normalizer {
    pub(super) fn new(casing: Casing) -> Normalizer {
        Normalizer { casing, waiting: Vec::new() }
    }

    /// Normalizes a text.
    pub(super) fn normalize(&mut self, text: &str, out: &mut impl FnMut(char)) {
        text.chars().for_each(|c| self.push(c, out));
        self.finish(out);
    }

    pub(super) fn push(&mut self, mut c: char, out: &mut impl FnMut(char)) {
        if self.casing.clean {
            let kinds = unicode::kinds(c);
            if kinds & CONTROL != 0 {
                return;
            }
            if kinds & SPACE != 0 {
                c = ' ';
            }
        }
        if self.casing.split_chinese && unicode::is_chinese(c) {
            self.without_accents(' ', out);
            self.without_accents(c, out);
            self.without_accents(' ', out);
        } else {
            self.without_accents(c, out);
        }
    }

    /// At the end of a text, or before a character that nothing can be ordered behind.
    #[inline]
    pub(super) fn finish(&mut self, out: &mut impl FnMut(char)) {
        if !self.waiting.is_empty() {
            self.hand_over(out);
        }
    }

    fn hand_over(&mut self, out: &mut impl FnMut(char)) {
        self.waiting.sort_by_key(|(class, _)| *class);
        for (_, c) in std::mem::take(&mut self.waiting) {
            self.in_case(c, out);
        }
    }

    fn without_accents(&mut self, c: char, out: &mut impl FnMut(char)) {
        if !self.casing.strip_accents {
            return self.in_case(c, out);
        }
        unicode::decompose(c, |part| {
            if unicode::kinds(part) & MARK != 0 {
                if !self.waiting.is_empty() && unicode::mark_stays(part) {
                    self.hand_over(out);
                }
                return;
            }
            match unicode::combining_class_of_non_mark(part) {
                0 => {
                    self.finish(out);
                    self.in_case(part, out);
                }
                class => self.waiting.push((class, part)),
            }
        });
    }

    fn in_case(&self, c: char, out: &mut impl FnMut(char)) {
        match self.casing.lower_case {
            true if c.is_ascii() => out(c.to_ascii_lowercase()),
            true => c.to_lowercase().for_each(out),
            false => out(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(casing: Casing, text: &str) -> String {
        let mut out = String::new();
        Normalizer::new(casing).normalize(text, &mut |c| out.push(c));
        out
    }

    #[test]
    fn each_setting_does_its_part() {
        let text = "É\u{0}\t東İ";
        let none = Casing::UNCHANGED;
        assert_eq!(normal(none, text), text);
        assert_eq!(normal(Casing { clean: true, ..none }, text), "É 東İ");
        assert_eq!(normal(Casing { split_chinese: true, ..none }, text), "É\u{0}\t 東 İ");
        assert_eq!(normal(Casing { strip_accents: true, ..none }, text), "E\u{0}\t東I");
        assert_eq!(normal(Casing { lower_case: true, ..none }, text), "é\u{0}\t東i\u{307}");
        assert_eq!(normal(Casing::UNCASED, text), "e  東 i");
    }

    #[test]
    fn marks_that_stay_are_ordered() {
        // Classes 226 and 216; the second text has a mark of class zero between them.
        let order = |text| normal(Casing::UNCASED, text);
        assert_eq!(order("a\u{1d16d}\u{301}\u{1d165}b"), "a\u{1d165}\u{1d16d}b");
        assert_eq!(order("a\u{1d16d}\u{34f}\u{1d165}b"), "a\u{1d16d}\u{1d165}b");
    }
}
