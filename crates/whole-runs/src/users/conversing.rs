//! Conversations: WebSocket and TCP in scenarios, with answers that come in pieces of any size, end halfway, come late
//! or unasked.

use brunt_judge::remarks::About;
use brunt_record::catalogue::Counter;
use brunt_record::time::Tick;
use std::collections::BTreeMap;

use super::super::websocket::handshake;
use super::*;

/// The reaction of a server to a message or line.
type Talk = fn(said: &str) -> Reaction;

/// A server of either protocol, which remembers the bytes received on each connection.
struct Talker {
    talk: Talk,
    over_websocket: bool,
    waiting: BTreeMap<u64, Vec<u8>>,
}

impl Talker {
    /// The next whole message or line, and its length in bytes on the wire.
    fn next(&self, waiting: &[u8]) -> Option<(String, usize)> {
        if !self.over_websocket {
            let end = waiting.iter().position(|byte| *byte == b'\n')?;
            return Some((String::from_utf8_lossy(&waiting[..end]).into_owned(), end + 1));
        }
        let length = usize::from(waiting.get(1)? & 0x7f);
        let (key, payload) = (waiting.get(2..6)?, waiting.get(6..6 + length)?);
        let plain: Vec<u8> = payload.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key).collect();
        let said = match waiting[0] {
            0x88 => "(close)".into(),
            0x8a => "(pong)".into(),
            _ => String::from_utf8_lossy(&plain).into_owned(),
        };
        Some((said, 6 + length))
    }
}

impl Peer for Talker {
    fn received(&mut self, connection: u64, bytes: &[u8], _now: Tick) -> Reaction {
        let mut waiting = self.waiting.remove(&connection).unwrap_or_default();
        waiting.extend_from_slice(bytes);
        let mut reaction = Vec::new();
        if let Some((taken, answer)) = handshake(&waiting) {
            waiting.drain(..taken);
            reaction.push((MS, Act::Send(answer)));
            reaction.extend((self.talk)("(connected)"));
        }
        while !waiting.starts_with(b"G")
            && let Some((said, taken)) = self.next(&waiting)
        {
            waiting.drain(..taken);
            match said.as_str() {
                "(close)" => reaction.push((MS, Act::Send(b"\x88\x02\x03\xe8".to_vec()))),
                "(pong)" => {}
                said => reaction.extend((self.talk)(said)),
            }
        }
        self.waiting.insert(connection, waiting);
        reaction
    }
}

/// A whole text message.
fn message(text: &str) -> Vec<u8> {
    [&[0x81, text.len() as u8], text.as_bytes()].concat()
}

fn sends(after_ms: u64, bytes: impl Into<Vec<u8>>) -> (u64, Act) {
    (after_ms * MS, Act::Send(bytes.into()))
}

/// Runs a script against a server with this talk; reads and writes take at most `piece` bytes.
fn converse(script: &str, over_websocket: bool, talk: Talk, piece: usize) -> Summary {
    let talker = Talker { talk, over_websocket, waiting: BTreeMap::new() };
    let net = VirtualNet::new(talker).in_pieces_of(piece);
    play_on(&plan_of(script, &[]).unwrap(), &net, &StopHandle::default())
}

/// Runs a script with every size of pieces, which may change nothing but times. Every check must hold, `times` times.
#[track_caller]
fn converse_in_pieces(script: &str, over_websocket: bool, talk: Talk, times: u64) -> Summary {
    let mut first: Option<Summary> = None;
    for piece in [usize::MAX, 1, 2, 3, 7] {
        let summary = converse(script, over_websocket, talk, piece);
        for (name, check) in summary.total.figures.checks.iter() {
            assert_eq!((check.passes, check.fails), (times, 0), "{name} in pieces of {piece}: {:?}", check.example);
        }
        assert!(!summary.total.figures.checks.is_empty(), "{:#?}", summary.total.figures.scenarios);
        let total = &summary.total;
        if let Some(first) = &first {
            let counts = |total: &brunt_record::snapshot::Snapshot| {
                (
                    total.numbers.get(Counter::Due),
                    total.numbers.get(Counter::Unasked),
                    total.numbers.get(Counter::ConnectionsMade),
                    total.failures.total(),
                )
            };
            assert_eq!(counts(total), counts(&first.total), "in pieces of {piece}");
            assert_eq!(total.statuses, first.total.statuses, "in pieces of {piece}");
        } else {
            first = Some(summary);
        }
    }
    first.unwrap()
}

fn due(summary: &Summary, name: &str) -> u64 {
    summary.total.figures.requests.get(name).map_or(0, |calls| calls.numbers.get(Counter::Due))
}

#[test]
fn messages_come_whole_however_they_are_cut() {
    let summary = converse_in_pieces(
        "local ws = brunt.ws 'ws://127.0.0.1/chat'
         brunt.scenario('s', function()
           local socket = ws:connect()
           local hello = socket:request('hello')
           local joined = socket:request('in parts')
           local news = socket:request('news?', { match = 'news:' })
           local left = socket:receive()
           local bye = socket:close()
           brunt.check(nil, { switched = socket.status == 101, echo = hello.body == 'hello' and hello.text,
             joined = joined.body == 'in parts', news = news.body == 'news: rain', left = left.body == 'weather',
             ['said goodbye'] = bye.ok })
         end):inject { brunt.iterations_each(2, 3) }",
        true,
        |said| match said {
            "in parts" => vec![sends(1, *b"\x01\x03in "), sends(2, *b"\x89\x01p\x00\x02pa"), sends(3, *b"\x80\x03rts")],
            "news?" => vec![sends(1, message("weather")), sends(2, message("news: rain"))],
            "(connected)" => Vec::new(),
            other => vec![sends(1, message(other))],
        },
        6,
    );
    assert_eq!((summary.total.numbers.get(Counter::Due), summary.total.failures.total()), (6 * 6, 0));
    assert_eq!(summary.total.numbers.get(Counter::ConnectionsMade), 6);
}

#[test]
fn a_message_that_ends_in_the_midst_fails_as_closed() {
    let summary = converse_in_pieces(
        "local ws = brunt.ws 'ws://127.0.0.1/'
         brunt.scenario('s', function()
           local socket = ws:connect()
           local half = socket:request('half')
           local late = socket:send('more')
           brunt.check(nil, { half = half.error == 'closed', none = half.body == '', late = late.error == 'closed' })
         end):inject { brunt.iterations_each(1, 3) }",
        true,
        |said| match said {
            "half" => vec![sends(1, *b"\x81\x05he"), (2 * MS, Act::Close)],
            _ => Vec::new(),
        },
        3,
    );
    assert_eq!(summary.failures(Failure::Closed), 6);
    assert_eq!(summary.total.numbers.get(Counter::ConnectionsMade), 3, "each iteration has its own");
}

#[test]
fn a_push_can_be_waited_for_and_need_not_come() {
    let summary = converse_in_pieces(
        "local ws = brunt.ws 'ws://127.0.0.1/'
         brunt.scenario('s', function()
           local socket = ws:connect()
           local early = socket:receive { timeout = '10ms', optional = true }
           local push = socket:receive { timeout = '100ms', optional = true, name = 'push' }
           local never = socket:receive { timeout = '50ms', match = 'never', optional = true }
           local kept = socket:receive { timeout = '20ms', name = 'kept' }
           local missing = socket:receive { timeout = '20ms', name = 'missing' }
           local still = socket:request('still there')
           brunt.check(nil, { early = early.error == 'timeout' and not early.ok, push = push.body == 'news',
             never = never.error == 'timeout', kept = kept.body == 'other news', missing = missing.error == 'timeout',
             still = still.body == 'still there' })
         end):inject { brunt.iterations_each(1, 4) }",
        true,
        |said| match said {
            "(connected)" => vec![sends(30, message("news")), sends(70, message("other news"))],
            other => vec![sends(1, message(other))],
        },
        4,
    );
    // A missing answer is counted where it was required, and nowhere else.
    assert_eq!((due(&summary, "receive"), due(&summary, "push"), due(&summary, "missing")), (0, 4, 4));
    assert_eq!(due(&summary, "kept"), 4, "what did not match is for who asks next");
    assert_eq!(summary.failures(Failure::Timeout), 4);
    assert_eq!(summary.total.numbers.get(Counter::Due), 4 * 5);
    assert_eq!(summary.total.numbers.get(Counter::ConnectionsMade), 4);
}

#[test]
fn a_push_that_need_not_come_fails_if_its_connection_does() {
    let summary = converse_in_pieces(
        "local ws = brunt.ws 'ws://127.0.0.1/'
         brunt.scenario('s', function()
           local push = ws:connect():receive { timeout = '1s', optional = true }
           brunt.check(nil, { gone = push.error == 'closed' })
         end):inject { brunt.iterations_each(1, 2) }",
        true,
        |said| if said == "(connected)" { vec![(20 * MS, Act::Close)] } else { Vec::new() },
        2,
    );
    assert_eq!((summary.failures(Failure::Closed), summary.total.numbers.get(Counter::Due)), (2, 4));
}

#[test]
fn what_need_not_come_is_nothing_at_the_end_of_the_run_either() {
    let script = "local ws = brunt.ws 'ws://127.0.0.1/'
         brunt.scenario('s', function()
           ws:connect():receive { timeout = '1h', optional = true }
         end):inject { brunt.users(1, '1s') }";
    let summary = converse(script, true, |_| Vec::new(), usize::MAX);
    assert_eq!(
        (summary.total.numbers.get(Counter::Due), summary.total.numbers.get(Counter::Unfinished)),
        (1, 0),
        "the connection alone"
    );
}

#[test]
fn lines_and_frames_come_whole_however_they_are_cut() {
    let summary = converse_in_pieces(
        "local tcp = brunt.tcp '127.0.0.1:1'
         local function reply(reader)
           local count = tonumber(reader:receive_line())
           return reader:receive_exactly(count)
         end
         brunt.scenario('s', function()
           local counted = tcp:request('counted\\n', reply)
           local socket = tcp:connect()
           local line = socket:request('line\\n', '\\n')
           socket:send('framed\\n')
           local framed, little = socket:receive_framed(2), socket:receive_framed('4le')
           socket:send('rest\\n')
           local rest = socket:receive_rest()
           local over = socket:receive_line()
           brunt.check(nil, { counted = counted.value == 'abc\\r\\n', line = line.value == '+fine', framed = framed.body == 'hi',
             little = little.body == 'you', rest = rest.body == 'all that is left', over = over.error == 'closed' })
           socket:close()
         end):inject { brunt.iterations_each(1, 3) }",
        false,
        |said| match said {
            "counted" => vec![sends(1, *b"5\r"), sends(2, *b"\nab"), sends(3, *b"c\r\n")],
            "line" => vec![sends(1, *b"+fi"), sends(2, *b"ne\n")],
            "framed" => vec![sends(1, *b"\0\x02hi\x03\0"), sends(2, *b"\0\0you")],
            "rest" => vec![sends(1, *b"all that "), sends(2, *b"is left"), (3 * MS, Act::Close)],
            _ => Vec::new(),
        },
        3,
    );
    assert_eq!(summary.failures(Failure::Closed), 3);
    assert_eq!(summary.total.failures.total(), 3);
}

#[test]
fn an_answer_that_is_late_or_cut_short_fails_and_is_nobody_elses() {
    let summary = converse_in_pieces(
        "local tcp = brunt.tcp '127.0.0.1:1'
         brunt.scenario('s', function()
           local late = tcp:request('late\\n', '\\n', { timeout = '20ms' })
           local good = tcp:request('good\\n', '\\n')
           local half = tcp:request('half\\n', 10)
           local socket = tcp:connect()
           socket:send('late\\n')
           local soon = socket:receive_line { timeout = '20ms' }
           local maybe = socket:receive_line { timeout = '20ms', optional = true }
           local then_ = socket:receive_line()
           brunt.check(nil, { late = late.error == 'timeout', good = good.value == '+good', half = half.error == 'closed',
             soon = soon.error == 'timeout', maybe = maybe.error == 'timeout', ['then'] = then_.value == '+late' })
           socket:close()
         end):inject { brunt.iterations_each(1, 3) }",
        false,
        |said| match said {
            "late" => vec![sends(50, *b"+late\n")],
            "good" => vec![sends(1, *b"+good\n")],
            "half" => vec![sends(1, *b"half"), (2 * MS, Act::Close)],
            _ => Vec::new(),
        },
        3,
    );
    assert_eq!((summary.failures(Failure::Timeout), summary.failures(Failure::Closed)), (6, 3));
    // connect, send, and two answers that were required and came; the third is optional and not counted.
    assert_eq!((due(&summary, "receive"), due(&summary, "request")), (6, 9));
}

#[test]
fn a_match_that_raises_ends_its_connection_and_nobody_elses() {
    // Three messages come in one read; the function that judges them fails at the first. Other users talk meanwhile.
    let summary = converse(
        "local ws = brunt.ws 'ws://127.0.0.1/'
         brunt.scenario('raises', function()
           local socket = ws:connect()
           socket:send('three')
           socket:receive { match = function() error('why does not matter') end }
         end):inject { brunt.iterations_each(3, 20) }
         brunt.scenario('talks', function()
           local socket = ws:connect()
           for turn = 1, 5 do
             local answer = socket:request('one', { timeout = '50ms' })
             brunt.check(nil, { its_own = answer.body == 'a' })
           end
           socket:close()
         end):inject { brunt.iterations_each(5, 20) }",
        true,
        |said| match said {
            "three" => vec![sends(1, [message("x"), message("y"), message("z")].concat())],
            "one" => vec![sends(1, message("a"))],
            _ => Vec::new(),
        },
        usize::MAX,
    );
    let check = summary.total.figures.checks.get("its_own").unwrap();
    assert_eq!((check.passes, check.fails), (500, 0));
    assert_eq!(summary.failures(Failure::Mismatch), 60, "{:?}", summary.total.failures);
    assert_eq!(summary.total.failures.total(), 60, "{:?}", summary.total.failures);
    assert!(summary.run.measured_ns < SECOND_NS, "nothing is waited for: {}", summary.run.measured_ns);
}

/// A user who goes on after each failure: what its first failure led to is no further word on the target.
const GOES_ON: &str = "local ws = brunt.ws { base = 'ws://127.0.0.1/' }
    brunt.scenario('s', function()
      local socket = ws:connect()
      socket:request('hello', { timeout = 0.3 })
      socket:request('again', { timeout = 0.3 })
      socket:close()
    end):inject { brunt.users(2, 3) }";

/// How many calls failed in this way by themselves, and how many in all.
fn failed(summary: &Summary, failure: Failure) -> (u64, u64) {
    (summary.total.failures.own(failure), summary.total.failures.count(failure))
}

#[test]
fn a_server_that_says_goodbye_was_there_and_later_calls_say_nothing_of_it() {
    let goodbye = |said: &str| if said == "hello" { vec![sends(1, b"\x88\x04\x03\xf5no".to_vec())] } else { vec![] };
    let summary = converse(GOES_ON, true, goodbye, usize::MAX);
    let sockets = summary.total.statuses.total();
    assert!(sockets > 10, "{:#?}", summary.total.failures);
    assert_eq!(failed(&summary, Failure::Closed), (sockets, 3 * sockets), "{:?}", summary.total.failures);
    assert_eq!(summary.standing().availability(), Some(1.0));
    assert_eq!(summary.remarks.iter().map(|remark| remark.about).collect::<Vec<_>>(), []);
}

#[test]
fn a_server_that_refuses_sockets_was_there() {
    let summary = play(GOES_ON, hello).summary;
    let refused = summary.total.statuses.total();
    assert!(refused > 10, "{:#?}", summary.total.failures);
    assert_eq!(failed(&summary, Failure::Closed), (0, 3 * refused), "no attempt of its own");
    assert_eq!(summary.standing().availability(), Some(1.0));
}

#[test]
fn bytes_that_break_the_protocol_are_the_reason_of_what_fails_after_them() {
    let stray = |said: &str| if said == "hello" { vec![sends(0, b"\xb1\x00".to_vec())] } else { vec![] };
    let summary = converse(GOES_ON, true, stray, usize::MAX);
    let reasons = summary.total.failures.reasons(Failure::Protocol);
    assert!(reasons.first().is_some_and(|(reason, _)| reason.contains("RSV")), "{:?}", summary.total.failures);
    assert_eq!(failed(&summary, Failure::Closed).0, 0, "{:?}", summary.total.failures);
}

#[test]
fn requests_in_vain_are_no_freeze() {
    let summary = converse(GOES_ON, true, |_| Vec::new(), usize::MAX);
    assert!(failed(&summary, Failure::Timeout).0 > 10, "{:?}", summary.total.failures);
    let found: Vec<_> = summary.remarks.iter().map(|remark| remark.about).collect();
    assert!(!found.contains(&About::Freeze), "{found:?}");
}
