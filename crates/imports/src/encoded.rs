//! Escapes of URLs and forms, and the parts of URLs.

use std::fmt::Write as _;

/// A text without its `%XX` escapes; bytes that are not UTF-8 stay escaped.
pub(crate) fn decoded(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = |digit: &u8| char::from(*digit).to_digit(16);
        match (first, tail) {
            (b'%', [high, low, after @ ..]) => match (hex(high), hex(low)) {
                (Some(high), Some(low)) => {
                    bytes.push((high * 16 + low) as u8);
                    rest = after;
                    continue;
                }
                _ => bytes.push(b'%'),
            },
            _ => bytes.push(*first),
        }
        rest = tail;
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// A part of a form or a query without its escapes.
pub(crate) fn form_decoded(text: &str) -> String {
    decoded(&text.replace('+', " "))
}

/// The fields of a form or a query, without their escapes.
pub(crate) fn form(text: &str) -> Vec<(String, String)> {
    let fields = text.split('&').filter(|field| !field.is_empty());
    fields
        .map(|field| {
            let (name, value) = field.split_once('=').unwrap_or((field, ""));
            (form_decoded(name), form_decoded(value))
        })
        .collect()
}

/// `text` with escapes for characters that URLs must not have; existing escapes stay.
pub(crate) fn url_safe(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}') {
            safe.push(char::from(byte));
        } else {
            let _ = write!(safe, "%{byte:02X}");
        }
    }
    safe
}

/// `text` with escapes for bytes beyond ASCII, blanks, control letters and the letters of `also`; all others stay as its
/// tool sends them.
pub(crate) fn kept_but(text: &str, also: &[u8]) -> String {
    let mut safe = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_graphic() && !also.contains(&byte) {
            safe.push(char::from(byte));
        } else {
            let _ = write!(safe, "%{byte:02X}");
        }
    }
    safe
}

/// `text` as one segment or value of a URL: `%XX` for all but letters, digits and `-._~`.
pub(crate) fn component(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            safe.push(char::from(byte));
        } else {
            let _ = write!(safe, "%{byte:02X}");
        }
    }
    safe
}

/// `text` as a value in a form: as [`component`], with `+` for a blank.
pub(crate) fn form_component(text: &str) -> String {
    component(text).replace("%20", "+")
}

/// The media type that tools give a file by its name: curl knows the first ten endings alone.
pub(crate) fn media_type(name: &str, is_curl: bool) -> Option<&'static str> {
    const TYPES: [(&str, &str); 26] = [
        ("gif", "image/gif"),
        ("jpg", "image/jpeg"),
        ("jpeg", "image/jpeg"),
        ("png", "image/png"),
        ("svg", "image/svg+xml"),
        ("txt", "text/plain"),
        ("htm", "text/html"),
        ("html", "text/html"),
        ("pdf", "application/pdf"),
        ("xml", "application/xml"),
        ("json", "application/json"),
        ("csv", "text/csv"),
        ("css", "text/css"),
        ("md", "text/markdown"),
        ("log", "text/plain"),
        ("yaml", "text/yaml"),
        ("yml", "text/yaml"),
        ("zip", "application/zip"),
        ("gz", "application/gzip"),
        ("tar", "application/x-tar"),
        ("webp", "image/webp"),
        ("bmp", "image/bmp"),
        ("mp3", "audio/mpeg"),
        ("mp4", "video/mp4"),
        ("bin", "application/octet-stream"),
        ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ];
    let known = TYPES.iter().take(if is_curl { 10 } else { TYPES.len() });
    let (_, ending) = name.rsplit_once('.')?;
    known.clone().find(|(known, _)| known.eq_ignore_ascii_case(ending)).map(|(_, kind)| *kind)
}

/// Splits a whole URL into scheme, host and port, as `http://host:port`, and the rest, which begins with `/`. The user
/// and the fragment are left out.
pub(crate) fn origin_and_path(url: &str) -> Option<(String, String)> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    if !matches!(scheme.as_str(), "http" | "https") {
        return None;
    }
    let rest = rest.split('#').next().unwrap_or_default();
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority.rsplit('@').next().unwrap_or(authority).to_ascii_lowercase();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':' | b'[' | b']');
    if host.is_empty() || !host.bytes().all(is_plain) {
        return None;
    }
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Some((format!("{scheme}://{host}"), path))
}

/// The host of an origin, without its port.
pub(crate) fn host_of(origin: &str) -> &str {
    let host = origin.split_once("://").map_or(origin, |(_, host)| host);
    match host.rfind(':') {
        Some(at) if !host.ends_with(']') => host.get(..at).unwrap_or(host),
        _ => host,
    }
}

/// Whether a text is a token of HTTP (RFC 9110, section 5.6.2), as methods and names of header fields are.
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Whether a text can be the value of a header field.
pub(crate) fn is_field_value(text: &str) -> bool {
    !text.chars().any(|letter| letter.is_control() && letter != '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_read_and_written() {
        assert_eq!(decoded("a%20b%C3%A9%zz%2"), "a bé%zz%2");
        assert_eq!(decoded("%ff"), "%ff");
        assert_eq!(form("a=1+2&b&=c%3D"), [("a", "1 2"), ("b", ""), ("", "c=")].map(|(a, b)| (a.into(), b.into())));
        assert_eq!(url_safe("/a b?c=\"%20é\""), "/a%20b?c=%22%20%C3%A9%22");
        assert_eq!(kept_but("/a b?{c}|é'", b"{'"), "/a%20b?%7Bc}|%C3%A9%27");
        assert_eq!(component("a/b é"), "a%2Fb%20%C3%A9");
    }

    #[test]
    fn urls_are_taken_apart() {
        let parts = |url| origin_and_path(url).map(|(origin, path)| format!("{origin} {path}"));
        assert_eq!(parts("HTTP://me:pw@Shop.test:80/a?b#c").as_deref(), Some("http://shop.test:80 /a?b"));
        assert_eq!(parts("https://shop.test?x=1").as_deref(), Some("https://shop.test /?x=1"));
        for wrong in ["data:,a", "ws://a/", "http://", "http:///a", "http://a b/", "/a"] {
            assert_eq!(parts(wrong), None, "{wrong}");
        }
        assert_eq!(
            (host_of("http://a:80"), host_of("http://[::1]"), host_of("http://[::1]:80")),
            ("a", "[::1]", "[::1]")
        );
    }
}
