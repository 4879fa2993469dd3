//! Whether a run's figures can be believed, judged from the generator alone: a slow target never reads as a slow
//! generator.

use serde::{Deserialize, Serialize};

use crate::SECOND_NS;
use crate::outcome::Failure;
use crate::plan::Plan;
use crate::scenario::Step;
use crate::series::Point;
use crate::snapshot::Snapshot;
use crate::summary::Run;
use crate::units::Duration;

/// A worker that used this share of its time on a CPU had none left to be in time.
const SATURATED: f64 = 0.95;
/// A worker that stood ready this share of its time, and had no CPU, was late for reasons of its own.
const STARVED: f64 = 0.10;
/// Generator lag under this does not spoil anything, in nanoseconds.
const HARMLESS_LAG_NS: u64 = 500_000;
/// The share of the workers' CPU time from which on a script is what keeps them busy.
const SCRIPT_SHARE: f64 = 0.5;
/// The share of the 99th percentile of the response time that the lag's may be.
const LAG_SHARE: f64 = 0.25;
/// The share of seconds that may be spoiled before the whole run is.
const SPOILED_SHARE: f64 = 0.10;

/// The answer in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// The generator had room to spare.
    Trustworthy,
    /// The generator was the limit: the target can do at least what was measured.
    GeneratorBound,
    /// Times contain waits of the generator's own making.
    LatencyUnreliable,
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
    /// Most of the workers' CPU time went into the hooks of a script, and they had none left or were late.
    SlowScript,
    /// No local ports were left to connect from.
    Ports,
    /// No file descriptors were left.
    Descriptors,
}

/// One thing found, with the figures and a way out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is.
    pub cause: Cause,
    /// What was seen.
    pub message: String,
    /// What to change.
    pub advice: String,
    /// The seconds of the measured part that it spoils, as ranges from–to, both included.
    pub seconds: Vec<(u64, u64)>,
    /// Whether it spoils the run as a whole.
    pub decisive: bool,
}

/// Whether a run's figures can be believed, and why not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The answer.
    pub judgement: Judgement,
    /// What it rests on; findings that are not decisive are here as well.
    pub findings: Vec<Finding>,
}

impl Verdict {
    /// Judges a run of which `total` is every call.
    pub fn of(run: &Run, total: &Snapshot) -> Self {
        let points = run.series.points();
        let seconds_of = |spoiled: fn(&Point) -> bool| seconds(points.iter().filter(|point| spoiled(point)));
        let health = &total.health;
        let lag = total.lag.quantile(0.99).unwrap_or(0);
        let mut findings = Vec::new();
        // What spoils many seconds spoils the whole, unless it is known otherwise whether it does.
        let mut find = |cause, seconds: Vec<(u64, u64)>, whole: Option<bool>, message: String, advice: &str| {
            let spoiled: u64 = seconds.iter().map(|(from, to)| to - from + 1).sum();
            let all = run.measured_ns.div_ceil(SECOND_NS);
            let decisive = whole.unwrap_or(spoiled as f64 > SPOILED_SHARE * all as f64);
            if decisive || !seconds.is_empty() {
                findings.push(Finding { cause, message, advice: advice.to_owned(), seconds, decisive });
            }
        };
        for (failure, cause, advice) in [
            (
                Failure::Ports,
                Cause::Ports,
                "connect from more addresses (--source-ip A-B), keep connections (no --reconnect), or widen \
                 net.ipv4.ip_local_port_range",
            ),
            (Failure::Descriptors, Cause::Descriptors, "raise the hard limit (ulimit -Hn), or lower -c"),
        ] {
            let n = total.failures.count(failure);
            let what = if failure == Failure::Ports { "local ports" } else { "file descriptors" };
            let message = format!("this machine ran out of {what}: {n} calls were never sent for it");
            find(cause, Vec::new(), Some(n > 0), message, advice);
        }
        find(
            Cause::SlowScript,
            seconds_of(is_bound_by_script),
            None,
            format!(
                "the script{} took {:.0} % of the CPU time that the workers used",
                if run.plan.scenarios.is_some() { "" } else { "'s hooks" },
                health.script_share() * 100.0
            ),
            if run.plan.scenarios.is_some() {
                "do less between calls: read of answers only what is needed, make at the top of the script what can be \
                 made once; or give it more threads on more cores (-t)"
            } else {
                "do less in request() and response(): make requests in init(), leave out parameters of response() that \
                 it does not use; or give it more threads on more cores (-t)"
            },
        );
        find(
            Cause::CpuSaturated,
            seconds_of(is_saturated),
            None,
            format!("a worker used {:.0} % of a CPU", health.busiest_worker * 100.0),
            "give brunt more cores (-t), or let a second machine help; to measure latency, ask for less (-r)",
        );
        find(
            Cause::CpuStarved,
            seconds_of(is_starved),
            None,
            format!("a worker waited for a CPU for {:.0} % of a second", health.most_starved_worker * 100.0),
            "keep other work, the target too, off brunt's cores (taskset), or use fewer workers (-t)",
        );
        find(
            Cause::Lag,
            seconds_of(is_late),
            Some(shows(lag, total.response.quantile(0.99).map_or(0, |p99| p99.value))),
            format!("calls were sent late by the generator itself: lag p99 {}", Duration(lag)),
            if has_bursts(&run.plan) {
                "users who come in one moment (brunt.at_once) make their first calls one after the other: let them come over \
                 some time (brunt.ramp), give brunt more cores (-t), or keep other work off them"
            } else {
                "use fewer calls a second for each worker (-t), or keep other work off brunt's cores"
            },
        );
        Self { judgement: judgement(&findings), findings }
    }

    /// The verdict in a line: the judgement, and what it rests on.
    pub fn sentence(&self) -> String {
        let why: Vec<_> = self.findings.iter().filter(|f| f.decisive).map(|f| f.message.as_str()).collect();
        let why = why.join("; ");
        match self.judgement {
            Judgement::Trustworthy => "trustworthy".to_owned(),
            Judgement::GeneratorBound => format!("generator-bound: throughput is a lower bound ({why})"),
            Judgement::LatencyUnreliable => format!("latency is not to be believed: {why}"),
        }
    }

    /// Whether the figures can be believed.
    pub fn is_trustworthy(&self) -> bool {
        self.judgement == Judgement::Trustworthy
    }
}

/// Whether many users come in one moment, which no generator has time for.
fn has_bursts(plan: &Plan) -> bool {
    let populations = plan.scenarios.iter().flat_map(|scenarios| &scenarios.populations);
    populations.flat_map(|population| &population.steps).any(|step| matches!(step, Step::AtOnce { .. }))
}

/// Whether a worker had no CPU time left in this second.
pub fn is_saturated(point: &Point) -> bool {
    point.health.busiest_worker >= SATURATED
}

/// Whether a script kept the workers too busy in this second.
pub fn is_bound_by_script(point: &Point) -> bool {
    (is_saturated(point) || is_late(point)) && point.health.script_share() > SCRIPT_SHARE
}

/// Whether a worker had to wait for a CPU in this second.
pub fn is_starved(point: &Point) -> bool {
    point.health.most_starved_worker >= STARVED
}

/// Whether calls were sent late by the generator in this second, by enough to show in what is reported.
pub fn is_late(point: &Point) -> bool {
    let Some(lag) = point.lag.quantile(0.99) else { return false };
    shows(lag, point.response_quantile(0.99).map_or(0, |p99| p99.value))
}

/// Whether a 99th percentile of lag shows in that of the response time.
fn shows(lag_ns: u64, response_ns: u64) -> bool {
    lag_ns > HARMLESS_LAG_NS && lag_ns as f64 > LAG_SHARE * response_ns as f64
}

/// Whether this second is spoiled in any way.
pub fn is_spoiled(point: &Point) -> bool {
    is_saturated(point) || is_starved(point) || is_late(point)
}

fn judgement(findings: &[Finding]) -> Judgement {
    let decisive = |cause: Cause| findings.iter().any(|f| f.decisive && f.cause == cause);
    // Lag outranks saturation, since it says what a saturated worker did to the figures.
    if decisive(Cause::Ports) || decisive(Cause::Descriptors) {
        Judgement::GeneratorBound
    } else if decisive(Cause::Lag) || decisive(Cause::CpuStarved) {
        Judgement::LatencyUnreliable
    } else if decisive(Cause::CpuSaturated) || decisive(Cause::SlowScript) {
        Judgement::GeneratorBound
    } else {
        Judgement::Trustworthy
    }
}

/// The seconds that `points` cover, neighbours joined.
fn seconds<'a>(points: impl Iterator<Item = &'a Point>) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for point in points {
        let first = point.start_ns / SECOND_NS;
        let last = (point.start_ns + point.length_ns).saturating_sub(1) / SECOND_NS;
        match ranges.last_mut() {
            Some((_, to)) if *to + 1 >= first => *to = last.max(*to),
            _ => ranges.push((first, last.max(first))),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::OkStatus;
    use crate::series::Series;
    use crate::snapshot::Health;
    use crate::summary::tests::run;

    /// A ten-second run whose every second looks like what `fault` makes of it.
    fn verdict_of(fault: impl Fn(u64, &mut Snapshot)) -> Verdict {
        let mut run = run();
        let mut total = Snapshot::default();
        run.series = Series::default();
        for i in 0..10 {
            let mut second = Snapshot { health: Health::of_interval(SECOND_NS, 400_000_000, 0), ..Default::default() };
            second.response.known.record_n(800_000, 1000);
            second.lag.record_n(20_000, 1000);
            fault(i, &mut second);
            run.series.push(SECOND_NS, &second, &OkStatus::default());
            total.merge(&second);
        }
        run.measured_ns = 10 * SECOND_NS;
        Verdict::of(&run, &total)
    }

    #[test]
    fn a_clean_run_has_nothing_to_say() {
        assert_eq!(verdict_of(|_, _| ()), Verdict { judgement: Judgement::Trustworthy, findings: Vec::new() });
    }

    #[test]
    fn a_slow_target_is_not_the_generators_fault() {
        let verdict = verdict_of(|_, second| {
            second.response.known.record_n(2 * SECOND_NS, 1000);
            second.waited_for_connection = 1000;
        });
        assert!(verdict.is_trustworthy() && verdict.findings.is_empty());
    }

    #[test]
    fn a_saturated_worker_bounds_the_rate() {
        let verdict = verdict_of(|_, second| second.health = Health::of_interval(SECOND_NS, 990_000_000, 0));
        assert_eq!(verdict.judgement, Judgement::GeneratorBound);
        assert_eq!(verdict.sentence(), "generator-bound: throughput is a lower bound (a worker used 99 % of a CPU)");
    }

    #[test]
    fn a_slow_script_is_named_only_where_it_is_the_limit() {
        let with = |cpu_ns, script_ns| {
            verdict_of(move |_, second| {
                second.health = Health { script_ns, ..Health::of_interval(SECOND_NS, cpu_ns, 0) };
            })
        };
        let slow = with(990_000_000, 800_000_000);
        assert_eq!(slow.judgement, Judgement::GeneratorBound);
        assert_eq!(slow.findings[0].cause, Cause::SlowScript);
        assert!(slow.sentence().contains("the script's hooks took 81 % of the CPU time"), "{}", slow.sentence());
        assert!(with(990_000_000, 300_000_000).findings.iter().all(|finding| finding.cause != Cause::SlowScript));
        assert!(with(500_000_000, 450_000_000).is_trustworthy(), "a busy script on an idle worker is no limit");
    }

    #[test]
    fn a_starved_worker_spoils_latency() {
        let verdict = verdict_of(|_, second| second.health = Health::of_interval(SECOND_NS, 400_000_000, 300_000_000));
        assert_eq!(verdict.judgement, Judgement::LatencyUnreliable);
        assert_eq!(verdict.findings[0].cause, Cause::CpuStarved);
    }

    #[test]
    fn lag_spoils_latency_where_it_shows() {
        let late = verdict_of(|_, second| second.lag.record_n(2_000_000, 100));
        assert_eq!(late.judgement, Judgement::LatencyUnreliable);
        assert_eq!(late.findings[0].cause, Cause::Lag);
        let hidden = verdict_of(|_, second| {
            second.lag.record_n(2_000_000, 100);
            second.response.known.record_n(SECOND_NS, 1000);
        });
        assert!(hidden.is_trustworthy());
    }

    #[test]
    fn late_seconds_that_do_not_show_in_the_whole_are_named_and_do_not_decide() {
        let verdict = verdict_of(|i, second| {
            if i < 3 {
                second.lag.record_n(2_000_000, 11);
            } else {
                second.response.known.record_n(SECOND_NS, 1000);
            }
        });
        assert!(verdict.is_trustworthy());
        assert_eq!(verdict.findings[0].seconds, [(0, 2)]);
    }

    #[test]
    fn exhausted_ports_and_descriptors_are_named() {
        for (failure, cause) in [(Failure::Ports, Cause::Ports), (Failure::Descriptors, Cause::Descriptors)] {
            let verdict = verdict_of(|_, second| second.failures.record(failure, ""));
            assert_eq!(verdict.judgement, Judgement::GeneratorBound);
            assert_eq!(verdict.findings[0].cause, cause);
            assert!(!verdict.findings[0].advice.is_empty());
        }
    }

    #[test]
    fn one_bad_second_of_ten_is_named_and_does_not_decide() {
        let verdict = verdict_of(|i, second| {
            if i == 4 {
                second.health = Health::of_interval(SECOND_NS, 400_000_000, 300_000_000);
            }
        });
        assert!(verdict.is_trustworthy());
        assert_eq!(verdict.findings[0].seconds, [(4, 4)]);
    }
}
