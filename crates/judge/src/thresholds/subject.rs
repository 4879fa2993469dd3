//! What a threshold is about: all calls, or what has a name.

use std::sync::LazyLock;

use brunt_plan::plan::{Load, Plan};
use brunt_plan::scenario::DeclaredFigure;
use brunt_plan::threshold::{Count, Figure, Kind, OfOwn, Selection, Threshold, Time, nearest};
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::counts::Failures;
use brunt_record::figures::{CallFigures, CheckFigures, GroupFigures, OwnFigures, OwnKind, ScenarioFigures};
use brunt_record::histogram::{AtLeast, Censored};
use brunt_record::observer::RunningTotal;
use brunt_record::outcome::{Failure, OkStatus};
use brunt_record::recording::Recording;
use brunt_record::snapshot::Snapshot;

use super::statistics::{NoSuchFigure, of_own, of_times};

/// What a run came to, in the end or so far.
#[derive(Debug, Clone, Copy)]
pub struct Standing<'a> {
    /// Every call.
    pub total: &'a Snapshot,
    /// Those that ended in the measured part.
    pub measured: &'a Snapshot,
    /// How long the measured part was, in nanoseconds.
    pub measured_ns: u64,
    /// Which statuses are a success.
    pub ok: &'a OkStatus,
    /// The most virtual users alive at once.
    pub most_users: u64,
    /// Connections of a closed flood, which have a server or not at each moment; none of other runs.
    pub flood_connections: Option<u32>,
    /// The figures that the run's script declares.
    pub own: &'a [DeclaredFigure],
}

/// The figures that the script of `plan` declares.
fn declared(plan: &Plan) -> &[DeclaredFigure] {
    plan.scenarios.as_ref().map_or(&[], |scenarios| &scenarios.own)
}

impl<'a> Standing<'a> {
    /// Connections of a closed flood by `plan`; none of other runs.
    pub fn flood_connections(plan: &Plan) -> Option<u32> {
        (matches!(plan.load, Load::Closed {}) && plan.scenarios.is_none()).then(|| plan.connections.most())
    }

    /// The standing of a run by `plan` that is over; `total` has every call of it.
    pub fn of(plan: &'a Plan, run: &'a Recording, total: &'a Snapshot) -> Self {
        Self {
            total,
            measured: &run.measured,
            measured_ns: run.measured_ns,
            ok: &plan.ok_status,
            most_users: run.series.most_users(),
            flood_connections: Self::flood_connections(plan),
            own: declared(plan),
        }
    }

    /// The standing of a run by `plan` that goes on.
    pub fn so_far(plan: &'a Plan, so_far: &RunningTotal<'a>) -> Self {
        Self {
            total: so_far.measured,
            measured: so_far.measured,
            measured_ns: so_far.measured_ns,
            ok: &plan.ok_status,
            most_users: so_far.most_users,
            flood_connections: Self::flood_connections(plan),
            own: declared(plan),
        }
    }

    /// The share of the measured time for which connections of a closed flood had a server, 0 to 1; none of another run. In the open
    /// model a call that finds no server has failed, so that `error_rate` has it. Unknown where this machine could make no connections.
    pub fn availability(&self) -> Option<f64> {
        let whole = f64::from(self.flood_connections?) * self.measured_ns as f64;
        let without = self.measured.numbers.get(Counter::WithoutServer) as f64;
        // A connection for which this machine had no port or descriptor says nothing of the target.
        let is_own = |failures: &Failures| failures.count(Failure::Ports) + failures.count(Failure::Descriptors) > 0;
        let is_known = !is_own(&self.measured.failures) && !is_own(&self.measured.troubles);
        (is_known && whole > 0.0).then(|| (1.0 - without / whole).max(0.0))
    }

    pub(super) fn per_s(&self, n: u64) -> f64 {
        if self.measured_ns > 0 { n as f64 * 1e9 / self.measured_ns as f64 } else { 0.0 }
    }
}

/// What a threshold is about, with its figures: in all, and in the measured part alone, for rates.
#[derive(Clone, Copy)]
pub(super) enum Subject<'a> {
    All,
    Calls {
        name: &'a str,
        by: By,
        calls: &'a CallFigures,
        measured: Option<&'a CallFigures>,
    },
    Group(&'a GroupFigures, Option<&'a GroupFigures>),
    Check(&'a CheckFigures),
    Scenario(&'a ScenarioFigures, Option<&'a ScenarioFigures>),
    Own(&'a OwnFigures),
    /// A figure of the script's own into which nothing was recorded.
    Unrecorded(OwnKind),
}

/// What calls have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Name,
    Tag,
    /// The conditions other than the one on the status.
    Conditions,
    /// Conditions, the status among them: whoever asks for answers with these means them all, successes or not.
    Status,
}

/// The figures of conditions that no call met.
static NO_CALLS: LazyLock<CallFigures> = LazyLock::new(CallFigures::default);

/// A share: so many of so many.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub(super) part: u64,
    pub(super) whole: u64,
}

impl<'a> Subject<'a> {
    /// What `threshold` is about.
    ///
    /// # Errors
    /// Why nothing has the name, or this figure, in words that stand where the figure would.
    pub(super) fn of(threshold: &'a Threshold, standing: &Standing<'a>) -> Result<Self, String> {
        let Some((kind, name)) = threshold.subject() else { return Ok(Self::All) };
        if let Some(selection) = threshold.selection() {
            let selected = Self::selected(name, &selection, standing).ok_or_else(|| unmet(&selection, standing))?;
            let known = selected.value(threshold.measure(), standing).map(|_| selected);
            return known.map_err(|NoSuchFigure| format!("a {} has no such figure", selected.kind()));
        }
        let found = Self::with_name(kind, name, standing);
        Self::with_figure(&found, threshold, standing).ok_or_else(|| match (found.first(), kind) {
            (Some(subject), _) => format!("a {} has no such figure", subject.kind()),
            (None, Some(kind)) => format!("no {} has the name '{name}'{}", kind.word(), Self::meant(name, standing)),
            (None, None) => format!("nothing has the name '{name}'{}", Self::meant(name, standing)),
        })
    }

    /// What `threshold` is about; none if nothing has the name, or this figure. It costs little where a run goes on, as it looks for no
    /// name that may have been meant.
    pub(super) fn so_far(threshold: &'a Threshold, standing: &Standing<'a>) -> Option<Self> {
        let Some((kind, name)) = threshold.subject() else { return Some(Self::All) };
        if let Some(selection) = threshold.selection() {
            let selected = Self::selected(name, &selection, standing)?;
            return selected.value(threshold.measure(), standing).is_ok().then_some(selected);
        }
        Self::with_figure(&Self::with_name(kind, name, standing), threshold, standing)
    }

    /// The calls that meet these conditions; none if no call meets those that are not about the status.
    fn selected(name: &'a str, selection: &Selection, standing: &Standing<'a>) -> Option<Self> {
        let all = &standing.total.figures.selected;
        let (by, were_such) = match selection.whatever_status() {
            None => (By::Conditions, all.get(name).is_some()),
            Some(rest) if rest.conditions().next().is_none() => (By::Status, true),
            Some(rest) => (By::Status, all.get(&rest.to_string()).is_some_and(|calls| calls.ended() > 0)),
        };
        let calls = all.get(name).unwrap_or(&NO_CALLS);
        were_such.then(|| Self::Calls { name, by, calls, measured: standing.measured.figures.selected.get(name) })
    }

    /// Everything that has the name, of this kind or of any.
    fn with_name(kind: Option<Kind>, name: &'a str, standing: &Standing<'a>) -> Vec<Self> {
        let kinds = Kind::NAMED.into_iter().filter(|(_, known)| kind.is_none_or(|kind| kind == *known));
        kinds.filter_map(|(_, kind)| Self::find(kind, name, standing)).collect()
    }

    /// The first that has the threshold's figure.
    fn with_figure(found: &[Self], threshold: &Threshold, standing: &Standing<'a>) -> Option<Self> {
        found.iter().find(|subject| subject.value(threshold.measure(), standing).is_ok()).copied()
    }

    /// What may have been meant by a name that nothing has, for people; empty if no name is near.
    fn meant(name: &str, standing: &Standing<'a>) -> String {
        let names: Vec<_> = Kind::NAMED
            .into_iter()
            .flat_map(|(_, kind)| Self::names(kind, standing).into_iter().map(move |name| (kind, name)))
            .collect();
        // A name of another kind is meant as it is, too.
        let same = names.iter().find(|(_, known)| *known == name).map(|(_, known)| *known);
        let near = same.or_else(|| nearest(name, names.iter().map(|(_, known)| *known)));
        let found = near.and_then(|near| names.iter().find(|(_, known)| *known == near));
        let by_parts =
            || name.split_once('{').map_or_else(String::new, |(base, tags)| Self::meant_by(base, tags, standing));
        found.map_or_else(by_parts, |(kind, known)| format!("; did you mean the {} '{known}'?", kind.word()))
    }

    /// What may have been meant by a name with braces, `base{tags`: other tags of a figure of the script's own, or calls by conditions.
    fn meant_by(base: &str, tags: &str, standing: &Standing<'a>) -> String {
        const MOST_SHOWN: usize = 5;
        if base.is_empty() {
            return String::new();
        }
        if standing.own.iter().any(|figure| figure.name == base) {
            let all = standing.total.figures.own.iter().filter_map(|(name, _)| name.strip_prefix(base));
            let tagged: Vec<_> = all.filter(|tags| tags.starts_with('{')).take(MOST_SHOWN).collect();
            return format!(
                "; values of '{base}' have {}",
                if tagged.is_empty() { "no tags".to_owned() } else { tagged.join(", ") }
            );
        }
        format!("; calls by conditions are {{name={base},{tags}")
    }

    /// All names of this kind.
    fn names(kind: Kind, standing: &Standing<'a>) -> Vec<&'a str> {
        let all = &standing.total.figures;
        match kind {
            Kind::Request => all.requests.iter().map(|(name, _)| name).collect(),
            Kind::Tag => all.tags.iter().map(|(name, _)| name).collect(),
            Kind::Group => all.groups.iter().map(|(name, _)| name).collect(),
            Kind::Check => all.checks.iter().map(|(name, _)| name).collect(),
            Kind::Scenario => all.scenarios.iter().map(|(name, _)| name).collect(),
            Kind::Own => {
                let declared = standing.own.iter().map(|figure| figure.name.as_str());
                declared.chain(all.own.iter().map(|(name, _)| name)).collect()
            }
            Kind::Calls => Vec::new(),
        }
    }

    /// What has the name `name` and is of this kind.
    fn find(kind: Kind, name: &'a str, standing: &Standing<'a>) -> Option<Self> {
        let (all, measured) = (&standing.total.figures, &standing.measured.figures);
        match kind {
            Kind::Request => all.requests.get(name).map(|calls| Self::Calls {
                name,
                by: By::Name,
                calls,
                measured: measured.requests.get(name),
            }),
            Kind::Tag => all.tags.get(name).map(|calls| Self::Calls {
                name,
                by: By::Tag,
                calls,
                measured: measured.tags.get(name),
            }),
            Kind::Group => all.groups.get(name).map(|group| Self::Group(group, measured.groups.get(name))),
            Kind::Check => all.checks.get(name).map(Self::Check),
            Kind::Scenario => {
                all.scenarios.get(name).map(|scenario| Self::Scenario(scenario, measured.scenarios.get(name)))
            }
            Kind::Own => all.own.get(name).map(Self::Own).or_else(|| {
                let declared = standing.own.iter().find(|figure| figure.is_called(name))?;
                // Of values with tags there were none with these: they may be misspelt.
                let has_others = declared.name != name && all.own.get(&declared.name).is_some();
                (!has_others).then_some(Self::Unrecorded(declared.kind))
            }),
            Kind::Calls => None,
        }
    }

    /// Whether it selects calls by status; none of them may exist.
    pub(super) fn is_by_status(&self) -> bool {
        matches!(self, Self::Calls { by: By::Status, .. })
    }

    /// How it is called where it has no such figure.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::All => "run",
            Self::Calls { by: By::Name, .. } => "request",
            Self::Calls { by: By::Tag, .. } => "tag",
            Self::Calls { .. } => "selection of calls",
            Self::Group(..) => "group",
            Self::Check(_) => "check",
            Self::Scenario(..) => "scenario",
            Self::Own(own) => own.kind.name(),
            Self::Unrecorded(kind) => kind.name(),
        }
    }

    /// Its distribution of `time`; none if it has no such time.
    pub(super) fn times(&self, time: Time, standing: &Standing<'_>) -> Option<Censored> {
        const USUAL: Time = Time::Usual;
        const RESPONSE: Time = Time::Recorded(Timing::Response);
        const SERVICE: Time = Time::Recorded(Timing::Service);
        let total = standing.total;
        match (self, time) {
            (Self::All, Time::Iteration) => {
                let mut all = Censored::default();
                total.figures.scenarios.iter().for_each(|(_, scenario)| all.merge(&scenario.iterations));
                Some(all)
            }
            // How soon calls failed is no answer to how soon they are answered.
            (Self::All, USUAL | RESPONSE | SERVICE) if total.statuses.total() == 0 => Some(Censored::default()),
            (Self::All, USUAL | RESPONSE) => Some(total.response_times()),
            (Self::All, Time::Ok) => Some(total.response_times().known.into()),
            (Self::All, Time::Recorded(Timing::Failed)) => Some(total.response_times().failed.into()),
            (Self::All, Time::Ended) => Some(total.response_times().pooled()),
            (Self::Calls { calls, .. }, Time::Ok) => Some(calls.response_ok().into()),
            (Self::Calls { calls, .. }, Time::Recorded(Timing::Failed)) => Some(calls.response_not_ok().known.into()),
            (Self::Calls { calls, .. }, Time::Ended) => Some(calls.times.get(Timing::Response).clone()),
            (Self::All, SERVICE) => Some(total.service_times().into_owned()),
            (Self::All, Time::Recorded(Timing::FirstByte)) => Some(total.first_byte_times().clone().into()),
            (Self::All, Time::Recorded(timing)) => Some(total.times.get(timing).clone()),
            (Self::Calls { calls, by: By::Status, .. }, USUAL | RESPONSE) => {
                Some(calls.times.get(Timing::Response).clone())
            }
            (Self::Calls { calls, .. }, USUAL | RESPONSE | SERVICE) if calls.statuses.total() == 0 => {
                Some(Censored::default())
            }
            (Self::Calls { calls, .. }, USUAL | RESPONSE) => Some(calls.response_times()),
            (Self::Calls { calls, .. }, Time::Recorded(timing)) if timing.is_named() => {
                Some(calls.times.get(timing).clone())
            }
            (Self::Group(group, _), Time::Usual | Time::Duration | Time::WithoutPauses) => {
                Some(group.without_pauses.clone())
            }
            (Self::Group(group, _), Time::WithPauses) => Some(group.with_pauses.clone()),
            (Self::Scenario(scenario, _), Time::Usual | Time::Duration | Time::Iteration) => {
                Some(scenario.iterations.clone())
            }
            _ => None,
        }
    }

    /// How much of it is not ok; none if it knows no success.
    pub(super) fn errors(&self, standing: &Standing<'_>) -> Option<Share> {
        match self {
            Self::All => Some(Share {
                part: standing.total.not_ok(standing.ok),
                whole: standing.total.numbers.get(Counter::Due),
            }),
            Self::Calls { calls, .. } => {
                Some(Share { part: calls.not_ok(standing.ok), whole: calls.numbers.get(Counter::Due) })
            }
            Self::Group(group, _) => Some(Share { part: group.failed, whole: group.count() }),
            Self::Scenario(scenario, _) => {
                Some(Share { part: scenario.not_ok + scenario.errors, whole: scenario.iterations_begun() })
            }
            Self::Check(_) | Self::Own(_) | Self::Unrecorded(_) => None,
        }
    }

    /// How many of its calls were not answered with success within `limit_ns` after they were due, of those that ended; none if
    /// it is not calls. Which answers failed a check is not known by time: they count as late.
    pub(super) fn late(&self, limit_ns: u64, standing: &Standing<'_>) -> Option<Share> {
        let (ended, statuses, ok, times) = match self {
            Self::All => {
                let total = standing.total;
                (total.ended(), &total.statuses, total.ok(standing.ok), total.response_times().known)
            }
            Self::Calls { calls, .. } => (calls.ended(), &calls.statuses, calls.ok(standing.ok), calls.response_ok()),
            _ => return None,
        };
        // Some that are no success by their status are excused.
        let answered_ok = statuses.ok(standing.ok).max(ok);
        let in_time = times.count() - times.count_above(limit_ns);
        // Where not every answer is timed, those that are stand for the others.
        let in_time = u128::from(in_time) * u128::from(answered_ok) / u128::from(times.count().max(1));
        let failed_checks = answered_ok.saturating_sub(ok);
        let in_time = u64::try_from(in_time).unwrap_or(u64::MAX).saturating_sub(failed_checks);
        Some(Share { part: ended.saturating_sub(in_time), whole: ended })
    }

    /// How many of its checks failed; none if it has no checks.
    pub(super) fn failed_checks(&self, standing: &Standing<'_>) -> Option<Share> {
        let sum = |of: &dyn Fn(&CheckFigures) -> bool| {
            let checks = standing.total.figures.checks.iter().filter(|(_, check)| of(check));
            let sum = checks.fold((0, 0), |(part, whole), (_, check)| {
                (part + check.failed_checks(), whole + check.passes + check.failed_checks())
            });
            Some(Share { part: sum.0, whole: sum.1 })
        };
        match self {
            Self::All => sum(&|_| true),
            Self::Calls { name, by: By::Name, .. } => sum(&|check| check.call.as_deref() == Some(name)),
            Self::Check(check) => Some(Share { part: check.fails, whole: check.passes + check.fails }),
            _ => None,
        }
    }

    /// How many of it ended in the measured part, calls with success; none if it has no rate.
    pub(super) fn ended(&self, standing: &Standing<'_>) -> Option<u64> {
        match self {
            Self::All => Some(standing.measured.ok(standing.ok)),
            Self::Calls { measured, by: By::Status, .. } => Some(measured.map_or(0, CallFigures::ended)),
            Self::Calls { measured, .. } => Some(measured.map_or(0, |calls| calls.ok(standing.ok))),
            Self::Group(_, measured) => Some(measured.map_or(0, |group| group.with_pauses.known.count())),
            Self::Scenario(_, measured) => Some(measured.map_or(0, |scenario| scenario.iterations.known.count())),
            Self::Check(_) | Self::Own(_) | Self::Unrecorded(_) => None,
        }
    }

    /// Messages that came in the measured part; none if it has none of its own.
    fn messages(&self, standing: &Standing<'_>) -> Option<u64> {
        match self {
            Self::All => Some(standing.measured.messages().count()),
            Self::Calls { measured, .. } => Some(measured.map_or(0, |calls| calls.messages().count())),
            _ => None,
        }
    }

    /// Bytes received and sent in the measured part; none if it has none of its own.
    fn bytes(&self, standing: &Standing<'_>) -> Option<(u64, u64)> {
        match self {
            Self::All => {
                Some((standing.measured.numbers.get(Counter::WireIn), standing.measured.numbers.get(Counter::WireOut)))
            }
            Self::Calls { measured, .. } => {
                Some(measured.map_or((0, 0), |calls| {
                    (calls.numbers.get(Counter::ClearIn), calls.numbers.get(Counter::ClearOut))
                }))
            }
            _ => None,
        }
    }

    /// How often `what` happened; none if it cannot.
    pub(super) fn count(&self, what: Count, standing: &Standing<'_>) -> Option<u64> {
        let checks = |of: fn(Share) -> u64| self.failed_checks(standing).map(of);
        match (what, self) {
            (Count::Passes, _) => checks(|share| share.whole - share.part),
            (Count::Fails, _) => checks(|share| share.part),
            (Count::Recorded(counter), Self::All) => Some(standing.total.numbers.get(counter)),
            (Count::Recorded(counter), Self::Calls { calls, .. }) if counter.is_named() => {
                Some(calls.numbers.get(counter))
            }
            (Count::Failure(failure), Self::All) => Some(standing.total.failures.count(failure)),
            (Count::Users, Self::All) => Some(standing.most_users),
            (Count::Failure(failure), Self::Calls { calls, .. }) => Some(calls.failures.count(failure)),
            (Count::Recorded(Counter::Unfinished), Self::Group(group, _)) => Some(group.unfinished),
            (_, Self::All) => {
                let scenarios = standing.total.figures.scenarios.iter();
                scenarios.map(|(_, scenario)| of_scenario(what, scenario)).try_fold(0, |sum, n| Some(sum + n?))
            }
            (_, Self::Scenario(scenario, _)) => of_scenario(what, scenario),
            _ => None,
        }
    }

    /// The value of `figure`; none if nothing was measured.
    ///
    /// # Errors
    /// When it has no such figure.
    pub(super) fn value(&self, figure: Figure, standing: &Standing<'_>) -> Result<Option<AtLeast<f64>>, NoSuchFigure> {
        let nothing;
        let own = match *self {
            Self::Own(own) => Some(own),
            Self::Unrecorded(kind) => {
                nothing = OwnFigures::new(kind, "");
                Some(&nothing)
            }
            _ => None,
        };
        match (own, figure) {
            (Some(own), Figure::Own(_) | Figure::Rate) => {
                let of = if let Figure::Own(of) = figure { of } else { OfOwn::Rate };
                return Ok(of_own(of, own, standing.measured_ns as f64 / 1e9)?.map(AtLeast::exactly));
            }
            (Some(_), _) | (None, Figure::Own(_)) => return Err(NoSuchFigure),
            (None, _) => {}
        }
        // Of nothing there is no share.
        let share = |of: u64, whole: u64| (whole > 0).then(|| of as f64 / whole as f64);
        let value = match figure {
            Figure::Time(time, statistic) => {
                return self.times(time, standing).map(|times| of_times(statistic, &times)).ok_or(NoSuchFigure);
            }
            Figure::ErrorRate => self.errors(standing).map(|errors| share(errors.part, errors.whole)),
            Figure::Availability => match self {
                Self::All => Some(standing.availability()),
                _ => None,
            },
            Figure::ScriptErrorRate => match self {
                Self::Scenario(scenario, _) => Some(share(scenario.errors, scenario.iterations_begun())),
                _ => None,
            },
            Figure::Within(limit_ns) => {
                self.late(limit_ns, standing).map(|late| share(late.whole - late.part, late.whole))
            }
            Figure::Checks => {
                self.failed_checks(standing).map(|failed| share(failed.whole - failed.part, failed.whole))
            }
            Figure::Rate => self.ended(standing).map(|ended| Some(standing.per_s(ended))),
            Figure::MessageRate => self.messages(standing).map(|messages| Some(standing.per_s(messages))),
            Figure::BytesIn => self.bytes(standing).map(|(bytes_in, _)| Some(standing.per_s(bytes_in))),
            Figure::BytesOut => self.bytes(standing).map(|(_, bytes_out)| Some(standing.per_s(bytes_out))),
            Figure::Count(count) => self.count(count, standing).map(|n| Some(n as f64)),
            Figure::Own(_) => None,
        };
        value.map(|value| value.map(AtLeast::exactly)).ok_or(NoSuchFigure)
    }
}

/// Why no call meets these conditions, for people: the one that none meets, with the nearest that some do, or that none meets all.
fn unmet(selection: &Selection, standing: &Standing<'_>) -> String {
    let all = &standing.total.figures;
    let tags: Vec<_> = all.tags.iter().filter_map(|(tag, _)| tag.split_once('=')).collect();
    let values = |key: &str| -> Vec<&str> {
        let tagged = tags.iter().filter(|(known, _)| *known == key).map(|(_, value)| *value);
        match key {
            "name" => tagged.chain(all.requests.iter().map(|(name, _)| name)).collect(),
            "scenario" => tagged.chain(all.scenarios.iter().map(|(name, _)| name)).collect(),
            "group" => tagged.chain(all.groups.iter().map(|(name, _)| name)).collect(),
            _ => tagged.collect(),
        }
    };
    let is_met = |(key, value): &(&str, &str)| {
        values(key).iter().any(|known| known == value || *key == "group" && known.starts_with(&format!("{value}/")))
    };
    let Some((key, value)) = selection.conditions().find(|condition| !is_met(condition)) else {
        return format!("no call is in all of {selection}");
    };
    let known = values(key);
    let meant = match nearest(value, known.iter().copied()) {
        Some(near) => Some(format!("{key}={near}")),
        None if known.is_empty() => {
            let keys = tags.iter().map(|(key, _)| *key);
            Selection::nearest_key(key).or_else(|| nearest(key, keys)).map(|near| format!("{near}={value}"))
        }
        None => None,
    };
    let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
    format!("no call has {key}={value}{meant}")
}

fn of_scenario(what: Count, scenario: &ScenarioFigures) -> Option<u64> {
    match what {
        Count::UsersStarted => Some(scenario.users_started),
        Count::NotAdmitted => Some(scenario.not_admitted),
        Count::Iterations => Some(scenario.iterations.known.count() + scenario.errors),
        Count::FailedIterations => Some(scenario.not_ok + scenario.errors),
        Count::ScriptErrors => Some(scenario.errors),
        _ => None,
    }
}
