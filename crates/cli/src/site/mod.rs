//! The common part of brunt's web pages (the live page, and `brunt ui`): access, and answers.

use std::convert::Infallible;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, combinators::BoxBody};

mod access;

pub use access::{Token, identity};

/// How many browsers may be connected to a page; others are turned away.
pub const MOST_CONNECTIONS: usize = 64;
/// How long a browser may take for the head of a request.
pub const HEAD: Duration = Duration::from_secs(10);
/// The pause before accepting connections again when there are no descriptors.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// The body of an answer.
pub type Body = BoxBody<Bytes, Infallible>;

/// Access control of a page.
#[derive(Debug)]
pub struct Guard {
    /// The token that a path must begin with, if there is one.
    token: Option<Token>,
    /// The name of this machine.
    host: String,
}

impl Guard {
    /// Admits requests with `token`, if there is one, for an address or name of this machine.
    pub fn new(token: Option<Token>) -> Self {
        Self { token, host: rustix::system::uname().nodename().to_string_lossy().into_owned() }
    }

    /// The rest of `path` behind the token; or the refusal.
    ///
    /// # Errors
    /// The answer to a request without the token, or for another name of this machine.
    #[expect(clippy::result_large_err, reason = "an answer, as is the other case")]
    pub fn admit<'a>(&self, path: &'a str, headers: &HeaderMap) -> Result<&'a str, Response<Body>> {
        let Some(path) = self.token.as_ref().map_or(Some(path), |token| token.strip(path)) else {
            let text = "open the URL that brunt printed: it has the token of this page\n";
            return Err(plain(StatusCode::FORBIDDEN, text));
        };
        if !self.is_meant(headers) {
            let text = "unexpected Host header: open brunt's page by its IP address, or by this machine's own name\n";
            return Err(plain(StatusCode::MISDIRECTED_REQUEST, text));
        }
        Ok(path)
    }

    /// Whether the request cannot come from another site's page, by a name of that site that leads here.
    fn is_meant(&self, headers: &HeaderMap) -> bool {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
        let Some(host) = host else { return false };
        let name = host.host();
        let is_address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
        let is_own = self.token.is_some() && name.eq_ignore_ascii_case(&self.host);
        is_address || is_own || name.eq_ignore_ascii_case("localhost")
    }

    /// Whether whoever was admitted had a token to show.
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Whether `given` is the token.
    pub fn is_token(&self, given: &str) -> bool {
        self.token.as_ref().is_some_and(|token| token.strip(&format!("/{given}")) == Some(""))
    }
}

/// A line of text.
pub fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut answer = with(Bytes::from_static(text.as_bytes()), "text/plain; charset=utf-8");
    *answer.status_mut() = status;
    answer
}

/// Content of a media type.
pub fn with(content: impl Into<Bytes>, kind: &'static str) -> Response<Body> {
    with_body(Full::new(content.into()).boxed(), kind)
}

/// A body of a media type. It is not cached, and its URL is not sent to others, as it may have a token.
pub fn with_body(body: Body, kind: &'static str) -> Response<Body> {
    let mut answer = Response::new(body);
    for (name, value) in [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
    ] {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}
