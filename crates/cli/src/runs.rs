//! Several runs in a row, for decisions: each is carried out by the one engine, shown while it goes on, and kept if
//! asked for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use brunt_cluster::ClusterError;
use brunt_decide::short::Lacking;
use brunt_engine::{Control, EngineError, StopHandle};
use brunt_judge::summary::Summary;
use brunt_plan::plan::Plan;
use brunt_protocol::Registry;
use brunt_record::recording::Ending;
use brunt_report::decision::{Decision, page_data};
use brunt_report::{Format, Style};

use crate::args::runs::Shown;
use crate::decision_output::DecisionOutput;
use crate::executor::{Executor, RunOutcome};
use crate::exit::Exit;
use crate::kept::Keep;
use crate::live::LivePage;
use crate::progress::Progress;
use crate::wording::{self, Settings};
use crate::{console, files, losses, machine, signals};

/// The reason if several runs end early because of a lost agent.
pub const NOBODY_LEFT: &str = "an agent was lost, and no agent is left that may make the other runs";

/// The result of a run.
pub enum TrialOutcome {
    /// It took its planned time, or was ended by a threshold with abort.
    Whole(Box<Summary>),
    /// It was ended early.
    Interrupted,
    /// There was nothing to put load on, or no way to it, for this reason.
    Impossible(String),
    /// It lost an agent, and has no result.
    Lost(Loss),
}

/// A run that lost an agent.
pub struct Loss {
    /// The agent and the time: `lost agent 'b' after 4.0s`.
    pub how: String,
    /// Whether other agents may make it again.
    pub goes_on: bool,
}

/// Carries runs out.
pub struct Runs<'a> {
    registry: &'a Registry,
    carrier: Executor,
    stop: StopHandle,
    progress: Progress,
    files: Option<PathBuf>,
    number: u32,
    keep: Keep,
    /// The store's file, if it was named.
    store: Option<PathBuf>,
    /// The numbers that runs are kept under.
    kept: Vec<i64>,
    /// The tags of all of them; the name is the decision's.
    tags: BTreeMap<String, String>,
    page: Option<LivePage>,
    /// Whether it prints the page's URL.
    tells: bool,
    /// Sentences about runs that lost an agent, and whether one was left out.
    losses: Vec<String>,
    has_left_out: bool,
    /// Each whole run that agents made, and their names.
    makers: Vec<(String, Vec<String>)>,
}

impl<'a> Runs<'a> {
    /// Runs that are shown and kept by the flags in `shown`, and written into the directory `dir`. From now on Ctrl-C
    /// ends the current run.
    ///
    /// # Errors
    /// When nothing can be written into that directory, or signals cannot be watched for.
    ///
    /// Agents, if they carry out the runs, have this many threads each if `threads` is given.
    pub fn new(
        registry: &'a Registry,
        name: &'static str,
        shown: &Shown,
        dir: Option<&Path>,
        threads: Option<u32>,
    ) -> Result<Self> {
        if let Some(dir) = dir {
            std::fs::create_dir_all(dir).with_context(|| format!("--keep: cannot make {}", dir.display()))?;
            files::check_writable(&dir.join("run.json")).context("--keep")?;
        }
        let stop = StopHandle::default();
        signals::stop_at_first(stop.clone())?;
        let carrier = Executor::from_flags(&shown.machines, threads, shown.quiet, &stop)?;
        let page = shown.live.map(|address| LivePage::of_decision(address, &shown.live_serving)).transpose()?;
        if let Some(page) = page.as_ref().filter(|_| !shown.quiet) {
            console::note(&page.place());
        }
        let progress = Progress::new(name, shown, stop.clone());
        let keep = Keep::from_flags(&shown.saving, shown.quiet);
        let (files, tells) = (dir.map(Path::to_owned), !shown.quiet);
        let store = shown.saving.store.clone();
        let tags = shown.saving.tags.iter().cloned().collect();
        Ok(Self {
            registry,
            carrier,
            stop,
            progress,
            files,
            number: 0,
            keep,
            store,
            kept: Vec::new(),
            tags,
            page,
            tells,
            losses: Vec::new(),
            has_left_out: false,
            makers: Vec::new(),
        })
    }

    /// Where the runs so far are found.
    fn found(&self) -> brunt_report::decision::Runs<'_> {
        brunt_report::decision::Runs { kept: &self.kept, store: self.store.as_deref(), ..Default::default() }
    }

    /// Shows the state so far on the live page, and what is `next`.
    pub fn show(&mut self, so_far: Decision<'_>, next: &str) {
        let data = page_data(so_far, self.found(), Some(next));
        if let Some(page) = &mut self.page
            && let Ok(data) = data
        {
            page.show(data);
        }
    }

    /// Writes the decision, keeps it, and returns its exit status.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(&mut self, decision: Decision<'_>, decided: &DecisionOutput) -> Result<Exit> {
        let written = decided.write(decision, self.found());
        let number = self.keep.keep_decision(decision, &self.kept);
        let data = page_data(decision, self.found(), None);
        if let Some(page) = &mut self.page
            && let Ok(data) = data
        {
            page.end(data, number);
            page.linger(&self.stop, self.tells);
        }
        written?;
        Ok(decided.explained(decision))
    }

    /// Runs that lost an agent so far, and who made which, if not all were made by the same agents.
    pub fn lacking(&self) -> Lacking {
        let is_whole = self.losses.is_empty() || self.carrier.allows_loss() && !self.has_left_out;
        let losses = self.losses.iter().cloned().chain(makers(&self.makers)).collect();
        Lacking { losses, agents_lost: !is_whole, ..Lacking::default() }
    }

    /// The share of the runs asked of agents that may be missing: `allowed`, or any where runs may go on without an agent.
    pub fn most_less(&self, allowed: f64) -> f64 {
        if self.carrier.allows_loss() { 1.0 } else { allowed }
    }

    /// Whether the last two whole runs were made by the same agents.
    pub fn are_by_the_same(&self) -> bool {
        match self.makers.as_slice() {
            [.., (_, before), (_, last)] => before == last,
            _ => true,
        }
    }

    /// How many runs are kept so far.
    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    /// The decision does not rest on the first `number` kept runs, but on later ones.
    pub fn rests_on(&mut self, number: usize) {
        self.kept.truncate(number);
    }

    /// Notes that a lost run was made again.
    pub fn made_again(&mut self, what: &str, how: &str) {
        let told = format!("{what} {how}, and was made again");
        self.note(&told);
        self.losses.push(told);
    }

    /// Notes that a lost run is left out. Returns the sentence about it.
    pub fn left_out(&mut self, what: &str, how: &str) -> String {
        let told = format!("{what} {how}, and was left out");
        self.note(&told);
        self.losses.push(told.clone());
        self.has_left_out = true;
        told
    }

    /// Carries out `plan`, named `what`, and once more if it loses an agent. Later runs take about `after_ns`
    /// nanoseconds.
    ///
    /// # Errors
    /// As [`Runs::attempt`].
    pub fn carry_out(&mut self, plan: &Plan, what: &str, after_ns: u64) -> Result<TrialOutcome> {
        match self.attempt(plan, what, after_ns)? {
            TrialOutcome::Lost(Loss { how, goes_on: true }) => {
                self.made_again(what, &how);
                self.attempt(plan, what, after_ns)
            }
            ran => Ok(ran),
        }
    }

    /// Carries out `plan`, named `what`. Later runs take about `after_ns` nanoseconds.
    ///
    /// # Errors
    /// When the plan is wrong, its script fails, or its result cannot be kept.
    pub fn attempt(&mut self, plan: &Plan, what: &str, after_ns: u64) -> Result<TrialOutcome> {
        if self.stop.is_stopped() {
            return Ok(TrialOutcome::Interrupted);
        }
        self.number += 1;
        self.progress.begin(what, plan, after_ns);
        let mut plan = plan.clone();
        plan.origin.tags.clone_from(&self.tags);
        let RunOutcome { plan, run, .. } =
            match self.carrier.run(&plan, self.registry, &mut self.progress, &Control::default(), &self.stop) {
                Ok(carried) => carried,
                Err(error) => {
                    let of_engine = error.downcast_ref().is_some_and(|error| match error {
                        EngineError::Route(route) => route.is_no_address(),
                        error => matches!(error, EngineError::Descriptors { .. }),
                    });
                    let of_agents =
                        matches!(error.downcast_ref(), Some(ClusterError::Agent { is_impossible: true, .. }));
                    match error.downcast_ref() {
                        Some(ClusterError::Interrupted) => return Ok(TrialOutcome::Interrupted),
                        Some(ClusterError::LostBefore { agent, reason, left }) => {
                            let how = format!("lost agent '{agent}' before it began ({reason})");
                            return Ok(TrialOutcome::Lost(Loss {
                                how,
                                goes_on: *left > 0 && self.carrier.goes_on_after_loss(),
                            }));
                        }
                        // What was finished is not thrown away for it.
                        Some(error) if self.number > 1 && !of_agents => {
                            return Ok(TrialOutcome::Lost(Loss {
                                how: format!("could not begin ({error})"),
                                goes_on: false,
                            }));
                        }
                        _ => {}
                    }
                    let is_impossible = of_engine || of_agents;
                    return if is_impossible {
                        Ok(TrialOutcome::Impossible(wording::render_error(&error, Settings::Flags)))
                    } else {
                        Err(error)
                    };
                }
            };
        match &run.ending {
            Ending::Failed(reason) => bail!("{what}: {reason}"),
            Ending::Interrupted => return Ok(TrialOutcome::Interrupted),
            // A script that ends its run has measured nothing of what was asked.
            Ending::GivenUp(reason) => bail!("{what}: the script ended the run: {reason}"),
            Ending::Completed
            | Ending::Aborted(_)
            | Ending::Stopped(_)
            | Ending::Unreached(_)
            | Ending::AgentsLost(_) => {}
        }
        let loss = losses::brief(&run).map(|how| {
            let is_left = run.agents.iter().any(|agent| !agent.is_lost());
            Loss { how, goes_on: is_left && self.carrier.goes_on_after_loss() }
        });
        if loss.is_none() && !run.agents.is_empty() {
            // A run that is made again counts once.
            self.makers.retain(|(known, _)| known != what);
            self.makers.push((what.to_owned(), run.agents.iter().map(|agent| agent.name.clone()).collect()));
        }
        let summary = machine::summary_of(plan, run);
        match self.keep.keep_part(&summary) {
            // The decision does not rest on a run that lost an agent.
            Ok(number) => self.kept.extend(number.filter(|_| loss.is_none())),
            Err(problem) => {
                let problem = wording::render_error(&problem, Settings::Flags);
                self.progress.note(&format!("warning: the runs are not kept: {problem}"));
                self.keep = Keep::Nothing;
            }
        }
        if let Some(dir) = &self.files {
            let name: String = what.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
            let path = dir.join(format!("{:03}-{name}.json", self.number));
            files::write(&path, &brunt_report::render(Format::Json, &summary, Style::default())?)?;
        }
        Ok(loss.map_or_else(|| TrialOutcome::Whole(Box::new(summary)), TrialOutcome::Lost))
    }

    /// Adds the result of the last run.
    pub fn note(&mut self, line: &str) {
        self.progress.note(line);
    }

    /// Makes room for the result.
    pub fn clear(&mut self) {
        self.progress.clear();
    }
}

/// Sentences that say which agents made which runs; none if all were made by the same.
fn makers(runs: &[(String, Vec<String>)]) -> Vec<String> {
    const NAMED: usize = 10;
    let mut groups: Vec<(&[String], Vec<&str>)> = Vec::new();
    for (what, agents) in runs {
        match groups.iter_mut().find(|(known, _)| known == agents) {
            Some((_, made)) => made.push(what),
            None => groups.push((agents, vec![what])),
        }
    }
    if groups.len() < 2 {
        return Vec::new();
    }
    let shown = |names: &[String]| {
        let more = names.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{more}", names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", "))
    };
    groups.iter().map(|(agents, made)| format!("made by {}: {}", shown(agents), made.join(", "))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_made_which_run_is_said_where_not_all_did() {
        let run = |what: &str, agents: &[&str]| (what.to_owned(), agents.iter().map(|&name| name.to_owned()).collect());
        let same = [run("rate 40", &["a", "b"]), run("rate 50", &["a", "b"])];
        assert_eq!(makers(&same), Vec::<String>::new());
        let others = [run("rate 40", &["a"]), run("rate 50", &["a", "b"]), run("rate 60", &["a"])];
        assert_eq!(makers(&others), ["made by a: rate 40, rate 60", "made by a, b: rate 50"]);
    }
}
