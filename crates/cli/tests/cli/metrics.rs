//! Metrics that leave a run: what arrives, what happens to a run whose receiver is gone, slow, or refuses, and what a scrape shows.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use brunt_testbed::server::{Delay, ServerConfig};
use serde_json::Value;

use crate::program::{Directory, Running, brunt, done, nobody, run, until};
use crate::receiver::{Receiver, attributes, status};
use crate::runs::target;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A run of two seconds with these flags besides; its JSON result.
fn result(url: &str, more: &[&str]) -> Value {
    let args = [&["-r", "300", "-d", "2s", "-w", "1s", "--format", "json"], more, &[url]].concat();
    json(&run(args).with_status(0).stdout)
}

fn any(_: &std::collections::BTreeMap<String, String>) -> bool {
    true
}

#[test]
fn what_a_receiver_adds_up_is_what_the_report_says() {
    let (_server, url) = target(ServerConfig {
        delay: Delay::Exponential { mean: Duration::from_millis(4) },
        ..ServerConfig::default()
    });
    let receiver = Receiver::start();
    let result = result(&url, &["--otlp", &receiver.url, "--tag", "branch=main", "--name", "nightly"]);
    let metrics = receiver.metrics();
    let outcomes = &result["outcomes"];
    assert_eq!(metrics.sum("brunt.due", any), outcomes["due"].as_u64().unwrap(), "the warm-up is told apart");
    assert_eq!(metrics.sum("brunt.ok", any), 600);
    assert_eq!(metrics.sum("brunt.answers", |of| of["http.response.status_code"] == "200"), 600);
    metrics.distribution("http.client.request.duration", any).agree_with(&result["times"]["response"]);
    metrics.distribution("brunt.service.duration", any).agree_with(&result["times"]["service"]);
    let delivery = &result["deliveries"][0];
    assert_eq!(delivery["seconds_missed"], 0, "{delivery:#}");
    assert!(delivery["seconds_delivered"].as_u64() >= Some(3), "{delivery:#}");
    let resource = metrics.resource();
    let of = |key: &str| resource.get(key).map(String::as_str);
    assert_eq!(
        (of("service.name"), of("brunt.tag.branch"), of("brunt.run.name")),
        (Some("brunt"), Some("main"), Some("nightly"))
    );
    assert_eq!(of("brunt.run.id"), delivery["run_id"].as_str());
    let events = receiver.events();
    let names: Vec<_> = events.iter().map(|event| event.event_name.as_str()).collect();
    assert_eq!((names.first(), names.last()), (Some(&"brunt.run.started"), Some(&"brunt.run.ended")), "{names:?}");
    assert_eq!(attributes(&events.last().unwrap().attributes)["brunt.ending"], "completed");
}

#[test]
fn intervals_follow_each_other_without_a_gap() {
    let (_server, url) = target(ServerConfig::default());
    let receiver = Receiver::start();
    result(&url, &["--otlp", &receiver.url]);
    let mut intervals = Vec::new();
    for request in receiver.metrics().0 {
        let scope = &request.resource_metrics[0].scope_metrics[0];
        let due = scope.metrics.iter().find(|metric| metric.name == "brunt.due").unwrap();
        let Some(opentelemetry_proto::tonic::metrics::v1::metric::Data::Sum(sum)) = &due.data else {
            panic!("{due:?}")
        };
        intervals.push((sum.data_points[0].start_time_unix_nano, sum.data_points[0].time_unix_nano));
    }
    assert!(intervals.iter().all(|(from, to)| from < to), "{intervals:?}");
    assert!(intervals.windows(2).all(|two| two[0].1 <= two[1].0), "{intervals:?}");
}

/// Calls come in time, and the end is no later than the grace that a receiver has.
#[track_caller]
fn cost_nothing(result: &Value, took: Duration) {
    assert_eq!(result["outcomes"]["due"], 600, "{:#}", result["outcomes"]);
    assert_eq!(result["outcomes"]["unsent"], 0, "{:#}", result["outcomes"]);
    assert!(took < Duration::from_secs(60), "{took:?}");
}

#[test]
fn receivers_that_are_gone_or_never_answer_cost_the_run_nothing_and_are_named() {
    let (_server, url) = target(ServerConfig::default());
    let (_kept, gone) = nobody();
    let silent = Receiver::with(|_, _| None);
    for (receiver, problem) in [(gone.as_str(), "refused"), (&silent.url, "")] {
        let began = Instant::now();
        let args = ["-r", "300", "-d", "2s", "--format", "json", "--otlp", receiver, &url];
        let done = run(args).with_status(0);
        let result = json(&done.stdout);
        cost_nothing(&result, began.elapsed());
        let delivery = &result["deliveries"][0];
        assert_eq!(delivery["seconds_delivered"], 0, "{delivery:#}");
        assert!(
            delivery["seconds_missed"].as_u64() >= Some(2) && delivery["events_missed"].as_u64() >= Some(1),
            "{delivery:#}"
        );
        assert!(delivery["problem"].as_str().unwrap().contains(problem), "{delivery:#}");
        assert!(done.stderr.contains("seconds, ") && done.stderr.contains("did not reach"), "{}", done.stderr);
        assert!(done.stderr.contains(receiver.trim_end_matches('/')), "{}", done.stderr);
    }
}

#[test]
fn a_receiver_that_comes_back_gets_every_call() {
    let (_server, url) = target(ServerConfig::default());
    // The first two are told to come again, one of them at once.
    let receiver = Receiver::with(|number, _| match number {
        0 => status("503 Service Unavailable"),
        1 => status("429 Too Many Requests\r\nRetry-After: 0"),
        _ => status("200 OK"),
    });
    let result = result(&url, &["--otlp", &receiver.url]);
    assert_eq!(receiver.metrics().sum("brunt.due", any), 600);
    assert_eq!(result["deliveries"][0]["seconds_missed"], 0, "{:#}", result["deliveries"]);
    // What is sent again is the same.
    let requests = receiver.requests();
    assert!(requests.iter().skip(1).any(|request| request.body == requests[0].body), "{}", requests.len());
}

#[test]
fn what_a_receiver_refuses_is_not_sent_again() {
    let (_server, url) = target(ServerConfig::default());
    let receiver = Receiver::with(|_, _| status("500 Internal Server Error"));
    let done = run(["-r", "300", "-d", "2s", "--format", "json", "--otlp", &receiver.url, &url]).with_status(0);
    let result = json(&done.stdout);
    let delivery = &result["deliveries"][0];
    assert_eq!(delivery["problem"], "HTTP 500 Internal Server Error", "{delivery:#}");
    let bodies: Vec<_> = receiver.requests().into_iter().map(|request| request.body).collect();
    assert!(bodies.iter().enumerate().all(|(at, body)| !bodies[..at].contains(body)), "each was sent once");
    assert_eq!(delivery["seconds_missed"], receiver.requests().iter().filter(|r| r.head.contains("metrics")).count());
}

#[test]
fn the_environment_says_where_and_how() {
    let (_server, url) = target(ServerConfig::default());
    let receiver = Receiver::start();
    let mut command = brunt(["-n", "10", "-c", "1", "--format", "json", "--otlp", "env", &url]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &receiver.url).env("OTEL_SERVICE_NAME", "checkout load");
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "x-token=t0psecret").env("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip");
    command.env("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=ci");
    let done = done(&mut command).with_status(0);
    let requests = receiver.requests();
    assert!(requests.iter().all(|request| request.head.contains("x-token: t0psecret")), "{requests:?}");
    assert!(requests.iter().all(|request| request.body.starts_with(&[0x1f, 0x8b])), "by gzip");
    assert!(!done.stdout.contains("t0psecret") && !done.stderr.contains("t0psecret"), "{done:#?}");
    let wrong = run(["-n", "1", "--otlp", "env", &url]).with_status(2);
    assert!(wrong.stderr.contains("OTEL_EXPORTER_OTLP_ENDPOINT is not set"), "{}", wrong.stderr);
    let wrong = run(["-n", "1", "--otlp", "grpc://127.0.0.1:4317", &url]).with_status(2);
    assert!(wrong.stderr.contains("begins with http://"), "{}", wrong.stderr);
}

#[test]
fn passwords_in_the_url_are_sent_and_shown_nowhere() {
    let (_server, url) = target(ServerConfig::default());
    let receiver = Receiver::with(|_, _| status("401 me:hunter2 is wrong"));
    let dir = Directory::new();
    let otlp = receiver.url.replace("http://", "http://me:hunter2@");
    let store = dir.path("runs.db");
    let out = dir.path("run.json");
    let mut command = brunt(["-n", "5", "-c", "1", "--otlp", &otlp, "--store", &store, "-o", &out, &url]);
    let done = done(command.env_remove("BRUNT_NO_SAVE")).with_status(0);
    assert!(receiver.requests()[0].head.contains("authorization: Basic bWU6aHVudGVyMg=="));
    let written = std::fs::read_to_string(&out).unwrap();
    for text in [&done.stdout, &done.stderr, &written] {
        assert!(!text.contains("hunter2") && !text.contains("bWU6aHVudGVyMg"), "{text}");
    }
    assert!(done.stderr.contains("HTTP 401"), "{}", done.stderr);
}

#[test]
fn a_receiver_of_sums_gets_sums() {
    let (_server, url) = target(ServerConfig::default());
    let receiver = Receiver::start();
    let mut command = brunt(["-r", "100", "-d", "2s", "--otlp", &receiver.url, &url]);
    done(command.env("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "cumulative")).with_status(0);
    let requests = receiver.metrics().0;
    let last = requests.last().unwrap();
    let due =
        last.resource_metrics[0].scope_metrics[0].metrics.iter().find(|metric| metric.name == "brunt.due").unwrap();
    let Some(opentelemetry_proto::tonic::metrics::v1::metric::Data::Sum(sum)) = &due.data else { panic!("{due:?}") };
    assert_eq!(sum.aggregation_temporality, 2);
    let value = |n: i64| Some(opentelemetry_proto::tonic::metrics::v1::number_data_point::Value::AsInt(n));
    assert!(sum.data_points.iter().any(|point| point.value == value(200)), "{sum:?}");
}

/// The body of an answer, by HTTP/1.0.
fn get(address: &str, path: &str, accept: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: x\r\nAccept: {accept}\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// A run that is scraped at this address.
fn scraped(url: &str, more: &[&str]) -> (Running, String) {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let running = Running::start([&["-r", "200", "--prometheus", &free], more, &[url]].concat());
    until("metrics are served", || TcpStream::connect(&free).is_ok());
    (running, free)
}

#[test]
fn a_scrape_has_the_run_so_far_and_the_last_one_all_of_it() {
    let (_server, url) = target(ServerConfig { error_rate: 0.1, ..ServerConfig::default() });
    let dir = Directory::new();
    let file = dir.path("result.json");
    let (running, address) = scraped(&url, &["-d", "2s", "-o", &file, "--prometheus-linger", "1m"]);
    until("a second is over", || get(&address, "/metrics", "*/*").contains("brunt_due_total{"));
    assert!(get(&address, "/", "*/*").starts_with("HTTP/1.0 404"));
    // What comes once the result is written is the last scrape, which ends the run.
    let mut last = String::new();
    until("the last scrape", || {
        let Ok(mut stream) = TcpStream::connect(&address) else { return true };
        let _ = write!(stream, "GET /metrics HTTP/1.0\r\nHost: x\r\n\r\n");
        let mut answer = String::new();
        if stream.read_to_string(&mut answer).is_ok() && answer.contains("brunt_due_total") {
            last = answer;
        }
        std::thread::sleep(Duration::from_millis(100));
        false
    });
    running.wait().with_status(0);
    let result = json(&std::fs::read_to_string(&file).unwrap());
    let sum = |name: &str| {
        let lines = last.lines().filter(|line| line.starts_with(&format!("{name}{{")) && !line.contains("warmup"));
        lines.map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum::<f64>()
    };
    let of = |name: &str| result["outcomes"][name].as_f64().unwrap();
    assert_eq!((sum("brunt_due_total"), sum("brunt_not_ok_total")), (of("due"), of("not_ok")), "{last}");
    assert_eq!(sum("http_client_request_duration_seconds_count"), of("due"));
    assert!(
        last.contains("http_request_method=\"GET\"") && last.contains("target_info{service_name=\"brunt\""),
        "{last}"
    );
}

#[test]
fn an_address_that_is_taken_is_refused_before_the_load() {
    let (server, url) = target(ServerConfig::default());
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = run(["-n", "5", "--prometheus", &address, &url]).with_status(2);
    assert!(refused.stderr.contains("--prometheus: cannot listen on"), "{}", refused.stderr);
    assert_eq!(server.requests(), 0);
}

#[test]
fn commands_that_make_many_runs_refuse_it() {
    let refused = run(["sweep", "-c", "1,2", "--otlp", "http://127.0.0.1:4318", "http://127.0.0.1:1/"]).with_status(2);
    assert!(refused.stderr.contains("--otlp is for a single run"), "{}", refused.stderr);
}
