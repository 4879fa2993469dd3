//! Answers that come as messages: when each came, and streams that stall, end early or never end.

use std::collections::BTreeMap;

use brunt_http1::options::Options;
use brunt_judge::summary::Summary;
use brunt_plan::arrivals::Spread;
use brunt_plan::plan::{Load, Plan, ProtocolOptions, StopRule};
use brunt_protocol::messages::{Framing, MessageOptions};
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::histogram::AtLeast;
use brunt_record::outcome::Failure;

use super::{MS, SECOND_NS, carry_out, carry_out_on, plan};
use brunt_engine::StopHandle;
use brunt_engine::simulated::{Act, Peer, Reaction, VirtualNet};
use brunt_record::time::Tick;

pub(super) const HEAD: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
pub(super) const END: &str = "0\r\n\r\n";

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

pub(super) fn event(data: &str) -> String {
    chunk(&format!("data: {data}\n\n"))
}

/// A peer that answers each request with the same acts: their times and bytes.
pub(super) struct Stream {
    acts: Vec<(u64, String)>,
    partial: BTreeMap<u64, Vec<u8>>,
}

pub(super) fn stream(acts: Vec<(u64, String)>) -> Stream {
    Stream { acts, partial: BTreeMap::new() }
}

impl Peer for Stream {
    fn received(&mut self, connection: u64, bytes: &[u8], _now: Tick) -> Reaction {
        let partial = self.partial.entry(connection).or_default();
        partial.extend_from_slice(bytes);
        let mut requests = 0;
        while let Some(end) = partial.windows(4).position(|four| four == b"\r\n\r\n") {
            partial.drain(..end + 4);
            requests += 1;
        }
        let acts = self.acts.iter().map(|(at, text)| {
            let act = if text == "close" { Act::Close } else { Act::Send(text.clone().into_bytes()) };
            (*at, act)
        });
        std::iter::repeat_n(acts, requests).flatten().collect()
    }
}

/// A protocol whose answers are server-sent events, with this last one.
pub(super) fn streaming(last: Option<&str>) -> ProtocolOptions {
    let messages = MessageOptions { framing: Framing::Sse, last: last.map(str::to_owned), stall_ns: None };
    Options { messages: Some(messages), ..Options::default() }.to_protocol()
}

/// A plan of this many calls, whose answers are server-sent events.
fn events(calls: u64, last: Option<&str>, stall_ns: Option<u64>) -> Plan {
    let messages = MessageOptions { framing: Framing::Sse, last: last.map(str::to_owned), stall_ns };
    let options = Options { messages: Some(messages), ..Options::default() };
    Plan {
        protocol: options.to_protocol(),
        stop: StopRule { duration_ns: None, requests: Some(calls) },
        ..plan("http://127.0.0.1/")
    }
}

/// The first message after 10 ms, the others 20 and 30 ms after it, two more at once, the end 5 ms later.
fn usual() -> Stream {
    stream(vec![
        (5 * MS, HEAD.to_owned()),
        (10 * MS, event("a")),
        (30 * MS, event("b")),
        (60 * MS, event("c")),
        (70 * MS, event("d") + &event("e")),
        (75 * MS, event("[DONE]") + END),
    ])
}

fn exact(ns: u64) -> AtLeast<u64> {
    AtLeast::exactly(ns)
}

#[test]
fn first_message_gaps_and_last_are_exact() {
    let summary = carry_out(&events(10, Some("[DONE]"), None), usual()).summary;
    let (times, all) = (&summary.times, summary.total.messages());
    assert_eq!((all.count(), all.streams(), all.together(), all.left()), (50, 10, 10, 0));
    let first = times.first_message.as_ref().unwrap();
    assert_eq!((first.min, first.max, first.count), (10 * MS, exact(10 * MS), 10));
    let gaps: Vec<_> = all.gap().known.values().map(|(ns, n)| ((ns + MS / 2) / MS, n)).collect();
    assert_eq!(gaps, [(0, 10), (10, 10), (20, 10), (30, 10)]);
    let gap = times.message_gap.as_ref().unwrap();
    assert_eq!((gap.min, gap.max), (0, exact(30 * MS)));
    assert_eq!(
        (times.last_message.as_ref().unwrap().max, times.each_message.as_ref().unwrap().max),
        (exact(70 * MS), exact(15 * MS))
    );
    assert_eq!(times.response.as_ref().unwrap().max, exact(75 * MS), "an answer ends with its body");
    assert_eq!(times.first_byte.as_ref().unwrap().max, exact(5 * MS));
    // 10 calls of 75 ms, one after the other.
    assert!((summary.rates.messages_per_s - 50.0 / 0.75).abs() < 0.1, "{}", summary.rates.messages_per_s);
}

#[test]
fn pieces_change_nothing() {
    for piece in [1, 2, 7] {
        let net = VirtualNet::new(usual()).in_pieces_of(piece);
        let summary = carry_out_on(&events(3, Some("[DONE]"), None), &net, &StopHandle::default()).summary;
        let all = summary.total.messages();
        assert_eq!((all.count(), all.streams(), summary.total.failures.total()), (15, 3, 0));
        assert_eq!((all.first().known.max(), all.gap().known.max()), (Some(10 * MS), Some(30 * MS)));
    }
}

#[test]
fn an_own_delay_is_no_gap() {
    // The worker stands still from the second message to after the third.
    let plan = events(1, Some("[DONE]"), None);
    let net = VirtualNet::new(usual()).standing_still(Tick::from_ns(SECOND_NS + 25 * MS), 20 * MS);
    let total = carry_out_on(&plan, &net, &StopHandle::default()).summary.total;
    let all = total.messages();
    assert_eq!((all.count(), all.gap().known.max()), (5, Some(30 * MS)), "{all:?}");
}

#[test]
fn a_stall_is_a_failure_at_its_time_and_a_bound() {
    let acts = vec![(10 * MS, HEAD.to_owned() + &event("a")), (25 * MS, event("b")), (80 * MS, event("c") + END)];
    let summary = carry_out(&events(4, None, Some(30 * MS)), stream(acts)).summary;
    let total = &summary.total;
    assert_eq!((summary.failures(Failure::Stalled), total.statuses.total()), (4, 0));
    assert_eq!(total.failures.reasons(Failure::Stalled), [("no message within the longest gap allowed", 4)]);
    assert_eq!(total.times.known(Timing::Service).max(), Some(55 * MS), "25 ms to the last message, and 30");
    assert_eq!(
        (total.messages().gap().known.max(), total.messages().gap().bounds.max()),
        (Some(15 * MS), Some(30 * MS))
    );
    let gap = summary.times.message_gap.unwrap();
    assert_eq!(gap.max, AtLeast { value: 30 * MS, at_least: true });
    assert!(total.messages().last().is_empty() && total.messages().each().is_empty());
}

#[test]
fn the_longest_gap_does_not_hurry_the_first_message() {
    let acts = vec![(90 * MS, HEAD.to_owned() + &event("a")), (100 * MS, event("b") + END)];
    let total = carry_out(&events(4, None, Some(30 * MS)), stream(acts)).summary.total;
    assert_eq!((total.statuses.total(), total.messages().count()), (4, 8));
    // Nor does it lengthen the timeout, which is 200 ms.
    let acts = (0..12).map(|n| (20 * n * MS, if n == 0 { HEAD.to_owned() } else { event("x") })).collect();
    let total = carry_out(&events(2, None, Some(30 * MS)), stream(acts)).summary.total;
    assert_eq!((total.failures.count(Failure::Timeout), total.times.known(Timing::Service).max()), (2, Some(200 * MS)));
    // The last that came in time was sent after 180 ms, or with the timeout.
    assert!(total.messages().gap().bounds.max().unwrap() <= 20 * MS, "{:?}", total.messages().gap().bounds.max());
}

#[test]
fn a_first_message_that_never_comes_is_a_lower_bound() {
    let acts = vec![(10 * MS, HEAD.to_owned()), (20 * MS, chunk(": still there\n\n"))];
    let summary = carry_out(&events(3, None, None), stream(acts)).summary;
    assert_eq!((summary.failures(Failure::Timeout), summary.total.messages().streams()), (3, 0));
    let first = summary.times.first_message.unwrap();
    assert_eq!((first.count, first.max), (3, AtLeast { value: 200 * MS, at_least: true }));
    assert!(summary.times.message_gap.is_none());
}

#[test]
fn a_stream_that_ends_early_is_told_by_name() {
    let body = vec![(10 * MS, HEAD.to_owned() + &event("a")), (20 * MS, END.to_owned())];
    let total = carry_out(&events(3, Some("[DONE]"), None), stream(body.clone())).summary.total;
    assert_eq!(total.failures.reasons(Failure::EndedEarly), [("the stream ended without its last message", 3)]);
    assert_eq!(
        (total.messages().count(), total.numbers.get(Counter::ConnectionsMade)),
        (3, 1),
        "its connection goes on"
    );
    assert_eq!(carry_out(&events(3, None, None), stream(body)).summary.total.failures.total(), 0);
    let closed = vec![(10 * MS, HEAD.to_owned() + &event("a")), (20 * MS, "close".to_owned())];
    let total = carry_out(&events(3, None, None), stream(closed)).summary.total;
    assert_eq!((total.failures.count(Failure::Closed), total.messages().count()), (3, 3));
    assert!(total.messages().gap().bounds.is_empty(), "nothing was waited for in vain");
}

#[test]
fn answers_that_are_no_success_are_no_streams() {
    let busy = "HTTP/1.1 503 Busy\r\nContent-Length: 9\r\n\r\ndata: a\n\n".to_owned();
    let summary = carry_out(&events(3, Some("[DONE]"), None), stream(vec![(MS, busy)])).summary;
    assert_eq!(summary.total.statuses.sorted(), [(503, 3)]);
    assert!(summary.total.messages().is_empty() && summary.times.first_message.is_none());
}

#[test]
fn an_endless_event_ends_its_call() {
    let piece = chunk(&"x".repeat(1 << 20));
    let acts =
        std::iter::once((MS, HEAD.to_owned() + &chunk("data: "))).chain((1..30).map(|n| (n * MS, piece.clone())));
    let total = carry_out(&events(1, Some("[DONE]"), None), stream(acts.collect())).summary.total;
    assert_eq!(total.failures.reasons(Failure::Protocol), [("a message of more than 16 MiB", 1)]);
    assert!(total.numbers.get(Counter::ClearIn) < 18 << 20);
}

#[test]
fn very_many_messages_are_all_counted() {
    let many = event("x").repeat(20_000);
    let acts = vec![(MS, HEAD.to_owned()), (2 * MS, many.clone()), (3 * MS, many + END)];
    let total = carry_out(&events(2, None, None), stream(acts)).summary.total;
    let all = total.messages();
    assert_eq!((all.count(), all.streams(), all.gap().count()), (80_000, 2, 79_998));
    // Bytes that do not fit one read come with the next, at the same time.
    assert!(all.together() > 79_000 && all.gap().known.max() == Some(MS), "{}", all.together());
}

#[test]
fn streams_at_a_rate_are_all_accounted_for() {
    let load = Load::Open { profile: "50".parse().unwrap(), arrivals: Spread::Uniform };
    let stop = StopRule { duration_ns: Some(SECOND_NS), requests: None };
    let plan = Plan { load, stop, connections: 3.into(), ..events(1, Some("[DONE]"), None) };
    // A stream takes 75 ms, so that three connections carry 40 of the 50 a second.
    let summary = carry_out(&plan, usual()).summary;
    let total = &summary.total;
    assert_eq!((total.numbers.get(Counter::Due), total.failures.total()), (50, 0));
    assert_eq!(total.messages().streams(), total.statuses.total());
    assert_eq!(total.messages().first().known.max(), Some(10 * MS), "waiting for a connection is no time of a message");
    assert!(total.numbers.get(Counter::WaitedForConnection) > 0 && summary.times.response.unwrap().max.value > 75 * MS);
}

#[test]
fn streams_under_way_at_the_end_say_how_long_they_had_waited() {
    let acts = vec![(10 * MS, HEAD.to_owned() + &event("a"))];
    let stop = StopRule { duration_ns: Some(50 * MS), requests: None };
    let plan = Plan { stop, timeout_ns: 10 * SECOND_NS, ..events(1, None, None) };
    let total = carry_out(&plan, stream(acts)).summary.total;
    assert_eq!((total.numbers.get(Counter::Unfinished), total.messages().count()), (1, 1));
    assert_eq!(total.messages().gap().bounds.max(), Some(240 * MS), "50 ms and 200 of the drain, without the first 10");
}

#[test]
fn a_flood_of_plain_answers_has_no_messages() {
    let hello = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ndata: a\n\n".to_owned();
    let summary: Summary = carry_out(&plan("http://127.0.0.1/"), stream(vec![(MS, hello)])).summary;
    assert!(summary.total.messages().is_empty() && summary.times.message_gap.is_none());
}
