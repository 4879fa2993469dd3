//! What a threshold is about: all calls, or what has a name.

use super::figure::{Count, Figure, OfOwn, Time};
use crate::figures::{CallFigures, CheckFigures, GroupFigures, OwnFigures, ScenarioFigures};
use crate::histogram::{AtLeast, Censored, Histogram};
use crate::messages::Messages;
use crate::outcome::OkStatus;
use crate::snapshot::Snapshot;
use crate::summary::Run;

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
}

impl<'a> Standing<'a> {
    /// The subject of a run that is over; `total` has every call of it.
    pub fn of(run: &'a Run, total: &'a Snapshot) -> Self {
        Self {
            total,
            measured: &run.measured,
            measured_ns: run.measured_ns,
            ok: &run.plan.ok_status,
            most_users: run.series.most_users(),
        }
    }

    pub(super) fn per_s(&self, n: u64) -> f64 {
        if self.measured_ns > 0 { n as f64 * 1e9 / self.measured_ns as f64 } else { 0.0 }
    }
}

/// The kinds of things that have names, in the order in which a name is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Request,
    Tag,
    Group,
    Check,
    Scenario,
    Own,
}

impl Kind {
    pub(super) const NAMED: [(&'static str, Self); 6] = [
        ("request", Self::Request),
        ("tag", Self::Tag),
        ("group", Self::Group),
        ("check", Self::Check),
        ("scenario", Self::Scenario),
        ("figure", Self::Own),
    ];
}

/// What a threshold is about, with its figures: in all, and in the measured part alone, for rates.
#[derive(Clone, Copy)]
pub(super) enum Subject<'a> {
    All,
    Calls { name: &'a str, is_request: bool, calls: &'a CallFigures, measured: Option<&'a CallFigures> },
    Group(&'a GroupFigures, Option<&'a GroupFigures>),
    Check(&'a CheckFigures),
    Scenario(&'a ScenarioFigures, Option<&'a ScenarioFigures>),
    Own(&'a OwnFigures),
}

/// What a threshold is about has no such figure: a check has no percentiles.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoSuchFigure;

/// A share: so many of so many.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub(super) part: u64,
    pub(super) whole: u64,
}

impl<'a> Subject<'a> {
    /// What has the name `name` and is of this kind.
    pub(super) fn find(kind: Kind, name: &'a str, standing: &Standing<'a>) -> Option<Self> {
        let (all, measured) = (&standing.total.figures, &standing.measured.figures);
        match kind {
            Kind::Request => all.requests.get(name).map(|calls| Self::Calls {
                name,
                is_request: true,
                calls,
                measured: measured.requests.get(name),
            }),
            Kind::Tag => all.tags.get(name).map(|calls| Self::Calls {
                name,
                is_request: false,
                calls,
                measured: measured.tags.get(name),
            }),
            Kind::Group => all.groups.get(name).map(|group| Self::Group(group, measured.groups.get(name))),
            Kind::Check => all.checks.get(name).map(Self::Check),
            Kind::Scenario => {
                all.scenarios.get(name).map(|scenario| Self::Scenario(scenario, measured.scenarios.get(name)))
            }
            Kind::Own => all.own.get(name).map(Self::Own),
        }
    }

    /// How it is called where it has no such figure.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::All => "run",
            Self::Calls { is_request: true, .. } => "request",
            Self::Calls { .. } => "tag",
            Self::Group(..) => "group",
            Self::Check(_) => "check",
            Self::Scenario(..) => "scenario",
            Self::Own(own) => own.kind.name(),
        }
    }

    /// Its distribution of `time`; none if it has no such time.
    pub(super) fn times(&self, time: Time, standing: &Standing<'_>) -> Option<Censored> {
        let known = |histogram: &Histogram| Some(Censored { known: histogram.clone(), bounds: Histogram::new() });
        let total = standing.total;
        match (self, time) {
            // How soon calls failed is no answer to how soon they are answered.
            (Self::All, Time::Usual | Time::Response | Time::Service) if total.statuses.total() == 0 => {
                Some(Censored::default())
            }
            (Self::All, Time::Usual | Time::Response) => Some(total.response_times().into_owned()),
            (Self::All, Time::Service) => Some(total.service_times().into_owned()),
            (Self::All, Time::FirstByte) => known(total.first_byte_times()),
            (Self::All, Time::Connect) => known(&total.connect),
            (Self::All, Time::Tls) => known(&total.tls),
            (Self::All, Time::Handshake) => known(&total.handshake),
            (Self::All, Time::Lag) => known(&total.lag),
            (Self::All, Time::Failed) => known(&total.failed),
            (Self::All, Time::FirstMessage | Time::MessageGap | Time::LastMessage | Time::EachMessage) => {
                of_messages(time, &total.messages)
            }
            (
                Self::Calls { calls, .. },
                Time::FirstMessage | Time::MessageGap | Time::LastMessage | Time::EachMessage,
            ) => of_messages(time, &calls.messages),
            (Self::All, Time::Iteration) => {
                let mut all = Censored::default();
                total.figures.scenarios.iter().for_each(|(_, scenario)| all.merge(&scenario.iterations));
                Some(all)
            }
            (Self::Calls { calls, .. }, Time::Usual | Time::Response | Time::Service)
                if calls.statuses.total() == 0 =>
            {
                Some(Censored::default())
            }
            (Self::Calls { calls, .. }, Time::Usual | Time::Response) => Some(calls.response.clone()),
            (Self::Calls { calls, .. }, Time::Service) => Some(calls.service.clone()),
            (Self::Calls { calls, .. }, Time::Failed) => known(&calls.failed),
            (Self::Group(group, _), Time::Usual | Time::WithoutPauses) => Some(group.without_pauses.clone()),
            (Self::Group(group, _), Time::WithPauses) => Some(group.with_pauses.clone()),
            (Self::Scenario(scenario, _), Time::Usual | Time::Iteration) => Some(scenario.iterations.clone()),
            _ => None,
        }
    }

    /// How much of it is not ok; none if it knows no success.
    pub(super) fn errors(&self, standing: &Standing<'_>) -> Option<Share> {
        match self {
            Self::All => Some(Share { part: standing.total.not_ok(standing.ok), whole: standing.total.due }),
            Self::Calls { calls, .. } => Some(Share { part: calls.not_ok(standing.ok), whole: calls.due }),
            Self::Group(group, _) => Some(Share { part: group.failed, whole: group.count() }),
            Self::Scenario(scenario, _) => Some(Share { part: scenario.errors, whole: scenario.iterations_begun() }),
            Self::Check(_) | Self::Own(_) => None,
        }
    }

    /// How many of its checks failed; none if it has no checks.
    pub(super) fn failed_checks(&self, standing: &Standing<'_>) -> Option<Share> {
        let sum = |of: &dyn Fn(&CheckFigures) -> bool| {
            let checks = standing.total.figures.checks.iter().filter(|(_, check)| of(check));
            let sum = checks
                .fold((0, 0), |(part, whole), (_, check)| (part + check.fails, whole + check.passes + check.fails));
            Some(Share { part: sum.0, whole: sum.1 })
        };
        match self {
            Self::All => sum(&|_| true),
            Self::Calls { name, is_request: true, .. } => sum(&|check| check.call.as_deref() == Some(name)),
            Self::Check(check) => Some(Share { part: check.fails, whole: check.passes + check.fails }),
            _ => None,
        }
    }

    /// How many of it ended in the measured part; none if it has no rate.
    pub(super) fn ended(&self, standing: &Standing<'_>) -> Option<u64> {
        match self {
            Self::All => Some(standing.measured.statuses.total()),
            Self::Calls { measured, .. } => Some(measured.map_or(0, |calls| calls.statuses.total())),
            Self::Group(_, measured) => Some(measured.map_or(0, |group| group.with_pauses.known.count())),
            Self::Scenario(_, measured) => Some(measured.map_or(0, |scenario| scenario.iterations.known.count())),
            Self::Check(_) | Self::Own(_) => None,
        }
    }

    /// Messages that came in the measured part; none if it has none of its own.
    fn messages(&self, standing: &Standing<'_>) -> Option<u64> {
        match self {
            Self::All => Some(standing.measured.messages.count),
            Self::Calls { measured, .. } => Some(measured.map_or(0, |calls| calls.messages.count)),
            _ => None,
        }
    }

    /// Bytes received and sent in the measured part; none if it has none of its own.
    fn bytes(&self, standing: &Standing<'_>) -> Option<(u64, u64)> {
        match self {
            Self::All => Some((standing.measured.bytes.wire_in, standing.measured.bytes.wire_out)),
            Self::Calls { measured, .. } => Some(measured.map_or((0, 0), |calls| (calls.bytes_in, calls.bytes_out))),
            _ => None,
        }
    }

    /// How often `what` happened; none if it cannot.
    pub(super) fn count(&self, what: Count, standing: &Standing<'_>) -> Option<u64> {
        let checks = |of: fn(Share) -> u64| self.failed_checks(standing).map(of);
        match (what, self) {
            (Count::Passes, _) => checks(|share| share.whole - share.part),
            (Count::Fails, _) => checks(|share| share.part),
            (Count::Due, Self::All) => Some(standing.total.due),
            (Count::Unsent, Self::All) => Some(standing.total.unsent),
            (Count::Unfinished, Self::All) => Some(standing.total.unfinished),
            (Count::Messages, Self::All) => Some(standing.total.messages.count),
            (Count::Messages, Self::Calls { calls, .. }) => Some(calls.messages.count),
            (Count::Failure(failure), Self::All) => Some(standing.total.failures.count(failure)),
            (Count::Users, Self::All) => Some(standing.most_users),
            (Count::Due, Self::Calls { calls, .. }) => Some(calls.due),
            (Count::Unsent, Self::Calls { calls, .. }) => Some(calls.unsent),
            (Count::Unfinished, Self::Calls { calls, .. }) => Some(calls.unfinished),
            (Count::Failure(failure), Self::Calls { calls, .. }) => Some(calls.failures.count(failure)),
            (Count::Unfinished, Self::Group(group, _)) => Some(group.unfinished),
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
        let of_own = match (self, figure) {
            (Self::Own(own), Figure::Own(of)) => Some(of.of(own, standing.measured_ns as f64 / 1e9)?),
            (Self::Own(own), Figure::Rate) => Some(OfOwn::Rate.of(own, standing.measured_ns as f64 / 1e9)?),
            (Self::Own(_), _) | (_, Figure::Own(_)) => return Err(NoSuchFigure),
            _ => None,
        };
        if let Some(value) = of_own {
            return Ok(value.map(AtLeast::exactly));
        }
        // Of nothing there is no share.
        let share = |of: u64, whole: u64| (whole > 0).then(|| of as f64 / whole as f64);
        let value = match figure {
            Figure::Time(time, statistic) => {
                return self.times(time, standing).map(|times| statistic.of(&times)).ok_or(NoSuchFigure);
            }
            Figure::ErrorRate => self.errors(standing).map(|errors| share(errors.part, errors.whole)),
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

/// A time of messages.
fn of_messages(time: Time, messages: &Messages) -> Option<Censored> {
    let known = |histogram: &Histogram| Some(Censored { known: histogram.clone(), bounds: Histogram::new() });
    match time {
        Time::FirstMessage => Some(messages.first.clone()),
        Time::MessageGap => Some(messages.gap.clone()),
        Time::LastMessage => known(&messages.last),
        Time::EachMessage => known(&messages.each),
        _ => None,
    }
}

fn of_scenario(what: Count, scenario: &ScenarioFigures) -> Option<u64> {
    match what {
        Count::UsersStarted => Some(scenario.users_started),
        Count::NotAdmitted => Some(scenario.not_admitted),
        Count::Iterations => Some(scenario.iterations.known.count()),
        Count::ScriptErrors => Some(scenario.errors),
        _ => None,
    }
}
