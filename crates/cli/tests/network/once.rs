//! A single call, shown as it goes over the wire.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use brunt_testbed::server::{ServedProtocol, Server, ServerConfig};
use brunt_testbed::tls::Tls;

use crate::nginx::Nginx;
use crate::program::{Directory, brunt, done, run};

/// Whether these stand in the text, one after the other.
#[track_caller]
fn assert_in_order(text: &str, expected: &[&str]) {
    let mut rest = text;
    for expected in expected {
        let at = rest.find(expected).unwrap_or_else(|| panic!("{expected:?} is not (there) in {text}"));
        rest = &rest[at + expected.len()..];
    }
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn http_without_its_secrets() {
    let nginx = Nginx::start("location / { add_header Set-Cookie id=s3cret always; return 404 nothing; }");
    let url = nginx.url("/a?token=t0p&b=c");
    let args = ["--once", "-c", "50", "-r", "100", "-d", "1h", "--warmup", "1h", "-H", "Authorization: Bearer t0p"];
    let secret_body = ["-H", "X-Own: @OWN", "--method", "POST", "--body", "own"];
    let shown = |more: &[&str]| {
        let args = [args.as_slice(), &secret_body, more, &[&url]].concat();
        done(brunt(args).env("OWN", "own")).with_status(0).stdout
    };
    let text = shown(&[]);
    let expected = [
        "\n→ call, ",
        " bytes\n  POST /a?token=[redacted]&b=c HTTP/1.1\n",
        "  Authorization: [redacted]\n",
        "  X-Own: [redacted]\n",
        "\n\n  [redacted]\n",
        "\n← answer, ",
        "s later\n  HTTP/1.1 404 Not Found\n",
        "\n  Set-Cookie: [redacted]\n",
        "\n  nothing\n",
        "\n✗ answered with 404 in ",
        "\nTimes          ",
    ];
    assert_in_order(&text, &expected);
    assert!(!text.contains("t0p") && !text.contains("s3cret"), "{text}");
    assert_in_order(&shown(&["--show-secrets"]), &["/a?token=t0p&b=c", "Bearer t0p", "X-Own: own", "id=s3cret"]);
    let log: Vec<_> = nginx.log().iter().map(|line| line.get("request_uri").to_owned()).collect();
    assert_eq!(log, ["/a?token=t0p&b=c"; 2], "each is one call");
}

#[test]
fn what_is_printed_for_programs_is_not_mixed_with_it() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let done = run(["--once", "--format", "json", &server.url()]).with_status(0);
    assert!(serde_json::from_str::<serde_json::Value>(&done.stdout).is_ok(), "{}", done.stdout);
    assert_in_order(&done.stderr, &["→ call, ", "GET / HTTP/1.1", "✓ answered with 200"]);
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn websocket_by_its_frames_with_the_handshake_apart() {
    let dir = Directory::new();
    let plain = Server::start(ServerConfig { speaks: ServedProtocol::WebSocket, ..ServerConfig::default() }).unwrap();
    let config =
        ServerConfig { speaks: ServedProtocol::WebSocket, tls: Some(Tls::default()), ..ServerConfig::default() };
    let encrypted = Server::start(config).unwrap();
    let trusted = dir.file("ca.pem", encrypted.certificate_pem().unwrap());
    for (server, flags) in [(&plain, [].as_slice()), (&encrypted, &["--cacert", &trusted])] {
        let url = server.url();
        let text = run([&["--once", "--message", "hi there", "--basic", "me:pw"], flags, &[&url]].concat());
        let expected = [
            "\n→ handshake, ",
            "\n  GET / HTTP/1.1\n",
            "  Authorization: [redacted]\n",
            "\n← handshake, ",
            "\n  HTTP/1.1 101 Switching Protocols\n",
            "\n→ call, 14 bytes\n\n  text frame, masked, 8 bytes: hi there\n\n  00000000  81 88 ",
            "\n← answer, 10 bytes, ",
            "\n  text frame, 8 bytes: hi there\n\n  00000000  81 08 68 69 20 74 68 65 72 65 ",
            "|..hi there|\n",
            "\n✓ answered in ",
            "\n→ goodbye, 8 bytes\n\n  close frame, masked, 2 bytes: 1000 normal closure\n",
            "\nTimes          ",
        ];
        assert_in_order(&text.with_status(0).stdout, &expected);
    }
    let wrong = ServerConfig { speaks: ServedProtocol::WebSocket, error_rate: 1.0, ..ServerConfig::default() };
    let wrong = Server::start(wrong).unwrap();
    let text = run(["--once", &wrong.url()]).with_status(1).stdout;
    assert_in_order(&text, &["← answer, ", "✗ mismatch after ", "a message with other content came back"]);
    let nginx = Nginx::start("location / { return 403; }");
    let text = run(["--once", &nginx.url("/").replace("http", "ws")]).with_status(3).stdout;
    assert_in_order(&text, &["← handshake, ", "HTTP/1.1 403 Forbidden", "✗ handshake: the server answered 403"]);
}

#[test]
fn tcp_as_text_or_by_numbers() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("tcp://{}", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        for answer in [b"+PONG\r\n".as_slice(), &[0, 0, 0, 2, 0xff, 0x00], b"half"] {
            let (mut stream, _) = listener.accept().unwrap();
            let asked = stream.read(&mut [0; 100]).unwrap();
            assert_eq!(asked, 6);
            stream.write_all(answer).unwrap();
        }
        // Nobody listens from here on.
    });
    let text = run(["--once", "--send", "PING\\r\\n", "--until", "\\n", &url]).with_status(0).stdout;
    let expected = ["→ call, 6 bytes\n  PING\n", "← answer, 7 bytes, ", "later\n  +PONG\n", "✓ answered in "];
    assert_in_order(&text, &expected);
    let binary = run(["--once", "--send", "\\x01bin\\r\\n", "--length-prefix", "4", &url]).with_status(0).stdout;
    let expected = ["→ call, 6 bytes\n  00000000  01 62 69 6e 0d 0a ", "← answer, 6 bytes, ", "00 00 00 02 ff 00 "];
    assert_in_order(&binary, &expected);
    let half = run(["--once", "--send", "PING\\r\\n", "--until", "\\n", &url]).with_status(3).stdout;
    assert_in_order(&half, &["← answer, 4 bytes, ", "  half\n", "✗ closed: the peer closed before the answer was"]);
    server.join().unwrap();
    let refused = run(["--once", "--send", "PING", "--until", "\\n", &url]).with_status(3).stdout;
    assert_in_order(&refused, &["✗ connect: connection refused"]);
}

#[test]
fn a_kept_plan_and_scenarios_too() {
    let dir = Directory::new();
    let server = Server::start(ServerConfig::default()).unwrap();
    let flood = dir.path("flood.json");
    run(["-r", "100", "-d", "1h", "--write-plan", &flood, "--dry-run", &server.url()]).with_status(0);
    assert_in_order(&run(["--plan", &flood, "--once"]).with_status(0).stdout, &["→ call, ", "✓ answered with 200"]);
    let script = dir.file(
        "s.lua",
        format!(
            "local brunt = require 'brunt'
             local http = brunt.http {{ base = '{}' }}
             brunt.scenario('s', function() http:get('/') end):inject {{ brunt.users(1000, '1h') }}",
            server.url()
        ),
    );
    let plan = dir.path("plan.json");
    run(["run", "--write-plan", &plan, "--dry-run", &script]).with_status(0);
    let text = run(["--plan", &plan, "--once"]).with_status(0).stdout;
    assert_in_order(&text, &["\ns\n", "→ GET /", "← 200 in ", "1 due = 1 answered"]);
    assert_eq!(server.requests(), 2);
    let many = run(["sweep", "-c", "1..2", "--once", &server.url()]).with_status(2).stderr;
    assert!(many.contains("--once is for a single run"), "{many}");
}
