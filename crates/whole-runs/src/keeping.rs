//! Measurements are kept, and every call is accounted for, whatever goes wrong.

use brunt_judge::summary::Summary;
use brunt_plan::plan::{Load, Plan, ProtocolOptions, StopRule};
use brunt_record::catalogue::Counter;
use brunt_record::outcome::Failure;
use brunt_record::recording::Ending;

use super::{MS, SECOND_NS, Seconds, carry_out, carry_out_on, plan, run_on};
use brunt_engine::StopHandle;
use brunt_engine::simulated::{Act, Peer, Reaction, VirtualNet};
use brunt_http1::options::Options;
use brunt_record::time::Tick;

const URL: &str = "http://127.0.0.1/";
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// A peer that answers each write after this time.
struct After(u64);

impl Peer for After {
    fn received(&mut self, _connection: u64, _bytes: &[u8], _now: Tick) -> Reaction {
        vec![(self.0, Act::Send(ANSWER.to_vec()))]
    }
}

#[test]
fn a_driver_that_fails_ends_the_run_and_keeps_what_was_measured() {
    let plan = Plan {
        stop: StopRule { duration_ns: Some(5 * SECOND_NS), requests: None },
        connections: 3.into(),
        ..plan(URL)
    };
    let net = VirtualNet::new(After(MS)).failing_at(Tick::from_ns(3_500 * MS));
    let summary = carry_out_on(&plan, &net, &StopHandle::default()).summary;
    assert!(
        matches!(&summary.run.ending, Ending::Failed(reason) if reason.contains("cannot wait for events")),
        "{:?}",
        summary.run.ending
    );
    assert!((7000..7600).contains(&summary.total.statuses.total()), "{}", summary.total.statuses.total());
    assert_eq!(summary.total.numbers.get(Counter::Unfinished), 3);
}

#[test]
fn a_worker_that_panics_ends_the_run_and_keeps_what_the_others_measured() {
    let stop = StopRule { duration_ns: Some(5 * SECOND_NS), requests: None };
    let plan = Plan { stop, workers: 2, connections: 2.into(), ..plan(URL) };
    let net = VirtualNet::new(After(MS)).panicking_at(Tick::from_ns(3_500 * MS));
    let run = run_on(&plan, &net, &StopHandle::default(), &mut Seconds::default()).run;
    assert!(matches!(&run.ending, Ending::Failed(reason) if reason.contains("panicked")), "{:?}", run.ending);
    // Two seconds of one worker, and at least two and a half of the other, which stops when it learns of it.
    let answered = run.measured.statuses.total() + run.drained.statuses.total();
    assert!((4400..=7000).contains(&answered), "{answered}");
}

#[test]
fn bytes_count_as_sent_when_the_socket_has_taken_them() {
    /// A peer that takes 100 kB of each request, and answers before the rest has come.
    struct Early(u64);
    impl Peer for Early {
        fn room(&mut self, _now: Tick) -> usize {
            if self.0 >= 100_000 { 0 } else { 10_000 }
        }
        fn connecting(&mut self, _now: Tick) -> Reaction {
            self.0 = 0;
            vec![(MS, Act::Accept)]
        }
        fn received(&mut self, _connection: u64, bytes: &[u8], _now: Tick) -> Reaction {
            self.0 += bytes.len() as u64;
            let answer = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            if self.0 >= 100_000 { vec![(MS, Act::Send(answer.to_vec())), (2 * MS, Act::Close)] } else { vec![] }
        }
    }
    let body = vec![b'x'; 50_000_000];
    let options =
        Options { method: "POST".to_owned(), body: Some(brunt_plan::content::Content(body)), ..Options::default() };
    let plan = Plan { protocol: options.to_protocol(), ..plan(URL) };
    let total = carry_out(&plan, Early(0)).summary.total;
    let calls = total.statuses.total();
    assert!(calls > 100, "{calls}");
    assert_eq!(total.numbers.get(Counter::AnsweredEarly), calls);
    assert_eq!(total.numbers.get(Counter::ClearOut), total.numbers.get(Counter::WireOut));
    assert!(
        total.numbers.get(Counter::ClearOut) <= (calls + 1) * 110_000,
        "{} bytes for {calls} calls",
        total.numbers.get(Counter::ClearOut)
    );
}

#[test]
fn calls_that_were_never_sent_waited_for_a_connection() {
    let load = Load::Open { profile: "100".parse().unwrap(), arrivals: brunt_plan::arrivals::Spread::Uniform };
    let plan = Plan { load, timeout_ns: 10 * SECOND_NS, drain_ns: SECOND_NS, ..plan(URL) };
    let total = carry_out(&plan, After(100 * MS)).summary.total;
    assert_eq!(total.numbers.get(Counter::Due), 100);
    assert!(total.numbers.get(Counter::Unsent) > 80);
    assert!(
        total.numbers.get(Counter::WaitedForConnection) >= total.numbers.get(Counter::Due) - 2,
        "{} of {}",
        total.numbers.get(Counter::WaitedForConnection),
        total.numbers.get(Counter::Due)
    );
}

/// Greets a WebSocket client and then pings without end, reading nothing.
struct Pinging {
    greeted: bool,
}

impl Peer for Pinging {
    fn room(&mut self, _now: Tick) -> usize {
        if self.greeted { 0 } else { usize::MAX }
    }

    fn connecting(&mut self, _now: Tick) -> Reaction {
        self.greeted = false;
        vec![(MS, Act::Accept)]
    }

    fn received(&mut self, _connection: u64, bytes: &[u8], _now: Tick) -> Reaction {
        self.greeted = true;
        let mut ping = vec![0x89, 125];
        ping.resize(127, b'p');
        let mut reaction =
            vec![(0, Act::Send(super::websocket::handshake(bytes).map_or_else(Vec::new, |(_, answer)| answer)))];
        reaction.extend((1..100).map(|turn| (turn * MS, Act::Send(ping.repeat(100)))));
        reaction
    }
}

#[test]
fn a_peer_that_pings_and_never_reads_fills_no_memory() {
    let options = brunt_websocket::options::Options::default();
    let plan = Plan { protocol: options.to_protocol(), timeout_ns: 10 * SECOND_NS, ..plan("ws://127.0.0.1/") };
    let summary = carry_out(&plan, Pinging { greeted: false }).summary;
    // The newest ping is answered once the peer reads again; it never does.
    assert_eq!(
        (summary.total.numbers.get(Counter::Unfinished), summary.total.failures.total()),
        (1, 0),
        "{:?}",
        summary.total.failures
    );
    assert!(
        summary.total.numbers.get(Counter::ClearIn) > 1_000_000
            && summary.total.numbers.get(Counter::ClearOut) < 10_000
    );
}

#[test]
fn a_call_that_expires_in_the_tick_in_which_it_was_sent_has_a_time_of_its_own() {
    let plan = Plan { timeout_ns: 1, protocol: ProtocolOptions::default(), connections: 4.into(), ..plan(URL) };
    let summary =
        carry_out_on(&plan, &VirtualNet::new(After(10 * MS)).oversleeping(3 * MS), &StopHandle::default()).summary;
    assert!(summary.failures(Failure::Timeout) > 0);
    let longest = summary.times.response.map_or(0, |response| response.max.value);
    assert!(longest < SECOND_NS, "no time wraps: {longest}");
}

#[test]
fn a_teardown_that_fails_loses_nothing() {
    let played = super::users::play(
        "brunt.teardown(function() error('the janitor is ill') end)
         brunt.scenario('s', function() http:get('/') end):inject { brunt.iterations_each(2, 5) }",
        super::users::hello,
    );
    let Summary { run, total, .. } = &played.summary;
    assert!(matches!(&run.ending, Ending::Failed(reason) if reason.contains("the janitor is ill")), "{:?}", run.ending);
    assert_eq!(total.statuses.total(), 10);
}

#[test]
fn a_throttled_scenario_that_is_cut_short_has_no_call_too_many() {
    // That due is the sum of outcomes is checked for every run.
    for rate in [7, 10, 33] {
        let script = format!(
            "brunt.throttle({rate}) brunt.scenario('s', function() http:get('/') end):inject {{ brunt.users(20, '1s') }}"
        );
        let played = super::users::play(&script, super::users::hello);
        // One second, and 200 ms more for users who are in an iteration.
        assert!(
            played.summary.total.numbers.get(Counter::Due) <= rate * 12 / 10 + 2,
            "{} at {rate}/s",
            played.summary.total.numbers.get(Counter::Due)
        );
    }
}
