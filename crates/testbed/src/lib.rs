//! brunt's built-in target: servers to aim load at, for demos, tests and benchmarks.
//!
//! [`server`] is a fast server with delays, stalls and errors on demand, which speaks [`http`], a WebSocket echo or a
//! Thrift echo ([`server::ServedProtocol`]); [`llm`] is a simulated language model on it; [`grpc`] is a gRPC echo; [`tls`] their certificates. [`faulty`] has small servers that each break the rules in one way,
//! [`timetable`] a proxy that puts outages and freezes before any of them.
//!
//! ```
//! use std::io::{Read as _, Write as _};
//! use std::net::TcpStream;
//! use std::time::Duration;
//!
//! use brunt_testbed::server::{Delay, Server, ServerConfig};
//!
//! let server = Server::start(ServerConfig { delay: Delay::Fixed(Duration::from_millis(1)), ..ServerConfig::default() }).unwrap();
//! let mut socket = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
//! socket.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
//! let mut answer = String::new();
//! socket.read_to_string(&mut answer).unwrap();
//! assert!(answer.starts_with("HTTP/1.1 200 OK") && server.requests() == 1);
//! server.stop();
//! ```

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
