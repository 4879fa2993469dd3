//! Which requests may be coalesced, and how they are told apart.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, COOKIE, DNT,
    EXPECT, FORWARDED, HOST, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, ORIGIN, PRAGMA,
    PROXY_AUTHORIZATION, RANGE, REFERER, TE, TRANSFER_ENCODING, UPGRADE, UPGRADE_INSECURE_REQUESTS, USER_AGENT, VIA,
};
use http::request::Parts;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};

use crate::key::{Headers, Key, Target};

/// Says whether a request may be coalesced, and gives a part of its key.
pub(crate) type KeyFunction = Arc<dyn Fn(&Parts) -> Option<Bytes> + Send + Sync>;

/// A request with this header asks whether it led or followed.
pub(crate) const MARK: HeaderName = HeaderName::from_static("x-coalesced");

/// An extension of a request: the longest wait for another request's headers, in place of the layer's setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitAtMost(pub Duration);

/// Which requests may be coalesced.
#[derive(Clone, Default)]
pub(crate) struct Eligible {
    /// Headers in the key. A header that would exclude a request from coalescing does not if it is here.
    pub(crate) key_headers: Vec<HeaderName>,
    pub(crate) key_function: Option<KeyFunction>,
    pub(crate) all_safe_methods: bool,
}

/// What the head of a request decides.
pub(crate) enum RequestClass {
    /// It may be coalesced.
    May(Coalescible),
    /// It goes to the service by itself.
    Passes,
    /// It may change its resource, and goes to the service by itself.
    Writes,
}

/// A request that may be coalesced.
pub(crate) struct Coalescible {
    pub(crate) key: Key,
    /// Whether the client asked for [`MARK`].
    pub(crate) asks: bool,
}

/// The effect of a header on its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It excludes the request from coalescing.
    Bars,
    /// Its value is part of the key.
    Key,
    Host,
    Mark,
    /// The host and scheme in it are part of the key.
    Forwarded,
    /// It has no effect, unless the answer varies by it.
    Other,
}

impl Eligible {
    /// Whether a request may be coalesced, and its key; `epoch` is that of its URI.
    #[inline]
    pub(crate) fn look_at<B>(&self, request: &mut Request<B>, has_body: bool, epoch: u64) -> RequestClass {
        if !is_safe(request.method()) {
            return RequestClass::Writes;
        }
        self.find_safe(request, has_body, epoch).map_or_else(|| without_key(request.headers()), RequestClass::May)
    }

    fn find_safe<B>(&self, request: &mut Request<B>, has_body: bool, epoch: u64) -> Option<Coalescible> {
        if has_body || !self.method_is_coalesced(request.method()) {
            return None;
        }
        let own = match &self.key_function {
            None => None,
            Some(function) => Some(own_key(function, request)?),
        };
        self.find(request.method(), request.uri(), request.headers(), own.as_deref(), epoch)
    }

    fn find(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        own: Option<&[u8]>,
        epoch: u64,
    ) -> Option<Coalescible> {
        let (mut keyed, mut others, mut host, mut asks) = (Headers::new(), Headers::new(), None, false);
        let mut forwarded = None;
        for (name, value) in headers {
            match self.role(name, value) {
                Role::Bars => return None,
                Role::Key => keyed.push((name, value)),
                // Different servers choose a different one of two hosts.
                Role::Host if host.is_some() => return None,
                Role::Host => host = Some(value),
                Role::Mark => asks = true,
                Role::Forwarded => {
                    what_was_asked_for(value, forwarded.get_or_insert_default());
                    others.push((name, value));
                }
                Role::Other => others.push((name, value)),
            }
        }
        let target = Target {
            method: method.as_str(),
            scheme: uri.scheme_str(),
            authority: uri.authority().map(Authority::as_str),
            host,
            path_and_query: uri.path_and_query().map(PathAndQuery::as_str),
            forwarded: forwarded.as_deref().filter(|asked_for: &&[u8]| !asked_for.is_empty()),
            own,
            epoch,
        };
        let key = Key::new(&target, &keyed, &others)?;
        Some(Coalescible { key, asks })
    }

    /// Unsafe methods (RFC 9110, section 9.2.1) change something, so each of them must reach the service. No setting
    /// coalesces them.
    fn method_is_coalesced(&self, method: &Method) -> bool {
        match *method {
            Method::GET | Method::HEAD => true,
            Method::OPTIONS | Method::TRACE => self.all_safe_methods,
            _ => false,
        }
    }

    fn role(&self, name: &HeaderName, value: &HeaderValue) -> Role {
        if self.key_headers.contains(name) {
            return Role::Key;
        }
        match *name {
            HOST => Role::Host,
            // Answers are chosen by these (RFC 9110, section 12.5), even if a service forgets to say `Vary`.
            ACCEPT | ACCEPT_ENCODING | ACCEPT_LANGUAGE | ORIGIN
            // A client with a stored copy gets 304 where others get 200 (RFC 9110, section 13).
            | IF_NONE_MATCH | IF_MODIFIED_SINCE | IF_MATCH | IF_UNMODIFIED_SINCE => Role::Key,
            // A key function identifies the client.
            AUTHORIZATION | PROXY_AUTHORIZATION | COOKIE => self.unless_key_function(Role::Bars),
            RANGE | IF_RANGE | UPGRADE | EXPECT | TRANSFER_ENCODING => Role::Bars,
            CONTENT_LENGTH if value.as_bytes() != b"0" => Role::Bars,
            CACHE_CONTROL | PRAGMA if wants_its_own(value) => Role::Bars,
            // A nominated field may be removed on its way to the handler, after it was checked here.
            CONNECTION if nominates_a_field(value) => Role::Bars,
            FORWARDED => Role::Forwarded,
            // Usual headers, so that the checks below are skipped.
            USER_AGENT | REFERER | CONNECTION | TE | UPGRADE_INSECURE_REQUESTS | DNT | VIA => Role::Other,
            _ if *name == MARK => Role::Mark,
            _ => self.role_of_unregistered(name, value),
        }
    }

    /// The role of a header without a standard.
    fn role_of_unregistered(&self, name: &HeaderName, value: &HeaderValue) -> Role {
        match name.as_str() {
            // These identify the client.
            "x-api-key" | "api-key" | "x-auth-token" | "x-access-token" | "x-csrf-token" => {
                self.unless_key_function(Role::Bars)
            }
            // These headers ask for another method than the request's.
            name if METHOD_OVERRIDES.contains(&name) => Role::Bars,
            // Many frameworks take these in place of the host, the scheme and the path.
            "x-forwarded-host" | "x-forwarded-proto" | "x-forwarded-scheme" | "x-forwarded-port"
            | "x-forwarded-prefix" | "x-forwarded-path" | "x-forwarded-server" | "x-forwarded-ssl" | "x-host"
            | "x-original-host" | "x-original-url" | "x-original-uri" | "x-rewrite-url" | "x-url-scheme"
            | "front-end-https" => Role::Key,
            // CGI and the like make one variable of both spellings.
            name if name.contains('_') => HeaderName::try_from(name.replace('_', "-")).map_or(Role::Other, |dashed| {
                match self.role(&dashed, value) {
                    Role::Host | Role::Forwarded => Role::Key,
                    role => role,
                }
            }),
            _ => Role::Other,
        }
    }

    fn unless_key_function(&self, role: Role) -> Role {
        if self.key_function.is_some() { Role::Other } else { role }
    }
}

/// The result of the key function for a request, which is lent its head.
fn own_key<B>(function: &KeyFunction, request: &mut Request<B>) -> Option<Bytes> {
    let (mut parts, ()) = Request::new(()).into_parts();
    let swap = |request: &mut Request<B>, parts: &mut Parts| {
        std::mem::swap(request.method_mut(), &mut parts.method);
        std::mem::swap(request.uri_mut(), &mut parts.uri);
        std::mem::swap(request.headers_mut(), &mut parts.headers);
        std::mem::swap(request.extensions_mut(), &mut parts.extensions);
    };
    parts.version = request.version();
    swap(request, &mut parts);
    let own = function(&parts);
    swap(request, &mut parts);
    own
}

/// Whether a method is safe (RFC 9110, section 9.2.1). Unknown methods are not.
fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE)
}

/// Headers by which frameworks take a request for one with another method.
const METHOD_OVERRIDES: [&str; 3] = ["x-http-method-override", "x-http-method", "x-method-override"];

/// The class of a request with a safe method that may not be coalesced.
fn without_key(headers: &HeaderMap) -> RequestClass {
    let overrides = |name: &HeaderName| METHOD_OVERRIDES.contains(&name.as_str().replace('_', "-").as_str());
    if headers.keys().any(overrides) { RequestClass::Writes } else { RequestClass::Passes }
}

/// Whether `Connection` names more than how the connection goes on (RFC 9110, section 7.6.1).
fn nominates_a_field(connection: &HeaderValue) -> bool {
    connection.as_bytes().split(|&byte| byte == b',').any(|option| {
        let option = option.trim_ascii();
        let usual = [&b""[..], b"close", b"keep-alive", b"te", b"upgrade"];
        !usual.iter().any(|usual| option.eq_ignore_ascii_case(usual))
    })
}

/// Adds host and scheme from `Forwarded` (RFC 7239, section 4); its whole value if a quote in it is not closed.
fn what_was_asked_for(forwarded: &HeaderValue, asked_for: &mut Vec<u8>) {
    let value = forwarded.as_bytes();
    let (mut is_quoted, mut is_escaped) = (false, false);
    let mut pairs = value.split(|&byte| {
        let ends = !is_quoted && matches!(byte, b',' | b';');
        if !is_escaped && byte == b'"' {
            is_quoted = !is_quoted;
        }
        is_escaped = is_quoted && !is_escaped && byte == b'\\';
        ends
    });
    let mut found = Vec::new();
    for pair in pairs.by_ref() {
        let pair = pair.trim_ascii();
        let name = pair.split(|&byte| byte == b'=').next().unwrap_or_default().trim_ascii();
        if name.eq_ignore_ascii_case(b"host") || name.eq_ignore_ascii_case(b"proto") {
            found.extend_from_slice(pair);
            found.push(b';');
        }
    }
    drop(pairs);
    if is_quoted {
        found = [value, b";"].concat();
    }
    asked_for.append(&mut found);
}

/// Whether a client asks for an answer of its own (RFC 9111, section 5.2.1).
fn wants_its_own(value: &HeaderValue) -> bool {
    value.as_bytes().split(|&byte| byte == b',').any(|directive| {
        let directive = directive.trim_ascii();
        [&b"no-cache"[..], b"no-store", b"only-if-cached"].iter().any(|name| directive.eq_ignore_ascii_case(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(eligible: &Eligible, method: &str, uri: &str, headers: &[(&str, &str)]) -> Option<Key> {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        match eligible.look_at(&mut request.body(()).unwrap(), false, 0) {
            RequestClass::May(found) => Some(found.key),
            RequestClass::Passes | RequestClass::Writes => None,
        }
    }

    fn get(headers: &[(&str, &str)]) -> Option<Key> {
        find(&Eligible::default(), "GET", "/", headers)
    }

    #[test]
    fn everything_that_makes_a_request_another_is_in_its_key() {
        let eligible = Eligible::default();
        let variants = [
            find(&eligible, "GET", "/", &[("host", "a")]),
            find(&eligible, "HEAD", "/", &[("host", "a")]),
            find(&eligible, "GET", "/", &[("host", "b")]),
            find(&eligible, "GET", "/", &[]),
            find(&eligible, "GET", "/x", &[("host", "a")]),
            find(&eligible, "GET", "/?", &[("host", "a")]),
            find(&eligible, "GET", "/?a=1", &[("host", "a")]),
            find(&eligible, "GET", "/?a=2", &[("host", "a")]),
            find(&eligible, "GET", "http://a/", &[("host", "a")]),
            find(&eligible, "GET", "https://a/", &[("host", "a")]),
            find(&eligible, "GET", "http://a:81/", &[("host", "a")]),
            find(&eligible, "GET", "/", &[("host", "a"), ("accept", "text/html")]),
            find(&eligible, "GET", "/", &[("host", "a"), ("accept-encoding", "gzip")]),
            find(&eligible, "GET", "/", &[("host", "a"), ("accept-language", "de")]),
            find(&eligible, "GET", "/", &[("host", "a"), ("origin", "https://b")]),
            find(&eligible, "GET", "/", &[("host", "a"), ("if-none-match", "\"1\"")]),
            find(&eligible, "GET", "/", &[("host", "a"), ("if-none-match", "\"2\"")]),
        ];
        for (at, one) in variants.iter().enumerate() {
            assert!(one.is_some(), "{at}");
            assert_eq!(variants.iter().position(|other| other == one), Some(at));
        }
    }

    #[test]
    fn headers_that_say_who_asks_bar() {
        for name in ["authorization", "proxy-authorization", "cookie", "x-api-key", "X-Auth-Token"] {
            assert_eq!(get(&[(name, "x")]), None, "{name}");
        }
        assert_eq!(get(&[("range", "bytes=0-1")]), None);
        assert_eq!(get(&[("content-length", "1")]), None);
        assert_eq!(get(&[("cache-control", "max-age=0, No-Cache")]), None);
        assert_eq!(get(&[("host", "a"), ("host", "b")]), None);
        assert!(get(&[("content-length", "0"), ("cache-control", "max-age=0"), ("user-agent", "x")]).is_some());
    }

    #[test]
    fn a_header_in_the_key_no_longer_bars() {
        let eligible = Eligible { key_headers: vec![COOKIE], ..Eligible::default() };
        let with = |cookie| find(&eligible, "GET", "/", &[("cookie", cookie)]);
        assert!(with("a").is_some());
        assert_ne!(with("a"), with("b"));
        assert_eq!(find(&eligible, "GET", "/", &[("authorization", "a")]), None);
    }

    #[test]
    fn a_key_function_decides() {
        let function: KeyFunction =
            Arc::new(|parts| Some(Bytes::copy_from_slice(parts.headers.get("cookie")?.as_bytes())));
        let eligible = Eligible { key_function: Some(function), ..Eligible::default() };
        let with = |cookie| find(&eligible, "GET", "/", &[("cookie", cookie)]);
        assert!(with("a").is_some());
        assert_ne!(with("a"), with("b"));
        assert_eq!(find(&eligible, "GET", "/", &[]), None);
        assert_eq!(find(&eligible, "POST", "/", &[("cookie", "a")]), None);
    }

    #[test]
    fn values_are_compared_in_number_and_order() {
        let headers = |list: &[(&str, &str)]| -> HeaderMap {
            let mut map = HeaderMap::new();
            for (name, value) in list {
                map.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
            }
            map
        };
        let names = ["x-a", "accept", "host"].map(|name| name.parse().unwrap());
        let same = |one: &[_], other| {
            let one = get(&[&[("host", "a"), ("accept", "a")], one].concat()).unwrap();
            one.has_in_common(&names, &headers(other))
        };
        assert!(same(&[], &[]));
        assert!(same(&[("x-a", "1"), ("x-b", "1")], &[("x-a", "1"), ("x-b", "2")]));
        assert!(!same(&[("x-a", "1")], &[]));
        assert!(!same(&[], &[("x-a", "1")]));
        assert!(!same(&[("x-a", "1")], &[("x-a", "2")]));
        assert!(!same(&[("x-a", "1"), ("x-a", "2")], &[("x-a", "2"), ("x-a", "1")]));
    }
}
