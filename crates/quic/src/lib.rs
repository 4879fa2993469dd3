//! QUIC (RFC 9000) as a state machine over datagrams and timers.
//!
//! quinn-proto carries the protocol; this crate gives it the shape of brunt's channels. Datagrams go in with the time at which they
//! came, datagrams and the time of the next timer come out, and nothing here does I/O or reads a clock. What streams carry is told in
//! [records](record), as bytes: a protocol above is a state machine over bytes as any other, and sees no QUIC.
//!
//! - [`Client`] is one connection of a client, with its own endpoint.
//! - [`QuicServer`] is a socket of a server with all of its connections.
//! - [`Session`] is what both have: records in and out, the handshake, the end.
//!
//! Everything that a peer can make a connection keep is bounded by quinn-proto's windows and by [`Limits`].

mod client;
mod clock;
mod ending;
pub mod record;
mod server;
mod session;

pub use self::client::{Client, ClientSetup, SetupError, place_of};
pub use self::ending::{Cause, Ending};
pub use self::record::{Kind, Record};
pub use self::server::{QuicServer, Received, Response, ServerSetup, SessionId};
pub use self::session::{Limits, Read, Session};
