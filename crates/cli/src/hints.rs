//! What would help, in the words of the command line: flags and verbs.

use std::sync::{LazyLock, PoisonError, RwLock};
use weighbridge::{Advice, Conversion, Error, Listing, Verdict};

/// The verb that was typed, whose flags hints may name.
static VERB: RwLock<String> = RwLock::new(String::new());

/// Does some work with hints for whoever typed this verb.
pub(crate) fn speaking_for<T>(verb: &str, work: impl FnOnce() -> T) -> T {
    let set = |name: &str| {
        let mut verb = VERB.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *verb, name.to_owned())
    };
    let before = set(verb);
    let done = work();
    set(&before);
    done
}

/// Advice as a hint.
pub(crate) fn hint(advice: &Advice) -> String {
    let verb = VERB.read().unwrap_or_else(PoisonError::into_inner).clone();
    hint_for(advice, &verb)
}

/// The same for somebody who typed this verb: a flag of another one is named with that verb.
fn hint_for(advice: &Advice, verb: &str) -> String {
    match advice {
        Advice::Set { option, value, effect } => {
            let value = if value.is_empty() { placeholder(option) } else { value };
            let space = if value.is_empty() { "" } else { " " };
            format!("{} {effect}", typed(verb, option, &format!("{space}{value}")))
        }
        Advice::OneOf { option, values } => {
            format!("{} takes one of: {}", typed(verb, option, ""), values.join(" "))
        }
        // What can't be given can't be left out.
        Advice::LeaveOut { option } if !has_flag(verb, flag(option)) => String::new(),
        Advice::LeaveOut { option } => format!("leave out --{}", flag(option)),
        Advice::See(listing) => see(*listing, verb),
        Advice::Pull { model, network } => {
            // Only the hub knows whether it has such a model.
            let (network, whether) =
                if *network { (" --network", ", if the hub has it") } else { ("", "") };
            format!("`weighbridge pull {model}{network}` fetches it{whether}")
        }
        Advice::All(list) => {
            let hints = list.iter().map(|advice| hint_for(advice, verb));
            let hints: Vec<_> = hints.filter(|hint| !hint.is_empty()).collect();
            // A question ends by itself.
            hints.join("; ").replace("?; ", "? ")
        }
        other => other.to_string(),
    }
}

/// A flag with its value as it is typed: alone, or behind the verb that has it.
fn typed(verb: &str, option: &str, value: &str) -> String {
    // Those that write files come first: most advice is about what is to be written.
    const OTHERS: [&str; 8] =
        ["convert", "metadata", "quantize", "select", "embed", "search", "pull", "distill"];
    let flag = flag(option);
    let other = OTHERS.into_iter().find(|other| has_flag(other, flag));
    match other.filter(|_| !has_flag(verb, flag)) {
        None => format!("{}{value}", dashed(flag)),
        Some(other) => format!("`weighbridge {other} {}{value}`", dashed(flag)),
    }
}

/// With its dashes.
fn dashed(flag: &str) -> String {
    format!("{}{flag}", if flag.len() == 1 { "-" } else { "--" })
}

/// Whether a verb has a flag.
fn has_flag(verb: &str, flag: &str) -> bool {
    // Making it takes a while, and some texts have many hints.
    static COMMAND: LazyLock<clap::Command> = LazyLock::new(crate::args::command);
    let found = COMMAND.find_subcommand(verb);
    found.is_some_and(|c| {
        let short = |arg: &clap::Arg| arg.get_short().map(String::from).as_deref() == Some(flag);
        c.get_arguments().any(|arg| arg.get_long() == Some(flag) || short(arg))
    })
}

/// The flag that sets an option of the library.
fn flag(option: &str) -> &str {
    match option {
        "overwrite" => "force",
        "calibration" => "calibrate-with",
        other => other,
    }
}

/// What stands for the value of a flag.
fn placeholder(option: &str) -> &'static str {
    match option {
        "words" | "ranges" => "FILE",
        "column" => "NAME",
        "delimiter" => "C",
        "rename" => "OLD=NEW",
        "set" => "KEY=VALUE",
        _ => "",
    }
}

fn see(listing: Listing, verb: &str) -> String {
    let text = match listing {
        Listing::Tensors => "`weighbridge inspect` lists the names",
        Listing::Metadata => "`weighbridge metadata FILE` lists what there is",
        Listing::Formats if has_flag(verb, "from") => {
            "`weighbridge formats` lists the known ones; --from names one"
        }
        Listing::Formats => "`weighbridge formats` lists the known ones",
        Listing::Statistics => "`weighbridge inspect --stats` counts them",
        Listing::Models => "`weighbridge models` lists them",
        _ => "`weighbridge verify` says more",
    };
    text.to_owned()
}

/// An error in one sentence, with a hint.
pub(crate) fn sentence(error: &Error) -> String {
    match (error, hint(&error.advice())) {
        (Error::Loss(_), _) => error.to_string(),
        (_, hint) if hint.is_empty() => error.message(),
        (_, hint) => format!("{}; hint: {hint}", error.message()),
    }
}

/// Says the findings of a verdict in the words of the command line.
pub(crate) fn word_verdict(verdict: &mut Verdict) {
    for finding in &mut verdict.findings {
        finding.hint = hint(&finding.hint).into();
    }
}

/// Says the notes of a conversion in the words of the command line.
pub(crate) fn word_conversion(conversion: &mut Conversion, obstacle: Option<&Error>) {
    for note in &mut conversion.report.warnings {
        note.advice = hint(&note.advice).into();
    }
    conversion.needs = obstacle.map(sentence);
}

#[cfg(test)]
mod tests;
