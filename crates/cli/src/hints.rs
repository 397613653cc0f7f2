//! What would help, in the words of the command line: flags and verbs.

use weighbridge::{Advice, Conversion, Error, Listing, Verdict};

/// Advice as a hint.
pub(crate) fn hint(advice: &Advice) -> String {
    match advice {
        Advice::Set { option, value, effect } => {
            let value = if value.is_empty() { placeholder(option) } else { value };
            let space = if value.is_empty() { "" } else { " " };
            format!("--{}{space}{value} {effect}", flag(option))
        }
        Advice::OneOf { option, values } => {
            format!("--{} takes one of: {}", flag(option), values.join(" "))
        }
        Advice::LeaveOut { option } => format!("leave out --{}", flag(option)),
        Advice::See(listing) => see(*listing).to_owned(),
        Advice::Pull { model, network } => {
            let network = if *network { " --network" } else { "" };
            format!("`weighbridge pull {model}{network}` fetches it")
        }
        Advice::All(list) => list.iter().map(hint).collect::<Vec<_>>().join("; "),
        other => other.to_string(),
    }
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
        "words" => "FILE",
        "rename" => "OLD=NEW",
        "set" => "KEY=VALUE",
        _ => "",
    }
}

fn see(listing: Listing) -> &'static str {
    match listing {
        Listing::Tensors => "`weighbridge inspect` lists the names",
        Listing::Metadata => "`weighbridge metadata FILE` lists what there is",
        Listing::Formats => "`weighbridge formats` lists the known ones; --from names one",
        Listing::Statistics => "`weighbridge inspect --stats` counts them",
        _ => "`weighbridge verify` says more",
    }
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
mod tests {
    use super::*;

    #[test]
    fn options_are_flags() {
        assert_eq!(hint(&Advice::set("overwrite", "replaces it")), "--force replaces it");
        assert_eq!(
            hint(&Advice::set("words", "gives a word for each row")),
            "--words FILE gives a word for each row"
        );
        let both = Advice::set_to("from", "glove", "reads it").and("or not");
        assert_eq!(hint(&both), "--from glove reads it; or not");
        assert_eq!(hint(&Advice::one_of("to", ["npy", "mcf"])), "--to takes one of: npy mcf");
    }
}
