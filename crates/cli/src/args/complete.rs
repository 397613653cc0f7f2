//! What shells offer beside what clap knows: the names of models.

use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use std::ffi::OsStr;
use weighbridge::models::{KNOWN, Places};

/// Files, folders and the models on this machine.
pub(super) fn files_and_models() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let mut list = PathCompleter::any().complete(typed);
        list.extend(starting(typed, cached()));
        list
    })
}

/// The models on this machine.
pub(super) fn models() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| starting(typed, cached()))
}

/// Models that can be fetched by a short name, and those on this machine.
pub(super) fn pulled() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let mut names: Vec<_> = KNOWN.iter().map(|known| known.name.to_owned()).collect();
        names.extend(cached());
        starting(typed, names)
    })
}

/// While somebody types, what can't be listed is left out.
fn cached() -> Vec<String> {
    Places::from_env().map_or(Vec::new(), |places| places.names())
}

fn starting(typed: &OsStr, mut names: Vec<String>) -> Vec<CompletionCandidate> {
    names.sort();
    names.dedup();
    let typed = typed.to_string_lossy();
    names.retain(|name| name.starts_with(&*typed));
    names.into_iter().map(CompletionCandidate::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Command;

    /// An argument that takes a model's name says so, and then it is offered.
    #[test]
    fn models_are_offered_wherever_one_is_taken() {
        fn taking(command: &Command) -> Vec<(String, bool)> {
            let named = |arg: &&clap::Arg| {
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                ["name of a model", "names of models", "name of one", "name of the model"]
                    .iter()
                    .any(|sign| help.contains(sign))
            };
            let offered = |arg: &clap::Arg| {
                let place = format!("{} {}", command.get_name(), arg.get_id());
                (place, arg.get::<ArgValueCompleter>().is_some())
            };
            let own = command.get_arguments().filter(named).map(offered);
            own.chain(command.get_subcommands().flat_map(taking)).collect()
        }
        let found = taking(&super::super::command());
        assert!(found.len() >= 11, "{found:?}");
        for (place, offered) in found {
            assert!(offered, "{place}");
        }
    }
}
