//! What comes at the edges of a connection's life and of a deadline: with the connection, just before its end, beside a time limit, while brunt
//! stands still.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brunt_http1::options::Options;
use brunt_plan::arrivals::Spread;
use brunt_plan::plan::{Load, Plan, StopRule};
use brunt_protocol::headers::Header;
use brunt_record::catalogue::Counter;
use brunt_record::outcome::Failure;
use brunt_record::recording::Ending;

use super::users::plan_of;
use super::{MS, SECOND_NS, StopHandle, carry_out, carry_out_on, plan};
use brunt_engine::simulated::{Act, Peer, Reaction, VirtualNet};
use brunt_record::time::Tick;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const UNTIL_CLOSE: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello";

fn says(after: u64, bytes: &[u8]) -> (u64, Act) {
    (after, Act::Send(bytes.to_vec()))
}

/// So many calls on one connection.
fn calls(requests: u64) -> Plan {
    Plan { stop: StopRule { duration_ns: None, requests: Some(requests) }, ..plan("http://127.0.0.1/") }
}

/// A peer that does this with each connection as it accepts it.
struct AtOnce(Reaction);

impl Peer for AtOnce {
    fn connecting(&mut self, _now: Tick) -> Reaction {
        [(MS, Act::Accept)].into_iter().chain(self.0.clone()).collect()
    }

    fn received(&mut self, _connection: u64, _bytes: &[u8], _now: Tick) -> Reaction {
        Vec::new()
    }
}

/// Users who wait for a line of a peer that does this as it accepts them.
fn waiting_for_a_line(acts: Reaction) -> brunt_judge::summary::Summary {
    let script = "local tcp = brunt.tcp '127.0.0.1:1'
         brunt.scenario('s', function()
           local socket = tcp:connect()
           local line = socket:receive_line { timeout = '50ms' }
           assert(line.error or line.value == '220 here')
           socket:close()
         end):inject { brunt.iterations_each(4, 3) }";
    carry_out(&plan_of(script, &[]).unwrap(), AtOnce(acts)).summary
}

#[test]
fn what_comes_with_a_connection_is_read() {
    let greeted = waiting_for_a_line(vec![says(MS, b"220 here\r\n")]);
    assert_eq!(greeted.total.failures.total(), 0, "{:?}", greeted.total.failures);
    for end in [Act::Close, Act::Reset] {
        let ended = waiting_for_a_line(vec![(MS, end)]);
        assert_eq!((ended.failures(Failure::Timeout), ended.total.failures.total()), (0, 12));
    }
}

/// Counts requests that end with an empty line, and answers each with the same acts.
struct Answering {
    acts: Reaction,
    partial: Vec<u8>,
    connections: Arc<AtomicU64>,
    /// How many bytes it takes at first, and how long after them it takes more.
    narrow: Option<(usize, u64)>,
    /// When it takes more.
    opens_at: Option<u64>,
}

impl Answering {
    fn new(acts: Reaction) -> Self {
        Self { acts, partial: Vec::new(), connections: Arc::default(), narrow: None, opens_at: None }
    }
}

impl Peer for Answering {
    fn connecting(&mut self, _now: Tick) -> Reaction {
        self.connections.fetch_add(1, Ordering::Relaxed);
        self.partial.clear();
        vec![(50_000, Act::Accept)]
    }

    fn room(&mut self, now: Tick) -> usize {
        match self.narrow {
            Some((room, _)) if self.opens_at.is_none_or(|at| now.ns() < at) => room.saturating_sub(self.partial.len()),
            _ => usize::MAX,
        }
    }

    fn received(&mut self, _connection: u64, bytes: &[u8], now: Tick) -> Reaction {
        self.partial.extend_from_slice(bytes);
        if let Some((room, after)) = self.narrow
            && self.opens_at.is_none()
            && self.partial.len() >= room
        {
            self.opens_at = Some(now.ns() + after);
            return vec![(after, Act::Reading(true))];
        }
        let requests = self.partial.windows(4).filter(|four| *four == b"\r\n\r\n").count();
        if requests > 0 {
            self.partial.clear();
        }
        (0..requests).flat_map(|_| self.acts.clone()).collect()
    }
}

#[test]
fn time_in_which_brunt_stood_still_is_no_wait_for_the_peer() {
    // The rest of the request goes out after the stop, and later than the timeout of 200 ms after its beginning.
    let narrow = |after| Answering { narrow: Some((20, after)), ..Answering::new(vec![says(50 * MS, OK)]) };
    let net = VirtualNet::new(narrow(170 * MS)).standing_still(Tick::from_ns(SECOND_NS + 100 * MS), 300 * MS);
    let stopped = carry_out_on(&calls(2), &net, &StopHandle::default()).summary;
    assert_eq!((stopped.total.statuses.total(), stopped.total.failures.total()), (2, 0));
    // Without a stop of its own, such a call has taken too long.
    let slow = carry_out(&calls(2), narrow(170 * MS)).summary;
    assert_eq!((slow.failures(Failure::Timeout), slow.total.statuses.total()), (1, 1));
}

#[test]
fn what_came_before_a_deadline_counts_and_what_came_after_it_does_not() {
    // The worker wakes a little late; the answer is there by then.
    for (after, failed) in [(199_900_000, 0), (200_300_000, 3)] {
        let net = VirtualNet::new(Answering::new(vec![says(after, OK)])).oversleeping(900_000);
        let summary = carry_out_on(&calls(3), &net, &StopHandle::default()).summary;
        assert_eq!(summary.failures(Failure::Timeout), failed, "after {after} ns");
    }
}

#[test]
fn a_request_that_asks_for_the_end_of_its_connection_is_the_last_on_it() {
    for (name, value, pipeline, expected) in [
        ("Connection", "close", 1, 20),
        ("connection", "keep-alive, Close", 1, 20),
        ("Connection", "close", 4, 20),
        ("Connection", "keep-alive", 1, 1),
        ("X-Connection", "close", 1, 1),
    ] {
        // The peer closes a while after its answer: another request would be lost.
        let peer = if expected > 1 { vec![says(MS, OK), (30 * MS, Act::Close)] } else { vec![says(MS, OK)] };
        let peer = Answering::new(peer);
        let connections = Arc::clone(&peer.connections);
        let headers = vec![Header::new(name, value)];
        let options = Options { method: "POST".to_owned(), headers, ..Options::default() };
        let plan = Plan { protocol: options.to_protocol(), pipeline, ..calls(20) };
        let total = carry_out(&plan, peer).summary.total;
        assert_eq!((total.statuses.total(), total.failures.total()), (20, 0), "{name}: {value}, {pipeline}");
        let connections = connections.load(Ordering::Relaxed);
        assert!((expected..=expected + 1).contains(&connections), "{name}: {value}: {connections} connections");
        assert_eq!(total.numbers.get(Counter::HeldBackByStreamLimit), 0, "that is its own wish");
    }
}

#[test]
fn an_answer_that_ends_with_its_connection_is_judged_as_any_other() {
    let until_close = || Answering::new(vec![says(MS, UNTIL_CLOSE), (2 * MS, Act::Close)]);
    for (text, mismatches) in [("ell", 0), ("other", 10)] {
        let options = Options { expect_body: Some(text.to_owned()), ..Options::default() };
        let total = carry_out(&Plan { protocol: options.to_protocol(), ..calls(10) }, until_close()).summary;
        assert_eq!(total.failures(Failure::Mismatch), mismatches);
        assert_eq!(total.total.failures.total(), mismatches, "and in no other way");
    }
    // Calls in a pipeline behind it were not processed.
    let piped = carry_out(&Plan { pipeline: 3, ..calls(30) }, until_close()).summary.total;
    assert_eq!((piped.statuses.total(), piped.failures.total()), (30, 0), "{:?}", piped.failures);
    assert!(piped.numbers.get(Counter::TurnedAway) > 0);
}

/// Answers after 500 ms, and asks for the end of the run at a time.
struct Interrupting {
    inner: Answering,
    stop: StopHandle,
    at: u64,
}

impl Peer for Interrupting {
    fn connecting(&mut self, now: Tick) -> Reaction {
        self.inner.connecting(now);
        // Connecting takes a while, so that calls wait for it.
        vec![(40 * MS, Act::Accept)]
    }

    fn received(&mut self, connection: u64, bytes: &[u8], now: Tick) -> Reaction {
        if now.ns() >= self.at {
            self.stop.stop();
        }
        self.inner.received(connection, bytes, now)
    }
}

#[test]
fn calls_that_have_a_place_are_made_though_the_run_is_interrupted() {
    let profile = "50".parse().unwrap();
    let load = Load::Open { profile, arrivals: Spread::Uniform };
    let connections = brunt_plan::connections::Connections::UpTo(100);
    let plan =
        Plan { load, connections, timeout_ns: 2 * SECOND_NS, drain_ns: 2 * SECOND_NS, ..plan("http://127.0.0.1/") };
    for after in (100..=900).step_by(100) {
        let stop = StopHandle::default();
        let inner = Answering::new(vec![says(300 * MS, OK)]);
        let peer = Interrupting { inner, stop: stop.clone(), at: SECOND_NS + after * MS };
        let summary = carry_out_on(&plan, &VirtualNet::new(peer), &stop).summary;
        assert_eq!(summary.run.ending, Ending::Interrupted, "{after}");
        let unsent = summary.total.numbers.get(Counter::Unsent);
        assert_eq!((unsent, summary.not_ok), (0, 0), "after {after} ms");
    }
}
