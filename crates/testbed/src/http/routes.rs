//! Which answer a request target asks for.

use std::time::Duration;

use super::events;
use super::request::{Head, decimal};
use super::shop;
use crate::llm;
use crate::service::MAX_DELAY;

/// A path with an answer of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// The path, its parameter in capitals.
    pub pattern: &'static str,
    /// What the path answers.
    pub answers: &'static str,
}

/// The paths that do not get the default answer. None of them takes part in the configured delay
/// and errors.
pub const PATHS: &[Path] = &[
    Path { pattern: "/_/echo", answers: "the request body back, up to 1 MiB (413 above)" },
    Path { pattern: "/_/status/NNN", answers: "with status NNN, 200 to 599" },
    Path { pattern: "/_/bytes/N", answers: "a body of N bytes with Content-Length" },
    Path { pattern: "/_/chunked/N", answers: "a body of N bytes in chunks with extensions, then a trailer" },
    Path { pattern: "/_/close/N", answers: "a body of N bytes that the connection's close ends" },
    Path { pattern: "/_/delay/MS", answers: "200 after MS milliseconds, at most 3600000" },
    Path { pattern: "/_/headers", answers: "the request line and header lines back, as they came" },
    Path { pattern: "/_/count", answers: "how many answers the server has given before this one" },
    Path { pattern: "/_/events/N", answers: "N server-sent events, 100 ms apart or as ?gap=MS&first=MS says" },
    Path {
        pattern: "/v1/chat/completions",
        answers: "POST a chat request: made-up tokens as OpenAI's API has them, streamed with \"stream\": true",
    },
    Path { pattern: "/shop/", answers: "a small shop in HTML, with /shop/style.css app.js logo.svg" },
    Path { pattern: "/shop/login", answers: "a form with a token; POST user=U and password=pw-U: a cookie" },
    Path { pattern: "/shop/logout", answers: "POST: the cookie is taken back" },
    Path { pattern: "/shop/account", answers: "who is logged in, and on which plan; else a redirect to the login" },
    Path { pattern: "/shop/private", answers: "for Basic user:pw-user, or the session as a bearer token; else 401" },
    Path { pattern: "/shop/items?page=N", answers: "ten items as JSON, pages 1 to 10; /shop/items/ID is one of them" },
    Path {
        pattern: "/shop/cart",
        answers: "POST item and count (JSON or form): 201 with an id; 401 without a session",
    },
    Path { pattern: "/shop/cart/ID", answers: "GET: what is in it; DELETE: 204" },
    Path { pattern: "/shop/checkout", answers: "POST cart: an order, after 20 ms" },
    Path { pattern: "/shop/upload", answers: "POST multipart/form-data: the names and lengths of its parts" },
    Path { pattern: "/shop/redirect/N", answers: "N redirects, and then one to /shop/" },
    Path { pattern: "/shop/slow?ms=MS", answers: "200 after MS milliseconds, 100 if it does not say" },
    Path { pattern: "/shop/failing?every=N", answers: "500 every Nth time, 10th if it does not say; else 200" },
];

/// The answer to a request that does not get the default one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    Echo,
    Status(u16),
    Bytes(u64),
    Chunked(u64),
    UntilClose(u64),
    Delay(Duration),
    /// With the head to send back.
    Headers(Vec<u8>),
    Count,
    /// Server-sent events.
    Events(events::Request),
    /// Something in the shop.
    Shop(Box<shop::Request>),
    /// Something of a language model.
    Model(llm::Ask),
    /// An unknown path below `/_/`, or an invalid parameter: 404 with this text.
    Unknown(&'static str),
}

/// The path for tokens of a language model.
const CHAT: &[u8] = b"/v1/chat/completions";

/// The route of a request; `None` for the default answer, which any path outside `/_/` and `/shop/`
/// gets but [`CHAT`], so that a flood may ask for what it likes.
#[inline]
pub(super) fn route(head: &Head<'_>) -> Option<Route> {
    let has_own = [b"/_/".as_slice(), b"/shop", CHAT].iter().any(|own| head.target.starts_with(own));
    if head.target.starts_with(b"/") && !has_own {
        return None;
    }
    if path(head.target) == CHAT {
        return Some(Route::Events(events::Request::Chat { is_post: head.bytes.starts_with(b"POST ") }));
    }
    if let Some(name) = path(head.target).strip_prefix(b"/_/") {
        return Some(special(name, head));
    }
    shop::Request::parse(head, from_path(head.target)).map(|request| Route::Shop(Box::new(request)))
}

/// The route of a path below `/_/`.
fn special(name: &[u8], head: &Head<'_>) -> Route {
    let (name, parameter) = match memchr::memchr(b'/', name) {
        Some(slash) => (name.get(..slash).unwrap_or_default(), name.get(slash + 1..).unwrap_or_default()),
        None => (name, &b""[..]),
    };
    let number = decimal(parameter);
    match (name, number) {
        (b"echo", _) => Route::Echo,
        (b"headers", _) => Route::Headers(head.bytes.to_vec()),
        (b"count", _) => Route::Count,
        (b"bytes", Some(length)) => Route::Bytes(length),
        (b"chunked", Some(length)) => Route::Chunked(length),
        (b"close", Some(length)) => Route::UntilClose(length),
        (b"events", Some(count)) => match events::Request::plain(count, query(head.target)) {
            Some(request) => Route::Events(request),
            None => Route::Unknown("expected at most 1000000 events, and gap and first in milliseconds\n"),
        },
        (b"bytes" | b"chunked" | b"close" | b"events", None) => {
            Route::Unknown("expected a number after the last slash\n")
        }
        (b"delay", Some(millis)) if millis <= MAX_DELAY.as_millis() as u64 => {
            Route::Delay(Duration::from_millis(millis))
        }
        (b"delay", _) => Route::Unknown("expected milliseconds after the last slash, at most 3600000\n"),
        (b"status", Some(status @ 200..=599)) => Route::Status(status as u16),
        (b"status", _) => Route::Unknown("expected a status from 200 to 599 after the last slash\n"),
        _ => Route::Unknown(
            "expected one of /_/echo /_/status/NNN /_/bytes/N /_/chunked/N /_/close/N /_/delay/MS /_/headers /_/count /_/events/N\n",
        ),
    }
}

/// The path of an origin-form or absolute-form target (RFC 9112, section 3.2), without its query.
pub(super) fn path(target: &[u8]) -> &[u8] {
    let from_path = from_path(target);
    let end = memchr::memchr2(b'?', b'#', from_path).unwrap_or(from_path.len());
    from_path.get(..end).unwrap_or_default()
}

/// The query of a target.
fn query(target: &[u8]) -> &[u8] {
    let start = memchr::memchr(b'?', target).map_or(target.len(), |at| at + 1);
    let query = target.get(start..).unwrap_or_default();
    query.get(..memchr::memchr(b'#', query).unwrap_or(query.len())).unwrap_or_default()
}

/// The path of a target with its query.
fn from_path(target: &[u8]) -> &[u8] {
    let after_scheme = target.strip_prefix(b"http://").or_else(|| target.strip_prefix(b"https://"));
    match after_scheme {
        Some(rest) => memchr::memchr(b'/', rest).and_then(|slash| rest.get(slash..)).unwrap_or(b"/"),
        None => target,
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::{Parsed, parse};
    use super::*;

    fn route_to(target: &str) -> Option<Route> {
        let text = format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n");
        match parse(text.as_bytes()) {
            Parsed::Complete(head, _) => route(&head),
            other => panic!("{target}: {other:?}"),
        }
    }

    #[test]
    fn most_targets_get_the_default_answer() {
        for target in ["/", "/any/thing?x=/_/echo", "*", "http://a", "http://a/_", "x.y:443", "/_"] {
            assert_eq!(route_to(target), None, "{target}");
        }
    }

    #[test]
    fn each_special_path_has_its_route() {
        assert_eq!(route_to("/_/echo?q"), Some(Route::Echo));
        assert_eq!(route_to("http://host:80/_/echo"), Some(Route::Echo));
        assert_eq!(route_to("/_/status/404"), Some(Route::Status(404)));
        assert_eq!(route_to("/_/bytes/1073741824"), Some(Route::Bytes(1 << 30)));
        assert_eq!(route_to("/_/chunked/0"), Some(Route::Chunked(0)));
        assert_eq!(route_to("/_/close/9"), Some(Route::UntilClose(9)));
        assert_eq!(route_to("/_/delay/15"), Some(Route::Delay(Duration::from_millis(15))));
        assert_eq!(route_to("/_/count"), Some(Route::Count));
        assert_eq!(route_to("/_/headers"), Some(Route::Headers(b"GET /_/headers HTTP/1.1\r\nHost: x\r\n".to_vec())));
    }

    #[test]
    fn parameters_that_cannot_be_are_told() {
        for target in ["/_/status/99", "/_/status/600", "/_/bytes/", "/_/bytes/-1", "/_/delay/3600001", "/_/x", "/_/"] {
            assert!(matches!(route_to(target), Some(Route::Unknown(_))), "{target}");
        }
    }

    #[test]
    fn every_listed_path_is_routed() {
        for path in PATHS {
            let target = path.pattern.replace("NNN", "200").replace("MS", "1").replace('N', "1");
            assert!(!matches!(route_to(&target), None | Some(Route::Unknown(_))), "{target}");
        }
    }
}
