//! The plan of a run, for commands that make many: of calls to a URL, or of the users of a script that stands in its place.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use brunt_plan::plan::Plan;
use brunt_protocol::Registry;
use clap::{Args as _, Command};

use super::run::{Change, Run, UserLoad, planned};
use crate::args::Program;
use crate::args::repeat::{self, Setting};
use crate::args::roles::{self, Role};
use crate::args::runs::{RunArgs, run_flags};
use crate::{foreign, plan, scripts};

/// The script that stands where a URL does, if one does.
pub fn script(run: &RunArgs) -> Option<PathBuf> {
    let path = Path::new(run.bench.url.as_ref()?);
    scripts::is_script(path).then(|| path.to_owned())
}

/// The plan of these flags.
///
/// # Errors
/// Which flag, file, line or column is wrong, and what to do about it.
pub fn from_flags(run: &RunArgs, program: &Program) -> Result<Plan> {
    let Some(file) = script(run) else {
        if let Some(flag) = for_scripts(run) {
            bail!("--{flag} needs a script, and {} is a URL", run.bench.url.as_deref().unwrap_or("the target"));
        }
        return plan::from_flags(&run.bench, program);
    };
    if let Some(way) = foreign::scenario(&file) {
        bail!("{way}");
    }
    if !run.bench.surplus.is_empty() {
        bail!("expected one script, got {}", run.bench.surplus.len() + 1);
    }
    refuse_flags_of_calls(run, &program.registry)?;
    let bench = run.bench.clone();
    let of_script = Run {
        file,
        change: Change { duration: bench.load.duration, rate: bench.load.rate, ..Change::default() },
        scripted: run.scripted.clone(),
        confinement: bench.confinement,
        load: UserLoad { threads: bench.load.threads, ok_status: bench.request.ok_status, ..UserLoad::default() },
        limits: bench.limits,
        connecting: bench.connecting,
        tls: bench.tls,
        output: bench.output,
        machines: bench.machines,
        ..Run::default()
    };
    planned(&of_script, &program.registry)
}

/// The command of one of these runs, for display, with `more` of its settings.
pub fn command(run: &RunArgs, plan: &Plan, more: &[Setting], registry: &Registry) -> String {
    match script(run) {
        Some(file) => {
            let file = file.display().to_string();
            repeat::of_script(run, plan, (&file, &definitions()), more, registry)
        }
        None => repeat::of_run(run, plan, more, registry),
    }
}

fn definitions() -> Command {
    Run::augment_args(Command::new("run"))
}

/// A flag for scripts alone that was given.
fn for_scripts(run: &RunArgs) -> Option<&'static str> {
    [("env", "env"), ("base_url", "base-url"), ("only", "only"), ("users", "users")]
        .into_iter()
        .find_map(|(id, long)| run.has(id).then_some(long))
}

/// Refuses flags that say what calls to a URL are: a script says that itself.
fn refuse_flags_of_calls(run: &RunArgs, registry: &Registry) -> Result<()> {
    let of_script = definitions();
    for arg in run_flags(registry).get_arguments().filter(|arg| !arg.is_positional()) {
        let id = arg.get_id().as_str();
        let is_its_own = of_script.get_arguments().any(|known| known.get_id() == id);
        if roles::of(id) == Role::Run && run.has(id) && !is_its_own {
            let instead = match id {
                "connections" => ", whose users make their own connections: --users says how many there are",
                "requests" => ", whose users make the calls: -d says how long",
                "warmup" => ", whose trials have no warm-up: a longer -d makes its first second matter less",
                _ => ": a script sets this itself",
            };
            bail!(
                "{} is not for scripts{instead}",
                arg.get_long().map_or_else(|| id.to_owned(), |long| format!("--{long}"))
            );
        }
    }
    Ok(())
}
