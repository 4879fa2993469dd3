//! Whether a run's figures can be believed, judged from the generator alone: a slow target never reads as a slow
//! generator.
//!
//! The verdict is of each figure. A time is spoiled only where the generator's own delays can have moved it by more than a
//! tenth and by more than 50 µs ([`crate::uncertainty::Ends::spoil`]); the run's latency is called unreliable only where that
//! is so of a figure that was asked for: p50, p90, p99 and what thresholds name. Throughput is a lower bound where the
//! workers had no time left. That calls were sent at other times than asked for is a finding of its own, as is that the
//! run had not settled.

mod findings;
mod seconds;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::plan::Plan;
use crate::series::Point;
use crate::snapshot::Snapshot;
use crate::summary::{Distribution, QUANTILES, Run};
use crate::trend::Settled;

pub use seconds::{causes, is_blurred, is_bound_by_script, is_late, is_robbed, is_saturated, is_spoiled};

/// The share of the workers' CPU time from which on a script is what keeps them busy.
const SCRIPT_SHARE: f64 = 0.5;
/// Percentiles that are judged in every run.
const ALWAYS_JUDGED: [&str; 3] = ["p50", "p90", "p99"];
/// The fewest calls beyond a percentile for it to be judged: fewer are the chance of a few.
const LEAST_BEYOND: f64 = 5.0;

/// The answer in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// The generator spoiled nothing that was asked for.
    Trustworthy,
    /// The generator was the limit: the target can do at least what was measured.
    GeneratorBound,
    /// Times that were asked for contain waits of the generator's own making, or calls were sent at other times.
    LatencyUnreliable,
    /// No call was answered: nothing to judge.
    NothingMeasured,
}

/// What was found wrong with the generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A worker had no CPU time left.
    CpuSaturated,
    /// A worker was ready to run and the machine had no CPU for it.
    CpuStarved,
    /// Calls were sent late although a connection was ready.
    Lag,
    /// The generator sent or read late, and neither used a CPU all the time nor waited for one.
    OwnDelays,
    /// Most of the workers' CPU time went into the hooks of a script, and they had none left.
    SlowScript,
    /// No local ports were left to connect from.
    Ports,
    /// No file descriptors were left.
    Descriptors,
}

/// The figures that a finding spoils.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spoils {
    /// What was answered a second: the target can do more.
    Throughput,
    /// How long calls took.
    Latency,
    /// When calls came: the target saw another load than the one asked for.
    Arrivals,
}

/// One thing found, with the figures and a way out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is.
    pub cause: Cause,
    /// Which figures it spoils.
    pub spoils: Spoils,
    /// What was seen.
    pub message: String,
    /// What to change.
    pub advice: String,
    /// The seconds of the measured part that it spoils, as ranges from–to, both included.
    pub seconds: Vec<(u64, u64)>,
    /// Whether it spoils the run as a whole.
    pub decisive: bool,
}

/// Whether one percentile of the response time can be believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FigureVerdict {
    /// Such as `p99`.
    pub figure: String,
    /// Whether it holds.
    pub holds: bool,
    /// The least that it can be with regard to own delays, in nanoseconds.
    pub low_ns: u64,
    /// The most that it can be; none where nothing is known from above.
    pub high_ns: Option<u64>,
}

/// Whether a run's figures can be believed, and why not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The answer.
    pub judgement: Judgement,
    /// The percentiles that were asked for, one by one.
    pub figures: Vec<FigureVerdict>,
    /// What it rests on; findings that are not decisive are here as well.
    pub findings: Vec<Finding>,
    /// Whether the run had settled.
    pub settled: Settled,
}

/// What of a run is judged besides its figures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judged<'a> {
    /// What was asked for.
    pub plan: &'a Plan,
    /// How long the measured part was, in nanoseconds.
    pub measured_ns: u64,
    /// It over time.
    pub points: &'a [Point],
}

impl Verdict {
    /// Judges a run. `total` has every call of it, `response` their response times.
    pub fn of(run: &Run, total: &Snapshot, response: Option<&Distribution>) -> Self {
        let judged = Judged { plan: &run.plan, measured_ns: run.measured_ns, points: run.series.points() };
        Self::of_judged(judged, total, response)
    }

    /// The same of what matters of a run, or of an agent's part.
    pub(crate) fn of_judged(run: Judged<'_>, total: &Snapshot, response: Option<&Distribution>) -> Self {
        let answered = total.statuses.total() > 0;
        let figures = response.filter(|_| answered).map_or_else(Vec::new, |response| figures(run, response));
        let findings = findings::of(run, total, &figures);
        let judgement = match judgement(&findings) {
            Judgement::Trustworthy if !answered => Judgement::NothingMeasured,
            judgement => judgement,
        };
        let settled = if answered { Settled::of(run.plan, run.points) } else { Settled::Unknown };
        Self { judgement, figures, findings, settled }
    }

    /// The verdict in a line: the judgement, and what it rests on.
    pub fn sentence(&self) -> String {
        let why: Vec<_> = self.findings.iter().filter(|f| f.decisive).map(|f| f.message.as_str()).collect();
        let why = why.join("; ");
        match self.judgement {
            Judgement::Trustworthy => "trustworthy".to_owned(),
            Judgement::GeneratorBound => format!("generator-bound: throughput is a lower bound ({why})"),
            Judgement::LatencyUnreliable => format!("{}: {why}", self.holding()),
            Judgement::NothingMeasured => "nothing was answered, so there is nothing to judge".to_owned(),
        }
    }

    /// Which of the percentiles that were asked for hold: such as `p50 and p90 hold; p99 is unreliable`.
    pub fn holding(&self) -> String {
        let names = |holds: bool| {
            let of = self.figures.iter().filter(|figure| figure.holds == holds);
            of.map(|figure| figure.figure.as_str()).collect::<Vec<_>>()
        };
        let verb = |names: &[&str], one: &str, several: &str| {
            format!("{} {}", listed(names), if names.len() == 1 { one } else { several })
        };
        let (good, bad) = (names(true), names(false));
        match (good.as_slice(), bad.as_slice()) {
            (good, []) if !good.is_empty() && self.is_sent_otherwise() => {
                verb(good, "holds", "hold") + "; calls were not sent as asked"
            }
            // Where nothing tells when answers arrived, no single figure is known to be spoiled.
            (_, []) => "latency is unreliable".to_owned(),
            ([], bad) => verb(bad, "is unreliable", "are unreliable"),
            (good, bad) => {
                format!("{}; {}", verb(good, "holds", "hold"), verb(bad, "is unreliable", "are unreliable"))
            }
        }
    }

    /// Whether calls were sent at other times than asked for.
    fn is_sent_otherwise(&self) -> bool {
        self.findings.iter().any(|finding| finding.decisive && finding.spoils == Spoils::Arrivals)
    }

    /// Whether the figures can be believed.
    pub fn is_trustworthy(&self) -> bool {
        self.judgement == Judgement::Trustworthy
    }

    /// Whether the target saw the load that the plan asks for: calls were sent in time, and none for want of ports or
    /// descriptors left out.
    pub fn is_load_as_asked(&self) -> bool {
        let spoils_load = |finding: &Finding| {
            finding.spoils == Spoils::Arrivals || matches!(finding.cause, Cause::Ports | Cause::Descriptors)
        };
        !self.findings.iter().any(|finding| finding.decisive && spoils_load(finding))
    }
}

/// Such as `p50, p90 and p99`.
fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The percentiles that were asked for and stand on more than a few calls.
fn figures(run: Judged<'_>, response: &Distribution) -> Vec<FigureVerdict> {
    let Some(intervals) = &response.intervals else { return Vec::new() };
    let limited: Vec<_> =
        run.plan.thresholds.iter().filter_map(crate::threshold::Threshold::response_quantile).collect();
    let judged = QUANTILES.iter().zip(&intervals.quantiles).filter(|((name, q), _)| {
        let is_limited = limited.iter().any(|limited| (limited - q).abs() < 1e-9);
        let has_calls = response.count as f64 * (1.0 - q) >= LEAST_BEYOND;
        is_limited || (has_calls && ALWAYS_JUDGED.contains(name))
    });
    let verdict = |((name, _), interval): (&(&str, f64), &crate::uncertainty::Interval)| FigureVerdict {
        figure: (*name).to_owned(),
        holds: !interval.is_spoiled,
        low_ns: interval.instrument.low_ns,
        high_ns: interval.instrument.high_ns,
    };
    judged.map(verdict).collect()
}

fn judgement(findings: &[Finding]) -> Judgement {
    let decisive = |is: fn(&Finding) -> bool| findings.iter().any(|finding| finding.decisive && is(finding));
    // Latency outranks a saturated worker, since it says what that did to the figures.
    if decisive(|finding| matches!(finding.cause, Cause::Ports | Cause::Descriptors)) {
        Judgement::GeneratorBound
    } else if decisive(|finding| matches!(finding.spoils, Spoils::Latency | Spoils::Arrivals)) {
        Judgement::LatencyUnreliable
    } else if decisive(|finding| finding.spoils == Spoils::Throughput) {
        Judgement::GeneratorBound
    } else {
        Judgement::Trustworthy
    }
}
