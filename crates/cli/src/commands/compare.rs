//! `weighbridge compare`: how near two texts are.

use super::Files;
use super::questions::{Answer, Said, ask};
use crate::ExitCode;
use crate::args::Compare;
use serde_json::json;
use weighbridge::encoder::Settings;
use weighbridge::{Encoder, Error, Options, embed, models};

/// Pairs that are compared before anything is printed.
const TOGETHER: usize = 64;

pub(super) fn run(args: &Compare, options: &Options, files: Files) -> Result<ExitCode, Error> {
    let files = files.accepting(&args.damage);
    let settings = Settings { dimensions: args.dimensions, ..args.model.settings(args.pooling) };
    let model = models::find(&args.model.model)?;
    super::say_built_in(&model, args.json);
    let encoder = files.encoder(&model, options, &settings)?;
    super::say_files(&args.texts, |_| String::new());
    let mut cut = 0;
    if let [first, second] = args.texts.as_slice() {
        // They may have tabs and line breaks in them.
        super::print(&compared(&encoder, [first, second], args.json, &mut cut)?)?;
        super::say_cut(cut, encoder.max_tokens());
        return Ok(ExitCode::SUCCESS);
    }
    let done = ask(Vec::new(), "two texts a line, separated by a tab", TOGETHER, |lines| {
        let answer = |line: &String| {
            let pair = line.split_once('\t').filter(|(_, second)| !second.contains('\t'));
            let Some((first, second)) = pair else {
                let what = match line.split('\t').count() {
                    1 => "a line has one text instead of two".to_owned(),
                    texts => format!("a line has {texts} texts instead of two"),
                };
                return Err(Error::refused(what, "separate them by a tab"));
            };
            let text = compared(&encoder, [first, second], args.json, &mut cut)?;
            Ok(Answer { text, said: Said::Nothing })
        };
        lines.iter().map(answer).collect()
    })?;
    super::say_cut(cut, encoder.max_tokens());
    Ok(done)
}

fn compared(
    encoder: &Encoder,
    texts: [&str; 2],
    json: bool,
    cut: &mut u64,
) -> Result<String, Error> {
    let cosine = embed::compare(encoder, texts[0], texts[1])?;
    *cut += encoder.count_cut(&texts);
    Ok(match json {
        true => super::json_line(&json!({"texts": texts, "cosine": cosine})),
        false => format!("{cosine:.4}\n"),
    })
}
