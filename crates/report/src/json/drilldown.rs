//! The document's calls over time, by name, status and reason of failure.

use brunt_record::drilldown::{self, Stretch, Tracks};
use brunt_record::outcome::Failure;
use brunt_record::packed::Packed;
use serde::{Deserialize, Serialize};

/// Calls over time by a common property. A kind that the series already has is missing: statuses where there is one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Drilldown {
    /// Calls by request name.
    #[serde(default, skip_serializing_if = "Kind::is_empty")]
    pub requests: Kind<RequestTrack>,
    /// Calls by tag, `key=value`.
    #[serde(default, skip_serializing_if = "Kind::is_empty")]
    pub tags: Kind<RequestTrack>,
    /// Answers by status.
    #[serde(default, skip_serializing_if = "Kind::is_empty")]
    pub statuses: Kind<StatusTrack>,
    /// Failures by reason.
    #[serde(default, skip_serializing_if = "Kind::is_empty")]
    pub failures: Kind<FailureTrack>,
}

/// Tracks over common stretches, which may be longer than those of the series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "{T}s"))]
pub struct Kind<T> {
    /// When each stretch begins, after the measured part's beginning.
    pub start_ns: Vec<u64>,
    /// How long it is.
    pub length_ns: Vec<u64>,
    /// Each with a figure for every stretch.
    pub tracks: Vec<T>,
}

impl<T> Default for Kind<T> {
    fn default() -> Self {
        Self { start_ns: Vec::new(), length_ns: Vec::new(), tracks: Vec::new() }
    }
}

/// Calls with one name or tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestTrack {
    /// The name, or the tag.
    pub name: String,
    /// Calls that ended.
    pub ended: Vec<u64>,
    /// Calls among them that are not a success.
    pub not_ok: Vec<u64>,
    /// The median of their response times, within 0.8 %; `null` where no call ended.
    pub p50_ns: Vec<Option<u64>>,
    /// Their 99th percentile, likewise.
    pub p99_ns: Vec<Option<u64>>,
}

/// Answers with one status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatusTrack {
    /// The status.
    pub status: u16,
    /// Answers.
    pub answers: Vec<u64>,
}

/// Failures with one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FailureTrack {
    /// The failure.
    pub failure: String,
    /// The reason; empty where there was none, or it was not kept.
    pub reason: String,
    /// Calls that failed so.
    pub calls: Vec<u64>,
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

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.tracks.is_empty()
    }
}

impl Drilldown {
    /// The drilldown of a series, if it has more than the series.
    pub(super) fn from_recorded(all: &drilldown::Drilldown) -> Option<Self> {
        let statuses =
            Kind::from_tracks(&all.statuses, |track| StatusTrack { status: track.key, answers: track.cells.clone() });
        let drilldown = Self {
            requests: Kind::from_tracks(&all.requests, RequestTrack::from_track),
            tags: Kind::from_tracks(&all.tags, RequestTrack::from_track),
            statuses: if statuses.tracks.len() > 1 { statuses } else { Kind::default() },
            failures: Kind::from_tracks(&all.failures, |track| FailureTrack {
                failure: track.key.failure.name().to_owned(),
                reason: track.key.reason.clone(),
                calls: track.cells.clone(),
            }),
        };
        let names_are_empty = drilldown.requests.is_empty() && drilldown.tags.is_empty();
        let is_empty = names_are_empty && drilldown.statuses.is_empty() && drilldown.failures.is_empty();
        (!is_empty).then_some(drilldown)
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

impl<T> Kind<T> {
    fn restored<K, C>(&self, track: impl Fn(&T) -> Option<drilldown::Track<K, C>>) -> Tracks<K, C>
    where
        K: PartialEq,
        C: drilldown::Cell,
    {
        let stretches = self.start_ns.iter().zip(&self.length_ns);
        let stretches = stretches.map(|(&start_ns, &length_ns)| Stretch { start_ns, length_ns }).collect();
        Tracks::restored(stretches, self.tracks.iter().filter_map(track).collect())
    }
}

impl Drilldown {
    /// The recorded form, as far as it was written.
    pub(super) fn restored(&self) -> drilldown::Drilldown {
        drilldown::Drilldown {
            requests: self.requests.restored(|track| Some(track.restored())),
            tags: self.tags.restored(|track| Some(track.restored())),
            statuses: self
                .statuses
                .restored(|track| Some(drilldown::Track { key: track.status, cells: track.answers.clone() })),
            failures: self.failures.restored(|track| {
                let failure = Failure::from_name(&track.failure)?;
                let key = drilldown::FailureCause { failure, reason: track.reason.clone() };
                Some(drilldown::Track { key, cells: track.calls.clone() })
            }),
        }
    }
}

impl RequestTrack {
    fn restored(&self) -> drilldown::Track<String, drilldown::Calls> {
        let counts = self.ended.iter().zip(&self.not_ok);
        let times = self.p50_ns.iter().zip(&self.p99_ns);
        let cells = counts
            .zip(times)
            .map(|((&ended, &not_ok), (&p50, &p99))| drilldown::Calls::restored(ended, not_ok, p50, p99));
        drilldown::Track { key: self.name.clone(), cells: cells.collect() }
    }
}
