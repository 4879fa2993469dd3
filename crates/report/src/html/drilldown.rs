//! Calls over time by name, status and reason of failure, as the page shows them: rates and times.

use schemars::JsonSchema;
use serde::Serialize;

use super::distribution::significant;
use crate::json::{self, Document, Kind};

/// Calls over time by request name, tag, status and reason of failure.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Drilldown<'a> {
    requests: OverTime<Request<'a>>,
    tags: OverTime<Request<'a>>,
    statuses: OverTime<Counted>,
    /// By reason.
    failures: OverTime<Counted>,
    /// Each failure with all of its reasons.
    whole_failures: OverTime<Counted>,
}

/// Tracks over common stretches.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "{T}s")]
struct OverTime<T> {
    start_ms: Vec<u64>,
    length_ms: Vec<u64>,
    tracks: Vec<T>,
}

/// Calls with one name.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RequestTrack")]
struct Request<'a> {
    name: &'a str,
    ended_per_s: Vec<f64>,
    not_ok_per_s: Vec<f64>,
    p50_ns: &'a [Option<u64>],
    p99_ns: &'a [Option<u64>],
}

/// Calls that ended in one way.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CountedTrack")]
struct Counted {
    /// As the tables of outcomes have it.
    name: String,
    /// Whether they are a success.
    ok: bool,
    /// How many they are in all.
    count: u64,
    per_s: Vec<f64>,
}

impl<'a> Drilldown<'a> {
    pub(super) fn from_document(document: &'a Document) -> Option<Self> {
        let json::Drilldown { requests, tags, statuses, failures } = document.drilldown.as_ref()?;
        let names = &document.outcomes.status_names;
        let status = |track: &json::StatusTrack| {
            let name = names.get(&track.status).map_or(String::new(), |name| format!(" {name}"));
            Counted {
                name: format!("{}{name}", track.status),
                ok: document.plan.ok_status.holds(track.status),
                count: track.answers.iter().sum(),
                per_s: per_s(&track.answers, statuses),
            }
        };
        let failure = |track: &json::FailureTrack| Counted {
            name: match track.reason.as_str() {
                "" => track.failure.clone(),
                reason => format!("{}: {reason}", track.failure),
            },
            ok: false,
            count: track.calls.iter().sum(),
            per_s: per_s(&track.calls, failures),
        };
        Some(Self {
            requests: OverTime::of_calls(requests),
            tags: OverTime::of_calls(tags),
            statuses: OverTime::from_kind(statuses, status),
            failures: OverTime::from_kind(failures, failure),
            whole_failures: OverTime::of_whole(failures),
        })
    }
}

impl<'a> OverTime<Request<'a>> {
    fn of_calls(kind: &'a Kind<json::RequestTrack>) -> Self {
        Self::from_kind(kind, |track| Request {
            name: &track.name,
            ended_per_s: per_s(&track.ended, kind),
            not_ok_per_s: per_s(&track.not_ok, kind),
            p50_ns: &track.p50_ns,
            p99_ns: &track.p99_ns,
        })
    }
}

impl OverTime<Counted> {
    /// Failures by name alone, each the sum over its reasons.
    fn of_whole(kind: &Kind<json::FailureTrack>) -> Self {
        let mut sums: Vec<(&str, Vec<u64>)> = Vec::new();
        for track in &kind.tracks {
            match sums.iter_mut().find(|(failure, _)| *failure == track.failure) {
                Some((_, sum)) => sum.iter_mut().zip(&track.calls).for_each(|(sum, n)| *sum += n),
                None => sums.push((&track.failure, track.calls.clone())),
            }
        }
        let counted = |(failure, calls): (&str, Vec<u64>)| Counted {
            name: failure.to_owned(),
            ok: false,
            count: calls.iter().sum(),
            per_s: per_s(&calls, kind),
        };
        let OverTime { start_ms, length_ms, .. } = OverTime::from_kind(kind, |_| ());
        Self { start_ms, length_ms, tracks: sums.into_iter().map(counted).collect() }
    }
}

impl<T> OverTime<T> {
    fn from_kind<'a, S>(kind: &'a Kind<S>, track: impl Fn(&'a S) -> T) -> Self {
        let ms = |all: &[u64]| all.iter().map(|ns| ns / 1_000_000).collect();
        Self {
            start_ms: ms(&kind.start_ns),
            length_ms: ms(&kind.length_ns),
            tracks: kind.tracks.iter().map(track).collect(),
        }
    }
}

fn per_s<T>(counts: &[u64], kind: &Kind<T>) -> Vec<f64> {
    let each = counts.iter().zip(&kind.length_ns);
    each.map(|(&n, &ns)| if ns > 0 { significant(n as f64 * 1e9 / ns as f64, 4) } else { 0.0 }).collect()
}
