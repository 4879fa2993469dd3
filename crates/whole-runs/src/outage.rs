//! Targets that go away and come back, or stand still.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use brunt_judge::summary::Summary;
use brunt_plan::arrivals::Spread;
use brunt_plan::connections::Connections;
use brunt_plan::plan::{Load, Plan, StopRule};
use brunt_record::catalogue::Counter;
use brunt_record::outcome::Failure;
use brunt_record::recording::Ending;

use super::{MS, SECOND_NS, StopHandle, carry_out, carry_out_on, plan};
use brunt_engine::simulated::{Act, Peer, Reaction, VirtualNet};
use brunt_record::time::Tick;

const URL: &str = "http://127.0.0.1/";
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
/// When a run's load begins in made-up time, about.
const BEGIN: u64 = SECOND_NS;

/// The kinds of a target's outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Away {
    /// Its process was killed: connections are reset, and others refused.
    Killed,
    /// Its machine is gone: nothing is answered, neither connecting nor a request.
    Lost,
    /// Its process stands still: the system accepts connections for it.
    Frozen,
}

/// A target that answers after a fixed time, and has an outage.
pub(super) struct Target {
    takes_ns: u64,
    away: Range<u64>,
    manner: Away,
    /// Connections that were begun, over all.
    begun: Arc<AtomicUsize>,
}

impl Target {
    pub(super) fn away(manner: Away, away: Range<u64>) -> Self {
        Self { takes_ns: MS, away, manner, begun: Arc::default() }
    }
}

impl Peer for Target {
    fn connecting(&mut self, now: Tick) -> Reaction {
        self.begun.fetch_add(1, Ordering::Relaxed);
        match self.manner {
            Away::Killed if self.away.contains(&now.ns()) => vec![(50_000, Act::Refuse)],
            Away::Lost if self.away.contains(&now.ns()) => vec![],
            // A connection that was accepted before the outage is reset at its beginning.
            Away::Killed if now.ns() < self.away.start => {
                vec![(50_000, Act::Accept), (self.away.start - now.ns(), Act::Reset)]
            }
            _ => vec![(50_000, Act::Accept)],
        }
    }

    fn received(&mut self, _connection: u64, bytes: &[u8], now: Tick) -> Reaction {
        let requests = bytes.windows(4).filter(|four| *four == b"\r\n\r\n").count();
        let late = match self.manner {
            Away::Lost if self.away.contains(&now.ns()) => return vec![],
            Away::Frozen if self.away.contains(&now.ns()) => self.away.end - now.ns(),
            _ => 0,
        };
        (0..requests).map(|_| (late + self.takes_ns, Act::Send(ANSWER.to_vec()))).collect()
    }
}

fn at_rate(rate: &str, connections: Connections) -> Plan {
    Plan {
        load: Load::Open { profile: rate.parse().unwrap(), arrivals: Spread::Uniform },
        stop: StopRule { duration_ns: Some(10 * SECOND_NS), requests: None },
        connections,
        timeout_ns: SECOND_NS,
        connect_timeout_ns: SECOND_NS,
        drain_ns: 2 * SECOND_NS,
        ..plan(URL)
    }
}

fn number(summary: &Summary, counter: Counter) -> u64 {
    summary.total.numbers.get(counter)
}

pub(super) const HALF: Range<u64> = BEGIN + 3 * SECOND_NS..BEGIN + 8 * SECOND_NS;

#[test]
fn an_outage_of_half_the_run_fails_half_of_the_calls() {
    for workers in [1, 2] {
        for connections in [Connections::UpTo(1000), 64.into(), 2.into()] {
            for (reconnect, pipeline) in [(false, 1), (true, 1), (false, 8)] {
                let plan = Plan { workers, reconnect, pipeline, ..at_rate("200", connections) };
                let summary = carry_out(&plan, Target::away(Away::Killed, HALF)).summary;
                let case = format!("{workers} workers, {connections:?}, reconnect {reconnect}, {pipeline} in flight");
                assert_eq!((number(&summary, Counter::Due), number(&summary, Counter::Unsent)), (2000, 0), "{case}");
                let failed = summary.total.failures.count(Failure::Connect);
                assert!((990..=1010).contains(&failed), "{case}: {failed} failed");
                let attempts = number(&summary, Counter::ConnectionsFailed);
                // One attempt for each call, and one for each lost connection.
                assert!(attempts <= 1075, "{case}: {attempts} attempts");
                let slowest = summary.times.response.unwrap().max.value;
                assert!(slowest < 100 * MS, "{case}: nobody waits it out: {slowest}");
            }
        }
    }
}

#[test]
fn more_calls_than_attempts_share_what_came_of_them() {
    for connections in [Connections::UpTo(1000), 50.into()] {
        let summary = carry_out(&at_rate("5000", connections), Target::away(Away::Killed, HALF)).summary;
        let failed = summary.total.failures.count(Failure::Connect);
        assert!((24_900..=25_100).contains(&failed), "{failed} failed");
        let attempts = number(&summary, Counter::ConnectionsFailed);
        assert!((4_500..=5_400).contains(&attempts), "{attempts} attempts in 5 s");
        // Calls that are due in the last millisecond may find no free connection.
        let unsent = number(&summary, Counter::Unsent);
        assert!(unsent <= 5 && summary.total.statuses.total() == 50_000 - failed - unsent, "{unsent} unsent");
    }
}

#[test]
fn a_target_that_answers_no_attempt_fails_calls_after_the_connect_timeout() {
    for connections in [Connections::UpTo(1000), 10.into()] {
        let target = Target::away(Away::Lost, HALF);
        let begun = Arc::clone(&target.begun);
        let summary = carry_out(&at_rate("200", connections), target).summary;
        let failures = &summary.total.failures;
        let lost = failures.count(Failure::ConnectTimeout) + failures.count(Failure::Timeout);
        // An attempt under way when the target comes back fails, as do the calls that share its outcome.
        assert!((990..=1250).contains(&lost), "{connections:?}: {failures:?}");
        assert_eq!(failures.total(), lost);
        assert_eq!(number(&summary, Counter::Unsent), 0);
        let failed = summary.times.failed.unwrap();
        assert!(failed.min >= 990 * MS && failed.max.value <= 2100 * MS, "a failure takes its time: {failed:?}");
        assert!(begun.load(Ordering::Relaxed) < 1_600);
    }
}

#[test]
fn a_run_gives_up_a_target_that_was_never_there() {
    let forever = 0..u64::MAX;
    let after = |manner, timeout_ns, connect_timeout_ns| {
        let stop = StopRule { duration_ns: Some(40 * SECOND_NS), requests: None };
        let plan = Plan { timeout_ns, connect_timeout_ns, stop, drain_ns: 0, ..at_rate("20", 10.into()) };
        let run = carry_out(&plan, Target::away(manner, forever.clone())).summary.run;
        (run.measured_ns / SECOND_NS, run.ending)
    };
    let unreached = |seconds, reason| {
        (seconds, Ending::Unreached(format!("no connection to the target could be made in {seconds}s: {reason}")))
    };
    assert_eq!(after(Away::Killed, SECOND_NS, SECOND_NS), unreached(1, "connection refused"));
    // A target that does not answer gets more time, even if attempts to connect have timed out by then.
    assert_eq!(after(Away::Lost, SECOND_NS, SECOND_NS / 4), unreached(10, "no answer to connecting"));
    assert_eq!(after(Away::Lost, 20 * SECOND_NS, 60 * SECOND_NS), unreached(21, "no answer to connecting"));
}

#[test]
fn a_run_gives_up_a_target_that_takes_connections_and_never_answers() {
    const FOREVER: u64 = 1000 * SECOND_NS;
    let stop = StopRule { duration_ns: Some(40 * SECOND_NS), requests: None };
    let plan = Plan { timeout_ns: 3 * SECOND_NS, stop, drain_ns: 0, ..at_rate("20", 10.into()) };
    let silent = |seconds| {
        (seconds, Ending::Unreached(format!("the target took connections and answered nothing in {seconds}s")))
    };
    let after = |plan: &Plan, away| {
        let run = carry_out(plan, Target::away(Away::Frozen, away)).summary.run;
        (run.measured_ns / SECOND_NS, run.ending)
    };
    let closed = Plan { load: Load::Closed {}, ..plan.clone() };
    let users = "brunt.scenario('s', function() http:get('/', { timeout = '13s' }) end):inject { brunt.users(3, 40) }";
    let users = super::users::plan_of(users, &[]).unwrap();
    for (plan, seconds) in [(&plan, 10), (&closed, 10), (&users, 14)] {
        assert_eq!(after(plan, 0..FOREVER), silent(seconds));
        // One that has answered before is waited for, as is one that does so after a while.
        for away in [BEGIN + SECOND_NS..FOREVER, 0..BEGIN + 5 * SECOND_NS] {
            assert_eq!(after(plan, away), (40, Ending::Completed));
        }
        // The first bytes of an answer are an answer that may take its time, also where they come just before the end.
        for from_ns in [0, 8 * SECOND_NS] {
            let beginning = Beginning { from: Tick::from_ns(BEGIN + from_ns) };
            assert_eq!(carry_out(plan, beginning).summary.run.ending, Ending::Completed, "{from_ns}");
        }
    }
}

#[test]
fn a_run_gives_up_a_target_that_closes_each_connection_without_a_byte() {
    let stop = StopRule { duration_ns: Some(40 * SECOND_NS), requests: None };
    let plan = Plan { timeout_ns: 2 * SECOND_NS, stop, drain_ns: 0, ..at_rate("20", 10.into()) };
    let closed = Plan { load: Load::Closed {}, ..plan.clone() };
    let users = "brunt.scenario('s', function() http:get('/', { timeout = '13s' }) end):inject { brunt.users(3, 40) }";
    let users = super::users::plan_of(users, &[]).unwrap();
    for (plan, seconds) in [(&plan, 10), (&closed, 10), (&users, 14)] {
        for end in [Act::Close, Act::Reset] {
            let run = carry_out(plan, Closing { end, answers_from: Tick::NEVER }).summary.run;
            let reason = format!("the target took connections and closed each without an answer for {seconds}s");
            assert_eq!((run.measured_ns / SECOND_NS, run.ending), (seconds, Ending::Unreached(reason)));
        }
        let comes = Closing { end: Act::Close, answers_from: Tick::from_ns(BEGIN + 5 * SECOND_NS) };
        assert_eq!(carry_out(plan, comes).summary.run.ending, Ending::Completed);
    }
}

/// Ends each connection that a request comes on, and answers in its place from then on.
struct Closing {
    end: Act,
    answers_from: Tick,
}

impl Peer for Closing {
    fn received(&mut self, _connection: u64, _bytes: &[u8], now: Tick) -> Reaction {
        let answer = Act::Send(ANSWER.to_vec());
        vec![(MS, if now < self.answers_from { self.end.clone() } else { answer })]
    }
}

/// Sends the first bytes of each answer from then on, and never its end.
struct Beginning {
    from: Tick,
}

impl Peer for Beginning {
    fn received(&mut self, _connection: u64, _bytes: &[u8], now: Tick) -> Reaction {
        let begins = now >= self.from;
        begins.then(|| (MS, Act::Send(b"HTTP/1.1 200 OK\r\n".to_vec()))).into_iter().collect()
    }
}

#[test]
fn a_run_that_is_over_before_the_first_connection_was_made_has_not_reached_its_target() {
    let stop = StopRule { duration_ns: Some(2 * SECOND_NS), requests: None };
    let warmed = Plan {
        warmup_ns: SECOND_NS,
        connect_timeout_ns: 60 * SECOND_NS,
        drain_ns: SECOND_NS,
        stop,
        ..at_rate("20", 10.into())
    };
    let closed = carry_out(&Plan { load: Load::Closed {}, ..warmed.clone() }, Target::away(Away::Lost, 0..u64::MAX));
    let Ending::Unreached(reason) = &closed.summary.run.ending else { panic!("{:?}", closed.summary.run.ending) };
    assert!(reason.ends_with("s: no answer to connecting"), "{reason}");
    // If calls were due, their failures say so.
    let open = carry_out(&warmed, Target::away(Away::Lost, 0..u64::MAX)).summary;
    assert_eq!(open.run.ending, Ending::Completed);
    assert!(open.total.failures.total() > 0 && !open.answered());
}

#[test]
fn a_short_restart_fails_what_was_due_in_it() {
    for connections in [Connections::UpTo(1000), 16.into()] {
        let restart = BEGIN + 3 * SECOND_NS..BEGIN + 3 * SECOND_NS + 50 * MS;
        let summary = carry_out(&at_rate("300", connections), Target::away(Away::Killed, restart)).summary;
        let failed = summary.total.failures.total();
        assert!((14..=16).contains(&failed), "{failed}: {:?}", summary.total.failures);
        assert_eq!(summary.total.statuses.total(), 3000 - failed);
    }
}

#[test]
fn a_frozen_target_gets_few_connections_and_its_calls_time_out() {
    for connections in [Connections::UpTo(4096), 20.into()] {
        let target = Target::away(Away::Frozen, HALF);
        let begun = Arc::clone(&target.begun);
        let summary = carry_out(&at_rate("400", connections), target).summary;
        let failures = &summary.total.failures;
        // A call that is due in the last of the 5 s is answered in time.
        assert!((1580..=1640).contains(&failures.count(Failure::Timeout)), "{connections:?}: {failures:?}");
        assert_eq!((failures.total(), number(&summary, Counter::Unsent)), (failures.count(Failure::Timeout), 0));
        let begun = begun.load(Ordering::Relaxed);
        assert!(begun < 900, "{begun} connections");
    }
}

#[test]
fn a_closed_flood_knows_for_how_long_it_had_no_server() {
    for (workers, connections, attempts) in [(1, 1, 33..=100), (2, 20, 700..=2_000), (1, 1000, 4_000..=6_100)] {
        let plan = Plan { load: Load::Closed {}, workers, ..at_rate("1", Connections::Fixed(connections)) };
        let summary = carry_out(&plan, Target::away(Away::Killed, HALF)).summary;
        let all = f64::from(connections) * 10e9;
        let away = number(&summary, Counter::WithoutServer) as f64 / all;
        assert!((0.49..=0.6).contains(&away), "{connections} connections: {away}");
        let failed = number(&summary, Counter::ConnectionsFailed);
        assert!(attempts.contains(&failed), "{connections} connections: {failed} attempts");
        let refused = summary.total.failures.count(Failure::Connect);
        assert_eq!(refused, failed, "a call for each");
    }
    // A connection that has its server all the time has lost none of that.
    let plan = Plan { load: Load::Closed {}, ..at_rate("1", 3.into()) };
    let summary = carry_out(&plan, Target::away(Away::Killed, 0..0)).summary;
    assert_eq!(number(&summary, Counter::WithoutServer), 0);
}

#[test]
fn a_closed_flood_has_no_server_while_calls_time_out_without_a_byte() {
    for (timeout_ns, share) in [(SECOND_NS / 2, 0.38..=0.52), (20 * SECOND_NS, 0.0..=0.0)] {
        let plan = Plan { load: Load::Closed {}, timeout_ns, ..at_rate("1", 8.into()) };
        let summary = carry_out(&plan, Target::away(Away::Frozen, HALF)).summary;
        let away = 1.0 - summary.standing().availability().unwrap();
        assert!(share.contains(&away), "{away}");
        // Answers that come late have come.
        assert_eq!(summary.thresholds_held(), away == 0.0, "{:?}", summary.thresholds);
        assert!(summary.error_rate < 0.01, "{}", summary.error_rate);
    }
    // A call that takes too long now and then is no absence.
    let slow = Slow { each: 151, of: 0 };
    let plan = Plan { load: Load::Closed {}, reconnect: true, timeout_ns: SECOND_NS / 2, ..at_rate("1", 8.into()) };
    let summary = carry_out(&plan, slow).summary;
    assert!(summary.total.failures.count(Failure::Timeout) > 10, "{:?}", summary.total.failures);
    assert!(
        summary.thresholds_held(),
        "{} of 80 s: {:?}",
        number(&summary, Counter::WithoutServer),
        summary.thresholds
    );
}

/// A target that falls silent and stays so has no server until the end, though its calls time out only in the drain. A single
/// connection has to be silent twice: its call may be one that takes too long.
#[test]
fn a_closed_flood_has_no_server_where_its_last_calls_are_never_answered() {
    let silent = BEGIN + 3 * SECOND_NS..BEGIN + 100 * SECOND_NS;
    for (connections, timeout_s, share) in
        [(8_u32, 9, 0.62..=0.72), (8, 4, 0.62..=0.72), (8, 1, 0.62..=0.72), (1, 9, 0.0..=0.0), (1, 1, 0.4..=0.65)]
    {
        let timeout_ns = timeout_s * SECOND_NS;
        let plan =
            Plan { load: Load::Closed {}, timeout_ns, drain_ns: 10 * SECOND_NS, ..at_rate("1", connections.into()) };
        let summary = carry_out(&plan, Target::away(Away::Frozen, silent.clone())).summary;
        let away = 1.0 - summary.standing().availability().unwrap();
        assert!(share.contains(&away), "{connections} connections, {timeout_s} s: {away}");
        assert_eq!(summary.thresholds_held(), away == 0.0, "{:?}", summary.thresholds);
    }
    // Calls that the end of the drain cuts off have not waited for as long as they may.
    let plan = Plan { load: Load::Closed {}, timeout_ns: 60 * SECOND_NS, ..at_rate("1", 8.into()) };
    let summary = carry_out(&plan, Target::away(Away::Frozen, silent)).summary;
    assert_eq!((number(&summary, Counter::WithoutServer), number(&summary, Counter::Unfinished)), (0, 8));
}

/// Answers one of so many requests after ten seconds, and the others at once.
struct Slow {
    each: u64,
    of: u64,
}

impl Peer for Slow {
    fn received(&mut self, _connection: u64, _bytes: &[u8], _now: Tick) -> Reaction {
        self.of += 1;
        let late = if self.of.is_multiple_of(self.each) { 10 * SECOND_NS } else { 20 * MS };
        vec![(late, Act::Send(ANSWER.to_vec()))]
    }
}

/// Answers in 50 ms, and drops all connections every half second.
struct Dropping;

impl Peer for Dropping {
    fn connecting(&mut self, now: Tick) -> Reaction {
        let drop = (now.ns() / (500 * MS) + 1) * 500 * MS;
        vec![(50_000, Act::Accept), (drop - now.ns(), Act::Close)]
    }

    fn received(&mut self, _connection: u64, _bytes: &[u8], _now: Tick) -> Reaction {
        vec![(50 * MS, Act::Send(ANSWER.to_vec()))]
    }
}

#[test]
fn a_call_whose_connection_is_dropped_under_it_has_failed() {
    let fixed = Plan { load: Load::Closed {}, ..at_rate("1", 20.into()) };
    for plan in [fixed, at_rate("199", Connections::UpTo(1000))] {
        let summary = carry_out(&plan, Dropping).summary;
        let share = summary.total.failures.count(Failure::Closed) as f64 / number(&summary, Counter::Due) as f64;
        assert!((0.07..=0.11).contains(&share), "{share}");
        let again = number(&summary, Counter::Reconnects) as f64 / number(&summary, Counter::Due) as f64;
        assert!(again < 0.03, "only those that met the end on their way: {again}");
    }
}

#[test]
fn answers_that_came_while_brunt_stood_still_are_no_timeouts() {
    let plan = Plan { timeout_ns: 200 * MS, ..at_rate("100", 4.into()) };
    for stands_still in [300 * MS, SECOND_NS] {
        let target = Target { takes_ns: 20 * MS, ..Target::away(Away::Killed, 0..0) };
        let net = VirtualNet::new(target).interrupted_at(Tick::from_ns(4 * SECOND_NS), stands_still);
        let summary = carry_out_on(&plan, &net, &StopHandle::default()).summary;
        assert_eq!((summary.total.failures.total(), summary.total.statuses.total()), (0, 1000));
        let p99 = summary.times.response.unwrap().max.value;
        assert!(p99 <= 41 * MS, "the target took 20 ms: {p99}");
    }
}

#[test]
fn calls_that_came_due_while_brunt_stood_still_are_no_timeouts() {
    // All connections are idle at that moment.
    let plan = Plan { timeout_ns: 200 * MS, ..at_rate("300", 4.into()) };
    for stands_still in [350 * MS, 900 * MS] {
        let net = VirtualNet::new(Target::away(Away::Killed, 0..0))
            .interrupted_at(Tick::from_ns(4 * SECOND_NS), stands_still);
        let summary = carry_out_on(&plan, &net, &StopHandle::default()).summary;
        assert_eq!((summary.total.failures.total(), summary.total.statuses.total()), (0, 3000));
    }
}

#[test]
fn standing_still_is_no_time_of_a_target_that_closes() {
    /// Answers in 20 ms and closes.
    struct Closing;
    impl Peer for Closing {
        fn received(&mut self, _connection: u64, _bytes: &[u8], _now: Tick) -> Reaction {
            vec![(20 * MS, Act::Send(ANSWER.to_vec())), (20 * MS + 1000, Act::Close)]
        }
    }
    for reconnect in [false, true] {
        for connections in [Connections::UpTo(1000), 4.into()] {
            let plan = Plan { reconnect, ..at_rate("100", connections) };
            let net = VirtualNet::new(Closing).standing_still(Tick::from_ns(4 * SECOND_NS), 300 * MS);
            let summary = carry_out_on(&plan, &net, &StopHandle::default()).summary;
            assert_eq!(summary.total.failures.total(), 0, "{:?}", summary.total.failures);
            let response = summary.times.response.unwrap();
            assert!(response.max.value <= 45 * MS, "reconnect {reconnect}, {connections:?}: {response:?}");
        }
    }
}
