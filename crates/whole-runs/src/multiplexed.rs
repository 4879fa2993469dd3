//! A made-up protocol with many calls in flight on a connection, answered in any order: what HTTP/2 and its like need.
//!
//! A request is `Q`, an id and a dot; an answer `A`, the id and a dot. `L` and a number says how many calls the peer takes at once,
//! `M` and an id that a message of an answer has come, where answers come so (at `/stream`),
//! `G` and an id that it takes no more and has processed those up to the id, `E` the same for an error, `X` and an id that it has not
//! processed this one, `C` is an answer after which the connection takes no more, `P0` asks for an `O0`. At `/open` a connection begins
//! with `S0`, whose answer is `H0`; at `/safe` calls may be sent again.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use brunt_judge::summary::Summary;
use brunt_lua::scenario::read;
use brunt_plan::arrivals::Spread;
use brunt_plan::content::Content;
use brunt_plan::plan::{Load, Plan, ProtocolOptions, StopRule};
use brunt_plan::scenario::{File, Scenarios};
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::outcome::Failure;
use brunt_script::{Files, LoadOptions};

use super::{MS, Seconds, built_in, judged, plan, run_part_on};
use brunt_engine::simulated::{Act, Peer, Reaction, VirtualNet};
use brunt_protocol::flags::FlagValues as Flags;
use brunt_protocol::source::{Message, RepeatingSource, RequestSource};
use brunt_protocol::{
    Answer, Client, Malformed, Opening, OptionsError, Prepared, Progress, Protocol, Registry, Scheme, Started,
};
use brunt_record::time::Tick;

#[derive(Default)]
struct Multiplexed {
    /// Answers come as messages, no further apart than this.
    streams: bool,
    /// A connection begins with an exchange.
    opens: bool,
    /// Calls may be sent again.
    is_safe: bool,
}

impl Protocol for Multiplexed {
    fn name(&self) -> &'static str {
        "multiplexed"
    }

    fn schemes(&self) -> &[Scheme] {
        &[Scheme { name: "mux", default_port: 1, tls: false }]
    }

    fn options(&self, _given: &Flags) -> Result<ProtocolOptions, OptionsError> {
        Ok(ProtocolOptions::default())
    }

    fn prepare(&self, plan: &Plan) -> Result<Arc<dyn Prepared>, OptionsError> {
        let has = |word| plan.target.path.contains(word);
        Ok(Arc::new(Multiplexed { streams: has("stream"), opens: has("open"), is_safe: has("safe") }))
    }
}

impl Prepared for Multiplexed {
    fn client(&self, _keep: bool) -> Box<dyn Client> {
        let (in_flight, partial) = (Vec::new(), Vec::new());
        Box::new(Streams {
            limit: usize::MAX,
            next: 1,
            in_flight,
            partial,
            in_messages: self.streams,
            opens: self.opens,
            fails: false,
        })
    }

    fn user(&self) -> Box<dyn RequestSource> {
        Box::new(RepeatingSource::new(b"call".to_vec(), self.is_safe))
    }
}

/// The longest gap between messages, in nanoseconds.
const LONGEST_GAP: u64 = 30 * MS;

struct Streams {
    limit: usize,
    next: u32,
    /// The ids of the calls in flight, oldest first.
    in_flight: Vec<u32>,
    partial: Vec<u8>,
    /// Whether answers come as messages.
    in_messages: bool,
    /// Whether the connection begins with an exchange.
    opens: bool,
    /// Whether the peer ends the connection for an error.
    fails: bool,
}

impl Client for Streams {
    fn open(&mut self, _alpn: Option<&[u8]>, out: &mut Vec<u8>) -> Result<Opening, Malformed> {
        if self.opens {
            out.extend_from_slice(b"S0.");
        }
        Ok(if self.opens { Opening::Exchange } else { Opening::Ready })
    }

    fn start(&mut self, _message: &Message<'_>, out: &mut Vec<u8>) -> Started {
        assert!(self.in_flight.len() < self.limit, "the peer's limit holds");
        out.extend_from_slice(format!("Q{}.", self.next).as_bytes());
        self.in_flight.push(self.next);
        self.next += 1;
        if self.in_messages { Started::Streamed { stall_ns: LONGEST_GAP } } else { Started::Awaited }
    }

    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(usize, Progress), Malformed> {
        let Some(end) = bytes.iter().position(|byte| *byte == b'.') else {
            self.partial.extend_from_slice(bytes);
            return Ok((bytes.len(), Progress::ControlFrame));
        };
        self.partial.extend_from_slice(&bytes[..end]);
        let frame = String::from_utf8(std::mem::take(&mut self.partial)).unwrap();
        let (kind, number) = frame.split_at(frame.len().min(1));
        let number: u32 = number.parse().map_err(|_| Malformed::because("a frame without a number"))?;
        let progress = match kind {
            "A" | "C" => match self.in_flight.iter().position(|id| *id == number) {
                Some(position) => {
                    self.in_flight.remove(position);
                    Progress::Answered(Answer { position, status: 200, reusable: kind == "A" })
                }
                // The answer to a call that was given up.
                None => Progress::ControlFrame,
            },
            "M" => match self.in_flight.iter().position(|id| *id == number) {
                Some(position) => Progress::Message { position, status: 0 },
                None => Progress::ControlFrame,
            },
            "L" => {
                self.limit = number as usize;
                Progress::ControlFrame
            }
            "P" => {
                out.extend_from_slice(b"O0.");
                Progress::ControlFrame
            }
            "X" => match self.in_flight.iter().position(|id| *id == number) {
                Some(position) => {
                    self.in_flight.remove(position);
                    Progress::Refused { position, reason: "refused" }
                }
                None => Progress::ControlFrame,
            },
            "H" => Progress::Opened,
            "G" | "E" => {
                self.fails |= kind == "E";
                let unprocessed = self.in_flight.iter().filter(|id| **id <= number).count();
                self.in_flight.truncate(unprocessed);
                Progress::Draining { unprocessed }
            }
            _ => return Err(Malformed::because("an unknown frame")),
        };
        Ok((end + 1, progress))
    }

    fn is_framed(&self) -> bool {
        true
    }

    fn close_reason(&self) -> Option<Cow<'static, str>> {
        self.fails.then_some(Cow::Borrowed("an error"))
    }

    fn capacity(&self) -> usize {
        self.limit
    }

    fn cancel(&mut self, position: usize, out: &mut Vec<u8>) -> bool {
        let id = self.in_flight.remove(position);
        out.extend_from_slice(format!("R{id}.").as_bytes());
        true
    }
}

/// The peer's record: requests by connection, and calls that were given up.
#[derive(Debug, Default)]
struct Seen {
    requests: BTreeMap<u64, Vec<u32>>,
    given_up: u64,
    most_in_flight: usize,
}

/// How a peer answers the request with this id on this connection.
type Manner = fn(connection: u64, id: u32) -> Reaction;

struct Server {
    manner: Manner,
    limit: Option<u32>,
    partial: BTreeMap<u64, String>,
    /// When the calls in flight on a connection end.
    ends: BTreeMap<u64, Vec<u64>>,
    seen: Arc<Mutex<Seen>>,
}

impl Peer for Server {
    fn received(&mut self, connection: u64, bytes: &[u8], now: Tick) -> Reaction {
        let text = self.partial.entry(connection).or_default();
        text.push_str(std::str::from_utf8(bytes).unwrap());
        let mut reaction = Vec::new();
        let mut seen = self.seen.lock().unwrap();
        if let Some(limit) = self.limit
            && !seen.requests.contains_key(&connection)
        {
            reaction.push((0, Act::Send(format!("L{limit}.").into_bytes())));
        }
        while let Some(end) = text.find('.') {
            let frame: String = text.drain(..=end).collect();
            let id = frame[1..end].parse().unwrap();
            if frame.starts_with('R') {
                seen.given_up += 1;
                continue;
            }
            seen.requests.entry(connection).or_default().push(id);
            let answers = (self.manner)(connection, id);
            let ends = self.ends.entry(connection).or_default();
            ends.retain(|end| *end > now.ns());
            ends.push(now.ns() + answers.iter().map(|(after, _)| *after).max().unwrap_or(u64::MAX - now.ns()));
            seen.most_in_flight = seen.most_in_flight.max(ends.len());
            reaction.extend(answers);
        }
        reaction
    }
}

fn answer(after: u64, id: u32) -> (u64, Act) {
    (after, Act::Send(format!("A{id}.").into_bytes()))
}

pub(super) fn registry() -> Registry {
    let mut registry = built_in();
    registry.register(Multiplexed::default());
    registry
}

fn carry_out(plan: &Plan, limit: Option<u32>, manner: Manner) -> (Summary, Seen) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let server = Server { manner, limit, partial: BTreeMap::new(), ends: BTreeMap::new(), seen: Arc::clone(&seen) };
    let (net, part) = (VirtualNet::new(server), brunt_engine::RunShare::whole(plan.workers));
    let summary = judged(run_part_on(&net, plan, part, &registry(), &mut Seconds::default()));
    assert_eq!(
        summary.total.numbers.get(Counter::Due),
        summary.total.ended(),
        "due is the sum of outcomes: {:#?}",
        summary.total
    );
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (summary, seen)
}

fn plan_of(pipeline: u32, requests: u64) -> Plan {
    let stop = StopRule { duration_ns: None, requests: Some(requests) };
    Plan { pipeline, stop, ..plan("mux://127.0.0.1/") }
}

#[test]
fn answers_come_in_any_order_and_each_call_has_its_own() {
    // Every third call takes longer than the next two.
    let (summary, seen) =
        carry_out(&plan_of(10, 300), None, |_, id| vec![answer(if id % 3 == 0 { 5 * MS } else { MS }, id)]);
    assert_eq!((summary.total.statuses.total(), summary.total.failures.total()), (300, 0));
    assert_eq!((seen.most_in_flight, seen.requests.len()), (10, 1));
    let service = &summary.total.times.known(Timing::Service);
    assert_eq!((service.quantile(0.5).map(|ns| ns / MS), service.max().map(|ns| ns / MS)), (Some(1), Some(5)));
}

#[test]
fn the_peers_limit_holds_and_calls_beyond_it_wait() {
    let load = Load::Open { profile: "1000".parse().unwrap(), arrivals: Spread::Uniform };
    for load in [Load::Closed {}, load] {
        let plan = Plan { load, ..plan_of(50, 500) };
        let (summary, seen) = carry_out(&plan, Some(4), |_, id| vec![answer(10 * MS, id)]);
        assert_eq!(summary.total.statuses.total(), 500);
        let (_, requests) = seen.requests.iter().next().unwrap();
        assert_eq!(requests.len(), 500);
        // More calls may be sent before the limit is read; from then on 4 calls take 10 ms.
        assert!(summary.run.measured_ns >= (500 - 50) / 4 * 10 * MS, "{}", summary.run.measured_ns);
    }
}

#[test]
fn a_slow_call_does_not_cost_its_connection() {
    // The tenth is never answered.
    let manner: Manner = |_, id| if id == 10 { vec![] } else { vec![answer(MS, id)] };
    let (summary, seen) = carry_out(&plan_of(5, 400), None, manner);
    assert_eq!((summary.total.statuses.total(), summary.failures(Failure::Timeout)), (399, 1));
    assert_eq!((seen.requests.len(), seen.given_up), (1, 1), "one connection for all, and the peer was told");
}

fn message(after: u64, id: u32) -> (u64, Act) {
    (after, Act::Send(format!("M{id}.").into_bytes()))
}

#[test]
fn streams_beside_each_other_have_times_and_stalls_of_their_own() {
    // Every tenth stalls after its first message; of the others every third is slower.
    let manner: Manner = |_, id| match id {
        id if id % 10 == 0 => vec![message(5 * MS, id)],
        id if id % 3 == 0 => vec![message(6 * MS, id), message(26 * MS, id), answer(28 * MS, id)],
        id => vec![message(5 * MS, id), message(15 * MS, id), message(15 * MS, id), answer(16 * MS, id)],
    };
    let plan = Plan { pipeline: 10, ..plan("mux://127.0.0.1/stream") };
    let plan = Plan { stop: StopRule { duration_ns: None, requests: Some(300) }, ..plan };
    let (summary, seen) = carry_out(&plan, None, manner);
    let (total, all) = (&summary.total, summary.total.messages());
    assert_eq!((total.statuses.total(), summary.failures(Failure::Stalled)), (270, 30));
    assert_eq!((seen.requests.len(), seen.given_up), (1, 30), "one connection for all, and the peer was told");
    assert_eq!((all.streams(), all.count()), (300, 30 + 90 * 2 + 180 * 3));
    assert_eq!((all.first().known.min(), all.first().known.max()), (Some(5 * MS), Some(6 * MS)));
    assert_eq!(
        (all.gap().known.max(), all.gap().bounds.min(), all.gap().bounds.count()),
        (Some(20 * MS), Some(30 * MS), 30)
    );
    assert_eq!(total.times.known(Timing::Service).max(), Some(35 * MS), "5 ms to the message before, and 30");
}

#[test]
fn a_message_of_no_stream_breaks_the_contract_by_name() {
    let (summary, _) = carry_out(&plan_of(1, 3), None, |_, id| vec![message(MS, id), answer(2 * MS, id)]);
    assert_eq!(summary.total.failures.reasons(Failure::Protocol), [("a message of no stream in flight", 3)]);
    assert!(summary.total.messages().is_empty());
}

#[test]
fn calls_that_a_draining_peer_has_not_processed_are_made_again_elsewhere() {
    // Each connection takes 20 calls, says so when the 25th comes, and answers those up to the 20th.
    let manner: Manner = |_, id| match id {
        0..=20 => vec![answer(4 * MS, id)],
        25 => vec![(MS, Act::Send(b"G20.".to_vec()))],
        _ => vec![],
    };
    let load = Load::Open { profile: "2000".parse().unwrap(), arrivals: Spread::Uniform };
    for load in [Load::Closed {}, load] {
        let plan = Plan { load, ..plan_of(10, 500) };
        let (summary, seen) = carry_out(&plan, None, manner);
        let total = &summary.total;
        assert_eq!((total.statuses.total(), total.failures.total()), (500, 0), "{:?}", total.failures);
        assert!(total.numbers.get(Counter::TurnedAway) > 0 && seen.requests.len() >= 25, "{:?}", total.numbers);
        let sent: usize = seen.requests.values().map(Vec::len).sum();
        assert_eq!(
            sent as u64,
            500 + total.numbers.get(Counter::TurnedAway),
            "made again once for each time turned away"
        );
    }
}

#[test]
fn a_shutdown_in_two_steps_costs_a_connection_and_no_call() {
    // The graceful shutdown of servers (RFC 9113 §6.8): first the notice, and a moment later the last accepted call.
    let manner: Manner = |_, id| match id {
        20 => {
            let step = |after, text: &str| (after, Act::Send(text.as_bytes().to_vec()));
            vec![step(MS, "G1000000."), step(3 * MS, "G20."), answer(10 * MS, id)]
        }
        0..=20 => vec![answer(10 * MS, id)],
        _ => vec![],
    };
    let load = Load::Open { profile: "800".parse().unwrap(), arrivals: Spread::Uniform };
    for (connections, load) in [(1, Load::Closed {}), (4, Load::Closed {}), (1, load.clone()), (4, load)] {
        let plan = Plan { load, connections: connections.into(), ..plan_of(10, 800) };
        let (summary, seen) = carry_out(&plan, None, manner);
        let total = &summary.total;
        assert_eq!((total.statuses.total(), total.failures.total()), (800, 0), "{:?}", total.failures);
        let made = total.numbers.get(Counter::ConnectionsMade);
        assert!((40..=44).contains(&made), "20 calls each: {made}");
        let sent: usize = seen.requests.values().map(Vec::len).sum();
        assert_eq!(sent as u64, 800 + total.numbers.get(Counter::TurnedAway), "each is processed once");
        assert_eq!(total.numbers.get(Counter::Reconnects), 0, "none was idle");
    }
}

#[test]
fn what_is_turned_away_after_the_load_is_sent_all_the_same() {
    // The first connection turns away its calls when the load is over; the second answers.
    let manner: Manner = |connection, id| match (connection, id) {
        (1, 1) => vec![(1_100 * MS, Act::Send(b"G0.".to_vec()))],
        (1, _) => vec![],
        _ => vec![answer(5 * MS, id)],
    };
    for load in [Load::Closed {}, Load::Open { profile: "4".parse().unwrap(), arrivals: Spread::Uniform }] {
        let stop = StopRule { duration_ns: Some(1000 * MS), requests: None };
        let plan = Plan { stop, load, timeout_ns: 10_000 * MS, drain_ns: 5_000 * MS, ..plan_of(4, 1) };
        let (summary, _) = carry_out(&plan, None, manner);
        let total = &summary.total;
        assert_eq!((total.statuses.total(), total.numbers.get(Counter::Due)), (4, 4), "{:?}", total.failures);
        assert_eq!(total.numbers.get(Counter::TurnedAway), 4);
    }
}

#[test]
fn a_peer_that_turns_every_call_away_ends_them_by_name() {
    let manner: Manner = |_, id| if id == 1 { vec![(MS, Act::Send(b"G0.".to_vec()))] } else { vec![] };
    // Each connection has a longer wait than the one before.
    let plan = Plan { timeout_ns: 60_000 * MS, ..plan_of(1, 3) };
    let (summary, seen) = carry_out(&plan, None, manner);
    assert_eq!(summary.failures(Failure::Closed), 3);
    let reasons = summary.total.failures.reasons(Failure::Closed);
    assert!(reasons.iter().all(|(reason, _)| reason.contains("turned the call away")), "{reasons:?}");
    assert_eq!(seen.requests.len(), 27, "nine connections for each");
}

#[test]
fn users_share_a_connection_that_carries_several_calls() {
    // Eight users, one connection, calls of 10 ms: with so many in flight, ten rounds take as long as ten calls.
    for (pipeline, limit, least_ms, most_ms) in [(8, None, 100, 120), (1, None, 800, 900), (8, Some(2), 360, 500)] {
        let script = format!(
            "local brunt = require 'brunt'
             local mux = brunt.mux {{ base = 'mux://127.0.0.1', pool = 1, pipeline = {pipeline} }}
             brunt.scenario('s', function() mux:call {{}} end):inject {{ brunt.iterations_each(8, 10) }}"
        );
        let (summary, seen) = carry_out(&scenario(&script), limit, |_, id| vec![answer(10 * MS, id)]);
        assert_eq!((summary.total.statuses.total(), summary.total.failures.total()), (80, 0));
        assert_eq!(seen.requests.len(), 1);
        let took_ms = summary.run.measured_ns / MS;
        assert!((least_ms..most_ms).contains(&took_ms), "{pipeline} in flight, limit {limit:?}: {took_ms} ms");
    }
}

#[test]
fn a_users_call_that_is_turned_away_goes_to_another_connection() {
    let script = "local brunt = require 'brunt'
        local mux = brunt.mux { base = 'mux://127.0.0.1', pool = 2, pipeline = 8 }
        brunt.scenario('s', function() mux:call {} end):inject { brunt.iterations_each(8, 20) }";
    let manner: Manner = |_, id| match id {
        0..=20 => vec![answer(4 * MS, id)],
        22 => vec![(MS, Act::Send(b"G20.".to_vec()))],
        _ => vec![],
    };
    let (summary, seen) = carry_out(&scenario(script), None, manner);
    let total = &summary.total;
    assert_eq!((total.statuses.total(), total.failures.total()), (160, 0), "{:?}", total.failures);
    assert!(seen.requests.len() >= 7, "{}", seen.requests.len());
}

pub(super) fn scenario(script: &str) -> Plan {
    let file = File { name: "s.lua".to_owned(), content: Content(script.as_bytes().to_vec()) };
    let loaded = read(file.clone(), Files::Plan(Vec::new()), &LoadOptions::default(), &registry()).unwrap();
    let scenarios = Scenarios { files: vec![file], ..loaded.scenarios };
    Plan { scenarios: Some(scenarios), stop: StopRule::default(), ..plan("mux://127.0.0.1/") }
}

#[test]
fn a_peer_that_asks_and_never_reads_is_hung_up_on() {
    /// A peer that reads the first call, then nothing, and sends pings again and again.
    struct Asking(bool);
    impl Peer for Asking {
        fn room(&mut self, _now: Tick) -> usize {
            if self.0 { 0 } else { usize::MAX }
        }
        fn connecting(&mut self, _now: Tick) -> Reaction {
            self.0 = false;
            vec![(MS, Act::Accept)]
        }
        fn received(&mut self, _connection: u64, _bytes: &[u8], _now: Tick) -> Reaction {
            self.0 = true;
            (1..100).map(|turn| (turn * MS, Act::Send(b"P0.".repeat(1000)))).collect()
        }
    }
    let (net, part) = (VirtualNet::new(Asking(false)), brunt_engine::RunShare::whole(1));
    let plan = plan("mux://127.0.0.1/");
    let summary = judged(run_part_on(&net, &plan, part, &registry(), &mut Seconds::default()));
    let reasons = summary.total.failures.reasons(Failure::Protocol);
    assert!(
        !reasons.is_empty() && reasons.iter().all(|(reason, _)| reason.contains("does not read them")),
        "{reasons:?}"
    );
}
