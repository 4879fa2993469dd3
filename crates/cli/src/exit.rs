//! The result of a command as an exit status.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

use brunt_cluster::ClusterError;
use brunt_decide::decision::Decision;
use brunt_engine::EngineError;
use brunt_judge::summary::Summary;
use brunt_record::agents::AgentPart;
use brunt_record::catalogue::Counter;
use brunt_record::recording::Ending;

/// The result of a command as an exit status. A mistake in the command line or a file is an error, and becomes
/// [`Exit::Wrong`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done, and every threshold held.
    Done,
    /// A threshold failed, implicit ones among them, or one that aborts ended the run; no call was due; or the run was paused until its end.
    ThresholdFailed,
    /// The command line or a file was wrong.
    Wrong,
    /// The target never answered.
    NoAnswer,
    /// A signal of this number ended it early.
    Interrupted(u8),
    /// A comparison in which nothing failed, and something could not be judged.
    NotJudged,
    /// An agent was lost, and the run may not go on without it; or too few agents came.
    AgentsLost,
    /// wrk's command line was wrong: the status is wrk's.
    AsWrk,
}

impl Exit {
    /// The status of a run: the first that applies of a failure of its script, lost agents, a target that never
    /// answered, and thresholds.
    pub fn of_run(summary: &Summary) -> Self {
        let due = summary.total.numbers.get(Counter::Due);
        let misses_agents = summary.run.agents.iter().any(AgentPart::is_missed);
        match &summary.run.ending {
            Ending::Failed(_) => Self::Wrong,
            Ending::AgentsLost(_) => Self::AgentsLost,
            _ if misses_agents => Self::AgentsLost,
            Ending::Unreached(_) => Self::NoAnswer,
            // Ended before the measured part: nothing is known about the target.
            Ending::Interrupted if due == 0 => Self::Done,
            _ if due > 0 && !summary.answered() => Self::NoAnswer,
            Ending::Aborted(_) | Ending::GivenUp(_) => Self::ThresholdFailed,
            // The script says that its run did what it was to do.
            Ending::Stopped(_) if summary.is_idle() && summary.thresholds_held() => Self::Done,
            _ if summary.may_be_idle() && summary.thresholds_held() => Self::Done,
            // Nothing was measured, so nothing has passed.
            _ if summary.is_idle() => Self::ThresholdFailed,
            // No answer was as expected, and there is no threshold (`--once`).
            _ if due > 0 && summary.total.statuses.total() == 0 && summary.thresholds.is_empty() => {
                Self::ThresholdFailed
            }
            // Half a run must not pass for a whole one.
            Ending::Completed if summary.paused_to_end().is_some() => Self::ThresholdFailed,
            _ if summary.thresholds_held() => Self::Done,
            _ => Self::ThresholdFailed,
        }
    }

    /// The status of a decision: the first that applies of lost agents, a target that never answered, and whatever else it
    /// does not hold for.
    pub fn of_decision(decision: Decision<'_>) -> Self {
        if decision.lacking().agents_lost {
            Self::AgentsLost
        } else if decision.is_silent() {
            Self::NoAnswer
        } else if brunt_report::decision::failures(decision).is_empty() {
            Self::Done
        } else if matches!(decision, Decision::Comparison(compared) if compared.is_unjudged() && compared.lacking.short.is_empty())
        {
            Self::NotJudged
        } else {
            Self::ThresholdFailed
        }
    }

    /// The status after this signal, if one came meanwhile: its sender must not take half a run for a whole one,
    /// whatever its result.
    #[must_use]
    pub fn after_signal(self, signal: Option<u8>) -> Self {
        match signal {
            // wrk's status is wrk's.
            Some(signal) if self != Self::AsWrk => Self::Interrupted(signal),
            _ => self,
        }
    }

    /// The status of a command that failed with `error`.
    pub fn from_error(error: &anyhow::Error) -> Self {
        if let Some(error) = error.downcast_ref() {
            return match error {
                ClusterError::TooFew { .. } | ClusterError::LostBefore { .. } => Self::AgentsLost,
                ClusterError::Agent { is_impossible: true, .. } => Self::NoAnswer,
                // The signal decides the status.
                ClusterError::Interrupted => Self::Done,
                _ => Self::Wrong,
            };
        }
        if error.is::<NoAnswer>() {
            return Self::NoAnswer;
        }
        match error.downcast_ref() {
            Some(EngineError::Route(route)) if route.is_no_address() => Self::NoAnswer,
            _ => Self::Wrong,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::ThresholdFailed | Exit::AsWrk => 1,
            Exit::Wrong => 2,
            Exit::NoAnswer => 3,
            Exit::AgentsLost => 4,
            Exit::NotJudged => 5,
            Exit::Interrupted(signal) => 128_u8.saturating_add(signal),
        })
    }
}

/// A target that gave no answer to a question before the load.
#[derive(Debug)]
pub struct NoAnswer(String);

impl NoAnswer {
    /// `problem` names the question, and its failure.
    pub fn new(problem: String) -> Self {
        Self(problem)
    }
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for NoAnswer {}

#[cfg(test)]
mod tests {

    use brunt_plan::plan::{Plan, ProtocolOptions};
    use brunt_plan::target::Url;
    use brunt_record::outcome::Failure;
    use brunt_record::recording::Recording;
    use brunt_record::snapshot::Snapshot;

    use super::*;

    /// A run with this ending, of so many calls that were answered and that failed, with a threshold that holds or fails.
    fn summary(ending: Ending, answered: u64, failed: u64, holds: bool) -> Summary {
        let target = Url::parse("http://127.0.0.1:8080/").unwrap().target;
        let mut plan = Plan::of_calls(target, ProtocolOptions::default());
        plan.thresholds = vec![if holds { "due>=0" } else { "due<0" }.parse().unwrap()];
        let mut measured = Snapshot::with_numbers([(Counter::Due, answered + failed)]);
        (0..answered).for_each(|_| measured.statuses.record(200));
        (0..failed).for_each(|_| measured.failures.record(Failure::Closed, "gone"));
        let run = Recording { ending, measured_ns: 1_000_000_000, measured, ..Recording::begun(0) };
        Summary::new(plan, run)
    }

    #[test]
    fn the_first_cause_that_applies_decides_the_status() {
        use Ending::{Aborted, AgentsLost, Completed, Failed, GivenUp, Interrupted, Stopped, Unreached};
        let because = || "because".to_owned();
        let aborted = || brunt_record::recording::AbortCause::Observer(because());
        // Each row has all that the rows below it have, too, where a run can have both.
        let rows = [
            (Failed(because()), 0, 1, Exit::Wrong),
            (AgentsLost(because()), 0, 1, Exit::AgentsLost),
            (Unreached(because()), 0, 0, Exit::NoAnswer),
            (Unreached(because()), 0, 1, Exit::NoAnswer),
            (Aborted(aborted()), 0, 1, Exit::NoAnswer),
            (Completed, 0, 1, Exit::NoAnswer),
            (Stopped(because()), 0, 1, Exit::NoAnswer),
            (GivenUp(because()), 1, 0, Exit::ThresholdFailed),
            (Interrupted, 0, 1, Exit::NoAnswer),
            (Aborted(aborted()), 1, 0, Exit::ThresholdFailed),
            (Completed, 1, 0, Exit::ThresholdFailed),
            (Completed, 0, 0, Exit::ThresholdFailed),
        ];
        for (ending, answered, failed, expected) in rows {
            let exit = Exit::of_run(&summary(ending.clone(), answered, failed, false));
            assert_eq!(exit, expected, "{ending:?}, {answered} answered, {failed} failed");
            assert_eq!(exit.after_signal(Some(2)), Exit::Interrupted(2), "a signal comes before {ending:?}");
        }
        assert_eq!(Exit::of_run(&summary(Aborted(aborted()), 1, 0, true)), Exit::ThresholdFailed);
        assert_eq!(Exit::of_run(&summary(Completed, 90, 10, true)), Exit::ThresholdFailed, "more than 1% failed");
        for ending in [Completed, Stopped(because())] {
            assert_eq!(Exit::of_run(&summary(ending, 100, 0, true)), Exit::Done);
        }
        assert_eq!(Exit::of_run(&summary(Completed, 0, 0, true)), Exit::ThresholdFailed, "nothing was due");
        assert_eq!(Exit::of_run(&summary(Stopped(because()), 0, 0, true)), Exit::Done, "and nothing was to be");
        assert_eq!(Exit::of_run(&summary(Interrupted, 0, 0, false)), Exit::Done, "ended before the load");
        assert_eq!(Exit::AsWrk.after_signal(Some(2)), Exit::AsWrk);
    }

    #[test]
    fn a_run_that_was_paused_to_its_end_is_half_a_run() {
        use brunt_record::change::{Action, Author, Change};
        let with = |changes: &[(i64, Action)], ending: Ending| {
            let mut summary = summary(ending, 100, 0, true);
            let change =
                |(at_ns, action): &(i64, Action)| Change { at_ns: *at_ns, action: action.clone(), by: Author::Ctl };
            summary.run.changes = changes.iter().map(change).collect();
            Exit::of_run(&summary)
        };
        let paused = (400_000_000, Action::Pause);
        assert_eq!(with(std::slice::from_ref(&paused), Ending::Completed), Exit::ThresholdFailed);
        assert_eq!(with(&[(-5, Action::Pause)], Ending::Completed), Exit::ThresholdFailed, "since the warm-up");
        let resumed = (900_000_000, Action::Resume);
        assert_eq!(with(&[paused.clone(), resumed], Ending::Completed), Exit::Done);
        assert_eq!(with(&[paused], Ending::Stopped("enough".to_owned())), Exit::Done, "the script's end is no half");
    }

    #[test]
    fn statuses_are_those_that_the_docs_name() {
        let all = [
            Exit::Done,
            Exit::ThresholdFailed,
            Exit::Wrong,
            Exit::NoAnswer,
            Exit::AgentsLost,
            Exit::NotJudged,
            Exit::Interrupted(2),
            Exit::Interrupted(15),
        ];
        let codes = [0, 1, 2, 3, 4, 5, 130, 143].map(ExitCode::from);
        assert_eq!(format!("{:?}", all.map(ExitCode::from)), format!("{codes:?}"));
    }
}
