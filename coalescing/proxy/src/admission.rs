//! Checks a request and brings it into one form before anything looks at it, so that the coalescing, the log and the
//! upstream see the same request.

use http::header::{CONTENT_LENGTH, COOKIE, EXPECT, HOST, MAX_FORWARDS, TE, TRANSFER_ENCODING};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, Version};

use crate::config::{Config, TrustedProxy, UpgradeProtocol, Upstream};
use crate::forwarded::{Origin, add_forwarded};
use crate::headers::{add_via, asked_upgrade, remove_all, remove_hop_by_hop, remove_lookalikes, takes_trailers};

/// Why a request is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rejection {
    pub(crate) status: StatusCode,
    pub(crate) text: &'static str,
}

const fn reject(status: StatusCode, text: &'static str) -> Rejection {
    Rejection { status, text }
}

const BAD: StatusCode = StatusCode::BAD_REQUEST;

/// What is known of an admitted request besides its new form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Admitted {
    /// The protocol that its client asks to upgrade to, if that is allowed.
    pub(crate) upgrade: Option<HeaderValue>,
    /// Whether its connection is closed after its answer, because an intermediary could have seen the end of its body
    /// elsewhere.
    pub(crate) closes: bool,
    /// Whether it nominates a header field beside those that concern each connection. Fields that answers depend on are
    /// passed on all the same, others are removed; but as such a request is suspicious, its answer is shared with no other.
    pub(crate) is_alone: bool,
}

/// The rules for requests.
pub(crate) struct Admission {
    upstream: Upstream,
    upgrades: Vec<UpgradeProtocol>,
    trusted: Vec<TrustedProxy>,
    /// The configured fields that tell requests apart: no client can remove them by nominating them.
    key_headers: Vec<HeaderName>,
}

impl Admission {
    pub(crate) fn new(config: &Config) -> Self {
        let key_headers = config.coalesce.as_ref().map(|coalescing| coalescing.key_headers.clone());
        Self {
            upstream: config.upstream.clone(),
            upgrades: config.upgrades.clone(),
            trusted: config.trusted_proxies.clone(),
            key_headers: key_headers.unwrap_or_default(),
        }
    }

    /// Brings a request into the form that is passed on: its target is a path with a query, its host stands in `Host`
    /// alone, and fields about the client's connection are removed.
    pub(crate) fn admit<B>(&self, request: &mut Request<B>, origin: Origin) -> Result<Admitted, Rejection> {
        if request.method() == Method::CONNECT {
            return Err(reject(StatusCode::NOT_IMPLEMENTED, "this is a reverse proxy, which makes no tunnels\n"));
        }
        let version = request.version();
        let closes = check_framing(request.headers(), version)?;
        let host = host(request.uri(), request.headers(), version, &self.upstream)?;
        let target = target(request.uri(), request.method())?;
        *request.uri_mut() = target;
        let method = request.method().clone();
        let headers = request.headers_mut();
        take_expectation(headers)?;
        let is_for_any = matches!(method, Method::OPTIONS | Method::TRACE);
        let hops =
            headers.get(MAX_FORWARDS).filter(|_| is_for_any).map(|left| one_hop_less(left, &method)).transpose()?;
        if let Some(left) = hops.flatten() {
            headers.insert(MAX_FORWARDS, left);
        }
        let takes_trailers = takes_trailers(headers);
        headers.insert(HOST, host);
        let upgrade = asked_upgrade(headers, &self.upgrades).filter(|_| version == Version::HTTP_11);
        remove_lookalikes(headers);
        let is_alone = remove_hop_by_hop(headers, &self.key_headers);
        if takes_trailers {
            headers.insert(TE, HeaderValue::from_static("trailers"));
        }
        join_cookies(headers);
        add_forwarded(headers, origin, &self.trusted);
        add_via(headers, version);
        Ok(Admitted { upgrade, closes, is_alone })
    }
}

/// Checks that the end of a body is not in doubt (RFC 9112, section 6.3), and returns whether the connection must
/// close. Of a request with both fields, hyper uses `Transfer-Encoding` and hides `Content-Length`. So every request
/// with `Transfer-Encoding` closes its connection: if an intermediary went by the length, whatever it sent behind that
/// is not answered.
fn check_framing(headers: &HeaderMap, version: Version) -> Result<bool, Rejection> {
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    if let Some(length) = lengths.next()
        && (lengths.next().is_some() || length.is_empty() || !length.as_bytes().iter().all(u8::is_ascii_digit))
    {
        return Err(reject(BAD, "expected one Content-Length, of digits\n"));
    }
    let mut encodings = headers.get_all(TRANSFER_ENCODING).iter();
    let Some(encoding) = encodings.next() else { return Ok(false) };
    let is_chunked = encoding.as_bytes().eq_ignore_ascii_case(b"chunked") && encodings.next().is_none();
    if version != Version::HTTP_11 || headers.contains_key(CONTENT_LENGTH) {
        return Err(reject(BAD, "expected either Content-Length or, in HTTP/1.1, Transfer-Encoding\n"));
    }
    if is_chunked {
        Ok(true)
    } else {
        Err(reject(StatusCode::NOT_IMPLEMENTED, "expected Transfer-Encoding: chunked\n"))
    }
}

/// The requested host. A request must name exactly one (RFC 9112, section 3.2; RFC 9113, section 8.3.1).
fn host(uri: &Uri, headers: &HeaderMap, version: Version, upstream: &Upstream) -> Result<HeaderValue, Rejection> {
    let mut hosts = headers.get_all(HOST).iter();
    let field = hosts.next();
    if hosts.next().is_some() {
        return Err(reject(BAD, "expected one Host, got several\n"));
    }
    let named = field.map(|host| host.as_bytes().try_into()).transpose();
    let named: Option<Authority> = named.map_err(|_| reject(BAD, "the Host is not one\n"))?;
    let asked = uri.authority();
    let authority = match (asked, &named) {
        (None, None) if version == Version::HTTP_10 => &upstream.authority,
        (_, None) if version == Version::HTTP_11 => return Err(reject(BAD, "expected a Host, got none\n")),
        (None, None) => return Err(reject(BAD, "expected an authority, got none\n")),
        (Some(asked), Some(named)) if version == Version::HTTP_2 && asked != named => {
            return Err(reject(BAD, "the Host is not the authority that is asked for\n"));
        }
        // If the target is an absolute URI, the Host field is ignored (RFC 9112, section 3.2.2).
        (Some(authority), _) | (None, Some(authority)) => authority,
    };
    let all = authority.as_str();
    if all.contains('@') || authority.host().is_empty() {
        return Err(reject(BAD, "expected a host with or without a port, and no user\n"));
    }
    HeaderValue::from_str(all).map_err(|_| reject(BAD, "the Host is not one\n"))
}

/// The target in origin form.
fn target(uri: &Uri, method: &Method) -> Result<Uri, Rejection> {
    let wrong = reject(BAD, "the request target is not one that can be passed on\n");
    if uri.scheme_str().is_some_and(|scheme| scheme != "http" && scheme != "https") {
        return Err(wrong);
    }
    let path = uri.path_and_query().cloned().ok_or(wrong)?;
    let is_whole_server = path.as_str() == "*";
    let is_path = path.as_str().starts_with('/') || (is_whole_server && method == Method::OPTIONS);
    if is_path { Ok(path.into()) } else { Err(wrong) }
}

/// `Max-Forwards` for the next recipient of OPTIONS and TRACE (RFC 9110, section 7.6.2). At 0 the proxy itself answers.
fn one_hop_less(left: &HeaderValue, method: &Method) -> Result<Option<HeaderValue>, Rejection> {
    match left.to_str().ok().and_then(|left| left.parse::<u32>().ok()) {
        Some(0) if *method == Method::OPTIONS => Err(reject(StatusCode::NO_CONTENT, "")),
        Some(0) => {
            Err(reject(StatusCode::METHOD_NOT_ALLOWED, "this proxy is the last recipient, and echoes nothing\n"))
        }
        Some(left) => Ok(Some(HeaderValue::from(left - 1))),
        None => Ok(None),
    }
}

/// Checks and removes `Expect: 100-continue`, which the proxy answers itself once it reads the body. No other
/// expectation is defined.
fn take_expectation(headers: &mut HeaderMap) -> Result<(), Rejection> {
    let is_known = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"100-continue");
    if !headers.get_all(EXPECT).iter().all(is_known) {
        return Err(reject(StatusCode::EXPECTATION_FAILED, "expected no Expect but 100-continue\n"));
    }
    remove_all(headers, |name| *name == EXPECT);
    Ok(())
}

/// Joins the `Cookie` fields: HTTP/2 may split them, HTTP/1.1 has one (RFC 9113, section 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let mut cookies = headers.get_all(COOKIE).iter();
    let (Some(first), Some(_)) = (cookies.next(), cookies.next()) else { return };
    let mut all = first.as_bytes().to_vec();
    for cookie in headers.get_all(COOKIE).iter().skip(1) {
        all.extend_from_slice(b"; ");
        all.extend_from_slice(cookie.as_bytes());
    }
    if let Ok(all) = HeaderValue::from_bytes(&all) {
        headers.insert(COOKIE, all);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, SocketAddr};

    use super::*;
    use crate::config::Coalescing;

    fn admission() -> Admission {
        let address: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let mut config = Config::new("upstream:81".parse().unwrap(), address);
        let key_headers = vec![HeaderName::from_static("x-tenant")];
        config.coalesce = Some(Coalescing { key_headers, ..Coalescing::default() });
        Admission::new(&config)
    }

    fn admit(version: Version, target: &str, headers: &[(&str, &str)]) -> Result<Request<()>, u16> {
        let method = if target == "*" { "OPTIONS" } else { "GET" };
        let mut request = Request::builder().method(method).version(version).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(()).unwrap();
        let origin = Origin { client: Some(IpAddr::from([127, 0, 0, 1])), tls: false };
        admission().admit(&mut request, origin).map_err(|rejection| rejection.status.as_u16())?;
        Ok(request)
    }

    const HTTP1: Version = Version::HTTP_11;
    const HTTP2: Version = Version::HTTP_2;

    #[test]
    fn one_host_is_asked_for() {
        let host = |version, target: &str, hosts: &[&str]| {
            let hosts: Vec<_> = hosts.iter().map(|host| ("host", *host)).collect();
            admit(version, target, &hosts).map(|request| request.headers()["host"].to_str().unwrap().to_owned())
        };
        let is = |name: &str| Ok(name.to_owned());
        assert_eq!(host(HTTP1, "/", &["a:80"]), is("a:80"));
        assert_eq!(host(HTTP1, "/", &[]), Err(400));
        assert_eq!(host(HTTP1, "/", &["a", "b"]), Err(400));
        assert_eq!(host(HTTP1, "/", &["a", "a"]), Err(400));
        assert_eq!(host(Version::HTTP_10, "/", &[]), is("upstream:81"));
        assert_eq!(host(Version::HTTP_10, "/", &["a", "b"]), Err(400));
        for wrong in ["", "me@a", "a b", "a/b", "a, b", ":80"] {
            assert_eq!(host(HTTP1, "/", &[wrong]), Err(400), "{wrong}");
        }
        assert_eq!(host(HTTP1, "http://b/", &["a"]), is("b"));
        assert_eq!(host(HTTP1, "http://b/", &[]), Err(400));
        assert_eq!(host(HTTP1, "http://me:pw@b/", &["b"]), Err(400));
        assert_eq!(host(HTTP1, "ftp://b/", &["b"]), Err(400));
        assert_eq!(host(HTTP2, "https://b/", &[]), is("b"));
        assert_eq!(host(HTTP2, "https://b/", &["B"]), is("b"));
        assert_eq!(host(HTTP2, "https://b/", &["a"]), Err(400));
        assert_eq!(host(HTTP2, "/", &[]), Err(400));
    }

    #[test]
    fn targets_become_paths() {
        for (target, path) in [("/a?b", "/a?b"), ("http://b/a?b", "/a?b"), ("http://b", "/"), ("*", "*")] {
            assert_eq!(admit(HTTP1, target, &[("host", "b")]).unwrap().uri(), path);
        }
    }

    #[test]
    fn where_a_body_ends_is_not_in_doubt() {
        let framed = |headers: &[(&str, &str)]| admit(HTTP1, "/", &[&[("host", "a")], headers].concat()).map(drop);
        for wrong in [
            &[("content-length", "1"), ("content-length", "1")][..],
            &[("content-length", "+1")],
            &[("content-length", "1, 1")],
            &[("content-length", "")],
            &[("content-length", "1"), ("transfer-encoding", "chunked")],
        ] {
            assert_eq!(framed(wrong), Err(400), "{wrong:?}");
        }
        for unknown in ["gzip, chunked", "identity", "chunked, chunked", "xchunked", "\u{b}chunked"] {
            if let Ok(value) = HeaderValue::from_str(unknown) {
                assert_eq!(framed(&[("transfer-encoding", value.to_str().unwrap())]), Err(501), "{unknown}");
            }
        }
        assert_eq!(framed(&[("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")]), Err(501));
        assert_eq!(framed(&[("transfer-encoding", "Chunked")]), Ok(()));
        assert_eq!(admit(Version::HTTP_10, "/", &[("transfer-encoding", "chunked")]).map(drop), Err(400));
        assert_eq!(framed(&[("expect", "100-Continue")]), Ok(()));
        assert_eq!(framed(&[("expect", "200-ok")]), Err(417));
    }

    #[test]
    fn no_client_nominates_what_answers_depend_on() {
        let nominates = "close, host, x-tenant, Accept-Language, origin, x-own, forwarded";
        let headers =
            [("host", "a"), ("connection", nominates), ("x-tenant", "1"), ("accept-language", "de"), ("x-own", "1")];
        let request = admit(HTTP1, "/", &headers).unwrap();
        let has = |name: &str| request.headers().contains_key(name);
        assert!(has("host") && has("x-tenant") && has("accept-language") && has("forwarded"));
        assert!(!has("x-own") && !has("connection"));
    }

    #[test]
    fn the_last_recipient_answers_itself() {
        let ask = |left| admit(HTTP1, "*", &[("host", "a"), ("max-forwards", left)]);
        assert_eq!(ask("0").map(drop), Err(204));
        assert_eq!(ask("7").unwrap().headers()["max-forwards"], "6");
        assert_eq!(ask("many").unwrap().headers()["max-forwards"], "many");
        assert_eq!(admit(HTTP1, "/", &[("host", "a"), ("max-forwards", "0")]).unwrap().headers()["max-forwards"], "0");
    }

    #[test]
    fn whoever_takes_trailers_may_have_them() {
        let te = |value| admit(HTTP1, "/", &[("host", "a"), ("te", value)]).unwrap().headers().get("te").cloned();
        assert_eq!(te("gzip;q=0.5, Trailers").unwrap(), "trailers");
        assert_eq!(te("gzip"), None);
    }

    #[test]
    fn whoever_nominates_a_field_goes_alone() {
        let is_alone = |nominates: &str| {
            let mut request = Request::get("/").header("host", "a").header("connection", nominates);
            request = request.header("x-own", "1");
            let origin = Origin { client: None, tls: false };
            admission().admit(&mut request.body(()).unwrap(), origin).unwrap().is_alone
        };
        assert!(is_alone("x-own") && is_alone("close, accept"));
        assert!(!is_alone("keep-alive, TE, upgrade, HTTP2-Settings") && !is_alone("close"));
    }

    #[test]
    fn cookies_are_one() {
        let request = admit(HTTP2, "https://a/", &[("cookie", "a=1"), ("cookie", "b=2"), ("cookie", "c=3")]).unwrap();
        let cookies: Vec<_> = request.headers().get_all(COOKIE).iter().collect();
        assert_eq!(cookies, ["a=1; b=2; c=3"]);
    }
}
