//! Bytes to container.

use super::super::Stop;
use super::header::{Header, MAGIC};
use super::rules::*;
use crate::Input;
use crate::model::{Arrangement, Container, Data, Encoding, Tensor};
use crate::wire::{Cursor, Regions, What, numel};

pub(super) fn read(input: &Input) -> Result<Container, Stop> {
    let source = &input.source;
    let size = source.len();
    let mut c = Cursor::new(source, 0..size, CUT_SHORT);
    let magic = c.take(MAGIC.len() as u64, "magic")?;
    if magic != MAGIC {
        return Err(HEADER
            .at(0..6)
            .field("magic")
            .message("the magic is missing")
            .expected("\\x93NUMPY")
            .found(magic.escape_ascii())
            .into());
    }
    let (major, minor) = (c.u8("version")?, c.u8("version")?);
    let length = match (major, minor) {
        (1, 0) => c.u16("header length")?.into(),
        (2 | 3, 0) => c.u32("header length")?,
        _ => {
            let finding = VERSION.at(6..8).field("version").expected("1.0, 2.0 or 3.0");
            return Err(finding.found(format!("{major}.{minor}")).into());
        }
    };
    let start = c.position();
    let header = Header::parse(c.take(length.into(), "header")?, start)?;
    let data = c.position();
    let present = size - data;

    let bytes = numel(&header.shape).and_then(|n| header.dtype.byte_len(n)).ok_or_else(|| {
        let finding = SHAPE.at(start..data).field("header \"shape\"");
        finding.expected("fewer than 2^64 bytes").found(format!("{:?}", header.shape))
    })?;
    let view = match source.view(data..size).filter(|_| bytes == present) {
        Some(view) => view,
        None => {
            if let Some(end) = data.checked_add(bytes).filter(|end| *end < size) {
                let hint =
                    "cut it off at the expected size, or save each array in a file of its own";
                return Err(SIZE.appended(end, size).hint(hint).into());
            }
            let hint =
                "the file may be cut short; compare its size with the source it was copied from";
            let of = format!("{} x {:?}", header.dtype, header.shape);
            let finding = SIZE.at(data..size).field(format!("data ({of})"));
            let (expected, found) = (format!("{bytes} bytes"), format!("{present} bytes"));
            return Err(finding.expected(expected).found(found).hint(hint).into());
        }
    };
    let mut regions = Regions::default();
    regions.add(0..data, What::Structure("header"));
    regions.add(data..size, What::Tensor(0));
    regions.finish(size, 1);
    // Elements that stand column by column are all over the array: they are read at once.
    let view = if header.column_major { view.in_place()?.into() } else { view };
    let arrangement =
        Arrangement { big_endian: header.big_endian, column_major: header.column_major };
    let data = Data::Stored(view, arrangement);
    let tensor = Tensor::with_data("array", Encoding::Plain(header.dtype), header.shape, data);
    Ok(Container {
        format: "npy",
        layout: format!("version {major}.{minor}"),
        size,
        tensors: vec![tensor],
        regions,
        ..Container::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::FORMAT;
    use crate::formats::testing::{check, open};
    use crate::sink::to_memory;
    use crate::{Container, Error, Input, Options};

    fn file(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
        let mut out = b"\x93NUMPY".to_vec();
        out.extend([version, 0]);
        match version {
            1 => out.extend((header.len() as u16).to_le_bytes()),
            _ => out.extend((header.len() as u32).to_le_bytes()),
        }
        out.extend(header.as_bytes());
        out.extend(data);
        out
    }

    fn read(bytes: &[u8]) -> Result<Container, String> {
        let input = Input::from_bytes("x.npy", bytes.to_vec());
        open(&input, &Options::default()).map_err(|e| match e {
            Error::Malformed { finding, .. } => finding.rule.to_owned(),
            other => other.to_string(),
        })
    }

    const HEADER: &str = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3)}";

    #[test]
    fn any_arrangement_is_written_as_numpy_does() {
        let data: Vec<u8> = [0i16, 3, 1, 4, 2, 5].iter().flat_map(|v| v.to_be_bytes()).collect();
        for version in 1..=3 {
            let container = read(&file(version, HEADER, &data)).unwrap();
            assert_eq!(container.layout, format!("version {version}.0"));
            assert_eq!(
                container.tensors[0].values_f32(0, 6).unwrap(),
                [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
            );
            let plan = FORMAT.plan(&container, &Options::default()).unwrap();
            assert!(plan.report.losses.is_empty());
            let written = to_memory(&plan).unwrap().remove(0).1;
            let start =
                "\u{93}NUMPY\u{1}\0v\0{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }";
            let text: String = written.iter().map(|&b| char::from(b)).collect();
            assert!(text.starts_with(start));
            assert_eq!(written[128..], [0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0]);
            let again = read(&written).unwrap();
            assert_eq!(again.tensors[0].values_f32(0, 6).unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        }
    }

    #[test]
    fn sizes_are_exact() {
        assert_eq!(read(&file(1, HEADER, &[0; 11])).unwrap_err(), "NPY-07");
        assert_eq!(read(&file(1, HEADER, &[0; 13])).unwrap_err(), "NPY-07");
        assert_eq!(read(&file(4, HEADER, &[0; 12])).unwrap_err(), "NPY-02");
        let whole = file(2, HEADER, &[0; 12]);
        for n in 0..whole.len() {
            assert!(read(&whole[..n]).is_err());
        }
        let huge = "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}";
        assert_eq!(read(&file(1, huge, &[])).unwrap_err(), "NPY-06");
        let wide = "{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693952,)}";
        assert_eq!(read(&file(1, wide, &[])).unwrap_err(), "NPY-06");
        let none = "{'descr': '<f8', 'fortran_order': True, 'shape': (0, 9999999999999999)}";
        assert_eq!(read(&file(1, none, &[])).unwrap().tensors[0].count(), 0);
        let mut long = whole;
        long[8..12].copy_from_slice(&[0xFF; 4]);
        assert_eq!(read(&long).unwrap_err(), "NPY-01");
    }

    #[test]
    fn values_that_are_no_numbers_are_found_in_any_arrangement() {
        for (descr, order) in [("<f4", "False"), (">f4", "False"), ("<f4", "True"), (">f4", "True")]
        {
            let header =
                format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': (2, 3)}}");
            let mut data = vec![0; 24];
            // The element in row 0, column 1.
            let at = if order == "True" { 2 } else { 1 } * 4;
            let nan = if descr == "<f4" { f32::NAN.to_le_bytes() } else { f32::NAN.to_be_bytes() };
            data[at..at + 4].copy_from_slice(&nan);
            let input = Input::from_bytes("x.npy", file(1, &header, &data));
            let (_, findings) = check(&input, &Options::default(), false).unwrap();
            let [finding] = findings.list() else { panic!("{findings:?}") };
            assert_eq!((finding.rule, finding.found.as_str()), ("NPY-08", "NaN at index 1"));
        }
    }
}
