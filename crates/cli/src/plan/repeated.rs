//! The rates of a kept run, with its changes, as a profile.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use brunt_judge::summary::Summary;
use brunt_plan::plan::Load;
use brunt_plan::profile::Profile;
use brunt_plan::timetable::Timetable;
use brunt_store::{RunSelector, Store, StoredResult};

use crate::kept;
use crate::result_file::{self, Written};

/// The profile of a run in `store`, or in a file. It lasts as long as the run was planned, or as long as the run took
/// if only a number of requests ended it.
///
/// # Errors
/// When there is no such run, or it had no rate.
pub fn profile(run: &str, store: Option<&Path>) -> Result<Profile> {
    of_summary(&*summary(run, store)?)
}

fn summary(run: &str, store: Option<&Path>) -> Result<Box<Summary>> {
    let decided = "it is not a single run: name one of its runs (brunt runs)";
    match result_file::read(run)? {
        Some(Written::Run(summary)) => return Ok(summary),
        Some(Written::Decision(_)) => bail!("{decided}"),
        None => {}
    }
    let Ok(which) = run.parse::<RunSelector>();
    match Store::open_kept(&kept::path(store)?)?.kept(&which)? {
        StoredResult::Run(summary) => Ok(summary),
        StoredResult::Decision(..) => bail!("{decided}"),
    }
}

fn of_summary(summary: &Summary) -> Result<Profile> {
    let plan = &summary.plan;
    let planned = match &plan.load {
        Load::Open { profile, .. } if plan.scenarios.is_none() => profile,
        Load::Open { .. } | Load::Closed {} | Load::Replay(_) => {
            bail!("the run had no rate (-r) that could be repeated")
        }
    };
    let length_ns = plan.duration_ns().unwrap_or(summary.run.measured_ns);
    let changed = Timetable::new(planned.clone()).with(&summary.run.changes, 0);
    let changed = changed.first_seconds(length_ns as f64 / 1e9)?;
    // In the form of a plan file, and of the command that repeats the run.
    changed.to_string().parse().context("the run's changes leave no profile")
}

#[cfg(test)]
mod tests {

    use brunt_plan::arrivals::Spread;
    use brunt_plan::plan::{Plan, ProtocolOptions};
    use brunt_plan::target::Url;
    use brunt_record::change::{Action, Author, Change};
    use brunt_record::recording::Recording;

    use super::*;

    fn repeated(load: Load, length_ns: Option<u64>, changes: &[(i64, Action)]) -> Result<String, String> {
        let mut plan = Plan::of_calls(Url::parse("http://127.0.0.1/").unwrap().target, ProtocolOptions::default());
        (plan.load, plan.stop.duration_ns) = (load, length_ns);
        let change =
            |(at_ns, action): &(i64, Action)| Change { at_ns: *at_ns, action: action.clone(), by: Author::Ctl };
        let run = Recording {
            measured_ns: 7_000_000_000,
            changes: changes.iter().map(change).collect(),
            ..Recording::begun(0)
        };
        let profile = of_summary(&Summary::new(plan, run)).map_err(|problem| format!("{problem:#}"))?;
        Ok(profile.to_string())
    }

    fn open(profile: &str) -> Load {
        Load::Open { profile: profile.parse().unwrap(), arrivals: Spread::Uniform }
    }

    #[test]
    fn changes_become_a_profile_of_the_planned_length() {
        let changes = [
            (1_500_000_001, Action::Rate(500.5)),
            (2_000_000_000, Action::Mark("v2".to_owned())),
            (3_000_000_000, Action::Pause),
            (4_000_000_000, Action::Resume),
        ];
        let ten = Some(10_000_000_000);
        assert_eq!(repeated(open("100"), ten, &changes).unwrap(), "100/1500000001ns,500.5/1499999999ns,0/1s,500.5/6s");
        assert_eq!(repeated(open("0..100/10s"), None, &changes[2..]).unwrap(), "0..30/3s,0/1s,40..100/6s");
        // Only a number of requests ended it.
        assert_eq!(repeated(open("100"), None, &changes[2..]).unwrap(), "100/3s,0/1s,100/3s");
        assert_eq!(repeated(open("100"), ten, &[]).unwrap(), "100/10s");
    }

    #[test]
    fn a_run_without_a_rate_has_nothing_to_repeat() {
        let why = repeated(Load::Closed {}, Some(1_000_000_000), &[]).unwrap_err();
        assert_eq!(why, "the run had no rate (-r) that could be repeated");
        let never = repeated(open("100"), Some(1_000_000_000), &[(0, Action::Pause)]).unwrap_err();
        assert!(never.contains("no call is ever due"), "{never}");
    }
}
