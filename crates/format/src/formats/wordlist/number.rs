//! A number in decimal digits to f32, at the front of a text.

use super::lines::parse_number;
use weighbridge_codec::convert::Change;

/// A number that stands at the front of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Number {
    /// The nearest f32.
    pub value: f32,
    /// The nearest f64, of a number with more digits than any f32 needs, where that is another one.
    pub wide: Option<f64>,
    /// Bytes that it takes.
    pub length: usize,
}

/// Powers of ten that f64 holds exactly.
const TENS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Digits that are needed to tell any f32 from the others, and the first whole number with more.
const MOST_DIGITS: usize = 9;
const TOO_MANY: u64 = 1_000_000_000;

impl Number {
    /// Digits with a sign, a point and an exponent, which may all be missing; exactly rounded. None
    /// where that takes more than a few steps, whether it is a number or not.
    pub(crate) fn at_front(text: &[u8]) -> Option<Number> {
        let (negative, front) = sign(text);
        let (mut digits, whole) = Digits::default().and(text, front);
        let mut at = front + whole;
        let mut exponent = 0;
        let mut behind_point = 0;
        if text.get(at) == Some(&b'.') {
            (digits, behind_point) = digits.and(text, at + 1);
            at += 1 + behind_point;
            exponent = -i64::try_from(behind_point).ok()?;
        }
        if !(1..=Digits::MOST).contains(&(whole + behind_point)) {
            return None;
        }
        if matches!(text.get(at), Some(b'e' | b'E')) {
            let (down, length) = sign(&text[at + 1..]);
            let (power, count) = Digits::default().and(text, at + 1 + length);
            if !(1..=4).contains(&count) {
                return None;
            }
            at += 1 + length + count;
            let power = i64::try_from(power.0).ok()?;
            exponent += if down { -power } else { power };
        }
        // Two numbers that f64 holds exactly: what is made of them is rounded once.
        let (from, power) = (digits.exact()?, *TENS.get(usize::try_from(exponent.abs()).ok()?)?);
        let size = if exponent < 0 { from / power } else { from * power };
        let value = narrow(size)?;
        let wide = digits.need_more().then_some(size).filter(|wide| *wide != f64::from(value));
        let signed = |wide: f64| if negative { -wide } else { wide };
        let value = if negative { -value } else { value };
        Some(Number { value, wide: wide.map(signed), length: at })
    }

    /// The number that all of a text is, in whatever way it is written.
    pub(crate) fn of_field(field: &[u8]) -> Option<Number> {
        let value = parse_number(field)?;
        let wide = more_than_f32(field).filter(|wide| *wide != f64::from(value));
        Some(Number { value, wide, length: field.len() })
    }

    /// Stores it, and notes what that changes.
    pub(crate) fn put(&self, slot: &mut [u8], rounded: &mut Change) {
        slot.copy_from_slice(&self.value.to_le_bytes());
        if let Some(wide) = self.wide {
            rounded.note(wide, f64::from(self.value));
        }
    }
}

/// Whether there is a minus, and how many bytes the sign takes.
fn sign(text: &[u8]) -> (bool, usize) {
    match text.first() {
        Some(b'-') => (true, 1),
        Some(b'+') => (false, 1),
        _ => (false, 0),
    }
}

/// Digits as a whole number.
#[derive(Clone, Copy, Default)]
struct Digits(u64);

impl Digits {
    /// More of them could overflow.
    const MOST: usize = 19;

    /// With the digits that stand here, and how many these are.
    #[inline(always)]
    fn and(self, text: &[u8], start: usize) -> (Digits, usize) {
        let mut rest = text.get(start..).unwrap_or_default();
        let mut number = self.0;
        let all = rest.len();
        while let Some((eight, behind)) = rest.split_first_chunk()
            && let Some(value) = eight_digits(*eight)
        {
            number = number.wrapping_mul(100_000_000).wrapping_add(value);
            rest = behind;
        }
        while let Some((byte, behind)) = rest.split_first()
            && byte.is_ascii_digit()
        {
            number = number.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
            rest = behind;
        }
        (Digits(number), all - rest.len())
    }

    /// As f64, where that is the same number.
    fn exact(self) -> Option<f64> {
        #[allow(clippy::cast_precision_loss)]
        (self.0 < 1 << f64::MANTISSA_DIGITS).then_some(self.0 as f64)
    }

    /// There are more of them than an f32 needs; zeros behind them say nothing.
    fn need_more(self) -> bool {
        let mut number = self.0;
        while number >= TOO_MANY && number.is_multiple_of(10) {
            number /= 10;
        }
        number >= TOO_MANY
    }
}

/// The value of eight digits, computed for all at once: first pairs of them, then fours.
#[inline(always)]
fn eight_digits(bytes: [u8; 8]) -> Option<u64> {
    let word = u64::from_le_bytes(bytes);
    let digits = word.wrapping_sub(0x3030_3030_3030_3030);
    let above = word.wrapping_add(0x4646_4646_4646_4646);
    if (digits | above) & 0x8080_8080_8080_8080 != 0 {
        return None;
    }
    const PAIRS: u64 = 0x0000_00FF_0000_00FF;
    let pairs = digits * 10 + (digits >> 8);
    let outer = (pairs & PAIRS).wrapping_mul(100 + (1_000_000 << 32));
    let inner = (pairs >> 16 & PAIRS).wrapping_mul(1 + (10_000 << 32));
    Some(outer.wrapping_add(inner) >> 32)
}

/// The f32 that is nearest to what an f64 was rounded from, which is zero or neither too small nor too
/// large for an f32. Only where that f64 lies in the very middle of two f32 it no longer tells on
/// which side the number was.
fn narrow(size: f64) -> Option<f32> {
    const BELOW: u64 = (1 << 29) - 1;
    const MIDDLE: u64 = 1 << 28;
    #[allow(clippy::cast_possible_truncation)]
    (size.to_bits() & BELOW != MIDDLE).then_some(size as f32)
}

/// A number that was not written from an f32, because it has more digits than any of these needs.
fn more_than_f32(field: &[u8]) -> Option<f64> {
    if field.len() <= MOST_DIGITS {
        return None;
    }
    // Zeros in front and behind say nothing.
    let (mut digits, mut needed) = (0, 0);
    let mantissa = field.iter().take_while(|b| !matches!(b, b'e' | b'E'));
    for digit in mantissa.filter(|b| b.is_ascii_digit()) {
        digits += usize::from(digits > 0 || *digit != b'0');
        needed = if *digit == b'0' { needed } else { digits };
    }
    if needed <= MOST_DIGITS {
        return None;
    }
    let value: f64 = std::str::from_utf8(field).ok()?.parse().ok()?;
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read quickly is what the standard library reads, and all of it.
    fn agrees(text: &str) -> bool {
        let number = Number::at_front(text.as_bytes());
        if let Some(number) = number {
            assert_eq!(Some(number), Number::of_field(text.as_bytes()), "{text}");
            let value: f32 = text.parse().unwrap();
            assert_eq!(number.value.to_bits(), value.to_bits(), "{text}");
        }
        number.is_some()
    }

    #[test]
    fn numbers_are_those_of_the_standard_library() {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state ^ state >> 29).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        };
        let mut quick = 0;
        for _ in 0..100_000 {
            let (bits, many) = (next(), next());
            let value = f32::from_bits((bits >> 32) as u32);
            let near = (bits as i16 as f32 + value.abs() % 1.0) / 10f32.powi((many % 8) as i32);
            for text in [
                format!("{near}"),
                format!("{near:e}"),
                format!("{value:e}"),
                format!("{}", f64::from(near) * 1.000_000_01),
                format!("{near:.*}", (many % 20) as usize),
                format!("{}.{:0w$}e{}", bits % 100, many % 10_000, bits as i8, w = 4),
                format!("{}", bits >> (many % 64)),
            ] {
                quick += usize::from(agrees(&text));
            }
        }
        assert!(quick > 400_000, "{quick}");
    }

    /// 16777217 lies between two f32, and so do many with more digits.
    #[test]
    fn the_middle_of_two_numbers_is_left_to_others() {
        for text in ["16777217", "16777219", "33554434.0000001", "1.00000005960464477539", "0.5"] {
            let quick = agrees(text);
            assert_eq!(quick, text == "0.5" || text.starts_with('3'), "{text}");
        }
    }

    #[test]
    fn other_texts_are_left_to_others() {
        for text in [
            "",
            "-",
            ".",
            "-.",
            "e5",
            "1e",
            "1e+",
            "inf",
            "nan",
            "-inf",
            "x",
            "1e400",
            "1e-50",
            "1e99999",
            "123456789012345678901234567890",
            " 1",
        ] {
            assert_eq!(Number::at_front(text.as_bytes()), None, "{text}");
        }
        for (text, value, length) in [
            ("1", 1.0, 1),
            ("-.5 7", -0.5, 3),
            ("+5.\t", 5.0, 3),
            ("0,1", 0.0, 1),
            ("-0", -0.0, 2),
            ("12345678", 12_345_678.0, 8),
            ("1.5e-3]", 1.5e-3, 6),
            ("1.2.3", 1.2, 3),
            ("00000000000000012", 12.0, 17),
        ] {
            let number = Number::at_front(text.as_bytes()).unwrap();
            assert_eq!(number, Number { value, wide: None, length }, "{text}");
            assert_eq!(number.value.is_sign_negative(), value.is_sign_negative());
        }
    }
}
