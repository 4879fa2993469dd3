//! HTTP as the built-in target speaks it: HTTP/1.1, HTTP/2 by ALPN or by prior knowledge, and HTTP/3 where it is asked for.
//!
//! # What it answers
//!
//! Every method and path gets `200 OK` with a plain-text body of [`ServerConfig::body_bytes`](crate::server::ServerConfig::body_bytes), except for
//! a few paths with answers of their own ([`PATHS`]):
//!
//! | path | answer |
//! | --- | --- |
//! | `/_/echo` | the request body back, up to 1 MiB (413 above) |
//! | `/_/status/NNN` | with status NNN, 200 to 599 |
//! | `/_/bytes/N` | a body of N bytes with `Content-Length` |
//! | `/_/chunked/N` | a body of N bytes in chunks with extensions, then a trailer (`X-Bytes: N`) |
//! | `/_/close/N` | a body of N bytes that the connection's close ends |
//! | `/_/delay/MS` | 200 after MS milliseconds, at most an hour |
//! | `/_/headers` | the request line and header lines back, as they came |
//! | `/_/count` | how many answers the server has given before this one |
//! | `/_/events/N` | N server-sent events, 100 ms apart or as `?gap=MS&first=MS` says |
//! | `/v1/chat/completions` | made-up tokens, as OpenAI's API has them: a stream of events, or one JSON document |
//! | `/shop/…` | a small shop: login, items, a cart, redirects, slow and failing pages ([`PATHS`]) |
//!
//! Long bodies are made as they are sent, so N may be any number; byte `i` of them is the same as
//! byte `i % 64` of `a-zA-Z0-9-_`. The configured delay, queue and errors apply to default answers alone.
//!
//! With a [language model](crate::llm) its paths take the place of all of these.
//!
//! # What it does with requests
//!
//! HTTP/1.0 and 1.1 with persistent connections, pipelining (answers keep the order of requests),
//! HEAD, `Expect: 100-continue`, request bodies by `Content-Length` and chunked, which are read and
//! counted off but not kept. A request that is not HTTP is answered with the 4xx or 5xx that names
//! what was wrong with it, and its connection is closed. Heads longer than 16 KiB get 431.
//!
//! A connection holds little memory whatever its peer does: from a peer that does not read its
//! answers, nothing more is read.

mod events;
mod head;
mod http2;
mod http3;
mod model;
mod request;
mod request_body;
mod response;
mod routes;
mod session;
mod shop;
mod site;

pub use routes::{PATHS, Path};

pub(crate) use http2::{Http2, PREFACE};
pub(crate) use http3::Http3;
pub(crate) use session::Session;
pub(crate) use site::Site;
