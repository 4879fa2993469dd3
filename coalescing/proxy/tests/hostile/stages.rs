//! Every stage of a connection has a limit of time, and a connection has its place until its end.

use brunt_proxy::Config;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::sleep;

use crate::world::{SECOND, World, config};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

#[tokio::test(start_paused = true)]
async fn who_says_nothing_or_half_is_not_waited_for() {
    let limit = config().header_timeout;
    let silent: &[&[u8]] =
        &[b"", b"P", b"PRI * HTT", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r", b"GET / HTTP/1.1\r\nHost: a\r\n"];
    for bytes in silent {
        let world = World::new();
        let room = world.proxy.room();
        let mut client = world.sends(bytes).await;
        let lasted = client.lasts().await;
        assert!(lasted >= limit && lasted <= 2 * limit, "{:?}: {lasted:?}", String::from_utf8_lossy(bytes));
        assert_eq!(world.proxy.room(), room);
        assert_eq!(world.metric("timed_out_total"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_head_that_trickles_is_not_waited_for() {
    let world = World::new();
    let mut client = world.sends(b"GET / HTTP/1.1\r\nHost: a\r\n").await;
    let began = tokio::time::Instant::now();
    while !client.served.is_finished() {
        let _ = client.stream.write_all(b"a").await;
        sleep(SECOND).await;
    }
    assert!(began.elapsed() <= 12 * SECOND, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_request_ends() {
    let mut world = World::new();
    let mut client = world.sends(GET).await;
    world.accept().await.answers("ok").await;
    client.answer().await;
    let lasted = client.lasts().await;
    assert!(lasted >= 80 * SECOND && lasted <= 90 * SECOND, "{lasted:?}");
}

#[tokio::test(start_paused = true)]
async fn a_second_head_has_the_same_limit() {
    let mut world = World::new();
    let mut client = world.sends(GET).await;
    world.accept().await.answers("ok").await;
    client.answer().await;
    sleep(60 * SECOND).await;
    client.send(b"GET /").await;
    let lasted = client.lasts().await;
    assert!(lasted >= 10 * SECOND && lasted <= 20 * SECOND, "{lasted:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_awaited_is_within_no_limit_of_the_clients() {
    let mut world = World::with_config(&Config { response_timeout: 1000 * SECOND, ..config() });
    let mut client = world.sends(GET).await;
    let mut upstream = world.accept().await;
    upstream.head().await;
    sleep(900 * SECOND).await;
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    assert_eq!(client.answer().await.body, b"ok");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_of_its_answer_is_let_go() {
    let mut world = World::new();
    let mut client = world.sends(GET).await;
    let mut upstream = world.accept().await;
    upstream.head().await;
    // It may fail, once the proxy has let go of both.
    let answering = tokio::spawn(async move {
        let _ = upstream.stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n").await;
        let _ = upstream.stream.write_all(&vec![b'x'; 9_000_000]).await;
    });
    let lasted = client.lasts().await;
    assert!(lasted >= 20 * SECOND && lasted <= 40 * SECOND, "{lasted:?}");
    answering.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_its_time_has_all_of_its_answer() {
    let mut world = World::new();
    let mut client = world.sends(GET).await;
    let mut upstream = world.accept().await;
    upstream.head().await;
    let answering = tokio::spawn(async move {
        upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n").await;
        upstream.send(&vec![b'x'; 200_000]).await;
    });
    let mut all = Vec::new();
    while !all.ends_with(&[b'x'; 1]) || all.len() < 200_000 {
        sleep(15 * SECOND).await;
        let mut piece = vec![0; 16 * 1024];
        let count = client.stream.read(&mut piece).await.unwrap();
        assert!(count > 0, "it ended after {} bytes", all.len());
        all.extend_from_slice(&piece[..count]);
    }
    answering.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let mut world = World::new();
    let began = tokio::time::Instant::now();
    let mut client = world.sends(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345").await;
    let mut upstream = world.accept().await;
    upstream.head().await;
    let answer = client.answer().await;
    assert_eq!((answer.status(), answer.values("connection").next()), (408, Some("close")));
    assert!(began.elapsed() >= 20 * SECOND && began.elapsed() <= 25 * SECOND, "{:?}", began.elapsed());
    client.all().await;
    let mut rest = Vec::new();
    let _ = upstream.stream.read_to_end(&mut rest).await;
    assert_eq!(rest, b"12345");
}

const UPGRADE: &[u8] =
    b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n";

#[tokio::test(start_paused = true)]
async fn a_tunnel_keeps_its_place_and_ends_when_it_is_silent() {
    let mut world = World::new();
    let room = world.proxy.room();
    let mut client = world.sends(UPGRADE).await;
    let mut upstream = world.accept().await;
    assert!(upstream.head().await.contains("upgrade: websocket\r\n"));
    upstream.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n").await;
    assert_eq!(client.answer().await.status(), 101);
    client.lasts().await;
    for _ in 0..3 {
        sleep(150 * SECOND).await;
        client.send(b"ping").await;
        let mut got = [0; 4];
        upstream.stream.read_exact(&mut got).await.unwrap();
        assert_eq!(world.proxy.room(), room - 1, "the tunnel has given up its place");
    }
    let silent = tokio::time::Instant::now();
    assert!(client.all().await.is_empty());
    let lasted = silent.elapsed();
    assert!(lasted >= 160 * SECOND && lasted <= 330 * SECOND, "{lasted:?}");
    while world.proxy.room() != room {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_but_websocket_is_tunnelled() {
    for upgrade in ["h2c", "TLS/1.0", "spdy", "h2c, HTTP/2.0"] {
        let mut world = World::new();
        let request = format!(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: {upgrade}\r\nHTTP2-Settings: AAMAAABk\r\n\r\n"
        );
        let mut client = world.sends(request.as_bytes()).await;
        let head = world.accept().await.answers("ok").await;
        assert!(!head.contains("upgrade:") && !head.contains("connection:") && !head.contains("settings"), "{head}");
        assert_eq!(client.answer().await.status(), 200);
    }
    // And an upstream that switches without being asked to does not.
    let mut world = World::new();
    let mut client = world.sends(GET).await;
    let mut upstream = world.accept().await;
    upstream.head().await;
    upstream.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n").await;
    assert_eq!(client.answer().await.status(), 502);
}

#[tokio::test(start_paused = true)]
async fn a_protocol_that_the_operator_lists_is_tunnelled() {
    let mut world = World::with_config(&Config { upgrades: vec!["mine".parse().unwrap()], ..config() });
    let mut client =
        world.sends(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c, Mine\r\n\r\n").await;
    let mut upstream = world.accept().await;
    assert!(upstream.head().await.contains("upgrade: Mine\r\n"));
    upstream.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: mine\r\n\r\nhello").await;
    assert_eq!(client.answer().await.status(), 101);
    let mut hello = [0; 5];
    client.stream.read_exact(&mut hello).await.unwrap();
    assert_eq!(&hello, b"hello");
}

#[tokio::test(start_paused = true)]
async fn as_many_as_may_be_are_shut_out_for_no_longer_than_the_limit() {
    let world = World::with_config(&Config { max_connections: 10, ..config() });
    let mut silent: Vec<_> = (0..10).map(|_| world.connect()).collect();
    tokio::task::yield_now().await;
    assert_eq!(world.proxy.room(), 0);
    for client in &mut silent {
        client.lasts().await;
    }
    assert_eq!(world.proxy.room(), 10);
}
