//! Where calls go: a URL, read strictly (RFC 3986) and sent as written.

use std::fmt::{self, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize, Serializer};

use crate::percent::percent_decoded;
use crate::secret::{REDACTED, shown_path};

/// The parts of a URL that a run needs.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// In lower case: `http`, `https`, …
    pub scheme: String,
    /// A name, or an address: an IPv6 one without brackets, with its zone behind `%`.
    pub host: String,
    /// The port; `None` for the scheme's default.
    pub port: Option<u16>,
    /// Path and query as written, beginning with `/`. Stored without secrets, see [`shown_path`].
    #[serde(serialize_with = "without_secrets")]
    pub path: String,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url())
    }
}

fn without_secrets<S: Serializer>(path: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&shown_path(path))
}

/// A URL that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{url}', column {column}: {problem}")]
pub struct UrlError {
    /// The URL as given, without user name and password.
    pub url: String,
    /// The column, from 1 in characters, at which it stops being a URL.
    pub column: usize,
    /// The text expected there, and the text found.
    pub problem: String,
}

/// A URL in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Everything but the user.
    pub target: Target,
    /// `user` or `user:password`, percent-decoded.
    pub user: Option<String>,
}

impl Url {
    /// Reads a URL. Without a scheme it is `http`; a fragment is dropped, as it is never sent.
    ///
    /// # Errors
    /// Names the column at which it stops being a URL.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let trimmed = text.trim();
        let parser = Parser { text: trimmed };
        let (scheme, authority_at) = parser.scheme()?;
        let rest = parser.from(authority_at);
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let authority = rest.get(..end).unwrap_or("");
        let (user, host_at) = match authority.rfind('@') {
            Some(at) => (authority.get(..at), authority_at + at + 1),
            None => (None, authority_at),
        };
        let (host, port) = parser.host_and_port(host_at, authority_at + end)?;
        let path = parser.path(authority_at + end)?;
        Ok(Self { target: Target { scheme, host, port, path }, user: user.map(percent_decoded) })
    }
}

/// Checks that `text` can stand as path and query in a request line, beginning with `/`.
///
/// # Errors
/// Names the column at which it cannot.
pub fn check_path(text: &str) -> Result<(), UrlError> {
    Parser { text }.check_path_from(0)
}

#[derive(Clone, Copy)]
struct Parser<'a> {
    text: &'a str,
}

impl<'a> Parser<'a> {
    fn from(self, at: usize) -> &'a str {
        self.text.get(at..).unwrap_or("")
    }

    fn error(self, at: usize, problem: impl Into<String>) -> UrlError {
        let before = self.text.get(..at).unwrap_or(self.text);
        UrlError {
            url: shown_path(&without_user(self.text)).into_owned(),
            column: before.chars().count() + 1,
            problem: problem.into(),
        }
    }

    fn scheme(self) -> Result<(String, usize), UrlError> {
        let Some(at) = self.text.find("://") else { return Ok(("http".to_owned(), 0)) };
        let scheme = self.text.get(..at).unwrap_or("");
        // A later :// belongs to a query.
        if scheme.contains(['/', '?', '#']) {
            return Ok(("http".to_owned(), 0));
        }
        let wrong = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '-' | '.');
        if scheme.is_empty() || scheme.contains(wrong) || !scheme.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(self.error(0, format!("expected a scheme such as http, got '{scheme}'")));
        }
        Ok((scheme.to_ascii_lowercase(), at + 3))
    }

    fn host_and_port(self, start: usize, end: usize) -> Result<(String, Option<u16>), UrlError> {
        let text = self.text.get(start..end).unwrap_or("");
        let (host, port_at) = if let Some(rest) = text.strip_prefix('[') {
            let close = rest.find(']').ok_or_else(|| self.error(end, "expected ] after an IPv6 address"))?;
            let host = rest.get(..close).unwrap_or("");
            let Some(read) = ipv6(host) else {
                return Err(self.error(start + 1, format!("expected an IPv6 address, got '{host}'")));
            };
            (read, close + 2)
        } else {
            let close = text.find(':').unwrap_or(text.len());
            let host = text.get(..close).unwrap_or("");
            self.check_host(host, start)?;
            (host.to_ascii_lowercase(), close)
        };
        let port = match text.get(port_at..).unwrap_or("") {
            "" => None,
            port => Some(self.port(port, start + port_at)?),
        };
        Ok((host, port))
    }

    fn check_host(self, host: &str, start: usize) -> Result<(), UrlError> {
        if host.is_empty() {
            return Err(self.error(start, "expected a host name or address, got nothing"));
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '~');
        if let Some(at) = host.find(|c| !allowed(c)) {
            let got = host.get(at..).and_then(|rest| rest.chars().next()).unwrap_or(' ');
            let hint = if got.is_ascii() { "" } else { " (write an international name in its xn-- form)" };
            return Err(self.error(start + at, format!("'{got}' cannot stand in a host name{hint}")));
        }
        let numeric = host.chars().all(|c| c.is_ascii_digit() || c == '.');
        if numeric && host.parse::<Ipv4Addr>().is_err() {
            return Err(self.error(start, format!("expected an IPv4 address, got '{host}'")));
        }
        Ok(())
    }

    fn port(self, text: &str, at: usize) -> Result<u16, UrlError> {
        let Some(digits) = text.strip_prefix(':') else {
            return Err(self.error(at, format!("expected a port after :, got '{text}'")));
        };
        let number = digits.chars().all(|c| c.is_ascii_digit()).then(|| digits.parse::<u16>().ok()).flatten();
        number
            .filter(|port| *port > 0)
            .ok_or_else(|| self.error(at + 1, format!("expected a port from 1 to 65535, got '{digits}'")))
    }

    fn path(self, start: usize) -> Result<String, UrlError> {
        self.check_path_from(start)?;
        let path = self.from(start);
        let path = path.split('#').next().unwrap_or("");
        Ok(if path.starts_with('/') { path.to_owned() } else { format!("/{path}") })
    }

    fn check_path_from(self, start: usize) -> Result<(), UrlError> {
        let path = self.from(start);
        match path.find(|c: char| !c.is_ascii_graphic()) {
            None => Ok(()),
            Some(at) => {
                let got = path.get(at..).and_then(|rest| rest.chars().next()).unwrap_or(' ');
                let mut buffer = [0; 4];
                let mut encoded = String::new();
                for byte in got.encode_utf8(&mut buffer).bytes() {
                    let _ = write!(encoded, "%{byte:02X}");
                }
                Err(self.error(start + at, format!("{got:?} cannot stand in a URL: write it as {encoded}")))
            }
        }
    }
}

/// An IPv6 address and, behind `%`, its zone, if it has one. In a URL `%25` stands for the `%` (RFC 6874).
fn ipv6(text: &str) -> Option<String> {
    let Some((address, zone)) = text.split_once('%') else {
        return text.parse::<Ipv6Addr>().is_ok().then(|| text.to_owned());
    };
    let zone = zone.strip_prefix("25").filter(|rest| !rest.is_empty()).unwrap_or(zone);
    let is_zone = !zone.is_empty() && zone.chars().all(|c| c.is_ascii_alphanumeric() || "-._~".contains(c));
    (is_zone && address.parse::<Ipv6Addr>().is_ok()).then(|| format!("{address}%{zone}"))
}

/// A host without the zone of its address: a zone has a meaning on this machine alone.
pub fn without_zone(host: &str) -> &str {
    host.split_once('%').map_or(host, |(address, _)| address)
}

fn without_user(url: &str) -> String {
    let start = url.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = url.split_at(start);
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest.get(..end).and_then(|authority| authority.rfind('@')) {
        Some(at) => format!("{scheme}{}", rest.get(at + 1..).unwrap_or("")),
        None => url.to_owned(),
    }
}

impl Target {
    /// The host as in a Host header: an IPv6 address in brackets, without its zone.
    pub fn host_field(&self) -> String {
        let host = without_zone(&self.host);
        if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
    }

    /// `host` or `host:port`, as in a Host header: an IPv6 address in brackets, the port if one was given.
    pub fn authority(&self) -> String {
        self.with_port(self.host_field())
    }

    /// The same as in a URL: with the zone of an address.
    pub fn place(&self) -> String {
        self.with_port(match self.host.split_once('%') {
            Some((address, zone)) => format!("[{address}%25{zone}]"),
            None => self.host_field(),
        })
    }

    fn with_port(&self, host: String) -> String {
        match self.port {
            Some(port) => format!("{host}:{port}"),
            None => host,
        }
    }

    /// The URL for display: without user name or password, and without secrets in its query.
    pub fn url(&self) -> String {
        format!("{}://{}{}", self.scheme, self.place(), shown_path(&self.path))
    }

    /// Whether a secret was removed from its query when it was stored.
    pub(crate) fn lacks_secrets(&self) -> bool {
        self.path.split_once('?').is_some_and(|(_, query)| query.contains(&format!("={REDACTED}")))
    }

    /// The URL with its secrets: never for display.
    pub fn whole_url(&self) -> String {
        format!("{}://{}{}", self.scheme, self.place(), self.path)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn target(text: &str) -> Target {
        Url::parse(text).unwrap().target
    }

    #[test]
    fn a_url_in_its_parts() {
        let url = Url::parse("HTTPS://me:s%40crt@Example.org:8443/a/b?c=d://e#frag").unwrap();
        assert_eq!(url.user.as_deref(), Some("me:s@crt"));
        assert_eq!(url.target.url(), "https://example.org:8443/a/b?c=d://e");
        assert_eq!(target("localhost:8080").url(), "http://localhost:8080/");
        assert_eq!(target("example.org?x=http://y").url(), "http://example.org/?x=http://y");
        assert_eq!(target("http://[::1]:80/a").url(), "http://[::1]:80/a");
        assert_eq!(target("http://[::1]").host, "::1");
    }

    #[test]
    fn a_zone_is_part_of_the_place_and_is_not_sent() {
        for text in ["http://[fe80::1%25eth0.1]:80/a", "http://[fe80::1%eth0.1]:80/a"] {
            let read = target(text);
            assert_eq!((read.host.as_str(), read.authority().as_str()), ("fe80::1%eth0.1", "[fe80::1]:80"), "{text}");
            assert_eq!(read.url(), "http://[fe80::1%25eth0.1]:80/a");
        }
        assert_eq!(target("http://[fe80::1%25]/").host, "fe80::1%25", "a zone by its number");
        assert_ne!(target("http://[fe80::1%251]/").place(), target("http://[fe80::1%252]/").place());
    }

    #[test]
    fn errors_name_the_column() {
        for (text, column, problem) in [
            ("http://", 8, "expected a host name"),
            ("http://ex ample/", 10, "' ' cannot stand in a host name"),
            ("http://a:99999/", 10, "expected a port from 1 to 65535, got '99999'"),
            ("http://a:/", 10, "expected a port"),
            ("http://[::g]/", 9, "expected an IPv6 address, got '::g'"),
            ("http://[::1/", 12, "expected ]"),
            ("http://[::1%25a%b]/", 9, "expected an IPv6 address"),
            ("http://[::1%]/", 9, "expected an IPv6 address"),
            ("http://[::1]x/", 13, "expected a port after :, got 'x'"),
            ("http://[::1]80/", 13, "expected a port after :, got '80'"),
            ("http://%zz/", 8, "'%' cannot stand in a host name"),
            ("http://1.2.3/", 8, "expected an IPv4 address"),
            ("http://a/b c", 11, "write it as %20"),
            ("http://a/ü", 10, "write it as %C3%BC"),
            ("ht tp://a/", 1, "expected a scheme"),
        ] {
            let error = Url::parse(text).unwrap_err();
            assert_eq!(error.column, column, "{text}: {error}");
            assert!(error.problem.contains(problem), "{text}: {error}");
        }
    }

    #[test]
    fn a_secret_in_a_query_is_not_debugged() {
        assert_eq!(format!("{:?}", target("http://a/?token=hunter2")), "http://a/?token=[redacted]");
    }

    #[test]
    fn an_error_does_not_show_the_password() {
        for url in ["http://me:hunter2@a b/", "http://a:x/?token=hunter2"] {
            assert!(!Url::parse(url).unwrap_err().to_string().contains("hunter2"));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            if let Ok(url) = Url::parse(&text) {
                prop_assert!(url.target.path.starts_with('/'));
                prop_assert_eq!(Url::parse(&url.target.whole_url()).unwrap().target, url.target);
            }
        }
    }
}
