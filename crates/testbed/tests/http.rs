//! The HTTP target over real sockets.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod client;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use brunt_testbed::server::{Delay, Listen, Queue, Server, ServerConfig, Stall, StartError};
use client::{Client, connect};

const GET: &str = "GET / HTTP/1.1\r\nHost: test\r\n\r\n";

fn start(config: ServerConfig) -> Server {
    Server::start(config).unwrap()
}

#[test]
fn one_connection_serves_many_requests() {
    let server = start(ServerConfig::default());
    let mut client = connect(&server);
    for _ in 0..100 {
        let answer = client.get("/any?x");
        assert_eq!((answer.status, answer.text()), (200, "abcdefghijklm"));
    }
    assert_eq!(server.requests(), 100);
    assert_eq!(server.connections(), 1);
}

#[test]
fn pipelined_requests_get_as_many_answers() {
    let server = start(ServerConfig::default());
    let mut client = connect(&server);
    for _ in 0..3 {
        client.send(GET.repeat(5000));
        for _ in 0..5000 {
            assert_eq!(client.answer().status, 200);
        }
    }
    assert_eq!(server.requests(), 15_000);
}

#[test]
fn the_shop_keeps_a_session_over_connections() {
    let server = start(ServerConfig { workers: 2, ..ServerConfig::default() });
    let mut client = connect(&server);
    let login = "user=ann%40home&password=pw-ann%40home";
    client.send(format!("POST /shop/login HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n{login}", login.len()));
    let answer = client.answer();
    assert_eq!((answer.status, answer.header("Location")), (303, Some("/shop/account")));
    let cookie = answer.header("Set-Cookie").unwrap().split(';').next().unwrap();
    for _ in 0..4 {
        let mut another = connect(&server);
        another.send(format!("GET http://any/shop/account?x HTTP/1.1\r\nHost: test\r\nCookie: {cookie}\r\n\r\n"));
        let answer = another.answer();
        assert_eq!((answer.status, answer.text()), (200, "{\"plan\":\"free\",\"user\":\"ann@home\"}\n"));
        // A path that only begins like the shop's is not in it.
        assert_eq!(another.get("/shopping").text(), "abcdefghijklm");
    }
    assert_eq!(connect(&server).get("/shop/account").status, 302);
    client.send("POST /shop/cart HTTP/1.1\r\nHost: test\r\nContent-Length: 99999999\r\n\r\n");
    assert_eq!(client.answer().status, 413);
}

#[test]
fn a_head_request_gets_the_head_of_a_get() {
    let server = start(ServerConfig::default());
    let mut client = connect(&server);
    client.send("HEAD / HTTP/1.1\r\nHost: test\r\n\r\n");
    let (status, head) = client.head();
    let answer = client.get("/");
    assert_eq!((status, head), (200, answer.head));
}

#[test]
fn http_1_0_closes_unless_asked_not_to() {
    let server = start(ServerConfig::default());
    let mut client = connect(&server);
    client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert_eq!(client.answer().header("Connection"), Some("keep-alive"));
    client.send("GET / HTTP/1.0\r\n\r\n");
    assert_eq!(client.answer().header("Connection"), Some("close"));
    assert!(client.rest().is_empty());
}

#[test]
fn connection_close_is_honoured() {
    let server = start(ServerConfig::default());
    let mut client = connect(&server);
    client.send("GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    assert_eq!(client.answer().header("Connection"), Some("close"));
    assert!(client.rest().is_empty());
}

#[test]
fn a_half_closed_client_still_gets_its_answers() {
    let server = start(ServerConfig { delay: Delay::Fixed(Duration::from_millis(5)), ..ServerConfig::default() });
    let mut client = connect(&server);
    client.send(GET.repeat(2));
    client.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.answer().status, 200);
    assert_eq!(client.answer().status, 200);
    assert!(client.rest().is_empty());
}

#[test]
fn bodies_are_read_and_forgotten() {
    let server = start(ServerConfig::default());
    let mut client = connect(&server);
    let length = 3_000_000;
    client.send(format!("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\n"));
    client.send(vec![b'x'; length]);
    assert_eq!(client.answer().status, 200);
    client.send("PUT / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n");
    for _ in 0..10 {
        client.send(format!("ffff;x\r\n{}\r\n", "y".repeat(0xffff)));
    }
    client.send("0\r\nTrailer: x\r\n\r\n");
    assert_eq!(client.answer().status, 200);
    assert_eq!(server.requests(), 2);
}

#[test]
fn continue_comes_before_the_body_is_sent() {
    let server = start(ServerConfig::default());
    let mut client = connect(&server);
    client.send("POST /_/echo HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    assert_eq!(client.head().0, 100);
    client.send("ok");
    assert_eq!(client.answer().text(), "ok");
}

#[test]
fn echo_sends_the_body_back_up_to_a_limit() {
    let server = start(ServerConfig::default());
    let mut client = connect(&server);
    let body: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
    client.send(format!("POST /_/echo HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n", body.len()));
    client.send(&body);
    assert!(client.answer().body == body);
    client.send(format!("POST /_/echo HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n", body.len() + 1));
    // The body is not waited for, and sending it all the same does not lose the answer.
    client.send(&body);
    let answer = client.answer();
    assert_eq!((answer.status, answer.header("Connection")), (413, Some("close")));
}

#[test]
fn bodies_of_any_length_and_framing_are_sent() {
    let server = start(ServerConfig::default());
    let mut client = connect(&server);
    assert!(client.get("/_/bytes/0").body.is_empty());
    let body = client.get("/_/bytes/5000001").body;
    assert_eq!(body.len(), 5_000_001);
    assert_eq!(&body[64_000..64_003], b"abc");
    let chunked = client.get("/_/chunked/20000");
    assert_eq!(chunked.header("Trailer"), Some("X-Bytes"));
    assert!(chunked.body.ends_with(b"\r\n0;brunt=last\r\nX-Bytes: 20000\r\n\r\n"));
    let until_close = client.get("/_/close/3000000");
    assert_eq!(until_close.header("Connection"), Some("close"));
    assert_eq!(until_close.body.len(), 3_000_000);
}

#[test]
fn a_long_default_body_is_sent_whole() {
    let server = start(ServerConfig { body_bytes: 10_000_000, ..ServerConfig::default() });
    let mut client = connect(&server);
    client.send(GET.repeat(3));
    for _ in 0..3 {
        assert_eq!(client.answer().body.len(), 10_000_000);
    }
}

#[test]
fn headers_and_count_and_status_tell_what_they_should() {
    let server = start(ServerConfig::default());
    let mut client = connect(&server);
    assert_eq!(client.get("/_/headers?a").text(), "GET /_/headers?a HTTP/1.1\r\nHost: test\r\n");
    assert_eq!(client.get("/_/status/418").status, 418);
    assert_eq!(client.get("/_/status/304").status, 304);
    assert_eq!(client.get("/_/count").text(), "3");
    let wrong = client.get("/_/status/1000");
    assert_eq!((wrong.status, wrong.text()), (404, "expected a status from 200 to 599 after the last slash\n"));
}

#[test]
fn what_is_not_http_is_told_so_and_closed() {
    let server = start(ServerConfig::default());
    let mut client = connect(&server);
    client.send("\x16\x03\x01\x02\x00");
    let answer = client.answer();
    assert_eq!(answer.status, 400);
    assert!(answer.text().starts_with("expected a request line"));
    assert!(client.rest().is_empty());
    let mut client = connect(&server);
    client.send(format!("GET / HTTP/1.1\r\nX: {}", "y".repeat(100_000)));
    assert_eq!(client.answer().status, 431);
}

#[test]
fn close_after_ends_each_connection_with_its_nth_answer() {
    let server = start(ServerConfig { close_after: Some(3), ..ServerConfig::default() });
    for _ in 0..2 {
        let mut client = connect(&server);
        client.send(GET.repeat(10));
        let closes: Vec<bool> = (0..3).map(|_| client.answer().header("Connection").is_some()).collect();
        assert_eq!(closes, [false, false, true]);
        assert!(client.rest().is_empty());
    }
    assert_eq!(server.requests(), 6);
}

#[test]
fn errors_come_in_the_share_asked_for() {
    let statuses = |seed| {
        let server = start(ServerConfig { error_rate: 0.5, seed, ..ServerConfig::default() });
        let mut client = connect(&server);
        (0..200).map(|_| client.get("/").status).collect::<Vec<_>>()
    };
    let first = statuses(1);
    let errors = first.iter().filter(|&&status| status == 503).count();
    assert!((50..150).contains(&errors), "{errors}");
    assert_eq!(first, statuses(1));
    assert_ne!(first, statuses(2));
}

#[test]
fn a_delay_holds_up_its_connection_and_no_other() {
    let server = start(ServerConfig::default());
    let mut slow = connect(&server);
    slow.send("GET /_/delay/400 HTTP/1.1\r\nHost: test\r\n\r\nGET /_/count HTTP/1.1\r\nHost: test\r\n\r\n");
    let mut fast = connect(&server);
    for _ in 0..10 {
        assert_eq!(fast.get("/").status, 200);
    }
    assert_eq!(slow.answer().text(), "delayed, as asked for\n");
    slow.answer();
    assert_eq!(server.requests(), 12);
}

#[test]
fn a_delayed_answer_is_not_early() {
    let delay = Duration::from_millis(20);
    let server = start(ServerConfig { delay: Delay::Fixed(delay), ..ServerConfig::default() });
    let mut client = connect(&server);
    let sent = server.started().elapsed();
    client.send(GET.repeat(3));
    for _ in 0..3 {
        client.answer();
        assert!(server.started().elapsed() >= sent + delay);
    }
    // The other paths take no part in it, but wait for their turn.
    assert_eq!(client.get("/_/count").text(), "3");
}

#[test]
fn nothing_is_answered_in_a_stall_and_everything_after_it() {
    let stall = Stall { length: Duration::from_millis(60), period: Duration::from_millis(80) };
    let server = start(ServerConfig { stall: Some(stall), workers: 2, ..ServerConfig::default() });
    let mut clients: Vec<_> = (0..5).map(|_| connect(&server)).collect();
    for _ in 0..4 {
        let (asked, left) = loop {
            let now = server.started().elapsed();
            if let Some(left) = stall.remaining(now) {
                break (now, left);
            }
            assert_eq!(clients[0].get("/").status, 200);
        };
        for client in &mut clients {
            client.send(GET.repeat(2));
        }
        for client in &mut clients {
            assert_eq!(client.answer().status, 200);
            assert!(server.started().elapsed() >= asked + left);
            assert_eq!(client.answer().status, 200);
        }
        // New connections wait too.
        let now = server.started().elapsed();
        let left = stall.remaining(now).unwrap_or_default();
        assert_eq!(connect(&server).get("/").status, 200);
        assert!(server.started().elapsed() >= now + left);
    }
}

#[test]
fn a_stalled_server_stops_at_once() {
    let period = Duration::from_secs(3_600);
    let stall = Stall { length: period.saturating_sub(Duration::from_millis(1)), period };
    let server = start(ServerConfig { stall: Some(stall), ..ServerConfig::default() });
    std::thread::sleep(Duration::from_millis(5));
    let mut client = connect(&server);
    client.send(GET);
    server.stop();
}

#[test]
fn a_peer_that_does_not_read_is_not_read_from() {
    let server = start(ServerConfig { body_bytes: 100_000, ..ServerConfig::default() });
    let mut client = connect(&server);
    client.stream.set_nonblocking(true).unwrap();
    let mut sent = 0;
    // Both ways fill up long before this.
    while sent < 1 << 30 {
        match client.stream.write(GET.repeat(1000).as_bytes()) {
            Ok(length) => sent += length,
            Err(_) if server.requests() > 0 => {
                std::thread::sleep(Duration::from_millis(20));
                if client.stream.write(GET.as_bytes()).is_err() {
                    break;
                }
            }
            Err(_) => std::thread::yield_now(),
        }
    }
    assert!(sent < 1 << 30);
    assert_eq!(connect(&server).get("/").status, 200);
    client.stream.set_nonblocking(false).unwrap();
    for _ in 0..1000 {
        assert_eq!(client.answer().body.len(), 100_000);
    }
}

#[test]
fn ipv6_is_served() {
    let Ok(server) = Server::start(ServerConfig { address: "[::1]:0".parse().unwrap(), ..ServerConfig::default() })
    else {
        // A machine without IPv6.
        return;
    };
    assert!(server.url().starts_with("http://[::1]:"), "{}", server.url());
    assert_eq!(connect(&server).get("/").status, 200);
}

#[test]
fn a_unix_socket_is_served_and_removed() {
    let path = std::env::temp_dir().join(format!("brunt-testbed-{}.sock", std::process::id()));
    // What a server leaves that was killed.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let config = ServerConfig { address: Listen::Unix(path.clone()), workers: 2, ..ServerConfig::default() };
    let server = start(config.clone());
    let mut clients: Vec<_> = (0..10).map(|_| Client::new(UnixStream::connect(&path).unwrap())).collect();
    for client in &mut clients {
        assert_eq!(client.get("/_/bytes/3000000").body.len(), 3_000_000);
    }
    let error = Server::start(config.clone()).unwrap_err();
    assert!(matches!(error, StartError::InUse { .. }), "{error}");
    server.stop();
    assert!(!path.exists());
    std::fs::write(&path, "no socket").unwrap();
    let error = Server::start(config).unwrap_err();
    assert!(matches!(error, StartError::NotASocket { .. }), "{error}");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn workers_share_a_port() {
    let server = start(ServerConfig { workers: 3, ..ServerConfig::default() });
    let mut clients: Vec<_> = (0..30).map(|_| connect(&server)).collect();
    for client in &mut clients {
        assert_eq!(client.get("/").status, 200);
    }
    assert_eq!((server.requests(), server.connections()), (30, 30));
}

#[test]
fn a_port_in_use_is_told_so() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    for workers in [1, 2] {
        let address = Listen::Tcp(taken.local_addr().unwrap());
        let error = Server::start(ServerConfig { address, workers, ..ServerConfig::default() }).unwrap_err();
        assert!(matches!(error, StartError::InUse { .. }), "{error}");
        assert!(error.to_string().contains("port 0 takes a free one"), "{error}");
    }
}

#[test]
fn a_port_shared_by_workers_is_not_shared_with_another_server() {
    let first = start(ServerConfig { workers: 2, ..ServerConfig::default() });
    let error = Server::start(ServerConfig { address: first.addr().clone(), workers: 2, ..ServerConfig::default() })
        .unwrap_err();
    assert!(matches!(error, StartError::InUse { .. }), "{error}");
    let address = first.addr().clone();
    first.stop();
    start(ServerConfig { address, workers: 2, ..ServerConfig::default() });
}

#[test]
fn stopping_ends_open_connections() {
    let server = start(ServerConfig { workers: 2, ..ServerConfig::default() });
    let mut client = connect(&server);
    client.get("/");
    server.stop();
    assert_eq!(client.stream.read(&mut [0; 1]).unwrap_or(0), 0);
}

#[test]
fn all_connections_and_workers_wait_for_the_same_servers() {
    let service_time = Delay::Fixed(Duration::from_millis(20));
    let queue = Some(Queue { count: 2, service_time });
    let server = start(ServerConfig { queue, workers: 2, ..ServerConfig::default() });
    let mut clients: Vec<_> = (0..4).map(|_| connect(&server)).collect();
    let started = Instant::now();
    for client in &mut clients {
        client.send(GET.repeat(5));
    }
    // A path of its own needs no server.
    assert_eq!(connect(&server).get("/_/count").status, 200);
    for client in &mut clients {
        (0..5).for_each(|_| assert_eq!(client.answer().status, 200));
    }
    // 20 requests of 20 ms on two servers, and not one sooner.
    assert!(started.elapsed() >= Duration::from_millis(200));
}
