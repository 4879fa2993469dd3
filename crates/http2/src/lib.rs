//! HTTP/2 (RFC 9113) from a client's side, as a state machine over bytes.
//!
//! A [`Connection`] does no I/O and knows no time: bytes that arrived go in, [`Event`]s come out, and what is to be sent is
//! appended to a buffer. It is what protocols over HTTP/2 stand on, whatever they make of its streams: one request and one answer,
//! or messages both ways.
//!
//! - Streams are opened with a header block, carry data under flow control in both directions, and end by `END_STREAM` or `RST_STREAM`.
//! - Header blocks are read and written with [`hpack`]; one that comes again costs a comparison.
//! - Everything that a peer can make it keep has a bound, and what breaks a rule is named ([`Violation`]).

pub mod frame;
pub mod hpack;
pub mod words;

mod connection;
mod head;
mod outgoing;
mod stream;
#[cfg(test)]
mod tests;

pub use self::connection::{Config, Connection, Counters, Event, Violation};
pub use self::frame::ErrorCode;
pub use self::hpack::Fields;
