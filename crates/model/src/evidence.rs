//! What a decision needs to know of each run that it rests on.

use serde::{Deserialize, Serialize};

use crate::histogram::AtLeast;
use crate::series::Point;
use crate::summary::{Ending, QUANTILES, Summary};
use crate::threshold::ThresholdResult;
use crate::verdict::Judgement;

/// The figures of one run, without its histograms. Times are response times: from due to end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// When it began, in milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// How long its measured part took, in nanoseconds.
    pub measured_ns: u64,
    /// Calls that were due.
    pub due: u64,
    /// Calls that were answered, with whatever status.
    pub answered: u64,
    /// Calls that are a success.
    pub ok: u64,
    /// Calls that are not.
    pub failed: u64,
    /// `failed` over `due`, 0 to 1.
    pub error_ratio: f64,
    /// Calls answered a second.
    pub answered_per_s: f64,
    /// The mean, in nanoseconds; none where nothing was answered.
    pub mean_ns: Option<AtLeast<f64>>,
    /// The median, in nanoseconds.
    pub p50_ns: Option<AtLeast<u64>>,
    /// The 90th percentile, in nanoseconds.
    pub p90_ns: Option<AtLeast<u64>>,
    /// The 99th percentile, in nanoseconds.
    pub p99_ns: Option<AtLeast<u64>>,
    /// The 99.9th percentile, in nanoseconds.
    pub p99_9_ns: Option<AtLeast<u64>>,
    /// The median from sent to end, in nanoseconds.
    pub service_p50_ns: Option<AtLeast<u64>>,
    /// Calls that were due while no connection was free.
    pub waited_for_connection: u64,
    /// By which share of the calls due the target fell behind; see [`falls_behind`].
    pub behind_ratio: f64,
    /// Whether the figures can be believed.
    pub judgement: Judgement,
    /// The verdict in a line.
    pub verdict: String,
    /// Each threshold of its plan, and whether it held.
    pub thresholds: Vec<ThresholdResult>,
    /// Why calls failed, most often; empty where none did.
    pub failure: String,
    /// Whether it ended early.
    pub interrupted: bool,
}

impl Evidence {
    /// What `summary` says.
    pub fn of(summary: &Summary) -> Self {
        let response = summary.times.response.as_ref().filter(|_| summary.answered());
        let quantile = |name: &str| {
            let at = QUANTILES.iter().position(|(known, _)| *known == name)?;
            response?.quantiles.get(at).copied()
        };
        let service = summary.times.service.as_ref().filter(|_| summary.answered());
        Self {
            started_unix_ms: summary.run.started_unix_ms,
            measured_ns: summary.run.measured_ns,
            due: summary.total.due,
            answered: summary.total.statuses.total(),
            ok: summary.total.due.saturating_sub(summary.not_ok),
            failed: summary.not_ok,
            error_ratio: summary.error_rate,
            answered_per_s: summary.rates.answered_per_s,
            mean_ns: response.map(|times| times.mean),
            p50_ns: quantile("p50"),
            p90_ns: quantile("p90"),
            p99_ns: quantile("p99"),
            p99_9_ns: quantile("p99.9"),
            service_p50_ns: service.and_then(|times| times.quantiles.first().copied()),
            waited_for_connection: summary.total.waited_for_connection,
            behind_ratio: falls_behind(summary.run.series.points()),
            judgement: summary.verdict.judgement,
            verdict: summary.verdict.sentence(),
            thresholds: summary.thresholds.clone(),
            failure: worst_failure(summary),
            interrupted: summary.run.ending == Ending::Interrupted,
        }
    }

    /// Whether any call was answered.
    pub fn is_answered(&self) -> bool {
        self.answered > 0
    }

    /// Whether every threshold held.
    pub fn held(&self) -> bool {
        self.thresholds.iter().all(|result| result.held)
    }

    /// Whether the generator had room to spare.
    pub fn is_trustworthy(&self) -> bool {
        self.judgement == Judgement::Trustworthy
    }
}

/// Such as `timeout: no answer in 10s`, or `status 503`.
fn worst_failure(summary: &Summary) -> String {
    let failures = &summary.total.failures;
    let failed = failures.counted().map(|(failure, n)| {
        let reason = failures.reasons(failure).first().map_or(String::new(), |(reason, _)| format!(": {reason}"));
        (n, format!("{}{reason}", failure.name()))
    });
    let ok = summary.ok_status();
    let statuses = summary.total.statuses.sorted().into_iter();
    let refused = statuses.filter(|(status, _)| !ok.holds(*status)).map(|(status, n)| (n, format!("status {status}")));
    let rest = [(summary.total.unfinished, "unfinished".to_owned()), (summary.total.unsent, "unsent".to_owned())];
    let all = failed.chain(refused).chain(rest).filter(|(n, _)| *n > 0);
    all.max_by_key(|(n, _)| *n).map_or(String::new(), |(_, text)| text)
}

/// By which share of the calls due the target falls further and further behind, 0 to 1: calls that were due and did not
/// end, over calls that were due, in all of the measured part but its first third. 0 where calls come and go as fast.
///
/// What is in the target by chance comes and goes: of the growth, three times the square root of what was there before
/// (the standard deviation of a Poisson count) is taken off.
pub fn falls_behind(points: &[Point]) -> f64 {
    let length: u64 = points.iter().map(|point| point.length_ns).sum();
    let (mut open, mut before, mut due) = (0.0_f64, None, 0.0);
    for point in points {
        if point.start_ns >= length / 3 {
            before.get_or_insert(open);
            due += point.due as f64;
        }
        open += point.due as f64 - point.response.count() as f64;
    }
    // A run of one point has no first third to tell the rest from.
    let Some(before) = before.filter(|_| due > 0.0 && points.first().is_some_and(|first| first.length_ns < length))
    else {
        return 0.0;
    };
    let growth = open - before - 3.0 * (before.max(0.0) + 1.0).sqrt();
    (growth / due).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SECOND_NS;
    use crate::outcome::OkStatus;
    use crate::series::Series;
    use crate::snapshot::Snapshot;
    use crate::summary::tests::run;

    /// By which share a target falls behind of which each second so many calls are due and end.
    fn behind(seconds: &[(u64, u64)]) -> f64 {
        let mut series = Series::default();
        for &(due, ended) in seconds {
            let mut snapshot = Snapshot { due, ..Snapshot::default() };
            snapshot.response.known.record_n(1_000_000, ended);
            series.push(SECOND_NS, &snapshot, &OkStatus::default());
        }
        falls_behind(series.points())
    }

    #[test]
    fn what_ends_as_fast_as_it_is_due_does_not_fall_behind() {
        assert_eq!(behind(&[(1000, 1000); 6]), 0.0);
        assert_eq!(behind(&[(1000, 900), (1000, 1000), (1000, 1000), (1000, 990), (1000, 1010)]), 0.0, "filled once");
        assert_eq!(behind(&[(1000, 500)]), 0.0, "of one second nothing can be said");
        assert_eq!(behind(&[]), 0.0);
    }

    #[test]
    fn a_target_below_the_rate_falls_behind_by_what_is_missing() {
        let share = behind(&[(10_000, 9_000); 6]);
        assert!((0.09..=0.1).contains(&share), "{share}");
        assert!(behind(&[(10_000, 9_900); 6]) > 0.005);
    }

    #[test]
    fn evidence_says_what_the_summary_says() {
        let evidence = Evidence::of(&Summary::of(run()));
        assert_eq!((evidence.due, evidence.ok, evidence.failed), (2000, 1998, 2));
        assert_eq!(evidence.p50_ns.map(|p50| p50.value / 1000), Some(1000));
        assert_eq!(evidence.failure, "status 503");
        assert!(evidence.is_answered() && evidence.held() && evidence.is_trustworthy());
    }

    #[test]
    fn how_soon_calls_failed_is_no_latency() {
        let mut run = run();
        run.measured.statuses = crate::snapshot::Statuses::default();
        assert_eq!(Evidence::of(&Summary::of(run)).p99_ns, None);
    }
}
