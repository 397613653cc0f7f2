//! Values that are one of some names, where the library says which was probably meant.

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use std::ffi::OsStr;
use weighbridge::Formats;
use weighbridge::quantize::Method;

/// Any name; the help and completions have those that there are.
#[derive(Clone)]
pub(super) struct Named(Vec<&'static str>);

impl Named {
    /// Formats that can be written.
    pub(super) fn formats() -> Named {
        Named(Formats::builtin().iter().filter(|f| f.writes()).map(|f| f.info().id).collect())
    }

    /// Methods of quantizing.
    pub(super) fn methods() -> Named {
        Named(Method::NAMES.to_vec())
    }
}

impl TypedValueParser for Named {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}
