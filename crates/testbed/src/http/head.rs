//! What heads of answers have in common: the reason phrase, and whether the connection stays open.

use super::request::Version;

/// What an answer's head says about whether the connection stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// It stays open, which HTTP/1.1 need not say.
    Implied,
    /// It stays open, which HTTP/1.0 must be told.
    Announced,
    Close,
}

impl Persistence {
    pub(super) fn new(version: Version, keep_alive: bool) -> Self {
        match (keep_alive, version) {
            (false, _) => Self::Close,
            (true, Version::Http10) => Self::Announced,
            (true, Version::Http11) => Self::Implied,
        }
    }

    pub(crate) fn header(self) -> &'static str {
        match self {
            Self::Implied => "",
            Self::Announced => "Connection: keep-alive\r\n",
            Self::Close => "Connection: close\r\n",
        }
    }
}

/// The phrase registered for a status (RFC 9110, section 15); empty, which is allowed, for others.
pub(crate) fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        413 => "Content Too Large",
        418 => "I'm a teapot",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        529 => "Overloaded",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}
