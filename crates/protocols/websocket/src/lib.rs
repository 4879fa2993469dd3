//! WebSocket (RFC 6455) over TCP, TLS and Unix sockets, with permessage-deflate (RFC 7692).
//!
//! A connection begins with an HTTP/1.1 handshake, which is a call of its own in the record; then each message of a flood is a call, and its echo the answer.
//! [`FrameReader`] reads frames in whatever pieces they come; [`accept`] is what a server answers to a key:
//!
//! ```
//! // The example of RFC 6455, section 1.3.
//! assert_eq!(brunt_websocket::accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
//! assert_eq!(brunt_websocket::close_name(Some(1001)), "1001 going away");
//! ```
//!
//! In scenarios `brunt.ws` opens sockets that outlive a call (`scenario.rs`, `mailbox.rs`).

mod client;
mod deflate;
mod flags;
mod flood;
mod frame;
mod handshake;
mod mailbox;
mod meaning;
mod message;
pub mod options;
mod scenario;

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use brunt_plan::plan::{Plan, ProtocolOptions};
use brunt_plan::random::Random;

use self::client::WebSocketClient;
use self::flood::{Calls, Turns};
use self::options::Options;
use brunt_protocol::Direction;
use brunt_protocol::flags::{Flag, FlagValues, shown_options};
use brunt_protocol::scenario::Dialect;
use brunt_protocol::source::RequestSource;
use brunt_protocol::{Client, OptionsError, Prepared, Protocol, Scheme, read_options};

pub use self::handshake::accept;
pub use self::message::{Close, FrameReader, MOST_MESSAGE_BYTES, ReadStep, close_name};

/// WebSocket over TCP, TLS and Unix sockets.
pub struct WebSocket;

impl Protocol for WebSocket {
    fn name(&self) -> &'static str {
        "WebSocket"
    }

    fn schemes(&self) -> &[Scheme] {
        &[Scheme { name: "ws", default_port: 80, tls: false }, Scheme { name: "wss", default_port: 443, tls: true }]
    }

    fn flags(&self) -> &[Flag] {
        &flags::FLAGS
    }

    fn options(&self, given: &FlagValues) -> Result<ProtocolOptions, OptionsError> {
        Ok(flags::options(given)?.to_protocol())
    }

    fn dialect(&self) -> Option<Box<dyn Dialect>> {
        Some(Box::new(scenario::WebSocketDialect))
    }

    fn shown(&self, options: &serde_json::Value) -> serde_json::Value {
        // Options that cannot be read are shown by the names of their fields.
        serde_json::from_value::<Options>(options.clone())
            .map_or_else(|_| shown_options(options, self.flags()), |options| options.to_protocol().shown().clone())
    }

    fn prepare(&self, plan: &Plan) -> Result<Arc<dyn Prepared>, OptionsError> {
        let options: Options = read_options(plan, self.name())?;
        Ok(Arc::new(PreparedWebSocket {
            turns: Arc::new(Turns::prepare(&options, plan)?),
            reconnect: plan.reconnect,
            seed: RandomState::new().hash_one(plan.seed),
        }))
    }
}

/// What all connections of a run share.
struct PreparedWebSocket {
    turns: Arc<Turns>,
    reconnect: bool,
    /// Masking keys and nonces must not follow from the plan (RFC 6455, section 10.3).
    seed: u64,
}

impl Prepared for PreparedWebSocket {
    fn client(&self, keep: bool) -> Box<dyn Client> {
        self.client_of(0, keep)
    }

    fn client_of(&self, number: u64, _keep: bool) -> Box<dyn Client> {
        let random = Random::new(self.seed, number);
        let (request, echo) = self.turns.turn(number);
        Box::new(WebSocketClient::flood(request, echo, self.reconnect, random))
    }

    fn user(&self) -> Box<dyn RequestSource> {
        Box::new(Calls(Arc::clone(&self.turns)))
    }

    fn alpn(&self) -> Vec<Vec<u8>> {
        vec![b"http/1.1".to_vec()]
    }

    fn meaning(&self, _direction: Direction, bytes: &[u8]) -> Option<String> {
        meaning::of_frames(bytes)
    }
}
