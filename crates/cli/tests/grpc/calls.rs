//! Calls of every kind, with every type both ways.

use crate::peers::{HEALTH, PROTO, Peer, descriptor_set};
use crate::program::run;
use crate::report::{Report, report};

/// A message that has every type in it.
pub const EVERYTHING: &str = r#"{"sku": "a ü", "count": -3, "big": "-9007199254740993", "u": 4294967295, "uu": "18446744073709551615",
    "z": -70000, "zz": "-9223372036854775808", "f": 7, "ff": "8", "s": -9, "ss": "-10", "a": 1.5, "b": -2.25e300, "yes": true,
    "raw": "AP8=", "colour": "COLOUR_RED", "size": {"width": 3}, "packed": [1, -1, 300], "words": ["", "x"],
    "sizes": {"k": {"width": 4}, "": {}}, "names": {"-1": "minus"}, "right": 0, "at": "2026-11-22T10:00:00.250Z", "maybe": 0}"#;

fn flags<'a>(call: &'a str, args: &'a str) -> Vec<&'a str> {
    vec!["--proto", PROTO, "--call", call, "--args", args]
}

/// What `--once` says of a call, its lines without the room before them.
pub fn once(status: i32, args: &[&str]) -> Vec<String> {
    let done = run([&["--once"], args].concat()).with_status(status);
    done.stdout.lines().map(|line| line.trim().to_owned()).collect()
}

#[test]
fn floods_are_answered_whatever_the_kind() {
    let peer = Peer::start();
    let many = r#"[{"sku": "a"}, {"sku": "b"}]"#;
    for (call, args) in [("Add", EVERYTHING), ("Watch", r#"{"count": 5}"#), ("Fill", many), ("shop.Cart/Chat", many)] {
        let load = ["-n", "60", "-c", "2", "--streams", "3", &peer.url];
        let run = report(0, [&flags(call, args)[..], &load].concat());
        run.assert_all(60, 0);
        assert_eq!(run.connections("made"), 2);
        let open = ["-r", "100", "-d", "500ms", "-c", "2", &peer.url];
        assert!(report(0, [&flags(call, args)[..], &open].concat()).outcome("answered") >= 40);
    }
    let cacert = peer.dir.path("cert.pem");
    let secure = ["-n", "20", "--cacert", &cacert, &peer.secure_url];
    report(0, [&flags("Add", EVERYTHING)[..], &secure].concat()).assert_all(20, 0);
    // What the server sends is known only by its messages, which hold more than one connection window.
    let large = format!(r#"{{"sku": "{}"}}"#, "x".repeat(300_000));
    let file = peer.dir.file("large.json", large);
    let args =
        ["--proto", PROTO, "--call", "Add", "--args", &format!("@{file}"), "-n", "30", "-c", "1", "--streams", "4"];
    report(0, [&args[..], &[&peer.url]].concat()).assert_all(30, 0);
}

#[test]
fn every_type_comes_back_as_it_was_sent() {
    let peer = Peer::start();
    let told = once(0, &[&flags("Add", EVERYTHING)[..], &[&peer.url]].concat());
    let messages: Vec<serde_json::Value> =
        told.iter().filter(|line| line.starts_with('{')).map(|line| serde_json::from_str(line).unwrap()).collect();
    let [sent, received] = &messages[..] else { panic!("{told:#?}") };
    assert_eq!(sent, received);
    assert_eq!(sent["big"], -9_007_199_254_740_993_i64);
    assert_eq!(sent["uu"], u64::MAX);
    assert_eq!(sent.as_object().unwrap().len(), 24, "a zero without presence is left out: {sent}");
}

#[test]
fn messages_may_be_compressed_both_ways() {
    let peer = Peer::with_compression("gzip");
    let text = format!(r#"{{"sku": "{}"}}"#, "x".repeat(3000));
    report(0, [&flags("Add", &text)[..], &["--compress", "gzip", "-n", "20", &peer.url]].concat()).assert_all(20, 0);
    let told = once(0, &[&flags("Add", &text)[..], &["--compress", "gzip", &peer.url]].concat());
    let compressed: Vec<_> = told.iter().filter(|line| line.ends_with(" bytes in gzip")).collect();
    assert_eq!(compressed.len(), 2, "{told:#?}");
}

#[test]
fn statuses_are_told_by_name_with_their_details() {
    let peer = Peer::start();
    for (status, name) in [("3", "INVALID_ARGUMENT"), ("5", "NOT_FOUND"), ("16", "UNAUTHENTICATED")] {
        let header = format!("x-status: {status}");
        let run = report(0, [&flags("Add", "{}")[..], &["-n", "20", "-H", &header, &peer.url]].concat());
        assert_eq!(run.statuses(), [(status.parse().unwrap(), 20)].into());
        let told = once(0, &[&flags("Add", "{}")[..], &["-H", &header, &peer.url]].concat());
        let line = format!("status {status} {name}: no sku: ü, 100%");
        assert!(told.iter().any(|told| told.ends_with(&line)), "{told:#?}");
        let detail = r#"google.rpc.BadRequest {"field_violations":[{"field":"sku","description":"unknown"}]}"#;
        assert!(told.iter().any(|told| told.ends_with(detail)), "{told:#?}");
    }
    // A method that the server does not have.
    let file = peer.dir.file(
        "other.proto",
        "syntax = \"proto3\"; package shop; message M {} service Till { rpc Add(M) returns (M); }",
    );
    let run = report(0, ["--proto", &file, "--call", "Add", "-n", "5", &peer.url]);
    assert_eq!(run.statuses(), [(12, 5)].into());
}

#[test]
fn the_server_knows_the_timeout() {
    let peer = Peer::start();
    let told = once(0, &[&flags("Add", "{}")[..], &["-H", "x-left: 1", "--timeout", "90s", &peer.url]].concat());
    assert!(told.iter().any(|line| line == r#"{"sku":"90 s left"}"#), "{told:#?}");
    // A call that takes too long has ended one way or the other, and its connection goes on.
    let slow = ["-H", "x-sleep: 1", "--timeout", "100ms", "-n", "4", "-c", "1", "--drain", "2s"];
    let run = Report::parse(&run([&flags("Add", "{}")[..], &slow, &["--format", "json", &peer.url]].concat()));
    let timeouts = run.failures().get("timeout").copied().unwrap_or(0);
    let statuses = run.statuses().get(&4).copied().unwrap_or(0);
    assert_eq!(timeouts + statuses, 4, "{run:?}");
    assert_eq!(run.connections("made"), 1);
}

#[test]
fn health_is_checked() {
    let peer = Peer::start();
    let told = once(0, &["--proto", HEALTH, "--call", "grpc.health.v1.Health/Check", &peer.url]);
    assert!(told.iter().any(|line| line == r#"{"status":"SERVING"}"#), "{told:#?}");
    let args = ["--proto", HEALTH, "--call", "Check", "--args", r#"{"service": "none"}"#, "-n", "5", &peer.url];
    assert_eq!(report(0, args).statuses(), [(5, 5)].into());
}

#[test]
fn a_descriptor_set_of_protoc_will_do() {
    let peer = Peer::start();
    let set = descriptor_set(&peer.dir);
    let args = ["--descriptor-set", &set, "--call", "Add", "--args", EVERYTHING, "-n", "20", &peer.url];
    report(0, args).assert_all(20, 0);
    let lines = peer.dir.file("lines", "{\"count\": 1}\n\n{\"count\": 2}\n");
    let args = ["--descriptor-set", &set, "--call", "Watch", "--args-lines", &lines, "-n", "20", &peer.url];
    report(0, args).assert_all(20, 0);
}

#[test]
fn what_is_no_server_of_grpc_is_named() {
    let peer = Peer::start();
    let mut http = crate::program::Running::start(["serve", "http", "0"]);
    let url = http.line().trim().replace("listening on http://", "grpc://");
    let run = report(3, [&flags("Add", "{}")[..], &["-n", "3", "-c", "1", &url]].concat());
    assert_eq!(run.failures().values().sum::<u64>(), 3, "{run:?}");
    // And one that wants TLS, or has none.
    let cacert = peer.dir.path("cert.pem");
    let plain = peer.url.replace("grpc://", "grpcs://");
    let run = report(3, [&flags("Add", "{}")[..], &["-n", "3", "--cacert", &cacert, &plain]].concat());
    assert_eq!(run.failures()["tls"], 3);
}

#[test]
fn secrets_are_left_out_of_what_is_shown() {
    let peer = Peer::start();
    let file = peer.dir.file(
        "login.proto",
        "syntax = \"proto3\"; package shop; message Login { string user = 1; string password = 2; }
         service Cart { rpc Add(Login) returns (Login); rpc Chat(stream Login) returns (stream Login); }",
    );
    let login = r#"{"user": "ann", "password": "hunter2"}"#;
    for (call, args) in [("Add", login.to_owned()), ("Chat", format!("[{login}, {login}]"))] {
        for compress in [&[][..], &["--compress", "gzip"]] {
            let call =
                ["--proto", &file, "--call", call, "--args", &args, "-H", "authorization: Bearer hunter2", &peer.url];
            let told = once(0, &[&call[..], compress].concat()).join("\n");
            assert!(told.contains("ann") && told.contains("[redacted]") && !told.contains("hunter2"), "{told}");
            let json = run([&call[..], compress, &["-n", "2", "--format", "json"]].concat());
            assert!(json.stdout.contains("ann") && !json.stdout.contains("hunter2"), "{}", json.stdout);
        }
    }
}
