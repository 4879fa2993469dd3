//! The subject of a threshold: all calls, or anything with a name.

use std::sync::LazyLock;

use brunt_plan::plan::{Load, Plan};
use brunt_plan::scenario::DeclaredFigure;
use brunt_plan::threshold::{NameKind, Selection, Threshold, nearest};
use brunt_record::SECOND_NS;
use brunt_record::catalogue::Counter;
use brunt_record::counts::Failures;
use brunt_record::figures::{CallFigures, CheckFigures, GroupFigures, OwnFigures, ScenarioFigures};
use brunt_record::observer::RunningTotal;
use brunt_record::outcome::{Failure, OkStatus};
use brunt_record::recording::Recording;
use brunt_record::snapshot::Snapshot;
use brunt_record::watched::WatchedFigure;

use super::statistics::NoSuchFigure;

/// The figures of a run, in the end or so far.
#[derive(Debug, Clone, Copy)]
pub struct FigureSource<'a> {
    /// Every call.
    pub total: &'a Snapshot,
    /// Calls that ended in the measured part.
    pub measured: &'a Snapshot,
    /// How long the measured part was, in nanoseconds.
    pub measured_ns: u64,
    /// How long calls were due, in nanoseconds.
    pub due_ns: u64,
    /// Which statuses are a success.
    pub ok: &'a OkStatus,
    /// The most virtual users alive at once.
    pub most_users: u64,
    /// Connections of a closed flood, each of which has a server or not at any moment; `None` for other runs.
    pub flood_connections: Option<u32>,
    /// The run's plan, whose protocol and script declare figures.
    pub plan: &'a Plan,
}

/// How long calls were due in a finished run, in nanoseconds. A replay goes on until its last answer, and its log says when its requests were due.
pub fn due_ns(plan: &Plan, run: &Recording) -> u64 {
    let by_log = || {
        let Load::Replay(replay) = &plan.load else { return None };
        let replayed = run.replayed.as_deref().filter(|_| !replay.think && !replay.repeats && plan.warmup_ns == 0)?;
        let span_ms = u64::try_from(replayed.last_unix_ms? - replayed.first_unix_ms?).ok()?;
        let span_ns = span_ms as f64 * 1e6 / replay.speed;
        // A log of less than a second says little of a rate.
        (span_ns >= SECOND_NS as f64).then_some(span_ns as u64)
    };
    by_log().unwrap_or(run.measured_ns).min(run.measured_ns)
}

impl<'a> FigureSource<'a> {
    /// Connections of a closed flood by `plan`; `None` for other runs.
    pub fn flood_connections(plan: &Plan) -> Option<u32> {
        (matches!(plan.load, Load::Closed {}) && plan.scenarios.is_none()).then(|| plan.connections.most())
    }

    /// The standing of a finished run by `plan`; `total` has every call of it.
    pub fn new(plan: &'a Plan, run: &'a Recording, total: &'a Snapshot) -> Self {
        Self {
            total,
            measured: &run.measured,
            measured_ns: run.measured_ns,
            due_ns: due_ns(plan, run),
            ok: &plan.ok_status,
            most_users: run.series.most_users(),
            flood_connections: Self::flood_connections(plan),
            plan,
        }
    }

    /// The standing of a run by `plan` that goes on.
    pub fn so_far(plan: &'a Plan, so_far: &RunningTotal<'a>) -> Self {
        Self {
            total: so_far.measured,
            measured: so_far.measured,
            measured_ns: so_far.measured_ns,
            due_ns: so_far.measured_ns,
            ok: &plan.ok_status,
            most_users: so_far.most_users,
            flood_connections: Self::flood_connections(plan),
            plan,
        }
    }

    /// The share of the measured time for which connections of a closed flood, or virtual users who are there at all
    /// times, had a server, 0 to 1; `None` for other runs: in the open model a call that finds no server fails, and
    /// `error_rate` has it. Pauses of users are in neither time. Unknown where this machine could make no connections.
    pub fn availability(&self) -> Option<f64> {
        let whole = match self.flood_connections {
            Some(connections) => f64::from(connections) * self.measured_ns as f64,
            None => self.measured.numbers.get(Counter::UsersBusy) as f64,
        };
        // Calls of a flood that were under way at its end may time out in the drain.
        let of = if self.flood_connections.is_some() { self.total } else { self.measured };
        let without = of.numbers.get(Counter::WithoutServer) as f64;
        // A connection for which this machine had no port or descriptor says nothing about the target.
        let is_own = |failures: &Failures| failures.count(Failure::Ports) + failures.count(Failure::Descriptors) > 0;
        let is_known = !is_own(&self.measured.failures) && !is_own(&self.measured.troubles);
        (is_known && whole > 0.0).then(|| (1.0 - without / whole).max(0.0))
    }

    pub(super) fn per_s(&self, n: u64) -> f64 {
        if self.measured_ns > 0 { n as f64 * 1e9 / self.measured_ns as f64 } else { 0.0 }
    }

    /// So many calls that were due, a second.
    pub(super) fn due_per_s(&self, due: u64) -> f64 {
        if self.due_ns > 0 { due as f64 * 1e9 / self.due_ns as f64 } else { 0.0 }
    }
}

/// The subject of a threshold with its figures: in all, and in the measured part only, for rates.
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
    /// A script's own figure without records.
    Unrecorded(&'a DeclaredFigure),
    /// A watched figure.
    Watched(&'a WatchedFigure),
}

/// The property by which calls are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Name,
    Tag,
    /// The conditions other than the one on the status.
    Conditions,
    /// Conditions that include the status: a threshold on answers of this status covers them all, successes or not.
    Status,
}

/// The figures of conditions that no call met.
static NO_CALLS: LazyLock<CallFigures> = LazyLock::new(CallFigures::default);

/// A share: a part and its whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub(super) part: u64,
    pub(super) whole: u64,
}

impl<'a> Subject<'a> {
    /// The subject of `threshold`.
    ///
    /// # Errors
    /// Why nothing has the name, or the figure, in words that replace the figure.
    pub(super) fn from_threshold(threshold: &'a Threshold, standing: &FigureSource<'a>) -> Result<Self, String> {
        let Some((kind, name)) = threshold.subject() else { return Ok(Self::All) };
        if kind == Some(NameKind::Watched) {
            return Self::watched(name, standing).ok_or_else(|| "no value".to_owned());
        }
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

    /// The subject of `threshold`; `None` if nothing has the name, or the figure. It is cheap enough for every second
    /// of a run, as it searches for no similar names.
    pub(super) fn so_far(threshold: &'a Threshold, standing: &FigureSource<'a>) -> Option<Self> {
        let Some((kind, name)) = threshold.subject() else { return Some(Self::All) };
        if kind == Some(NameKind::Watched) {
            return Self::watched(name, standing);
        }
        if let Some(selection) = threshold.selection() {
            let selected = Self::selected(name, &selection, standing)?;
            return selected.value(threshold.measure(), standing).is_ok().then_some(selected);
        }
        Self::with_figure(&Self::with_name(kind, name, standing), threshold, standing)
    }

    /// A watched figure; `None` before its first second is over.
    fn watched(name: &str, standing: &FigureSource<'a>) -> Option<Self> {
        standing.measured.watched.get(name).map(Self::Watched)
    }

    /// The calls that meet these conditions; `None` if no call meets those that are not about the status.
    fn selected(name: &'a str, selection: &Selection, standing: &FigureSource<'a>) -> Option<Self> {
        let all = &standing.total.figures.selected;
        let (by, were_such) = match selection.whatever_status() {
            None => (By::Conditions, all.get(name).is_some()),
            Some(rest) if rest.conditions().next().is_none() => (By::Status, true),
            Some(rest) => (By::Status, all.get(&rest.to_string()).is_some_and(|calls| calls.ended() > 0)),
        };
        let calls = all.get(name).unwrap_or(&NO_CALLS);
        were_such.then(|| Self::Calls { name, by, calls, measured: standing.measured.figures.selected.get(name) })
    }

    /// All subjects with the name, of this kind or of any.
    fn with_name(kind: Option<NameKind>, name: &'a str, standing: &FigureSource<'a>) -> Vec<Self> {
        let kinds = NameKind::NAMED.into_iter().filter(|(_, known)| kind.is_none_or(|kind| kind == *known));
        kinds.filter_map(|(_, kind)| Self::find(kind, name, standing)).collect()
    }

    /// The first that has the threshold's figure.
    fn with_figure(found: &[Self], threshold: &Threshold, standing: &FigureSource<'a>) -> Option<Self> {
        found.iter().find(|subject| subject.value(threshold.measure(), standing).is_ok()).copied()
    }

    /// A suggestion for a name that nothing has, for people; empty if no name is near.
    fn meant(name: &str, standing: &FigureSource<'a>) -> String {
        let names: Vec<_> = NameKind::NAMED
            .into_iter()
            .flat_map(|(_, kind)| Self::names(kind, standing).into_iter().map(move |name| (kind, name)))
            .collect();
        // An exact name of another kind is a suggestion, too.
        let same = names.iter().find(|(_, known)| *known == name).map(|(_, known)| *known);
        let near = same.or_else(|| nearest(name, names.iter().map(|(_, known)| *known)));
        let found = near.and_then(|near| names.iter().find(|(_, known)| *known == near));
        let by_parts =
            || name.split_once('{').map_or_else(String::new, |(base, tags)| Self::meant_by(base, tags, standing));
        found.map_or_else(by_parts, |(kind, known)| format!("; did you mean the {} '{known}'?", kind.word()))
    }

    /// A suggestion for a name with braces, `base{tags`: other tags of a script's own figure, or calls by conditions.
    fn meant_by(base: &str, tags: &str, standing: &FigureSource<'a>) -> String {
        const MOST_SHOWN: usize = 5;
        if base.is_empty() {
            return String::new();
        }
        if standing.plan.own_figures().any(|figure| figure.name == base) {
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
    fn names(kind: NameKind, standing: &FigureSource<'a>) -> Vec<&'a str> {
        let all = &standing.total.figures;
        match kind {
            NameKind::Request => all.requests.iter().map(|(name, _)| name).collect(),
            NameKind::Tag => all.tags.iter().map(|(name, _)| name).collect(),
            NameKind::Group => all.groups.iter().map(|(name, _)| name).collect(),
            NameKind::Check => all.checks.iter().map(|(name, _)| name).collect(),
            NameKind::Scenario => all.scenarios.iter().map(|(name, _)| name).collect(),
            NameKind::Own => {
                let declared = standing.plan.own_figures().map(|figure| figure.name.as_str());
                declared.chain(all.own.iter().map(|(name, _)| name)).collect()
            }
            NameKind::Calls | NameKind::Watched => Vec::new(),
        }
    }

    /// The subject of this kind with the name `name`.
    fn find(kind: NameKind, name: &'a str, standing: &FigureSource<'a>) -> Option<Self> {
        let (all, measured) = (&standing.total.figures, &standing.measured.figures);
        match kind {
            NameKind::Request => all.requests.get(name).map(|calls| Self::Calls {
                name,
                by: By::Name,
                calls,
                measured: measured.requests.get(name),
            }),
            NameKind::Tag => all.tags.get(name).map(|calls| Self::Calls {
                name,
                by: By::Tag,
                calls,
                measured: measured.tags.get(name),
            }),
            NameKind::Group => all.groups.get(name).map(|group| Self::Group(group, measured.groups.get(name))),
            NameKind::Check => all.checks.get(name).map(Self::Check),
            NameKind::Scenario => {
                all.scenarios.get(name).map(|scenario| Self::Scenario(scenario, measured.scenarios.get(name)))
            }
            NameKind::Own => all.own.get(name).map(Self::Own).or_else(|| {
                let exact = standing.plan.own_figures().find(|figure| figure.name == name);
                let declared = exact.or_else(|| standing.plan.own_figures().find(|figure| figure.is_called(name)))?;
                // There are values with other tags, but none with these, which may be misspelt.
                let has_others = declared.name != name && all.own.get(&declared.name).is_some();
                (!has_others).then_some(Self::Unrecorded(declared))
            }),
            NameKind::Calls | NameKind::Watched => None,
        }
    }

    /// Whether it selects calls by status; there may be none.
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
            Self::Unrecorded(declared) => declared.kind.name(),
            Self::Watched(_) => "watched figure",
        }
    }
}

/// The reason that no call meets these conditions, for people: the one that none meets, with the nearest that some do;
/// or that none meets all of them.
fn unmet(selection: &Selection, standing: &FigureSource<'_>) -> String {
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
