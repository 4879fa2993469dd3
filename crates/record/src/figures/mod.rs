//! Figures of scenarios by name: request names and tags, groups, checks, scenarios and their users.
//!
//! A worker asks for a name's number once ([`NamedFigures::id`]) and records by it ([`NamedFigures::at`]). The records
//! are handed over each interval ([`Figures::take`]) and merged by name. A run without scenarios records nothing here.

mod calls;
mod flow;
mod named;
mod own;
mod own_point;
mod own_statistic;
mod status_names;

use serde::{Deserialize, Serialize};

use crate::redaction::Secrets;

pub use calls::CallFigures;
pub use flow::{CheckFigures, Example, GroupFigures, LONGEST_EXAMPLE, LONGEST_TRACEBACK, ScenarioFigures};
pub use named::{FigureByName, LONGEST_NAME, MOST_NAMES, NameId, NamedFigures, OTHERS};
pub use own::{LONGEST_UNIT, OwnFigures, OwnKind, time_unit_ns};
pub use own_point::OwnPoint;
pub use own_statistic::OwnStatistic;
pub use status_names::StatusNames;

/// All figures by name, over some time: of one worker's interval, or merged over workers, intervals and machines.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Calls by their name.
    pub requests: NamedFigures<CallFigures>,
    /// Calls by tag, named `key=value`. A call with several tags counts under each.
    pub tags: NamedFigures<CallFigures>,
    /// Calls that meet the conditions of thresholds, by these, such as `{group=cart,status=5xx}`.
    pub selected: NamedFigures<CallFigures>,
    /// Groups by name; one within another is named `outer/inner`.
    pub groups: NamedFigures<GroupFigures>,
    /// Checks by [`Figures::check_name`].
    pub checks: NamedFigures<CheckFigures>,
    /// Scenarios by name.
    pub scenarios: NamedFigures<ScenarioFigures>,
    /// Figures that the script has declared for itself, by name.
    pub own: NamedFigures<OwnFigures>,
    /// The most users alive at once, seen whenever one came; 0 where none did.
    pub most_users: u64,
}

impl Figures {
    /// The key of a check: `call: check`, or only its own name where it is not about calls.
    pub fn check_name(call: Option<&str>, check: &str) -> String {
        call.map_or_else(|| check.to_owned(), |call| format!("{call}: {check}"))
    }

    /// Records a call under its name and under each of its tags.
    #[inline]
    pub fn each(&mut self, name: NameId, tags: &[NameId], mut record: impl FnMut(&mut CallFigures)) {
        record(self.requests.at(name));
        for &tag in tags {
            record(self.tags.at(tag));
        }
    }

    /// As [`Snapshot::count_ends`](crate::snapshot::Snapshot::count_ends).
    pub(crate) fn count_ends(&mut self, ok: &crate::outcome::OkStatus) {
        for named in [&mut self.requests, &mut self.tags, &mut self.selected] {
            for calls in named.figures_mut() {
                let (is_ok, answered, messages) = (calls.ok(ok), calls.statuses.total(), calls.messages().count());
                calls.numbers.set_ends(is_ok, answered, messages);
            }
        }
    }

    pub(crate) fn settle_ends(&mut self) {
        for named in [&mut self.requests, &mut self.tags, &mut self.selected] {
            named.figures_mut().for_each(|calls| calls.numbers.revoke_ended());
        }
    }

    /// Names of statuses, over all calls.
    pub fn status_names(&self) -> StatusNames {
        let mut names = StatusNames::default();
        self.requests.iter().for_each(|(_, calls)| names.merge(&calls.status_names));
        names
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
            && self.tags.is_empty()
            && self.groups.is_empty()
            && self.checks.is_empty()
            && self.scenarios.is_empty()
            && self.own.is_empty()
    }

    /// Users who were started and have not ended, as a difference to those alive before.
    pub fn users_gained(&self) -> i64 {
        self.scenarios.iter().map(|(_, scenario)| scenario.users_gained()).sum()
    }

    /// Returns everything recorded, and begins anew; names keep their numbers.
    #[must_use]
    pub fn take(&mut self) -> Self {
        Self {
            requests: self.requests.take(),
            tags: self.tags.take(),
            selected: self.selected.take(),
            groups: self.groups.take(),
            checks: self.checks.take(),
            scenarios: self.scenarios.take(),
            own: self.own.take(),
            most_users: std::mem::take(&mut self.most_users),
        }
    }

    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        self.requests.merge(&other.requests);
        self.tags.merge(&other.tags);
        self.selected.merge(&other.selected);
        self.groups.merge(&other.groups);
        self.checks.merge(&other.checks);
        self.scenarios.merge(&other.scenarios);
        self.own.merge(&other.own);
        self.most_users = self.most_users.max(other.most_users);
    }

    /// Hides secrets in names and texts; names get new numbers.
    pub(crate) fn hide(&mut self, secrets: &Secrets) {
        self.requests.hide(secrets);
        self.tags.hide(secrets);
        self.selected.hide(secrets);
        self.groups.hide(secrets);
        self.checks.hide(secrets);
        self.scenarios.hide(secrets);
        self.own.hide(secrets);
    }

    /// Takes over, from figures of the warm-up, the users who are still alive.
    pub fn carry_over(&mut self, warmup: &Self) {
        for (name, scenario) in warmup.scenarios.iter() {
            self.scenarios.named(name).users_before += scenario.users_gained();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_counts_under_its_name_and_each_of_its_tags() {
        let mut figures = Figures::default();
        let name = figures.requests.id("home");
        let tags = [figures.tags.id("plan=pro"), figures.tags.id("region=eu")];
        figures.each(name, &tags, |calls| {
            calls.due();
            calls.answered(200, 1000, 900);
        });
        assert_eq!(figures.requests.get("home").unwrap().ended(), 1);
        assert_eq!(
            figures.tags.iter().map(|(_, calls)| calls.numbers.get(crate::catalogue::Counter::Due)).sum::<u64>(),
            2
        );
    }

    #[test]
    fn users_of_the_warm_up_are_alive_after_it() {
        let mut warmup = Figures::default();
        let id = warmup.scenarios.id("checkout");
        warmup.scenarios.at(id).users_started += 5;
        warmup.scenarios.at(id).users_ended += 2;
        let mut measured = Figures::default();
        measured.carry_over(&warmup.take());
        measured.scenarios.named("checkout").users_ended += 3;
        let scenario = measured.scenarios.get("checkout").unwrap();
        assert_eq!((scenario.users_before, scenario.users_gained()), (3, -3));
    }

    #[test]
    fn secrets_are_hidden_in_every_name_and_text() {
        let mut figures = Figures::default();
        let calls = figures.requests.named("hunter2");
        calls.failed(crate::outcome::Failure::Timeout, 5, Some(4));
        calls.status_names.add(3, "hunter2");
        figures.tags.named("a=hunter2").failed(crate::outcome::Failure::Timeout, 5, Some(4));
        figures.groups.named("hunter2").ended(7, 5, true);
        let example = || Example { status: Some(500), body: "hunter2".into() };
        figures.checks.named("hunter2: hunter2").failed(Some("hunter2"), "hunter2", example);
        figures.scenarios.named("hunter2").script_error("s.lua:1: hunter2");
        figures.own.named("hunter2").merge(&{
            let mut own = OwnFigures::new(OwnKind::Counter, "hunter2");
            own.record(1.0, 0);
            own
        });
        figures.hide(&Secrets::new(["hunter2".to_owned()]));
        let json = serde_json::to_string(&figures).unwrap();
        assert!(!json.contains("hunter2"), "{json}");
        assert_eq!(json.matches(crate::redaction::REDACTED).count(), 13, "{json}");
    }

    #[test]
    fn bytes_keep_them() {
        let mut figures = Figures::default();
        figures.requests.named("a").failed(crate::outcome::Failure::Timeout, 5, Some(4));
        figures.groups.named("g").ended(7, 5, true);
        figures.checks.named("a: 200").failed(Some("a"), "200", || Example { status: Some(500), body: "no".into() });
        figures.scenarios.named("s").script_error("s.lua:1: oh");
        let bytes = crate::bytes::to_bytes(&figures);
        assert_eq!(crate::bytes::from_bytes::<Figures>(&bytes).unwrap(), figures);
    }
}
