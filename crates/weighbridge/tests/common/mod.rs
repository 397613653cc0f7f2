//! What the tests of the library share: the walk from file to file in one call.

#![allow(dead_code, reason = "each test program uses some of it")]

use std::path::Path;
use weighbridge::quantize::{QuantizeReport, QuantizeSettings};
use weighbridge::sink::{self, RealFiles};
use weighbridge::{
    Edit, Error, Format, Formats, Input, Options, Output, Plan, Progress, Verdict, open, quantize,
    verify,
};

/// A format that comes with the library.
pub(crate) fn format_of(id: &str) -> &'static Format {
    Formats::builtin().find(id).unwrap()
}

/// Writes a plan, whatever is lost.
pub(crate) fn write(plan: &Plan, path: &Path) {
    sink::write(plan, path, &RealFiles, &mut Progress::none()).unwrap();
}

/// Every rule of a file's format.
pub(crate) fn verdict(path: &Path) -> Verdict {
    let input = Input::open(path).unwrap();
    verify(Formats::builtin(), &input, &Options::default(), false).unwrap()
}

/// From file to file; existing files are replaced, nothing may be lost.
pub(crate) fn convert(
    from: &Path,
    to: &Path,
    id: Option<&str>,
    edit: &Edit,
) -> Result<Plan, Error> {
    let format = Formats::builtin().target(&to.to_string_lossy(), id)?;
    let plan = format.plan(&edit.apply(open(from)?)?, &Options::default())?;
    plan.write(Output::new(to).overwrite(true), &mut Progress::none())?;
    Ok(plan)
}

/// Quantizes a file; an existing one is replaced, nothing else may be lost.
pub(crate) fn quantize_file(
    input: &Path,
    output: &Path,
    settings: &QuantizeSettings,
) -> Result<QuantizeReport, Error> {
    let container = Formats::builtin().open(&Input::open(input)?, &settings.options)?;
    let done = quantize(&container, settings, &mut Progress::none())?;
    done.plan.write(Output::new(output).overwrite(true), &mut Progress::none())?;
    Ok(done.report)
}

/// Settings with something changed.
pub(crate) fn with<T>(mut settings: T, change: impl FnOnce(&mut T)) -> T {
    change(&mut settings);
    settings
}
