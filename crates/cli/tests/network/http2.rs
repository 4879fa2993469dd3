//! HTTP/2 against servers as they are: nginx, nghttpd, and hyper in brunt's own proxy.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use brunt_testbed::server::{Server, ServerConfig};
use brunt_testbed::tls::Tls;

use crate::nginx::{Listen, Nginx, counts, free_port};
use crate::program::{Directory, run, until};
use crate::proxy::start;
use crate::report::report;

const BODY: &str = "keepalive_requests 100000; location / { return 200 hello; }";

#[test]
#[ignore = "needs nginx: make test installs it"]
fn floods_of_either_model_agree_with_the_server() {
    for listen in [Listen::Http2, Listen::TlsHttp2] {
        for args in [
            ["-n", "2000", "-c", "1"].as_slice(),
            &["-n", "2000", "-c", "2", "--streams", "50"],
            &["-n", "2000", "-t", "2", "-c", "4", "--streams", "10"],
            &["-n", "2000", "-r", "5k"],
            &["-n", "200", "-c", "4", "--reconnect"],
        ] {
            let nginx = Nginx::listening(listen, &[], BODY);
            let url = if listen == Listen::Http2 { nginx.url("/a") } else { nginx.tls_url() };
            let report = report(0, [&["--http", "2", "-k"], args, &[&url]].concat());
            let due = args[1].parse().unwrap();
            report.assert_all(due, 200);
            let log = nginx.log();
            assert_eq!(counts(&log, "server_protocol"), [("HTTP/2.0", due as usize)].into(), "{args:?}");
        }
    }
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn what_a_goaway_leaves_out_is_sent_again() {
    for args in [["-n", "2000", "-c", "2", "--streams", "20"].as_slice(), &["-n", "2000", "-r", "5k"]] {
        let nginx = Nginx::listening(Listen::Http2, &[], "keepalive_requests 100; location / { return 200 hello; }");
        let report = report(0, [&["--http", "2"], args, &[&nginx.url("/")]].concat());
        report.assert_all(2000, 200);
        assert_eq!(nginx.count(), 2000, "{args:?}");
        assert!(report.connections("made") >= 20, "{args:?}");
    }
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn the_handshake_chooses_the_version() {
    for (listen, protocol) in [(Listen::TlsHttp2, "HTTP/2.0"), (Listen::Tls, "HTTP/1.1")] {
        let nginx = Nginx::listening(listen, &[], BODY);
        let report = report(0, ["--http", "auto", "-k", "-n", "500", "-c", "2", "--streams", "10", &nginx.tls_url()]);
        let events = report.at("/outcomes/events");
        assert_eq!(events[format!("{} chosen", protocol.trim_end_matches(".0"))], 2, "{events}");
        report.assert_all(500, 200);
        assert_eq!(counts(&nginx.log(), "server_protocol"), [(protocol, 500)].into());
    }
    let nginx = Nginx::listening(Listen::Tls, &[], BODY);
    let done = run(["--http", "2", "-k", "-n", "5", &nginx.tls_url()]).with_status(3);
    assert!(done.stdout.split_whitespace().collect::<Vec<_>>().join(" ").contains("try --http auto"), "{done:#?}");
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn bodies_arrive_whole() {
    for size in [0, 1, 20_000, 1_000_000] {
        let nginx = Nginx::listening(
            Listen::Http2,
            &[],
            "client_max_body_size 0; client_body_buffer_size 2m; location / { proxy_pass http://sink; }",
        );
        let body = "0123456789".repeat(size / 10) + &"x".repeat(size % 10);
        nginx.dir.file("body", &body);
        let file = nginx.dir.path("body");
        let report =
            report(0, ["--http", "2", "-n", "20", "-c", "1", "--streams", "5", "--body-file", &file, &nginx.url("/")]);
        report.assert_all(20, 200);
        let log = nginx.log();
        assert!(log.iter().all(|line| line.get("request_body") == body), "{size}");
    }
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn users_speak_it_too() {
    let nginx = Nginx::listening(Listen::Http2, &[], BODY);
    let script = format!(
        "local brunt = require 'brunt'
         local own = brunt.http {{ base = '{0}', http = '2' }}
         local shared = brunt.http {{ base = '{0}', http = '2', pool = 1, pipeline = 50 }}
         brunt.scenario('s', function()
           for _, http in ipairs {{ own, shared }} do
             local answer = http:get('/')
             assert(answer.status == 200 and answer.body == 'hello' and answer.headers.server)
           end
         end):inject {{ brunt.iterations_each(5, 20) }}",
        nginx.url("")
    );
    let dir = Directory::new();
    dir.file("s.lua", &script);
    let report = report(0, ["run", "-t", "1", &dir.path("s.lua")]);
    report.assert_all(200, 200);
    assert_eq!(counts(&nginx.log(), "connection").len(), 6, "one for each user, and one for all");
}

#[test]
fn once_shows_frames_without_secrets() {
    let server = start(&["serve", "http", "0", "--coalesce"]);
    let url = format!("http://{}/?token=hunter2", server.address);
    let done = run(["--once", "--http", "2", "-H", "Authorization: Bearer hunter3", "-H", "Cookie: a=hunter4", &url]);
    for shown in ["SETTINGS", "HEADERS, stream 1, the stream's last", ":method: GET", ":status: 200", "GOAWAY"] {
        assert!(done.stdout.contains(shown), "{shown}: {done:#?}");
    }
    assert!(done.stdout.contains(":path: /?token=[redacted]") && !done.stdout.contains("hunter"), "{done:#?}");
}

#[test]
fn streams_are_of_http_2() {
    for (args, named) in [
        (["--streams", "5"].as_slice(), "give --http 2"),
        (&["--http", "2", "--pipeline", "5"], "give --streams"),
        (&["--http", "4"], "possible values: 1.1, 2, 3, auto"),
    ] {
        let done = run([args, &["http://127.0.0.1:1/"]].concat()).with_status(2);
        assert!(done.stderr.contains(named), "{args:?} {done:#?}");
    }
}

/// nghttpd; it ends with its test.
struct Nghttpd(Child, u16);

impl Nghttpd {
    fn start(dir: &Directory) -> Self {
        for _ in 0..5 {
            let port = free_port();
            let mut command = Command::new("nghttpd");
            command.args(["--no-tls", "-d", &dir.path(""), "-m", "8", &port.to_string()]);
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let mut ended = false;
            until("nghttpd listens", || {
                ended = child.try_wait().unwrap().is_some();
                ended || TcpStream::connect(("127.0.0.1", port)).is_ok()
            });
            if !ended {
                return Self(child, port);
            }
        }
        panic!("nghttpd does not start");
    }
}

impl Drop for Nghttpd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "needs nghttpd: make test installs it"]
fn a_server_that_compresses_heads_and_takes_eight_streams() {
    let dir = Directory::new();
    dir.file("index.html", "hello");
    dir.file("large", "x".repeat(300_000));
    dir.file("lines", "/index.html\n/large\n/none\nHEAD /large\n");
    let server = Nghttpd::start(&dir);
    let url = format!("http://127.0.0.1:{}/", server.1);
    let report = report(
        0,
        ["--http", "2", "-n", "2000", "-c", "2", "--streams", "100", "--url-lines", &dir.path("lines"), &url],
    );
    assert_eq!(report.statuses(), [(200, 1500), (404, 500)].into());
}

#[test]
fn the_built_in_target_speaks_it_on_every_route() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let url = |path: &str| format!("{}{path}", server.url());
    let body = "x".repeat(100_000);
    for (path, status, args) in [
        ("", 200, ["-m", "GET"].as_slice()),
        ("", 200, &["-m", "HEAD"]),
        ("", 200, &["--body", &body]),
        ("_/echo", 200, &["--body", &body]),
        ("_/status/503", 503, &[]),
        ("_/status/204", 204, &[]),
        ("_/bytes/1000000", 200, &[]),
        ("_/chunked/50000", 200, &[]),
        ("_/close/50000", 200, &[]),
        ("_/delay/5", 200, &[]),
        ("_/headers", 200, &[]),
        ("shop/", 200, &[]),
        ("_/nothing", 404, &[]),
    ] {
        let mut received = Vec::new();
        for version in ["1.1", "2"] {
            let common = ["--http", version, "-n", "60", "-c", "2", "--ok-status", "100-599"];
            let streams: &[&str] = if version == "2" { &["--streams", "10"] } else { &[] };
            let report = report(0, [&common, streams, args, &[&url(path)]].concat());
            report.assert_all(60, status);
            if version == "2" {
                assert_eq!(report.connections("made"), 2, "/{path}");
            }
            received.push(report.number("/bytes/clear_in_bytes"));
        }
        // The same bodies, if in other frames.
        let most = u64::from(path.contains("000")) * received[0] / 20 + 60 * 300;
        assert!(received[0].abs_diff(received[1]) <= most, "/{path}: {received:?}");
    }
    let before = server.requests();
    report(0, ["--http", "2", "-n", "500", "-r", "2k", &url("")]).assert_all(500, 200);
    assert_eq!(server.requests() - before, 500);
}

#[test]
fn the_built_in_target_streams_over_it() {
    let server = Server::start(ServerConfig { workers: 1, ..ServerConfig::default() }).unwrap();
    let events = format!("{}_/events/5?gap=20&first=30", server.url());
    for framing in ["sse", "chunks"] {
        let args = ["--http", "2", "--streams", "25", "-c", "2", "-n", "100", "--messages", framing, &events];
        let report = report(0, args);
        report.assert_all(100, 200);
        assert_eq!(report.number("/outcomes/messages/count"), 500);
        assert!(report.number("/times/first_message/min_ns") >= 29_900_000);
    }
    let chat = format!("{}v1/chat/completions", server.url());
    let args = ["--http", "2", "--streams", "5", "-n", "10", "--messages", "sse", "--last-message", "[DONE]"];
    let report =
        report(0, [&args[..], &["--json", r#"{"stream":true}"#, "-c", "1", "--timeout", "20s", &chat]].concat());
    report.assert_all(10, 200);
    assert_eq!(report.number("/outcomes/messages/count"), 10 * 50);
}

#[test]
fn the_built_in_target_agrees_on_either_version() {
    let server = Server::start(ServerConfig { tls: Some(Tls::default()), ..ServerConfig::default() }).unwrap();
    let url = server.url();
    for version in ["2", "auto", "1.1"] {
        let report = report(0, ["--http", version, "-k", "-n", "200", "-c", "2", &url]);
        report.assert_all(200, 200);
        let is_two = report.at("/outcomes").pointer("/events/header bytes saved").is_some();
        assert_eq!(is_two, version != "1.1");
        let chosen = &report.at("/outcomes")["events"]["HTTP/2 chosen"];
        assert_eq!(chosen.as_u64(), (version == "auto").then_some(2), "{version}");
    }
    // What ends connections early says GOAWAY, and loses nothing.
    let server = Server::start(ServerConfig { close_after: Some(50), ..ServerConfig::default() }).unwrap();
    let report = report(0, ["--http", "2", "-n", "500", "-c", "1", "--streams", "5", &server.url()]);
    report.assert_all(500, 200);
    assert!(report.connections("made") >= 9, "{}", report.connections("made"));
}
