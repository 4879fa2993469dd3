//! The figures of a run that a decision rests on.

use brunt_judge::distribution::Distribution;
use brunt_judge::summary::Summary;
use brunt_judge::thresholds::ThresholdResult;
use brunt_judge::verdict::Judgement;
use brunt_judge::watched::WatchedSummary;
use brunt_plan::plan::{Load, Plan};
use brunt_plan::scenario::Population;
use brunt_record::catalogue::Counter;
use brunt_record::figures::{OwnKind, OwnStatistic};
use brunt_record::histogram::{AtLeast, Percentile};
use brunt_record::machine::Machine;
use brunt_record::recording::Ending;
use brunt_record::series::Point;
use serde::{Deserialize, Serialize};

use crate::outline::Outline;

/// The figures of one run, without its histograms. Times are response times: from due to end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[expect(clippy::struct_excessive_bools, reason = "independent findings, each a field of the JSON result")]
pub struct Evidence {
    /// When it began, in milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// How long its measured part took, in nanoseconds.
    pub measured_ns: u64,
    /// The machine that made it, or that its agents' controller ran on; left out where it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// Agents that made it, from its beginning to its end; 0 and left out where this machine did.
    #[serde(default, skip_serializing_if = "is_none")]
    pub agents: u64,
    /// Calls that were due.
    pub due: u64,
    /// Calls that were answered, with whatever status.
    pub answered: u64,
    /// Calls whose answer was not the expected one. They have no status.
    #[serde(default, skip_serializing_if = "is_none")]
    pub mismatched: u64,
    /// Calls that are a success.
    pub ok: u64,
    /// Calls that are not.
    pub failed: u64,
    /// `failed` over `due`, 0 to 1.
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0, max = 1.0)))]
    #[serde(rename = "error_ratio")]
    pub error_rate: f64,
    /// Calls a second that were answered within the measured time, whenever they were due.
    pub answered_per_s: f64,
    /// Calls a second that ended within it with success: the rate that decides.
    #[serde(default)]
    pub ok_per_s: f64,
    /// The mean, in nanoseconds; `None` where nothing was answered.
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
    /// Calls that were due while no connection was free; of a script, those of iterations for which no user was free.
    pub waited_for_connection: u64,
    /// By which share of the calls due, or of a script's iterations, the target fell behind.
    pub behind_ratio: f64,
    /// Response percentiles that the generator's own delays spoil.
    pub unreliable: Vec<Percentile>,
    /// Whether they leave the mean response time alone.
    pub is_mean_reliable: bool,
    /// Whether the target saw the load asked for: calls were sent in time, and none left out for want of ports or descriptors.
    pub is_load_as_asked: bool,
    /// Whether the calls answered a second are the target's doing, and not a lower bound of it.
    pub is_rate_believed: bool,
    /// Whether the figures can be believed.
    pub judgement: Judgement,
    /// The verdict in a line.
    pub verdict: String,
    /// Each threshold of its plan, and whether it held.
    pub thresholds: Vec<ThresholdResult>,
    /// The most frequent failure, or the reason for which no call could be made; empty without one.
    pub failure: String,
    /// Whether it ended early.
    pub interrupted: bool,
    /// What was watched beside it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watched: Vec<WatchedSummary>,
    /// The figures with which its protocol's report begins, and those that its charts have: p50 and p99 of a time, a second of a counter, the
    /// share of a rate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leading: Vec<Leading>,
    /// Its latency spectrum, and its p99 over time.
    #[serde(default, skip_serializing_if = "Outline::is_empty")]
    pub outline: Outline,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes what it may leave out by reference")]
const fn is_none(n: &u64) -> bool {
    *n == 0
}

impl Evidence {
    /// The evidence in `summary`.
    pub fn from_summary(summary: &Summary) -> Self {
        let response = summary.times.response.as_ref().filter(|_| summary.answered());
        let quantile = |percentile| response?.quantile(percentile);
        let service = summary.times.service.as_ref().filter(|_| summary.answered());
        Self {
            started_unix_ms: summary.run.started_unix_ms,
            measured_ns: summary.run.measured_ns,
            machine: summary.run.machine.clone(),
            agents: summary.run.agents.iter().filter(|agent| !agent.is_lost()).count() as u64,
            due: summary.total.numbers.get(Counter::Due),
            answered: summary.total.statuses.total(),
            mismatched: summary.total.failures.other_answers(),
            ok: summary.total.numbers.get(Counter::Due).saturating_sub(summary.not_ok),
            failed: summary.not_ok,
            error_rate: summary.error_rate,
            answered_per_s: summary.rates.answered_per_s,
            ok_per_s: summary.rates.ok_per_s,
            mean_ns: response.map(|times| times.mean),
            p50_ns: quantile(Percentile::P50),
            p90_ns: quantile(Percentile::P90),
            p99_ns: quantile(Percentile::P99),
            p99_9_ns: quantile(Percentile::P99_9),
            service_p50_ns: service.and_then(|times| times.quantile(Percentile::P50)),
            waited_for_connection: waited(summary),
            behind_ratio: behind(summary),
            unreliable: unreliable(response),
            is_mean_reliable: response.and_then(|r| r.mean_interval).is_none_or(|mean| !mean.is_spoiled),
            is_load_as_asked: summary.verdict.is_load_as_asked,
            is_rate_believed: summary.verdict.is_rate_believed,
            judgement: summary.verdict.judgement,
            verdict: summary.verdict.sentence.to_string(),
            thresholds: summary.thresholds.clone(),
            failure: worst_failure(summary),
            interrupted: summary.run.ending == Ending::Interrupted,
            watched: summary.watched.clone(),
            leading: leading(summary),
            outline: Outline::new(&summary.total.response_times(), summary.run.series.points()),
        }
    }

    /// Whether any call was answered.
    pub fn is_answered(&self) -> bool {
        self.answered + self.mismatched > 0
    }

    /// Whether this percentile of the response time can be believed.
    pub fn is_reliable(&self, percentile: Percentile) -> bool {
        !self.unreliable.contains(&percentile)
    }

    /// A percentile of the response time, in nanoseconds; `None` where nothing was answered, or where it is not kept.
    pub const fn quantile(&self, percentile: Percentile) -> Option<AtLeast<u64>> {
        match percentile {
            Percentile::P50 => self.p50_ns,
            Percentile::P90 => self.p90_ns,
            Percentile::P99 => self.p99_ns,
            Percentile::P99_9 => self.p99_9_ns,
            Percentile::P75 | Percentile::P95 | Percentile::P99_99 => None,
        }
    }

    /// The first threshold that did not hold, one of them that brunt's own delays cannot have decided where there is one.
    pub fn failed_threshold(&self) -> Option<&ThresholdResult> {
        let mut failed = self.thresholds.iter().filter(|result| !result.held);
        failed.clone().find(|result| result.sure).or_else(|| failed.next())
    }

    /// Whether the generator had room to spare.
    pub fn is_trustworthy(&self) -> bool {
        self.judgement == Judgement::Trustworthy
    }
}

/// A figure of a protocol's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Leading {
    /// Such as `ttft p99`.
    pub name: String,
    /// The unit of its value: `ms`, `tokens/s`; `ratio` for a share, 0 to 1.
    pub unit: String,
    /// In its unit.
    pub value: f64,
    /// Whether the true value may be larger; left out where it is not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// The figure that it is of: `ttft`.
    pub figure: String,
    /// What it is of that figure.
    pub statistic: OwnStatistic,
    /// How often something was recorded.
    #[serde(default, skip_serializing_if = "is_none")]
    pub count: u64,
    /// Whether charts have it; left out where they do not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_drawn: bool,
    /// Whether it has a knee over the load; left out where it has none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_knee: bool,
}

/// The figures of the protocol's own with which reports begin, and those that charts have.
pub fn leading(summary: &Summary) -> Vec<Leading> {
    let chosen = summary.breakdown.own.iter().filter(|own| own.leads || own.is_drawn);
    let each = chosen.flat_map(|own| {
        let figures = &own.figures;
        OwnStatistic::of_kind(figures.kind).iter().filter_map(move |statistic| {
            let value = statistic.in_run(figures, own.per_s)?;
            let unit = match figures.kind {
                OwnKind::Counter => "",
                OwnKind::Rate => "ratio",
                OwnKind::Trend | OwnKind::Gauge => figures.unit.as_str(),
            };
            Some(Leading {
                name: statistic.of_figure(&own.name),
                unit: unit.to_owned(),
                value: value.value,
                at_least: value.at_least,
                figure: own.name.clone(),
                statistic: *statistic,
                count: figures.count,
                is_drawn: own.is_drawn,
                has_knee: own.has_knee,
            })
        })
    });
    // A counter that never counted has no record: its value is 0.
    let is_known = |name: &str| summary.breakdown.own.iter().any(|own| own.name == name);
    let declared = summary.plan.own.iter().filter(|figure| figure.leads || figure.drawn);
    let nothing =
        declared.filter(|figure| figure.kind == OwnKind::Counter && !is_known(&figure.name)).map(|figure| Leading {
            name: OwnStatistic::Rate.of_figure(&figure.name),
            unit: String::new(),
            value: 0.0,
            at_least: false,
            figure: figure.name.clone(),
            statistic: OwnStatistic::Rate,
            count: 0,
            is_drawn: figure.drawn,
            has_knee: figure.has_knee,
        });
    each.chain(nothing.filter(|_| summary.answered())).collect()
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
    let rest = [
        (summary.total.numbers.get(Counter::Unfinished), "unfinished".to_owned()),
        (summary.total.numbers.get(Counter::Unsent), "unsent".to_owned()),
        (summary.total.numbers.get(Counter::Unknown), "unknown".to_owned()),
    ];
    let all = failed.chain(refused).chain(rest).filter(|(n, _)| *n > 0);
    match (all.max_by_key(|(n, _)| *n), &summary.run.ending) {
        (Some((_, text)), _) => text,
        // Before a connection is made no call is due, and none fails.
        (None, Ending::Unreached(reason)) => reason.clone(),
        (None, _) if summary.total.numbers.get(Counter::Due) == 0 => "no call was due".to_owned(),
        (None, _) => String::new(),
    }
}

/// Percentiles whose own delays spoil them.
fn unreliable(response: Option<&Distribution>) -> Vec<Percentile> {
    let each = response.into_iter().flat_map(|response| &response.quantiles);
    each.filter(|quantile| quantile.is_spoiled()).map(|quantile| quantile.name).collect()
}

/// Calls of an iteration of a script, on average; at least 1.
fn calls_each(summary: &Summary) -> f64 {
    let begun = iterations(summary).0;
    (summary.total.numbers.get(Counter::Due) as f64 / begun.max(1) as f64).max(1.0)
}

/// Iterations of a script that began, and those for which no user was free.
fn iterations(summary: &Summary) -> (u64, u64) {
    let all = summary.total.figures.scenarios.iter().map(|(_, of)| (of.iterations_begun(), of.not_admitted));
    all.fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1))
}

/// Calls that found no connection, or whose iteration found no user.
fn waited(summary: &Summary) -> u64 {
    if summary.plan.scenarios.is_none() {
        return summary.total.numbers.get(Counter::WaitedForConnection);
    }
    (iterations(summary).1 as f64 * calls_each(summary)) as u64
}

/// By which share of its load the target falls behind, 0 to 1: [`falls_behind`], and of a script whose iterations begin at a rate
/// the same of its calls while they do, times the calls of an iteration. A user that waits makes no further call, so that a
/// backlog of one call is one of an iteration. Iterations for which no user was free are behind as well.
fn behind(summary: &Summary) -> f64 {
    let (plan, points) = (&summary.plan, summary.run.series.points());
    let Some(scenarios) = &plan.scenarios else { return falls_behind(plan, points) };
    if !scenarios.populations.iter().all(Population::is_open) {
        return 0.0;
    }
    let until_ns = plan.load_ns().unwrap_or(0);
    let loaded = points.iter().take_while(|point| point.start_ns + point.length_ns <= until_ns).count();
    let points = points.get(..loaded).unwrap_or_default();
    let is_random = scenarios.populations.iter().any(|population| population.arrivals.is_random());
    let slower = if is_random { 0.0 } else { slowing(points) };
    let (begun, not_admitted) = iterations(summary);
    let dropped = not_admitted as f64 / (begun + not_admitted).max(1) as f64;
    (slower.max(backlog(points)) * calls_each(summary)).max(dropped).clamp(0.0, 1.0)
}

/// A growth of response times counts only beyond this many standard errors.
const SURE: f64 = 3.0;

/// By which share of the calls due the target falls further and further behind, 0 to 1: calls that were due and did not
/// end, over calls that were due. 0 where calls come and go as fast, and where nothing is due at times of its own.
///
/// Of two estimates the larger counts:
///
/// - **Response times that keep growing.** In a queue that is served in order, calls due at λ a second and served at μ wait
///   longer by 1 − μ/λ seconds with each second (the fluid limit; L. Kleinrock, "Queueing Systems", volume 2, 1976, section
///   2.7). That is the share in question, and one call tells it as well as a thousand, so that it is exact at 5 calls
///   a second. The slope is Theil and Sen's over the median of each second, without the first third of the run, and
///   counts where it exceeds three times what chance makes of those medians.
/// - **A backlog that keeps growing**, for targets that serve others first: of the growth, three times the square root
///   of what was there before (the standard deviation of a Poisson count) is taken off, as what is in the target by
///   chance comes and goes.
///
/// Random arrivals are now and then more than the rate asked for, for as long as a trial. A target that answers as many as
/// that rate does not fall behind it: with Poisson arrivals the first estimate is no more than what is missing from the
/// rate that was planned.
pub fn falls_behind(plan: &Plan, points: &[Point]) -> f64 {
    let Load::Open { profile, arrivals } = &plan.load else { return 0.0 };
    let mut slower = slowing(points);
    // A conversation is several calls.
    if arrivals.is_random() && slower > 0.0 && !plan.own_times {
        slower = slower.min(missing(points, |seconds| profile.calls_held_until(seconds)));
    }
    slower.max(backlog(points)).clamp(0.0, 1.0)
}

/// The points after the first third of a run, or all where these are fewer than two.
fn later(points: &[Point]) -> &[Point] {
    let length: u64 = points.iter().map(|point| point.length_ns).sum();
    let from = points.iter().position(|point| point.start_ns >= length / 3).unwrap_or(0);
    points.get(from..).filter(|rest| rest.len() >= 2).unwrap_or(points)
}

/// By how many seconds response times grow in a second, where that is more than chance; at least 0.
fn slowing(points: &[Point]) -> f64 {
    let medians: Vec<_> = later(points).iter().filter_map(Median::from_point).collect();
    let pairs = medians.iter().enumerate().flat_map(|(i, a)| medians.iter().skip(i + 1).map(move |b| (a, b)));
    let slopes: Vec<_> = pairs.map(|(a, b)| (b.ns - a.ns) / (b.at_ns - a.at_ns)).collect();
    let Some(slope) = brunt_judge::trend::median(&slopes) else { return 0.0 };
    // The error of a regression's slope over the same points, which Theil and Sen's comes close to (P. K. Sen, 1968).
    let n = medians.len() as f64;
    let center = medians.iter().map(|median| median.at_ns).sum::<f64>() / n;
    let spread: f64 = medians.iter().map(|median| (median.at_ns - center).powi(2)).sum();
    let variance: f64 = medians.iter().map(|median| ((median.at_ns - center) / spread * median.error_ns).powi(2)).sum();
    if slope > SURE * variance.sqrt() { slope.max(0.0) } else { 0.0 }
}

/// The median response time of a stretch.
struct Median {
    /// Its middle.
    at_ns: f64,
    ns: f64,
    /// Its standard error.
    error_ns: f64,
}

impl Median {
    fn from_point(point: &Point) -> Option<Self> {
        let times = &point.response;
        let at = |q: f64| times.quantile(q).map(|ns| ns as f64);
        // The ranks one standard error of a share of a half to either side.
        let error = 0.5 / (times.count() as f64).sqrt();
        let (low, high) = (at((0.5 - error).max(0.0))?, at((0.5 + error).min(1.0))?);
        Some(Self {
            at_ns: point.start_ns as f64 + point.length_ns as f64 / 2.0,
            ns: at(0.5)?,
            error_ns: (high - low) / 2.0,
        })
    }
}

/// The share of planned calls that did not end in the later part, 0 to 1.
fn missing(points: &[Point], planned_until: impl Fn(f64) -> f64) -> f64 {
    let later = later(points);
    let (Some(first), Some(last)) = (later.first(), later.last()) else { return 0.0 };
    let (from, to) = (first.start_ns as f64 / 1e9, (last.start_ns + last.length_ns) as f64 / 1e9);
    let planned = planned_until(to) - planned_until(from);
    let ended: u64 = later.iter().map(|point| point.ended).sum();
    if planned > 0.0 { ((planned - ended as f64) / planned).max(0.0) } else { 0.0 }
}

/// The share of calls due by which a backlog grows beyond chance, in all of the run but its first third.
fn backlog(points: &[Point]) -> f64 {
    let length: u64 = points.iter().map(|point| point.length_ns).sum();
    let (mut open, mut before, mut due) = (0.0_f64, None, 0.0);
    for point in points {
        if point.start_ns >= length / 3 {
            before.get_or_insert(open);
            due += point.numbers.get(Counter::Due) as f64;
        }
        open += point.numbers.get(Counter::Due) as f64 - point.ended as f64;
    }
    // A run of one point has no first third to tell the rest from.
    let Some(before) = before.filter(|_| due > 0.0 && points.first().is_some_and(|first| first.length_ns < length))
    else {
        return 0.0;
    };
    (open - before - 3.0 * (before.max(0.0) + 1.0).sqrt()) / due
}

#[cfg(test)]
mod tests {
    use brunt_judge::fixtures::{run, summary};
    use brunt_record::SECOND_NS;
    use brunt_record::catalogue::Timing;
    use brunt_record::outcome::{Failure, OkStatus};
    use brunt_record::series::Series;
    use brunt_record::snapshot::Snapshot;

    use super::*;
    use brunt_plan::arrivals::Spread;

    /// The share by which a target falls behind, given the calls due and ended in each second.
    fn behind(seconds: &[(u64, u64)]) -> f64 {
        let mut series = Series::default();
        for &(due, ended) in seconds {
            let mut snapshot = Snapshot::with_numbers([(Counter::Due, due)]);
            snapshot.times.record_n(Timing::Response, 1_000_000, ended);
            series.push(SECOND_NS, &snapshot, &OkStatus::default());
        }
        let load = Load::Open { profile: "1000".parse().unwrap(), arrivals: Spread::Uniform };
        falls_behind(&Plan { load, ..brunt_judge::fixtures::plan() }, series.points())
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
        let evidence = Evidence::from_summary(&summary());
        assert_eq!((evidence.due, evidence.ok, evidence.failed), (2000, 1998, 2));
        assert_eq!(evidence.p50_ns.map(|p50| p50.value / 1000), Some(1000));
        assert_eq!(evidence.failure, "status 503");
        assert!(evidence.is_answered() && evidence.failed_threshold().is_none() && evidence.is_trustworthy());
    }

    #[test]
    fn answers_that_are_not_as_expected_are_answers() {
        let (plan, mut run) = run();
        let answered = std::mem::take(&mut run.measured.statuses).total();
        (0..answered).for_each(|_| run.measured.failures.record(Failure::Mismatch, "the body has no 'ok'"));
        run.measured.count_ends(&plan.ok_status);
        let evidence = Evidence::from_summary(&Summary::new(plan, run));
        assert_eq!((evidence.answered, evidence.mismatched), (0, answered));
        assert!(evidence.is_answered() && evidence.ok_per_s == 0.0);
        assert_eq!(evidence.failure, "mismatch: the body has no 'ok'");
    }

    #[test]
    fn a_run_without_a_connection_says_why_nothing_answered() {
        let (plan, mut run) = run();
        run.measured = Snapshot::default();
        run.ending =
            Ending::Unreached("no connection to the target could be made in 1s: connection refused".to_owned());
        let evidence = Evidence::from_summary(&Summary::new(plan, run));
        assert!(!evidence.is_answered());
        assert_eq!(evidence.failure, "no connection to the target could be made in 1s: connection refused");
    }

    #[test]
    fn how_soon_calls_failed_is_no_latency() {
        let (plan, mut run) = run();
        run.measured.statuses = brunt_record::counts::Statuses::default();
        assert_eq!(Evidence::from_summary(&Summary::new(plan, run)).p99_ns, None);
    }
}
