//! What the flags of runs are for, by id: one table, from which each command takes, refuses, shows and inherits them.
//!
//! A flag without a row is a setting of each run: commands that make many runs take it, the shown command names it, and
//! `brunt.toml` and `BRUNT_*` may give it.

/// What a flag is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A setting of each run.
    Run,
    /// The destination of a result, of one run or of many. No shown command names it.
    Result,
    /// The form or the destination of a single run's result. No shown command names it, and many runs have none.
    SingleResult,
    /// A setting of a single run, which many runs do not have.
    SingleRun,
    /// The machines that carry runs out.
    Machines,
}

use Role::{Machines, Result, SingleResult, SingleRun};

/// Flags that are not settings of each run.
const ROLES: &[(&str, Role)] = &[
    ("format", Result),
    ("outputs", Result),
    ("html", Result),
    ("live", Result),
    ("live_tls", Result),
    ("live_cert", Result),
    ("live_key", Result),
    ("live_linger", Result),
    ("quiet", Result),
    ("no_color", Result),
    ("plain", Result),
    ("ascii", Result),
    ("dry_run", Result),
    ("store", Result),
    ("no_save", Result),
    ("name", Result),
    ("tag", Result),
    ("keep", Result),
    ("verbose", SingleResult),
    ("latency", SingleResult),
    ("write_plan", SingleResult),
    ("show_secrets", SingleResult),
    ("otlp", SingleResult),
    ("prometheus", SingleResult),
    ("prometheus_linger", SingleResult),
    ("samples", SingleResult),
    ("samples_share", SingleResult),
    ("samples_limit", SingleResult),
    ("log", SingleResult),
    ("log_level", SingleResult),
    ("debug", SingleResult),
    // The shown command has the rates themselves, as the kept run may be deleted.
    ("profile", SingleResult),
    ("guard_action", SingleRun),
    ("plan", SingleRun),
    ("once", SingleRun),
    ("allow_write", SingleRun),
    ("nats", Machines),
    ("nats_creds", Machines),
    ("nats_nkey", Machines),
    ("nats_ca", Machines),
    ("nats_cert", Machines),
    ("nats_key", Machines),
    ("nats_prefix", Machines),
    ("agents", Machines),
    ("agents_wait", Machines),
    ("on_lost_agent", Machines),
    ("secrets_from_agents", Machines),
];

/// What the flag with this id is for.
pub fn of(id: &str) -> Role {
    ROLES.iter().find(|(known, _)| *known == id).map_or(Role::Run, |(_, role)| *role)
}

/// The flags of a single run, which commands that make many refuse.
pub fn single() -> impl Iterator<Item = &'static str> {
    ROLES.iter().filter(|(_, role)| matches!(role, SingleRun | SingleResult)).map(|(id, _)| *id)
}

/// Whether the command that is shown leaves this flag out.
pub fn is_aside(id: &str) -> bool {
    matches!(of(id), Result | SingleResult)
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command};

    use super::*;
    use crate::args::machines::Machines as MachineFlags;
    use crate::args::{Output, Saving};

    fn ids<T: Args>() -> Vec<String> {
        T::augment_args(Command::new("")).get_arguments().map(|arg| arg.get_id().to_string()).collect()
    }

    /// A flag of outputs without a row would be taken by `find`, `sweep` and `compare`, and do nothing.
    #[test]
    fn every_flag_of_outputs_and_machines_has_its_role() {
        const OF_EACH_RUN: [&str; 5] = ["thresholds", "guards", "watches", "max_error_rate", "allow_less"];
        for id in ids::<Output>().into_iter().chain(ids::<Saving>()) {
            assert_eq!(of(&id) == Role::Run, OF_EACH_RUN.contains(&&*id), "{id} stands in ROLES or in this list");
            assert_ne!(of(&id), Machines, "{id}");
        }
        for id in ids::<MachineFlags>() {
            assert_eq!(of(&id), Machines, "{id}");
        }
    }

    #[test]
    fn every_row_is_a_flag_and_stands_once() {
        let definitions = crate::parser::definitions(&crate::built_in()).unwrap();
        let commands = || std::iter::once(&definitions).chain(definitions.get_subcommands());
        for (number, (id, _)) in ROLES.iter().enumerate() {
            assert!(commands().any(|command| command.get_arguments().any(|arg| arg.get_id() == id)), "{id} is no flag");
            assert!(!ROLES.iter().skip(number + 1).any(|(other, _)| other == id), "{id} stands twice");
        }
    }
}
