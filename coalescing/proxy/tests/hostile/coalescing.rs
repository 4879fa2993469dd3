//! What one client sends decides nothing of what others are answered.

use brunt_proxy::{Coalescing, Config};
use http::HeaderName;

use tokio::io::AsyncReadExt as _;
use tokio::time::sleep;

use crate::world::{Client, SECOND, Upstream, World, config};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

fn get(fields: &str) -> Vec<u8> {
    format!("GET /a HTTP/1.1\r\nHost: a\r\n{fields}\r\n").into_bytes()
}

/// How many requests reach the upstream of two at the same time, the first of which is hostile; and what it is sent of the
/// first.
async fn pair(config: &Config, hostile: &[u8], other: &[u8]) -> (usize, String) {
    let mut world = World::with_config(config);
    let _hostile = world.sends(hostile).await;
    let mut upstream = world.accept().await;
    let head = upstream.head().await;
    let _other = world.sends(other).await;
    match world.accepts_now().await {
        Some(_) => (2, head),
        None => (1, head),
    }
}

#[tokio::test(start_paused = true)]
async fn nominated_fields_are_what_is_passed_on_and_what_tells_apart() {
    let key_headers = vec![HeaderName::from_static("x-tenant")];
    let config = Config { coalesce: Some(Coalescing { key_headers, ..Coalescing::default() }), ..config() };
    for (name, value) in
        [("x-tenant", "1"), ("accept-language", "de"), ("origin", "https://b"), ("accept", "text/html")]
    {
        let hostile = get(&format!("Connection: {name}\r\n{name}: {value}\r\n"));
        // It is not taken away; but nobody else has the answer.
        let (reached, head) = pair(&config, &hostile, &get(&format!("{name}: {value}\r\n"))).await;
        assert_eq!(reached, 2, "{name}");
        assert!(head.to_ascii_lowercase().contains(&format!("\r\n{name}: {value}\r\n")), "{head}");
        let (reached, _) = pair(&config, &hostile, &get("")).await;
        assert_eq!(reached, 2, "{name}");
    }
    // Another field is taken away, and such a request goes alone, too.
    let (reached, head) = pair(&config, &get("Connection: x-own\r\nx-own: 1\r\n"), &get("")).await;
    assert_eq!(reached, 2);
    assert!(!head.contains("x-own"), "{head}");
    let (_, head) = pair(&config, &get("Connection: host\r\n"), &get("")).await;
    assert!(head.contains("host: a\r\n"), "{head}");
}

#[tokio::test(start_paused = true)]
async fn a_stranger_does_not_say_what_host_was_asked_for() {
    for claim in
        ["X-Forwarded-Host: evil", "X-Forwarded-Proto: gopher", "Forwarded: host=evil", "X-Forwarded-Prefix: /evil"]
    {
        let (reached, head) = pair(&config(), &get(&format!("{claim}\r\n")), &get("")).await;
        assert_eq!(reached, 1, "{claim}");
        assert!(!head.contains("evil") && !head.contains("gopher"), "{head}");
        let trusting = Config { trusted_proxies: vec!["192.0.2.0/24".parse().unwrap()], ..config() };
        let (reached, head) = pair(&trusting, &get(&format!("{claim}\r\n")), &get("")).await;
        assert_eq!(reached, 2, "{claim}");
        assert!(head.contains("evil") || head.contains("gopher"), "{head}");
    }
    for claim in ["X-HTTP-Method-Override: DELETE", "X-Original-URL: /admin", "X-Rewrite-URL: /admin"] {
        assert_eq!(pair(&config(), &get(&format!("{claim}\r\n")), &get("")).await.0, 2, "{claim}");
    }
}

/// Three clients that ask for the same, and the connection on which the first of them does.
async fn three(world: &mut World) -> (Vec<Client>, Upstream) {
    let mut clients = vec![world.sends(&get("")).await];
    let mut upstream = world.accept().await;
    upstream.head().await;
    for _ in 0..2 {
        clients.push(world.sends(&get("")).await);
    }
    assert!(world.accepts_now().await.is_none());
    (clients, upstream)
}

#[tokio::test(start_paused = true)]
async fn what_goes_wrong_with_one_request_is_not_answered_to_others() {
    for (status, callers) in [(400, 1), (405, 1), (414, 1), (431, 1), (429, 2), (502, 2), (504, 2)] {
        let mut world = World::new();
        let (mut clients, mut upstream) = three(&mut world).await;
        upstream.send(format!("HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n").as_bytes()).await;
        assert_eq!(clients[0].answer().await.status(), status);
        upstream.answers("right").await;
        // After a failure of the upstream's, two call at a time.
        if callers == 2 {
            world.accept().await.answers("right").await;
        }
        for client in &mut clients[1..] {
            assert_eq!(client.answer().await.body, b"right", "{status}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_breaks_off_is_asked_anew_for_the_others() {
    let mut world = World::new();
    let (mut clients, upstream) = three(&mut world).await;
    drop(upstream);
    assert_eq!(clients[0].answer().await.status(), 502);
    for _ in 0..2 {
        world.accept().await.answers("right").await;
    }
    for client in &mut clients[1..] {
        assert_eq!(client.answer().await.body, b"right");
    }
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_for_an_upstream_that_hangs_are_answered_with_the_first() {
    let mut world = World::new();
    let (mut clients, _upstream) = three(&mut world).await;
    let began = tokio::time::Instant::now();
    for client in &mut clients {
        assert_eq!(client.answer().await.status(), 504);
    }
    assert!(began.elapsed() < 2 * config().response_timeout, "{:?}", began.elapsed());
    assert!(world.accepts_now().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_read_after_a_write_reaches_the_upstream() {
    for method in ["PUT", "POST", "DELETE", "PATCH"] {
        let mut world = World::new();
        let _early = world.sends(&get("")).await;
        let mut before = world.accept().await;
        before.head().await;
        let mut writer =
            world.sends(format!("{method} /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx").as_bytes()).await;
        world.accept().await.answers("written").await;
        assert_eq!(writer.answer().await.body, b"written");
        writer.send(&get("")).await;
        // Over the connection on which the write went.
        before.send(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold").await;
        let answer = tokio::time::timeout(SECOND, writer.answer()).await;
        assert!(answer.is_err(), "{method}: {answer:?}");
    }
}

/// A world whose proxy coalesces by these settings.
fn world_with(change: impl FnOnce(&mut Coalescing)) -> World {
    let mut config = config();
    change(config.coalesce.as_mut().unwrap());
    World::with_config(&config)
}

/// The calls that are made at once for two requests like this.
async fn calls(change: impl FnOnce(&mut Coalescing), request: &str) -> usize {
    let mut world = world_with(change);
    let _clients = [world.sends(request.as_bytes()).await, world.sends(request.as_bytes()).await];
    calls_now(&mut world).await.len()
}

/// The connections that are made without any time going by.
async fn calls_now(world: &mut World) -> Vec<Upstream> {
    let mut calls = Vec::new();
    while let Some(call) = world.accepts_now().await {
        calls.push(call);
    }
    calls
}

#[tokio::test(start_paused = true)]
async fn all_safe_methods_are_coalesced_where_that_is_wanted() {
    for method in ["OPTIONS", "TRACE"] {
        let request = format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(calls(|_| {}, &request).await, 2, "{method}");
        assert_eq!(calls(|with| with.all_safe_methods = true, &request).await, 1, "{method}");
    }
    let write = "DELETE / HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_eq!(calls(|with| with.all_safe_methods = true, write).await, 2);
}

/// The calls that follow the first of three, once that is answered with this.
async fn calls_after(change: impl FnOnce(&mut Coalescing), answer: &str) -> usize {
    let mut world = world_with(change);
    let _clients = [world.sends(GET).await, world.sends(GET).await, world.sends(GET).await];
    let mut first = world.accept().await;
    first.head().await;
    first.send(answer.as_bytes()).await;
    calls_now(&mut world).await.len()
}

#[tokio::test(start_paused = true)]
async fn no_cache_is_shared_where_that_is_wanted() {
    let answer = "HTTP/1.1 200 OK\r\nConnection: close\r\nCache-Control: no-cache\r\nContent-Length: 2\r\n\r\nok";
    assert_eq!(calls_after(|_| {}, answer).await, 2);
    assert_eq!(calls_after(|with| with.share_no_cache = true, answer).await, 0);
}

#[tokio::test(start_paused = true)]
async fn as_many_lead_after_a_refusal_as_is_said() {
    let answer = "HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno";
    assert_eq!(calls_after(|_| {}, answer).await, 1);
    assert_eq!(calls_after(|with| with.max_promotions = Some(0), answer).await, 2);
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_joined_up_to_as_many_bytes_as_is_said() {
    for (bytes, late, calls) in
        [(None, None, 0), (Some(5), None, 1), (Some(1000), None, 0), (None, Some(SECOND / 2), 1)]
    {
        let mut world = world_with(|with| (with.join_late_bytes, with.join_late) = (bytes, late));
        let mut first = world.sends(GET).await;
        let mut upstream = world.accept().await;
        upstream.head().await;
        upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n0123456789").await;
        let mut head = [0; 16];
        first.stream.read_exact(&mut head).await.unwrap();
        sleep(SECOND * 3 / 4).await;
        let _second = world.sends(GET).await;
        assert_eq!(calls_now(&mut world).await.len(), calls, "{bytes:?}, {late:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_about_the_connection_keeps_nobody_apart() {
    let fields = "Accept: a\r\nX-Own: b\r\nOrigin: c\r\nAccept-Language: d\r\n";
    let mut world = World::new();
    let mut clients = Vec::new();
    for (before, behind) in [
        ("", ""),
        ("Connection: close\r\n", ""),
        ("Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n", ""),
        ("TE: trailers\r\nConnection: TE\r\n", ""),
        ("", "User-Agent: a\r\nX-Request-Id: 7\r\n"),
        ("Via: 1.1 a\r\nMax-Forwards: 5\r\nX-B3-TraceId: 1\r\nPriority: u=0\r\n", "Sec-CH-UA: \"a\"\r\n"),
        ("X-Forwarded-For: 10.0.0.1\r\nForwarded: for=10.0.0.1\r\nX-Forwarded-User: a\r\n", ""),
    ] {
        clients
            .push(world.sends(format!("GET / HTTP/1.1\r\nHost: a\r\n{before}{fields}{behind}\r\n").as_bytes()).await);
    }
    assert_eq!(calls_now(&mut world).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn followers_are_told_the_reason_that_their_leader_is() {
    let mut world = World::new();
    let clients = [world.sends(GET).await, world.sends(GET).await];
    let mut upstream = world.accept().await;
    upstream.head().await;
    upstream.send(b"HTTP/1.1 200 Splendid\r\nContent-Length: 2\r\n\r\nok").await;
    for mut client in clients {
        assert_eq!(client.answer().await.start, "HTTP/1.1 200 Splendid");
    }
    assert!(world.accepts_now().await.is_none());
}

/// A slow client and a fast one share an answer of 1 MB, and the flight may hold 64 KiB of it.
async fn shared_by_a_slow_one(world: &mut World, mut upstream: Upstream) {
    let mut fast = world.sends(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    sleep(SECOND / 10).await;
    let sending = tokio::spawn(async move {
        upstream.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
        for _ in 0..100 {
            upstream.send(&[&b"2710\r\n"[..], &[b'x'; 10_000], b"\r\n"].concat()).await;
        }
        upstream.send(b"0\r\n\r\n").await;
    });
    assert_eq!(fast.answers().await.messages[0].body.len(), 1_000_000);
    sending.await.unwrap();
}

fn small_flights(with: &mut Coalescing) {
    with.flight_bytes = Some(64 * 1024);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_while_others_wait_is_let_go_after_five_seconds() {
    let mut world = world_with(small_flights);
    let mut slow = world.sends(GET).await;
    let mut upstream = world.accept().await;
    upstream.head().await;
    let lasts = tokio::spawn(async move { slow.lasts().await });
    shared_by_a_slow_one(&mut world, upstream).await;
    let lasted = lasts.await.unwrap();
    assert!(lasted >= 5 * SECOND && lasted < 8 * SECOND, "{lasted:?}");
}

#[tokio::test(start_paused = true)]
async fn so_is_a_stream_of_http2() {
    let mut world = world_with(small_flights);
    let (mut sender, connection) =
        h2::client::Builder::new().handshake::<_, bytes::Bytes>(world.connect().stream).await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::builder().version(http::Version::HTTP_2).uri("http://a/").body(()).unwrap();
    let (slow, _) = sender.send_request(request, true).unwrap();
    let mut upstream = world.accept().await;
    upstream.head().await;
    let began = tokio::time::Instant::now();
    let lasts = tokio::spawn(async move {
        // Its window is never opened.
        let mut body = slow.await.unwrap().into_body();
        while let Some(piece) = body.data().await {
            if let Err(error) = piece {
                return (began.elapsed(), error.is_reset());
            }
        }
        (began.elapsed(), false)
    });
    shared_by_a_slow_one(&mut world, upstream).await;
    let (lasted, is_reset) = lasts.await.unwrap();
    assert!(is_reset && lasted >= 5 * SECOND && lasted < 8 * SECOND, "{lasted:?}, reset: {is_reset}");
}
