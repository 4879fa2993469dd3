//! The layer among other layers and routers: who has room, and whose flights are whose.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use axum::Router;
use axum::routing::get;
use brunt_coalesce::{Coalesce, CoalesceLayer};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty, Full};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tower::limit::{ConcurrencyLimit, GlobalConcurrencyLimitLayer};
use tower::load_shed::LoadShedLayer;
use tower::{Layer as _, Service, ServiceBuilder, ServiceExt as _, service_fn};

fn request(path: &str) -> Request<Empty<Bytes>> {
    Request::builder().uri(path).body(Empty::new()).unwrap()
}

/// Polls a request, which has no answer yet.
#[track_caller]
fn waits<F: Future>(request: &mut Pin<Box<F>>) {
    assert!(request.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

/// A handler whose calls each wait for a permit, and their number.
#[derive(Clone, Default)]
struct Gated {
    calls: Arc<AtomicUsize>,
    go: Arc<Gate>,
}

struct Gate(Semaphore);

impl Default for Gate {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

impl Gated {
    async fn text(self, text: &'static str) -> String {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        self.go.0.acquire().await.unwrap().forget();
        format!("{text} {call}")
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    fn let_go(&self, calls: usize) {
        self.go.0.add_permits(calls);
    }
}

/// A service that answers when it is let go.
fn service(
    gated: &Gated,
) -> impl Service<Request<Empty<Bytes>>, Response = Response<Full<Bytes>>, Error = Infallible, Future: Send>
+ Clone
+ Send
+ Sync
+ 'static {
    let gated = gated.clone();
    service_fn(move |_request: Request<Empty<Bytes>>| {
        let gated = gated.clone();
        async move { Ok::<_, Infallible>(Response::new(Full::from(gated.text("made").await))) }
    })
}

#[tokio::test]
async fn a_hundred_followers_hold_no_permit_of_the_service_within() {
    let (gated, permits) = (Gated::default(), Arc::new(Semaphore::new(1)));
    let limit = GlobalConcurrencyLimitLayer::with_semaphore(Arc::clone(&permits));
    let layer = CoalesceLayer::new();
    let service = ServiceBuilder::new().layer(layer.clone()).layer(limit).service(service(&gated));
    let mut all: Vec<_> = (0..101).map(|_| Box::pin(service.clone().oneshot(request("/a")))).collect();
    all.iter_mut().for_each(waits);
    assert_eq!((layer.counters().flights, layer.counters().followers, gated.calls()), (1, 100, 1));
    assert_eq!(permits.available_permits(), 0, "the leader has the only one");
    // A second place is taken by nobody but whoever needs one, though a hundred requests wait.
    permits.add_permits(1);
    all.iter_mut().for_each(waits);
    assert_eq!(permits.available_permits(), 1);
    let mut other = Box::pin(service.clone().oneshot(request("/b")));
    waits(&mut other);
    assert_eq!((permits.available_permits(), gated.calls()), (0, 2));
    gated.let_go(2);
    for one in all {
        let body = one.await.unwrap().into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, "made 0");
    }
    assert_eq!(other.await.unwrap().status(), 200);
    assert_eq!(permits.available_permits(), 2);
}

/// The layer is always ready, so back-pressure of the service within is felt by the calls that need it, and by no other.
#[tokio::test]
async fn shedding_load_within_refuses_calls_and_no_followers() {
    let gated = Gated::default();
    let layer = CoalesceLayer::new().share_failures(false);
    let service = ServiceBuilder::new()
        .layer(layer.clone())
        .layer(LoadShedLayer::new())
        .layer(GlobalConcurrencyLimitLayer::new(1))
        .service(service(&gated));
    let ask = |path| Box::pin(service.clone().oneshot(request(path)));
    let (mut leader, mut follower) = (ask("/a"), ask("/a"));
    [&mut leader, &mut follower].into_iter().for_each(waits);
    let refused = ask("/b").await.unwrap_err();
    assert!(refused.is::<tower::load_shed::error::Overloaded>(), "{refused}");
    gated.let_go(1);
    assert!(leader.await.is_ok() && follower.await.is_ok());
    assert_eq!(gated.calls(), 1);
}

#[tokio::test]
async fn the_service_within_can_be_had_and_changed() {
    let gated = Gated::default();
    let mut service: Coalesce<ConcurrencyLimit<_>> =
        CoalesceLayer::new().layer(ConcurrencyLimit::new(service(&gated), 1));
    assert!(service.get_mut().ready().await.is_ok());
    let _: &ConcurrencyLimit<_> = service.get_ref();
    gated.let_go(1);
    assert_eq!(service.into_inner().oneshot(request("/")).await.unwrap().status(), 200);
}

/// One service takes requests with bodies of several types, and writes of any of them are seen by reads of all.
#[tokio::test]
async fn bodies_of_several_types_are_no_matter() {
    let (gated, layer) = (Gated::default(), CoalesceLayer::new());
    let mut service = layer.layer(Handler(gated.clone()));
    let mut first = Box::pin(Service::<Request<Empty<Bytes>>>::call(&mut service, request("/")));
    let mut full = Box::pin(Service::<Request<Full<Bytes>>>::call(&mut service, Request::new(Full::default())));
    let mut second = Box::pin(Service::<Request<Empty<Bytes>>>::call(&mut service, request("/")));
    waits(&mut first);
    waits(&mut full);
    waits(&mut second);
    assert_eq!((layer.counters().services, layer.counters().flights, layer.counters().followers), (2, 2, 1));
    let write = Request::post("/").body(Full::<Bytes>::from("x")).unwrap();
    drop(Service::<Request<Full<Bytes>>>::call(&mut service, write));
    let mut after = Box::pin(Service::<Request<Empty<Bytes>>>::call(&mut service, request("/")));
    waits(&mut after);
    assert_eq!(layer.counters().flights, 3, "a read after a write does not join one from before it");
    gated.let_go(3);
    for each in [first, second, after] {
        assert_eq!(each.await.unwrap().status(), 200);
    }
    assert_eq!(full.await.unwrap().status(), 200);
}

/// Asks, and returns the body.
async fn ask(address: SocketAddr, path: &'static str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split_once("\r\n\r\n").map_or(answer.clone(), |(_, body)| body.to_owned())
}

/// What clients of two nested routers are answered, five of each at once, and the number of calls.
async fn nested(users: CoalesceLayer, secrets: CoalesceLayer, eager: bool) -> (Vec<String>, usize) {
    let gated = Gated::default();
    // Both count together.
    let counted = users.clone();
    let seen = move || counted.counters().flights + counted.counters().followers;
    let before = seen();
    let list = |text| {
        let gated = gated.clone();
        get(move || gated.clone().text(text))
    };
    let app: Router = Router::new()
        .nest("/users", Router::new().route("/list", list("users")).layer(users))
        .nest("/secrets", Router::new().route("/list", list("secrets")).layer(secrets));
    let app = if eager { app.with_state(()) } else { app };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    let clients: Vec<_> = (0..10)
        .map(|at| tokio::spawn(ask(address, if at % 2 == 0 { "/users/list" } else { "/secrets/list" })))
        .collect();
    while seen() < before + 10 {
        tokio::task::yield_now().await;
    }
    gated.let_go(10);
    let mut answers = Vec::new();
    for client in clients {
        answers.push(client.await.unwrap());
    }
    server.abort();
    (answers, gated.calls())
}

#[tokio::test]
async fn nested_routers_never_answer_for_each_other() {
    // The routers see the same path, `/list`.
    let layer = CoalesceLayer::new();
    let shared = CoalesceLayer::new().shared();
    for (users, secrets, eager, calls) in [
        // An axum router makes its services anew for each connection, …
        (layer.clone(), layer.clone(), false, 10),
        // … unless it has been given its state.
        (layer.separate(), layer.separate(), true, 2),
        (shared.clone(), shared.separate(), false, 2),
    ] {
        let (answers, made) = nested(users, secrets, eager).await;
        for (at, answer) in answers.iter().enumerate() {
            assert!(answer.starts_with(if at % 2 == 0 { "users " } else { "secrets " }), "{answer}");
        }
        assert_eq!(made, calls);
    }
}

/// Serves each connection by a service of its own.
async fn served_by_connection(layer: CoalesceLayer) -> usize {
    let gated = Gated::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (layers, handler) = (layer.clone(), gated.clone());
    let server = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let handler = handler.clone();
            // As services do that know their connection's address.
            let service = layers.layer(Handler(handler));
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    let clients: Vec<_> = (0..6).map(|_| tokio::spawn(ask(address, "/"))).collect();
    while layer.counters().flights + layer.counters().followers < 6 {
        tokio::task::yield_now().await;
    }
    gated.let_go(6);
    for client in clients {
        assert!(client.await.unwrap().starts_with("made "));
    }
    server.abort();
    gated.calls()
}

/// A service with a name, as all services of one type share flights.
#[derive(Clone)]
struct Handler(Gated);

impl<B> Service<Request<B>> for Handler {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = futures_util::future::BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Request<B>) -> Self::Future {
        let gated = self.0.clone();
        Box::pin(async move { Ok(Response::new(Full::from(gated.text("made").await))) })
    }
}

#[tokio::test]
async fn a_service_for_each_connection_of_hyper_coalesces_if_the_layer_is_shared() {
    let (alone, shared) = (CoalesceLayer::new(), CoalesceLayer::new().shared());
    assert_eq!((served_by_connection(alone.clone()).await, alone.counters().services), (6, 6));
    assert_eq!((served_by_connection(shared.clone()).await, shared.counters().services), (1, 1));
}

fn post() -> Request<Empty<Bytes>> {
    Request::builder().method("POST").uri("/").body(Empty::new()).unwrap()
}

/// Under hyper, a request that is not coalesced goes to the service at once if that is ready, and waits for it if not.
#[tokio::test]
async fn a_request_that_goes_alone_waits_for_room_under_hyper() {
    let gated = Gated::default();
    let service = CoalesceLayer::new().layer(ConcurrencyLimit::new(service(&gated), 1));
    let [mut one, mut other] = [(); 2].map(|()| Box::pin(hyper::service::Service::call(&service, post())));
    waits(&mut one);
    waits(&mut other);
    assert_eq!(gated.calls(), 1);
    gated.let_go(2);
    let answers = tokio::join!(one, other);
    assert!(answers.0.is_ok() && answers.1.is_ok());
    assert_eq!(gated.calls(), 2);
}

/// A service that cannot be asked.
#[derive(Clone, Default)]
struct Broken(Arc<AtomicUsize>);

impl Service<Request<Empty<Bytes>>> for Broken {
    type Response = Response<Full<Bytes>>;
    type Error = &'static str;
    type Future = std::future::Ready<Result<Response<Full<Bytes>>, &'static str>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Poll::Ready(Err("broken"))
    }

    fn call(&mut self, _: Request<Empty<Bytes>>) -> Self::Future {
        panic!("it is called, and was not ready")
    }
}

/// A service that has failed to become ready must not be asked again.
#[tokio::test]
async fn a_service_that_is_never_ready_is_asked_once_for_each_request() {
    let broken = Broken::default();
    let service = CoalesceLayer::new().layer(broken.clone());
    for (asked, request) in [post(), request("/")].into_iter().enumerate() {
        let answer = hyper::service::Service::call(&service, request).await;
        assert_eq!(answer.map(|_| ()), Err("broken"));
        assert_eq!(broken.0.load(Ordering::SeqCst), asked + 1);
    }
}
