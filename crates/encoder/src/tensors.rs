//! The tensors of a model, found by name and held against the shapes that are expected.

use weighbridge_codec::scan::all_finite;
use weighbridge_format::spec::{Architecture, ModelTensors, Names};
use weighbridge_format::wire::to_len;
use weighbridge_format::{Advice, Container, Error, Listing, Tensor};

/// The tensors of a model, by the names that its architecture gives them.
#[derive(Debug)]
pub(crate) struct Tensors<'a> {
    container: &'a Container,
    named: ModelTensors<'a>,
}

impl<'a> Tensors<'a> {
    pub(crate) fn new(
        architecture: &'static Architecture,
        container: &'a Container,
    ) -> Tensors<'a> {
        Tensors { container, named: ModelTensors::new(architecture, container) }
    }

    /// The architecture that gives them their names.
    pub(crate) fn architecture(&self) -> &'static Architecture {
        self.named.architecture()
    }

    /// The names that it has for them.
    pub(crate) fn names(&self) -> &'static Names {
        self.named.names()
    }

    /// What stands in front of the names in the file.
    pub(crate) fn prefix(&self) -> &'static str {
        self.named.prefix()
    }

    /// Bytes of the file that they are in.
    pub(crate) fn file_size(&self) -> u64 {
        self.container.size
    }

    fn find(&self, name: &str) -> Option<&'a Tensor> {
        self.named.find(name).filter(|t| t.has_data())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    pub(crate) fn get(&self, name: &str) -> Result<&'a Tensor, Error> {
        let tensor = self.find(name).ok_or_else(|| {
            let near = nearest(name, self.container.tensors.iter().map(|t| t.name.as_str()));
            let hint = match near.is_empty() {
                true => "the file has no tensors".to_owned(),
                false => format!("the nearest names in the file: {}", near.join(", ")),
            };
            Error::refused(format!("the model lacks the tensor {name}"), hint)
        })?;
        tensor.check_values()?;
        Ok(tensor)
    }

    /// The shape of a matrix: rows and columns.
    pub(crate) fn matrix(&self, name: &str) -> Result<[usize; 2], Error> {
        let tensor = self.get(name)?;
        match tensor.shape[..] {
            [rows, columns] if rows > 0 && columns > 0 => Ok([to_len(rows), to_len(columns)]),
            _ => Err(Error::refused(
                format!("tensor {name} has the shape {:?}", tensor.shape),
                "a matrix was expected",
            )),
        }
    }

    /// A tensor that must have this shape.
    pub(crate) fn shaped(&self, name: &str, shape: &[usize]) -> Result<&'a Tensor, Error> {
        let tensor = self.get(name)?;
        if tensor.shape.iter().map(|&n| to_len(n)).eq(shape.iter().copied()) {
            return Ok(tensor);
        }
        let what = format!("tensor {name} has the shape {:?}", tensor.shape);
        Err(Error::refused(what, format!("{shape:?} was expected")))
    }

    pub(crate) fn vector(&self, name: &str, len: usize) -> Result<Vec<f32>, Error> {
        let values = self.shaped(name, &[len])?.values_f32(0, len)?;
        match all_finite(&values) {
            true => Ok(values),
            false => Err(not_finite(name)),
        }
    }

    /// The bias beside the weights of this name: zeros where there need be none and is none.
    pub(crate) fn bias(&self, name: &str, len: usize, required: bool) -> Result<Vec<f32>, Error> {
        let name = format!("{name}.bias");
        if required || self.has(&name) { self.vector(&name, len) } else { Ok(vec![0.0; len]) }
    }
}

/// The error of weights that are NaN or infinite: rounding could lose them on the way, and vectors
/// be wrong without a sign of it.
pub(crate) fn not_finite(name: &str) -> Error {
    let what = format!("tensor {name} has values that are NaN or infinite");
    Error::refused(what, Advice::See(Listing::Statistics))
}

/// The names that have most in common with a name, by their parts between dots.
fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let parts: Vec<_> = name.split('.').collect();
    let shared = |other: &str| other.split('.').filter(|p| parts.contains(p)).count();
    let mut all: Vec<_> = names.map(|n| (std::cmp::Reverse(shared(n)), n)).collect();
    all.sort();
    all.into_iter().take(3).map(|(_, n)| n).collect()
}
