//! The rules for header fields in a proxy (RFC 9110, section 7.6).

use http::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING,
    CONTENT_LENGTH, CONTENT_TYPE, COOKIE, ETAG, EXPIRES, FORWARDED, HOST, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    IF_RANGE, IF_UNMODIFIED_SINCE, LOCATION, ORIGIN, PRAGMA, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, RANGE,
    SET_COOKIE, TE, TRANSFER_ENCODING, UPGRADE, VARY, VIA,
};
use http::{HeaderMap, HeaderName, HeaderValue, Version};

use crate::config::UpgradeProtocol;

/// Says whether a request led or followed. Neither an upstream's own is believed, nor is it asked of the upstream.
pub(crate) const COALESCED: HeaderName = HeaderName::from_static("x-coalesced");

/// Fields that concern one connection, whether they are nominated or not.
const OF_THE_CONNECTION: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("http2-settings"),
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
];

/// End-to-end fields, which must not be nominated (RFC 9110, section 7.6.1): those that an answer and its recipients
/// depend on.
const END_TO_END: [HeaderName; 23] = [
    ACCEPT,
    ACCEPT_ENCODING,
    ACCEPT_LANGUAGE,
    AUTHORIZATION,
    CACHE_CONTROL,
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    COOKIE,
    ETAG,
    EXPIRES,
    FORWARDED,
    HOST,
    IF_MATCH,
    IF_MODIFIED_SINCE,
    IF_NONE_MATCH,
    IF_RANGE,
    IF_UNMODIFIED_SINCE,
    LOCATION,
    ORIGIN,
    PRAGMA,
    RANGE,
    VIA,
];

/// End-to-end fields of answers.
const OF_ANSWERS: [HeaderName; 2] = [SET_COOKIE, VARY];

/// Removes the fields that concern one connection. End-to-end fields and those in `kept` stay, even if they are
/// nominated; returns whether a field was nominated that no connection needs.
pub(crate) fn remove_hop_by_hop(headers: &mut HeaderMap, kept: &[HeaderName]) -> bool {
    let nominated = tokens(headers, &CONNECTION).filter_map(|name| HeaderName::from_bytes(name).ok());
    let (end_to_end, removed): (Vec<_>, Vec<_>) =
        nominated.partition(|name| is_end_to_end(name) || kept.contains(name));
    // `close` and `keep-alive` are options, and named like fields.
    let is_usual = |name: &HeaderName| name.as_str() == "close" || OF_THE_CONNECTION.contains(name);
    let is_unusual = !end_to_end.is_empty() || !removed.iter().all(is_usual);
    remove_all(headers, |name| removed.contains(name) || OF_THE_CONNECTION.contains(name));
    is_unusual
}

/// Removes fields, and leaves the others in their order. `HeaderMap::remove` puts the last field in the place of the removed one;
/// then requests that differ only in what is removed would have unlike keys.
pub(crate) fn remove_all(headers: &mut HeaderMap, is_removed: impl Fn(&HeaderName) -> bool) {
    if !headers.keys().any(&is_removed) {
        return;
    }
    let mut kept = HeaderMap::with_capacity(headers.len());
    let mut name = None;
    for (next, value) in std::mem::take(headers) {
        // Further values of a name come without it.
        name = next.or(name);
        if let Some(name) = name.as_ref().filter(|name| !is_removed(name)) {
            kept.append(name.clone(), value);
        }
    }
    *headers = kept;
}

fn is_end_to_end(name: &HeaderName) -> bool {
    END_TO_END.contains(name)
        || OF_ANSWERS.contains(name)
        || name.as_str().starts_with("x-forwarded-")
        || name.as_str() == "x-real-ip"
}

/// Removes fields with underscores that CGI (RFC 3875, section 4.1.18) and the like take for a field that matters: to
/// this proxy `Transfer_Encoding` is a field of its own.
pub(crate) fn remove_lookalikes(headers: &mut HeaderMap) {
    let is_taken_for_another = |name: &HeaderName| {
        let dashed = || HeaderName::try_from(name.as_str().replace('_', "-")).ok();
        name.as_str().contains('_')
            && dashed().is_some_and(|name| is_end_to_end(&name) || OF_THE_CONNECTION.contains(&name))
    };
    remove_all(headers, is_taken_for_another);
}

/// The elements of a list field, over all its lines.
fn tokens<'a>(headers: &'a HeaderMap, name: &'a HeaderName) -> impl Iterator<Item = &'a [u8]> {
    let lines = headers.get_all(name).iter();
    lines.flat_map(|line| line.as_bytes().split(|&byte| byte == b',')).map(<[u8]>::trim_ascii)
}

/// Whether the client takes trailers (RFC 9110, section 6.5.1).
pub(crate) fn takes_trailers(headers: &HeaderMap) -> bool {
    tokens(headers, &TE).any(|coding| coding.eq_ignore_ascii_case(b"trailers"))
}

/// The length of an answer, if it says one: several equal ones are one (RFC 9110, section 8.6).
pub(crate) fn one_length(headers: &HeaderMap) -> Result<Option<u64>, TwoLengths> {
    let mut one = None;
    for text in tokens(headers, &CONTENT_LENGTH) {
        let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
        let length = std::str::from_utf8(text).ok().filter(|_| is_number).and_then(|text| text.parse().ok());
        match (length, one) {
            (None, _) => return Err(TwoLengths),
            (Some(length), Some(known)) if length != known => return Err(TwoLengths),
            (length, _) => one = length,
        }
    }
    Ok(one)
}

/// An answer that says more than one length.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TwoLengths;

/// Whether this is a message about an upgrade.
fn upgrades(headers: &HeaderMap) -> bool {
    tokens(headers, &CONNECTION).any(|option| option.eq_ignore_ascii_case(b"upgrade"))
}

/// The protocol that a client asks to upgrade to, if it is WebSocket or among the allowed ones.
pub(crate) fn asked_upgrade(headers: &HeaderMap, allowed: &[UpgradeProtocol]) -> Option<HeaderValue> {
    let may = |asked: &[u8]| {
        asked.eq_ignore_ascii_case(b"websocket")
            || allowed.iter().any(|one| asked.eq_ignore_ascii_case(one.0.as_bytes()))
    };
    let asked = tokens(headers, &UPGRADE).find(|asked| may(asked)).filter(|_| upgrades(headers))?;
    HeaderValue::from_bytes(asked).ok()
}

/// Whether a server that switches protocols switches to the requested one.
pub(crate) fn switches_to(headers: &HeaderMap, asked: &HeaderValue) -> bool {
    let mut protocols = tokens(headers, &UPGRADE);
    let is_asked = protocols.next().is_some_and(|protocol| protocol.eq_ignore_ascii_case(asked.as_bytes()));
    is_asked && protocols.next().is_none() && upgrades(headers)
}

/// Adds this proxy to the `Via` field.
pub(crate) fn add_via(headers: &mut HeaderMap, version: Version) {
    let received = match version {
        Version::HTTP_2 => "2 brunt",
        Version::HTTP_10 => "1.0 brunt",
        _ => "1.1 brunt",
    };
    headers.append(VIA, HeaderValue::from_static(received));
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
            ("connection", "x-two, set-cookie, cache-control"),
            ("x-one", "1"),
            ("x-two", "2"),
            ("x-three", "3"),
            ("te", "trailers"),
            ("keep-alive", "1"),
            ("http2-settings", "AAMAAABk"),
            ("trailer", "x"),
            ("set-cookie", "a=1"),
            ("cache-control", "private"),
        ]);
        assert!(remove_hop_by_hop(&mut headers, &[]));
        let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["cache-control", "set-cookie", "trailer", "x-three"]);
    }

    #[test]
    fn what_is_left_keeps_its_order() {
        let left = |fields: &[(&str, &str)]| {
            let mut headers = map(fields);
            remove_hop_by_hop(&mut headers, &[]);
            headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect::<Vec<_>>()
        };
        let fields = [("a", "1"), ("b", "2"), ("a", "3"), ("c", "4"), ("d", "5"), ("c", "6")];
        let with = [&[("te", "trailers"), ("keep-alive", "5")], &fields[..], &[("connection", "te")]].concat();
        assert_eq!(left(&with), left(&fields));
        assert_eq!(left(&fields), ["a: 1", "a: 3", "b: 2", "c: 4", "c: 6", "d: 5"]);
    }

    #[test]
    fn equal_lengths_are_one() {
        let length = |values: &[&str]| {
            one_length(&map(&values.iter().map(|value| ("content-length", *value)).collect::<Vec<_>>()))
        };
        assert_eq!(length(&[]), Ok(None));
        assert_eq!(length(&["7, 7", "7"]), Ok(Some(7)));
        for wrong in [&["7, 8"][..], &["7", "8"], &["7,"], &["+7"], &["-7"], &[""], &["99999999999999999999"]] {
            assert_eq!(length(wrong), Err(TwoLengths), "{wrong:?}");
        }
    }

    #[test]
    fn only_what_is_listed_is_upgraded_to() {
        let asked = |upgrade: &str, connection: &str, allowed: &[&str]| {
            let allowed: Vec<_> = allowed.iter().map(|name| name.parse().unwrap()).collect();
            asked_upgrade(&map(&[("upgrade", upgrade), ("connection", connection)]), &allowed)
        };
        assert_eq!(asked("websocket", "keep-alive", &[]), None);
        assert_eq!(asked("WebSocket", "keep-alive, Upgrade", &[]).unwrap(), "WebSocket");
        assert_eq!(asked("h2c", "Upgrade, HTTP2-Settings", &[]), None);
        assert_eq!(asked("h2c, websocket", "Upgrade", &[]).unwrap(), "websocket");
        assert_eq!(asked("TLS/1.0", "Upgrade", &[]), None);
        assert_eq!(asked("mine", "Upgrade", &["Mine"]).unwrap(), "mine");
    }

    #[test]
    fn a_server_switches_to_what_it_was_asked_for() {
        let asked = HeaderValue::from_static("websocket");
        let switches = |upgrade: &str, connection: &str| {
            switches_to(&map(&[("upgrade", upgrade), ("connection", connection)]), &asked)
        };
        assert!(switches("WebSocket", "upgrade"));
        assert!(!switches("h2c", "upgrade"));
        assert!(!switches("websocket, h2c", "upgrade"));
        assert!(!switches("websocket", "close"));
    }
}
