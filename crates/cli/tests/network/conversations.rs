//! Scenarios that are no HTTP: conversations over WebSocket and plain TCP, against servers that are not ours, and against
//! some that break off in the midst.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use brunt_testbed::server::{ServedProtocol, Server, ServerConfig};
use serde_json::Value;

use crate::program::{Directory, run};
use crate::redis::Redis;
use crate::report::{Report, example, report};
use crate::websocket::Python;

/// A script whose text this is, with `brunt` there.
fn play(status: i32, text: &str) -> Report {
    let directory = Directory::new();
    let path = directory.file("s.lua", format!("local brunt = require 'brunt'\n{text}"));
    report(status, ["run", "-t", "1", &path])
}

impl Report {
    /// How many calls of this name were due.
    fn due(&self, name: &str) -> u64 {
        let named = self.at("/names/requests").as_array().unwrap();
        named.iter().find(|one| one["name"] == name).map_or(0, |one| one["due"].as_u64().unwrap())
    }

    /// Every check, with how often it held and did not.
    fn checks(&self) -> BTreeMap<&str, (u64, u64)> {
        let count = |one: &Value, what: &str| one[what].as_u64().unwrap();
        let checks = self.at("/names/checks").as_array().unwrap();
        checks.iter().map(|one| (one["check"].as_str().unwrap(), (count(one, "passes"), count(one, "fails")))).collect()
    }

    #[track_caller]
    fn assert_checks(&self, times: u64, names: &[&str]) {
        let expected = names.iter().map(|name| (*name, (times, 0))).collect();
        assert_eq!(self.checks(), expected, "{:#}\n{:#}", self.at("/outcomes"), self.at("/names/scenarios"));
    }

    /// What ended iterations.
    fn script_errors(&self) -> u64 {
        self.number("/names/scenarios/0/errors")
    }
}

#[test]
#[ignore = "needs redis-server: make test installs it"]
fn redis_is_put_under_load_from_lua_alone() {
    let redis = Redis::start();
    let report = example("redis.lua", &redis.url());
    for (command, calls) in [("set", 200), ("get", 400), ("rpush", 600), ("lrange", 200), ("subscribe", 20)] {
        assert_eq!((report.due(&command.to_uppercase()), redis.calls(command)), (calls, calls), "{command}");
    }
    assert_eq!(report.due("message"), 20, "{:#}", report.at("/names"));
}

#[test]
fn a_conversation_over_websocket() {
    let push = Some(Duration::from_millis(20));
    let ours =
        Server::start(ServerConfig { speaks: ServedProtocol::WebSocket, push, ..ServerConfig::default() }).unwrap();
    let mut python = Python::start();
    for base in [ours.url(), python.url("/push")] {
        let report = example("websocket.lua", &base);
        let hundred = ["switched", "came back", "is mine", "there are news", "the same bytes"];
        report.assert_checks(20, &hundred);
        for call in ["connect", "hello", "ask", "price", "news", "bytes", "close"] {
            assert_eq!(report.due(call), 20, "{call}");
        }
    }
    for _ in 0..20 {
        assert_eq!(python.ended()["code"], 1000);
    }
}

#[test]
fn a_message_that_does_not_come_leaves_the_connection_as_it_is() {
    let server = Server::start(ServerConfig { speaks: ServedProtocol::WebSocket, ..ServerConfig::default() }).unwrap();
    let report = play(
        0,
        &format!(
            "local ws = brunt.ws '{}'
             brunt.scenario('s', function()
               local socket = ws:connect()
               local none = socket:receive {{ timeout = '30ms' }}
               local there = socket:request('hi')
               socket:send('a') socket:send('b')
               local b = socket:receive {{ match = 'b' }}
               local nothing = socket:receive {{ timeout = '30ms' }}
               local last = socket:receive {{ timeout = '30ms', optional = true }}
               brunt.check(nil, {{ ['no more'] = last.error == 'timeout', none = none.error == 'timeout', there = there.body == 'hi', b = b.body == 'b',
                 ['a was kept'] = nothing.body == 'a' }})
             end):inject {{ brunt.iterations_each(2, 2) }}",
            server.url()
        ),
    );
    report.assert_checks(4, &["none", "there", "b", "a was kept", "no more"]);
    assert_eq!((report.connections("made"), report.failures()), (4, BTreeMap::from([("timeout", 4)])));
}

#[test]
fn a_server_that_sends_what_nobody_waits_for_has_not_frozen() {
    let push = Some(Duration::from_millis(15));
    let server =
        Server::start(ServerConfig { speaks: ServedProtocol::WebSocket, push, ..ServerConfig::default() }).unwrap();
    let directory = Directory::new();
    let text = format!(
        "local brunt = require 'brunt'
         local ws = brunt.ws '{}'
         brunt.scenario('s', function()
           local socket = ws:connect()
           for _ = 1, 4 do socket:receive() end
           socket:receive {{ match = 'never', timeout = '700ms' }}
           for _ = 1, 4 do socket:receive() end
         end):inject {{ brunt.iterations_each(1, 1) }}",
        server.url()
    );
    let done = run(["run", "-t", "1", &directory.file("s.lua", text)]);
    assert!(!done.stdout.contains("froze"), "{}", done.stdout);
}

/// A script whose users each hold a socket to an echo.
fn play_on_socket(users: u32, text: &str) -> Report {
    let server = Server::start(ServerConfig { speaks: ServedProtocol::WebSocket, ..ServerConfig::default() }).unwrap();
    let url = server.url();
    play(
        0,
        &format!(
            "local ws = brunt.ws '{url}'
             brunt.scenario('s', function(vu)
               local socket = ws:connect()
               {text}
             end):inject {{ brunt.iterations_each({users}, 1) }}"
        ),
    )
}

#[test]
fn a_socket_is_spoken_on_while_a_task_listens() {
    let report = play_on_socket(
        3,
        "local heard = {}
         socket:on_message(function(message) heard[#heard + 1] = message.body end, { name = 'heard' })
         for number = 1, 5 do socket:send('news ' .. number) end
         brunt.pause(0.2)
         brunt.check(nil, { news = table.concat(heard, ' ') == 'news 1 news 2 news 3 news 4 news 5' })
         socket:every('20ms', function(own) own:send('tick', { name = 'tick' }) end)
         brunt.pause(0.3)
         local answer = socket:request('ask', { match = 'ask' })
         brunt.check(nil, { ask = answer.body == 'ask' })
         socket:close()
         local ticks = #heard - 5
         brunt.check(nil, { ticks = ticks >= 3 })
         brunt.pause(0.1)
         brunt.check(nil, { ['all is over'] = #heard - 5 == ticks })",
    );
    report.assert_checks(3, &["news", "ask", "ticks", "all is over"]);
    assert_eq!((report.due("send"), report.due("close"), report.failures()), (15, 3, BTreeMap::new()));
    assert!(
        report.due("heard") >= 15 + 3 * 3 && report.due("heard") <= 15 + report.due("tick"),
        "{:#}",
        report.at("/names")
    );
}

#[test]
fn several_tasks_wait_on_a_socket_for_messages_of_their_own() {
    let report = play_on_socket(
        4,
        "local a, b = {}, {}
         local first = brunt.spawn(function()
           for number = 1, 3 do a[number] = socket:receive({ match = 'a' }).body end
         end)
         local second = brunt.spawn(function()
           for number = 1, 3 do b[number] = socket:receive({ match = 'b' }).body end
         end)
         for number = 1, 3 do socket:send('b' .. number) socket:send('a' .. number) socket:send('c' .. number) end
         local answer = socket:request('ask', { match = 'ask' })
         first:wait() second:wait()
         brunt.check(nil, { a = table.concat(a) == 'a1a2a3', b = table.concat(b) == 'b1b2b3', ask = answer.body == 'ask' })
         local rest = {}
         for number = 1, 3 do rest[number] = socket:receive().body end
         brunt.check(nil, { ['nobody had c'] = table.concat(rest) == 'c1c2c3' })
         -- A listener that ends the conversation, and one that is left waiting.
         local other = brunt.spawn(function() return socket:receive { optional = true, timeout = '50ms' } end)
         socket:on_message(function(message) if message.body == 'bye' then socket:close() end end, { match = 'bye' })
         socket:send('hello')
         brunt.check(nil, { hello = other:wait().body == 'hello' })
         socket:send('bye')
         brunt.pause(0.1)
         brunt.check(nil, { closed = socket.is_closed })",
    );
    report.assert_checks(4, &["a", "b", "ask", "nobody had c", "hello", "closed"]);
    assert_eq!((report.failures(), report.script_errors()), (BTreeMap::new(), 0));
}

#[test]
fn what_came_before_a_connection_ended_can_still_be_received() {
    let server = Server::start(ServerConfig {
        speaks: ServedProtocol::WebSocket,
        close_after: Some(2),
        ..ServerConfig::default()
    })
    .unwrap();
    let report = play(
        0,
        &format!(
            "local ws = brunt.ws '{}'
             brunt.scenario('s', function()
               local socket = ws:connect()
               socket:send('a') socket:send('b')
               brunt.pause('300ms')
               local a, b = socket:receive(), nil
               brunt.check(nil, {{ a = a.body == 'a' }})
               b = socket:receive()
               brunt.check(nil, {{ b = b.body == 'b' }})
               local over = socket:receive()
               brunt.check(nil, {{ over = over.error == 'closed', why = over.reason:find('1001 going away', 1, true) }})
               brunt.check(nil, {{ late = socket:send('c').error == 'closed' }})
             end):inject {{ brunt.iterations_each(1, 2) }}",
            server.url()
        ),
    );
    report.assert_checks(2, &["a", "b", "over", "why", "late"]);
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn a_handshake_that_is_refused_is_an_answer_with_its_status() {
    let nginx = crate::nginx::Nginx::start("location / { return 403; }");
    let report = play(
        0,
        &format!(
            "local ws = brunt.ws {{ base = '{}', headers = {{ ['X-Own'] = 'x' }}, subprotocols = {{ 'chat' }} }}
             brunt.scenario('s', function()
               local socket = ws:connect('/room?id=1', {{ headers = {{ ['X-Other'] = 'y' }} }})
               brunt.check(socket, {{ refused = socket.status == 403 and not socket.ok }})
               brunt.check(nil, {{ closed = socket:send('x').error == 'closed' }})
             end):inject {{ brunt.iterations_each(1, 2) }}",
            nginx.url("").replace("http", "ws")
        ),
    );
    report.assert_checks(2, &["refused", "closed"]);
    let requested: Vec<_> = nginx.log().iter().map(|line| line.get("request_uri").to_owned()).collect();
    assert_eq!(requested, ["/room?id=1"; 2]);
}

/// A server that does the same on each connection, of which there are so many; its address.
fn serving(connections: usize, serve: fn(TcpStream)) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(connections) {
            std::thread::spawn(move || serve(stream.unwrap()));
        }
    });
    address
}

/// Answers each line with another, by what it says.
fn answers_lines(mut stream: TcpStream) {
    let mut bytes = [0; 1000];
    while let Ok(n @ 1..) = stream.read(&mut bytes) {
        let answer: &[u8] = match &bytes[..n] {
            b"good\n" => b"+fine\n",
            b"bad\n" => b"-wrong\n",
            b"framed\n" => b"\0\0\0\x05hello\x02\0hi",
            b"close\n" => b"all that is left",
            _ => b"",
        };
        if stream.write_all(answer).is_err() || bytes.starts_with(b"close") {
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
    }
}

#[test]
fn pieces_over_tcp() {
    let address = serving(2, answers_lines);
    let report = play(
        0,
        &format!(
            "local tcp = brunt.tcp '{address}'
             brunt.scenario('s', function()
               local socket = tcp:connect()
               socket:send('good\\n')
               brunt.check(nil, {{ ['until'] = socket:receive_until('\\n').body == '+fine' }})
               socket:send('framed\\n')
               brunt.check(nil, {{ framed = socket:receive_framed(4).body == 'hello' }})
               brunt.check(nil, {{ low = socket:receive_framed('2le').body == 'hi' }})
               local packed = brunt.pack('>I2s1', 258, 'ab')
               local number, text, behind = brunt.unpack('>I2s1', packed)
               brunt.check(nil, {{ packed = packed == '\\1\\2\\2ab' and number == 258 and text == 'ab' and behind == 6 }})
               local none = socket:receive_exactly(1, {{ timeout = '30ms' }})
               brunt.check(nil, {{ none = none.error == 'timeout' }})
               brunt.check(nil, {{ line = socket:request('good\\n', '\\n').value == '+fine' }})
               socket:send('close\\n')
               brunt.check(nil, {{ rest = socket:receive_rest().body == 'all that is left' }})
               brunt.check(nil, {{ closed = socket:receive_line().error == 'closed' }})
             end):inject {{ brunt.iterations_each(1, 2) }}"
        ),
    );
    report.assert_checks(2, &["until", "framed", "low", "packed", "none", "line", "rest", "closed"]);
}

#[test]
fn an_answer_that_its_reader_rejects_is_a_mismatch_and_no_more() {
    let address = serving(1, answers_lines);
    let report = play(
        0,
        &format!(
            "local tcp = brunt.tcp '{address}'
             local function reply(reader)
               local line = reader:receive_line()
               if line:sub(1, 1) == '-' then return nil, line end
               return line:sub(2)
             end
             brunt.scenario('s', function()
               local bad, good = tcp:request('bad\\n', reply), tcp:request('good\\n', reply)
               brunt.check(nil, {{ bad = bad.error == 'mismatch' and bad.reason == '-wrong', good = good.value == 'fine' }})
             end):inject {{ brunt.iterations_each(1, 5) }}"
        ),
    );
    report.assert_checks(5, &["bad", "good"]);
    assert_eq!(report.reasons(), BTreeMap::from([("mismatch: -wrong".to_owned(), 5)]));
    assert_eq!(report.connections("made"), 1, "the connection goes on");
}

#[test]
fn a_reader_that_fails_ends_its_iteration_and_its_connection() {
    let address = serving(6, answers_lines);
    let report = play(
        0,
        &format!(
            "local tcp = brunt.tcp '{address}'
             local function broken(reader) reader:receive_exactly(2) error('as told') end
             brunt.scenario('s', function(vu)
               if vu.iteration == 1 then tcp:request('good\\n', '\\n') end
               tcp:request('good\\n', broken)
             end):inject {{ brunt.iterations_each(1, 5) }}"
        ),
    );
    assert_eq!((report.script_errors(), report.outcome("answered"), report.failures()["mismatch"]), (5, 1, 5));
    assert!(report.reasons().keys().all(|reason| reason.contains("s.lua:3: as told")), "{:?}", report.reasons());
    assert_eq!(report.connections("made"), 5, "what is left of an answer is nobody's next one");
}

#[test]
fn an_answer_that_comes_too_late_is_nobody_elses() {
    let address = serving(4, answers_lines);
    let report = play(
        0,
        &format!(
            "local tcp = brunt.tcp '{address}'
             brunt.scenario('s', function()
               local late = tcp:request('silence\\n', '\\n', {{ timeout = '30ms' }})
               local good = tcp:request('good\\n', '\\n')
               brunt.check(nil, {{ late = late.error == 'timeout', good = good.value == '+fine' }})
             end):inject {{ brunt.iterations_each(1, 3) }}"
        ),
    );
    report.assert_checks(3, &["late", "good"]);
    assert_eq!(report.connections("made"), 4);
}

#[test]
fn scripts_that_are_wrong() {
    for (text, expected) in [
        ("brunt.ws { bsae = 'ws://a' }", "s.lua:2: brunt.ws has no option 'bsae'; did you mean 'base'?"),
        ("brunt.ws { base = 'http://a' }", "s.lua:2: brunt.ws: base must begin with ws:// or wss://, not 'http://a'"),
        (
            "brunt.ws { base = 'ws://a', subprotocols = { 'a b' } }",
            "s.lua:2: brunt.ws: the subprotocol 'a b' is not one",
        ),
        ("brunt.ws { base = 'ws://a', headers = { Upgrade = 'x' } }", "header upgrade is the handshake's own"),
        ("brunt.tcp {}", "s.lua:2: brunt.tcp needs an address"),
        ("brunt.tcp { address = '127.0.0.1:1/x' }", "there are no paths over TCP: leave '/x' out"),
        ("brunt.pack('q')", "s.lua:2: brunt.pack: 'q' is not a format"),
        ("brunt.pack('I99999999999999999999', 1)", "a number has from 1 to 8 bytes"),
        ("brunt.pack(nil)", "s.lua:2: brunt.pack: the format must be a string, not nil"),
        ("brunt.unpack('I4')", "s.lua:2: brunt.unpack: what is unpacked must be a string, not nil"),
        ("brunt.unpack('I1', 'ab', -3)", "s.lua:2: brunt.unpack: there is no byte before the first"),
        ("error('byte ' .. brunt.unpack('I1', 'ab', -1))", "s.lua:2: byte 98"),
        ("brunt.unpack('I4', 'a')", "s.lua:2: brunt.unpack: 4 bytes are expected from byte 1 on, and 1 are there"),
    ] {
        let directory = Directory::new();
        let path = directory.file("s.lua", format!("local brunt = require 'brunt'\n{text}"));
        let said = run(["run", &path]).with_status(2).stderr;
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(expected), "{text}: {said}");
    }
}

/// A server that answers once the client has said all, as inetd's services do.
#[test]
fn a_side_is_closed_and_the_other_answers() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut all) = (stream.unwrap(), Vec::new());
            stream.read_to_end(&mut all).unwrap();
            all.reverse();
            stream.write_all(&all).unwrap();
        }
    });
    let report = play(
        0,
        &format!(
            r#"local tcp = brunt.tcp("{address}")
            brunt.scenario("s", function()
              local socket = tcp:connect()
              local long = string.rep("abc", 200000)
              socket:send("one ")
              socket:send(long)
              local finished = socket:finish()
              local answer = socket:receive_rest()
              local after = socket:send("more")
              brunt.check(answer, {{
                ["all of it came back"] = answer.body == (("one " .. long):reverse()),
                ["finished"] = finished.ok,
                ["nothing is sent behind it"] = not after.ok,
              }})
            end):inject {{ brunt.iterations_each(2, 3) }}"#
        ),
    );
    report.assert_checks(6, &["all of it came back", "finished", "nothing is sent behind it"]);
}
