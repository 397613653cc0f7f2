//! `weighbridge compare`: how near two texts are.

use super::Files;
use crate::args::Compare;
use serde_json::json;
use std::process::ExitCode;
use weighbridge::encoder::Settings;
use weighbridge::{Error, Options, embed, models};

pub(super) fn run(args: &Compare, options: &Options, files: Files) -> Result<ExitCode, Error> {
    let files = files.accepting(&args.damage);
    let settings = Settings { dimensions: args.dimensions, ..args.model.settings(args.pooling) };
    let encoder = files.encoder(&models::find(&args.model.model)?, options, &settings)?;
    super::say_files([&args.first, &args.second], |_| String::new());
    let cosine = embed::compare(&encoder, &args.first, &args.second)?;
    super::say_cut(encoder.count_cut(&[&args.first, &args.second]), encoder.max_tokens());
    if args.json {
        let texts = [&args.first, &args.second];
        super::print(&super::json_line(&json!({"texts": texts, "cosine": cosine})))
    } else {
        super::print(&format!("{cosine:.4}\n"))
    }
}
