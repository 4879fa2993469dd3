//! Tunnels through proxies that are not ours (`--proxy`), and through one that refuses.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;

use brunt_testbed::server::{ServedProtocol, Server, ServerConfig};
use brunt_testbed::tls::Tls;

use crate::program::{Directory, brunt, done, nobody, run, until};
use crate::report::{Report, report};

/// tinyproxy. It ends with its test, however that ends.
struct Proxy {
    child: Child,
    address: String,
    dir: Directory,
}

impl Proxy {
    fn start(more: &str) -> Self {
        let dir = Directory::new();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let log = dir.file("log", "");
        let text = format!(
            "Port {port}\nListen 127.0.0.1\nTimeout 60\nMaxClients 100\nLogFile \"{log}\"\nLogLevel Connect\n{more}\n"
        );
        let settings = dir.file("tinyproxy.conf", text);
        let child = Command::new("tinyproxy").args(["-d", "-c", &settings]).stdout(Stdio::null()).spawn();
        let child = child.unwrap_or_else(|error| panic!("tinyproxy: {error}: make test installs it"));
        let address = format!("127.0.0.1:{port}");
        until("tinyproxy listens", || std::net::TcpStream::connect(&address).is_ok());
        Self { child, address, dir }
    }

    /// The connections that it was asked for.
    fn asked(&self) -> usize {
        let log = std::fs::read_to_string(self.dir.path("log")).unwrap();
        log.lines().filter(|line| line.contains("CONNECT 127.0.0.1:")).count()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "needs tinyproxy: make test installs it"]
fn every_protocol_goes_through_a_proxy() {
    let proxy = Proxy::start("");
    let through = |args: &[&str], url: &str| {
        report(
            0,
            [&["-n", "50", "-c", "2", "-t", "1", "-k", "-x", &format!("http://{}", proxy.address)], args, &[url]]
                .concat(),
        )
    };
    let plain = Server::start(ServerConfig::default()).unwrap();
    let secure = Server::start(ServerConfig { tls: Some(Tls::default()), ..ServerConfig::default() }).unwrap();
    for (server, args) in [(&plain, &[][..]), (&plain, &["--http", "2"]), (&secure, &[]), (&secure, &["--http", "2"])] {
        through(args, &server.url()).assert_all(50, 200);
    }
    let socket = Server::start(ServerConfig { speaks: ServedProtocol::WebSocket, ..ServerConfig::default() }).unwrap();
    through(&["--message", "hi"], &socket.url()).assert_all(50, 0);
    assert_eq!(proxy.asked(), 10, "a tunnel for each connection");
    // The peer speaks first: what comes behind the proxy's answer is the peer's.
    let greets = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = greets.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in greets.incoming() {
            std::thread::spawn(move || {
                let mut stream = stream.unwrap();
                stream.write_all(b"hello\n").unwrap();
                let mut bytes = [0; 5];
                while stream.read_exact(&mut bytes).is_ok() && stream.write_all(b"pong\n").is_ok() {}
            });
        }
    });
    let tcp = ["--send", "ping\\n", "--until", "\\n", "--greeting", "\\n", "--expect", "pong"];
    through(&tcp, &format!("tcp://{address}")).assert_all(50, 0);
}

#[test]
#[ignore = "needs tinyproxy: make test installs it"]
fn a_proxys_credentials_go_to_it_alone() {
    let proxy = Proxy::start("BasicAuth me hunter2");
    let heads = TcpListener::bind("127.0.0.1:0").unwrap();
    let (target, (sender, heard)) = (format!("http://{}/", heads.local_addr().unwrap()), channel());
    std::thread::spawn(move || {
        for stream in heads.incoming() {
            let (mut stream, mut bytes) = (stream.unwrap(), [0; 4000]);
            let n = stream.read(&mut bytes).unwrap();
            let _ = sender.send(String::from_utf8_lossy(&bytes[..n]).into_owned());
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    for url in [format!("http://me:hunter2@{}", proxy.address), format!("http://me:@PW@{}", proxy.address)] {
        let args =
            ["-n", "2", "-c", "1", "-t", "1", "--basic", "you:t0p", "--format", "json", "--proxy", &url, &target];
        let told = done(brunt(args).env("PW", "hunter2"));
        assert!(!told.stdout.contains("hunter2") && !told.stderr.contains("hunter2"), "{told:#?}");
        Report::parse(&told.with_status(0)).assert_all(2, 200);
        for head in heard.try_iter() {
            assert!(head.contains("Authorization: Basic eW91OnQwcA==") && !head.contains("Proxy-"), "{head}");
        }
    }
    let wrong = report(3, ["-n", "2", "-c", "1", "-t", "1", "-x", &proxy.address, &target]);
    assert!(wrong.reasons().keys().any(|why| why.starts_with("connect: the proxy wants credentials")), "{wrong:#?}");
}

#[test]
fn a_proxy_that_refuses_is_named() {
    let (listener, (_kept, url)) = (TcpListener::bind("127.0.0.1:0").unwrap(), nobody());
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for (stream, answer) in
            listener.incoming().zip(["HTTP/1.1 502 no such host\r\n\r\n", "220 mail\r\n\r\n", ""].iter().cycle())
        {
            let (mut stream, mut bytes) = (stream.unwrap(), [0; 1000]);
            let _ = stream.read(&mut bytes);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    let told = report(3, ["-n", "9", "-c", "1", "-t", "1", "--proxy", &address, "http://no.such.host.example/"]);
    let reasons = told.reasons();
    for why in [
        "opened no tunnel: it answered HTTP/1.1 502 no such host",
        "is not HTTP: 220 mail",
        "closed before it had answered",
    ] {
        assert!(
            reasons.keys().any(|reason| reason.starts_with("connect: ") && reason.contains(why)),
            "{why}: {reasons:?}"
        );
    }
    let gone = run(["-n", "1", "-t", "1", "--proxy", url.as_str(), "http://127.0.0.1/"]).with_status(3);
    let said = "✗ no way through the proxy: connect × 1 (the proxy: connection refused)";
    assert!(gone.stdout.starts_with(said), "{gone:#?}");
}
