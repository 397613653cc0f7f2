//! How much the error of each column counts.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weighbridge_format::wire::to_len;
use weighbridge_format::{Container, Error, Input, Options, Tensor, open};

/// Weights of columns: of tensors by name, or one list for all tensors with as many columns.
#[derive(Debug, Default)]
pub(super) struct Importance {
    by_name: HashMap<String, Arc<Vec<f32>>>,
    for_all: Option<Arc<Vec<f32>>>,
    given: bool,
    used: AtomicBool,
}

impl Importance {
    pub(super) fn open(path: Option<&Path>) -> Result<Importance, Error> {
        let Some(path) = path else { return Ok(Importance::default()) };
        Importance::from_container(&open(&Input::open(path)?, &Options::default())?)
    }

    fn from_container(file: &Container) -> Result<Importance, Error> {
        let mut importance = Importance { given: true, ..Importance::default() };
        for tensor in &file.tensors {
            if tensor.shape.iter().filter(|d| **d != 1).count() > 1 {
                let what = format!("importance {:?} has the shape {:?}", tensor.name, tensor.shape);
                return Err(Error::refused(what, "it is one number a column"));
            }
            let list = tensor.values_f32(0, to_len(tensor.count()));
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
                    "the importance file has one number a column",
                ));
            }
            Some(list) => Some(list),
            None => self.for_all.as_ref().filter(|list| list.len() == cols),
        };
        if found.is_some() {
            self.used.store(true, Ordering::Relaxed);
        }
        Ok(found.cloned())
    }

    /// A file that no tensor took weights from is a mistake.
    pub(super) fn check_used(&self) -> Result<(), Error> {
        if !self.given || self.used.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(Error::refused(
            "the importance file fits none of the tensors",
            "its tensors have the names of the weights, or there is one with a number a column",
        ))
    }
}
