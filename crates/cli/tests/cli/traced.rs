//! Calls with a `traceparent` (`--trace`): what the target gets, and where the ids stand.

use std::time::Duration;

use brunt_testbed::server::{Config, Delay};
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
    let (server, url) = target(Config::default());
    run(["-n", "50", "-c", "2", "--http", "2", "--trace", "50%", &url]).with_status(0);
    assert_eq!(server.requests(), 50);
    let once = run(["--once", "--http", "2", "--trace", "1", &url]).with_status(0);
    assert!(once.stdout.contains("traceparent"), "{}", once.stdout);
}

/// The slowest calls with a trace lead from the report, and from a receiver's histogram, to the target's traces.
#[test]
fn the_slowest_calls_are_found_by_their_traces() {
    let delay = Delay::Exponential { mean: Duration::from_millis(3) };
    let (_server, url) = target(Config { delay, ..Config::default() });
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
