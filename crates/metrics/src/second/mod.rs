//! Metrics of a second of a run: of all calls, by the catalogue of figures, and of calls by name.

mod by_name;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;

use brunt_record::catalogue::{Counter, Merge, Timing, Unit};
use brunt_record::histogram::{Censored, Histogram};
use brunt_record::live::Live;
use brunt_record::outcome::OkStatus;
use brunt_record::slowest::TracedCall;
use brunt_record::snapshot::{Phase, Snapshot};

use crate::model::{Attribute, Attributes, Data, Exemplar, Metric, MetricPoint, Number, Value};
use crate::series_names::Names;

/// The attribute for a point's phase: `warmup`, `measured` or `drain`. The result consists of `measured` and `drain`.
pub const PHASE: &str = "brunt.phase";
/// The attribute for the error of calls; missing for successful ones.
pub const ERROR_TYPE: &str = "error.type";
/// The attribute for the name of a watched figure.
pub const WATCH: &str = "brunt.watch";
/// [`ERROR_TYPE`] of calls that ended without success, where durations are not told apart by the reason.
pub const ANY_ERROR: &str = "_OTHER";
/// [`ERROR_TYPE`] of calls that had not ended when the run was over: their durations are lower bounds.
pub const UNFINISHED: &str = "unfinished";

/// The properties of a run's calls that metrics need.
#[derive(Debug, Clone, Default)]
pub struct Subject {
    /// The statuses that are a success.
    pub ok: OkStatus,
    /// The kind of calls by OpenTelemetry's conventions.
    pub calls: CallKind,
    /// The attributes that their durations share: the target's address, the method.
    pub attributes: Attributes,
    /// The names of statuses, where the conventions use names.
    pub status_names: BTreeMap<u16, String>,
}

/// Kinds of calls by OpenTelemetry's semantic conventions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallKind {
    /// Requests of HTTP.
    Http,
    /// Remote procedure calls.
    Rpc,
    /// Calls for which the conventions have no name.
    #[default]
    Other,
}

impl CallKind {
    /// The name of the metric of response times.
    pub const fn duration(self) -> &'static str {
        match self {
            Self::Http => "http.client.request.duration",
            Self::Rpc => "rpc.client.call.duration",
            Self::Other => "brunt.call.duration",
        }
    }

    /// The attribute for the status.
    const fn status(self) -> &'static str {
        match self {
            Self::Http => "http.response.status_code",
            Self::Rpc => "rpc.response.status_code",
            Self::Other => "brunt.status",
        }
    }
}

impl Subject {
    /// The metrics of a second, or of several consecutive ones of a phase, which ended at `ended_unix_ns`, in
    /// nanoseconds since 1970-01-01 UTC. Names for which `names` has no series count together.
    pub fn metrics(&self, second: &Live, ended_unix_ns: u64, names: &mut Names) -> Vec<Metric> {
        let phase = PhaseOf(second.phase);
        let mut metrics = Vec::new();
        self.outcomes(second, phase, names, &mut metrics);
        self.durations(&second.snapshot, exemplars(second, ended_unix_ns), phase, &mut metrics);
        metrics.extend(Counter::ALL.into_iter().map(|counter| of_counter(counter, &second.snapshot, phase)));
        metrics.extend(gauges(second, phase));
        by_name::add(self, second, names, phase, &mut metrics);
        metrics.retain(|metric| !metric.data.is_empty());
        metrics
    }

    fn outcomes(&self, second: &Live, phase: PhaseOf, names: &mut Names, metrics: &mut Vec<Metric>) {
        let snapshot = &second.snapshot;
        let mut answers: BTreeMap<Value, u64> = BTreeMap::new();
        for (status, n) in snapshot.statuses.sorted() {
            *answers.entry(self.status(status, names)).or_default() += n;
        }
        let answers = answers.into_iter().map(|(status, n)| phase.point([(self.calls.status().into(), status)], n));
        metrics.push(counter("brunt.answers", "{call}", "Calls that were answered, by status.", answers));
        let failures = snapshot
            .failures
            .counted()
            .map(|(failure, n)| phase.point([(ERROR_TYPE.into(), Value::from(failure.name()))], n));
        metrics.push(counter("brunt.failures", "{call}", "Calls that failed, by the failure.", failures));
        let (ok, not_ok) = (snapshot.ok(&self.ok), snapshot.not_ok(&self.ok));
        metrics.push(counter("brunt.ok", "{call}", "Calls that were a success.", [phase.point([], ok)]));
        metrics.push(counter("brunt.not_ok", "{call}", "Calls that ended without success.", [phase.point([], not_ok)]));
    }

    /// A status as an attribute. A hostile target cannot make more values of it than there may be series.
    fn status(&self, status: u16, names: &mut Names) -> Value {
        let text = self.status_names.get(&status).cloned().unwrap_or_else(|| status.to_string());
        if names.series("status", &text) != text {
            return ANY_ERROR.into();
        }
        match self.calls {
            CallKind::Rpc => text.into(),
            CallKind::Http | CallKind::Other => status.into(),
        }
    }

    fn durations(&self, snapshot: &Snapshot, exemplars: Vec<Exemplar>, phase: PhaseOf, metrics: &mut Vec<Metric>) {
        let with = |others: Vec<Attribute>| phase.attributes(self.attributes.iter().cloned().chain(others));
        let mut responses = by_outcome(&snapshot.response_times(), with);
        let is_of_success =
            |point: &&mut MetricPoint<Histogram>| point.attributes.iter().all(|(key, _)| key != ERROR_TYPE);
        if let Some(successes) = responses.iter_mut().find(is_of_success) {
            successes.exemplars = exemplars;
        }
        metrics.push(times(
            self.calls.duration(),
            "Response time: from when a call was due to its end, without the generator's own delays where these are known.",
            responses,
        ));
        metrics.push(times(
            "brunt.service.duration",
            "Service time: from when a call was sent to its end, likewise.",
            ended(&snapshot.service_times(), |others| phase.attributes(others)),
        ));
        for timing in Timing::ALL {
            let censored: Cow<'_, Censored> = match timing {
                Timing::FirstByte => Cow::Owned(snapshot.first_byte_times().clone().into()),
                timing if is_plain(timing) => Cow::Borrowed(snapshot.times.get(timing)),
                _ => continue,
            };
            let points = ended(&censored, |others| phase.attributes(others));
            metrics.push(times(format!("brunt.{}.duration", timing.key()), timing.sentence(), points));
        }
    }
}

/// Exemplars: the slowest traced calls of a second, which ended at `ended_unix_ns`.
fn exemplars(second: &Live, ended_unix_ns: u64) -> Vec<Exemplar> {
    let exemplar = |call: &TracedCall| {
        let after_ns = call.due_ns.saturating_add(call.took_ns);
        // The drain has another clock.
        let is_known = second.phase == Phase::Measured;
        let before_ns = if is_known { second.elapsed_ns.saturating_sub(after_ns) } else { 0 };
        let at_unix_ns = ended_unix_ns.saturating_sub(before_ns);
        Exemplar { value: call.took_ns, at_unix_ns, trace_id: call.trace_id.clone() }
    };
    second.snapshot.slowest.calls().iter().map(exemplar).collect()
}

/// Whether a timing is exported as recorded. The others are parts of response and service times.
const fn is_plain(timing: Timing) -> bool {
    matches!(
        timing,
        Timing::Connect
            | Timing::Tls
            | Timing::Handshake
            | Timing::FirstMessage
            | Timing::MessageGap
            | Timing::LastMessage
            | Timing::EachMessage
            | Timing::Lag
            | Timing::Receiving
    )
}

/// The phase, an attribute of all points of a second.
#[derive(Debug, Clone, Copy)]
struct PhaseOf(Phase);

impl PhaseOf {
    fn attributes(self, others: impl IntoIterator<Item = Attribute>) -> Attributes {
        let name = match self.0 {
            Phase::Warmup => "warmup",
            Phase::Measured => "measured",
            Phase::Drain => "drain",
        };
        std::iter::once((PHASE.into(), name.into())).chain(others).collect()
    }

    fn point(self, others: impl IntoIterator<Item = Attribute>, n: u64) -> MetricPoint<Number> {
        MetricPoint::new(self.attributes(others), Number::Whole(n))
    }
}

fn counter(
    name: &'static str,
    unit: &'static str,
    description: &'static str,
    points: impl IntoIterator<Item = MetricPoint<Number>>,
) -> Metric {
    Metric::new(name, unit, description, Data::counter(points.into_iter().collect()))
}

fn times(name: impl Into<Cow<'static, str>>, description: &'static str, points: Vec<MetricPoint<Histogram>>) -> Metric {
    Metric::new(name, "s", description, Data::times(points))
}

/// Points for successful calls, for unsuccessful ones, and for those that never ended.
fn by_outcome(times: &Censored, attributes: impl Fn(Vec<Attribute>) -> Attributes) -> Vec<MetricPoint<Histogram>> {
    let parts = [(&times.known, None), (&times.failed, Some(ANY_ERROR)), (&times.bounds, Some(UNFINISHED))];
    let parts = parts.into_iter().filter(|(histogram, _)| !histogram.is_empty());
    let error =
        |error: Option<&'static str>| error.map(|error| (ERROR_TYPE.into(), error.into())).into_iter().collect();
    parts.map(|(histogram, of)| MetricPoint::new(attributes(error(of)), histogram.clone())).collect()
}

/// A point for calls that ended, whatever their outcome, and one for those that did not.
fn ended(times: &Censored, attributes: impl Fn(Vec<Attribute>) -> Attributes) -> Vec<MetricPoint<Histogram>> {
    let mut all = times.known.clone();
    all.merge(&times.failed);
    by_outcome(&Censored { known: all, failed: Histogram::new(), bounds: times.bounds.clone() }, attributes)
}

/// The metric of a counter of the catalogue.
fn of_counter(counter: Counter, snapshot: &Snapshot, phase: PhaseOf) -> Metric {
    let value = snapshot.numbers.get(counter);
    let key = counter.key();
    let name = ["_ns", "_bytes", "_ratio"].into_iter().find_map(|unit| key.strip_suffix(unit)).unwrap_or(key);
    let (unit, number) = match counter.unit() {
        Unit::Calls => ("{call}", Number::Whole(value)),
        Unit::Messages => ("{message}", Number::Whole(value)),
        Unit::Connections => ("{connection}", Number::Whole(value)),
        Unit::Packets => ("{packet}", Number::Whole(value)),
        Unit::Bytes => ("By", Number::Whole(value)),
        Unit::Nanoseconds => ("s", Number::Real(value as f64 / 1e9)),
        Unit::Ratio => ("1", Number::Real(snapshot.numbers.ratio(counter))),
    };
    let point = MetricPoint::new(phase.attributes([]), number);
    let data = match counter.joins() {
        Merge::Sum => Data::counter(vec![point]),
        Merge::Max => Data::Gauge(vec![MetricPoint::new(point.attributes, number.real())]),
    };
    Metric::new(format!("brunt.{name}"), unit, counter.sentence(), data)
}

/// The gauges at the second's end.
fn gauges(second: &Live, phase: PhaseOf) -> Vec<Metric> {
    let gauge = |name: &'static str, unit: &'static str, description: &'static str, value: f64| {
        Metric::new(name, unit, description, Data::Gauge(vec![MetricPoint::new(phase.attributes([]), value)]))
    };
    let mut all = vec![
        gauge("brunt.connections.open", "{connection}", "Connections that are open.", second.open_connections as f64),
        gauge("brunt.calls.in_flight", "{call}", "Calls in flight.", second.in_flight as f64),
        gauge("brunt.calls.waiting", "{call}", "Calls that were due and are not sent.", second.waiting as f64),
        gauge(
            "brunt.calls.oldest",
            "s",
            "For how long the oldest open call has been due.",
            second.oldest_ns as f64 / 1e9,
        ),
    ];
    let watched = second.snapshot.watched.iter().filter_map(|(name, figure)| {
        let name: Attribute = (WATCH.into(), name.to_owned().into());
        Some(MetricPoint::new(phase.attributes([name]), figure.last()?))
    });
    let watched: Vec<_> = watched.collect();
    if !watched.is_empty() {
        let description = "Figures that are watched beside the run, each in its own unit.";
        all.push(Metric::new("brunt.watched", "1", description, Data::Gauge(watched)));
    }
    all.extend(second.users.map(|users| gauge("brunt.users", "{user}", "Virtual users alive.", users as f64)));
    all
}
