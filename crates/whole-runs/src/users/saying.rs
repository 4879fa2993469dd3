//! Users who send messages on streams of gRPC one by one, against an echo in made-up time.

use std::collections::BTreeMap;

use brunt_http2::frame::{
    ErrorCode, HEAD_BYTES, Head, PREFACE, flag, kind, write_reset, write_settings, write_window_update,
};
use brunt_judge::summary::Summary;
use brunt_record::catalogue::Counter;
use brunt_record::outcome::Failure;

use super::super::{MS, StopHandle};
use super::{plan_of, play_against};
use brunt_engine::simulated::{Act, Peer, Reaction};
use brunt_record::time::Tick;

const ECHO: &str = "syntax = \"proto3\"; package t; message Text { string text = 1; }
    service Echo { rpc Chat(stream Text) returns (stream Text); }";
/// The delay of an echoed message.
const LATER: u64 = 10 * MS;

/// Returns each message as it comes, and ends the stream when its client does.
#[derive(Default)]
struct Echo {
    partial: BTreeMap<u64, Vec<u8>>,
    /// The number of streams begun on all connections, and the number of first streams that are refused after their
    /// first message.
    begun: usize,
    refuses: usize,
    /// Whether a stream is refused after its second message, though the first was returned.
    refuses_late: bool,
    /// Whether the server never extends its windows.
    is_deaf: bool,
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Head { length: payload.len(), kind, flags, stream }.write(&mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}

/// `:status: 200` and `content-type: application/grpc`.
fn head(stream: u32) -> Vec<u8> {
    frame(kind::HEADERS, flag::END_HEADERS, stream, b"\x88\x0f\x10\x10application/grpc")
}

/// `grpc-status: 0`.
fn status(stream: u32) -> Vec<u8> {
    frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, b"\0\x0bgrpc-status\x010")
}

impl Echo {
    fn answered(&mut self, head_of: &Head, payload: &[u8]) -> Reaction {
        let (stream, mut reaction) = (head_of.stream, Reaction::new());
        match head_of.kind {
            kind::HEADERS => {
                self.begun += 1;
                if self.begun > self.refuses {
                    reaction.push((MS, Act::Send(head(stream))));
                }
            }
            kind::DATA if self.begun <= self.refuses => {
                let mut refused = Vec::new();
                write_reset(stream, ErrorCode::REFUSED_STREAM, &mut refused);
                reaction.push((LATER, Act::Send(refused)));
            }
            kind::DATA if self.refuses_late && payload.ends_with(b"again") => {
                let mut refused = Vec::new();
                write_reset(stream, ErrorCode::REFUSED_STREAM, &mut refused);
                reaction.push((LATER, Act::Send(refused)));
            }
            kind::DATA if !self.is_deaf && !payload.is_empty() => {
                let mut windows = Vec::new();
                for stream in [0, stream] {
                    write_window_update(stream, payload.len() as u32, &mut windows);
                }
                reaction.push((MS, Act::Send(windows)));
                reaction.push((LATER, Act::Send(frame(kind::DATA, 0, stream, payload))));
            }
            _ => {}
        }
        if head_of.kind == kind::DATA && head_of.has(flag::END_STREAM) && self.begun > self.refuses {
            reaction.push((LATER, Act::Send(status(stream))));
        }
        reaction
    }
}

impl Peer for Echo {
    fn received(&mut self, connection: u64, bytes: &[u8], _now: Tick) -> Reaction {
        let mut reaction = Reaction::new();
        let mut buffer = self.partial.remove(&connection).unwrap_or_default();
        let begins = buffer.len() < PREFACE.len();
        buffer.extend_from_slice(bytes);
        if begins && buffer.len() >= PREFACE.len() {
            let mut settings = Vec::new();
            write_settings(&[], &mut settings);
            reaction.push((MS, Act::Send(settings)));
        }
        // The preface stays in the buffer, and shows that it has come.
        while let Some(head) = buffer.get(PREFACE.len()..).and_then(Head::read) {
            let (from, end) = (PREFACE.len() + HEAD_BYTES, PREFACE.len() + HEAD_BYTES + head.length);
            if buffer.len() < end {
                break;
            }
            let payload = buffer[from..end].to_vec();
            buffer.drain(PREFACE.len()..end);
            reaction.extend(self.answered(&head, &payload));
        }
        self.partial.insert(connection, buffer);
        reaction
    }
}

/// One user who runs this body `times` times; every check holds.
fn run(times: u32, body: &str, peer: Echo) -> Summary {
    let script = format!(
        "local echo = brunt.grpc {{ base = 'grpc://127.0.0.1:80', proto = 'echo.proto', timeout = 5 }};
         local function talk(options) return echo:stream('Chat', nil, options) end
         brunt.scenario('s', function(vu) {body} end):inject {{ brunt.iterations_each(1, {times}) }}"
    );
    let summary = play_against(&plan_of(&script, &[("echo.proto", ECHO)]).unwrap(), peer, &StopHandle::default());
    let errors: Vec<_> = summary.breakdown.scenarios.iter().flat_map(|scenario| &scenario.tracebacks).collect();
    assert!(errors.is_empty(), "{errors:?}");
    for check in &summary.breakdown.checks {
        assert_eq!(check.fails, 0, "{}: {:?}", check.name, check.example);
    }
    summary
}

#[test]
fn user_and_server_take_turns() {
    let body = "local chat, seen = talk(), {}
        for n = 1, 3 do chat:send({ text = 'w' .. n }); seen[n] = chat:receive().text; brunt.pause(0.1) end
        local over = chat:finish():receive()
        brunt.check(chat, { seen = table.concat(seen, ' ') == 'w1 w2 w3' and over == nil and chat.ok })";
    let summary = run(2, body, Echo::default());
    let (total, messages) = (&summary.total, summary.total.messages());
    assert_eq!((total.statuses.sorted(), total.numbers.get(Counter::ConnectionsMade)), (vec![(0, 2)], 1));
    assert_eq!((messages.count(), messages.streams(), messages.left()), (6, 2, 0));
    assert_eq!(messages.first().known.min(), Some(LATER));
    // The user's time between its messages is a part of the gap: the next message comes when it has sent more.
    assert_eq!(messages.gap().known.max(), Some(100 * MS + LATER));
}

#[test]
fn a_wait_ends_and_the_stream_goes_on() {
    let body = "local chat = talk()
        chat:send({ text = 'a' })
        local none, why = chat:receive({ timeout = 0.005 })
        local late = chat:receive({ timeout = 1 })
        brunt.check(nil, { late = none == nil and why == 'timeout' and late.text == 'a' })
        -- A wait that was over in time ends no other.
        chat:send({ text = 'b' })
        brunt.check(nil, { b = chat:receive({ timeout = 0.02 }).text == 'b' })
        brunt.pause(0.05)
        chat:send({ text = 'c' })
        brunt.check(nil, { c = chat:receive().text == 'c' and chat:finish():receive() == nil })";
    let summary = run(3, body, Echo::default());
    assert_eq!((summary.total.statuses.sorted(), summary.total.messages().count()), (vec![(0, 3)], 9));
}

/// A refused stream is begun again, with everything that was sent on it.
#[test]
fn nothing_that_was_said_is_lost_by_a_refusal() {
    let body = "local chat, seen = talk(), {}
        for n = 1, 3 do chat:send({ text = 'w' .. n }); brunt.pause(0.002) end
        chat:finish()
        for text in chat do seen[#seen + 1] = text.text end
        brunt.check(chat, { all = table.concat(seen, ' ') == 'w1 w2 w3' and chat.ok })";
    let summary = run(1, body, Echo { refuses: 2, ..Echo::default() });
    assert_eq!((summary.total.statuses.sorted(), summary.total.messages().count()), (vec![(0, 1)], 3));
}

/// What was said after an answer is not kept, so that the stream cannot be begun again: it was sent, and has failed.
#[test]
fn a_stream_that_cannot_be_begun_again_has_failed() {
    let body = "local chat = talk()
        chat:send({ text = 'once' })
        brunt.check(nil, { once = chat:receive().text == 'once' })
        chat:send({ text = 'again' })
        brunt.check(chat, { failed = chat:receive() == nil and chat.error == 'closed' })";
    let summary = run(2, body, Echo { refuses_late: true, ..Echo::default() });
    let total = &summary.total;
    assert_eq!((summary.failures(Failure::Closed), total.numbers.get(Counter::Unsent)), (2, 0), "{total:#?}");
}

#[test]
fn a_server_that_does_not_read_is_bounded() {
    let body = "local chat, sent = talk(), 0
        local large = { text = ('x'):rep(100000) }
        while sent < 200 and chat:send(large) do sent = sent + 1; brunt.pause(0.001) end
        brunt.check(nil, { bounded = sent > 40 and sent < 60, over = chat:receive() == nil and chat.error == 'oversize' })";
    let summary = run(2, body, Echo { is_deaf: true, ..Echo::default() });
    assert_eq!(summary.failures(Failure::Oversize), 2);
}

#[test]
fn streams_end_with_their_iteration() {
    let body = "local heard, silent = talk(), talk()
        heard:send({ text = 'a' })
        brunt.check(nil, { a = heard:receive().text == 'a' })";
    let summary = run(4, body, Echo::default());
    let total = &summary.total;
    assert_eq!((total.statuses.sorted(), summary.failures(Failure::Closed)), (vec![(0, 4)], 4));
    assert_eq!((total.messages().left(), total.numbers.get(Counter::ConnectionsMade)), (4, 2));
}
