//! The fields that tell the upstream a request's origin: `Forwarded` (RFC 7239), and its predecessors `X-Forwarded-…`.

use std::net::IpAddr;

use http::header::{FORWARDED, HOST};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::config::TrustedProxy;
use crate::headers::remove_all;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// The origin of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    /// The client's address; `None` over a Unix socket.
    pub(crate) client: Option<IpAddr>,
    pub(crate) tls: bool,
}

impl Origin {
    fn is_trusted(&self, proxies: &[TrustedProxy]) -> bool {
        proxies.iter().any(|proxy| match (proxy, self.client) {
            // An IPv4 address that came over an IPv6 socket is still IPv4.
            (TrustedProxy::Network(network), Some(client)) => network.contains(&client.to_canonical()),
            (TrustedProxy::Unix, None) => true,
            _ => false,
        })
    }
}

/// Adds the origin of a request, as one more hop. Existing fields about it are kept only if they come from a trusted
/// proxy.
pub(crate) fn add_forwarded(headers: &mut HeaderMap, origin: Origin, trusted: &[TrustedProxy]) {
    if !origin.is_trusted(trusted) {
        remove_claims(headers);
    }
    let host = headers.get(HOST).cloned();
    if let Some(client) = origin.client {
        append(headers, &FORWARDED_FOR, &client.to_canonical().to_string());
    }
    let scheme = if origin.tls { "https" } else { "http" };
    headers.entry(FORWARDED_PROTO).or_insert(HeaderValue::from_static(scheme));
    if let Some(host) = &host {
        headers.entry(FORWARDED_HOST).or_insert_with(|| host.clone());
    }
    let node = match origin.client.map(|client| client.to_canonical()) {
        Some(IpAddr::V4(client)) => client.to_string(),
        Some(IpAddr::V6(client)) => format!("\"[{client}]\""),
        None => "unknown".to_owned(),
    };
    // Quoted, as a port's colon is in no token.
    let host =
        host.as_ref().and_then(|host| host.to_str().ok()).map_or_else(String::new, |host| format!("host=\"{host}\";"));
    append(headers, &FORWARDED, &format!("for={node};{host}proto={scheme}"));
}

/// Removes the fields by which a client claims a host, a scheme and an address.
fn remove_claims(headers: &mut HeaderMap) {
    remove_all(headers, |name| *name == FORWARDED || *name == REAL_IP || name.as_str().starts_with("x-forwarded-"));
}

/// Appends an element to a list field, and joins its lines into one.
fn append(headers: &mut HeaderMap, name: &HeaderName, element: &str) {
    let mut all = Vec::new();
    for line in headers.get_all(name) {
        all.extend_from_slice(line.as_bytes());
        all.extend_from_slice(b", ");
    }
    all.extend_from_slice(element.as_bytes());
    if let Ok(value) = HeaderValue::from_bytes(&all) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forwarded_headers(client: Option<&str>, headers: &[(&str, &str)], trusted: &[&str]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        let trusted: Vec<_> = trusted.iter().map(|text| text.parse().unwrap()).collect();
        let origin = Origin { client: client.map(|client| client.parse().unwrap()), tls: false };
        add_forwarded(&mut map, origin, &trusted);
        map
    }

    const CLAIMS: [(&str, &str); 8] = [
        ("host", "a:80"),
        ("x-forwarded-for", "10.0.0.1"),
        ("x-forwarded-for", "10.0.0.2"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "b"),
        ("x-forwarded-prefix", "/c"),
        ("x-real-ip", "10.0.0.1"),
        ("forwarded", "for=10.0.0.1"),
    ];

    #[test]
    fn a_stranger_is_not_believed() {
        let seen = forwarded_headers(Some("192.0.2.1"), &CLAIMS, &["10.0.0.0/8", "unix"]);
        assert_eq!(seen["x-forwarded-for"], "192.0.2.1");
        assert_eq!(seen["x-forwarded-proto"], "http");
        assert_eq!(seen["x-forwarded-host"], "a:80");
        assert_eq!(seen["forwarded"], "for=192.0.2.1;host=\"a:80\";proto=http");
        assert!(!seen.contains_key("x-forwarded-prefix") && !seen.contains_key("x-real-ip"));
    }

    #[test]
    fn all_that_a_trusted_proxy_says_is_passed_on() {
        for (client, added, node) in [
            (Some("192.0.2.1"), ", 192.0.2.1", "192.0.2.1"),
            (Some("::ffff:192.0.2.1"), ", 192.0.2.1", "192.0.2.1"),
            (Some("2001:db8::1"), ", 2001:db8::1", "\"[2001:db8::1]\""),
            (None, "", "unknown"),
        ] {
            let seen = forwarded_headers(client, &CLAIMS, &["192.0.2.0/24", "2001:db8::1", "unix"]);
            let chain: Vec<_> = seen.get_all("x-forwarded-for").iter().map(|line| line.to_str().unwrap()).collect();
            assert_eq!(chain.join(", "), format!("10.0.0.1, 10.0.0.2{added}"));
            assert_eq!(
                (&seen["x-forwarded-proto"], &seen["x-forwarded-host"]),
                (&"https".parse().unwrap(), &"b".parse().unwrap())
            );
            assert_eq!(seen["forwarded"], format!("for=10.0.0.1, for={node};host=\"a:80\";proto=http"));
        }
    }
}
