//! How much the error of each column counts.

use std::collections::HashMap;
use std::sync::Arc;
use weighbridge_format::wire::to_len;
use weighbridge_format::{Container, Error, Tensor};

/// Weights of columns: of tensors by name, or one list for all tensors with as many columns.
#[derive(Clone, Debug, Default)]
pub struct Importance {
    by_name: HashMap<String, Arc<Vec<f32>>>,
    for_all: Option<Arc<Vec<f32>>>,
}

impl Importance {
    /// The weights that the tensors of a container are: named as the weights they belong to, or one
    /// for all, with a number for each column.
    ///
    /// # Errors
    /// [`Error::Refused`] for a tensor that is not a vector, and for negative or NaN weights; others
    /// if they can't be read.
    pub fn new(file: &Container) -> Result<Importance, Error> {
        let mut importance = Importance::default();
        for tensor in &file.tensors {
            if tensor.shape.iter().filter(|d| **d != 1).count() > 1 {
                let what = format!("importance {:?} has the shape {:?}", tensor.name, tensor.shape);
                return Err(Error::refused(what, "it is one number a column"));
            }
            let list = tensor.values_f32(0, to_len(tensor.count()))?;
            if let Some(bad) = list.iter().position(|v| !(v.is_finite() && *v >= 0.0)) {
                let what =
                    format!("importance of column {bad} in {:?} is {}", tensor.name, list[bad]);
                return Err(Error::refused(what, "weights are numbers from 0 on"));
            }
            importance.by_name.insert(tensor.name.clone(), Arc::new(list));
        }
        if let [one] = file.tensors.as_slice() {
            importance.for_all = importance.by_name.get(&one.name).cloned();
        }
        Ok(importance)
    }

    /// The weights of a tensor's columns, if there are some.
    pub(super) fn of(&self, tensor: &Tensor) -> Result<Option<Arc<Vec<f32>>>, Error> {
        let cols = tensor.shape.get(1).map_or(0, |c| to_len(*c));
        let found = match self.by_name.get(&tensor.name) {
            Some(list) if list.len() != cols => {
                return Err(Error::refused(
                    format!(
                        "{:?} has {cols} columns but {} weights for them",
                        tensor.name,
                        list.len()
                    ),
                    "there is one number a column",
                ));
            }
            Some(list) => Some(list),
            None => self.for_all.as_ref().filter(|list| list.len() == cols),
        };
        Ok(found.cloned())
    }
}
