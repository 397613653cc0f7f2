//! MCF files that are edited and quantized.

mod common;

use common::{convert, format_of, quantize_file, verdict};
use std::sync::Arc;
use weighbridge::codec::DType;
use weighbridge::model::{Scaled, Scaling};
use weighbridge::quantize::{Method, QuantizeSettings};
use weighbridge::{Container, Edit, Encoding, Options, View, open};
use weighbridge_testkit::stored;

fn bytes(container: &Container) -> Vec<u8> {
    format_of("mcf").plan(container, &Options::default()).unwrap().to_bytes().unwrap()
}

/// The same bytes as matrices of two shapes: plain values may share them, codes may not.
#[test]
fn other_shapes_have_other_codes() {
    let data = View::owned((0..40).flat_map(|i| (i as f32).to_le_bytes()).collect());
    let plain = Encoding::Plain(DType::F32);
    let tensors = vec![
        stored("a", plain.clone(), vec![1, 40], data.clone()),
        stored("b", plain, vec![2, 20], data),
    ];
    let container = Container { tensors, ..Container::default() };
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("x.mcf"), folder.path().join("q.mcf"));
    std::fs::write(&input, bytes(&container)).unwrap();
    let settings = QuantizeSettings::new(Method::from_name("q8").unwrap());
    quantize_file(&input, &output, &settings).unwrap();
    assert!(verdict(&output).findings.is_empty());
    let file = open(&output).unwrap();
    for tensor in &file.tensors {
        let values = tensor.values_f32(0, 40).unwrap();
        let off = values.iter().zip(0..).map(|(v, i)| (v - i as f32).abs());
        assert!(off.fold(0.0, f32::max) < 0.2, "{}", tensor.name);
    }
}

/// Facts about a tensor go where the tensor goes.
#[test]
fn facts_follow_a_tensor_that_is_renamed() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("x.mcf"), folder.path().join("y.mcf"));
    let mut container = Container { format: "mcf", ..Container::default() };
    let unscaled = Scaled { codes: DType::U4, scaling: Scaling::Unknown };
    let unscaled = Encoding::Scaled(Arc::new(unscaled));
    container.tensors = vec![
        stored("raw", unscaled, vec![4], View::owned(vec![0x21, 0x43])),
        stored("whole", Encoding::Plain(DType::I8), vec![2], View::owned(vec![1, 2])),
    ];
    std::fs::write(&input, bytes(&container)).unwrap();
    let swap = Edit::new().rename("raw", "x").rename("whole", "raw").rename("x", "whole");
    convert(&input, &output, None, &swap).unwrap();
    let file = open(&output).unwrap();
    let kind = |name: &str| file.tensor(name).unwrap().encoding.name().into_owned();
    assert_eq!((kind("raw"), kind("whole")), ("i8".to_owned(), "u4:unscaled".to_owned()));
}
