//! What is watched beside a run: processes, pages of metrics and a Prometheus; what happens to a run whose source is gone, slow or answers
//! garbage; and where values and gaps show.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use brunt_testbed::server::{Delay, ServerConfig};
use serde_json::Value;

use crate::program::{Directory, brunt, done, nobody, run, until};
use crate::prometheus::Prometheus;
use crate::receiver::{Receiver, status};
use crate::runs::target;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A run of three seconds with these flags besides; its JSON result.
fn result(url: &str, more: &[&str]) -> Value {
    let args = [&["-r", "200", "-d", "3s", "--format", "json"], more, &[url]].concat();
    json(&run(args).with_status(0).stdout)
}

#[expect(clippy::unnecessary_wraps, reason = "an answer may be nothing at all")]
fn page(body: &str) -> Option<String> {
    Some(format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{body}", body.len()))
}

/// An exporter whose counter grows by 30 with each page, and whose gauge is 7.
fn exporter() -> Receiver {
    Receiver::with(|number, _| {
        let total = 1000 + 30 * number;
        page(&format!(
            "# TYPE jobs_total counter\njobs_total{{kind=\"a\"}} {total}\njobs_total{{kind=\"b\"}} 5\nqueue_depth 7\n"
        ))
    })
}

/// The values of a figure, point by point.
fn values(result: &Value, name: &str) -> Vec<Option<f64>> {
    result["series"].as_array().unwrap().iter().map(|point| point["watched"][name].as_f64()).collect()
}

fn figure<'a>(result: &'a Value, name: &str) -> &'a Value {
    let all = result["watched"].as_array().unwrap();
    all.iter().find(|figure| figure["name"] == name).unwrap_or_else(|| panic!("no {name}: {all:#?}"))
}

/// A process that burns a core, or sleeps. It ends with its test.
struct Process(Child);

impl Process {
    fn start(script: &str) -> Self {
        let mut command = Command::new("/bin/sh");
        Self(command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap())
    }

    fn watch(&self) -> String {
        format!("pid:{}", self.0.id())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_is_seen_second_by_second_and_its_cpu_for_each_call() {
    let (_server, url) = target(ServerConfig::default());
    let burning = Process::start("while :; do :; done");
    let result = result(&url, &["--watch", &burning.watch()]);
    let cpu = figure(&result, "cpu");
    assert_eq!((cpu["unit"].as_str(), cpu["source"].as_str()), (Some("cores"), Some(burning.watch().as_str())));
    let mean = cpu["mean"].as_f64().unwrap();
    // The machine may be busy, and no process uses more than there is of one core.
    assert!(mean > 0.02 && cpu["max"].as_f64() < Some(1.3), "{cpu:#}");
    let answered = result["outcomes"]["answered"].as_f64().unwrap();
    let per_call = mean * result["measured"]["length_ns"].as_f64().unwrap() / answered;
    assert!((cpu["cpu_per_call_ns"].as_f64().unwrap() / per_call - 1.0).abs() < 0.02, "{cpu:#}");
    let (memory, descriptors) = (figure(&result, "memory"), figure(&result, "descriptors"));
    assert!(memory["min"].as_f64() > Some(100_000.0) && memory["unit"] == "bytes", "{memory:#}");
    assert!(descriptors["last"].as_f64() >= Some(3.0), "{descriptors:#}");
    assert!(values(&result, "cpu").iter().flatten().count() >= 2, "{:?}", values(&result, "cpu"));
}

#[test]
fn a_process_that_ends_leaves_a_gap_and_no_zero() {
    let (_server, url) = target(ServerConfig::default());
    let short = Process::start("sleep 2");
    let watch = format!("job={}", short.watch());
    let args = ["-r", "200", "-d", "5s", "--watch", &watch, "--format", "json", &url];
    // It stays as one that has ended until its parent looks.
    let result = json(&run(args).with_status(0).stdout);
    let memory = figure(&result, "job.memory");
    assert!(memory["missed_seconds"].as_u64() >= Some(1) && memory["seconds"].as_u64() >= Some(1), "{memory:#}");
    assert!(memory["problem"].as_str().unwrap().contains("has ended"), "{memory:#}");
    assert!(memory["min"].as_f64() > Some(0.0), "{memory:#}");
    assert_eq!(values(&result, "job.memory").last(), Some(&None));
    assert!(result["series"].as_array().unwrap().last().unwrap()["watched"]["job.memory"].is_null());
}

#[test]
fn a_page_of_metrics_gives_sums_and_rates() {
    let (_server, url) = target(ServerConfig::default());
    let exporter = exporter();
    let jobs = format!("jobs={}/metrics#rate(jobs_total{{kind!=\"c\"}})", exporter.url);
    let queue = format!("queue={}/metrics#queue_depth", exporter.url);
    let result = result(&url, &["--watch", &jobs, "--watch", &queue]);
    let (rate, gauge) = (figure(&result, "jobs"), figure(&result, "queue"));
    assert_eq!((gauge["mean"].as_f64(), gauge["unit"].as_str()), (Some(7.0), Some("number")), "{gauge:#}");
    assert_eq!(rate["unit"], "per_s");
    // Pages are about a second apart, and at least a third of one.
    assert!(rate["min"].as_f64() > Some(5.0) && rate["max"].as_f64() < Some(100.0), "{rate:#}");
    // One page is asked for both.
    let pages = exporter.requests().len() as u64;
    assert!(pages <= 4 + gauge["seconds"].as_u64().unwrap() + gauge["missed_seconds"].as_u64().unwrap(), "{pages}");
}

#[test]
fn a_prometheus_is_asked_and_what_it_refuses_is_said() {
    let (_server, url) = target(ServerConfig::default());
    let prometheus = Receiver::with(|_, request| {
        if request.head.contains("query=up%7B") {
            return page(
                "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{\"value\":[1,\"3\"]}]}}",
            );
        }
        let body = "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"parse error\"}";
        Some(format!("HTTP/1.1 400 Bad Request\r\nContent-Length: {}\r\n\r\n{body}", body.len()))
    });
    let good = format!("up=prometheus:{}#up{{job=\"shop\"}}", prometheus.url);
    let bad = format!("bad=prometheus:{}#sum(", prometheus.url);
    let done = run(["-r", "200", "-d", "2s", "--format", "json", "--watch", &good, "--watch", &bad, &url]);
    let result = json(&done.with_status(0).stdout);
    assert_eq!(figure(&result, "up")["mean"].as_f64(), Some(3.0));
    let bad = figure(&result, "bad");
    assert_eq!((bad["mean"].as_f64(), bad["problem"].as_str()), (None, Some("parse error")), "{bad:#}");
    assert!(prometheus.requests()[0].head.starts_with("GET /api/v1/query?query="), "{:?}", prometheus.requests()[0]);
}

#[test]
fn thresholds_know_what_is_watched_and_a_misspelt_name_is_refused_before_the_load() {
    let (server, url) = target(ServerConfig::default());
    let exporter = exporter();
    let watch = format!("queue={}/metrics#queue_depth", exporter.url);
    let of = |threshold: &str| run(["-r", "100", "-d", "2s", "--watch", &watch, "--threshold", threshold, &url]);
    assert!(of("watch.queue:max<8").with_status(0).stdout.contains("watch.queue:max<8  7"));
    assert!(of("watch.queue>7").with_status(1).stdout.contains("watch.queue>7  7"));
    let before = server.requests();
    let wrong = of("watch.queu:max<8").with_status(2);
    assert!(wrong.stderr.contains("did you mean watch.queue?"), "{}", wrong.stderr);
    let wrong = of("watch.queue:p99<8").with_status(2);
    assert!(wrong.stderr.contains("there are mean, min, max and last"), "{}", wrong.stderr);
    assert_eq!(server.requests(), before);
    let ended = run([
        "-r",
        "100",
        "-d",
        "60s",
        "--watch",
        &watch,
        "--threshold",
        "watch.queue:max<7 abort",
        "--format",
        "json",
        &url,
    ]);
    let ended = json(&ended.with_status(1).stdout);
    assert!(ended["ending"]["aborted"].to_string().contains("watch.queue:max<7"), "{:#}", ended["ending"]);
}

#[test]
fn what_cannot_be_watched_is_said_before_the_load() {
    let (server, url) = target(ServerConfig::default());
    let (_kept, gone) = nobody();
    let gone = format!("q={gone}#up");
    for (watch, problem) in [
        (gone.as_str(), "refused"),
        ("pid:4194305", "there is no process 4194305"),
        ("pid:x", "'x' is not a process number"),
        ("http://127.0.0.1:1/#up", "it has no name"),
        ("q=http://127.0.0.1:1/#avg(up)", "there is no function avg"),
    ] {
        let refused = run(["-n", "5", "--watch", watch, &url]).with_status(2);
        assert!(refused.stderr.contains(problem), "{watch}: {}", refused.stderr);
    }
    let own = format!("pid:{}", std::process::id());
    let twice = run(["-n", "5", "--watch", &own, "--watch", &own, &url]).with_status(2);
    assert!(twice.stderr.contains("two figures are called 'cpu'"), "{}", twice.stderr);
    assert_eq!(server.requests(), 0);
}

/// A run of three seconds whose exporter fails so after its first page; what became of the figure.
fn beside(fails: fn() -> Option<String>) -> (Value, Duration) {
    let (_server, url) = target(ServerConfig::default());
    let exporter = Receiver::with(move |number, _| if number == 0 { page("queue_depth 7\n") } else { fails() });
    let watch = format!("queue={}/metrics#queue_depth", exporter.url);
    let began = Instant::now();
    let result = result(&url, &["--watch", &watch]);
    (result, began.elapsed())
}

#[test]
fn a_source_that_breaks_slow_or_garbage_costs_values_and_the_run_nothing() {
    for (fails, problem) in [
        ((|| status("503 Service Unavailable")) as fn() -> Option<String>, "HTTP 503"),
        (|| None, "no answer in 900ms"),
        (|| page("<html>maintenance</html>"), "not in Prometheus' text format"),
        (|| page("queue_depth x\n"), "line 1 of the answer is not a sample"),
        (|| page("queue_depth NaN\n"), "the value is NaN"),
        (|| page("queue_deep 7\n"), "there is no metric queue_depth; there is queue_deep"),
        (|| Some("HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n".to_owned()), "longer than 8 MiB"),
        (|| Some("garbage\r\n\r\n".to_owned()), ""),
    ] {
        let (result, took) = beside(fails);
        assert_eq!(result["outcomes"]["due"], 600, "{problem}");
        // A machine that is busy sends some too late; a run that waits for its source sends few.
        assert!(result["outcomes"]["unsent"].as_u64() < Some(100), "{problem}: {:#}", result["outcomes"]);
        assert!(took < Duration::from_secs(60), "{took:?}");
        let queue = figure(&result, "queue");
        assert!(queue["missed_seconds"].as_u64() >= Some(2), "{problem}: {queue:#}");
        let said = queue["problem"].as_str().unwrap();
        assert!(said.contains(problem) && !said.is_empty(), "{problem}: {queue:#}");
        assert!(values(&result, "queue").iter().flatten().all(|value| *value == 7.0), "a gap is no 0");
    }
}

#[test]
fn credentials_of_a_watched_url_are_sent_and_shown_nowhere() {
    let (_server, url) = target(ServerConfig::default());
    let exporter = Receiver::with(|number, _| {
        if number < 2 { page("queue_depth 7\n") } else { status("401 me:hunter2 is wrong, s3cr3t too") }
    });
    let at = exporter.url.replace("http://", "http://me:hunter2@");
    let watch = format!("queue={at}/metrics?token=s3cr3t#queue_depth");
    let dir = Directory::new();
    let files = ["run.json", "run.html", "run.csv", "plan.json"].map(|name| dir.path(name));
    let store = dir.path("runs.db");
    let mut command = brunt(["-r", "100", "-d", "2s", "-v", "--watch", &watch, "--store", &store]);
    command.env_remove("BRUNT_NO_SAVE").args(["-o", &files[0], "-o", &files[1], "-o", &files[2]]);
    let done = done(command.args(["--write-plan", &files[3], &url])).with_status(0);
    let request = &exporter.requests()[0].head;
    assert!(request.contains("authorization: Basic bWU6aHVudGVyMg==") && request.contains("token=s3cr3t"), "{request}");
    let mut texts: Vec<_> = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    texts.extend([done.stdout, done.stderr, run(["show", "--store", &store, "--format", "json"]).stdout]);
    for text in texts {
        for secret in ["hunter2", "s3cr3t", "bWU6aHVudGVyMg"] {
            assert!(!text.contains(secret), "{text}");
        }
    }
    // A plan without its secrets says so instead of asking without them.
    let again = run(["--plan", &files[3]]).with_status(2);
    assert!(again.stderr.contains("put them back"), "{}", again.stderr);
    let wrong = run(["-n", "1", "--watch", &format!("{watch}("), &url]).with_status(2);
    assert!(!wrong.stderr.contains("hunter2") && !wrong.stderr.contains("s3cr3t"), "{}", wrong.stderr);
}

#[test]
fn a_kept_run_and_a_result_that_is_read_again_have_what_was_watched() {
    let (_server, url) =
        target(ServerConfig { delay: Delay::Fixed(Duration::from_millis(1)), ..ServerConfig::default() });
    let exporter = exporter();
    let watch = format!("queue={}/metrics#queue_depth", exporter.url);
    let dir = Directory::new();
    let (store, file) = (dir.path("runs.db"), dir.path("run.json"));
    let mut command = brunt(["-r", "100", "-d", "2s", "--watch", &watch, "--store", &store, "-o", &file, &url]);
    let shown = done(command.env_remove("BRUNT_NO_SAVE")).with_status(0).stdout;
    let line = |text: &str| text.lines().find(|line| line.trim_start().starts_with("queue ")).map(str::to_owned);
    assert!(line(&shown).is_some(), "{shown}");
    for again in [run(["show", "--store", &store]), run(["show", &file])] {
        assert_eq!(line(&again.with_status(0).stdout), line(&shown));
    }
    let kept = json(&run(["show", "--store", &store, "--format", "json"]).with_status(0).stdout);
    let written = json(&std::fs::read_to_string(&file).unwrap());
    assert_eq!((&kept["watched"], &kept["series"]), (&written["watched"], &written["series"]));
}

#[test]
#[ignore = "needs prometheus: make test installs it"]
fn a_real_prometheus_is_asked() {
    let (_server, url) = target(ServerConfig::default());
    let (dir, exporter) = (Directory::new(), exporter());
    let prometheus = Prometheus::start(&dir, exporter.url.trim_start_matches("http://"));
    let watch = |name: &str, query: &str| format!("{name}=prometheus:{}#{query}", prometheus.url);
    let queue = watch("queue", "sum(queue_depth{job=\"shop\"})");
    // A rate needs two scrapes.
    until("Prometheus has a rate", || {
        let rate = watch("jobs", "sum(rate(jobs_total{kind=~\"a|b\"}[10s]))");
        let tried = run(["-r", "50", "-d", "1s", "--format", "json", "--watch", &rate, &url]);
        tried.status == Some(0) && json(&tried.stdout)["watched"][0]["mean"].is_number()
    });
    let none = watch("none", "no_such_metric");
    let result = result(&url, &["--watch", &queue, "--watch", &none, "--threshold", "watch.queue:max==7"]);
    assert_eq!(figure(&result, "queue")["mean"].as_f64(), Some(7.0));
    let none = figure(&result, "none");
    assert_eq!((none["mean"].as_f64(), none["problem"].as_str()), (None, Some("the query gives no series")));
}

/// A target of Python's: what `/leak` keeps of each request, how long `/burn` computes, and how `/queue` lets one at a time through.
const ILL: &str = r#"
import http.server, threading, time
kept, turn = [], threading.Lock()
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *args): pass
    def do_GET(self):
        if self.path == "/leak":
            kept.append(b"x" * 100_000)
        elif self.path == "/burn":
            until = time.thread_time() + 0.004
            while time.thread_time() < until: pass
        elif self.path == "/queue":
            with turn: time.sleep(0.02)
        self.send_response(200); self.send_header("Content-Length", "2"); self.end_headers(); self.wfile.write(b"ok")
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 1024
server = Server(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"#;

/// One command, which calls such a target and watches its process: its result, and its page.
fn ill(path: &str) -> (Value, String) {
    let mut command = Command::new("/usr/bin/python3");
    let child = command.args(["-c", ILL]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut process = Process(child.unwrap_or_else(|error| panic!("{error}: make test installs python3")));
    let mut port = String::new();
    BufReader::new(process.0.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let dir = Directory::new();
    let (page, url) = (dir.path("run.html"), format!("http://127.0.0.1:{}{path}", port.trim()));
    let flags = ["--max-error-rate", "100%", "--format", "json", "-o", &page];
    let result = run([&["-r", "100", "-d", "5s", "--watch", &process.watch()], &flags[..], &[&url]].concat());
    (json(&result.stdout), std::fs::read_to_string(&page).unwrap())
}

/// A leak, a burnt core and a queue differ in what is watched beside the latency, on one page and from one command.
#[test]
#[ignore = "needs python3: make test installs it"]
fn a_target_that_leaks_burns_or_queues_is_seen_as_that() {
    let [leak, burn, queue] = ["/leak", "/burn", "/queue"].map(ill);
    let grown = |(result, _): &(Value, String)| {
        let memory: Vec<f64> = values(result, "memory").into_iter().flatten().collect();
        (memory.last().unwrap() - memory[0], memory.is_sorted())
    };
    let per_call = |(result, _): &(Value, String)| {
        // JSON leaves it out where a busy machine misses a second.
        let answered = result["outcomes"]["answered"].as_f64().unwrap();
        figure(result, "cpu")["mean"].as_f64().unwrap() * result["measured"]["length_ns"].as_f64().unwrap() / answered
    };
    let p50 = |(result, _): &(Value, String)| {
        let quantiles = result["times"]["response"]["quantiles"].as_array().unwrap();
        quantiles.iter().find(|quantile| quantile["name"] == "p50").unwrap()["value_ns"].as_f64().unwrap()
    };
    // The target leaks 10 MB a second. The first and the last second of the run are watched only in part.
    assert!(grown(&leak).0 > 20e6 && grown(&leak).1, "{:?}", values(&leak.0, "memory"));
    assert!(grown(&burn).0 < 10e6 && grown(&queue).0 < 10e6, "{:?} {:?}", grown(&burn), grown(&queue));
    // `/burn` takes at least 4 ms of CPU a call, the other two almost no CPU.
    assert!(per_call(&burn) > 4e6 && per_call(&leak) < 4e6 && per_call(&queue) < 4e6, "{}", per_call(&burn));
    // 50 a second come through of 100 that are due: the wait is as long as the run, and the process idle.
    assert!(p50(&queue) > 10.0 * p50(&leak), "{} {}", p50(&queue), p50(&leak));
    let said = |(result, _): &(Value, String)| result["remarks"].to_string();
    assert!(said(&queue).contains("were due") && !said(&leak).contains("were due"), "{}", said(&queue));
    for (_, page) in [&leak, &burn, &queue] {
        for panel in ["Watched: cpu", "Watched: memory", "Latency"] {
            assert!(page.contains(panel), "{panel}");
        }
    }
}
