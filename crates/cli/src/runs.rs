//! Runs one after the other, for commands that decide something over several: each is carried out by the one engine, seen
//! while it goes on, and kept if that is asked for.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use brunt_engine::protocol::Registry;
use brunt_engine::{EngineError, StopHandle};
use brunt_model::plan::Plan;
use brunt_model::summary::{Ending, Summary};
use brunt_report::{Format, Style};

use crate::args::words::Shown;
use crate::progress::Progress;
use crate::{files, signals};

/// What came of a run.
pub enum Ran {
    /// It took its time, or was beyond what a threshold with abort allows.
    Whole(Box<Summary>),
    /// It was ended early.
    Interrupted,
    /// There was nothing to put load on, or no way to, in these words.
    Impossible(String),
}

/// Carries runs out.
pub struct Runs<'a> {
    registry: &'a Registry,
    stop: StopHandle,
    progress: Progress,
    keep: Option<PathBuf>,
    number: u32,
}

impl<'a> Runs<'a> {
    /// Runs that are shown as `shown` asks for, and kept in the directory `keep`. From now on Ctrl-C ends the run that
    /// goes on.
    ///
    /// # Errors
    /// When nothing can be written into that directory, or signals cannot be watched for.
    pub fn new(registry: &'a Registry, name: &'static str, shown: &Shown, keep: Option<&Path>) -> Result<Self> {
        if let Some(dir) = keep {
            std::fs::create_dir_all(dir).with_context(|| format!("--keep: cannot make {}", dir.display()))?;
            files::check_writable(&dir.join("run.json")).context("--keep")?;
        }
        let stop = StopHandle::default();
        signals::stop_at_first(stop.clone())?;
        let progress = Progress::new(name, shown, stop.clone());
        Ok(Self { registry, stop, progress, keep: keep.map(Path::to_owned), number: 0 })
    }

    /// Carries `plan` out. It is called `what`, and about `after_ns` nanoseconds of others follow.
    ///
    /// # Errors
    /// When the plan is wrong, its script fails, or its result cannot be kept.
    pub fn carry_out(&mut self, plan: &Plan, what: &str, after_ns: u64) -> Result<Ran> {
        if self.stop.is_stopped() {
            return Ok(Ran::Interrupted);
        }
        self.number += 1;
        self.progress.begin(what, plan, after_ns);
        let run = match brunt_engine::run(plan, self.registry, &mut self.progress, &self.stop) {
            Ok(finished) => finished.run,
            Err(error @ (EngineError::Resolve { .. } | EngineError::Descriptors { .. })) => {
                return Ok(Ran::Impossible(error.to_string()));
            }
            Err(error) => return Err(error.into()),
        };
        match &run.ending {
            Ending::Failed(reason) => bail!("{what}: {reason}"),
            Ending::Interrupted => return Ok(Ran::Interrupted),
            Ending::Completed | Ending::Aborted(_) | Ending::Stopped(_) => {}
        }
        let summary = Summary::of(run);
        if let Some(dir) = &self.keep {
            let name: String = what.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
            let path = dir.join(format!("{:03}-{name}.json", self.number));
            files::write(&path, &brunt_report::render(Format::Json, &summary, Style::default())?)?;
        }
        Ok(Ran::Whole(Box::new(summary)))
    }

    /// Says what came of the last run.
    pub fn note(&mut self, line: &str) {
        self.progress.note(line);
    }

    /// Makes room for the result.
    pub fn clear(&mut self) {
        self.progress.clear();
    }
}

/// How long a run of `plan` takes, in nanoseconds, as far as that is known.
pub fn length_ns(plan: &Plan) -> u64 {
    plan.warmup_ns + plan.duration_ns().unwrap_or(0)
}
