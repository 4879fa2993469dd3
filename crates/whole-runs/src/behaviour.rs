//! One test suite for every protocol: what a peer can do to a call, and the outcome that is expected. A protocol
//! describes itself as a [`Speech`] and runs [`every_behaviour`].

use brunt_judge::summary::Summary;
use brunt_plan::arrivals::Spread;
use brunt_plan::plan::{Load, Plan, ProtocolOptions, StopRule};
use brunt_record::catalogue::Counter;
use brunt_record::outcome::Failure;

use super::{MS, carry_out, carry_out_on, plan};
use brunt_engine::StopHandle;
use brunt_engine::simulated::{Act, Peer, Reaction, VirtualNet};
use brunt_record::time::Tick;

/// The peer's answer to bytes that are no call: the number of bytes that it takes, and the answer.
pub(super) type Aside = fn(bytes: &[u8]) -> Option<(usize, Vec<u8>)>;

/// How a protocol's peer speaks.
#[derive(Clone, Copy)]
pub(super) struct Speech {
    /// A URL of the protocol.
    pub(super) url: &'static str,
    /// The options of its calls.
    pub(super) options: fn() -> ProtocolOptions,
    /// The peer's answers to bytes that are no call, such as an opening exchange or a close.
    pub(super) aside: Aside,
    /// Whether its calls may be sent again.
    pub(super) idempotent: bool,
    /// The length of the complete request at the beginning of `bytes`, in bytes; `None` if there is none.
    pub(super) request: fn(bytes: &[u8]) -> Option<usize>,
    /// A good answer.
    pub(super) answer: &'static [u8],
    /// Adapts an answer to its request, where answers repeat parts of their requests.
    pub(super) fit: fn(request: &[u8], answer: &mut [u8]),
    /// Bytes that are no answer.
    pub(super) garbage: &'static [u8],
    /// An answer beyond the protocol's limits: its beginning, and the part that is repeated.
    pub(super) oversize: (&'static [u8], &'static [u8]),
    /// The failure that such an answer counts as.
    pub(super) oversize_is: Failure,
}

impl Speech {
    /// One second of closed-model load on one connection.
    pub(super) fn plan(&self) -> Plan {
        Plan { protocol: (self.options)(), ..plan(self.url) }
    }
}

/// The peer's behaviour towards each request.
#[derive(Clone, Copy, Debug)]
enum Manner {
    Answer,
    AnswerThenClose,
    Silence,
    ResetMidAnswer,
    CloseEarly,
    CloseMidAnswer,
    Drip,
    Garbage,
    Oversize,
    Unasked,
}

struct Server {
    speech: Speech,
    manner: Manner,
    received: std::collections::BTreeMap<u64, Vec<u8>>,
    /// The number of complete requests that came.
    requests: u64,
}

impl Server {
    fn new(speech: Speech, manner: Manner) -> Self {
        Self { speech, manner, received: std::collections::BTreeMap::new(), requests: 0 }
    }

    fn react(&self, request: &[u8]) -> Reaction {
        let mut answer = self.speech.answer.to_vec();
        (self.speech.fit)(request, &mut answer);
        let answer = answer.as_slice();
        let half = answer[..answer.len() / 2].to_vec();
        match self.manner {
            Manner::Answer => vec![(MS, Act::Send(answer.to_vec()))],
            Manner::AnswerThenClose => vec![(MS, Act::Send(answer.to_vec())), (MS + 1, Act::Close)],
            Manner::Silence => vec![],
            Manner::ResetMidAnswer => vec![(MS, Act::Send(half)), (2 * MS, Act::Reset)],
            Manner::CloseEarly => vec![(MS, Act::Close)],
            Manner::CloseMidAnswer => vec![(MS, Act::Send(half)), (2 * MS, Act::Close)],
            Manner::Drip => {
                answer.iter().enumerate().map(|(i, &byte)| (i as u64 * 100 * MS, Act::Send(vec![byte]))).collect()
            }
            Manner::Garbage => vec![(MS, Act::Send(self.speech.garbage.to_vec()))],
            Manner::Oversize => {
                let (beginning, repeated) = self.speech.oversize;
                let mut acts = vec![(MS, Act::Send(beginning.to_vec()))];
                acts.extend((0..200).map(|i| (MS + i, Act::Send(repeated.repeat(4096 / repeated.len().max(1))))));
                acts
            }
            Manner::Unasked => vec![(MS, Act::Send([answer, answer].concat()))],
        }
    }
}

impl Peer for Server {
    fn received(&mut self, connection: u64, bytes: &[u8], _now: Tick) -> Reaction {
        let request = self.speech.request;
        let mut reaction = Vec::new();
        let waiting = self.received.entry(connection).or_default();
        waiting.extend_from_slice(bytes);
        let mut whole = Vec::new();
        loop {
            if let Some((n, answer)) = (self.speech.aside)(waiting) {
                waiting.drain(..n);
                reaction.push((0, Act::Send(answer)));
            } else if let Some(n) = request(waiting) {
                whole.push(waiting.drain(..n).collect::<Vec<u8>>());
            } else {
                break;
            }
        }
        self.requests += whole.len() as u64;
        for request in whole {
            reaction.extend(self.react(&request));
        }
        reaction
    }
}

struct Refusal;

impl Peer for Refusal {
    fn connecting(&mut self, _now: Tick) -> Reaction {
        vec![(MS, Act::Refuse)]
    }
    fn received(&mut self, _connection: u64, _bytes: &[u8], _now: Tick) -> Reaction {
        vec![]
    }
}

/// A peer that never answers a connect.
struct BlackHole;

impl Peer for BlackHole {
    fn connecting(&mut self, _now: Tick) -> Reaction {
        vec![]
    }
    fn received(&mut self, _connection: u64, _bytes: &[u8], _now: Tick) -> Reaction {
        vec![]
    }
}

/// A peer that is slow to accept.
struct SlowToAccept(Server);

impl Peer for SlowToAccept {
    fn connecting(&mut self, _now: Tick) -> Reaction {
        vec![(100 * MS - 1, Act::Accept)]
    }
    fn received(&mut self, connection: u64, bytes: &[u8], now: Tick) -> Reaction {
        self.0.received(connection, bytes, now)
    }
}

/// A peer that answers everything correctly, after a millisecond.
pub(super) fn answering(speech: Speech) -> impl Peer {
    Server::new(speech, Manner::Answer)
}

fn against(speech: Speech, manner: Manner) -> Summary {
    carry_out(&speech.plan(), Server::new(speech, manner)).summary
}

/// All calls failed, in this way and for a reason like this.
fn all_failed(summary: &Summary, failure: Failure, reason: &str) {
    let failures = &summary.total.failures;
    assert!(summary.failures(failure) > 0, "{failures:?}");
    assert_eq!(failures.total(), summary.failures(failure), "{failures:?}");
    assert_eq!(summary.total.statuses.total(), 0);
    let reasons = failures.reasons(failure);
    assert!(reasons.iter().all(|(got, _)| got.contains(reason)), "{reasons:?}");
    assert!(summary.times.failed.is_some(), "failures keep their latency");
}

/// Runs the suite for one protocol.
pub(super) fn every_behaviour(speech: Speech) {
    success(speech);
    in_any_pieces(speech);
    refused(speech);
    never_connected(speech);
    connecting_at_the_end(speech);
    reset_mid_answer(speech);
    closed_early(speech);
    closed_after_each_answer(speech);
    silent(speech);
    slow_drip(speech);
    garbage(speech);
    oversize(speech);
    unasked(speech);
    deadline_with_calls_in_flight(speech);
    open_model_without_a_target(speech);
    by_count(speech);
    interrupted(speech);
}

fn success(speech: Speech) {
    let summary = against(speech, Manner::Answer);
    // 1 ms each, one after the other, in one second.
    assert_eq!(summary.total.numbers.get(Counter::Due), 1000);
    assert_eq!(summary.total.statuses.total(), 1000);
    assert_eq!(
        (summary.total.numbers.get(Counter::ConnectionsMade), summary.total.numbers.get(Counter::Reconnects)),
        (1, 0)
    );
    let service = summary.times.service.unwrap();
    assert_eq!((service.min, service.max.value), (MS, MS));
    assert_eq!(summary.total.numbers.get(Counter::ClearIn), 1000 * speech.answer.len() as u64);
}

fn in_any_pieces(speech: Speech) {
    let whole = against(speech, Manner::Answer);
    for piece in [1, 2, 7] {
        let net = VirtualNet::new(Server::new(speech, Manner::Answer)).in_pieces_of(piece);
        let summary = carry_out_on(&speech.plan(), &net, &StopHandle::default()).summary;
        assert_eq!(summary.total.statuses, whole.total.statuses, "pieces of {piece}");
        assert_eq!(summary.total.failures.total(), 0, "pieces of {piece}: {:?}", summary.total.failures);
    }
}

fn refused(speech: Speech) {
    let summary = carry_out(&speech.plan(), Refusal).summary;
    all_failed(&summary, Failure::Connect, "connection refused");
    // The client backs off, and does not spin.
    assert!((3..20).contains(&summary.total.numbers.get(Counter::Due)), "{}", summary.total.numbers.get(Counter::Due));
}

fn never_connected(speech: Speech) {
    let summary = carry_out(&speech.plan(), BlackHole).summary;
    assert!(summary.failures(Failure::ConnectTimeout) > 0);
    assert_eq!(
        summary.failures(Failure::ConnectTimeout),
        summary.total.numbers.get(Counter::Due),
        "the last one in the drain"
    );
}

fn connecting_at_the_end(speech: Speech) {
    for load in [Load::Closed {}, Load::Open { profile: "400".parse().unwrap(), arrivals: Spread::Uniform }] {
        let plan = Plan { reconnect: true, connections: 50.into(), load, ..speech.plan() };
        let summary = carry_out(&plan, SlowToAccept(Server::new(speech, Manner::Answer))).summary;
        assert!(summary.total.numbers.get(Counter::Due) > 300, "{}", summary.total.numbers.get(Counter::Due));
        assert_eq!(
            summary.total.statuses.total(),
            summary.total.numbers.get(Counter::Due),
            "a good server has answered every call"
        );
    }
    let plan = Plan { reconnect: true, drain_ns: 5 * MS, ..speech.plan() };
    let summary = carry_out(&plan, SlowToAccept(Server::new(speech, Manner::Answer))).summary;
    let (unfinished, unsent) = (Counter::Unfinished, Counter::Unsent);
    let numbers = &summary.total.numbers;
    assert_eq!((numbers.get(unfinished), numbers.get(unsent)), (1, 0), "it waits for the target when the drain ends");
}

fn reset_mid_answer(speech: Speech) {
    all_failed(&against(speech, Manner::ResetMidAnswer), Failure::Read, "reset");
    all_failed(&against(speech, Manner::CloseMidAnswer), Failure::Closed, "before the answer was complete");
}

fn closed_early(speech: Speech) {
    let summary = against(speech, Manner::CloseEarly);
    all_failed(&summary, Failure::Closed, "before the answer was complete");
    assert_eq!(summary.total.numbers.get(Counter::Reconnects), 0, "a fresh connection that closes is no idle one");
}

fn closed_after_each_answer(speech: Speech) {
    let summary = against(speech, Manner::AnswerThenClose);
    assert!(summary.total.statuses.total() > 400);
    if speech.idempotent {
        assert_eq!(summary.total.failures.total(), 0, "{:?}", summary.total.failures);
        assert!(summary.total.numbers.get(Counter::Reconnects) > 400, "{:?}", summary.total.numbers);
    } else {
        // A call that the peer may have processed is not sent twice.
        let failures = &summary.total.failures;
        assert_eq!(failures.total(), summary.failures(Failure::Closed), "{failures:?}");
        assert_eq!(summary.total.numbers.get(Counter::Reconnects), 0);
    }
}

fn silent(speech: Speech) {
    let summary = against(speech, Manner::Silence);
    // 200 ms each, and a little to connect anew: four or five in a second, the last in the drain.
    assert!((4..=5).contains(&summary.total.numbers.get(Counter::Due)), "{}", summary.total.numbers.get(Counter::Due));
    all_failed(&summary, Failure::Timeout, "no complete answer within the timeout");
    let failed = summary.times.failed.unwrap();
    assert!(failed.min >= 200 * MS && failed.max.value < 260 * MS, "{failed:?}");
}

fn slow_drip(speech: Speech) {
    // A byte every 100 ms does not keep a call alive.
    let summary = against(speech, Manner::Drip);
    all_failed(&summary, Failure::Timeout, "no complete answer within the timeout");
}

fn garbage(speech: Speech) {
    let summary = against(speech, Manner::Garbage);
    all_failed(&summary, Failure::Protocol, "");
    assert!(summary.total.numbers.get(Counter::Due) < 30, "it backs off: {}", summary.total.numbers.get(Counter::Due));
}

fn oversize(speech: Speech) {
    all_failed(&against(speech, Manner::Oversize), speech.oversize_is, "more ");
}

fn unasked(speech: Speech) {
    // The answer counts. The unasked bytes end the connection, at the latest when it is used for the next call.
    let summary = against(speech, Manner::Unasked);
    assert!(summary.total.statuses.total() > 0);
}

fn deadline_with_calls_in_flight(speech: Speech) {
    let mut plan = speech.plan();
    plan.timeout_ns = 60_000 * MS;
    plan.drain_ns = 300 * MS;
    let summary = carry_out(&plan, Server::new(speech, Manner::Silence)).summary;
    assert_eq!((summary.total.numbers.get(Counter::Due), summary.total.numbers.get(Counter::Unfinished)), (1, 1));
    let response = summary.times.response.unwrap();
    assert!(response.max.at_least && response.max.value >= 1300 * MS, "{response:?}");
    assert_eq!(summary.rates.answered_per_s, 0.0);
}

fn open_model_without_a_target(speech: Speech) {
    let mut plan = speech.plan();
    plan.load = Load::Open { profile: "1000".parse().unwrap(), arrivals: Spread::Uniform };
    let summary = carry_out(&plan, Refusal).summary;
    assert_eq!(summary.total.numbers.get(Counter::Due), 1000);
    assert!(summary.failures(Failure::Connect) > 0);
    assert_eq!(summary.failures(Failure::Connect), 1000, "nothing is left unsent");
    assert!(!summary.answered());
}

fn by_count(speech: Speech) {
    for (connections, pipeline, reconnect) in [(1, 1, false), (7, 1, false), (3, 4, false), (5, 1, true)] {
        let plan = Plan {
            connections: connections.into(),
            pipeline,
            reconnect,
            warmup_ns: 20 * MS,
            stop: StopRule { duration_ns: None, requests: Some(100) },
            ..speech.plan()
        };
        let summary = carry_out(&plan, Server::new(speech, Manner::Answer)).summary;
        assert_eq!(summary.total.statuses.total(), 100, "{connections} × {pipeline}, reconnect {reconnect}");
        assert_eq!(summary.total.numbers.get(Counter::Due), 100);
        assert!(summary.rates.answered_per_s > 0.0);
    }
}

/// A peer that asks the run to stop after some requests.
struct Interrupter(Server, StopHandle, u64);

impl Peer for Interrupter {
    fn received(&mut self, connection: u64, bytes: &[u8], now: Tick) -> Reaction {
        let reaction = self.0.received(connection, bytes, now);
        if self.0.requests >= self.2 {
            self.1.stop();
        }
        reaction
    }
}

fn interrupted(speech: Speech) {
    let stop = StopHandle::default();
    let peer = Interrupter(Server::new(speech, Manner::Answer), stop.clone(), 100);
    let summary = carry_out_on(&speech.plan(), &VirtualNet::new(peer), &stop).summary;
    assert_eq!(summary.run.ending, brunt_record::recording::Ending::Interrupted);
    assert_eq!(summary.total.statuses.total(), 100, "the call in flight still ends");
    assert!(summary.run.measured_ns < 110 * MS);
}
