//! Hints name flags that are there.

use super::*;

#[test]
fn options_are_flags() {
    let hint = |advice: &Advice| hint_for(advice, "convert");
    assert_eq!(hint(&Advice::set("overwrite", "replaces it")), "--force replaces it");
    assert_eq!(
        hint(&Advice::set("words", "gives a word for each row")),
        "--words FILE gives a word for each row"
    );
    let meant = Advice::meant("noy", ["npy"]).and(Advice::set("overwrite", "replaces it"));
    assert_eq!(hint(&meant), "did you mean npy? --force replaces it");
    let both = Advice::set_to("from", "glove", "reads it").and("or not");
    assert_eq!(hint(&both), "--from glove reads it; or not");
    assert_eq!(hint(&Advice::one_of("to", ["npy", "mcf"])), "--to takes one of: npy mcf");
}

#[test]
fn flags_of_other_verbs_come_with_the_verb() {
    let advice = Advice::set_to("set", "license=VALUE", "adds it");
    let other = "`weighbridge convert --set license=VALUE` adds it";
    assert_eq!(hint_for(&advice, "verify"), other);
    assert_eq!(hint_for(&advice, "metadata"), "--set license=VALUE adds it");
    let both = Advice::from("unset it").and(Advice::LeaveOut { option: "network" });
    assert_eq!(hint_for(&both, "pull"), "unset it; leave out --network");
    assert_eq!(hint_for(&both, "inspect"), "unset it");
    let formats = Advice::See(Listing::Formats);
    assert!(hint_for(&formats, "inspect").contains("--from"));
    assert!(hint_for(&formats, "embed").contains("--from"));
    assert!(!hint_for(&formats, "models").contains("--from"));
    let said = speaking_for("metadata", || hint(&advice));
    assert_eq!(said, hint_for(&advice, "metadata"));
}

/// Every `--flag` of a text with the verb that it is a flag of: the one that stands before it in a
/// command, else the one given.
fn flags(text: &str, verb: &str) -> Vec<(String, String)> {
    let command = crate::args::command();
    let is_verb = |word: &str| command.find_subcommand(word).is_some();
    let separate = |c: char| c.is_whitespace() || "\"'();,$=".contains(c);
    let mut list = Vec::new();
    // Commands stand between backticks, or begin with the program's name.
    for (i, part) in text.split('`').enumerate() {
        let (mut current, mut before) = (verb, if i % 2 == 1 { "weighbridge" } else { "" });
        for word in part.split(separate).filter(|word| !word.is_empty()) {
            if before == "weighbridge" && is_verb(word) {
                current = word;
            }
            before = word;
            let name = word.strip_prefix("--").map(|w| w.trim_end_matches(['.', ':', '|', '\\']));
            let is_flag = |n: &&str| n.starts_with(|c: char| c.is_ascii_lowercase());
            list.extend(name.filter(is_flag).map(|f| (current.to_owned(), f.to_owned())));
        }
    }
    list
}

fn is_there(verb: &str, flag: &str) -> bool {
    let global = ["no-mmap", "color", "quiet", "verbose", "help", "version"].contains(&flag);
    let command = crate::args::command();
    let found = command.find_subcommand(verb);
    global
        || has_flag(verb, flag)
        || found.is_some_and(|c| {
            let mut below = c.get_subcommands().flat_map(|c| c.get_arguments());
            below.any(|arg| arg.get_long() == Some(flag))
        })
}

fn sources(folder: &std::path::Path, list: &mut Vec<(std::path::PathBuf, String)>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, list);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            list.push((path, text));
        }
    }
}

/// The options that advice is about, wherever it is made.
fn advised() -> std::collections::BTreeSet<&'static str> {
    let crates = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let mut list = Vec::new();
    for name in ["codec", "format", "search", "encoder", "weighbridge", "cli"] {
        sources(&crates.join(name).join("src"), &mut list);
    }
    let mut found = std::collections::BTreeSet::new();
    for (path, text) in list.iter().filter(|(path, _)| !path.ends_with("cli/src/hints.rs")) {
        for sign in ["Advice::set(", "Advice::set_to(", "Advice::one_of(", "option:", "OPTION"] {
            for (at, _) in text.match_indices(sign) {
                let rest = text[at + sign.len()..].trim_start();
                let rest = rest.strip_prefix(": &str = ").unwrap_or(rest);
                let name = rest.strip_prefix('"').and_then(|r| r.split('"').next());
                found.extend(name.map(|n| &*n.to_owned().leak()));
            }
        }
        assert!(!text.is_empty(), "{}", path.display());
    }
    // Those that are advised by a name in a variable.
    found.extend(["importance", "calibration"]);
    let formats = weighbridge::Formats::builtin();
    found.extend(formats.iter().flat_map(|f| f.info().options).map(|o| o.name));
    found
}

#[test]
fn no_hint_names_a_flag_that_its_verb_lacks() {
    let options = advised();
    for known in ["lossy", "rename", "network", "normalize", "to", "overwrite", "skip-bad"] {
        assert!(options.contains(known), "{known} is not among {options:?}");
    }
    let listings = [
        Listing::Tensors,
        Listing::Metadata,
        Listing::Formats,
        Listing::Findings,
        Listing::Statistics,
        Listing::Models,
    ];
    let command = crate::args::command();
    for verb in command.get_subcommands().map(|c| c.get_name()) {
        let about = |option: &&'static str| {
            let option = *option;
            [
                Advice::set(option, "helps"),
                Advice::set_to(option, "x", "helps"),
                Advice::one_of(option, ["x"]),
                Advice::LeaveOut { option },
            ]
        };
        let every = options.iter().flat_map(about).chain(listings.map(Advice::See));
        let model = "m".to_owned();
        for advice in every.chain([Advice::Pull { model, network: true }]) {
            let hint = hint_for(&advice, verb);
            for (verb, flag) in flags(&hint, verb) {
                assert!(is_there(&verb, &flag), "{advice:?}: {verb} has no --{flag}: {hint}");
            }
        }
    }
}

/// What a verb's own source says, in messages and in the examples of its help.
#[test]
fn no_verb_speaks_of_a_flag_that_it_lacks() {
    let mut list = Vec::new();
    sources(std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/commands")), &mut list);
    let mut looked = 0;
    let mut look = |text: &str, verb: &str| {
        for (verb, flag) in flags(text, verb) {
            assert!(is_there(&verb, &flag), "{verb} has no --{flag}: {text}");
            looked += 1;
        }
    };
    // Commands that quickstart types are run, and so need no reading.
    let read = |path: &std::path::Path| !path.iter().any(|part| part == "quickstart");
    for (path, text) in list.iter().filter(|(path, _)| read(path)) {
        let verb = path.file_stem().unwrap().to_string_lossy();
        let code = text.lines().map(str::trim).filter(|line| !line.starts_with("//"));
        // What verbs that write have in common is said for each of them.
        let verbs = match &*verb {
            "output" => vec!["convert", "select", "quantize"],
            "prompts" => vec!["embed", "search"],
            "embed_input" => vec!["embed"],
            other => vec![other],
        };
        code.for_each(|line| verbs.iter().for_each(|verb| look(line, verb)));
    }
    fn help(command: &clap::Command, look: &mut impl FnMut(&str, &str)) {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        // Behind a pipe another program has its own flags.
        text.lines().for_each(|line| {
            line.split('|').for_each(|part| look(part, command.get_name()));
        });
        let about = command.get_arguments().filter_map(|arg| arg.get_help());
        about.for_each(|text| look(&text.to_string(), command.get_name()));
        command.get_subcommands().for_each(|below| help(below, look));
    }
    crate::args::command().get_subcommands().for_each(|command| help(command, &mut look));
    assert!(looked > 60, "{looked}");
}
