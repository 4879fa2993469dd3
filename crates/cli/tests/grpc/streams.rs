//! Streams of users: messages sent and received one by one, against grpcio and the built-in echo.

use crate::echo::serve;
use crate::peers::{PROTO, Peer};
use crate::program::{Directory, run};
use crate::report::{Report, report};

/// What one user does with `shop`, this often; every check of it must hold.
#[track_caller]
pub fn played(url: &str, body: &str, times: u32) -> Report {
    let dir = Directory::new();
    let script = script(&dir, url, body, times);
    let report = report(0, ["run", "-t", "1", &script]);
    let tracebacks = report.at("/names/scenarios/0/tracebacks").clone();
    assert_eq!(tracebacks.as_array().map_or(0, Vec::len), 0, "{tracebacks:#}");
    for check in report.at("/names/checks").as_array().unwrap() {
        assert!(check["fails"] == 0 && check["passes"] == times, "{check:#}");
    }
    report
}

fn script(dir: &Directory, url: &str, body: &str, times: u32) -> String {
    dir.file("shop.proto", std::fs::read(PROTO).unwrap());
    dir.file(
        "streams.lua",
        format!(
            "local brunt = require \"brunt\"\nlocal shop = brunt.grpc {{ base = \"{url}\", proto = \"shop.proto\" }}\n\
             brunt.scenario(\"s\", function(vu)\n{body}\nend):inject {{ brunt.iterations_each(1, {times}) }}\n"
        ),
    )
}

/// Each kind of stream, in the order of its own: on both servers it is the same.
pub const KINDS: &str = r#"
  local chat, seen = shop:stream("Chat", nil, { name = "chat" }), {}
  for number = 1, 5 do
    local goes_on = chat:send({ count = number })
    local item = chat:receive()
    seen[number] = goes_on and item and item.count
  end
  chat:finish()
  local nothing = chat:receive()
  brunt.check(chat, { chat = table.concat(seen, " ") == "1 2 3 4 5" and nothing == nil and chat.ok and chat.status == 0 })
  brunt.check(nil, { ["says no more"] = not pcall(chat.send, chat, {}) and chat:receive() == nil })

  local begun = shop:stream("Chat", { { count = 7 }, { count = 8 } }, { name = "chat" })
  local first = begun:receive()
  begun:finish()
  local left = {}
  for item in begun do left[#left + 1] = item.count end
  brunt.check(nil, { begun = first.count == 7 and #left == 1 and left[1] == 8 and begun.ok })

  local large = shop:stream("Chat", nil, { name = "chat" })
  large:send({ sku = ("x"):rep(300000) })
  brunt.check(nil, { large = #large:receive().sku == 300000 })
  large:finish()
  brunt.check(nil, { ["large ends"] = large:receive() == nil and large.ok })
"#;

#[test]
fn a_user_and_a_server_take_turns() {
    let peer = Peer::with_compression("gzip");
    let (_server, url) = serve(&[]);
    for url in [&peer.url, &url] {
        let report = played(url, KINDS, 3);
        assert_eq!((report.outcome("answered"), report.outcome("due")), (9, 9));
        let messages = report.at("/outcomes/messages");
        assert_eq!((&messages["count"], &messages["streams"]), (&24.into(), &9.into()), "{messages:#}");
        let chat = report.at("/names/requests").as_array().unwrap().iter().find(|one| one["name"] == "chat").unwrap();
        assert_eq!(chat["messages"]["count"], 24, "{chat:#}");
    }
}

#[test]
fn a_stream_is_spoken_on_while_a_task_listens() {
    let (_server, url) = serve(&[]);
    let report = played(
        &url,
        r#"
  local chat, seen = shop:stream("Chat", nil, { name = "chat" }), {}
  local listener = brunt.spawn(function()
    for item in chat do seen[#seen + 1] = item.count end
    return "over"
  end)
  brunt.pause("20ms")
  local sent = 0
  for number = 1, 5 do
    sent = sent + (chat:send({ count = number }) and 1 or 0)
    brunt.pause("2ms")
  end
  chat:finish()
  brunt.check(nil, { ["goes on"] = sent == 5, over = listener:wait() == "over", all = table.concat(seen, " ") == "1 2 3 4 5" })
  brunt.check(chat, { ok = chat.ok and chat.status == 0 })

  -- One that another task has closed ends for who waits, too.
  local left = shop:stream("Chat", nil, { name = "left" })
  local heard = {}
  local waits = left:on_message(function(item) heard[#heard + 1] = item.count end)
  left:send({ count = 7 })
  brunt.pause("50ms")
  left:close()
  waits:wait("1s")
  brunt.check(nil, { left = waits:has_ended() and heard[1] == 7 and #heard == 1 and left.status == 0 })
"#,
        3,
    );
    assert_eq!((report.outcome("answered"), report.outcome("not_ok")), (6, 0));
}

#[test]
fn clients_and_servers_stream_alone() {
    let peer = Peer::start();
    let report = played(
        &peer.url,
        r#"
  local fill = shop:stream("Fill")
  for number = 1, 10 do fill:send({ sku = "s" .. number % 10 }) end
  local filled = fill:finish():receive()
  brunt.check(nil, { fill = filled.count == 10 and filled.sku == "s1s2s3s4s5s6s7s8s9s0" and fill:receive() == nil and fill.ok })
  local watch, seen = shop:stream("Watch", { count = 4 }), {}
  for item in watch do seen[#seen + 1] = item.big end
  brunt.check(watch, { watch = table.concat(seen, " ") == "0 1 2 3" and watch.ok })
  local refused = shop:stream("Watch", { count = 4 }, { metadata = { ["x-status"] = "5" } })
  brunt.check(nil, { refused = refused:receive() == nil and refused.status == 5 and not refused.ok and refused.message == "no sku: ü, 100%"
    and refused.details[1].value.field_violations[1].field == "sku" })
  brunt.check(nil, { trailers = refused:metadata("Grpc-Status") == "5" and refused:metadata("x-none") == nil })
"#,
        4,
    );
    assert_eq!(report.outcome("answered"), 12);
    assert_eq!(report.outcome("not_ok"), 4);
}

#[test]
fn streams_are_left_and_waits_end() {
    let (_server, url) = serve(&[]);
    let dir = Directory::new();
    let echo = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../testbed/src/grpc/echo.proto")).unwrap();
    dir.file("echo.proto", echo);
    let script = dir.file(
        "left.lua",
        format!(
            r#"
local brunt = require "brunt"
local echo = brunt.grpc {{ base = "{url}", proto = "echo.proto" }}
brunt.scenario("s", function()
  -- The second message takes longer than anybody waits.
  local slow = echo:stream("Repeat", {{ times = 2, gap_ms = 60000 }}, {{ name = "slow" }})
  local first = slow:receive()
  local none, why = slow:receive({{ timeout = "20ms" }})
  local again, still = slow:receive({{ timeout = 0.02 }})
  brunt.check(nil, {{ first = first.number == 1, late = none == nil and why == "timeout", again = again == nil and still == "timeout" }})
  slow:close()
  brunt.check(slow, {{ left = slow.status == 0 and slow.error == nil and slow:receive() == nil }})
  -- One that stays open ends with the iteration.
  local open = echo:stream("Chat", nil, {{ name = "open" }})
  open:send({{ text = "a" }})
  brunt.check(nil, {{ open = open:receive().text == "a" }})
  -- A call of its own beside it.
  brunt.check(nil, {{ beside = echo:call("Say", {{ text = "b" }}).value.text == "b" }})
end):inject {{ brunt.iterations_each(1, 5) }}
"#
        ),
    );
    let report = report(0, ["run", "-t", "1", &script]);
    for check in report.at("/names/checks").as_array().unwrap() {
        assert!(check["fails"] == 0 && check["passes"] == 5, "{check:#}");
    }
    assert_eq!(report.outcome("answered"), 15, "what is left counts as answered");
    assert_eq!(report.at("/outcomes/messages/left"), 10);
    // Streams are reset, and their connections go on.
    assert!(report.connections("made") <= 2, "{report:?}");
}

#[test]
fn servers_that_end_first_are_heard() {
    let peer = Peer::start();
    let report = played(
        &peer.url,
        r#"
  local chat = shop:stream("Chat", nil, { metadata = { ["x-status"] = "9" } })
  chat:send({ sku = "a" })
  brunt.check(nil, { ended = chat:receive() == nil and chat.status == 9 and chat.message:find("no sku") ~= nil })
  brunt.check(nil, { ["says it"] = chat:send({ sku = "b" }) == false })
  chat:finish():close()
  local late = shop:stream("Chat", nil, { metadata = { ["x-sleep"] = "1" }, timeout = "100ms" })
  late:send({ sku = "a" })
  brunt.check(nil, { timeout = late:receive() == nil and late.error == "timeout" })
"#,
        2,
    );
    assert_eq!((report.outcome("answered"), report.failures()["timeout"]), (2, 2));
}

#[test]
fn what_is_wrong_is_said_before_the_load() {
    let dir = Directory::new();
    for (body, expected) in [
        ("shop:stream(\"Add\", {})", "Add: the method does not stream: make it by call"),
        ("shop:stream(\"Chat\"):send({ skuu = 1 })", "Chat: shop.Item has no field 'skuu'"),
        ("shop:stream(\"Watch\", {}):send({})", "Watch: the method takes one message, which the stream began with"),
        ("shop:stream(\"Watch\", { count = \"x\" })", "Watch: count: expected a whole number"),
        ("shop:stream(\"Chat\"):receive({ timeuot = 1 })", "receive has no option 'timeuot'; did you mean 'timeout'?"),
    ] {
        let done = run(["run", &script(&dir, "grpc://127.0.0.1:1", body, 1)]).with_status(2);
        let said = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(expected), "{body}: {said}");
    }
}

#[test]
fn once_shows_messages_and_statuses_in_words() {
    let peer = Peer::start();
    let dir = Directory::new();
    let body = r#"
  local chat = shop:stream("Chat", nil, { name = "chat" })
  for number = 1, 2 do chat:send({ sku = "w" .. number }); chat:receive() end
  chat:finish(); chat:receive()
  shop:call("Add", { sku = "x", count = 1 }, { metadata = { ["x-status"] = "5" } })
  shop:call("Add", { sku = "y", count = 2 })
  shop:call("Watch", { count = 2 })
"#;
    let done = run(["run", "--once", &script(&dir, &peer.url, body, 1)]).with_status(0);
    for expected in [
        r#"{"sku":"w1"}"#,
        r#"{"sku":"w2"}"#,
        "status 5 NOT_FOUND: no sku: ü, 100%",
        r#"google.rpc.BadRequest {"field_violations":[{"field":"sku","description":"unknown"}]}"#,
        "status 0 OK",
        r#"{"sku":"y","count":2}"#,
        r#"{"count":2,"big":1}"#,
    ] {
        assert!(done.stdout.contains(expected), "{expected}: {}", done.stdout);
    }
    assert!(!done.stdout.contains('\u{0}'), "{}", done.stdout);
}
