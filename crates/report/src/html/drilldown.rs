//! Calls over time by name, status and reason of failure, in columns as charts draw them.

use brunt_record::drilldown::{self, Stretch, Tracks};
use brunt_record::outcome::Failure;
use brunt_record::packed::Packed;

/// Calls over time by a common property. A kind that the series already has is empty: statuses where there is one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Drilldown {
    /// Calls by request name.
    pub(super) requests: Kind<RequestTrack>,
    /// Calls by tag, `key=value`.
    pub(super) tags: Kind<RequestTrack>,
    /// Answers by status.
    pub(super) statuses: Kind<StatusTrack>,
    /// Failures by reason.
    pub(super) failures: Kind<FailureTrack>,
}

/// Tracks over common stretches, which may be longer than those of the series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kind<T> {
    /// When each stretch begins, after the measured part's beginning.
    pub(super) start_ns: Vec<u64>,
    /// How long it is.
    pub(super) length_ns: Vec<u64>,
    /// Each with a figure for every stretch.
    pub(super) tracks: Vec<T>,
}

impl<T> Default for Kind<T> {
    fn default() -> Self {
        Self { start_ns: Vec::new(), length_ns: Vec::new(), tracks: Vec::new() }
    }
}

/// Calls with one name or tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestTrack {
    /// The name, or the tag.
    pub(super) name: String,
    /// Calls that ended.
    pub(super) ended: Vec<u64>,
    /// Calls among them that are not a success.
    pub(super) not_ok: Vec<u64>,
    /// The median of their response times, within 0.8%; `None` where no call ended.
    pub(super) p50_ns: Vec<Option<u64>>,
    /// Their 99th percentile, likewise.
    pub(super) p99_ns: Vec<Option<u64>>,
}

/// Answers with one status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StatusTrack {
    /// The status.
    pub(super) status: u16,
    /// Answers.
    pub(super) answers: Vec<u64>,
}

/// Failures with one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FailureTrack {
    /// The failure.
    pub(super) failure: Failure,
    /// The reason; empty where there was none, or it was not kept.
    pub(super) reason: String,
    /// Calls that failed so.
    pub(super) calls: Vec<u64>,
}

impl<T> Kind<T> {
    fn from_tracks<K, C>(all: &Tracks<K, C>, track: impl Fn(&drilldown::Track<K, C>) -> T) -> Self
    where
        K: PartialEq,
        C: drilldown::Cell,
    {
        let stretches = all.stretches();
        Self {
            start_ns: stretches.iter().map(|Stretch { start_ns, .. }| *start_ns).collect(),
            length_ns: stretches.iter().map(|Stretch { length_ns, .. }| *length_ns).collect(),
            tracks: all.tracks().iter().map(track).collect(),
        }
    }
}

impl Drilldown {
    /// The drilldown of a series.
    pub(super) fn new(all: &drilldown::Drilldown) -> Self {
        let statuses =
            Kind::from_tracks(&all.statuses, |track| StatusTrack { status: track.key, answers: track.cells.clone() });
        Self {
            requests: Kind::from_tracks(&all.requests, RequestTrack::from_track),
            tags: Kind::from_tracks(&all.tags, RequestTrack::from_track),
            statuses: if statuses.tracks.len() > 1 { statuses } else { Kind::default() },
            failures: Kind::from_tracks(&all.failures, |track| FailureTrack {
                failure: track.key.failure,
                reason: track.key.reason.clone(),
                calls: track.cells.clone(),
            }),
        }
    }
}

impl RequestTrack {
    fn from_track(track: &drilldown::Track<String, drilldown::Calls>) -> Self {
        let quantile = |q: f64| track.cells.iter().map(move |calls| Packed::quantile(&calls.response, q)).collect();
        Self {
            name: track.key.clone(),
            ended: track.cells.iter().map(|calls| calls.ended).collect(),
            not_ok: track.cells.iter().map(|calls| calls.not_ok).collect(),
            p50_ns: quantile(0.5),
            p99_ns: quantile(0.99),
        }
    }
}
