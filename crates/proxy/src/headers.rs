//! What a proxy does to headers (RFC 9110, section 7.6).

use std::net::IpAddr;

use http::header::{CONNECTION, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE, VIA};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Version};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Removes what is about one connection, and so must not be passed on.
pub(crate) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|&byte| byte == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    let always = [CONNECTION, KEEP_ALIVE, PROXY_CONNECTION, TE, TRANSFER_ENCODING, UPGRADE];
    for name in always.iter().chain(&[PROXY_AUTHENTICATE, PROXY_AUTHORIZATION]) {
        headers.remove(name);
    }
}

/// The protocol that a client or server wants to upgrade to, if any.
pub(crate) fn upgrade_of(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut tokens = headers.get_all(CONNECTION).iter().flat_map(|value| value.as_bytes().split(|&byte| byte == b','));
    let wants = tokens.any(|token| token.trim_ascii().eq_ignore_ascii_case(b"upgrade"));
    if wants { headers.get(UPGRADE).cloned() } else { None }
}

/// Who asked, and how, as the upstream is told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    /// None by a Unix socket.
    pub(crate) client: Option<IpAddr>,
    pub(crate) tls: bool,
}

/// Says whom a request came from, and through whom.
pub(crate) fn add_forwarded(headers: &mut HeaderMap, origin: Option<Origin>, version: Version) {
    if let Some(origin) = origin {
        if let Some(client) = origin.client {
            let before = headers.get(&FORWARDED_FOR).and_then(|value| value.to_str().ok());
            let all = before.map_or_else(|| client.to_string(), |before| format!("{before}, {client}"));
            if let Ok(value) = HeaderValue::from_str(&all) {
                headers.insert(FORWARDED_FOR, value);
            }
        }
        let scheme = if origin.tls { "https" } else { "http" };
        headers.insert(FORWARDED_PROTO, HeaderValue::from_static(scheme));
    }
    if let Some(host) = headers.get(HOST).cloned() {
        headers.insert(FORWARDED_HOST, host);
    }
    add_via(headers, version);
}

/// Adds this proxy to those that a message went through.
pub(crate) fn add_via(headers: &mut HeaderMap, version: Version) {
    let received = match version {
        Version::HTTP_2 => "2 brunt",
        Version::HTTP_10 => "1.0 brunt",
        _ => "1.1 brunt",
    };
    headers.append(VIA, HeaderValue::from_static(received));
}

/// Sees to it that there is a `Host`, which HTTP/2 has as an authority.
pub(crate) fn ensure_host(headers: &mut HeaderMap, asked: Option<&Authority>, upstream: &Authority) {
    if let Some(authority) = asked
        && let Ok(value) = HeaderValue::from_str(authority.as_str())
    {
        headers.insert(HOST, value);
    } else if !headers.contains_key(HOST)
        && let Ok(value) = HeaderValue::from_str(upstream.as_str())
    {
        headers.insert(HOST, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        map
    }

    #[test]
    fn what_is_about_the_connection_is_removed() {
        let mut headers = map(&[
            ("connection", "close, X-One"),
            ("connection", "x-two"),
            ("x-one", "1"),
            ("x-two", "2"),
            ("x-three", "3"),
            ("te", "trailers"),
            ("keep-alive", "1"),
            ("trailer", "x"),
        ]);
        remove_hop_by_hop(&mut headers);
        let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["trailer", "x-three"]);
    }

    #[test]
    fn an_upgrade_is_one_only_if_the_connection_says_so() {
        assert_eq!(upgrade_of(&map(&[("upgrade", "websocket")])), None);
        let asks = map(&[("upgrade", "websocket"), ("connection", "keep-alive, Upgrade")]);
        assert_eq!(upgrade_of(&asks).unwrap(), "websocket");
    }

    #[test]
    fn the_upstream_is_told_who_asked() {
        let mut headers = map(&[("x-forwarded-for", "10.0.0.1"), ("x-forwarded-proto", "ftp"), ("host", "a")]);
        let by_socket = Origin { client: None, tls: true };
        add_forwarded(&mut headers, Some(by_socket), Version::HTTP_2);
        assert_eq!(headers["x-forwarded-for"], "10.0.0.1");
        headers.remove("via");
        let origin = Origin { client: Some(IpAddr::from([127, 0, 0, 1])), tls: true };
        add_forwarded(&mut headers, Some(origin), Version::HTTP_2);
        assert_eq!(headers["x-forwarded-for"], "10.0.0.1, 127.0.0.1");
        assert_eq!(headers["x-forwarded-proto"], "https");
        assert_eq!(
            (&headers["x-forwarded-host"], &headers["via"]),
            (&"a".parse().unwrap(), &"2 brunt".parse().unwrap())
        );
    }
}
