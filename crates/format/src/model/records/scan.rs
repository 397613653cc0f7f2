//! Where the parts of a JSON text stand, without looking into them. Nothing is checked on the way:
//! places are right where the text is JSON, and whoever hands out a part checks that part.

use std::borrow::Cow;
use std::ops::Range;

/// Behind the spaces at a place.
pub(crate) fn skip_space(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|b| matches!(b, b' ' | b'\n' | b'\r' | b'\t')).count()
}

/// Behind the value that begins at a place; none where the text ends before the value does. It is
/// no recursion, so that a deep value costs no stack.
pub(crate) fn skip_value(text: &[u8], at: usize) -> Option<usize> {
    match text.get(at)? {
        b'"' => skip_string(text, at),
        b'{' | b'[' => skip_nested(text, at),
        // A number or a name. At the very end of what is there, it may go on behind it.
        _ => {
            let ends = |b: &u8| matches!(b, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t');
            let length = text.get(at..)?.iter().position(ends)?;
            (length > 0).then_some(at + length)
        }
    }
}

/// Behind the object or array that begins at a place.
fn skip_nested(text: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0u64;
    loop {
        match text.get(at)? {
            b'"' => {
                at = skip_string(text, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth <= 1 => return Some(at + 1),
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
}

/// Behind the text that begins with the quotation mark at a place.
fn skip_string(text: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        at = next_mark(text, at)?;
        match text.get(at)? {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

/// The next quotation mark or backslash, looked for in eight bytes at a time.
fn next_mark(text: &[u8], mut at: usize) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = u64::from_le_bytes([0x80; 8]);
    const QUOTES: u64 = u64::from_le_bytes([b'"'; 8]);
    const BACKSLASHES: u64 = u64::from_le_bytes([b'\\'; 8]);
    // The lowest byte that is marked is zero; those above it may be marked for nothing.
    let zeros = |bytes: u64| bytes.wrapping_sub(ONES) & !bytes & HIGH;
    let (eights, rest) = text.get(at..)?.as_chunks::<8>();
    for eight in eights {
        let bytes = u64::from_le_bytes(*eight);
        let found = zeros(bytes ^ QUOTES) | zeros(bytes ^ BACKSLASHES);
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    Some(at + rest.iter().position(|b| matches!(b, b'"' | b'\\'))?)
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// The key, with its quotation marks.
    pub key: Range<usize>,
    /// The value; where it is cut off it has no end, and the member is the last.
    pub value: Range<usize>,
    /// The value ends within the text.
    pub whole: bool,
}

impl Member {
    /// Whether the key says this name.
    pub(crate) fn is(&self, text: &[u8], name: &str) -> bool {
        text.get(self.key.clone()).is_some_and(|key| is_key(key, name))
    }
}

/// Whether a key says this name, in whatever way it is written.
pub(crate) fn is_key(key: &[u8], name: &str) -> bool {
    if !key.contains(&b'\\') {
        let plain = key.strip_prefix(b"\"").and_then(|key| key.strip_suffix(b"\""));
        return plain == Some(name.as_bytes());
    }
    serde_json::from_slice::<Cow<str>>(key).is_ok_and(|key| key == name)
}

/// The members of the object that begins at a place, one by one.
#[derive(Debug)]
pub(crate) struct Members<'a> {
    text: &'a [u8],
    at: usize,
    /// A comma stands in front of all but the first.
    first: bool,
    /// Behind the object, once its end was met.
    pub end: Option<usize>,
}

impl<'a> Members<'a> {
    /// Those of the object at a place; none if there is no object.
    pub(crate) fn of(text: &'a [u8], at: usize) -> Option<Members<'a>> {
        (text.get(at) == Some(&b'{')).then_some(Members {
            text,
            at: at + 1,
            first: true,
            end: None,
        })
    }

    /// The key of the next member, and where its value begins. Whoever takes it goes on with
    /// [`Members::behind`] its value.
    pub(crate) fn head(&mut self) -> Option<(Range<usize>, usize)> {
        let text = self.text;
        let mut at = skip_space(text, self.at);
        match text.get(at)? {
            _ if self.end.is_some() => return None,
            b'}' => {
                self.end = Some(at + 1);
                return None;
            }
            b',' if !self.first => at = skip_space(text, at + 1),
            _ if self.first => {}
            _ => return None,
        }
        if text.get(at) != Some(&b'"') {
            return None;
        }
        let key = at..skip_string(text, at)?;
        at = skip_space(text, key.end);
        (text.get(at) == Some(&b':')).then(|| (key, skip_space(text, at + 1)))
    }

    /// Goes on behind a value, which ends here.
    pub(crate) fn behind(&mut self, end: usize) {
        self.at = end;
        self.first = false;
    }
}

impl Iterator for Members<'_> {
    type Item = Member;

    fn next(&mut self) -> Option<Member> {
        let (key, start) = self.head()?;
        let end = skip_value(self.text, start);
        self.behind(end.unwrap_or(self.text.len()));
        Some(Member { key, value: start..self.at.max(start), whole: end.is_some() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_end_where_they_end() {
        for (text, end) in [
            (r#""a\"b\\" x"#, Some(8)),
            (r#""a\"b\\"#, None),
            (r#"{"a": [1, {"}": "]"}], "b": "{"}, 2"#, Some(32)),
            ("[[[]]] ", Some(6)),
            ("[[[]]", None),
            ("-1.5e3,", Some(6)),
            ("true", None),
            ("", None),
            (",", None),
        ] {
            assert_eq!(skip_value(text.as_bytes(), 0), end, "{text}");
        }
        let deep = "[".repeat(1 << 20) + &"]".repeat(1 << 20);
        assert_eq!(skip_value(deep.as_bytes(), 0), Some(2 << 20));
        // Wherever the mark stands in its eight bytes.
        for n in 0..40 {
            let text = format!("\"{}\" ", "é".repeat(n));
            assert_eq!(skip_value(text.as_bytes(), 0), Some(2 + 2 * n));
        }
    }

    #[test]
    fn members_are_found_by_any_spelling() {
        let text = br#" {"a" : 1, "\u0062": {"a": 2} ,"c":"x"} "#;
        let mut members = Members::of(text, 1).unwrap();
        let values: Vec<_> = members.by_ref().map(|m| &text[m.value]).collect();
        assert_eq!(values, [&b"1"[..], b"{\"a\": 2}", b"\"x\""]);
        assert_eq!(members.end, Some(text.len() - 1));
        let named = |name: &str| Members::of(text, 1).unwrap().find(|m| m.is(text, name)).is_some();
        assert!(named("a") && named("b") && named("c") && !named("\\u0062") && !named("d"));
        for broken in ["{", "{\"a\"", "{\"a\":", "{\"a\" 1}", "{\"a\": 1 \"b\": 2}", "{, }", "{1}"]
        {
            let mut members = Members::of(broken.as_bytes(), 0).unwrap();
            members.by_ref().for_each(drop);
            assert_eq!(members.end, None, "{broken}");
        }
        let cut = Members::of(b"{\"a\": [1, 2", 0).unwrap().next().unwrap();
        assert_eq!((cut.whole, cut.value), (false, 6..11));
    }
}
