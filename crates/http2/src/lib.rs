//! HTTP/2 (RFC 9113) from a client's side, as a state machine over bytes.
//!
//! A [`Connection`] does no I/O and knows no time: received bytes go in, [`Event`]s come out, and bytes to send are
//! appended to a buffer. Protocols over HTTP/2 build on it, whatever they make of its streams: one request and one
//! answer, or messages both ways.
//!
//! - Streams are opened with a header block, carry data under flow control in both directions, and end by `END_STREAM` or `RST_STREAM`.
//! - Header blocks are read and written with [`hpack`]; one that comes again costs a comparison.
//! - Everything that a peer can make it keep is bounded, and a broken rule is named ([`Violation`]).
//!
//! ```
//! use brunt_http2::{Config, Connection};
//!
//! // The preface and SETTINGS go out at once; each stream carries a value of the caller's, here a number.
//! let mut connection: Connection<u32> = Connection::new(Config::default());
//! let mut out = Vec::new();
//! connection.open(&mut out);
//! assert!(out.starts_with(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
//! assert!(connection.is_empty(), "no stream is open yet");
//! ```

pub mod frame;
pub mod frame_text;
pub mod head;
pub mod hpack;

mod connection;
mod outgoing;
mod stream;
#[cfg(test)]
mod tests;

pub use self::connection::{Config, Connection, Counters, Event, Violation};
pub use self::frame::ErrorCode;
pub use self::hpack::Fields;
pub use self::outgoing::Outgoing;
