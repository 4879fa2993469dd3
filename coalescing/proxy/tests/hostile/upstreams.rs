//! Upstreams that break off, are late or say two things at once: each client gets a whole answer, or a connection that
//! HTTP can tell to be broken.

use brunt_proxy::Config;
use tokio::io::AsyncWriteExt as _;
use tokio::time::{Instant, sleep};

use crate::wire;
use crate::world::{SECOND, World, config};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// A world in which an answer has come over the connection to the upstream, which is kept.
async fn pooled(world: &mut World) -> (crate::world::Client, crate::world::Upstream) {
    let mut client = world.sends(GET).await;
    let mut upstream = world.accept().await;
    upstream.answers("first").await;
    assert_eq!(client.answer().await.body, b"first");
    (client, upstream)
}

#[tokio::test(start_paused = true)]
async fn a_pooled_connection_that_has_just_ended_is_not_the_clients_affair() {
    for method in ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"] {
        let mut world = World::new();
        let (mut client, mut upstream) = pooled(&mut world).await;
        client.send(format!("{method} / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").as_bytes()).await;
        // The request has come, and no answer does.
        upstream.head().await;
        drop(upstream);
        let head = world.accept().await.answers("").await;
        assert!(head.starts_with(&format!("{method} / HTTP/1.1\r\n")), "{head}");
        assert_eq!(client.answer().await.status(), 200, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_again_is_sent_once_and_over_a_fresh_connection() {
    let mut world = World::new();
    let (mut client, mut upstream) = pooled(&mut world).await;
    client.send(GET).await;
    upstream.head().await;
    drop(upstream);
    let mut fresh = world.accept().await;
    fresh.head().await;
    drop(fresh);
    assert_eq!(client.answer().await.status(), 502);
    assert!(world.accepts_now().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_done_is_not_sent_again() {
    let mut world = World::new();
    let (mut client, mut upstream) = pooled(&mut world).await;
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").await;
    upstream.head().await;
    drop(upstream);
    assert_eq!(client.answer().await.status(), 502);
    assert!(world.accepts_now().await.is_none());
    // Nor is what broke off over a connection that had brought nothing yet, or in the middle of its answer.
    let mut world = World::new();
    let mut client = world.sends(GET).await;
    world.accept().await.head().await;
    assert_eq!(client.answer().await.status(), 502);
    assert!(world.accepts_now().await.is_none());
    let mut world = World::new();
    let (mut client, mut upstream) = pooled(&mut world).await;
    client.send(GET).await;
    upstream.head().await;
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf").await;
    drop(upstream);
    let reading = client.answers().await;
    assert!(reading.is_cut && reading.messages.is_empty(), "{reading:?}");
    assert!(world.accepts_now().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_off_can_be_told_to() {
    for (begins, version) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", "1.1"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", "1.1"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nha", "1.1"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", "1.0"),
    ] {
        let mut world = World::new();
        let mut client = world.sends(format!("GET / HTTP/{version}\r\nHost: a\r\n\r\n").as_bytes()).await;
        let mut upstream = world.accept().await;
        upstream.head().await;
        upstream.send(begins.as_bytes()).await;
        drop(upstream);
        let reading = client.answers().await;
        assert!(reading.is_cut && reading.messages.is_empty(), "{begins:?}: {reading:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_never_begins_is_a_502() {
    let answers: [&[u8]; 6] =
        [b"", b"H", b"HTTP/1.1 200", b"HTTP/1.1 200 OK\r\nA: b\r\n", b"\0\0\0\0", b"SSH-2.0-x\r\n"];
    for begins in answers {
        let mut world = World::new();
        let mut client = world.sends(GET).await;
        let mut upstream = world.accept().await;
        upstream.head().await;
        upstream.send(begins).await;
        drop(upstream);
        assert_eq!(client.answer().await.status(), 502, "{:?}", String::from_utf8_lossy(begins));
        // And the connection goes on.
        client.send(GET).await;
        world.accept().await.answers("ok").await;
        assert_eq!(client.answer().await.body, b"ok");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_whose_end_is_in_doubt_is_none() {
    for fields in [
        "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "Content-Length: 2\r\nContent-Length: 3\r\n\r\nok!",
        "Content-Length: 2, 3\r\n\r\nok!",
        "Content-Length: +2\r\n\r\nok",
    ] {
        let mut world = World::new();
        let mut client = world.sends(GET).await;
        let mut upstream = world.accept().await;
        upstream.head().await;
        upstream.send(format!("HTTP/1.1 200 OK\r\n{fields}").as_bytes()).await;
        assert_eq!(client.answer().await.status(), 502, "{fields}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_mended_where_only_its_form_is_wrong() {
    let mut world = World::new();
    let mut client = world.sends(GET).await;
    let mut upstream = world.accept().await;
    upstream.head().await;
    let fields = (0..120).map(|number| format!("X-F{number}: 1\r\n")).collect::<Vec<_>>().concat();
    let head = format!(
        "HTTP/1.1 499 Gone Away\r\nServer : x\r\nContent-Length: 2, 2\r\nX-Coalesced: leader\r\n{fields}\r\nok"
    );
    upstream.send(head.as_bytes()).await;
    let answer = client.answer().await;
    assert_eq!(answer.start, "HTTP/1.1 499 Gone Away");
    let values = |name: &str| {
        let all = answer.fields.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        all.map(|(_, value)| value.clone()).collect::<Vec<_>>()
    };
    assert_eq!([values("server"), values("content-length"), values("x-f119")], [["x"], ["2"], ["1"]]);
    assert!(values("x-coalesced").is_empty());
}

#[tokio::test(start_paused = true)]
async fn answers_that_nobody_asked_for_are_nobodys() {
    let mut world = World::new();
    let (mut client, mut upstream) = pooled(&mut world).await;
    // A second answer to the first request, which would be another client's.
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong").await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    client.send(GET).await;
    world.accept().await.answers("right").await;
    assert_eq!(client.answer().await.body, b"right");
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_is_a_504_and_an_upload_takes_its_own_time() {
    let mut world = World::new();
    let began = Instant::now();
    let mut client = world.sends(GET).await;
    let _upstream = world.accept().await;
    assert_eq!(client.answer().await.status(), 504);
    assert!(began.elapsed() >= 40 * SECOND && began.elapsed() <= 45 * SECOND, "{:?}", began.elapsed());
    // An upload that takes longer than the upstream may.
    let mut world = World::new();
    let mut client = world.sends(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n").await;
    let mut upstream = world.accept().await;
    upstream.head().await;
    for _ in 0..10 {
        sleep(15 * SECOND).await;
        client.send(b"x").await;
    }
    sleep(30 * SECOND).await;
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    assert_eq!(client.answer().await.status(), 200);
    // One that the upstream does not take is the upstream's affair.
    let mut world = World::with_config(&Config { max_body: 1 << 30, ..config() });
    let client = world.sends(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n").await;
    let (mut reads, mut writes) = tokio::io::split(client.stream);
    let uploading = tokio::spawn(async move { writes.write_all(&vec![0; 100_000_000]).await });
    let mut upstream = world.accept().await;
    upstream.head().await;
    let mut all = Vec::new();
    let _ = tokio::io::AsyncReadExt::read_to_end(&mut reads, &mut all).await;
    assert_eq!(wire::answers(&all, &[]).unwrap().messages[0].status(), 504);
    uploading.abort();
}
