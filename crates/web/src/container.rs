//! Containers: what a file holds, what is wrong with it, and what it becomes in other formats.

use crate::error::{Failure, json};
use crate::source::Described;
use serde::{Deserialize, Serialize};
use wasm_bindgen::prelude::*;
use weighbridge::codec::convert::convert;
use weighbridge::codec::{Class, DType};
use weighbridge::plan::Report;
use weighbridge::{
    Advice, Array, Detail, Edit, Error, Formats, Input, Options, Plan, Tensor, stats, summary,
};

/// An open file.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Container(pub(crate) weighbridge::Container);

/// Opens what is described as JSON.
#[wasm_bindgen(js_name = openContainer)]
pub fn open_container(described: &str, options: &str) -> Result<Container, JsValue> {
    Ok(open(described, options).map(|(_, container)| Container(container))?)
}

/// Holds a file against every rule of its format: the verdict as JSON.
#[wasm_bindgen(js_name = verifyContainer)]
pub fn verify_container(described: &str, options: &str, quick: bool) -> Result<String, JsValue> {
    let verdict = || -> Result<_, Failure> {
        let (input, options) = parse(described, options)?;
        Ok(weighbridge::verify(Formats::builtin(), &input, &options, quick)?)
    };
    Ok(json(&verdict()?))
}

pub(crate) fn open(
    described: &str,
    options: &str,
) -> Result<(Input, weighbridge::Container), Failure> {
    let (input, options) = parse(described, options)?;
    let container = Formats::builtin().open(&input, &options)?;
    Ok((input, container))
}

fn parse(described: &str, options: &str) -> Result<(Input, Options), Failure> {
    let input = serde_json::from_str::<Described>(described)?.into_input()?;
    Ok((input, parse_options(serde_json::from_str(options)?)))
}

fn parse_options(given: Vec<(String, String)>) -> Options {
    let mut options = Options::default();
    given.into_iter().for_each(|(name, value)| options.set(&name, value));
    options
}

#[wasm_bindgen]
impl Container {
    /// What `inspect --json` prints, with what every byte is if `regions`.
    pub fn summary(&self, regions: bool) -> Result<String, JsValue> {
        let mut detail = Detail::new();
        detail.bytes = regions;
        Ok(json(&summary(&self.0, &detail).map_err(Failure::from)?))
    }

    /// All tokens or words, as a JSON array, or null.
    pub fn vocabulary(&self) -> Result<String, JsValue> {
        let found = weighbridge::vocabulary(&self.0).map_err(Failure::from)?;
        Ok(json(&found.as_ref().map(|words| words.tokens().collect::<Vec<_>>())))
    }

    /// The record of a row, a JSON object.
    pub fn record(&self, row: f64) -> Result<Option<String>, JsValue> {
        let Some(records) = &self.0.records else { return Ok(None) };
        Ok(records.record(row as u64).map_err(Failure::from)?)
    }

    /// Statistics of a tensor as JSON, null if it has no values.
    pub fn stats(&self, name: &str) -> Result<String, JsValue> {
        let found = self.tensor(name).and_then(|tensor| Ok(stats(tensor)?));
        Ok(json(&found?))
    }

    /// The values of some rows of a tensor.
    pub fn values(
        &self,
        name: &str,
        start: Option<f64>,
        end: Option<f64>,
    ) -> Result<Values, JsValue> {
        let values = || -> Result<Values, Failure> {
            let tensor = self.tensor(name)?;
            let all = tensor.shape.first().copied().unwrap_or(1);
            let index = |given: Option<f64>, usual| given.map_or(usual, |index| index as u64);
            let array = Array::of_rows(tensor, index(start, 0)..index(end, all))?;
            Ok(Values::of(array))
        };
        Ok(values()?)
    }

    /// The files that it becomes in another format.
    pub fn convert(&self, request: &str) -> Result<Converted, JsValue> {
        let plan = || -> Result<Plan, Failure> {
            let request: Request = serde_json::from_str(request)?;
            Ok(self.plan(request)?)
        };
        let plan = plan()?;
        let files = plan.to_files().map_err(Failure::from)?;
        let report = Told {
            from: plan.from,
            to: plan.to,
            files: files.iter().map(|(name, bytes)| (name.as_deref(), bytes.len())).collect(),
            report: &plan.report,
        };
        let report = json(&report);
        Ok(Converted { report, files: files.into_iter().map(|(_, bytes)| bytes).collect() })
    }
}

/// What `convert` is asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Request {
    to: String,
    options: Vec<(String, String)>,
    select: Vec<String>,
    exclude: Vec<String>,
    rename: Vec<(String, String)>,
    set: Vec<(String, String)>,
    dtype: Option<String>,
    allow_loss: bool,
}

impl Container {
    fn tensor(&self, name: &str) -> Result<&Tensor, Failure> {
        let names = || self.0.tensors.iter().map(|tensor| tensor.name.as_str());
        let missing = || {
            let what = format!("there is no tensor {name:?}");
            Error::not_found(name, what, Advice::meant(name, names()))
        };
        Ok(self.0.tensor(name).ok_or_else(missing)?)
    }

    fn plan(&self, request: Request) -> Result<Plan, Error> {
        let formats = Formats::builtin();
        let format = formats.named(&request.to, "to")?;
        let options = parse_options(request.options);
        formats.check_options(&options, self.0.format, format)?;
        let mut edit = Edit::new();
        (edit.select, edit.exclude) = (request.select, request.exclude);
        (edit.rename, edit.set) = (request.rename, request.set);
        edit.dtype = request.dtype.as_deref().map(element_type).transpose()?;
        weighbridge::check_changes(&self.0, &edit, format)?;
        let container = edit.apply(self.0.clone())?;
        Ok(format.plan(&container, &options)?.accept_losses(request.allow_loss))
    }
}

fn element_type(name: &str) -> Result<DType, Error> {
    let all = DType::ALL.iter().map(|dtype| dtype.name().to_owned());
    let unknown = || {
        let what = format!("there is no element type {name:?}");
        Error::refused(what, Advice::one_of("dtype", all))
    };
    DType::from_name(name).ok_or_else(unknown)
}

#[derive(Serialize)]
struct Told<'a> {
    from: &'a str,
    to: &'a str,
    files: Vec<(Option<&'a str>, usize)>,
    report: &'a Report,
}

/// Values of a type that JavaScript has arrays of.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Values {
    dtype: DType,
    shape: Vec<u64>,
    bytes: Vec<u8>,
}

impl Values {
    /// Floats that JavaScript has no arrays of become f32, exactly.
    fn of(array: Array) -> Values {
        let Array { dtype, shape, bytes, .. } = array;
        if dtype.class() != Class::Float || matches!(dtype, DType::F32 | DType::F64) {
            return Values { dtype, shape, bytes: bytes.to_vec() };
        }
        let count = bytes.len() * 8 / usize::try_from(dtype.bits()).unwrap_or(8);
        let mut wide = Vec::new();
        convert(dtype, DType::F32, &bytes, count, &mut wide);
        Values { dtype: DType::F32, shape, bytes: wide }
    }
}

#[wasm_bindgen]
impl Values {
    /// The name of the type.
    #[wasm_bindgen(getter)]
    pub fn dtype(&self) -> String {
        self.dtype.name().to_owned()
    }

    /// How many there are in each dimension.
    #[wasm_bindgen(getter)]
    #[allow(clippy::cast_precision_loss, reason = "they are in memory")]
    pub fn shape(&self) -> Vec<f64> {
        self.shape.iter().map(|dim| *dim as f64).collect()
    }

    /// The values, little-endian. They can be taken once.
    #[wasm_bindgen(js_name = takeBytes)]
    pub fn take_bytes(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}

/// A file in another format.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Converted {
    report: String,
    files: Vec<Vec<u8>>,
}

#[wasm_bindgen]
impl Converted {
    /// What became of it, as JSON.
    #[wasm_bindgen(getter)]
    pub fn report(&self) -> String {
        self.report.clone()
    }

    /// The bytes of a file. They can be taken once.
    #[wasm_bindgen(js_name = takeFile)]
    pub fn take_file(&mut self, index: usize) -> Vec<u8> {
        self.files.get_mut(index).map(std::mem::take).unwrap_or_default()
    }
}
