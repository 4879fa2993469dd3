//! What is asked, and what may come back.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;

use crate::nginx::{Listen, Nginx, counts};
use crate::program::{Directory, brunt};
use crate::report::{Report, report};

const HELLO: &str = "location / { return 200 hello; }";

#[test]
#[ignore = "needs nginx: make test installs it"]
fn answers_to_head_have_no_body() {
    let nginx = Nginx::start("");
    nginx.file("big", 1_000_000);
    let report = report(0, ["-n", "300", "-c", "2", "-m", "HEAD", "--pipeline", "2", &nginx.url("/big")]);
    report.assert_all(300, 200);
    assert!(report.number("/bytes/wire_in_bytes") < 300 * 1000, "{}", report.at("/bytes"));
    assert_eq!(counts(&nginx.log(), "request_method"), BTreeMap::from([("HEAD", 300)]));
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn statuses_are_counted_and_judged() {
    let nginx = Nginx::start(
        "location /missing { return 404; } location /made { return 201; } location /none { return 204; }
         location /same { return 304; } location /down { return 503; } location / { return 302 /made; }",
    );
    let dir = Directory::new();
    let lines = dir.file("lines", "/missing\n/made\n/none\n/same\n/down\n/elsewhere\n");
    let args = ["-n", "60", "-c", "3", "--url-lines", &lines];
    let run = report(0, [args.as_slice(), &[&nginx.url("/")]].concat());
    let expected = BTreeMap::from([(201, 10), (204, 10), (302, 10), (304, 10), (404, 10), (503, 10)]);
    assert_eq!(run.statuses(), expected, "redirects are not followed");
    assert_eq!(run.outcome("not_ok"), 20);
    let run = report(
        1,
        [args.as_slice(), &["--ok-status", "201", "--threshold", "error_rate<80%", &nginx.url("/")]].concat(),
    );
    assert_eq!(run.outcome("not_ok"), 50);
    assert_eq!(nginx.count(), 120);
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn lines_go_to_several_hosts_over_tls_and_not() {
    const HELLO: &str = "location / { return 200 hello; }";
    for (flags, most) in
        [(&["-c", "4", "-t", "1"][..], 4), (&["-r", "1000"], 400), (&["-c", "4", "-t", "2", "-r", "1000"], 4)]
    {
        let (base, plain, tls) = (Nginx::start(HELLO), Nginx::start(HELLO), Nginx::start_tls(HELLO));
        let dir = Directory::new();
        let post = format!("{{\"url\": \"{}\", \"headers\": {{\"X-A\": \"1\"}}, \"body\": \"abc\"}}", tls.tls_url());
        let lines = dir.file("lines", format!("/here\n{}\n{post}\n{}\n", plain.url("/there"), plain.url("/too")));
        let report = report(0, [flags, &["-k", "-n", "400", "--url-lines", &lines, &base.url("/")]].concat());
        report.assert_all(400, 200);
        for (nginx, requests) in [(base, 100), (plain, 200), (tls, 100)] {
            let log = nginx.log();
            assert_eq!(log.len(), requests, "{flags:?}");
            assert!(counts(&log, "connection").len() <= most, "{flags:?}: connections are kept");
        }
    }
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn a_404_alone_is_an_answer() {
    let nginx = Nginx::start("");
    report(0, ["-n", "20", &nginx.url("/nothing")]).assert_all(20, 404);
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn chunked_bodies() {
    // gzip as it goes: nginx cannot know the length.
    let nginx = Nginx::start("gzip on; gzip_min_length 1; gzip_types *; location /index/ { autoindex on; }");
    nginx.file("big", 300_000);
    std::fs::create_dir(nginx.dir.path("www/index")).unwrap();
    let report_gzip = report(0, ["-n", "200", "-c", "4", "-H", "Accept-Encoding: gzip", &nginx.url("/big")]);
    report_gzip.assert_all(200, 200);
    assert!(report_gzip.number("/bytes/wire_in_bytes") < 200 * 3000, "{}", report_gzip.at("/bytes"));
    report(0, ["-n", "200", "-c", "4", "--pipeline", "4", &nginx.url("/index/")]).assert_all(200, 200);
    report(0, ["-n", "20", "-c", "2", &nginx.url("/big")]).assert_all(20, 200);
    assert_eq!(nginx.count(), 420);
}

/// The most memory that brunt had while it ran with these arguments, in KiB, and its result.
fn peak_memory(args: &[&str]) -> (u64, Report) {
    let mut child = brunt(args).args(["--format", "json"]).stdout(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
        peak = peak.max(kib.unwrap_or(0));
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    let done = crate::program::Done {
        status: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::new(),
    };
    (peak, Report::parse(&done.with_status(0)))
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn large_bodies_stream_through() {
    const SIZE: u64 = 100_000_000;
    for nginx in [Nginx::start(""), Nginx::start_tls("")] {
        nginx.file("huge", SIZE);
        let url = if nginx.certificate.is_some() { nginx.tls_url() } else { nginx.url("/") } + "huge";
        let (peak, report) = peak_memory(&["-n", "6", "-c", "3", "-k", "--timeout", "60s", &url]);
        report.assert_all(6, 200);
        assert!(report.number("/bytes/clear_in_bytes") > 6 * SIZE, "{}", report.at("/bytes"));
        assert!((1..60_000).contains(&peak), "{peak} KiB");
    }
}

/// A server that writes down which bodies came.
/// Keeps each request's body in its log.
const KEEPS_BODIES: &str = "client_body_buffer_size 4m; client_max_body_size 0; location / { proxy_pass http://sink; }";

#[test]
#[ignore = "needs nginx: make test installs it"]
fn a_body_for_all() {
    let nginx = Nginx::start(KEEPS_BODIES);
    let dir = Directory::new();
    let body = "{\"quoted\": \"\\n\", \"ü\": 1}\r\n";
    let file = dir.file("body", body);
    report(0, ["-n", "20", "--body", "inline", &nginx.url("/")]).assert_all(20, 200);
    report(0, ["-n", "10", "-m", "PUT", "--body-file", &file, &nginx.url("/")]).assert_all(10, 200);
    report(0, ["-n", "5", "-m", "POST", &nginx.url("/")]).assert_all(5, 200);
    let log = nginx.log();
    assert_eq!(counts(&log, "request_body"), BTreeMap::from([("", 5), ("inline", 20), (body, 10)]));
    assert_eq!(counts(&log, "request_method"), BTreeMap::from([("POST", 25), ("PUT", 10)]));
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn a_large_body_is_sent_in_full() {
    let dir = Directory::new();
    let body = "0123456789".repeat(300_000);
    let file = dir.file("body", &body);
    for tls in [false, true] {
        let nginx = if tls { Nginx::start_tls(KEEPS_BODIES) } else { Nginx::start(KEEPS_BODIES) };
        let url = if tls { nginx.tls_url() } else { nginx.url("/") };
        let many = ["-n", "12", "-c", "3", "-k", "--body-file", &file];
        report(0, [many.as_slice(), &[&url]].concat()).assert_all(12, 200);
        let pipelined = ["-n", "12", "-c", "2", "-k", "-m", "PUT", "--pipeline", "3", "--body-file", &file];
        report(0, [pipelined.as_slice(), &[&url]].concat()).assert_all(12, 200);
        let log = nginx.log();
        assert!(log.iter().all(|line| line.get("request_body") == body));
        assert_eq!(log.len(), 24);
    }
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn a_refusal_before_the_body_was_sent_is_the_answer() {
    let nginx = Nginx::start("client_max_body_size 1k; location / { proxy_pass http://sink; }");
    let dir = Directory::new();
    for (name, bytes) in [("small", 2_000), ("large", 5_000_000)] {
        let file = dir.file(name, "x".repeat(bytes));
        let report = report(0, ["-n", "20", "-c", "2", "--body-file", &file, &nginx.url("/")]);
        report.assert_all(20, 413);
        assert_eq!(report.outcome("not_ok"), 20);
    }
    assert_eq!(counts(&nginx.log(), "status"), BTreeMap::from([("413", 40)]));
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn users_and_passwords() {
    let nginx = Nginx::start("auth_basic here; auth_basic_user_file users; location / { empty_gif; }");
    nginx.dir.file("users", "me:{PLAIN}se-cr@t\n");
    report(0, ["-n", "10", &nginx.url("/")]).assert_all(10, 401);
    report(0, ["-n", "10", "--basic", "me:wrong", &nginx.url("/")]).assert_all(10, 401);
    report(0, ["-n", "10", "--basic", "me:se-cr@t", &nginx.url("/")]).assert_all(10, 200);
    let args = ["-n", "10", "--basic", "me:@SECRET", "--format", "json", &nginx.url("/")];
    Report::parse(&crate::program::done(brunt(args).env("SECRET", "se-cr@t")).with_status(0)).assert_all(10, 200);
    let url = nginx.url("/").replace("http://", "http://me:se-cr%40t@");
    report(0, ["-n", "10", &url]).assert_all(10, 200);
    let log = nginx.log();
    assert_eq!(counts(&log, "status"), BTreeMap::from([("200", 30), ("401", 20)]));
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn every_url_of_a_file_once() {
    let mut text = String::new();
    for i in 0..997 {
        match i % 3 {
            0 => writeln!(text, "/{i}?a=b").unwrap(),
            1 => writeln!(text, "DELETE /{i}").unwrap(),
            _ => writeln!(text, "# a comment\n\nHEAD\t/{i}\r").unwrap(),
        }
    }
    let dir = Directory::new();
    let lines = dir.file("urls", text);
    for load in
        [["-c", "8", "-t", "2"].as_slice(), &["-c", "8", "-t", "2", "-r", "5k"], &["-c", "3", "--pipeline", "5"]]
    {
        let nginx = Nginx::start(HELLO);
        let args = ["-n", "997", "--url-lines", &lines, &nginx.url("/ignored")];
        report(0, [load, &args].concat()).assert_all(997, 200);
        let log = nginx.log();
        let uris = counts(&log, "request_uri");
        assert_eq!(uris.len(), 997, "{load:?}: each line once");
        assert!(uris.contains_key("/0?a=b") && !uris.contains_key("/ignored"), "{load:?}");
        let methods = counts(&log, "request_method");
        assert_eq!(methods, BTreeMap::from([("DELETE", 332), ("GET", 333), ("HEAD", 332)]), "{load:?}");
        assert!(
            log.iter()
                .filter(|line| line.get("request_method") == "DELETE")
                .all(|line| { line.get("request_uri").trim_start_matches('/').parse::<u32>().unwrap() % 3 == 1 })
        );
    }
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn every_body_of_a_file_once() {
    let text: String = (0..500).map(|i| json!({ "number": i }).to_string() + "\n").collect();
    let dir = Directory::new();
    let lines = dir.file("bodies", text);
    let nginx = Nginx::start(KEEPS_BODIES);
    report(0, ["-n", "500", "-c", "8", "-t", "2", "--body-lines", &lines, &nginx.url("/")]).assert_all(500, 200);
    let log = nginx.log();
    let bodies = counts(&log, "request_body");
    assert_eq!(bodies.len(), 500);
    assert!((0..500).all(|i| bodies.contains_key(json!({ "number": i }).to_string().as_str())));
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn a_body_in_pieces_arrives_whole() {
    let dir = Directory::new();
    for (listen, version) in [(Listen::Plain, "1.1"), (Listen::Http2, "2")] {
        let nginx = Nginx::listening(listen, &[], KEEPS_BODIES);
        let text = format!(
            "local brunt = require 'brunt'
             local http = brunt.http {{ base = '{}', http = '{version}' }}
             brunt.scenario('s', function()
               local n = 0
               http:post('/', {{ body = function() n = n + 1 if n <= 3 then return ('piece %d;'):format(n) end end }})
             end):inject {{ brunt.iterations_each(2, 2) }}",
            nginx.url("/")
        );
        report(0, ["run", "-t", "1", &dir.file("s.lua", text)]).assert_all(4, 200);
        assert_eq!(
            counts(&nginx.log(), "request_body"),
            BTreeMap::from([("piece 1;piece 2;piece 3;", 4)]),
            "{version}"
        );
    }
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn lines_in_any_order_are_those_of_the_seed() {
    let dir = Directory::new();
    let lines = dir.file("urls", "/a\n/b\n/c\n/d\n");
    let sequences = ["7", "7", "8"].map(|seed| {
        let nginx = Nginx::start(HELLO);
        let args = ["-n", "100", "-c", "1", "--url-lines", &lines, "--order", "random", "--seed", seed];
        report(0, [args.as_slice(), &[&nginx.url("/")]].concat()).assert_all(100, 200);
        nginx.log().iter().map(|line| line.get("request_uri").to_owned()).collect::<String>()
    });
    assert_eq!(sequences[0], sequences[1]);
    assert_ne!(sequences[0], sequences[2]);
    assert!(["/a", "/b", "/c", "/d"].iter().all(|path| sequences[0].contains(path)));
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn headers_arrive_in_place_of_brunts_own() {
    let nginx = Nginx::start(
        "if ($http_user_agent != me) { return 400; } if ($http_x_one != 'a b') { return 401; }
         location / { return 200 hello; }",
    );
    report(0, ["-n", "10", "-H", "User-Agent: me", "-H", "X-One:   a b  ", &nginx.url("/")]).assert_all(10, 200);
    report(0, ["-n", "10", "-H", "User-Agent: you", &nginx.url("/")]).assert_all(10, 400);
}
