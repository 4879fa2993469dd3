//! brunt's built-in target: servers to aim load at, for demos, tests and benchmarks.
//!
//! [`server`] is a fast server with delays, stalls and errors on demand, which speaks [`http`], a WebSocket echo or a
//! Thrift echo ([`server::ServedProtocol`]); [`llm`] is a simulated language model on it; [`grpc`] is a gRPC echo; [`tls`] their certificates. [`faulty`] has small servers that each break the rules in one way,
//! [`timetable`] a proxy that puts outages and freezes before any of them.

mod echo;
pub mod faulty;
pub mod grpc;
pub mod http;
pub mod llm;
pub mod server;
mod service;
pub mod thrift;
pub mod timetable;
pub mod tls;
mod websocket;
