//! brunt's built-in target: servers to aim load at, for demos, tests and benchmarks.
//!
//! [`http`] is a fast HTTP/1.1 server with delays, stalls and errors on demand; [`tls`] its
//! certificates.

pub mod http;
pub mod tls;
