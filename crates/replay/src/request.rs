//! Requests of a log in the form in which they are sent: HTTP/1.1 as text, which the client of HTTP/2 takes, too.

use std::ops::Range;
use std::sync::Arc;

use brunt_protocol::plan::target::Target;
use brunt_protocol::traced::TRACEPARENT;

use crate::entry::Entry;
use crate::folding::{Templates, fold_into};

/// Fields that belong to a connection and not to a request, or that are made anew.
const NOT_SENT: [&str; 12] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "cookie",
    "proxy-connection",
    "proxy-authorization",
];

/// A request, prepared once for all its copies.
#[derive(Debug)]
pub struct Request {
    /// The request line and all fields but the cookies, each with its end of line.
    pub head: Vec<u8>,
    /// The body.
    pub body: Vec<u8>,
    /// The cookies from the log.
    pub cookies: Vec<(String, String)>,
    /// The range of the path without its query in the head; cookies are chosen by it.
    path: Range<usize>,
    /// Whether it may be sent again.
    pub is_idempotent: bool,
    /// Whether its answer has no body.
    pub is_head: bool,
    /// The number and the name of its template.
    pub template: (u32, Arc<str>),
    /// The status in the log.
    pub status: Option<u16>,
    /// The size of the answer in the log, in bytes.
    pub bytes: Option<u64>,
    /// The duration in the log, in nanoseconds.
    pub duration_ns: Option<u64>,
}

impl Request {
    /// The approximate size in memory, in bytes.
    pub fn weight(&self) -> usize {
        let cookies: usize = self.cookies.iter().map(|(name, value)| name.len() + value.len() + 48).sum();
        size_of::<Self>() + self.head.len() + self.body.len() + cookies
    }

    /// Whether the log has a `traceparent` for it.
    pub fn has_trace(&self) -> bool {
        let mut lines = self.head.split(|byte| *byte == b'\n').skip(1);
        let name = |line: &[u8]| line.split(|byte| *byte == b':').next().map(<[u8]>::to_ascii_lowercase);
        lines.any(|line| name(line).as_deref() == Some(TRACEPARENT.as_bytes()))
    }

    /// The path without its query.
    pub fn path(&self) -> &str {
        self.head.get(self.path.clone()).and_then(|path| std::str::from_utf8(path).ok()).unwrap_or("/")
    }
}

/// Composes requests from entries.
pub struct Composer {
    authority: String,
    headers: Vec<(String, String)>,
    templates: Templates,
    /// The template of the last request.
    folded: String,
}

impl Composer {
    /// Composes requests to `target`, all with these fields in place of the log's.
    pub fn new(target: &Target, headers: Vec<(String, String)>) -> Self {
        Self { authority: target.authority(), headers, templates: Templates::default(), folded: String::new() }
    }

    /// The request of an entry, whose URL is a path of the target.
    pub fn request(&mut self, entry: &Entry) -> Request {
        self.folded.clear();
        fold_into(&entry.method, &entry.url, &mut self.folded);
        let template = self.templates.numbered(&self.folded);
        let is_own = |name: &str| self.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        let mut head = Vec::with_capacity(256);
        let mut line = |parts: [&str; 4]| {
            for part in parts {
                head.extend_from_slice(part.as_bytes());
            }
            head.extend_from_slice(b"\r\n");
        };
        line([&entry.method, " ", &entry.url, " HTTP/1.1"]);
        if !is_own("host") {
            line(["Host", ": ", &self.authority, ""]);
        }
        let has_agent = entry.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("user-agent"));
        if !has_agent && !is_own("user-agent") {
            line(["User-Agent", ": ", concat!("brunt/", env!("CARGO_PKG_VERSION")), ""]);
        }
        for (name, value) in &entry.headers {
            let is_sent = !NOT_SENT.iter().any(|not| name.eq_ignore_ascii_case(not));
            if is_sent && !is_own(name) {
                line([name, ": ", value, ""]);
            }
        }
        for (name, value) in &self.headers {
            line([name, ": ", value, ""]);
        }
        let body = entry.body.clone().unwrap_or_default();
        let begin = entry.method.len() + 1;
        if !body.is_empty() || matches!(entry.method.as_str(), "POST" | "PUT" | "PATCH") {
            line(["Content-Length", ": ", &body.len().to_string(), ""]);
        }
        let cookies = entry.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("cookie"));
        let pairs = cookies.flat_map(|(_, field)| field.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let cookies =
            if is_own("cookie") { Vec::new() } else { pairs.map(|(n, v)| (n.to_owned(), v.to_owned())).collect() };
        Request {
            head,
            body,
            cookies,
            path: begin..begin + entry.url.find('?').unwrap_or(entry.url.len()),
            is_idempotent: !matches!(entry.method.as_str(), "POST" | "PATCH"),
            is_head: entry.method == "HEAD",
            template,
            status: entry.status,
            bytes: entry.bytes,
            duration_ns: entry.duration_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use brunt_protocol::plan::target::Url;

    use super::*;

    #[test]
    fn a_request_has_the_logs_fields_but_those_of_its_connection() {
        let target = Url::parse("http://127.0.0.1:8080/").unwrap().target;
        let own = vec![("X-Test".to_owned(), "2".to_owned())];
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let entry = Entry {
            method: "POST".to_owned(),
            url: "/users/7?a=b".to_owned(),
            headers: vec![
                field("Host", "shop.test"),
                field("x-test", "1"),
                field("Cookie", "a=1; b=2"),
                field("Transfer-Encoding", "chunked"),
                field("Referer", "http://shop.test/"),
            ],
            body: Some(b"hi".to_vec()),
            ..Entry::default()
        };
        let request = Composer::new(&target, own).request(&entry);
        let head = String::from_utf8(request.head.clone()).unwrap();
        let agent = concat!("User-Agent: brunt/", env!("CARGO_PKG_VERSION"));
        let expected = format!(
            "POST /users/7?a=b HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n{agent}\r\nReferer: http://shop.test/\r\nX-Test: 2\r\n\
             Content-Length: 2\r\n"
        );
        assert_eq!(head, expected);
        assert_eq!((&*request.template.1, request.path()), ("POST /users/{n}", "/users/7"));
        assert_eq!(request.cookies, [field("a", "1"), field("b", "2")]);
        assert!(!request.is_idempotent);
    }
}
