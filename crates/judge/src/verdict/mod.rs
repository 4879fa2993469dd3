//! Whether a run's figures can be believed, judged only by the generator: a slow target never reads as a slow
//! generator.
//!
//! The verdict is on each figure. A time is spoiled only where the generator's own delays can have moved it by more
//! than a tenth and by more than 50 µs ([`crate::uncertainty::Ends::spoil`]). The run's latency is called unreliable
//! only where a figure is spoiled that was asked for: p50, p90, p99 and those of thresholds. Throughput is a lower
//! bound where the workers had no time left. Calls sent at other times than asked for are a finding of their own, and
//! so is a run that had not settled.

mod findings;
mod seconds;
#[cfg(test)]
mod tests;

use crate::advice::Advice;
use brunt_plan::plan::Plan;
use brunt_record::agents::AgentPart;
use brunt_record::catalogue::Timing;
use brunt_record::change::{Action, Change};
use brunt_record::histogram::{Histogram, Percentile};
use brunt_record::instrument::BoundedTimes;
use brunt_record::recording::Recording;
use brunt_record::series::Point;
use brunt_record::snapshot::Snapshot;
use serde::{Deserialize, Serialize};

use crate::distribution::{Distribution, Quantile};
use crate::phrase::Phrase;
use crate::sampling::Sampling;
use crate::trend::Settled;
use crate::uncertainty::Ends;

pub use seconds::{causes, is_blurred, is_bound_by_script, is_late, is_robbed, is_saturated, is_spoiled};

/// The share of the workers' CPU time from which on a script is what keeps them busy.
const SCRIPT_SHARE: f64 = 0.5;
/// Percentiles that are judged in every run.
const ALWAYS_JUDGED: [Percentile; 3] = [Percentile::P50, Percentile::P90, Percentile::P99];
/// The fewest calls beyond a percentile for judging it: fewer are chance.
const LEAST_BEYOND: f64 = 5.0;

/// The answer in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// The generator spoiled no figure that was asked for.
    Trustworthy,
    /// The generator was the limit: the target can do at least what was measured.
    GeneratorBound,
    /// Times that were asked for include waits for the generator, or calls were sent at other times.
    LatencyUnreliable,
    /// No call was answered: there is nothing to judge.
    NothingMeasured,
}

/// The cause of a finding about the generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum VerdictCause {
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
    /// Datagrams were dropped on this machine for want of room in the generator's sockets.
    FullBuffers,
}

/// The figures that a finding spoils, in the order in which reports show them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Spoils {
    /// The rate of answers: the target can do more.
    Throughput,
    /// How long calls took.
    Latency,
    /// The times at which calls came: the target saw another load than the one asked for.
    Arrivals,
}

/// One finding, with its figures and a way out.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Its cause.
    pub cause: VerdictCause,
    /// The figures that it spoils.
    pub spoils: Spoils,
    /// The observation, for people.
    pub message: Phrase,
    /// What to do about it.
    pub advice: Advice,
    /// Whether it spoils the run as a whole.
    pub decisive: bool,
    /// The seconds of the measured part that it spoils.
    pub seconds: Vec<Seconds>,
}

/// A range of seconds of the measured part, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Seconds {
    /// The first second.
    pub first: u64,
    /// The last second.
    pub last: u64,
}

/// Whether one percentile of the response time can be believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FigureVerdict {
    /// The percentile.
    pub figure: Percentile,
    /// Whether own delays leave at most a tenth of it, or at most 50 µs, open.
    pub holds: bool,
    /// The lower end with regard to own delays, in nanoseconds.
    pub low_ns: u64,
    /// The upper end; `None` where nothing is known from above.
    pub high_ns: Option<u64>,
}

/// Whether a run's figures can be believed, and why not, judged from the generator alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The answer.
    pub judgement: Judgement,
    /// The judgement with its grounds, in a line for people.
    pub sentence: Phrase,
    /// The percentiles that were asked for (p50, p90, p99 and those of thresholds), one by one.
    pub figures: Vec<FigureVerdict>,
    /// Whether the target saw the load that the plan asks for: calls were sent in time, and none left out for want of ports
    /// or descriptors.
    pub is_load_as_asked: bool,
    /// Whether the calls answered a second are the target's doing and not a lower bound of it.
    pub is_rate_believed: bool,
    /// All findings about the generator, decisive or not.
    pub findings: Vec<Finding>,
    /// Whether the run had settled.
    pub settled: Settled,
}

/// The inputs of a verdict, besides figures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judged<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// How long the measured part was, in nanoseconds.
    pub measured_ns: u64,
    /// The run over time.
    pub points: &'a [Point],
    /// Whether its load became another while it ran: figures that change then say nothing of the target.
    pub is_changed: bool,
}

impl<'a> Judged<'a> {
    /// Of a run by `plan`.
    pub(crate) fn new(plan: &'a Plan, run: &'a Recording) -> Self {
        // Agents that leave take a part of the load with them.
        let is_mark = |change: &Change| matches!(change.action, Action::Mark(_));
        let is_changed = run.agents.iter().any(AgentPart::is_lost) || !run.changes.iter().all(is_mark);
        Self { plan, measured_ns: run.measured_ns, points: run.series.points(), is_changed }
    }

    /// The response times of `total`, with their uncertainty.
    pub(crate) fn response(self, total: &Snapshot, sampling: Option<&Sampling<'_>>) -> Option<Distribution> {
        let bracket = total.response_bracket();
        let mut response = Distribution::of_bracket(&bracket, total.times.known(Timing::Lag), sampling)?;
        response.doubt(&bracket, findings::unsent_by_brunt(self, total));
        Some(response)
    }
}

impl Verdict {
    /// Judges a run by `plan`. `total` has every call of it, `response` their response times.
    pub fn judge(plan: &Plan, run: &Recording, total: &Snapshot, response: Option<&Distribution>) -> Self {
        Self::of_judged(Judged::new(plan, run), total, response)
    }

    /// Judges a run, or an agent's part of one.
    pub(crate) fn of_judged(run: Judged<'_>, total: &Snapshot, response: Option<&Distribution>) -> Self {
        let answered = total.statuses.total() > 0;
        let figures = response.filter(|_| answered).map_or_else(Vec::new, |response| figures(run, response));
        let findings = findings::find(run, total, &figures);
        let judgement = match judgement(&findings) {
            Judgement::Trustworthy if !answered => Judgement::NothingMeasured,
            judgement => judgement,
        };
        let settled = if answered && !run.is_changed {
            Settled::from_points(run.plan, total, run.points)
        } else {
            Settled::Unknown
        };
        let mut verdict = Self {
            judgement,
            sentence: Phrase::default(),
            figures,
            is_load_as_asked: !findings.iter().any(|finding| finding.decisive && spoils_load(finding)),
            is_rate_believed: is_rate_believed(run.plan, judgement, total),
            findings,
            settled,
        };
        verdict.sentence = verdict.in_words().into();
        verdict
    }

    /// The judgement with its grounds.
    fn in_words(&self) -> String {
        let why: Vec<_> = self.findings.iter().filter(|f| f.decisive).map(|f| f.message.to_string()).collect();
        let why = why.join("; ");
        match self.judgement {
            Judgement::Trustworthy => MEASURED_WELL.to_owned(),
            Judgement::GeneratorBound => format!("brunt was the limit: throughput is a lower bound ({why})"),
            Judgement::LatencyUnreliable => format!("{}: {why}", self.holding()),
            Judgement::NothingMeasured => "nothing was answered, so there is nothing to judge".to_owned(),
        }
    }

    /// Which of the percentiles that were asked for hold: such as `p99 is unreliable; p50 and p90 hold`.
    pub fn holding(&self) -> String {
        let names = |holds: bool| {
            let of = self.figures.iter().filter(|figure| figure.holds == holds);
            of.map(|figure| figure.figure.name()).collect::<Vec<_>>()
        };
        let verb = |names: &[&str], one: &str, several: &str| {
            format!("{} {}", listed(names), if names.len() == 1 { one } else { several })
        };
        let (good, bad) = (names(true), names(false));
        match (good.as_slice(), bad.as_slice()) {
            (good, []) if !good.is_empty() && self.spoils(&[Spoils::Arrivals]) => {
                format!("calls were not sent as asked; {}", verb(good, "holds", "hold"))
            }
            // Where the arrival of answers is unknown, no single figure is known to be spoiled.
            (_, []) => "latency is unreliable".to_owned(),
            ([], bad) => verb(bad, "is unreliable", "are unreliable"),
            (good, bad) => {
                format!("{}; {}", verb(bad, "is unreliable", "are unreliable"), verb(good, "holds", "hold"))
            }
        }
    }

    /// Whether one of these figures describes brunt, and not the target, in the run as a whole.
    pub fn spoils(&self, figures: &[Spoils]) -> bool {
        self.findings.iter().any(|finding| finding.decisive && figures.contains(&finding.spoils))
    }

    /// Whether brunt itself, and not the target, limited how many calls were answered.
    pub fn is_brunt_the_limit(&self) -> bool {
        self.spoils(&[Spoils::Throughput])
    }

    /// Whether the figures can be believed.
    pub fn is_trustworthy(&self) -> bool {
        self.judgement == Judgement::Trustworthy
    }
}

/// The sentence of a verdict without objections.
const MEASURED_WELL: &str = "measured well";

/// Whether the target saw another load than the one asked for.
fn spoils_load(finding: &Finding) -> bool {
    finding.spoils == Spoils::Arrivals || matches!(finding.cause, VerdictCause::Ports | VerdictCause::Descriptors)
}

/// Whether the calls answered a second are the target's doing. The generator's own delays reduce the demand of a fixed
/// number of connections by as much as they lengthen each call.
fn is_rate_believed(plan: &Plan, judgement: Judgement, total: &Snapshot) -> bool {
    let is_open = plan.load.is_open();
    let (own_part, as_read) = (BoundedTimes::of_response(&total.times), total.times.known(Timing::Response));
    let knows_receiving = own_part.cover();
    match judgement {
        Judgement::GeneratorBound | Judgement::NothingMeasured => false,
        // Where they are unknown, the verdict on latency decides.
        Judgement::LatencyUnreliable if !knows_receiving => is_open,
        _ if is_open || !knows_receiving => true,
        _ => {
            let whole = |times: &Histogram| times.mean().unwrap_or(0.0) as u64;
            let (low_ns, high_ns) = (whole(own_part.value), whole(as_read));
            !Ends { low_ns, high_ns: Some(high_ns) }.spoil(high_ns)
        }
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

/// The percentiles that were asked for and rest on more than a few calls.
fn figures(run: Judged<'_>, response: &Distribution) -> Vec<FigureVerdict> {
    let limited: Vec<_> =
        run.plan.thresholds.iter().filter_map(brunt_plan::threshold::Threshold::response_quantile).collect();
    let judged = response.quantiles.iter().filter(|quantile| {
        let is_limited = limited.iter().any(|limited| (limited - quantile.share_ratio).abs() < 1e-9);
        let has_calls = response.count as f64 * (1.0 - quantile.share_ratio) >= LEAST_BEYOND;
        is_limited || (has_calls && ALWAYS_JUDGED.contains(&quantile.name))
    });
    let verdict = |quantile: &Quantile| {
        let interval = quantile.interval?;
        Some(FigureVerdict {
            figure: quantile.name,
            holds: !interval.is_spoiled,
            low_ns: interval.instrument_low_ns,
            high_ns: interval.instrument_high_ns,
        })
    };
    judged.filter_map(verdict).collect()
}

fn judgement(findings: &[Finding]) -> Judgement {
    let decisive = |is: fn(&Finding) -> bool| findings.iter().any(|finding| finding.decisive && is(finding));
    // Latency outranks a saturated worker, as it states the effect on the figures.
    if decisive(|finding| matches!(finding.cause, VerdictCause::Ports | VerdictCause::Descriptors)) {
        Judgement::GeneratorBound
    } else if decisive(|finding| matches!(finding.spoils, Spoils::Latency | Spoils::Arrivals)) {
        Judgement::LatencyUnreliable
    } else if decisive(|finding| finding.spoils == Spoils::Throughput) {
        Judgement::GeneratorBound
    } else {
        Judgement::Trustworthy
    }
}
