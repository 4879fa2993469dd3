//! The layer in real servers, over real sockets: axum and plain hyper; and a soak with clients that vanish at random
//! moments.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use brunt_coalesce::{CoalesceLayer, Event};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::{Request, Response, Uri, Version};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tower::{Layer as _, service_fn};

/// Asks, and reads the whole answer.
async fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// Waits until this many take part in flights.
async fn until(layer_counts: impl Fn() -> u64, expected: u64) {
    while layer_counts() < expected {
        tokio::task::yield_now().await;
    }
}

/// A page that says which call made it, once there is a permit; and the number of calls.
fn page() -> (axum::Router, Arc<AtomicU64>, Arc<Semaphore>) {
    let (calls, go) = (Arc::new(AtomicU64::new(0)), Arc::new(Semaphore::new(0)));
    let handler = {
        let (calls, go) = (Arc::clone(&calls), Arc::clone(&go));
        move || {
            let (calls, go) = (Arc::clone(&calls), Arc::clone(&go));
            async move {
                let call = calls.fetch_add(1, Ordering::SeqCst);
                go.acquire().await.unwrap().forget();
                format!("call {call}")
            }
        }
    };
    (axum::Router::new().route("/", axum::routing::get(handler)), calls, go)
}

/// Asks for the page 20 times at once, on a connection each.
async fn is_made_once(address: SocketAddr, layer: &CoalesceLayer, calls: &AtomicU64, go: &Semaphore) {
    let clients: Vec<_> = (0..20).map(|_| tokio::spawn(get(address, "/"))).collect();
    until(|| layer.counters().flights + layer.counters().followers, 20).await;
    go.add_permits(1);
    for client in clients {
        let answer = client.await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("call 0"), "{answer}");
        assert!(answer.contains("content-length: 6"), "{answer}");
    }
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn axum_serves_many_by_one_call() {
    let layer = CoalesceLayer::new().shared();
    let (app, calls, go) = page();
    let app = app.layer(layer.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    is_made_once(address, &layer, &calls, &go).await;
    server.abort();
}

#[tokio::test]
async fn tonic_serves_pages_beside_its_calls_by_one_call() {
    let layer = CoalesceLayer::new();
    let (app, calls, go) = page();
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = incoming.local_addr().unwrap();
    let server = Server::builder().accept_http1(true).layer(layer.clone()).add_routes(Routes::from(app));
    let server = tokio::spawn(server.serve_with_incoming(incoming));
    is_made_once(address, &layer, &calls, &go).await;
    // It uses the layer once, for all connections.
    assert_eq!(layer.counters().services, 1);
    server.abort();
}

/// Serves connections with plain hyper until dropped.
macro_rules! serve {
    ($service:expr) => {{
        let service = $service;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let service = service.clone();
                connections.spawn(async move {
                    let http = hyper::server::conn::http1::Builder::new();
                    let _ = http.serve_connection(TokioIo::new(stream), service).await;
                });
                while connections.try_join_next().is_some() {}
            }
        });
        (address, server)
    }};
}

#[tokio::test]
async fn hyper_streams_a_body_of_unknown_length_and_ends_it_visibly_when_it_fails() {
    let layer = CoalesceLayer::new();
    let go = Arc::new(Notify::new());
    let gate = Arc::clone(&go);
    let service = service_fn(move |_request: Request<Incoming>| {
        let gate = Arc::clone(&gate);
        async move {
            let pieces = futures_util::stream::unfold(0, move |number| {
                let gate = Arc::clone(&gate);
                async move {
                    if number == 0 {
                        return Some((Ok(Frame::data(Bytes::from_static(b"first"))), 1));
                    }
                    gate.notified().await;
                    Some((Err(std::io::Error::other("lost")), number + 1))
                }
            });
            Ok::<_, Infallible>(Response::new(BodyExt::boxed_unsync(StreamBody::new(pieces))))
        }
    });
    let (address, server) = serve!(layer.layer(service));
    let clients: Vec<_> = (0..5).map(|_| tokio::spawn(get(address, "/"))).collect();
    until(|| layer.counters().flights + layer.counters().shared, 5).await;
    go.notify_one();
    for client in clients {
        let answer = client.await.unwrap();
        assert!(answer.contains("transfer-encoding: chunked"), "{answer}");
        assert!(answer.contains("5\r\nfirst\r\n") && !answer.ends_with("0\r\n\r\n"), "{answer}");
    }
    assert_eq!(layer.counters().flights, 1);
    server.abort();
}

/// A request of HTTP/1 is polled by hyper right after its call, so it may begin with that; one of HTTP/2 goes to a task of
/// its own first.
#[tokio::test]
async fn by_hypers_trait_only_a_request_of_http_1_is_looked_after_before_it_is_polled() {
    use hyper::service::Service as _;
    let layer = CoalesceLayer::new();
    let go = Arc::new(Semaphore::new(0));
    let gate = Arc::clone(&go);
    let service = layer.layer(service_fn(move |request: Request<Empty<Bytes>>| {
        let gate = Arc::clone(&gate);
        async move {
            if request.uri().path() == "/waits" {
                gate.acquire().await.unwrap().forget();
            }
            Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("made")))
        }
    }));
    let ask = |path, version| {
        let mut request = Request::new(Empty::new());
        (*request.uri_mut(), *request.version_mut()) = (Uri::from_static(path), version);
        service.call(request)
    };
    let flights = || (layer.counters().flights, layer.counters().followers);
    let early = ask("/", Version::HTTP_11);
    assert_eq!(flights(), (1, 0));
    let late = ask("/", Version::HTTP_2);
    assert_eq!(flights(), (1, 0));
    assert!(early.await.is_ok() && late.await.is_ok());
    assert_eq!(flights(), (2, 0));
    // Two that wait are both woken, though neither was polled as the handler was; a third that vanishes unpolled hurts nobody.
    let waiting = [(); 3].map(|()| ask("/waits", Version::HTTP_11));
    assert_eq!(flights(), (3, 2));
    let [vanishes, one, other] = waiting;
    drop(vanishes);
    let both = tokio::spawn(async move { tokio::join!(one, other) });
    tokio::task::yield_now().await;
    go.add_permits(1);
    let (one, other) = both.await.unwrap();
    assert!(one.is_ok() && other.is_ok());
    assert_eq!((layer.counters().ended, layer.counters().shared, layer.counters().vanished), (3, 2, 0));
}

/// A small generator of chance (`SplitMix64`).
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// What the handler of the soak does, by chance: fails, panics, streams, keeps to itself, or just answers.
fn chance() -> u64 {
    static STATE: AtomicU64 = AtomicU64::new(7);
    random(&mut STATE.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed))
}

async fn soaked(request: Request<Incoming>) -> Result<Response<StreamBody<PieceStream>>, std::io::Error> {
    let dice = chance();
    for _ in 0..dice % 7 {
        tokio::task::yield_now().await;
    }
    match dice % 20 {
        0 => return Err(std::io::Error::other("fails")),
        1 => panic!("panics, as asked for"),
        _ => {}
    }
    let path = request.uri().path().to_owned();
    let mut response = Response::new(StreamBody::new(pieces(path, dice)));
    if dice % 20 == 2 {
        response.headers_mut().insert("cache-control", "private".parse().unwrap());
    }
    Ok(response)
}

type PieceStream = futures_util::stream::BoxStream<'static, Result<Frame<Bytes>, std::io::Error>>;

/// The path in pieces, over and over; by chance it fails in the middle.
fn pieces(path: String, dice: u64) -> PieceStream {
    use futures_util::StreamExt as _;
    let count = dice % 50;
    let fails_at = (dice % 11 == 0).then_some(count / 2);
    let stream = futures_util::stream::unfold(0, move |number| {
        let path = path.clone();
        async move {
            if number % 5 == 4 {
                tokio::task::yield_now().await;
            }
            let piece = match number {
                _ if Some(number) == fails_at => Err(std::io::Error::other("fails in the middle")),
                _ if number < count => Ok(Frame::data(Bytes::from(path.into_bytes()))),
                _ => return None,
            };
            Some((piece, number + 1))
        }
    });
    stream.boxed()
}

/// No waiter hangs, no flight leaks, nobody sees another's body, and the counters add up.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn soak_with_clients_that_vanish_at_random_moments() {
    // Its panics are meant; anybody else's are shown.
    let shown = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload_as_str() != Some("panics, as asked for") {
            shown(panic);
        }
    }));
    let events = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&events);
    let layer =
        CoalesceLayer::new().max_bytes_per_flight(512).max_members(40).join_late(Duration::from_secs(1), 256).observer(
            move |event: Event| {
                seen.fetch_add(u64::from(!matches!(event, Event::Saved(_) | Event::Waited(_))), Ordering::Relaxed);
            },
        );
    let (address, server) = serve!(layer.layer(service_fn(soaked)));
    let clients: Vec<_> = (0..64).map(|seed| tokio::spawn(client(address, seed))).collect();
    let mut whole = 0;
    for client in clients {
        whole += tokio::time::timeout(Duration::from_secs(300), client).await.expect("a waiter hangs").unwrap();
    }
    // hyper notices that a client has gone when it next looks at its socket.
    let settled = || {
        let c = layer.counters();
        c.flights == c.ended + c.unshared + c.failed + c.cancelled
            && c.followers == c.shared + c.promoted + c.shared_failures + c.went_alone + c.vanished + c.regrouped
            && layer.held_bytes() == 0
    };
    for _ in 0..12_000 {
        if settled() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let c = layer.counters();
    assert!(settled(), "{c:?}, {} bytes held", layer.held_bytes());
    assert!(
        whole > 1000 && c.shared > 100 && c.cancelled > 0 && c.promoted > 0 && c.remembered > 0,
        "{whole} whole, {c:?}"
    );
    let counted: u64 = c.each().filter(|(name, _)| *name != "bytes_saved").map(|(_, count)| count).sum();
    assert_eq!(events.load(Ordering::Relaxed), counted);
    server.abort();
}

/// Asks for one of a few paths over and over, and vanishes now and then: how many answers it had as a whole.
async fn client(address: SocketAddr, seed: u64) -> u64 {
    let (mut state, mut whole) = (seed, 0);
    for _ in 0..100 {
        let dice = random(&mut state);
        let path = format!("/{}", dice % 3);
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        if dice % 4 == 0 {
            for _ in 0..dice % 64 {
                tokio::task::yield_now().await;
            }
            continue;
        }
        let mut answer = String::new();
        if stream.read_to_string(&mut answer).await.is_err() {
            continue;
        }
        let Some((head, body)) = answer.split_once("\r\n\r\n") else { continue };
        if !head.starts_with("HTTP/1.1 200") {
            assert!(head.starts_with("HTTP/1.1 500"), "{head}");
            continue;
        }
        // In chunks, or at once where all of it was there.
        let mut names =
            body.split("\r\n").filter(|line| line.starts_with('/')).flat_map(|line| line.split('/').skip(1));
        assert!(names.all(|name| path.ends_with(name)), "{path} was answered with another's: {body}");
        whole += u64::from(body.ends_with("0\r\n\r\n") || head.contains("content-length"));
    }
    whole
}
