//! Interim answers reach clients of HTTP/1.1, before their answer and nobody else's.

use tokio::io::AsyncReadExt as _;
use tokio::time::sleep;

use crate::wire;
use crate::world::{Client, SECOND, World, config};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const HINT: &[u8] =
    b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nConnection: x-hop\r\nX-Hop: 1\r\nX-Coalesced: leader\r\n\r\n";

/// What has come.
async fn came(client: &mut Client) -> String {
    let mut all = [0; 4096];
    let count = tokio::time::timeout(SECOND, client.stream.read(&mut all)).await.map_or(0, Result::unwrap);
    String::from_utf8(all[..count].to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_hint_comes_before_its_answer_is_there() {
    for coalesces in [true, false] {
        let mut config = config();
        config.coalesce = config.coalesce.filter(|_| coalesces);
        let mut world = World::with_config(&config);
        let mut client = world.sends(GET).await;
        let mut upstream = world.accept().await;
        upstream.head().await;
        upstream.send(HINT).await;
        let hint = "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\nvia: 1.1 brunt\r\n\r\n";
        assert_eq!(came(&mut client).await, hint);
        upstream.send(b"HTTP/1.1 102 Processing\r\n\r\n").await;
        assert_eq!(came(&mut client).await, "HTTP/1.1 102 Processing\r\nvia: 1.1 brunt\r\n\r\n");
        upstream.send(OK).await;
        assert_eq!(client.answer().await.body, b"ok");
    }
}

#[tokio::test(start_paused = true)]
async fn hints_that_come_with_their_answer_stand_before_it() {
    let mut world = World::new();
    let mut client = world.sends(&[GET, GET, b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"].concat()).await;
    let mut upstream = world.accept().await;
    for _ in 0..3 {
        upstream.head().await;
        upstream.send(&[HINT, HINT, OK].concat()).await;
    }
    let statuses: Vec<_> = client.answers().await.messages.iter().map(wire::Message::status).collect();
    assert_eq!(statuses, [103, 103, 200, 103, 103, 200, 103, 103, 200]);
}

/// The statuses that a client of this protocol is sent after a hint and an answer.
async fn statuses(request: &[u8]) -> Vec<u16> {
    let mut world = World::new();
    let mut client = world.sends(request).await;
    let mut upstream = world.accept().await;
    upstream.head().await;
    upstream.send(&[HINT, OK].concat()).await;
    client.answers().await.messages.iter().map(wire::Message::status).collect()
}

#[tokio::test(start_paused = true)]
async fn a_client_that_knows_no_hints_gets_none() {
    assert_eq!(statuses(b"GET / HTTP/1.0\r\nHost: a\r\n\r\n").await, [200]);
    assert_eq!(statuses(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await, [103, 200]);
}

#[tokio::test(start_paused = true)]
async fn the_hint_of_a_flight_whose_leader_has_gone_on_is_nobodys() {
    let mut world = World::new();
    let leader = world.sends(GET).await;
    let mut upstream = world.accept().await;
    upstream.head().await;
    let mut follower = world.sends(GET).await;
    sleep(SECOND).await;
    drop(leader);
    sleep(SECOND).await;
    upstream.send(&[HINT, OK].concat()).await;
    assert_eq!(follower.answer().await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_no_hints_is_cut_off_as_one_that_takes_no_answer() {
    let mut world = World::new();
    let mut client = world.sends(GET).await;
    let mut upstream = world.accept().await;
    upstream.head().await;
    // More than the client's pipe holds, and all of it before the answer.
    let hint = format!("HTTP/1.1 103 Early Hints\r\nLink: {}\r\n\r\n", "x".repeat(4000));
    for _ in 0..8 {
        upstream.send(hint.as_bytes()).await;
    }
    upstream.send(OK).await;
    assert_eq!(client.lasts().await, 20 * SECOND);
    // Nothing stands within something else.
    let all = client.answers().await;
    assert!(all.messages.iter().all(|message| message.status() == 103) && all.messages.len() >= 3);
}
