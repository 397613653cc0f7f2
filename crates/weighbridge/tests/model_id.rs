//! Which model it was: the same in every container, another when a weight is another.

mod common;

use common::{convert, quantize_file, with};
use std::path::Path;
use weighbridge::encoder::{ModelId, Settings};
use weighbridge::quantize::{Calibration, Method, QuantizeSettings};
use weighbridge::{Edit, Encoder, open, samples};

fn id(path: &Path) -> ModelId {
    Encoder::open(path).unwrap().id(Some(path.display().to_string())).unwrap()
}

#[test]
fn weights_are_the_same_in_every_container() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    samples::write_encoder(&model).unwrap();
    let first = id(&model);
    assert_eq!((first.weights.len(), first.name.as_deref()), (64, Some("model")));
    assert_eq!(first.path.as_deref(), Some(&*model.display().to_string()));
    for name in ["m.weights", "m.mcf", "m.safetensors", "m.oinf"] {
        let path = folder.path().join(name);
        convert(&model, &path, None, &Edit::default()).unwrap();
        let other = id(&path);
        assert!(first.has_weights_of(&other) && first.probes == other.probes, "{name}");
    }
    // Tensors that are not used, and a prefix, make no difference; a weight does.
    let mut container = open(&model).unwrap();
    for tensor in &mut container.tensors {
        tensor.name = format!("bert.{}", tensor.name);
    }
    container.tensors.push(with(container.tensors[0].clone(), |t| t.name = "extra".into()));
    let prefixed = Encoder::new(&container, &Settings::default()).unwrap().id(None).unwrap();
    assert!(first.has_weights_of(&prefixed) && prefixed.path.is_none());
    let weights = model.join("model.safetensors");
    let mut bytes = std::fs::read(&weights).unwrap();
    let last = bytes.len() - 4;
    bytes[last] ^= 1;
    let changed = folder.path().join("changed");
    samples::write_encoder(&changed).unwrap();
    std::fs::write(changed.join("model.safetensors"), bytes).unwrap();
    let changed = id(&changed);
    assert!(!first.has_weights_of(&changed));
    // One bit is not seen in a vector.
    first.check_comparable(&changed).unwrap();
}

#[test]
fn rounded_models_may_ask_and_others_may_not() {
    let folder = tempfile::tempdir().unwrap();
    let [model, q8, k2] = ["model", "q8.mcf", "k2.mcf"].map(|name| folder.path().join(name));
    samples::write_encoder(&model).unwrap();
    for (path, method) in [(&q8, "q8"), (&k2, "k2")] {
        let mut settings = QuantizeSettings::new(Method::from_name(method).unwrap());
        // Calibrated, even two bits would be near enough for so small a model.
        settings.calibration = Calibration::Never;
        quantize_file(&model, path, &settings).unwrap();
    }
    let (rows, q8, k2) = (id(&model), id(&q8), id(&k2));
    assert!(!rows.has_weights_of(&q8));
    rows.check_comparable(&q8).unwrap();
    q8.check_comparable(&rows).unwrap();
    let said = rows.check_comparable(&k2).unwrap_err().to_string();
    assert!(said.contains("k2.mcf") && said.contains("model") && said.contains("cosine"), "{said}");
}
