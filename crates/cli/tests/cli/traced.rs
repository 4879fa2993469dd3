//! Calls with a `traceparent` (`--trace`): what the target gets, and where the ids stand.

use std::time::Duration;

use brunt_testbed::server::{Delay, ServerConfig};
use serde_json::Value;

use crate::program::{Directory, run};
use crate::receiver::Receiver;
use crate::runs::target;

/// The values of `traceparent` that came, in the order of the requests; none for those without.
fn came(receiver: &Receiver) -> Vec<Option<String>> {
    let of = |head: &str| {
        head.lines().find_map(|line| Some(line.to_ascii_lowercase().strip_prefix("traceparent: ")?.to_owned()))
    };
    receiver.requests().iter().map(|request| of(&request.head)).collect()
}

fn is_valid(value: &str) -> bool {
    let parts: Vec<_> = value.split('-').collect();
    let is_hex = |text: &str| text.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c));
    let [version, trace, span, flags] = parts.as_slice() else { return false };
    let ids = is_hex(trace) && is_hex(span) && trace.len() == 32 && span.len() == 16;
    (*version, *flags) == ("00", "01") && ids && !trace.chars().all(|c| c == '0') && !span.chars().all(|c| c == '0')
}

#[test]
fn a_share_of_calls_has_a_traceparent_and_failed_ones_name_it() {
    let body = "no";
    let answer = format!("HTTP/1.1 503 No\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let receiver = Receiver::with(move |_, _| Some(answer.clone()));
    let dir = Directory::new();
    let page = dir.path("run.html");
    let args = ["-n", "20", "-c", "1", "--trace", "100%", "--format", "json", "-o", &page, &receiver.url];
    let result: Value = serde_json::from_str(&run(args).stdout).unwrap();
    let all = came(&receiver);
    assert_eq!(all.len(), 20);
    assert!(all.iter().flatten().filter(|value| is_valid(value)).count() == 20, "{all:?}");
    let ids: std::collections::BTreeSet<_> = all.iter().flatten().map(|value| value[3..35].to_owned()).collect();
    assert_eq!(ids.len(), 20, "each call has one of its own");
    for example in result["outcomes"]["examples"]["503"].as_array().unwrap() {
        assert!(ids.contains(example["trace_id"].as_str().unwrap()), "{example:#}");
    }
    let id = result["outcomes"]["examples"]["503"][0]["trace_id"].as_str().unwrap();
    assert!(std::fs::read_to_string(&page).unwrap().contains(&format!("trace {id}")));
    let text = run(["-n", "3", "-c", "1", "--trace", "1", &receiver.url]).stdout;
    assert!(text.contains(", trace "), "{text}");
}

#[test]
fn without_the_flag_there_is_none_and_a_users_own_goes_before() {
    let ok = || Some("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned());
    let receiver = Receiver::with(move |_, _| ok());
    run(["-n", "5", "-c", "1", &receiver.url]).with_status(0);
    assert!(came(&receiver).iter().all(Option::is_none));
    run(["-n", "5", "-c", "1", "--trace", "100%", "-H", "traceparent: 00-mine", &receiver.url]).with_status(0);
    assert!(came(&receiver)[5..].iter().all(|value| value.as_deref() == Some("00-mine")), "{:?}", came(&receiver));
    for wrong in ["0", "200%", "all"] {
        let refused = run(["-n", "5", "--trace", wrong, &receiver.url]).with_status(2);
        assert!(refused.stderr.contains("expected a share of calls"), "{}", refused.stderr);
    }
    let once = run(["--once", "--trace", "1", &receiver.url]).with_status(0);
    assert!(once.stdout.contains("traceparent: 00-"), "the request is shown as it is sent: {}", once.stdout);
}

#[test]
fn http2_has_it_too() {
    let (server, url) = target(ServerConfig::default());
    run(["-n", "50", "-c", "2", "--http", "2", "--trace", "50%", &url]).with_status(0);
    assert_eq!(server.requests(), 50);
    let once = run(["--once", "--http", "2", "--trace", "1", &url]).with_status(0);
    assert!(once.stdout.contains("traceparent"), "{}", once.stdout);
}

/// The slowest calls with a trace lead from the report, and from a receiver's histogram, to the target's traces.
#[test]
fn the_slowest_calls_are_found_by_their_traces() {
    let delay = Delay::Exponential { mean: Duration::from_millis(3) };
    let (_server, url) = target(ServerConfig { delay, ..ServerConfig::default() });
    let receiver = Receiver::start();
    let args = ["-r", "300", "-d", "2s", "-t", "2", "--format", "json", "--otlp", &receiver.url];
    let traced = run([&args[..], &["--trace", "100%", &url]].concat()).with_status(0);
    let result: Value = serde_json::from_str(&traced.stdout).unwrap();
    let slowest = result["outcomes"]["slowest"].as_array().unwrap();
    let took: Vec<_> = slowest.iter().map(|call| call["took_ns"].as_u64().unwrap()).collect();
    assert!(took.len() == 5 && took.is_sorted_by(|a, b| a >= b), "{took:?}");
    assert!(slowest.iter().all(|call| call["status"] == 200 && call["trace_id"].as_str().unwrap().len() == 32));
    // All calls are traced, so these are the slowest of all.
    let max = result["times"]["response"]["max_ns"]["value"].as_u64().unwrap();
    assert!(took[0].abs_diff(max) * 100 < max, "{took:?} of {max}");
    let seen: std::collections::BTreeSet<_> = receiver.metrics().traces("http.client.request.duration");
    let ids = slowest.iter().map(|call| call["trace_id"].as_str().unwrap().to_owned());
    assert!(ids.clone().all(|id| seen.contains(&id)), "{seen:?}");
    // Five of each second and thread, and no more.
    assert!(seen.len() <= 3 * 5, "{}", seen.len());
    let plain = run([&args[..8], &[&url]].concat()).with_status(0);
    let plain: Value = serde_json::from_str(&plain.stdout).unwrap();
    assert_eq!(plain["outcomes"]["slowest"], Value::Null);
    let text = run(["-r", "100", "-d", "1s", "--trace", "100%", &url]).with_status(0).stdout;
    assert_eq!(text.matches(", trace ").count(), 3, "{text}");
    assert!(text.contains("  slowest "), "{text}");
}

/// The ids of the traces that came, each as often as it came; empty for requests without.
fn ids(receiver: &Receiver) -> Vec<String> {
    let id = |value: Option<String>| value.and_then(|value| Some(value.split('-').nth(1)?.to_owned()));
    came(receiver).into_iter().map(|value| id(value).unwrap_or_default()).collect()
}

/// Calls of virtual users: made anew, prepared, led on by a redirect, and with a `traceparent` of their own.
#[test]
fn calls_of_scenarios_are_traced_and_named_in_the_log_and_the_report() {
    let receiver = Receiver::with(|_, request| {
        let (status, field) = match request.head.split(' ').nth(1).unwrap_or_default() {
            "/old" => ("302 Found", "Location: /new\r\n"),
            "/broken" => ("503 No", ""),
            _ => ("200 OK", ""),
        };
        Some(format!("HTTP/1.1 {status}\r\n{field}Content-Length: 0\r\n\r\n"))
    });
    let dir = Directory::new();
    let (lua, log, page) = (dir.path("traced.lua"), dir.path("traced.log"), dir.path("traced.html"));
    let script = format!(
        "local brunt = require 'brunt'
         local http = brunt.http {{ base = '{}' }}
         brunt.scenario('s', function()
           http:get('/plain')
           http:post('/made', {{ body = tostring(brunt.pause('1ms') or 1) }})
           http:get('/own', {{ headers = {{ traceparent = '00-mine' }} }})
           http:get('/old')
           http:get('/broken', {{ name = 'broken' }})
         end):inject {{ brunt.iterations_each(1, 3) }}",
        receiver.url
    );
    std::fs::write(&lua, script).unwrap();
    let flags = ["--trace", "100%", "--log", &log, "--debug", "100%", "--max-error-rate", "100%"];
    let result = run([&["run", &lua, "-t", "1", "--format", "json", "-o", &page][..], &flags].concat()).with_status(0);
    let result: Value = serde_json::from_str(&result.stdout).unwrap();
    let requests = receiver.requests();
    assert_eq!(requests.len(), 3 * 6);
    let mut seen = std::collections::BTreeSet::new();
    for ((request, value), next) in requests.iter().zip(came(&receiver)).zip(ids_after(&receiver)) {
        let (value, path) = (value.unwrap(), request.head.split(' ').nth(1).unwrap().to_owned());
        match path.as_str() {
            "/own" => assert_eq!(value, "00-mine"),
            // What an answer leads to is the same trace.
            "/new" => assert!(!seen.insert(value), "{path}"),
            "/old" => assert!(is_valid(&value) && next == value[3..35] && seen.insert(value)),
            _ => assert!(is_valid(&value) && seen.insert(value), "{path}"),
        }
    }
    let broken = requests.iter().zip(ids(&receiver)).filter(|(request, _)| request.head.contains("/broken"));
    let broken: Vec<String> = broken.map(|(_, id)| id).collect();
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(broken.iter().all(|id| log.contains(&format!("traceparent: 00-{id}-"))), "{log}");
    for example in result["outcomes"]["examples"]["503"].as_array().unwrap() {
        assert!(broken.iter().any(|id| example["trace_id"] == id.as_str()), "{example:#}");
    }
    let slowest = result["outcomes"]["slowest"].as_array().unwrap();
    assert_eq!(slowest.len(), 5);
    let page = std::fs::read_to_string(&page).unwrap();
    let sent = ids(&receiver);
    for call in slowest {
        let id = call["trace_id"].as_str().unwrap();
        assert!(sent.iter().any(|sent| sent == id) && page.contains(id), "{call:#}");
    }
    assert!(page.contains("the slowest traced calls"));
}

/// The id of the request after each.
fn ids_after(receiver: &Receiver) -> Vec<String> {
    let mut all = ids(receiver);
    all.rotate_left(1);
    all
}

#[test]
fn a_share_of_a_scenarios_calls_is_traced_and_none_without_the_flag() {
    let receiver = Receiver::with(|_, _| Some("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned()));
    let dir = Directory::new();
    let lua = dir.path("share.lua");
    let script = format!(
        "local brunt = require 'brunt'
         local http = brunt.http {{ base = '{}' }}
         brunt.scenario('s', function() http:get('/') end):inject {{ brunt.iterations_each(1, 400) }}",
        receiver.url
    );
    std::fs::write(&lua, script).unwrap();
    run(["run", &lua, "-t", "1"]).with_status(0);
    assert!(came(&receiver).iter().all(Option::is_none));
    run(["run", &lua, "-t", "1", "--trace", "25%"]).with_status(0);
    let traced = came(&receiver).iter().flatten().count();
    // Five standard deviations of a binomial distribution are 43.
    assert!((57..143).contains(&traced), "{traced}");
    assert_eq!(receiver.requests().len(), 800);
    let refused = run(["run", &lua, "--trace", "0"]).with_status(2);
    assert!(refused.stderr.contains("expected a share of calls"), "{}", refused.stderr);
    let once = run(["run", &lua, "--once", "--trace", "100%"]).with_status(0);
    assert!(once.stdout.contains("traceparent: 00-"), "{}", once.stdout);
}

#[test]
fn calls_of_a_replay_are_traced_unless_the_log_has_a_trace() {
    let receiver = Receiver::with(|number, _| {
        let status = if number == 0 { "503 No" } else { "200 OK" };
        Some(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n"))
    });
    let dir = Directory::new();
    let log = dir.path("access.log");
    let line =
        |second: u32| format!("10.0.0.1 - - [10/Oct/2025:13:55:{second:02} +0000] \"GET /{second} HTTP/1.1\" 200 2\n");
    std::fs::write(&log, (0..4).map(line).collect::<String>()).unwrap();
    let result = run([
        "replay",
        &log,
        &receiver.url,
        "--speed",
        "100x",
        "--trace",
        "1",
        "--max-error-rate",
        "1",
        "--format",
        "json",
    ]);
    let result: Value = serde_json::from_str(&result.with_status(0).stdout).unwrap();
    let sent = ids(&receiver);
    assert!(
        sent.len() == 4 && came(&receiver).iter().flatten().filter(|value| is_valid(value)).count() == 4,
        "{sent:?}"
    );
    assert_eq!(result["outcomes"]["examples"]["503"][0]["trace_id"], sent[0].as_str());
    let slowest = result["outcomes"]["slowest"].as_array().unwrap();
    assert!(
        slowest.len() == 3 && slowest.iter().all(|call| sent.contains(&call["trace_id"].as_str().unwrap().to_owned()))
    );
}

/// A script of one scenario that one user goes through, with these clients at its top.
fn script(dir: &Directory, clients: &str, does: &str) -> String {
    let text = format!(
        "local brunt = require 'brunt'
         {clients}
         brunt.scenario('s', function() {does} end):inject {{ brunt.iterations_each(1, 10) }}"
    );
    dir.file("traced.lua", text)
}

/// Of a conversation the upgrade request has the field, and the report names the traces of those that were refused.
#[test]
fn upgrade_requests_of_web_sockets_are_traced() {
    let receiver = Receiver::with(|number, request| {
        let key = request.head.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "))?;
        let accept = brunt_websocket::accept(key);
        Some(match number % 2 {
            0 => "HTTP/1.1 503 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned(),
            _ => format!(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
            ),
        })
    });
    let dir = Directory::new();
    let clients = format!("local ws = brunt.ws {{ base = '{}' }}", receiver.url.replace("http", "ws"));
    let lua = script(&dir, &clients, "ws:connect()");
    let flags = ["--max-error-rate", "100%", "--format", "json"];
    run([&["run", &lua, "-t", "1"][..], &flags].concat()).with_status(0);
    assert!(came(&receiver).iter().all(Option::is_none) && receiver.requests().len() == 10);
    let result = run([&["run", &lua, "-t", "1", "--trace", "100%"][..], &flags].concat()).with_status(0);
    let result: Value = serde_json::from_str(&result.stdout).unwrap();
    let sent = ids(&receiver).split_off(10);
    let different: std::collections::BTreeSet<_> = sent.iter().collect();
    assert_eq!((sent.len(), different.len()), (10, 10));
    assert!(came(&receiver)[10..].iter().flatten().all(|value| is_valid(value)), "{:?}", came(&receiver));
    let examples = result["outcomes"]["examples"].as_object().unwrap();
    let traced = examples.values().flat_map(|kind| kind.as_array().unwrap()).map(|call| call["trace_id"].as_str());
    assert!(
        traced.clone().count() > 0 && traced.flatten().all(|id| sent.iter().any(|sent| sent == id)),
        "{examples:#?}"
    );
    // One that the script sets goes before.
    let lua = script(&dir, &clients, "ws:connect('/', { headers = { TraceParent = '00-mine' } })");
    run([&["run", &lua, "-t", "1", "--trace", "100%"][..], &flags].concat()).with_status(0);
    assert!(came(&receiver)[20..].iter().all(|value| value.as_deref() == Some("00-mine")), "{:?}", came(&receiver));
}

/// What has no header fields is said before the load: with other clients in a note, alone as an error.
#[test]
fn clients_without_header_fields_are_named_before_the_load() {
    let receiver = Receiver::start();
    let dir = Directory::new();
    let address = receiver.url.replace("http", "tcp");
    let tcp = format!("local line = brunt.tcp {{ address = '{address}' }}");
    let idl = dir.file("ping.thrift", "service Ping { void ping() }");
    let thrift = format!(
        "local rpc = brunt.thrift {{ address = '{}', idl = '{}', service = 'Ping' }}",
        address.replace("tcp", "thrift"),
        std::path::Path::new(&idl).file_name().unwrap().to_str().unwrap()
    );
    let http = format!("local http = brunt.http {{ base = '{}' }}", receiver.url);
    let lua = script(&dir, &format!("{tcp}\n{thrift}"), "rpc:ping()");
    let refused = run(["run", &lua, "-t", "1", "--trace", "1"]).with_status(2);
    let said = refused.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("--trace: calls of brunt.tcp, brunt.thrift have no header fields"), "{said}");
    assert!(said.contains("leave --trace out") && receiver.requests().is_empty(), "{said}");
    let lua = script(&dir, &format!("{http}\n{tcp}"), "http:get('/')");
    let noted = run(["run", &lua, "-t", "1", "--trace", "1"]).with_status(0);
    let said = noted.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(said, "note: --trace: calls of brunt.tcp have no header fields, and so no traceparent");
    assert_eq!(came(&receiver).iter().flatten().count(), 10);
    assert_eq!(run(["run", &lua, "-t", "1"]).with_status(0).stderr, "");
}

/// Requests that a script of wrk makes, each another, and several in a string.
#[test]
fn requests_of_wrk_scripts_are_traced() {
    let receiver = Receiver::with(|number, _| {
        let status = if number == 3 { "503 No" } else { "200 OK" };
        Some(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n"))
    });
    let dir = Directory::new();
    let many = dir.file(
        "many.lua",
        "local n = 0
         function request()
           n = n + 1
           return wrk.format('GET', '/' .. n) .. wrk.format('POST', '/' .. n, { ['X-N'] = n }, 'body')
         end",
    );
    let args = ["-n", "20", "-c", "1", "-t", "1", "--format", "json", "--max-error-rate", "1", "-s", &many];
    let without = run([&args[..], &[&receiver.url]].concat()).with_status(0);
    assert!(without.stderr.is_empty() && came(&receiver).iter().all(Option::is_none), "{}", without.stderr);
    let (before, plain) = (receiver.requests().len(), receiver.requests());
    let result = run([&args[..], &["--trace", "100%", &receiver.url]].concat()).with_status(0);
    let sent = ids(&receiver).split_off(before);
    let different: std::collections::BTreeSet<_> = sent.iter().collect();
    assert_eq!((sent.len(), different.len()), (20, 20));
    // But for the field, the requests are those of the script, whose fields come in the order of a table.
    let lines = |head: &str| {
        let lines = head.lines().filter(|line| !line.starts_with("traceparent: "));
        lines.map(str::to_owned).collect::<std::collections::BTreeSet<_>>()
    };
    for (plain, traced) in plain.iter().zip(&receiver.requests()[before..]) {
        assert_eq!((lines(&plain.head), &plain.body), (lines(&traced.head), &traced.body));
        assert_eq!(plain.head.lines().next(), traced.head.lines().next());
    }
    let result: Value = serde_json::from_str(&result.stdout).unwrap();
    let slowest = result["outcomes"]["slowest"].as_array().unwrap();
    assert!(slowest.iter().all(|call| sent.iter().any(|id| call["trace_id"] == id.as_str())), "{slowest:?}");
    let once = run(["--once", "-s", &many, "--trace", "1", &receiver.url]).with_status(0);
    assert!(once.stdout.contains("traceparent: 00-"), "{}", once.stdout);
    // One that the script writes goes before.
    let own = dir.file("own.lua", "wrk.headers['traceparent'] = '00-mine'");
    let before = receiver.requests().len();
    run(["-n", "5", "-c", "1", "-t", "1", "-s", &own, "--trace", "1", &receiver.url]).with_status(0);
    assert!(came(&receiver)[before..].iter().all(|value| value.as_deref() == Some("00-mine")));
}
