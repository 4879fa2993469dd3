//! Requests at random, and others that differ from them in little.

use std::fmt;

use http::{Request, Version};

use crate::chance::Chance;

/// The settings of a proxy that change what requests have in common.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    pub ignored_cookies: Vec<&'static str>,
    pub ignored_headers: Vec<&'static str>,
    pub key_headers: Vec<&'static str>,
    pub trusted: bool,
    pub hold_ms: u64,
    pub all_safe_methods: bool,
    pub share_no_cache: bool,
    pub max_promotions: Option<u32>,
    pub join_late_bytes: Option<usize>,
}

impl Settings {
    pub fn by(chance: &mut Chance) -> Self {
        let mut settings = Self::default();
        if chance.one_in(3) {
            settings.ignored_cookies = vec!["_ga", "_ga_*"];
        }
        if chance.one_in(6) {
            settings.ignored_headers = vec!["x-zqw"];
        }
        if chance.one_in(6) {
            settings.key_headers = vec![*chance.pick(&["user-agent", "cookie", "authorization", "x-forwarded-for"])];
        }
        settings.trusted = chance.one_in(3);
        if chance.one_in(4) {
            settings.hold_ms = 30;
        }
        settings.all_safe_methods = chance.one_in(6);
        settings.share_no_cache = chance.one_in(6);
        settings.max_promotions = chance.one_in(4).then(|| u32::from(chance.one_in(2)));
        settings.join_late_bytes = chance.one_in(4).then(|| chance.below(2000));
        settings
    }
}

/// A request, as a client writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    pub method: &'static str,
    pub target: String,
    pub version: &'static str,
    /// With their names as they are spelt.
    pub fields: Vec<(String, String)>,
    pub body: Option<&'static str>,
    /// Who asks.
    pub client: String,
}

impl Made {
    /// The request in HTTP/2, if it can be one, with its body.
    pub fn http2(&self) -> Option<(Request<()>, &'static str)> {
        let host = self.fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("host")).map_or("", |(_, host)| host);
        let path = self.target.split('#').next().filter(|path| path.starts_with('/'))?;
        let mut request = Request::builder().version(Version::HTTP_2).method(self.method);
        request = request.uri(format!("http://{}{path}", host.trim()));
        // Fields of the connection are an error in HTTP/2 (RFC 9113, section 8.2.2).
        let is_of_http1 = |name: &str| ["host", "connection", "te", "keep-alive", "upgrade"].contains(&name);
        for (name, value) in &self.fields {
            if !is_of_http1(&name.to_ascii_lowercase()) {
                request = request.header(name.as_str(), value.trim_matches([' ', '\t']));
            }
        }
        let request = request.header("x-request-id", self.client.as_str()).body(()).ok()?;
        Some((request, self.body.unwrap_or("")))
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{} {} {}\r\n", self.method, self.target, self.version);
        for (name, value) in &self.fields {
            text.push_str(&format!("{name}:{value}\r\n"));
        }
        text.push_str(&format!("X-Request-Id: {}\r\n", self.client));
        match self.body {
            Some(body) if self.version == "HTTP/1.1" && body.starts_with("chunked ") => {
                text.push_str(&format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len()));
            }
            Some(body) => text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len())),
            None => text.push_str("\r\n"),
        }
        text.into_bytes()
    }
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.bytes()))
    }
}

const METHODS: [&str; 13] =
    ["GET", "GET", "GET", "GET", "GET", "GET", "GET", "HEAD", "POST", "OPTIONS", "TRACE", "get", "QUERY"];

const TARGETS: [&str; 14] = [
    "/p",
    "/p",
    "/p",
    "/p?x=1",
    "/p?x=%31",
    "/p?x=2",
    "/p?",
    "/P",
    "//p",
    "/./p",
    "/%70",
    "http://one.test/p",
    "http://two.test/p",
    "/p#f",
];

const VERSIONS: [&str; 8] =
    ["HTTP/1.0", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/2", "HTTP/2"];

const HOSTS: [&str; 7] = [" one.test", " one.test", " one.test", " ONE.test", " one.test:80", " two.test", ""];

/// How many of the names keep no request from being coalesced.
const USUAL: usize = 18;

/// Names of fields: harmless ones, known ones, credentials, lookalikes, and some that mean nothing.
const NAMES: [&str; 80] = [
    "User-Agent",
    "Referer",
    "Priority",
    "TE",
    "Via",
    "Keep-Alive",
    "Max-Forwards",
    "Sec-CH-UA",
    "Sec-CH-UA-Platform",
    "traceparent",
    "tracestate",
    "b3",
    "X-B3-TraceId",
    "X-Correlation-ID",
    "CF-Ray",
    "Sentry-Trace",
    "X-Datadog-Origin",
    "baggage",
    "Cache-Control",
    "Pragma",
    "Accept",
    "Accept-Language",
    "Accept-Encoding",
    "Accept-Profile",
    "Origin",
    "If-None-Match",
    "If-Modified-Since",
    "If-Range",
    "Range",
    "Sec-Fetch-Mode",
    "Sec-CH-UA-Mobile",
    "Save-Data",
    "DNT",
    "X-Requested-With",
    "HX-Request",
    "Turbo-Frame",
    "RSC",
    "Authorization",
    "Cookie",
    "X-Api-Key",
    "X-Vault-Token",
    "Private-Token",
    "DPoP",
    "Remote-User",
    "X-Auth-Request-User",
    "Cf-Access-Jwt-Assertion",
    "Proxy-Authorization",
    "X-Original-URL",
    "X-Original-Path",
    "X-Rewrite-URL",
    "X-Forwarded-Host",
    "X-Forwarded-For",
    "X-Forwarded-Proto",
    "X-Forwarded-Prefix",
    "X-Real-IP",
    "Forwarded",
    "X-HTTP-Method-Override",
    "X-Method",
    "Connection",
    "Upgrade",
    "Expect",
    "X-Zqw",
    "X_Zqw",
    "User_Agent",
    "X_Forwarded_For",
    "Cookie_",
    "X-Coalesced",
    "CF-IPCountry",
    "Trailer",
    "Content-Type",
    "Accept_Language",
    "Authorization_",
    "X-Tenant",
    "Via_",
    "Cookie2",
    "CF-Connecting-IP",
    "X-Forwarded-Server",
    "X-CSRF-Token",
    "X-Client-Cert",
    "Accept-Charset",
];

const VALUES: [&str; 27] = [
    "1",
    "2",
    "1, 2",
    "",
    " 1 ",
    "a=1; b=2",
    "_ga=1",
    "_ga_X=2; _ga=3",
    "_ga=1; sid=2",
    "sentry-a=1",
    "sentry-a=1, user=2",
    "max-age=0",
    "no-cache",
    "max-age=5, max-stale",
    "10.0.0.1",
    "192.0.2.9, 127.0.0.1",
    "for=10.0.0.1;host=x",
    "gzip",
    "\"e\"",
    "trailers",
    "_ga=1, sid=2",
    "_ga=1 sid=2",
    "_ga=\"1; sid=2\"",
    "loopback",
    "private, public",
    "for=private;host=x",
    "min-fresh=5",
];

const OPTIONS: [&str; 10] = [
    "close",
    "keep-alive",
    "X-Zqw",
    "Accept-Language",
    "Origin",
    "Cookie",
    "X-Tenant, close",
    "te",
    "upgrade, X-Api-Key",
    "traceparent",
];

fn value(chance: &mut Chance, name: &str) -> String {
    let value = match name.to_ascii_lowercase().as_str() {
        "connection" => *chance.pick(&OPTIONS),
        "expect" => "100-continue",
        "upgrade" => *chance.pick(&["websocket", "h2c", "x"]),
        "range" => *chance.pick(&["bytes=0-1", "bytes=1-2"]),
        "max-forwards" => *chance.pick(&["0", "7", "x"]),
        _ => *chance.pick(&VALUES),
    };
    let padding = *chance.pick(&["", " ", " ", " ", "\t ", "  "]);
    format!("{padding}{value}")
}

/// A name as some client spells it.
fn spelt(chance: &mut Chance, name: &str) -> String {
    match chance.below(6) {
        0 => name.to_ascii_lowercase(),
        1 => name.to_ascii_uppercase(),
        _ => name.to_owned(),
    }
}

fn field(chance: &mut Chance) -> (String, String) {
    let names = if chance.one_in(3) { &NAMES[..] } else { &NAMES[..USUAL] };
    let mut name = (*chance.pick(names)).to_owned();
    if chance.one_in(8) {
        // A name that no list has.
        name = (0..=chance.below(12)).map(|_| *chance.pick(&['x', 'q', '-', '_', '7', 'Z', '!', '.'])).collect();
    }
    let value = value(chance, &name);
    (spelt(chance, &name), value)
}

fn request(chance: &mut Chance) -> Made {
    let host = if chance.one_in(4) { *chance.pick(&HOSTS) } else { HOSTS[0] };
    let mut fields = vec![("Host".to_owned(), host.to_owned())];
    // Few of them, so that many requests may be shared at all.
    for _ in 0..chance.below(5) {
        let field = field(chance);
        fields.push(field);
    }
    let method = if chance.one_in(8) { *chance.pick(&METHODS) } else { "GET" };
    let body = chance.one_in(20).then(|| *chance.pick(&["", "ab", "chunked body", "chunked "]));
    let version = *chance.pick(&VERSIONS);
    Made { method, target: (*chance.pick(&TARGETS)).to_owned(), version, fields, body, client: String::new() }
}

/// Changes a request in one thing.
fn change(chance: &mut Chance, request: &mut Made) {
    let count = request.fields.len();
    let at = chance.below(count.max(1));
    match chance.below(16) {
        0 => request.method = *chance.pick(&METHODS),
        1 => (*chance.pick(&TARGETS)).clone_into(&mut request.target),
        2 => request.version = *chance.pick(&VERSIONS),
        3 => request.body = *chance.pick(&[None, Some(""), Some("ab"), Some("chunked body")]),
        4 | 5 if count > 0 => {
            let name = request.fields[at].0.clone();
            request.fields[at].1 = value(chance, &name);
        }
        6 if count > 0 => drop(request.fields.remove(at)),
        7 if count > 0 => {
            let again = request.fields[at].clone();
            request.fields.insert(chance.below(count + 1), again);
        }
        8 if count > 1 => request.fields.swap(at, (at + 1) % count),
        9 if count > 0 => request.fields[at].0 = spelt(chance, &request.fields[at].0.clone()),
        10 if count > 0 => {
            // A list in two lines, or two lines in a list.
            let (name, value) = request.fields[at].clone();
            if let Some((one, other)) = value.split_once(", ") {
                one.clone_into(&mut request.fields[at].1);
                request.fields.insert(at + 1, (name, other.to_owned()));
            }
        }
        11 if count > 0 => {
            let host = *chance.pick(&HOSTS);
            host.clone_into(&mut request.fields[0].1);
        }
        12 => request.fields.push(("Connection".to_owned(), value(chance, "connection"))),
        13 => request.fields.push(("Cookie".to_owned(), value(chance, "cookie"))),
        _ => {
            let field = field(chance);
            request.fields.insert(chance.below(count + 1), field);
        }
    }
}

/// Two requests that differ in little, or in nothing.
pub fn pair(chance: &mut Chance, number: usize) -> [Made; 2] {
    let mut one = request(chance);
    let mut other = one.clone();
    for _ in 0..*chance.pick(&[0, 0, 1, 1, 1, 2, 3]) {
        change(chance, &mut other);
    }
    one.client = format!("one-{number}");
    other.client = format!("other-{number}");
    if chance.one_in(2) { [one, other] } else { [other, one] }
}
