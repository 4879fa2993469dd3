//! Findings about the generator, cause by cause.

use crate::advice::Advice;
use brunt_plan::connections::Connections;
use brunt_plan::plan::{Load, Plan};
use brunt_plan::scenario::{Population, Step};
use brunt_plan::units::{Duration, count, counted, percent};
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::instrument::BoundedTimes;
use brunt_record::outcome::Failure;
use brunt_record::series::Point;
use brunt_record::snapshot::Snapshot;
use brunt_record::{RECEIVE_BUFFER_BYTES, SECOND_NS};

use crate::remarks::are_too_few;
use crate::trend::median;

use super::seconds::{MOST_LATE, late_calls, late_from_ns, starved_share};
use super::{
    FigureVerdict, Finding, Judged, Seconds, Spoils, VerdictCause, is_blurred, is_bound_by_script, is_late, is_robbed,
    is_saturated,
};

/// The share of spoiled seconds, or of time that own delays took, above which the whole run is spoiled.
const SPOILED_SHARE: f64 = 0.10;
/// The share of due calls that fail for want of ports or descriptors above which that counts.
const FEW: f64 = 0.001;
/// The share of calls sent late from which on it is mentioned.
const LATE_MENTIONED: f64 = 0.01;
/// A worker that waits for a CPU for this share of its time is late because of that.
const WAITED: f64 = 0.05;
/// A worker that used a CPU, and waited for one, for less than this share of its time had time to spare.
const SPARE: f64 = 0.8;
/// The least CPU time that connecting takes beyond the usual where it is the cause of a delay, in nanoseconds.
const LEAST_BURST_NS: f64 = 10e6;
/// The share of the longest lag that this CPU time reaches where it is the cause.
const BURST_OF_LAG: f64 = 0.5;
/// The fewest connections made in a second that count as a burst.
const FEWEST_CONNECTIONS: u64 = 20;

const LATE: &str = "brunt was late to send or to read";

/// The seconds of a run that have one problem in common.
struct Spoiled<'a> {
    points: Vec<&'a Point>,
}

impl<'a> Spoiled<'a> {
    fn by(run: Judged<'a>, is_so: impl Fn(&Point) -> bool) -> Self {
        Self { points: run.points.iter().filter(|point| is_so(point)).collect() }
    }

    /// Whether these are more of the run than may be.
    fn is_much(&self, run: Judged<'_>) -> bool {
        let spoiled: u64 = self.points.iter().map(|point| point.length_ns).sum();
        spoiled as f64 > SPOILED_SHARE * run.measured_ns as f64
    }

    /// The share of a CPU that the workers used in them, and the share for which they waited, on average; 0 to 1.
    fn used_and_waited(&self) -> (f64, f64) {
        let sum = |of: fn(&Point) -> u64| self.points.iter().map(|point| of(point)).sum::<u64>() as f64;
        let wall = sum(|point| point.numbers.get(Counter::WorkersWall)).max(1.0);
        (
            (sum(|point| point.numbers.get(Counter::WorkersCpu)) / wall).min(1.0),
            (sum(|point| point.numbers.get(Counter::WorkersStarved)) / wall).min(1.0),
        )
    }

    /// The share of the CPU time used in them that a script took, 0 to 1.
    fn script_share(&self) -> f64 {
        let sum = |of: fn(&Point) -> u64| self.points.iter().map(|point| of(point)).sum::<u64>() as f64;
        (sum(|point| point.numbers.get(Counter::WorkersScript))
            / sum(|point| point.numbers.get(Counter::WorkersCpu)).max(1.0))
        .min(1.0)
    }

    /// The number of connections made in bursts, if those kept the workers busy in most of these seconds: CPU time beyond that of
    /// the run's usual second and its cheapest calls, and not a wait for a CPU, makes up the longest lag.
    fn connecting(&self, run: Judged<'_>) -> Option<u64> {
        let cpu = |point: &Point| point.numbers.get(Counter::WorkersCpu) as f64;
        let shares: Vec<f64> = run.points.iter().map(|point| cpu(point) / point.length_ns.max(1) as f64).collect();
        let a_ns = median(&shares)?;
        // Calls of the burst itself cost more.
        let a_call =
            run.points.iter().map(|point| cpu(point) / point.ended.max(1) as f64).fold(f64::INFINITY, f64::min);
        let made = |point: &Point| point.numbers.get(Counter::ConnectionsMade);
        let is_burst = |point: &&&Point| {
            let usual = (a_ns * point.length_ns as f64).max(a_call * point.ended as f64);
            let beyond = cpu(point) - usual;
            let lag = point.lag.quantile(1.0).unwrap_or(0) as f64;
            made(point) >= FEWEST_CONNECTIONS
                && beyond >= LEAST_BURST_NS.max(BURST_OF_LAG * lag)
                && beyond >= point.numbers.get(Counter::WorkersStarved) as f64
        };
        let bursts: Vec<u64> = self.points.iter().filter(is_burst).map(|point| made(point)).collect();
        (!bursts.is_empty() && bursts.len() * 2 >= self.points.len()).then(|| bursts.iter().sum())
    }

    /// The second in which the workers had the least time left.
    fn worst(&self) -> Option<&'a Point> {
        let taken = |point: &Point| {
            point.numbers.ratio(Counter::BusiestWorker) + point.numbers.ratio(Counter::MostStarvedWorker)
        };
        self.points.iter().copied().max_by(|a, b| taken(a).total_cmp(&taken(b)))
    }

    /// The seconds that they cover, neighbours joined.
    fn seconds(&self) -> Vec<Seconds> {
        let mut ranges: Vec<Seconds> = Vec::new();
        for point in &self.points {
            let first = point.start_ns / SECOND_NS;
            let last = (point.start_ns + point.length_ns).saturating_sub(1) / SECOND_NS;
            match ranges.last_mut() {
                Some(range) if range.last + 1 >= first => range.last = last.max(range.last),
                _ => ranges.push(Seconds { first, last: last.max(first) }),
            }
        }
        ranges
    }
}

/// All findings, those that spoil throughput first.
pub(super) fn find(run: Judged<'_>, total: &Snapshot, figures: &[FigureVerdict]) -> Vec<Finding> {
    let late = sent_late(run, total);
    let mut findings: Vec<_> = exhausted(run, total).collect();
    let bounds = may_bound(run, total);
    findings.extend(slow_script(run, total, bounds));
    findings.extend(no_time_left(run, total, bounds));
    findings.extend(full_buffers(run, total));
    findings.extend(blurred(run, figures));
    findings.extend(late);
    let of_machine = findings.iter_mut().find(|finding| finding.decisive && is_of_machine(finding));
    if let Some(finding) = of_machine {
        finding.advice = Advice::SeeDoctor(Box::new(finding.advice.clone()));
    }
    findings
}

/// The calls due at times of their own that were not sent because brunt had no time left. How long the target would have taken for
/// them is unknown.
pub(super) fn unsent_by_brunt(run: Judged<'_>, total: &Snapshot) -> u64 {
    let bounds = run.plan.load.is_open() && may_bound(run, total);
    let mut limits = slow_script(run, total, bounds).into_iter().chain(no_time_left(run, total, bounds));
    let unsent = total.numbers.get(Counter::Unsent).saturating_sub(total.numbers.get(Counter::UnsentLost));
    if limits.any(|finding| finding.decisive) { unsent } else { 0 }
}

/// Whether the cause is this machine, or other programs on it, which `brunt doctor` examines.
fn is_of_machine(finding: &Finding) -> bool {
    match finding.cause {
        VerdictCause::Ports | VerdictCause::Descriptors | VerdictCause::CpuStarved => true,
        VerdictCause::Lag | VerdictCause::OwnDelays => {
            matches!(finding.advice, Advice::KeepOffCores | Advice::QuieterMachine)
        }
        VerdictCause::CpuSaturated | VerdictCause::SlowScript | VerdictCause::FullBuffers => false,
    }
}

/// Ports or descriptors that ran out.
fn exhausted(run: Judged<'_>, total: &Snapshot) -> impl Iterator<Item = Finding> {
    // Fewer connections than asked for limit a flood that waits for its answers.
    let is_flood = run.plan.scenarios.is_none() && run.plan.load == Load::Closed {};
    let is_short = is_flood && total.numbers.get(Counter::ConnectionsMade) < u64::from(run.plan.connections.most());
    let kinds = [
        (Failure::Ports, VerdictCause::Ports, "local ports", Advice::MorePorts),
        (Failure::Descriptors, VerdictCause::Descriptors, "file descriptors", Advice::MoreDescriptors),
    ];
    kinds.into_iter().filter_map(move |(failure, cause, what, advice)| {
        let (n, attempts) = (total.failures.count(failure), total.troubles.count(failure));
        let consequence = match n {
            0 => format!("{attempts} {} to connect failed", if attempts == 1 { "attempt" } else { "attempts" }),
            1 => "1 call was never sent for it".to_owned(),
            n => format!("{n} calls were never sent for it"),
        };
        let message = format!("this machine ran out of {what}: {consequence}");
        (n + attempts > 0).then(|| Finding {
            cause,
            spoils: Spoils::Throughput,
            message: message.into(),
            advice,
            seconds: Vec::new(),
            decisive: is_short || n as f64 > FEW * total.numbers.get(Counter::Due) as f64,
        })
    })
}

/// Datagrams that found no room in the generator's sockets: their content came later, and the target may have slowed down for it.
fn full_buffers(run: Judged<'_>, total: &Snapshot) -> Option<Finding> {
    let n = total.numbers.get(Counter::DatagramsDropped);
    let spoiled = Spoiled::by(run, |point| point.numbers.get(Counter::DatagramsDropped) > 0);
    let missing = total.numbers.get(Counter::ReceiveBufferMissing);
    let kib = |bytes: u64| count(bytes >> 10);
    let got = if missing > 0 {
        let (got, asked) = (kib(RECEIVE_BUFFER_BYTES.saturating_sub(missing)), kib(RECEIVE_BUFFER_BYTES));
        format!(" (receive buffers have {got} KiB of the {asked} KiB asked for)")
    } else {
        String::new()
    };
    (n > 0).then(|| Finding {
        cause: VerdictCause::FullBuffers,
        spoils: Spoils::Latency,
        message: format!(
            "this machine dropped {}: brunt's sockets were full{got}, and the answers came later",
            counted(n, "datagram")
        )
        .into(),
        advice: if missing > 0 { Advice::LargerBuffers } else { Advice::LessAtOnce },
        seconds: spoiled.seconds(),
        decisive: n as f64 > FEW * total.numbers.get(Counter::Due) as f64 || spoiled.is_much(run),
    })
}

/// A script that kept the workers from having time left.
fn slow_script(run: Judged<'_>, total: &Snapshot, bounds: bool) -> Option<Finding> {
    if total.numbers.get(Counter::WorkersScript) == 0 {
        return None;
    }
    let spoiled = Spoiled::by(run, is_bound_by_script);
    let is_scenario = run.plan.scenarios.is_some();
    let message = format!(
        "the script{} took {:.0}% of the CPU time that the workers used",
        if is_scenario { "" } else { "'s hooks" },
        spoiled.script_share() * 100.0
    );
    let advice = if is_scenario { Advice::LighterScenario } else { Advice::LighterHooks };
    (!spoiled.points.is_empty()).then(|| Finding {
        cause: VerdictCause::SlowScript,
        spoils: Spoils::Throughput,
        message: message.into(),
        advice,
        seconds: spoiled.seconds(),
        decisive: bounds && spoiled.is_much(run),
    })
}

/// The share of the calls, users or iterations due at times of their own that were not made from which on a generator
/// without time was the limit.
const NOT_MADE: f64 = 0.01;

/// How late the slowest hundredth of a replay's calls are sent from which on a generator without time was the limit.
const REPLAYED_LATE_NS: u64 = SECOND_NS;

/// Whether workers without time left can have limited throughput: connections and users that are always there wait for
/// them; of what is due at times of its own, a part was not made, and not for want of connections.
fn may_bound(run: Judged<'_>, total: &Snapshot) -> bool {
    let plan = run.plan;
    let of = |counter| total.numbers.get(counter) as f64;
    let mut populations = plan.scenarios.iter().flat_map(|scenarios| &scenarios.populations).peekable();
    if populations.peek().is_some() && populations.all(Population::is_open) {
        return total.figures.scenarios.iter().any(|(_, scenario)| {
            let users = (scenario.users_started + scenario.not_admitted) as f64;
            let cut_short = scenario.iterations.bounds.count() as f64;
            scenario.not_admitted as f64 > NOT_MADE * users || cut_short > NOT_MADE * scenario.iterations_begun() as f64
        });
    }
    // A replay makes every call of its log, however late.
    let replayed_late = || {
        let lag = total.times.known(Timing::Lag).quantile(1.0 - NOT_MADE);
        matches!(plan.load, Load::Replay(_)) && lag.is_some_and(|lag| lag >= REPLAYED_LATE_NS)
    };
    !plan.load.is_open()
        || replayed_late()
        || of(Counter::Unsent) - of(Counter::UnsentLost) > NOT_MADE * of(Counter::Due)
            && !are_too_few(plan, run.measured_ns, total)
}

/// The share of the time of its connections or users that own delays took from a closed run, 0 to 1: by as much it made
/// fewer calls. `None` where the arrival of answers is unknown.
fn held_up(run: Judged<'_>, total: &Snapshot) -> Option<f64> {
    let (own_part, as_read) = (BoundedTimes::of_response(&total.times), total.times.known(Timing::Response));
    let (read_ns, taken_ns) = own_part.cover().then(|| as_read.mean().zip(own_part.value.mean())).flatten()?;
    let calls = as_read.count() as f64;
    let own_ns = (read_ns - taken_ns).max(0.0) * calls;
    let (own_ns, all_ns) = if run.plan.scenarios.is_some() {
        // A pause ends as late as an answer is read.
        let users_ns = run.points.iter().map(|point| point.users as f64 * point.length_ns as f64).sum::<f64>();
        (2.0 * own_ns, users_ns)
    } else {
        (own_ns, read_ns * calls + total.numbers.get(Counter::WithoutServer) as f64)
    };
    (all_ns > 0.0).then(|| own_ns / all_ns)
}

/// Workers that ran, or waited to run, all the time, or that lost much of it to other programs. What they lose limits a
/// closed run as far as its connections or users wait for it: not those that pause, or have no server.
fn no_time_left(run: Judged<'_>, total: &Snapshot, bounds: bool) -> Option<Finding> {
    let is_used_up = Spoiled::by(run, is_saturated).is_much(run);
    let bounds = bounds && (is_used_up || held_up(run, total).is_none_or(|share| share > SPOILED_SHARE));
    let spoiled = Spoiled::by(run, |point| is_saturated(point) || is_robbed(point));
    let worst = spoiled.worst()?;
    let (used, waited) = (worst.numbers.ratio(Counter::BusiestWorker), worst.numbers.ratio(Counter::MostStarvedWorker));
    // Time that was lost, rather than used, went to other programs.
    let is_starved = waited > used || !spoiled.points.iter().any(|point| is_saturated(point));
    let (cause, advice) = if is_starved {
        (VerdictCause::CpuStarved, Advice::KeepOffCores)
    } else {
        (VerdictCause::CpuSaturated, Advice::MoreCores)
    };
    let message = if is_starved {
        format!("a worker was ready to run and had no CPU for {:.0}% of the time", waited * 100.0)
    } else if waited >= WAITED {
        format!("a worker used {:.0}% of a CPU and had none for {:.0}% of the time", used * 100.0, waited * 100.0)
    } else {
        format!("a worker used {:.0}% of a CPU", used * 100.0)
    };
    Some(Finding {
        cause,
        spoils: Spoils::Throughput,
        message: message.into(),
        advice,
        seconds: spoiled.seconds(),
        decisive: bounds && spoiled.is_much(run),
    })
}

/// Own delays that blur latency: of a figure that was asked for, or only in some seconds.
fn blurred(run: Judged<'_>, figures: &[FigureVerdict]) -> Option<Finding> {
    let spoiled = Spoiled::by(run, is_blurred);
    let unknown = spoiled.points.iter().any(|point| !point.is_target_part);
    let is_asked_for = figures.iter().any(|figure| !figure.holds);
    // Where the arrival of answers is unknown, only the health of the workers speaks for or against the figures.
    let decisive = is_asked_for || (unknown && spoiled.is_much(run));
    if !decisive && spoiled.points.is_empty() {
        return None;
    }
    let (used, waited) = spoiled.used_and_waited();
    let most_waited = spoiled.points.iter().map(|point| starved_share(point)).fold(0.0, f64::max);
    let is_starved = waited >= WAITED || most_waited >= WAITED;
    let burst = spoiled.connecting(run);
    let (cause, reason, advice) = match burst {
        _ if used + waited >= SPARE && !is_starved => {
            (VerdictCause::CpuSaturated, format!("a worker used {:.0}% of a CPU", used * 100.0), Advice::MoreCores)
        }
        Some(made) => (VerdictCause::OwnDelays, LATE.to_owned(), connect_earlier(run, made)),
        None if is_starved => {
            let share = waited.max(most_waited) * 100.0;
            let reason = format!("a worker waited for a CPU for {share:.0}% of a second");
            (VerdictCause::CpuStarved, reason, Advice::KeepOffCores)
        }
        None => (VerdictCause::OwnDelays, LATE.to_owned(), Advice::QuieterMachine),
    };
    let wide: Vec<_> = figures.iter().filter(|figure| !figure.holds).map(between).collect();
    let message = if wide.is_empty() { reason } else { format!("{reason}; {}", wide.join(", ")) };
    let seconds = spoiled.seconds();
    Some(Finding { cause, spoils: Spoils::Latency, message: message.into(), advice, seconds, decisive })
}

/// Such as `p99 is between 1.90ms and 2.60ms`.
fn between(figure: &FigureVerdict) -> String {
    let low = Duration(figure.low_ns);
    match figure.high_ns {
        Some(high) => format!("{} is between {low} and {}", figure.figure, Duration(high)),
        None => format!("{} is {low} or more", figure.figure),
    }
}

/// Calls that the generator sent late: the target saw another arrival process than the one asked for.
fn sent_late(run: Judged<'_>, total: &Snapshot) -> Option<Finding> {
    let points = run.points;
    let late: u64 = points.iter().map(late_calls).sum();
    let all = total.times.known(Timing::Lag).count().max(1) as f64;
    let spoiled = Spoiled::by(run, is_late);
    let share = late as f64 / all;
    if share < LATE_MENTIONED && spoiled.points.is_empty() {
        return None;
    }
    let limit = points.iter().filter(|point| late_calls(point) > 0).map(late_from_ns).min().unwrap_or(0);
    let p99 = Duration(total.times.known(Timing::Lag).quantile(0.99).unwrap_or(0));
    let message = format!(
        "{} of calls were sent late, by {} or more (lag p99 {p99}): the load was burstier than asked for",
        percent(share),
        Duration(limit)
    );
    let (used, waited) = spoiled.used_and_waited();
    let advice = if has_bursts(run.plan) {
        Advice::SpreadUsers
    } else if used + waited >= SPARE && waited < WAITED {
        Advice::FewerCallsEach
    } else if let Some(made) = spoiled.connecting(run) {
        connect_earlier(run, made)
    } else if waited >= WAITED {
        Advice::KeepOffCores
    } else {
        Advice::QuieterMachine
    };
    Some(Finding {
        cause: VerdictCause::Lag,
        spoils: Spoils::Arrivals,
        message: message.into(),
        advice,
        seconds: spoiled.seconds(),
        decisive: share > MOST_LATE,
    })
}

/// The advice where connections made in a burst kept brunt busy.
fn connect_earlier(run: Judged<'_>, made: u64) -> Advice {
    let is_of_users = run.plan.scenarios.is_some();
    if !matches!(run.plan.connections, Connections::UpTo(_)) || !run.plan.load.is_open() || is_of_users {
        return Advice::ConnectSlower { made };
    }
    let open = run.points.iter().filter_map(|point| point.open_connections).max().unwrap_or(made);
    Advice::ConnectEarlier { made, open }
}

/// Whether many users come in one moment, for which no generator has the time.
fn has_bursts(plan: &Plan) -> bool {
    let populations = plan.scenarios.iter().flat_map(|scenarios| &scenarios.populations);
    populations.flat_map(|population| &population.steps).any(|step| matches!(step, Step::AtOnce { .. }))
}
