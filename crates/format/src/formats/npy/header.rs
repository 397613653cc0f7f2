//! The header: type, order and shape, and the text that says them.

use super::literal::{Literals, quote};
use super::rules::{DTYPE, KEY};
use crate::wire::{Finding, Span};
use weighbridge_codec::DType;

pub(super) const MAGIC: [u8; 6] = *b"\x93NUMPY";
/// The data of a written file begins at a multiple of this.
const ALIGNMENT: usize = 64;
/// Digits that NumPy leaves room for, so that the first dimension can grow in place.
const GROWTH_DIGITS: usize = 21;

/// The types, with what NumPy calls them.
const CODES: &[(DType, &str)] = &[
    (DType::F64, "f8"),
    (DType::F32, "f4"),
    (DType::F16, "f2"),
    (DType::I64, "i8"),
    (DType::I32, "i4"),
    (DType::I16, "i2"),
    (DType::I8, "i1"),
    (DType::U64, "u8"),
    (DType::U32, "u4"),
    (DType::U16, "u2"),
    (DType::U8, "u1"),
    (DType::Bool, "b1"),
    (DType::C64, "c8"),
];

/// The same types alone.
pub(super) const HELD: &[DType] = &[
    DType::F64,
    DType::F32,
    DType::F16,
    DType::I64,
    DType::I32,
    DType::I16,
    DType::I8,
    DType::U64,
    DType::U32,
    DType::U16,
    DType::U8,
    DType::Bool,
    DType::C64,
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub dtype: DType,
    pub big_endian: bool,
    pub column_major: bool,
    pub shape: Vec<u64>,
}

impl Header {
    /// Reads the header's text, which begins at `base` in the file.
    pub(super) fn parse(text: &[u8], base: u64) -> Result<Header, Box<Finding>> {
        let mut p = Literals::new(text, base);
        let (mut descr, mut column_major, mut shape) = (None, None, None);
        p.expect(b'{', "a dict, such as {'descr': '<f4', ...}")?;
        while !p.eat(b'}') {
            let start = p.position();
            let key = p.string("a key in quotes, or '}'")?;
            let key_span = start..p.position();
            p.expect(b':', "':' after the key")?;
            match key {
                b"descr" => once(&mut descr, parse_type(&mut p)?, "descr", key_span)?,
                b"fortran_order" => {
                    once(&mut column_major, p.boolean()?, "fortran_order", key_span)?;
                }
                b"shape" => once(&mut shape, p.tuple()?, "shape", key_span)?,
                _ => {
                    let expected = "descr, fortran_order and shape";
                    let found = quote(key);
                    let finding = KEY.at(key_span).field("header").expected(expected);
                    return Err(Box::new(finding.found(format!("{found:?}"))));
                }
            }
            if !p.eat(b',') {
                p.expect(b'}', "',' or '}'")?;
                break;
            }
        }
        p.end()?;
        let all = base..p.position();
        let (dtype, big_endian) = descr.ok_or_else(|| missing("descr", all.clone()))?;
        let shape = shape.ok_or_else(|| missing("shape", all.clone()))?;
        let column_major = column_major.ok_or_else(|| missing("fortran_order", all))?;
        // With fewer than two dimensions both orders are the same.
        Ok(Header { dtype, big_endian, column_major: column_major && shape.len() > 1, shape })
    }
}

fn once<T>(slot: &mut Option<T>, value: T, key: &str, span: Span) -> Result<(), Box<Finding>> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => {
            let finding = KEY.at(span).field(format!("header {key:?}"));
            Err(Box::new(finding.expected("each key once").found("it a second time")))
        }
    }
}

fn missing(key: &str, span: Span) -> Box<Finding> {
    Box::new(KEY.at(span).field(format!("header {key:?}")).expected("the key").found("none"))
}

/// The value of `descr`: type, and whether its bytes are in big-endian order.
fn parse_type(p: &mut Literals) -> Result<(DType, bool), Box<Finding>> {
    p.peek();
    let start = p.position();
    let refuse = |span: Span, found: String, what: &str, hint: &'static str| {
        let finding = DTYPE.at(span).field("header \"descr\"").message(what);
        Box::new(finding.expected("one type of plain numbers").found(found).hint(hint))
    };
    match p.peek() {
        Some(b'[') => {
            let what = "the array is structured: its elements are records of several fields";
            let hint = "save each field as an array of its own: np.save(name, array[field])";
            return Err(refuse(start..start + 1, p.rest(), what, hint));
        }
        Some(b'(') => {
            let what = "the array's type is an array itself";
            let hint = "save it again with a newer NumPy, which makes it dimensions";
            return Err(refuse(start..start + 1, p.rest(), what, hint));
        }
        _ => {}
    }
    let text = p.string("a type in quotes, such as '<f4'")?;
    let span = start..p.position();
    let (big_endian, code) = match text {
        [b'>', code @ ..] => (true, code),
        // `|` is for types of one byte; `=` is the writer's order, which is little-endian nowadays.
        [b'<' | b'|' | b'=', code @ ..] => (false, code),
        code => (false, code),
    };
    let known = CODES.iter().find(|(_, c)| c.as_bytes() == code);
    if let Some(&(dtype, _)) = known {
        return Ok((dtype, big_endian && dtype.bits() > 8));
    }
    let (what, hint) = unreadable(code);
    Err(refuse(span, quote(text), what, hint))
}

/// What a type is that has no numbers for us, and what to do about it.
fn unreadable(code: &[u8]) -> (&'static str, &'static str) {
    match code {
        [b'O', ..] => (
            "the array holds Python objects, which are pickled and can run code when they are opened",
            "load it where you trust it and save the numbers: np.save(name, array.astype(np.float32))",
        ),
        [b'S' | b'a', ..] => ("the array holds byte strings", "only numbers can be read"),
        [b'U' | b'T', ..] => ("the array holds strings", "only numbers can be read"),
        [b'M', ..] => ("the array holds dates", "save them as numbers: array.astype(np.int64)"),
        [b'm', ..] => ("the array holds durations", "save them as numbers: array.astype(np.int64)"),
        b"V2" => (
            "the array holds raw elements of two bytes",
            "NumPy saves the bfloat16 of ml_dtypes so, without its name; save array.astype(np.float32)",
        ),
        b"V1" => (
            "the array holds raw elements of one byte",
            "NumPy saves the float8 types of ml_dtypes so, without their names; save array.astype(np.float32)",
        ),
        [b'V', ..] => ("the array holds raw bytes", "only numbers can be read"),
        [b'c', ..] | b"G" => (
            "the array's complex numbers are wider than two f32",
            "save array.astype(np.complex64)",
        ),
        b"f16" | b"f12" | b"f10" | b"g" => (
            "the array holds long doubles, which differ from machine to machine",
            "save array.astype(np.float64)",
        ),
        _ => ("unknown type", "the types are f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1 c8"),
    }
}

/// Everything in front of the data, as `numpy.save` writes it for a row-major array. A header that
/// version 1.0 has no room for would need thousands of dimensions.
pub(super) fn to_bytes(dtype: DType, shape: &[u64]) -> Option<Vec<u8>> {
    let (_, code) = CODES.iter().find(|(d, _)| *d == dtype)?;
    let order = if dtype.bits() > 8 { '<' } else { '|' };
    let dims = shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let comma = if shape.len() == 1 { "," } else { "" };
    let mut text =
        format!("{{'descr': '{order}{code}', 'fortran_order': False, 'shape': ({dims}{comma}), }}");
    if let Some(first) = shape.first() {
        let room = GROWTH_DIGITS.saturating_sub(first.to_string().len());
        text.extend(std::iter::repeat_n(' ', room));
    }
    // NumPy's way: at least one space, so that a text that fits exactly gets 64 of them.
    let before = MAGIC.len() + 4;
    let padding = ALIGNMENT - (before + text.len() + 1) % ALIGNMENT;
    text.extend(std::iter::repeat_n(' ', padding));
    text.push('\n');
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&[1, 0]);
    out.extend_from_slice(&u16::try_from(text.len()).ok()?.to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Header, Box<Finding>> {
        Header::parse(text.as_bytes(), 10)
    }

    #[test]
    fn keys_in_any_order_and_either_quotes() {
        let expected =
            Header { dtype: DType::F32, big_endian: false, column_major: true, shape: vec![3, 4] };
        for text in [
            "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4), }   \n",
            "{'shape': (3, 4), \"fortran_order\": True, 'descr': \"<f4\"}",
            " {'fortran_order':True,'shape':(3,4,),'descr':'=f4',}",
        ] {
            assert_eq!(parse(text).unwrap(), expected, "{text}");
        }
        let flat = parse("{'descr': '>i1', 'fortran_order': True, 'shape': (3,)}").unwrap();
        assert!(!flat.column_major && !flat.big_endian);
        assert!(parse("{'descr': '>i2', 'fortran_order': True, 'shape': ()}").unwrap().big_endian);
    }

    #[test]
    fn broken_headers_break_the_right_rule() {
        for (text, rule) in [
            ("", "NPY-03"),
            ("[]", "NPY-03"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)", "NPY-03"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} x", "NPY-03"),
            ("{'descr': '<f4' 'fortran_order': False, 'shape': (3,)}", "NPY-03"),
            ("{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}", "NPY-03"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': [3]}", "NPY-03"),
            ("{,}", "NPY-03"),
            ("{'descr' '<f4'}", "NPY-03"),
            ("{}", "NPY-04"),
            ("{'descr': '<f4', 'fortran_order': False}", "NPY-04"),
            ("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", "NPY-04"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'x': 1}", "NPY-04"),
            ("{'descr': '<f3', 'fortran_order': False, 'shape': (3,)}", "NPY-05"),
        ] {
            assert_eq!(parse(text).unwrap_err().rule, rule, "{text}");
        }
        // Cut anywhere, it is a finding and no panic.
        let whole = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
        for n in 0..whole.len() {
            assert!(parse(&whole[..n]).is_err(), "{n}");
        }
    }

    #[test]
    fn types_that_are_refused_by_name() {
        for (descr, word) in [
            ("'|O'", "objects"),
            ("'|S10'", "byte strings"),
            ("'<U5'", "strings"),
            ("'|V2'", "two bytes"),
            ("'<V2'", "two bytes"),
            ("'|V16'", "raw bytes"),
            ("'<M8[ns]'", "dates"),
            ("'<m8[s]'", "durations"),
            ("'<c16'", "complex"),
            ("'<f16'", "long doubles"),
            ("[('x', '<f4'), ('y', '<i4')]", "structured"),
            ("('<f4', (2,))", "array itself"),
        ] {
            let text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (3,)}}");
            let finding = parse(&text).unwrap_err();
            assert_eq!(finding.rule, "NPY-05", "{descr}");
            assert!(finding.message.contains(word) && !finding.hint.is_none(), "{finding:?}");
        }
        assert!(unreadable(b"V2").1.contains("bfloat16"));
    }

    #[test]
    fn written_headers_are_read_again() {
        for &dtype in HELD {
            for shape in [vec![], vec![3], vec![0], vec![3, 4], vec![u64::MAX; 32]] {
                let bytes = to_bytes(dtype, &shape).unwrap();
                assert!(bytes.len().is_multiple_of(64) && bytes.ends_with(b"\n"));
                let header = Header::parse(&bytes[10..], 10).unwrap();
                assert_eq!((header.dtype, header.shape), (dtype, shape));
            }
        }
        let bytes = to_bytes(DType::U8, &[3]).unwrap();
        assert!(
            bytes[10..].starts_with(b"{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }")
        );
    }
}
