//! Errors of the library as JSON, of which TypeScript makes its class.

use serde::Serialize;
use wasm_bindgen::prelude::*;

#[wasm_bindgen(raw_module = "../source.js")]
extern "C" {
    /// Keeps what a defect says of itself before it ends everything.
    #[wasm_bindgen(js_name = keepPanic)]
    fn keep_panic(text: &str);
}

#[wasm_bindgen(start)]
fn start() {
    std::panic::set_hook(Box::new(|info| keep_panic(&info.to_string())));
}

/// An error on its way to JavaScript.
#[derive(Debug)]
pub(crate) struct Failure(weighbridge::Error);

impl From<weighbridge::Error> for Failure {
    fn from(error: weighbridge::Error) -> Failure {
        Failure(error)
    }
}

impl From<Failure> for JsValue {
    fn from(Failure(error): Failure) -> JsValue {
        JsValue::from_str(&json(&error.report()))
    }
}

/// What was passed is not what these functions take, which only our own half can get wrong.
impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        Failure(weighbridge::Error::refused(error.to_string(), ""))
    }
}

/// A report as the text of a JSON value.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
