//! A [tower] layer that serves identical HTTP requests in flight once.
//!
//! With it, a service that gets the same expensive GET a thousand times at once does the work once: the first request, the
//! *leader*, calls the service; the others, its *followers*, wait, and are given the same answer while it is made.
//!
//! ```
//! use brunt_coalesce::CoalesceLayer;
//! use tower::ServiceBuilder;
//! # use http::{Request, Response};
//! # use http_body_util::Full;
//!
//! let layer = CoalesceLayer::new();
//! let service = ServiceBuilder::new().layer(layer.clone()).service(tower::service_fn(
//!     |_request: Request<Full<bytes::Bytes>>| async {
//!         Ok::<_, std::convert::Infallible>(Response::new(Full::new(bytes::Bytes::from("made once\n"))))
//!     },
//! ));
//! # drop(service);
//! println!("{:?}", layer.counters());
//! ```
//!
//! The layer goes around any [`tower_service::Service`] of HTTP requests. Put it
//! *inside* of layers with deadlines, and of those that decide by something outside of the request's head, such as the
//! client's address; and *outside* of the expensive work.
//!
//! # axum, hyper and tonic
//!
//! An axum `Router` makes its services when it is given its state. Do that last, and the service and its flights are there for
//! all connections; two nested routers have flights of their own, and never answer for each other:
//!
//! ```
//! # use axum::{Router, routing::get};
//! # use brunt_coalesce::CoalesceLayer;
//! let users = Router::new().route("/list", get(async || "users")).layer(CoalesceLayer::new());
//! let secrets = Router::new().route("/list", get(async || "secrets")).layer(CoalesceLayer::new());
//! let app: Router = Router::new().nest("/users", users).nest("/secrets", secrets).with_state(());
//! ```
//!
//! A router without its state makes its services anew for each connection. Then nothing is coalesced, unless the layer is
//! [`shared`](CoalesceLayer::shared).
//!
//! hyper accepts the layer's service as it is (feature `hyper`, on by default): make one, and give each connection a clone. Where each
//! connection has a service of its own, the layer has to be shared.
//!
//! tonic takes the layer by `Server::builder().layer(CoalesceLayer::new())`. Calls of gRPC are POST, and so pass it by; it coalesces the
//! GETs that are served beside them.
//!
//! # Readiness
//!
//! The layer's service is always ready. A follower needs no room in the service within: it neither asks whether that is ready nor
//! keeps a permit of it. Whoever does call waits in its future until a clone of the service is ready. So a layer that
//! limits or sheds load belongs within this one. Outside, it would count followers as calls, or see no load at all.
//!
//! # Rules
//!
//! 1. **Nobody gets another's answer.** Only GET and HEAD without a body are coalesced. They are told apart by method, URI,
//!    host and *every header that is not known to be harmless*, compared whole: a header that nobody has heard of costs a
//!    call. Harmless is what names the program, the link or the call (`User-Agent`, `Referer`, `traceparent`, …); of
//!    addresses in `Forwarded`, `X-Forwarded-For` and `X-Real-IP` only the class counts. Credentials and names of users, `Range` and the
//!    like exclude a request. An answer with `Set-Cookie`, or with `Cache-Control: private`, `no-store` or `no-cache`, goes to
//!    the leader alone, and all others call the service at the same time; so do the next requests like it, until an answer
//!    can be shared. One with `Vary` goes to those whose nominated headers are the leader's (RFC 9111, section 4.1), with a
//!    flight for each of the other values. [`CoalesceLayer::key_header`], [`CoalesceLayer::ignore_header`],
//!    [`CoalesceLayer::key_by`] and [`CoalesceLayer::key_only_by`] change this.
//! 2. **Nobody's bad request is answered for others.** Only statuses that are cacheable by default are shared (200, 203, 204,
//!    300, 301, 304, 308, 404, 410); an answer with any other status goes to its leader alone, and the next follower leads.
//!    After failures (5xx, 429) two call at a time, then four, and so on. Requests that override their method by a header, or nominate a
//!    field in `Connection`, are not coalesced.
//! 3. **Unsafe methods are never coalesced**, by no setting. A write closes the flights of its URI to new requests when
//!    it starts and when it ends, so that a read after it sees it (RFC 9111, section 4.4).
//! 4. **The leader may go away.** The call goes on for the followers, and is dropped when none is left. If it fails or
//!    panics before its headers, the leader sees that as it would without the layer, and one follower becomes leader, a few
//!    times; then all are answered with 500 (or each calls, by [`CoalesceLayer::share_failures`]).
//! 5. **Bodies stream.** Pieces reach all readers as they come, trailers included. The fastest reader sets the pace while
//!    little is held for the others, then the slowest that takes at least 64 KiB a second. A slower one is cut off after 5 s: its body ends with an error. Event streams, and bodies that are known to be longer
//!    than what may be held, are not shared.
//! 6. **Waiting is bounded**: in number, in time for each ([`WaitAtMost`]), and in the bytes of bodies, keys and heads.
//!    A request beyond a limit calls the service itself.
//! 7. **It is no cache.** A request that comes after the end of an answer starts anew ([`CoalesceLayer::hold`] aside).
//! 8. Headers of the connection stay with the leader, and so do extensions of the response.
//! 9. [`Counters`] and [`Observer`] tell what happens; `x-coalesced: leader` or `follower` tells a client that asks for
//!    it by a request header of that name.
//!
//! # What it costs
//!
//! A request looks for a flight when its future is polled for the first time; directly under hyper, a request of HTTP/1
//! does so when the service is called. A request that no other joins, and that the service answers at once with a body of
//! known length (of 64 KiB at most), costs one allocation and one lock taken twice. Any other becomes a flight, with some
//! more of both; but no task is spawned, no timer is set, and no body is copied.
//! tokio is used for timers alone.
//!
//! [tower]: https://docs.rs/tower

#![allow(clippy::inline_always, reason = "a request that no other joins is otherwise copied from function to function")]

mod answer;
mod body;
mod counters;
mod failed;
mod fields;
mod flight;
mod future;
mod key;
mod layer;
mod mark;
mod oneshot;
mod request;
mod service;
mod shared;
mod sync;
mod writes;

pub use answer::{FollowerExtensions, SharedFailure};
pub use body::{BodyError, BoxError, CoalesceBody, CutOff};
pub use counters::{Counters, Event, Observer};
pub use failed::{Failure, LeaderFailed};
pub use future::ResponseFuture;
pub use layer::{CoalesceLayer, JOIN_LATE, JOIN_LATE_BYTES};
pub use mark::Mark;
pub use request::WaitAtMost;
pub use service::Coalesce;

/// What README.md shows is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
