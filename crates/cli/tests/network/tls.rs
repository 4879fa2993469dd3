//! TLS against OpenSSL, as nginx has it.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use brunt_testbed::tls::{client_certificate, server_certificate};

use crate::nginx::{Nginx, counts, free_port};
use crate::program::{Directory, brunt, done, run};
use crate::report::{Report, report};

const HELLO: &str = "location / { return 200 hello; }";

/// The path of a file with the certificate that this nginx shows.
fn trusted(nginx: &Nginx) -> String {
    nginx.dir.path("cert.pem")
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn certificates_are_verified() {
    let nginx = Nginx::start_tls(HELLO);
    let (url, ca) = (nginx.tls_url(), trusted(&nginx));
    let run = report(0, ["-n", "300", "-c", "4", "--cacert", &ca, &url]);
    run.assert_all(300, 200);
    assert_eq!(run.number("/times/tls/count"), run.connections("made"));
    let wire = run.number("/bytes/wire_in_bytes");
    assert!(wire > run.number("/bytes/clear_in_bytes") && run.number("/bytes/clear_in_bytes") > 300 * 100);
    report(0, ["-n", "300", "-c", "4", "-k", &url]).assert_all(300, 200);
    report(0, ["-n", "10", "--cacert", &ca, &url.replace("127.0.0.1", "localhost")]).assert_all(10, 200);
    report(0, ["-n", "10", "--cacert", &ca, &url.replace("127.0.0.1", "[::1]")]).assert_all(10, 200);
    assert_eq!(nginx.count(), 620);
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn certificates_that_nobody_vouches_for_are_refused() {
    let nginx = Nginx::start_tls(HELLO);
    let stranger = server_certificate().unwrap().certificate_pem;
    let stranger = nginx.dir.file("stranger.pem", stranger);
    let refused = report(3, ["-n", "4", "-c", "2", "--cacert", &stranger, &nginx.tls_url()]);
    assert_eq!(refused.failures(), BTreeMap::from([("tls", 4)]));
    assert!(refused.reasons().keys().all(|reason| reason.contains("certificate")), "{:?}", refused.reasons());
    let said = run(["-n", "4", "--cacert", &stranger, &nginx.tls_url()]).with_status(3).stdout;
    assert!(said.contains("certificate"), "{said}");
    assert_eq!(nginx.count(), 0);
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn certificates_of_somebody_else_are_refused() {
    let nginx = Nginx::start_tls(HELLO);
    let ca = trusted(&nginx);
    let args = ["-n", "4", "-c", "2", "--cacert", &ca];
    let there = format!("127.0.0.1:{}", nginx.port);
    for args in [
        [args.as_slice(), &["--sni", "other.example", &nginx.tls_url()]].concat(),
        [args.as_slice(), &["--connect-to", &there, "https://other.example/"]].concat(),
    ] {
        let refused = report(3, args);
        assert_eq!(refused.failures(), BTreeMap::from([("tls", 4)]));
        assert!(refused.reasons().keys().all(|reason| reason.contains("other.example")), "{:?}", refused.reasons());
    }
    assert_eq!(nginx.count(), 0);
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn the_server_name_is_asked_for() {
    let nginx = Nginx::start_tls(HELLO);
    let (url, ca) = (nginx.tls_url(), trusted(&nginx));
    report(0, ["-n", "1", "-c", "1", "-k", &url]).assert_all(1, 200);
    report(0, ["-n", "2", "-c", "1", "-k", "--sni", "other.example", &url]).assert_all(2, 200);
    let there = format!("127.0.0.1:{}", nginx.port);
    let elsewhere = ["-n", "4", "-c", "1", "--cacert", &ca, "--connect-to", &there];
    report(0, [elsewhere.as_slice(), &["https://localhost/"]].concat()).assert_all(4, 200);
    report(0, [elsewhere.as_slice(), &["--sni", "localhost", "https://a.example/"]].concat()).assert_all(4, 200);
    let log = nginx.log();
    assert_eq!(counts(&log, "ssl_server_name"), BTreeMap::from([("", 1), ("other.example", 2), ("localhost", 8)]));
    assert_eq!(counts(&log, "http_host").get("a.example"), Some(&4), "the Host stays that of the URL");
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn both_versions_and_their_sessions() {
    for version in ["TLSv1.2", "TLSv1.3"] {
        for session in ["ssl_session_cache shared:S:1m; ssl_session_tickets off;", "ssl_session_tickets on;"] {
            let nginx = Nginx::start_tls(&format!("ssl_protocols {version}; {session} {HELLO}"));
            let (url, ca) = (nginx.tls_url(), trusted(&nginx));
            let args = ["-n", "40", "-c", "1", "--reconnect", "--cacert", &ca, &url];
            let report = report(0, args);
            report.assert_all(40, 200);
            assert_eq!(report.connections("tls_resumed"), 39, "{version} {session}");
            let log = nginx.log();
            assert_eq!(counts(&log, "ssl_protocol"), BTreeMap::from([(version, 40)]));
            let reused = counts(&log, "ssl_session_reused");
            assert_eq!(reused, BTreeMap::from([(".", 1), ("r", 39)]), "{version} {session}");
        }
    }
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn versions_that_nobody_should_speak_any_more_are_refused() {
    let nginx = Nginx::start_tls(&format!("ssl_protocols TLSv1.1; ssl_ciphers ALL:@SECLEVEL=0; {HELLO}"));
    let refused = report(3, ["-n", "2", "-c", "1", "-k", &nginx.tls_url()]);
    assert_eq!(refused.failures(), BTreeMap::from([("tls", 2)]), "{:?}", refused.reasons());
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn client_certificates() {
    for version in ["TLSv1.2", "TLSv1.3"] {
        let made = client_certificate("somebody").unwrap();
        let body =
            format!("ssl_protocols {version}; ssl_client_certificate client-ca.pem; ssl_verify_client on; {HELLO}");
        let nginx = Nginx::start_tls_with(&[("client-ca.pem", &made.authority_pem)], &body);
        let (url, ca) = (nginx.tls_url(), trusted(&nginx));
        let certificate = nginx.dir.file("client.pem", &made.certificate_pem);
        let key = nginx.dir.file("client-key.pem", &made.key_pem);
        let args = ["-n", "20", "-c", "2", "--cacert", &ca];
        report(0, [args.as_slice(), &["--cert", &certificate, "--key", &key, &url]].concat()).assert_all(20, 200);
        let secret = [args.as_slice(), &["--cert", &certificate, "--key", "@KEY", "--format", "json", &url]].concat();
        Report::parse(&done(brunt(secret).env("KEY", &made.key_pem)).with_status(0)).assert_all(20, 200);
        // nginx finishes the handshake and says it in HTTP.
        report(0, [args.as_slice(), &[&url]].concat()).assert_all(20, 400);
        // Of two clients of a script, one shows it.
        let script = nginx.dir.file(
            "two.lua",
            format!(
                "local brunt = require 'brunt'
                 local known = brunt.http {{ base = '{url}', cert = brunt.file('client.pem'), key = '@KEY' }}
                 local unknown = brunt.http {{ base = '{url}' }}
                 brunt.scenario('s', function()
                   brunt.check(known:get('/'), {{ known = function(answer) return answer.status == 200 end }})
                   brunt.check(unknown:get('/', {{ ok = 400 }}), {{ unknown = function(answer) return answer.status == 400 end }})
                 end):inject {{ brunt.iterations_each(1, 10) }}"
            ),
        );
        let two = ["run", "--cacert", &ca, "--format", "json", &script];
        let two = Report::parse(&done(brunt(two).env("KEY", &made.key_pem)).with_status(0));
        assert_eq!(two.number("/outcomes/due"), 20);
        let log = nginx.log();
        let names = counts(&log, "ssl_client_s_dn");
        assert_eq!(names, BTreeMap::from([("", 30), ("CN=somebody", 50)]), "{version}");
        // A key that is not the certificate's.
        let other = nginx_key();
        let dir = Directory::new();
        let (certificate, key) = (dir.file("client.pem", &made.certificate_pem), dir.file("key.pem", other));
        let wrong = run(["-k", "--cert", &certificate, "--key", &key, "https://127.0.0.1:9/"]).with_status(2);
        assert!(wrong.stderr.contains("--cert and --key: they do not fit each other"), "{}", wrong.stderr);
    }
}

fn nginx_key() -> String {
    server_certificate().unwrap().key_pem
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn tls_and_plain_mixed_up() {
    let nginx = Nginx::start_tls(HELLO);
    // nginx answers those in HTTP.
    report(0, ["-n", "5", "-c", "1", &nginx.url("/")]).assert_all(5, 400);
    let plain = Nginx::start(HELLO);
    let refused = report(3, ["-n", "2", "-c", "1", "-k", &plain.tls_url()]);
    assert_eq!(refused.failures(), BTreeMap::from([("tls", 2)]), "{:?}", refused.reasons());
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn everything_else_over_tls() {
    for args in [
        "-n 1000 -c 3 -t 2",
        "-n 500 -c 2 --pipeline 8",
        "-n 500 -c 4 -r 5k",
        "-n 500 -c 4 --body hello",
        "-n 500 -c 4 -m HEAD",
        "-n 50 -c 4 --reconnect",
    ] {
        let nginx = Nginx::start_tls(&format!("keepalive_requests 100; {HELLO}"));
        let n: u64 = args.split(' ').nth(1).unwrap().parse().unwrap();
        let (ca, url) = (trusted(&nginx), nginx.tls_url());
        report(0, args.split(' ').chain(["--cacert", &ca, &url])).assert_all(n, 200);
        assert_eq!(nginx.count() as u64, n, "{args}");
    }
}

/// A server of OpenSSL's own, which ends each answer with a `close_notify` and then waits for the client to close.
struct OpenSsl(Child);

impl OpenSsl {
    fn start(dir: &Directory, port: u16) -> Self {
        let made = server_certificate().unwrap();
        dir.file("cert.pem", made.certificate_pem);
        dir.file("key.pem", made.key_pem);
        dir.file("page", "hello");
        let address = format!("127.0.0.1:{port}");
        let mut command = Command::new("openssl");
        command.args(["s_server", "-accept", &address, "-cert", "cert.pem", "-key", "key.pem", "-WWW"]);
        command.current_dir(dir).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child =
            command.spawn().unwrap_or_else(|e| panic!("this test needs openssl ({e}): `make test` installs it"));
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(said.any(|line| line.unwrap().contains("ACCEPT")), "openssl does not listen on {address}");
        std::thread::spawn(move || said.for_each(drop));
        Self(child)
    }
}

impl Drop for OpenSsl {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "needs openssl: make test installs it"]
fn an_answer_may_end_with_the_tls_session() {
    let (dir, port) = (Directory::new(), free_port());
    let _server = OpenSsl::start(&dir, port);
    let url = format!("https://127.0.0.1:{port}/page");
    // It serves one connection at a time.
    report(0, ["-n", "5", "-c", "1", "-t", "1", "-k", "--timeout", "60s", &url]).assert_all(5, 200);
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn tls_over_a_unix_socket() {
    let nginx = Nginx::start_tls(HELLO);
    let (ca, socket) = (trusted(&nginx), nginx.socket());
    report(0, ["-n", "50", "--cacert", &ca, "--unix-socket", &socket, "https://localhost/"]).assert_all(50, 200);
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn a_large_body_over_tls_is_sent_in_full() {
    let nginx =
        Nginx::start_tls("client_max_body_size 0; client_body_buffer_size 4m; location / { proxy_pass http://sink; }");
    let body = nginx.dir.file("body", "0123456789".repeat(300_000));
    report(0, ["-n", "6", "-c", "2", "-k", "--body-file", &body, &nginx.tls_url()]).assert_all(6, 200);
    let log = nginx.log();
    assert!(log.len() == 6 && log.iter().all(|line| line.get("request_body").len() == 3_000_000));
}
