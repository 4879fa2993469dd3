//! The state of a run that goes on, in one line: current events, or otherwise the findings so far.

use brunt_judge::remarks::Tone;
use brunt_judge::summary::Summary;
use brunt_judge::thresholds::Outlook;
use brunt_plan::plan::{Load, Plan};
use brunt_plan::units::{Duration, count, counted};
use brunt_record::catalogue::Counter;
use brunt_record::histogram::Histogram;
use brunt_record::live::Live;
use brunt_record::snapshot::Phase;
use brunt_record::timeline::{DuePoint, TICK_NS, Timeline};

use crate::headline::{self, InReports, Toned};
use crate::style::Role;

/// The fewest calls that have to wait for a stall.
const FEWEST_CALLS: u64 = 5;
/// A silence is a stall if it lasts this many times the median response time, as for a freeze in a result.
const SILENCE: u64 = 4;
/// The factor where fewer calls than [`FEWEST_CALLS`] can be in flight at once.
const SILENCE_OF_FEW: u64 = 10;
/// How long the first answer may take before its absence is a stall, in nanoseconds.
const FIRST_ANSWER_NS: u64 = brunt_record::SECOND_NS;
/// The share of a second's failures without a server from which on it is an outage.
const OUT: f64 = 0.9;
/// The share of a silence for which brunt itself has to lack a CPU to be its cause.
const OWN: f64 = 0.5;

/// A target that answers nothing while calls wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stall {
    /// When the silence began, in nanoseconds of the measured part.
    pub from_ns: u64,
    /// How long it lasts, in nanoseconds.
    pub silent_ns: u64,
    /// Whether anything was answered before it.
    pub has_answered: bool,
}

/// The state at the end of a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Now {
    /// Calls end.
    Steady,
    /// No call ends, and calls wait.
    Stalled(Stall),
    /// Calls find no server; with the number of such calls in the last second.
    Out(u64),
    /// No call ends, and brunt had no CPU.
    Starved,
}

/// The inputs for the state of a moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Moment {
    /// Since the beginning of the measured part, or of the warm-up, in nanoseconds.
    pub now_ns: u64,
    /// The end of the last stretch with a completion, since the same beginning.
    pub last_completion_ns: u64,
    /// Calls that wait, in flight or not sent.
    pub waiting: u64,
    pub oldest_ns: u64,
    /// The median of the response times so far.
    pub median_ns: Option<u64>,
}

impl Now {
    pub(super) fn new(plan: &Plan, live: &Live, moment: &Moment, known: &Histogram) -> Self {
        let failures: u64 = live.snapshot.failures.total();
        let unreached: u64 =
            live.snapshot.failures.counted().filter(|(failure, _)| failure.is_unreached()).map(|(_, n)| n).sum();
        if unreached >= FEWEST_CALLS
            && live.snapshot.numbers.get(Counter::EndedAnswered) == 0
            && unreached as f64 >= OUT * failures as f64
        {
            return Self::Out(unreached);
        }
        let silent_ns = moment.now_ns.saturating_sub(moment.last_completion_ns);
        let has_answered = moment.median_ns.is_some();
        let mut shortest = moment.median_ns.map_or(FIRST_ANSWER_NS, |median| (SILENCE * median).max(TICK_NS));
        if moment.waiting < FEWEST_CALLS {
            let is_everybody = matches!(plan.load, Load::Closed {})
                && plan.scenarios.is_none()
                && moment.waiting >= u64::from(plan.connections.most());
            if !is_everybody {
                return Self::Steady;
            }
            shortest = shortest.max(SILENCE_OF_FEW * known.quantile(0.99).unwrap_or(0));
        }
        // A call that waits for less than the silence came after others that ended, whose times are not recorded to the
        // tick.
        if silent_ns < shortest || moment.oldest_ns < shortest.min(silent_ns) / 2 {
            return Self::Steady;
        }
        let starved = live.snapshot.numbers.ratio(Counter::MostStarvedWorker);
        if starved * live.length_ns as f64 >= OWN * silent_ns as f64 {
            return Self::Starved;
        }
        Self::Stalled(Stall { from_ns: moment.now_ns - silent_ns, silent_ns, has_answered })
    }
}

/// How long calls due in succession until now have found no server, in nanoseconds.
pub(super) fn out_ns(timeline: &Timeline, now_ns: u64) -> u64 {
    let is_out = |point: &DuePoint| point.unreached as f64 >= OUT * point.due() as f64;
    let out = timeline.points().rev().take_while(|(_, point)| is_out(point)).last();
    out.map_or(0, |(from_ns, _)| now_ns.saturating_sub(from_ns))
}

/// The findings so far: as in the report, without thresholds that may still hold.
pub(crate) fn found(summary: &Summary) -> Vec<Toned> {
    let mut found = headline::so_far(summary);
    if let Some(lost) = lost_thresholds(summary) {
        let place = found.iter().take_while(|remark| remark.tone.is_bad()).count();
        found.insert(place, lost);
    }
    found
}

/// [`found`], at least one remark: how many calls succeeded, where there is nothing else to say.
pub(crate) fn going_on(summary: &Summary) -> Vec<Toned> {
    let mut all = found(summary);
    if all.is_empty() {
        all.push(headline::all_well(summary, 0));
    }
    all
}

/// Thresholds that can hold no more, whatever comes.
fn lost_thresholds(summary: &Summary) -> Option<Toned> {
    let (run, plan) = (&summary.run, &summary.plan);
    let outlook = Outlook::new(plan, run.measured_ns, &run.measured, run.series.users());
    let standing = summary.standing();
    let lost = plan.thresholds.iter().filter(|threshold| standing.is_beyond_repair(threshold, outlook));
    let lost: Vec<_> = lost.map(|threshold| standing.judge(threshold)).collect();
    let plural = if lost.len() == 1 { "" } else { "s" };
    let lost: Vec<_> = lost.iter().collect();
    (!lost.is_empty()).then(|| Toned::of_thresholds(&format!("threshold{plural} lost"), &lost))
}

/// The state in words, with its sign, and its role.
pub(super) fn words(now: Now, live: &Live, out_ns: u64, found: &[Toned]) -> (Role, String) {
    let waiting = live.in_flight + live.waiting;
    let calls = || format!("{} wait{}", counted(waiting, "call"), if waiting == 1 { "s" } else { "" });
    let oldest = Duration(live.oldest_ns);
    match now {
        Now::Out(failed) => {
            let failures = &live.snapshot.failures;
            let worst = failures.counted().max_by_key(|(_, n)| *n).map(|(failure, _)| failure);
            let reason = worst.and_then(|failure| Some(failures.reasons(failure).first()?.0.to_owned()));
            let reason = reason.filter(|reason| !reason.is_empty());
            let reason = reason.map_or_else(String::new, |reason| format!(" ({})", crate::numbers::brief(&reason)));
            let calls = format!("{} failed in the last second", counted(failed, "call"));
            (Role::Bad, format!("✗ NO SERVER for {}: {calls}{reason}", seconds(out_ns)))
        }
        Now::Stalled(stall) => {
            let what = if stall.has_answered { "STALLED" } else { "NO ANSWER YET" };
            (Role::Warning, format!("▲ {what} {}: {}, oldest {oldest}", seconds(stall.silent_ns), calls()))
        }
        Now::Starved => {
            let share = live.snapshot.numbers.ratio(Counter::MostStarvedWorker);
            let share = brunt_plan::units::percent(share);
            (Role::Warning, format!("▲ brunt itself had no CPU for {share} of the last second"))
        }
        Now::Steady => {
            if let Some(remark) = found.first() {
                return (remark.tone.role(), format!("{}{}", sign(remark), remark.remark.message));
            }
            let steady = match live.phase {
                Phase::Warmup => "Warming up",
                Phase::Measured => "Steady",
                Phase::Drain => "Draining",
            };
            let waits = match waiting {
                0 => "no call waits".to_owned(),
                _ if live.oldest_ns == 0 => calls(),
                _ => format!("{}, oldest {oldest}", calls()),
            };
            (Role::Plain, format!("  {steady}: {waits}"))
        }
    }
}

/// The sign of a remark in a live view, where nothing is judged yet.
pub(super) fn sign(remark: &Toned) -> &'static str {
    match remark.tone {
        Tone::Failed | Tone::Failing => "✗ FAILING: ",
        Tone::Bad => "✗ ",
        Tone::Warning => "▲ ",
        _ => "  ",
    }
}

/// Such as `0.4s`, `1.8s` or `12s`.
pub(super) fn seconds(ns: u64) -> String {
    let tenths = ns / 100_000_000;
    if tenths >= 1000 { format!("{}s", count(tenths / 10)) } else { format!("{}.{}s", tenths / 10, tenths % 10) }
}
