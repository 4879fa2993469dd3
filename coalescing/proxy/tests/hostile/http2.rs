//! HTTP/2: streams that are not read, connections without streams, and requests that HTTP/1.1 would read in two ways.

use bytes::Bytes;
use http::{Request, Version};
use tokio::io::AsyncReadExt as _;
use tokio::time::sleep;

use crate::world::{Client, SECOND, World};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";

/// A connection of HTTP/2, and the task that drives it.
async fn http2(client: Client) -> h2::client::SendRequest<Bytes> {
    let (sender, connection) = h2::client::Builder::new().handshake::<_, Bytes>(client.stream).await.unwrap();
    tokio::spawn(async move {
        let _ = connection.await;
    });
    sender
}

fn get(path: &str) -> Request<()> {
    Request::builder().version(Version::HTTP_2).uri(format!("http://a{path}")).body(()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_not_read_ends_and_the_others_go_on() {
    let mut world = World::new();
    let mut sender = http2(world.connect()).await;
    let (stalled, _) = sender.send_request(get("/stalled"), true).unwrap();
    let mut upstream = world.accept().await;
    upstream.head().await;
    let answering = tokio::spawn(async move {
        upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n").await;
        let _ = tokio::io::AsyncWriteExt::write_all(&mut upstream.stream, &vec![b'x'; 9_000_000]).await;
    });
    // Its window is never opened.
    let mut stalled = stalled.await.unwrap().into_body();
    let began = tokio::time::Instant::now();
    for number in 0..8 {
        sleep(5 * SECOND).await;
        let (answer, _) = sender.send_request(get(&format!("/{number}")), true).unwrap();
        world.accept().await.answers("ok").await;
        assert_eq!(answer.await.unwrap().status(), 200);
    }
    let mut error = None;
    while let Some(piece) = stalled.data().await {
        if let Err(failed) = piece {
            error = Some(failed);
            break;
        }
    }
    assert!(error.is_some_and(|error| error.is_reset()), "after {:?}", began.elapsed());
    answering.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_streams_ends_though_it_pings() {
    let world = World::new();
    let mut client = world.sends(&[PREFACE, SETTINGS].concat()).await;
    let began = tokio::time::Instant::now();
    while !client.served.is_finished() {
        let ping = [&b"\0\0\x08\x06\0\0\0\0\0"[..], b"12345678"].concat();
        let _ = tokio::io::AsyncWriteExt::write_all(&mut client.stream, &ping).await;
        // And answers those of the proxy.
        let mut came = [0; 4096];
        while let Ok(Ok(count @ 1..)) = tokio::time::timeout(SECOND, client.stream.read(&mut came)).await {
            let mut rest = &came[..count];
            while rest.len() >= 17 && rest[3] == 6 && rest[4] == 0 {
                let pong = [&b"\0\0\x08\x06\x01\0\0\0\0"[..], &rest[9..17]].concat();
                let _ = tokio::io::AsyncWriteExt::write_all(&mut client.stream, &pong).await;
                rest = &rest[17..];
            }
        }
        assert!(began.elapsed() < 200 * SECOND, "it lasts");
    }
    assert!(began.elapsed() >= 80 * SECOND, "{:?}", began.elapsed());
}

/// A frame of headers, without compression, that ends its stream if so asked.
fn headers(fields: &[(&str, &str)], ends: bool) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            assert!(text.len() < 127);
            block.push(text.len() as u8);
            block.extend_from_slice(text.as_bytes());
        }
    }
    let flags = if ends { 5 } else { 4 };
    [&[0, 0, block.len() as u8, 1, flags, 0, 0, 0, 1], block.as_slice()].concat()
}

fn data(text: &str) -> Vec<u8> {
    [&[0, 0, text.len() as u8, 0, 1, 0, 0, 0, 1], text.as_bytes()].concat()
}

const TARGET: [(&str, &str); 4] = [(":method", "POST"), (":scheme", "http"), (":path", "/a"), (":authority", "a")];

#[tokio::test(start_paused = true)]
async fn what_would_be_another_request_in_http1_is_refused() {
    let smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    let fields: [&[(&str, &str)]; 11] = [
        &[("content-length", "0")],
        &[("content-length", "5")],
        &[("content-length", "+36")],
        &[("transfer-encoding", "chunked")],
        &[("connection", "transfer-encoding")],
        &[("x", "y\r\ntransfer-encoding: chunked")],
        &[("x: y\r\ntransfer-encoding", "chunked")],
        &[("X", "y")],
        &[("host", "b")],
        &[("host", "a"), ("host", "a")],
        &[("x", "y\0z")],
    ];
    for extra in fields {
        let mut world = World::new();
        let request = [headers(&[&TARGET, extra].concat(), false), data(smuggled)].concat();
        let _client = world.sends(&[PREFACE, SETTINGS, &request].concat()).await;
        assert!(!reaches(&mut world).await, "{extra:?}");
    }
    for (at, wrong) in [
        (0, "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET"),
        (1, "http\r\nx: y"),
        (2, "/ HTTP/1.1\r\nHost: a\r\n\r\nGET /smuggled"),
        (2, "/a b"),
        (2, ""),
        (3, "a\r\nx: y"),
        (3, "me@a"),
    ] {
        let mut world = World::new();
        let mut target = TARGET;
        target[at].1 = wrong;
        let _client = world.sends(&[PREFACE, SETTINGS, &headers(&target, true)].concat()).await;
        assert!(!reaches(&mut world).await, "{wrong:?}");
    }
    let mut world = World::new();
    let _client = world.sends(&[PREFACE, SETTINGS, &headers(&TARGET, false), &data(smuggled)].concat()).await;
    assert!(reaches(&mut world).await, "what is right is passed on");
}

/// Whether a whole head reaches the upstream.
async fn reaches(world: &mut World) -> bool {
    let Some(mut upstream) = world.accepts_now().await else { return false };
    let mut came = Vec::new();
    let reading = async {
        while !came.windows(4).any(|four| four == b"\r\n\r\n") {
            let mut buffer = [0; 1024];
            match upstream.stream.read(&mut buffer).await {
                Ok(count @ 1..) => came.extend_from_slice(&buffer[..count]),
                _ => return false,
            }
        }
        true
    };
    tokio::time::timeout(SECOND, reading).await.unwrap_or(false)
}

#[tokio::test(start_paused = true)]
async fn cookies_in_pieces_become_one() {
    let mut world = World::new();
    let fields = [&TARGET[..], &[("cookie", "a=1"), ("cookie", "b=2")]].concat();
    let _client = world.sends(&[PREFACE, SETTINGS, &headers(&fields, true)].concat()).await;
    let head = world.accept().await.head().await;
    assert!(head.contains("\r\ncookie: a=1; b=2\r\n"), "{head}");
}
