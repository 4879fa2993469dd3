//! Remarks on the target or the plan, for which the generator is not to blame; shown beside the verdict.

mod answers;
mod connecting;
mod episodes;
mod limits;
mod own;
mod patterns;
#[cfg(test)]
mod shapes;
mod slowness;
mod stretch;

use crate::advice::Advice;
use crate::asked::lacks_messages;
use crate::phrase::Phrase;
use serde::{Deserialize, Serialize};

use brunt_plan::connections::Connections;
use brunt_plan::plan::{Load, Plan};
use brunt_plan::units::{Duration, ExactDuration, count, counted};
use brunt_record::SECOND_NS;
use brunt_record::agents::AgentEnd;
use brunt_record::catalogue::Counter;
use brunt_record::instrument::BoundedTimes;
use brunt_record::recording::Recording;
use brunt_record::snapshot::Snapshot;

/// The share of calls that found every connection busy from which on a remark is made.
const BUSY: f64 = 0.05;
/// The least ratio of connections to the average calls in flight.
const ROOM: f64 = 1.25;
/// The share of the measured time above which the median call makes ok/s read low.
const CUT_OFF: f64 = 0.02;
/// The mean time of a call, as a multiple of the least, from which on the target holds calls up.
const HELD_UP: f64 = 2.0;
/// The most agents that are named after the first.
const MOST_NAMED: usize = 4;

/// The subject of a remark. Judging a run finds those of the target and of the plan; reports add the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// No answer was a success.
    NoSuccess,
    /// Answers should have come as messages, and none did.
    NoMessages,
    /// Every answer led elsewhere.
    Redirects,
    /// Calls waited for a connection.
    Connections,
    /// The target was gone for a while.
    Outage,
    /// Connections with calls under way were lost at a moment.
    Drops,
    /// The target stood still for a while.
    Freeze,
    /// The target fell behind what was due.
    Overload,
    /// The target answered, and was slow for a while.
    Slowness,
    /// The target lets a rate through and turns the rest away.
    RateLimit,
    /// Agents were lost.
    Agents,
    /// One request failed where the others did not.
    FailingRequest,
    /// One request makes up most of the slowest calls.
    SlowRequest,
    /// Calls took one of two times.
    Modes,
    /// Failures were much faster or slower than answers.
    FailureTimes,
    /// Connections were made only when the kernel asked again.
    ListenQueue,
    /// The target closed connections after a few calls each, or brunt did for what the target sent.
    Closes,
    /// One of the target's addresses took no connection, and another did.
    Address,
    /// The target's name led to other addresses than at the beginning.
    Moved,
    /// Answers were of another kind than before, with a status that is a success.
    AnotherAnswer,
    /// A connection was made for nearly each call, and that took as long as the rest, or longer.
    Connecting,
    /// The run was so short that the throughput lacks a part: calls that were in flight at its end.
    CutOff,
    /// The warm-up was shorter than calls take.
    ShortWarmUp,
    /// A figure of the protocol's own is larger than what was asked for explains.
    OwnFigure,
    /// The run's outcome: calls that succeeded or failed, and thresholds that held.
    Outcome,
    /// An end that was not as planned.
    Ending,
    /// A pause that went on to the end.
    Pause,
    /// No call was answered.
    NothingAnswered,
    /// More calls failed, or more time went by without a server, than an implicit threshold allows.
    TooManyFailed,
    /// Less load was made than asked for.
    Load,
    /// Thresholds failed.
    Thresholds,
    /// Users were not admitted.
    NotAdmitted,
    /// A scenario ended as its rows were used up.
    OutOfRows,
    /// A script ended its run since it was done.
    Stopped,
    /// Figures that are brunt's own, and not the target's.
    Generator,
    /// The run had not settled.
    NotSettled,
}

/// How a remark is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// The run failed by what every run has to meet: calls that succeed, and the load that was asked for.
    Failed,
    /// The same of a run that goes on.
    Failing,
    /// A requirement did not hold.
    Bad,
    /// Something that whoever reads the figures has to know.
    Warning,
    /// An explanation of figures, neither for nor against the run.
    Note,
    /// All calls succeeded, and there were no requirements.
    Plain,
    /// Every requirement held.
    Good,
}

impl Tone {
    /// Whether it says that something failed.
    pub const fn is_bad(self) -> bool {
        matches!(self, Self::Failed | Self::Failing | Self::Bad)
    }
}

/// The side that a remark is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The run as a whole: its outcome, its end, its conditions.
    Run,
    /// The target, or how the plan asks it.
    Target,
    /// brunt itself.
    Generator,
}

impl About {
    /// The side that it belongs to.
    pub const fn side(self) -> Side {
        match self {
            Self::Generator | Self::Agents => Side::Generator,
            Self::Outcome
            | Self::Ending
            | Self::Pause
            | Self::NothingAnswered
            | Self::TooManyFailed
            | Self::Load
            | Self::Thresholds
            | Self::NotAdmitted
            | Self::OutOfRows
            | Self::Stopped
            | Self::NotSettled
            | Self::ShortWarmUp => Side::Run,
            Self::NoSuccess
            | Self::NoMessages
            | Self::Redirects
            | Self::Connections
            | Self::Outage
            | Self::Drops
            | Self::Freeze
            | Self::Overload
            | Self::Slowness
            | Self::RateLimit
            | Self::FailingRequest
            | Self::SlowRequest
            | Self::Modes
            | Self::FailureTimes
            | Self::ListenQueue
            | Self::Closes
            | Self::Address
            | Self::Moved
            | Self::AnotherAnswer
            | Self::Connecting
            | Self::OwnFigure
            | Self::CutOff => Side::Target,
        }
    }

    /// Whether the target behaved differently for a while, so that figures of the whole run describe no steady state.
    pub const fn is_unsteady(self) -> bool {
        matches!(self, Self::Outage | Self::Freeze | Self::Overload | Self::Slowness)
    }

    /// Whether it only explains figures, and is not a complaint about the run.
    pub const fn is_note(self) -> bool {
        matches!(
            self,
            Self::SlowRequest
                | Self::Modes
                | Self::FailureTimes
                | Self::Closes
                | Self::Connecting
                | Self::CutOff
                | Self::ShortWarmUp
        )
    }
}

/// One remark, with its advice.
#[derive(Debug, Clone, PartialEq)]
pub struct Remark {
    /// Its subject.
    pub about: About,
    /// The observation.
    pub message: Phrase,
    /// What to do about it; missing where there is nothing to advise.
    pub advice: Option<Advice>,
    /// When it began, in nanoseconds of the measured part; this and the next five are missing where they do not apply.
    pub from_ns: Option<u64>,
    /// When it ended; missing where it does not apply.
    pub to_ns: Option<u64>,
    /// Calls that it hit.
    pub calls: Option<u64>,
    /// The least duration of the worst of them, in nanoseconds.
    pub worst_ns: Option<u64>,
    /// Their share of the calls that could have been hit, 0 to 1.
    pub share_ratio: Option<f64>,
    /// Why, where failures gave a reason; empty where none is known.
    pub cause: String,
    /// The name of the request that it is about.
    pub request: Option<String>,
}

impl Remark {
    /// A remark on the whole run, without advice.
    pub fn new(about: About, message: impl Into<Phrase>) -> Self {
        Self {
            about,
            message: message.into(),
            advice: None,
            from_ns: None,
            to_ns: None,
            calls: None,
            worst_ns: None,
            share_ratio: None,
            cause: String::new(),
            request: None,
        }
    }
}

/// All remarks on a run. `total` counts every call, those of the drain included.
pub(crate) fn find(plan: &Plan, run: &Recording, total: &Snapshot) -> Vec<Remark> {
    let found = [
        lost_agents(run),
        no_success(plan, run, total),
        no_messages(plan, total),
        redirects(plan, run, total),
        busy(plan, run, total),
    ];
    let mut remarks = episodes::all(plan, run, total);
    let is_disturbed = !remarks.is_empty();
    remarks.extend(answers::another(total));
    let found: Vec<_> = found.into_iter().flatten().collect();
    // Calls that wait for a connection of the run's own say nothing of the target, which answers those that it gets. A conversation may
    // keep its connection for minutes, and the times of others from when they were due are no times of the target's.
    let waits = found.iter().any(|remark| remark.about == About::Connections);
    let is_of_waiting = |about: About| match about {
        About::Overload => plan.own_times || is_never_slow(total),
        About::Freeze | About::Slowness => plan.own_times,
        _ => false,
    };
    remarks.retain(|remark| !(waits && is_of_waiting(remark.about)));
    remarks.extend(found);
    remarks.extend(cut_off(plan, run, total).filter(|_| !is_disturbed));
    remarks.extend(patterns::all(plan, run, total, is_disturbed));
    remarks.extend(connecting::find(total));
    remarks.extend(own::find(plan, total));
    remarks.extend(short_warm_up(plan, total));
    remarks
}

/// Calls of agents that were lost are no fault of the target's.
fn lost_agents(run: &Recording) -> Option<Remark> {
    let lost: Vec<_> = run.agents.iter().filter(|agent| agent.is_lost()).collect();
    let (first, others) = lost.split_first()?;
    let AgentEnd::Lost { after_ns, reason, .. } = &first.ended else { return None };
    let (they, them) = if others.is_empty() { ("it", "it") } else { ("they", "them") };
    let unsent: u64 = lost.iter().map(|agent| agent.unsent_lost()).sum();
    let (all, after) = (run.agents.len(), brief_ns(*after_ns));
    let mut parts = vec![format!(
        "{} of {} lost: {} after {after}, {reason}",
        lost.len(),
        if lost.len() == 1 { format!("{all} agents was") } else { format!("{all} agents were") },
        first.name
    )];
    if !others.is_empty() {
        let names: Vec<_> = others.iter().take(MOST_NAMED).map(|agent| agent.name.as_str()).collect();
        parts.push(format!("then {}{}", names.join(", "), if others.len() > MOST_NAMED { ", …" } else { "" }));
    }
    if unsent > 0 {
        parts.push(format!("{} that fell to {them} were never sent", counted(unsent, "call")));
    }
    let unknown: u64 = lost.iter().map(|agent| agent.unknown()).sum();
    if unknown > 0 {
        parts.push(format!("{they} may have sent {}", counted(unknown, "call")));
    }
    let (mut missed, mut iterations) = (0_u64, 0_u64);
    for agent in &lost {
        if let AgentEnd::Lost { users_missed, iterations_unknown, .. } = &agent.ended {
            (missed, iterations) = (missed + users_missed, iterations + iterations_unknown);
        }
    }
    let untold = lost.iter().filter_map(|agent| match &agent.ended {
        AgentEnd::Lost { untold: Some(untold), .. } => Some(format!("on {} {untold}", agent.name)),
        _ => None,
    });
    parts.extend(untold.take(MOST_NAMED));
    if missed > 0 {
        parts.push(format!("{} due on {them} never started", counted(missed, "virtual user")));
    }
    if iterations > 0 {
        parts.push(format!("{they} had not told of {}", counted(iterations, "iteration")));
    }
    let message = parts.join("; ");
    let advice = Advice::LeaveOutAgent { name: first.name.clone() };
    Some(Remark { advice: Some(advice), ..Remark::new(About::Agents, message) })
}

/// Such as `12.3s`.
fn brief_ns(ns: u64) -> String {
    format!("{:.1}s", ns as f64 / 1e9)
}

fn is_http(plan: &Plan) -> bool {
    matches!(plan.target.scheme.as_str(), "http" | "https")
}

fn no_success(plan: &Plan, run: &Recording, total: &Snapshot) -> Option<Remark> {
    let statuses = total.statuses.sorted();
    let answered = total.statuses.total();
    // Calls that failed a check are named with their check.
    if answered == 0 || total.statuses.ok(&plan.ok_status) > 0 {
        return None;
    }
    let message = match statuses.as_slice() {
        [(status, 1)] => format!("the answer was {}", named(run, *status)),
        [(status, _)] => format!("every answer was {}", named(run, *status)),
        several => {
            let names: Vec<_> =
                several.iter().map(|&(status, n)| format!("{} × {}", named(run, status), count(n))).collect();
            format!("no answer was a success: {}", names.join(", "))
        }
    };
    let most = statuses.iter().max_by_key(|(_, n)| *n).map_or(0, |(status, _)| *status);
    // A script has credentials of its own.
    let is_scripts = plan.scenarios.is_some() && matches!(most, 401 | 403 | 407);
    let advice = if is_http(plan) && !is_scripts { Advice::on_status(most) } else { Advice::LookAtCall };
    Some(Remark { advice: Some(advice), ..Remark::new(About::NoSuccess, message) })
}

/// Answers that should come as messages, and did not.
fn no_messages(plan: &Plan, total: &Snapshot) -> Option<Remark> {
    lacks_messages(plan, total).then(|| Remark {
        advice: Some(Advice::CheckFraming),
        ..Remark::new(About::NoMessages, "answers were to come as messages, and none did")
    })
}

/// Such as `503`, or `3 (NotFound)` where the protocol has names.
fn named(run: &Recording, status: u16) -> String {
    run.status_names.get(&status).map_or_else(|| status.to_string(), |name| format!("{status} ({name})"))
}

/// Redirects count as answered, and are seldom meant to be measured.
fn redirects(plan: &Plan, run: &Recording, total: &Snapshot) -> Option<Remark> {
    let statuses = total.statuses.sorted();
    let is_redirect = |status: u16| matches!(status, 301 | 302 | 303 | 307 | 308);
    let all = !statuses.is_empty() && statuses.iter().all(|(status, _)| is_redirect(*status));
    let are_success = total.statuses.ok(&plan.ok_status) > 0;
    if !is_http(plan) || !all || !are_success {
        return None;
    }
    let what = match statuses.as_slice() {
        [(status, 1)] => format!("the answer was a redirect ({status})"),
        [(status, _)] => format!("every answer was a redirect ({status})"),
        _ => "every answer was a redirect".to_owned(),
    };
    Some(match &run.redirected_to {
        Some(url) => {
            Remark { advice: Some(Advice::UseThatUrl), ..Remark::new(About::Redirects, format!("{what} to {url}")) }
        }
        None => Remark { advice: Some(Advice::FollowRedirects), ..Remark::new(About::Redirects, what) },
    })
}

/// Calls in flight at the end are in no throughput. After a warm-up those of the beginning make up for them; without one, ok/s
/// at a rate λ reads low by about λ times the time of a call over the length of the run.
fn cut_off(plan: &Plan, run: &Recording, total: &Snapshot) -> Option<Remark> {
    let p50_ns = total.response_quantile(0.5)?.value;
    let share = p50_ns as f64 / run.measured_ns.max(1) as f64;
    let in_flight = run.drained.ended_late();
    if !plan.load.is_open() || plan.warmup_ns > 0 || share <= CUT_OFF || in_flight == 0 {
        return None;
    }
    let message = format!(
        "ok/s reads low: {} still in flight at the end, and p50 is {:.0}% of the measured time",
        if in_flight == 1 { "1 call was".to_owned() } else { format!("{} calls were", count(in_flight)) },
        share * 100.0
    );
    Some(Remark { calls: Some(in_flight), advice: Some(Advice::WarmUp), ..Remark::new(About::CutOff, message) })
}

/// A warm-up shorter than the mean call: its first calls, which meet an idle target, reach into the measured part, and fewer have ended in it
/// than run at once (Little's law).
fn short_warm_up(plan: &Plan, total: &Snapshot) -> Option<Remark> {
    let is_flood = plan.scenarios.is_none() && !matches!(plan.load, Load::Replay(_));
    if !is_flood || plan.warmup_ns == 0 {
        return None;
    }
    let mean_ns = total.response_times().mean()?.value as u64;
    if plan.warmup_ns >= mean_ns {
        return None;
    }
    let (warm_up, mean) = (ExactDuration(plan.warmup_ns), Duration(mean_ns));
    let message = format!("the warm-up of {warm_up} was shorter than a call takes: {mean} on average");
    let seconds = mean_ns.div_ceil(SECOND_NS);
    Some(Remark { advice: Some(Advice::LongerWarmUp { seconds }), ..Remark::new(About::ShortWarmUp, message) })
}

/// Calls that were due while every connection was busy.
fn busy(plan: &Plan, run: &Recording, total: &Snapshot) -> Option<Remark> {
    let waited = total.numbers.get(Counter::WaitedForConnection);
    if !have_waited(total) || total.statuses.total() == 0 {
        return None;
    }
    if plan.scenarios.is_some() {
        let due = counted(total.numbers.get(Counter::Due), "call");
        let message = format!("the script's pool of connections was busy: {} of {due} waited for one", count(waited));
        return Some(Remark { advice: Some(Advice::RaisePool), ..Remark::new(About::Connections, message) });
    }
    let Load::Open { .. } = &plan.load else { return None };
    let most = plan.connections.most();
    let reached = match plan.connections {
        Connections::Fixed(_) => true,
        Connections::UpTo(_) => run.series.points().iter().any(|point| point.open_connections >= Some(most.into())),
    };
    let all = if most == 1 {
        "the only connection was".to_owned()
    } else {
        format!("all {} connections were", count(most.into()))
    };
    let message =
        format!("{all} busy: {} of {} waited for one", count(waited), counted(total.numbers.get(Counter::Due), "call"));
    let advice = match (plan.connections, needed(plan, run.measured_ns, total)) {
        _ if !reached => return None,
        (Connections::UpTo(_), _) => Advice::GiveConnections,
        (Connections::Fixed(_), _) if plan.own_times => Advice::MoreConversations,
        (Connections::Fixed(_), Some(needed)) if needed > u64::from(most) => Advice::RaiseConnections { needed },
        (Connections::Fixed(_), _) => Advice::MoreConnections,
    };
    Some(Remark { advice: Some(advice), ..Remark::new(About::Connections, message) })
}

/// Whether more than a few calls were due while every connection was busy.
fn have_waited(total: &Snapshot) -> bool {
    let waited = total.numbers.get(Counter::WaitedForConnection);
    waited > 0 && waited as f64 >= BUSY * total.numbers.get(Counter::Due) as f64
}

/// Whether the rate of a run takes more connections than there may be, however fast brunt is.
pub(crate) fn are_too_few(plan: &Plan, measured_ns: u64, total: &Snapshot) -> bool {
    // Calls alone do not say for how long a conversation keeps its connection.
    if plan.own_times {
        return have_waited(total);
    }
    let is_known = plan.load.is_open() && BoundedTimes::of_service(&total.times).cover();
    is_known && needed(plan, measured_ns, total).is_some_and(|needed| needed > u64::from(plan.connections.most()))
}

/// Whether the target took about as long for each call as for the fastest: it held none of them up.
fn is_never_slow(total: &Snapshot) -> bool {
    let service = total.service_times();
    let ends = service.lower().mean().zip(service.known.min());
    ends.is_some_and(|(mean, least)| mean <= HELD_UP * least as f64)
}

/// The number of connections that the rate needs, with room: the average number of calls in flight (J. D. C. Little, "A
/// proof for the queuing formula L = λW", Operations Research 9, 1961), where λ is the due rate and W the time of a
/// call from when it was sent; rounded up to two digits.
fn needed(plan: &Plan, measured_ns: u64, total: &Snapshot) -> Option<u64> {
    let seconds = measured_ns as f64 / SECOND_NS as f64;
    let service_s = total.service_times().lower().mean()? / SECOND_NS as f64;
    let calls = total.numbers.get(Counter::Due) as f64 / seconds * service_s;
    let exact = (calls * ROOM / f64::from(plan.pipeline)).ceil();
    if !exact.is_finite() || exact < 1.0 {
        return None;
    }
    let digit = 10_f64.powi((exact.log10().floor() as i32 - 1).max(0));
    Some(((exact / digit).round() * digit) as u64)
}

#[cfg(test)]
mod tests {
    use brunt_record::catalogue::Timing;
    use brunt_record::outcome::OkStatus;

    use super::*;
    use crate::fixtures::run;
    use crate::summary::Summary;

    /// A run whose only answers are these.
    fn answered(statuses: &[(u16, u64)]) -> (Plan, Recording) {
        let (plan, mut run) = run();
        run.measured.statuses = brunt_record::counts::Statuses::default();
        for &(status, n) in statuses {
            (0..n).for_each(|_| run.measured.statuses.record(status));
        }
        (plan, run)
    }

    fn remarks((plan, run): (Plan, Recording)) -> Vec<(About, String, Option<Advice>)> {
        let remarks = Summary::new(plan, run).remarks.into_iter();
        remarks.map(|remark| (remark.about, remark.message.to_string(), remark.advice)).collect()
    }

    #[test]
    fn lost_agents_are_no_doing_of_the_targets() {
        assert_eq!(
            [About::Agents, About::Outage, About::Load].map(About::side),
            [Side::Generator, Side::Target, Side::Run]
        );
    }

    #[test]
    fn a_good_run_has_none() {
        assert_eq!(remarks(run()), []);
    }

    #[test]
    fn calls_that_wait_for_a_scripts_pool_are_told() {
        let (mut plan, mut run) = run();
        plan.scenarios = Some(brunt_plan::scenario::Scenarios::default());
        let due = run.measured.numbers.get(Counter::Due);
        assert!(remarks((plan.clone(), run.clone())).iter().all(|(about, ..)| *about != About::Connections));
        run.measured.numbers.set(Counter::WaitedForConnection, due / 2);
        let found = remarks((plan, run));
        let told = found.iter().find(|(about, ..)| *about == About::Connections);
        assert!(told.is_some_and(|(_, message, _)| message.contains("pool of connections was busy")), "{found:?}");
    }

    #[test]
    fn answers_that_are_all_refusals_are_said() {
        let [(about, message, advice)] = &remarks(answered(&[(401, 2000)]))[..] else { panic!() };
        assert_eq!((*about, message.as_str()), (About::NoSuccess, "every answer was 401"));
        assert_eq!(*advice, Some(Advice::GiveCredentials));
        let several = remarks(answered(&[(500, 1500), (503, 500)]));
        assert_eq!(several[0].1, "no answer was a success: 500 × 1,500, 503 × 500");
        assert_eq!(remarks(answered(&[(500, 1999), (200, 1)])), []);
    }

    #[test]
    fn answers_that_were_to_be_messages_and_are_none_are_said() {
        let (mut plan, mut run) = answered(&[(200, 2000)]);
        assert_eq!(remarks((plan.clone(), run.clone())), []);
        let options = serde_json::json!({ "messages": { "framing": "sse" } });
        plan.protocol = brunt_plan::plan::ProtocolOptions::new(options.clone(), options);
        assert_eq!(remarks((plan.clone(), run.clone()))[0].0, About::NoMessages);
        run.measured.came(&brunt_record::messages::MessageArrival { after_ns: 1, is_first: true, is_together: false });
        assert_eq!(remarks((plan, run)), []);
    }

    #[test]
    fn redirects_say_where_they_lead() {
        let (plan, mut run) = answered(&[(302, 2000)]);
        run.redirected_to = Some("https://a.example/login".to_owned());
        let told = remarks((plan, run));
        assert_eq!(told[0].1, "every answer was a redirect (302) to https://a.example/login");
        let (mut plan, none_is_fine) = answered(&[(302, 2000)]);
        plan.ok_status = "2xx".parse::<OkStatus>().unwrap();
        assert_eq!(remarks((plan, none_is_fine))[0].0, About::NoSuccess);
    }

    #[test]
    fn a_warm_up_is_as_long_as_calls_take() {
        let (mut plan, mut run) = answered(&[(200, 2000)]);
        run.measured.times.set_known(Timing::Response, brunt_record::histogram::Histogram::new());
        run.measured.times.record_n(Timing::Response, 2_500_000_000, 2000);
        plan.load = Load::Closed {};
        let told = |warmup_ns: u64, plan: &Plan| {
            let told = remarks((Plan { warmup_ns, ..plan.clone() }, run.clone())).into_iter();
            told.filter(|(about, ..)| *about == About::ShortWarmUp).map(|(_, _, advice)| advice).collect::<Vec<_>>()
        };
        assert_eq!(told(2 * SECOND_NS, &plan), [Some(Advice::LongerWarmUp { seconds: 3 })]);
        assert_eq!((told(3 * SECOND_NS, &plan), told(0, &plan)), (vec![], vec![]));
    }

    #[test]
    fn conversations_that_wait_for_a_connection_are_no_fault_of_the_targets() {
        use episodes::tests::{End, MS, carried_out, evenly};
        // Nobody is answered for two seconds.
        let silence = 4 * SECOND_NS..6 * SECOND_NS;
        let end = |due: u64| End::Ok(MS + if silence.contains(&due) { silence.end - due } else { 0 });
        let (mut plan, mut run) = carried_out(10, evenly(50, 10), end);
        run.measured.numbers.set(Counter::WaitedForConnection, 100);
        let found = |plan: &Plan, run: &Recording| remarks((plan.clone(), run.clone()));
        let of_calls = found(&plan, &run);
        assert!(of_calls.iter().any(|(about, ..)| *about == About::Freeze), "{of_calls:?}");
        plan.own_times = true;
        let of_conversations = found(&plan, &run);
        let [(About::Connections, message, Some(Advice::MoreConversations))] = of_conversations.as_slice() else {
            panic!("{of_conversations:?}")
        };
        assert_eq!(message, "all 64 connections were busy: 100 of 500 calls waited for one");
        // With connections to spare they are the target's.
        run.measured.numbers.set(Counter::WaitedForConnection, 10);
        assert!(found(&plan, &run).iter().any(|(about, ..)| *about == About::Freeze));
    }

    #[test]
    fn busy_connections_are_counted_by_littles_law() {
        let (mut plan, mut run) = run();
        plan.load = Load::Open { profile: "2000".parse().unwrap(), arrivals: brunt_plan::arrivals::Spread::Uniform };
        // 2,000 a second, for 80 ms each.
        run.measured.numbers.set(Counter::Due, 4000);
        run.measured.times.set_known(Timing::Service, brunt_record::histogram::Histogram::new());
        run.measured.times.record_n(Timing::Service, 80_000_000, 1500);
        run.measured.numbers.set(Counter::WaitedForConnection, 3500);
        let told = remarks((plan.clone(), run.clone()));
        assert_eq!(told[0].1, "all 64 connections were busy: 3,500 of 4,000 calls waited for one");
        assert_eq!(told[0].2, Some(Advice::RaiseConnections { needed: 200 }));
        plan.connections = Connections::UpTo(5000);
        assert_eq!(remarks((plan.clone(), run.clone())), [], "it grew as far as it had to");
        plan.connections = Connections::Fixed(300);
        assert_eq!(remarks((plan.clone(), run.clone()))[0].2, Some(Advice::MoreConnections));
        let is_told =
            |run: Recording| Summary::new(plan.clone(), run).remarks.iter().any(|r| r.about == About::Connections);
        assert!(is_told(run.clone()));
        // One in twenty that waits is no rarity; where nothing is answered, connections are no limit.
        run.measured.numbers.set(Counter::WaitedForConnection, 200);
        assert!(is_told(run.clone()));
        run.measured.numbers.set(Counter::WaitedForConnection, 199);
        assert!(!is_told(run.clone()));
        run.measured.numbers.set(Counter::WaitedForConnection, 3500);
        run.measured.statuses = brunt_record::counts::Statuses::default();
        assert!(!is_told(run));
    }
}
