//! brunt's built-in target: servers to aim load at, for demos, tests and benchmarks.
//!
//! [`http`] is a fast HTTP/1.1 server with delays, stalls and errors on demand, a WebSocket echo and a
//! Thrift echo ([`http::Speaks`]); [`tls`] its certificates. [`faulty`] has small servers that each break the rules in one way.

mod echo;
pub mod faulty;
pub mod http;
mod thrift;
pub mod tls;
mod websocket;
