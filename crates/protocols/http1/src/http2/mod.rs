//! HTTP/2 (RFC 9113): the same requests on streams.
//!
//! A request is written down as HTTP/1.1 has it, whoever makes it, and [`request::Writer`] puts it into a header block. So what a
//! connection speaks need not be known before it is made, and everything that makes requests makes them for both.

mod client;
mod narration;
mod request;

pub(super) use self::client::{Http2, Http2Client};
pub(super) use self::narration::Frames;
