//! HTTP/2 (RFC 9113): the same requests on streams.
//!
//! All requests are written in the form of HTTP/1.1, and [`request::Writer`] puts them into header blocks. So the
//! version of a connection need not be known before it is made, and all code that makes requests makes them for both.

mod client;
mod narration;
mod request;

pub(super) use self::client::{Http2, Http2Client};
pub(super) use self::narration::Frames;
