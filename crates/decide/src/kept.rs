//! Runs that are kept, as lists show them.

use brunt_judge::remarks::Tone;
use brunt_judge::summary::Summary;
use brunt_judge::verdict::Judgement;
use brunt_plan::plan::Plan;
use brunt_plan::threshold::{Count, Figure as Measure, Statistic, Time};
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::histogram::{AtLeast, Percentile, fewest_calls};
use brunt_record::series::Point;
use serde::{Deserialize, Serialize, Serializer};

use crate::decision::Decision;

/// The kind of what is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptKind {
    /// A single run.
    Run,
    /// A sweep.
    Sweep,
    /// A search for the capacity.
    Capacity,
    /// A comparison.
    Comparison,
}

impl KeptKind {
    const NAMES: [(&'static str, Self); 4] =
        [("run", Self::Run), ("sweep", Self::Sweep), ("capacity", Self::Capacity), ("comparison", Self::Comparison)];

    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| *name)
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }
}

/// What a run is remembered for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headline {
    /// How it is meant.
    pub tone: Tone,
    /// The line for people, with its sign.
    pub line: String,
}

/// What a user calls a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Label {
    /// Its name; of several with one name the newest is meant.
    pub name: Option<String>,
    /// Keys and values.
    #[serde(serialize_with = "as_object")]
    pub tags: Vec<(String, String)>,
}

fn as_object<S: Serializer>(tags: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(tags.iter().map(|(key, value)| (key, value)))
}

/// What is known of a kept run, or of a decision, without reading it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// Its number.
    pub number: i64,
    /// A single run, or what was decided over several.
    pub kind: KeptKind,
    /// The number of the decision that rests on it, if one does.
    pub part_of: Option<i64>,
    /// What its user calls it.
    #[serde(flatten)]
    pub label: Label,
    /// When it began, in milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// Its target.
    pub url: String,
    /// The script that it ran, if it ran one, by its file's name.
    pub script: Option<String>,
    /// What it is remembered for, in a sentence; missing of decisions.
    pub headline: Option<String>,
    /// How the headline is meant; missing of decisions.
    pub tone: Option<Tone>,
    /// Whether its figures can be believed, for people; of a decision, its conclusion.
    pub verdict: String,
    /// Whether its figures can be believed; missing of decisions.
    pub judgement: Option<Judgement>,
    /// How long its measured part took, in nanoseconds.
    pub measured_ns: u64,
    /// Calls that were due.
    pub due: u64,
    /// Calls answered a second.
    pub answered_per_s: f64,
    /// Calls that were not ok over those that were due.
    #[serde(rename = "error_ratio")]
    pub error_rate: f64,
    /// Half of the calls' response times were no longer, in nanoseconds.
    pub p50_ns: Option<u64>,
    /// 99% of the calls' response times were no longer, in nanoseconds.
    pub p99_ns: Option<u64>,
    /// Whether the p99 is a lower bound.
    pub at_least: bool,
    /// How many thresholds there were.
    pub thresholds: u64,
    /// How many of them failed.
    pub thresholds_failed: u64,
    /// The room that it takes, in bytes.
    pub content_bytes: u64,
}

impl Entry {
    /// The entry of a run that is about to be kept, with its headline; it has no number yet.
    pub fn from_summary(summary: &Summary, label: &Label, headline: Headline) -> Self {
        let [p50, p99] = [Percentile::P50, Percentile::P99].map(|of| summary.times.response.as_ref()?.quantile(of));
        Self {
            number: 0,
            kind: KeptKind::Run,
            part_of: None,
            label: label.clone(),
            started_unix_ms: summary.run.started_unix_ms,
            url: summary.plan.target.url(),
            script: summary.plan.script_name().map(str::to_owned),
            headline: Some(headline.line),
            tone: Some(headline.tone),
            verdict: summary.verdict.sentence.to_string(),
            judgement: Some(summary.verdict.judgement),
            measured_ns: summary.run.measured_ns,
            due: summary.total.numbers.get(Counter::Due),
            answered_per_s: summary.rates.answered_per_s,
            error_rate: summary.error_rate,
            p50_ns: p50.map(|value| value.value),
            p99_ns: p99.map(|value| value.value),
            at_least: p99.is_some_and(|value| value.at_least),
            thresholds: summary.thresholds.iter().filter(|threshold| threshold.is_noted()).count() as u64,
            thresholds_failed: summary.thresholds.iter().filter(|threshold| !threshold.held).count() as u64,
            content_bytes: 0,
        }
    }

    /// Of how many calls the quantile `q` of all of them is, where they are too few to bound it from above.
    pub fn few_calls(&self, q: f64) -> Option<u64> {
        (self.kind == KeptKind::Run && self.due < fewest_calls(q)).then_some(self.due)
    }

    /// The entry of a decision that is about to be kept, with its conclusion in words; it has no number yet.
    pub fn of_decision(decision: Decision<'_>, conclusion: String, label: &Label) -> Self {
        let runs = decision.runs();
        let (due, failed) = runs.iter().fold((0, 0), |(due, failed), run| (due + run.due, failed + run.failed));
        let of_plan = |plan: &Plan| (plan.target.url(), plan.script_name().map(str::to_owned));
        let (kind, (url, script)) = match decision {
            Decision::Sweep(plan, _) => (KeptKind::Sweep, of_plan(plan)),
            Decision::Capacity(plan, _) => (KeptKind::Capacity, of_plan(plan)),
            Decision::Comparison(compared) => {
                (KeptKind::Comparison, (format!("{} and {}", compared.a, compared.b), None))
            }
        };
        Self {
            number: 0,
            kind,
            part_of: None,
            label: label.clone(),
            started_unix_ms: runs.iter().map(|run| run.started_unix_ms).min().unwrap_or(0),
            url,
            script,
            headline: None,
            tone: None,
            verdict: conclusion,
            judgement: None,
            measured_ns: runs.iter().map(|run| run.measured_ns).sum(),
            due,
            answered_per_s: 0.0,
            error_rate: if due > 0 { failed as f64 / due as f64 } else { 0.0 },
            p50_ns: None,
            p99_ns: None,
            at_least: false,
            thresholds: 0,
            thresholds_failed: 0,
            content_bytes: 0,
        }
    }
}

/// The response time's figure of this statistic.
const fn response(of: Statistic) -> Measure {
    Measure::Time(Time::Usual, of)
}

/// The service time's figure of this share of calls.
const fn service(share: f64) -> Measure {
    Measure::Time(Time::Recorded(Timing::Service), Statistic::Quantile(share))
}

/// The figures that every run is kept with, by the names that thresholds give them.
const FIGURES: [(&str, Measure); 13] = [
    ("rate", Measure::Rate),
    ("error_rate", Measure::ErrorRate),
    ("p50", response(Statistic::Quantile(0.5))),
    ("p75", response(Statistic::Quantile(0.75))),
    ("p90", response(Statistic::Quantile(0.9))),
    ("p95", response(Statistic::Quantile(0.95))),
    ("p99", response(Statistic::Quantile(0.99))),
    ("p99.9", response(Statistic::Quantile(0.999))),
    ("mean", response(Statistic::Mean)),
    ("max", response(Statistic::Max)),
    ("service.p50", service(0.5)),
    ("service.p99", service(0.99)),
    ("due", Measure::Count(Count::Recorded(Counter::Due))),
];

/// The most points of a [`Sparkline`].
const SPARKLINE_POINTS: usize = 60;

/// A run's figures, to be found without reading the run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Digest {
    /// Those that every run has, and those that thresholds limit, as far as they were measured.
    pub figures: Vec<KeptFigure>,
    /// Its thresholds, in their order.
    pub limits: Vec<Limit>,
    /// Its course.
    pub sparkline: Sparkline,
}

/// A figure of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptFigure {
    /// As thresholds call it: `p99`, `home:p95`.
    pub name: String,
    /// In nanoseconds, as a share from 0 to 1, in bytes, or a number.
    pub value: f64,
    /// Whether it is a lower bound.
    pub at_least: bool,
}

impl KeptFigure {
    /// Its quantile (0 to 1), if it is a percentile of a time of all calls.
    pub fn quantile(&self) -> Option<f64> {
        match Measure::parse(&self.name) {
            Some(Measure::Time(_, Statistic::Quantile(q))) => Some(q),
            _ => None,
        }
    }
}

/// A threshold of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// As written.
    pub threshold: String,
    /// The figure that it limits, as [`KeptFigure::name`].
    pub figure: String,
    /// The limit, in the figure's unit.
    pub limit: f64,
    /// The figure as it came out, for people.
    pub got: String,
    /// Whether it held.
    pub held: bool,
}

/// A run over time, in at most 60 steps of one length.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sparkline {
    /// Calls answered a second.
    pub answered_per_s: Vec<f64>,
    /// The worst second's p99 of response times in each step, in nanoseconds.
    pub p99_ns: Vec<Option<u64>>,
    /// The interval that the run's p99 lies in, in nanoseconds, without an upper end where nothing is known from above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_interval_ns: Option<(u64, Option<u64>)>,
    /// The threshold on the p99 of all calls, in nanoseconds, and whether it held; of several, one that did not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_limit_ns: Option<(u64, bool)>,
}

impl Digest {
    /// The digest of a run.
    pub fn from_summary(summary: &Summary) -> Self {
        let thresholds = &summary.plan.thresholds;
        let standing = summary.standing();
        let usual = FIGURES.iter().map(|(name, figure)| (*name, standing.figure(*figure)));
        let mut figures: Vec<KeptFigure> = Vec::new();
        let limited = thresholds.iter().map(|threshold| (threshold.figure(), standing.value(threshold)));
        for (name, value) in usual.chain(limited) {
            if let Some(AtLeast { value, at_least }) = value.filter(|value| value.value.is_finite())
                && figures.iter().all(|figure| figure.name != name)
            {
                figures.push(KeptFigure { name: name.to_owned(), value, at_least });
            }
        }
        let limits = thresholds.iter().zip(&summary.thresholds).map(|(threshold, result)| Limit {
            threshold: threshold.to_string(),
            figure: threshold.figure().to_owned(),
            limit: threshold.limit(),
            got: result.got.to_string(),
            held: result.held,
        });
        let limits: Vec<_> = limits.collect();
        let of_p99 =
            thresholds.iter().zip(&limits).filter(|(threshold, _)| threshold.response_quantile() == Some(0.99));
        let of_p99 = of_p99.map(|(_, limit)| limit).min_by_key(|limit| limit.held);
        let p99 = summary.times.response.as_ref().and_then(|times| times.at(Percentile::P99));
        let sparkline = Sparkline {
            p99_interval_ns: p99.and_then(|p99| p99.interval).map(|interval| (interval.low_ns, interval.high_ns)),
            p99_limit_ns: of_p99.map(|limit| (limit.limit as u64, limit.held)),
            ..Sparkline::from_points(summary.run.series.points())
        };
        Self { figures, limits, sparkline }
    }
}

impl Sparkline {
    fn from_points(points: &[Point]) -> Self {
        let step = points.len().div_ceil(SPARKLINE_POINTS).max(1);
        let rate = |points: &[Point]| {
            let (answered, ns) =
                points.iter().fold((0, 0), |(n, ns), p| (n + p.numbers.get(Counter::EndedAnswered), ns + p.length_ns));
            // Keeps one digit more than can be seen.
            if ns > 0 { (answered as f64 * 1e10 / ns as f64).round() / 10.0 } else { 0.0 }
        };
        let p99 = |points: &[Point]| {
            points.iter().filter_map(|point| Some(point.response_times().quantile(0.99)?.value)).max()
        };
        Self {
            answered_per_s: points.chunks(step).map(rate).collect(),
            p99_ns: points.chunks(step).map(p99).collect(),
            ..Self::default()
        }
    }
}

/// Selects kept runs; an empty or missing field selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Keys and values that each run must have.
    pub tags: Vec<(String, String)>,
    /// A part of its name, in any case of letters.
    pub name: String,
    /// A part of its target's URL.
    pub target: String,
    /// A part of its script's name.
    pub script: String,
    /// Its kind.
    pub kind: Option<KeptKind>,
    /// Also the single runs that decisions rest on.
    pub with_parts: bool,
}

/// A page of a list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Page {
    /// The newest first.
    pub runs: Vec<ListedRun>,
    /// The number of runs on all pages.
    pub count: u64,
    /// The numbers of runs on this page that cannot be read.
    pub unreadable: Vec<i64>,
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedRun {
    /// What is known of it without reading it.
    pub entry: Entry,
    /// Its course; missing for decisions.
    pub sparkline: Option<Sparkline>,
}

/// A run's figure, among those of other runs.
#[derive(Debug, Clone, PartialEq)]
pub struct TrendPoint {
    /// The run.
    pub number: i64,
    /// When it began, in milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// The figure's value, in its unit.
    pub value: f64,
    /// Whether it is a lower bound.
    pub at_least: bool,
    /// The interval that the value lies in, where it is known: for p99. It has no upper end where nothing is known from
    /// above.
    pub interval: Option<(f64, Option<f64>)>,
    /// The threshold on it, if there was one.
    pub limit: Option<f64>,
    /// Whether every threshold on it held.
    pub held: bool,
    /// The value of the tag that was asked for, by which versions are marked.
    pub mark: Option<String>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use brunt_plan::plan::ProtocolOptions;
    use brunt_plan::target::Url;
    use brunt_record::recording::Recording;
    use brunt_record::snapshot::Snapshot;

    use super::*;

    fn summary(seconds: u64, thresholds: &[&str]) -> Summary {
        let target = Url::parse("http://127.0.0.1:8080/").unwrap().target;
        let mut plan = Plan::of_calls(target, ProtocolOptions::default());
        plan.thresholds = thresholds.iter().map(|text| text.parse().unwrap()).collect();
        let mut run = Recording { measured_ns: seconds * 1_000_000_000, ..Recording::begun(0) };
        for second in 1..=seconds {
            let mut snapshot = Snapshot::with_numbers([(Counter::Due, 10)]);
            for _ in 0..10 {
                snapshot.statuses.record(200);
                snapshot.times.record(Timing::Response, second * 1_000_000);
            }
            snapshot.count_ends(&plan.ok_status);
            run.measured.merge(&snapshot);
            run.series.push(1_000_000_000, &snapshot, &plan.ok_status);
        }
        Summary::new(plan, run)
    }

    #[test]
    fn a_digest_has_the_figures_that_thresholds_name() {
        let digest = Digest::from_summary(&summary(4, &["p98.7 < 50ms", "rate>1M", "nowhere:p99<1s"]));
        let value = |name: &str| digest.figures.iter().find(|figure| figure.name == name).map(|figure| figure.value);
        assert_eq!((value("rate"), value("error_rate"), value("due")), (Some(10.0), Some(0.0), Some(40.0)));
        assert!(value("p98.7").unwrap() >= 4e6 && value("nowhere:p99").is_none());
        let limits: Vec<_> = digest.limits.iter().map(|l| (l.figure.as_str(), l.limit, l.held)).collect();
        assert_eq!(limits, [("p98.7", 5e7, true), ("rate", 1e6, false), ("nowhere:p99", 1e9, false)]);
        assert_eq!(brunt_plan::threshold::shown("nowhere:p99", 5e6).as_deref(), Some("5.00ms"));
    }

    #[test]
    fn a_sparkline_stays_short_and_keeps_the_worst() {
        let line = Digest::from_summary(&summary(130, &[])).sparkline;
        assert_eq!((line.answered_per_s.len(), line.p99_ns.len()), (44, 44));
        assert!(line.answered_per_s.iter().all(|rate| *rate == 10.0));
        assert!(line.p99_ns[0].unwrap() >= 3_000_000 && line.p99_ns[43].unwrap() >= 130_000_000);
    }
}
