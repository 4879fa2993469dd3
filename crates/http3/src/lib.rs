//! HTTP/3 (RFC 9114) as a state machine over the streams of QUIC, from a client's side and from a server's.
//!
//! A [`Http3Connection`] does no I/O and knows no time: [records](brunt_quic::record) of what came on streams go in, [`Http3Event`]s come out, and
//! records to send are appended to a buffer. It has the shape of `brunt-http2`'s.
//!
//! - A request and its answer have a stream, with a head, a body and trailers in frames.
//! - Heads are read and written with [`qpack`], without a dynamic table: we offer none and use none, so that no stream waits for another.
//! - Everything that a peer can make it keep is bounded, and a broken rule is named ([`Http3Violation`]).

pub mod error_code;
pub mod frame;
pub mod frame_text;
pub mod qpack;
pub mod varint;

mod connection;
mod head;
mod stream;
#[cfg(test)]
mod tests;

pub use self::connection::{Http3Connection, Http3Counters, Http3Event, Http3Violation};
pub use self::error_code::Http3Code;
pub use brunt_http2::Fields;
