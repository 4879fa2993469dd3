//! HTTP/2 (RFC 9113) and HTTP/3 (RFC 9114): the same requests on streams.
//!
//! All requests are written in the form of HTTP/1.1, and [`request::Writer`] puts them into header blocks. So the
//! version of a connection need not be known before it is made, and all code that makes requests makes them for all.

mod client;
mod narration;
mod request;

pub(super) use self::client::{Http2, Http2Client, Http3Client};
pub(super) use self::narration::{Frames, Records};
