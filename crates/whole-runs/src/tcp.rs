//! Plain TCP: the suite, and its own tests.

use brunt_plan::content::Content;
use brunt_plan::plan::{Load, Plan};
use brunt_record::catalogue::Counter;
use brunt_record::outcome::Failure;

use super::behaviour::{Speech, every_behaviour};
use super::{MS, SECOND_NS, carry_out, plan};
use brunt_engine::simulated::{Act, Peer, Reaction};
use brunt_record::time::Tick;
use brunt_tcp::options::{AnswerFraming, LengthPrefix, Options};

const TCP: Speech = Speech {
    url: "tcp://127.0.0.1:7/",
    options: || {
        let framing = AnswerFraming::LengthPrefix(LengthPrefix { bytes: 4, little_endian: false });
        let expect = Some(Content(b"pong".to_vec()));
        Options { send: Content(b"\0\0\0\x04ping".to_vec()), framing, expect, ..Options::default() }.to_protocol()
    },
    aside: |_| None,
    idempotent: false,
    request: |bytes| (bytes.len() >= 8).then_some(8),
    answer: b"\0\0\0\x04pong",
    fit: |_, _| {},
    garbage: b"\xff\xff\xff\xffwhat is this?",
    oversize: (b"\x02\0\0\0", b"abcd"),
    oversize_is: Failure::Protocol,
};

#[test]
fn behaves() {
    every_behaviour(TCP);
}

/// A peer that answers each write with the same acts.
struct Always(Reaction);

impl Peer for Always {
    fn received(&mut self, _connection: u64, _bytes: &[u8], _now: Tick) -> Reaction {
        self.0.clone()
    }
}

fn sending(options: &Options) -> Plan {
    Plan { protocol: options.to_protocol(), ..plan(TCP.url) }
}

#[test]
fn another_answer_is_a_mismatch() {
    let summary = carry_out(&TCP.plan(), Always(vec![(MS, Act::Send(b"\0\0\0\x02no".to_vec()))])).summary;
    let failed = summary.failures(Failure::Mismatch);
    assert!(failed > 900, "{failed}");
    assert!(summary.total.numbers.get(Counter::ConnectionsMade) >= failed, "what is owed goes with its connection");
}

#[test]
fn without_an_answer_a_call_ends_when_it_is_sent() {
    let options = Options { send: Content(b"gauge:1|g\n".to_vec()), ..Options::default() };
    let load = Load::Open { profile: "500".parse().unwrap(), arrivals: brunt_plan::arrivals::Spread::Uniform };
    let summary = carry_out(&Plan { load, ..sending(&options) }, Always(Vec::new())).summary;
    assert_eq!((summary.total.numbers.get(Counter::Due), summary.total.statuses.total()), (500, 500));
    assert_eq!(summary.times.service.unwrap().max.value, 0, "made-up time does not pass while sending");
    // The closed model counts and ends, too.
    let mut counted = sending(&options);
    counted.stop = brunt_plan::plan::StopRule { duration_ns: None, requests: Some(1000) };
    let summary = carry_out(&counted, Always(Vec::new())).summary;
    assert_eq!((summary.total.statuses.total(), summary.total.numbers.get(Counter::ClearOut)), (1000, 10_000));
    // With a connection for each.
    let summary = carry_out(&Plan { reconnect: true, ..counted }, Always(Vec::new())).summary;
    assert_eq!((summary.total.statuses.total(), summary.total.numbers.get(Counter::ConnectionsMade)), (1000, 1000));
}

#[test]
fn a_peer_that_takes_nothing_holds_calls_up() {
    struct Full;
    impl Peer for Full {
        fn received(&mut self, _connection: u64, _bytes: &[u8], _now: Tick) -> Reaction {
            Vec::new()
        }
        fn room(&mut self, _now: Tick) -> usize {
            0
        }
    }
    let options = Options { send: Content(b"x".to_vec()), ..Options::default() };
    let summary = carry_out(&sending(&options), Full).summary;
    assert!(summary.total.numbers.get(Counter::Due) < 10, "{}", summary.total.numbers.get(Counter::Due));
    assert_eq!(summary.failures(Failure::Timeout), summary.total.failures.total());
    assert_eq!(summary.run.measured_ns, SECOND_NS);
}
