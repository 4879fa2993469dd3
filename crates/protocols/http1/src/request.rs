//! The requests of a flood: encoded before the load begins where they are all alike, else put together from parts.

use std::ops::Range;
use std::sync::Arc;

use brunt_plan::plan::Plan;
use brunt_plan::random::choice;
use brunt_plan::secret::REDACTED;
use brunt_plan::target::{self, Target, Url};

use brunt_protocol::OptionsError;
use brunt_protocol::headers::{Header, authorization, check_token, header_value};

use super::line::Line;
use super::options::{Lines, Options, Order};
use brunt_protocol::user::{Message, Refusal, Tail, User};

/// What every request of a run is made from, shared by the workers.
#[derive(Debug)]
pub(super) struct Requests {
    asked: Asked,
    /// Header fields that requests have if their lines have none, each with its line end.
    headers: Vec<u8>,
    bodies: Bodies,
    order: Order,
    seed: u64,
}

/// What is asked for, line by line.
#[derive(Debug, Default)]
struct Asked {
    /// What each line asks for, or the one for the target.
    lines: Vec<RequestLine>,
    /// The texts that `lines` point into.
    text: Vec<u8>,
    /// Where the lines go, if not all to the plan's target.
    targets: Vec<Target>,
}

/// What the requests of one line have, as places in the text.
#[derive(Debug, Clone)]
struct RequestLine {
    method: Range<usize>,
    path: Range<usize>,
    /// Header fields in place of those that all requests have.
    headers: Option<Range<usize>>,
    /// A body of its own.
    body: Option<Range<usize>>,
    /// Whether its Content-Length is ours to write.
    length: bool,
    /// The number of its target.
    target: usize,
}

#[derive(Debug)]
enum Bodies {
    None,
    One(Arc<[u8]>),
    Lines { content: Arc<[u8]>, lines: Vec<Range<usize>> },
}

/// The most hosts that lines may name.
const MOST_TARGETS: usize = 1000;
/// From this size a body is not copied into each request, in bytes.
const LARGE_BODY_BYTES: usize = 64 << 10;

impl Bodies {
    /// What the bodies are parts of.
    fn bytes(&self) -> Option<&Arc<[u8]>> {
        match self {
            Self::None => None,
            Self::One(bytes) | Self::Lines { content: bytes, .. } => Some(bytes),
        }
    }
}

impl Requests {
    /// Reads and checks the options of `plan`, looking secrets up by `env`.
    pub(super) fn prepare(
        options: &Options,
        plan: &Plan,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, OptionsError> {
        check_token("the method", &options.method)?;
        if plan.script.is_some() && (options.url_lines.is_some() || options.body_lines.is_some()) {
            let problem = "a script makes every request, so there are none for --url-lines or --body-lines to make: \
                           read the file in the script (io.lines)";
            return Err(OptionsError(problem.to_owned()));
        }
        target::check_path(&plan.target.path).map_err(|e| OptionsError(e.to_string()))?;
        let asked = match &options.url_lines {
            Some(lines) => url_lines(lines, options, plan, &env)?,
            None => one_line(options, plan),
        };
        if asked.targets.len() > 1 && plan.pipeline > 1 {
            let problem = "requests to several hosts are not sent ahead of answers: leave --pipeline or --streams out";
            return Err(OptionsError(problem.to_owned()));
        }
        let bodies = match (&options.body, &options.body_lines) {
            (Some(_), Some(_)) => {
                return Err(OptionsError("a body and a file of bodies cannot both be given".to_owned()));
            }
            (Some(body), None) => Bodies::One(body.0.as_slice().into()),
            (None, Some(lines)) => body_lines(lines)?,
            (None, None) => Bodies::None,
        };
        Ok(Self {
            asked,
            headers: header_section(options, plan, &plan.target, &env)?,
            bodies,
            order: options.order,
            seed: plan.seed,
        })
    }

    /// Where requests go, if not all to the plan's target.
    pub(super) fn targets(&self) -> &[Target] {
        &self.asked.targets
    }

    /// Which of `count` lines the call with this number takes.
    fn pick(&self, index: u64, count: usize) -> usize {
        let number = match self.order {
            Order::Sequential => index,
            Order::Random => choice(self.seed, index),
        };
        (number % (count.max(1) as u64)) as usize
    }

    /// Whether every request is the same.
    fn is_static(&self) -> bool {
        self.asked.lines.len() == 1 && !matches!(&self.bodies, Bodies::Lines { .. })
    }

    /// Writes the request with this number, but for a large body, whose place is returned. Says whether it is
    /// idempotent.
    fn encode(&self, index: u64, out: &mut Vec<u8>) -> (bool, Option<Range<usize>>) {
        let text = |range: &Range<usize>| self.asked.text.get(range.clone()).unwrap_or(&[]);
        let Some(line) = self.asked.lines.get(self.pick(index, self.asked.lines.len())) else {
            return Default::default();
        };
        let method = text(&line.method);
        out.extend_from_slice(method);
        out.push(b' ');
        out.extend_from_slice(text(&line.path));
        out.extend_from_slice(b" HTTP/1.1\r\n");
        out.extend_from_slice(line.headers.as_ref().map_or(&self.headers, text));
        if let Some(body) = line.body.as_ref().map(text) {
            if line.length {
                out.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
            }
            out.extend_from_slice(b"\r\n");
            out.extend_from_slice(body);
            return (is_idempotent(method), None);
        }
        let body = match &self.bodies {
            Bodies::None => None,
            Bodies::One(body) => Some(0..body.len()),
            Bodies::Lines { lines, .. } => lines.get(self.pick(index, lines.len())).cloned(),
        };
        // A method that usually has a body says so when it has none (RFC 9110 §8.6).
        let expected = matches!(method, b"POST" | b"PUT" | b"PATCH");
        if line.length && (body.is_some() || expected) {
            out.extend_from_slice(format!("Content-Length: {}\r\n", body.as_ref().map_or(0, Range::len)).as_bytes());
        }
        out.extend_from_slice(b"\r\n");
        let idempotent = is_idempotent(method);
        match body {
            Some(body) if body.len() >= LARGE_BODY_BYTES => (idempotent, Some(body)),
            Some(body) => {
                out.extend_from_slice(self.bodies.bytes().and_then(|bytes| bytes.get(body)).unwrap_or(&[]));
                (idempotent, None)
            }
            None => (idempotent, None),
        }
    }
}

/// Whether a method is idempotent (RFC 9110, section 9.2.2).
pub(super) fn is_idempotent(method: &[u8]) -> bool {
    matches!(method, b"GET" | b"HEAD" | b"PUT" | b"DELETE" | b"OPTIONS" | b"TRACE")
}

fn one_line(options: &Options, plan: &Plan) -> Asked {
    let mut text = Vec::new();
    let method = append(&mut text, options.method.as_bytes());
    let path = append(&mut text, plan.target.path.as_bytes());
    let length = is_length_ours(options) && (plan.script.is_none() || options.body.is_some());
    let line = RequestLine { method, path, headers: None, body: None, length, target: 0 };
    Asked { lines: vec![line], text, targets: Vec::new() }
}

/// Whether the length of bodies is said nowhere in the header fields.
fn is_length_ours(options: &Options) -> bool {
    let sets = |name: &str| options.headers.iter().any(|header| header.name().eq_ignore_ascii_case(name));
    !sets("content-length") && !sets("transfer-encoding")
}

/// The lines of a file that hold something, with their numbers from 1, as places in its content.
fn lines_of(content: &[u8]) -> impl Iterator<Item = (usize, Range<usize>)> + '_ {
    let mut start = 0;
    content.split(|&byte| byte == b'\n').enumerate().filter_map(move |(number, line)| {
        let range = start..start + line.strip_suffix(b"\r").unwrap_or(line).len();
        start += line.len() + 1;
        (!range.is_empty()).then_some((number + 1, range))
    })
}

fn url_lines(
    lines: &Lines,
    options: &Options,
    plan: &Plan,
    env: &impl Fn(&str) -> Option<String>,
) -> Result<Asked, OptionsError> {
    let mut text = options.method.as_bytes().to_vec();
    let mut request_lines = Vec::new();
    let mut targets: Vec<Target> = Vec::new();
    // The header fields that lines to each of them have, if they have none of their own.
    let mut sections = Vec::new();
    for (number, range) in lines_of(&lines.content.0) {
        let error = |problem: String| OptionsError(format!("{}, line {number}: {problem}", lines.file));
        let line = lines.content.0.get(range).unwrap_or(&[]);
        let line = std::str::from_utf8(line).map_err(|e| error(format!("not UTF-8: {e}")))?.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line.contains(REDACTED) {
            return Err(error("a secret was left out of it when the plan was written; put it back".to_owned()));
        }
        let Line { method, url, mut headers, body, is_json } = Line::read(line).map_err(error)?;
        let is_typed =
            || options.headers.iter().chain(&headers).any(|field| field.name().eq_ignore_ascii_case("content-type"));
        if is_json && !is_typed() {
            headers.push(Header::new("Content-Type", "application/json"));
        }
        if let Some(method) = &method {
            check_token("the method", method).map_err(|e| error(e.0))?;
        }
        let (target, path) = place_of(&url, &plan.target).map_err(error)?;
        let number = match targets.iter().position(|known| *known == target) {
            Some(number) => number,
            None if targets.len() >= MOST_TARGETS => {
                return Err(error(format!("more than {MOST_TARGETS} hosts: a run keeps connections to no more")));
            }
            None => {
                let section = header_section(options, plan, &target, env)?;
                sections.push(append(&mut text, &section));
                targets.push(target);
                targets.len() - 1
            }
        };
        let method = match method {
            Some(method) => append(&mut text, method.as_bytes()),
            None => 0..options.method.len(),
        };
        let path = append(&mut text, path.as_bytes());
        let (headers, length) = match targets.get(number) {
            Some(target) if !headers.is_empty() => {
                let own = with_headers(options, headers);
                let section = header_section(&own, plan, target, env).map_err(|e| error(e.0))?;
                (Some(append(&mut text, &section)), is_length_ours(&own))
            }
            _ => (sections.get(number).cloned(), is_length_ours(options)),
        };
        let body = body.map(|body| append(&mut text, &body));
        request_lines.push(RequestLine { method, path, headers, body, length, target: number });
    }
    if request_lines.is_empty() {
        return Err(OptionsError(format!("{}: there is no URL in it", lines.file)));
    }
    let is_elsewhere = targets.len() > 1 || targets.first().is_some_and(|target| !is_same(target, &plan.target));
    Ok(Asked { lines: request_lines, text, targets: if is_elsewhere { targets } else { Vec::new() } })
}

/// The options with these header fields in place of those with the same names.
fn with_headers(options: &Options, fields: Vec<Header>) -> Options {
    let is_replaced = |header: &&Header| fields.iter().any(|field| field.name().eq_ignore_ascii_case(header.name()));
    let kept: Vec<_> = options.headers.iter().filter(|header| !is_replaced(header)).cloned().collect();
    let authorizes = fields.iter().any(|field| field.name().eq_ignore_ascii_case("authorization"));
    let basic = options.basic.clone().filter(|_| !authorizes);
    Options { headers: kept.into_iter().chain(fields).collect(), basic, ..Options::default() }
}

fn append(text: &mut Vec<u8>, part: &[u8]) -> Range<usize> {
    let start = text.len();
    text.extend_from_slice(part);
    start..text.len()
}

/// Where a URL leads: to the plan's target where it is a path alone.
fn place_of(url: &str, base: &Target) -> Result<(Target, String), String> {
    let at = |target: &Target| Target { path: "/".to_owned(), ..target.clone() };
    if url.starts_with('/') {
        target::check_path(url).map_err(|e| e.to_string())?;
        return Ok((at(base), url.split('#').next().unwrap_or("/").to_owned()));
    }
    if !url.contains("://") {
        return Err(format!("expected a path that begins with / or a whole URL, got '{url}'"));
    }
    let line = Url::parse(url).map_err(|e| e.to_string())?.target;
    if !matches!(line.scheme.as_str(), "http" | "https") {
        return Err(format!("'{}://{}' is not http:// or https://", line.scheme, line.authority()));
    }
    let path = line.path.clone();
    Ok((if is_same(&line, base) { at(base) } else { at(&line) }, path))
}

/// Whether two targets are the same host and port, by the same scheme.
fn is_same(a: &Target, b: &Target) -> bool {
    let port = |to: &Target| to.port.unwrap_or(if to.scheme == "https" { 443 } else { 80 });
    a.scheme == b.scheme && a.host == b.host && port(a) == port(b)
}

fn body_lines(lines: &Lines) -> Result<Bodies, OptionsError> {
    let ranges: Vec<_> = lines_of(&lines.content.0).map(|(_, range)| range).collect();
    if ranges.is_empty() {
        return Err(OptionsError(format!("{}: there is no body in it", lines.file)));
    }
    Ok(Bodies::Lines { content: lines.content.0.as_slice().into(), lines: ranges })
}

/// The header fields that all requests have. Where a script makes the requests, there are no others than those that were
/// asked for, as with wrk.
fn header_section(
    options: &Options,
    plan: &Plan,
    target: &Target,
    env: &impl Fn(&str) -> Option<String>,
) -> Result<Vec<u8>, OptionsError> {
    let mut section = Vec::new();
    let mut field = |name: &str, value: &str| {
        section.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    };
    let sets = |name: &str| options.headers.iter().any(|header| header.name().eq_ignore_ascii_case(name));
    let own = plan.script.is_none();
    if own && !sets("host") {
        field("Host", &target.authority());
    }
    if own && !sets("user-agent") {
        field("User-Agent", concat!("brunt/", env!("CARGO_PKG_VERSION")));
    }
    if let Some(basic) = &options.basic {
        field("Authorization", &authorization(basic, env)?);
    }
    if plan.reconnect && !sets("connection") {
        field("Connection", "close");
    }
    for header in &options.headers {
        field(header.name(), &header_value(header, env)?);
    }
    Ok(section)
}

/// The user of a flood: the same request over and over, or the lines of a file.
pub(super) struct Flood {
    requests: Arc<Requests>,
    /// Whether its method is idempotent.
    idempotent: bool,
    /// The request made last; the only one where all are alike.
    encoded: Vec<u8>,
    /// Where its body is among all, if that is too large to stand in it.
    large_body: Option<Range<usize>>,
    is_static: bool,
}

impl Flood {
    pub(super) fn new(requests: Arc<Requests>) -> Self {
        let mut encoded = Vec::new();
        let (idempotent, large_body) = requests.encode(0, &mut encoded);
        Self { is_static: requests.is_static(), requests, idempotent, encoded, large_body }
    }
}

impl User for Flood {
    fn target(&mut self, index: u64) -> usize {
        let lines = &self.requests.asked.lines;
        lines.get(self.requests.pick(index, lines.len())).map_or(0, |line| line.target)
    }

    fn call(&mut self, index: u64) -> Result<Message<'_>, Refusal> {
        if !self.is_static {
            self.encoded.clear();
            (self.idempotent, self.large_body) = self.requests.encode(index, &mut self.encoded);
        }
        let tail = match (&self.large_body, self.requests.bodies.bytes()) {
            (Some(part), Some(of)) => Some(Tail { of, from: part.start, to: part.end }),
            _ => None,
        };
        Ok(Message { bytes: &self.encoded, tail, idempotent: self.idempotent, ..Message::default() })
    }
}

#[cfg(test)]
mod tests {
    use brunt_plan::secret::Template;

    use brunt_protocol::headers::Header;

    use super::super::options::Content;
    use super::*;
    use crate::tests::plan;

    fn requests(options: &Options, indices: Range<u64>) -> Result<Vec<String>, String> {
        let env = |name: &str| (name == "TOKEN").then(|| "t0p".to_owned());
        let requests = Requests::prepare(options, &plan(), env).map_err(|e| e.to_string())?;
        let mut flood = Flood::new(Arc::new(requests));
        Ok(indices.map(|i| String::from_utf8_lossy(flood.call(i).unwrap().bytes).into_owned()).collect())
    }

    fn lines(content: &str) -> Lines {
        Lines { file: "file.txt".into(), content: Content(content.as_bytes().to_vec()) }
    }

    const AGENT: &str = concat!("User-Agent: brunt/", env!("CARGO_PKG_VERSION"), "\r\n");

    #[test]
    fn a_plain_request() {
        let expected = format!("GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n{AGENT}\r\n");
        assert_eq!(requests(&Options::default(), 0..2), Ok(vec![expected.clone(), expected]));
    }

    #[test]
    fn headers_replace_ours_and_secrets_are_looked_up() {
        let options = Options {
            method: "POST".into(),
            headers: vec![
                Header::new("host", "example.org"),
                Header::new("User-Agent", "me"),
                Header::new("Authorization", "Bearer @TOKEN"),
            ],
            body: Some(Content(b"hi".to_vec())),
            ..Options::default()
        };
        let expected = "POST /a?b=c HTTP/1.1\r\nhost: example.org\r\nUser-Agent: me\r\nAuthorization: Bearer t0p\r\n\
                        Content-Length: 2\r\n\r\nhi";
        assert_eq!(requests(&options, 0..1), Ok(vec![expected.to_owned()]));
        let basic = Options { basic: Some(Template::secret("me:@TOKEN")), ..Options::default() };
        assert!(requests(&basic, 0..1).unwrap()[0].contains("Authorization: Basic bWU6dDBw\r\n"));
    }

    #[test]
    fn lines_are_taken_in_turn() {
        let options = Options {
            url_lines: Some(lines("/one\r\nPOST /two?x#frag\n\n# not this\nHEAD http://127.0.0.1:8080/three\n")),
            body_lines: Some(lines("a\nbc\n")),
            ..Options::default()
        };
        let got: Vec<_> = requests(&options, 0..4)
            .unwrap()
            .iter()
            .map(|r| (r.lines().next().unwrap_or("").to_owned(), r.rsplit("\r\n").next().unwrap_or("").to_owned()))
            .collect();
        let expected = [
            ("GET /one HTTP/1.1", "a"),
            ("POST /two?x HTTP/1.1", "bc"),
            ("HEAD /three HTTP/1.1", "a"),
            ("GET /one HTTP/1.1", "bc"),
        ];
        assert_eq!(got, expected.map(|(line, body)| (line.to_owned(), body.to_owned())));
    }

    #[test]
    fn a_line_may_be_a_whole_request() {
        let options = Options {
            headers: vec![Header::new("X", "all"), Header::new("Accept", "text/plain")],
            basic: Some(Template::credentials("me:hunter2")),
            body_lines: Some(lines("of all\n")),
            url_lines: Some(lines(
                "{\"url\": \"/1\", \"headers\": {\"x\": \"@TOKEN\", \"Authorization\": \"Bearer own\"}, \"body\": \"own\"}\n\
                 {\"method\": \"PUT\", \"url\": \"/2\", \"body\": {\"a\": 1}}\n\
                 /3\n",
            )),
            ..Options::default()
        };
        let got = requests(&options, 0..3).unwrap();
        let host = format!("Host: 127.0.0.1:8080\r\n{AGENT}");
        let basic = "Authorization: Basic bWU6aHVudGVyMg==\r\n";
        assert_eq!(
            got[0],
            format!(
                "POST /1 HTTP/1.1\r\n{host}Accept: text/plain\r\nAuthorization: Bearer own\r\nx: t0p\r\n\
             Content-Length: 3\r\n\r\nown"
            )
        );
        assert_eq!(
            got[1],
            format!(
                "PUT /2 HTTP/1.1\r\n{host}{basic}X: all\r\nAccept: text/plain\r\nContent-Type: application/json\r\n\
             Content-Length: 7\r\n\r\n{{\"a\":1}}"
            )
        );
        assert_eq!(
            got[2],
            format!("GET /3 HTTP/1.1\r\n{host}{basic}X: all\r\nAccept: text/plain\r\nContent-Length: 6\r\n\r\nof all")
        );
    }

    #[test]
    fn lines_may_go_to_several_hosts() {
        let content = "/here\nhttp://127.0.0.1:8080/too\nhttps://b.example/there\nhttp://b.example/other\n";
        let options = Options { url_lines: Some(lines(content)), ..Options::default() };
        let requests = Arc::new(Requests::prepare(&options, &plan(), |_| None).unwrap());
        let targets: Vec<_> =
            requests.targets().iter().map(|to| format!("{}://{}", to.scheme, to.authority())).collect();
        assert_eq!(targets, ["http://127.0.0.1:8080", "https://b.example", "http://b.example"]);
        let mut flood = Flood::new(requests);
        let mut sent = |index| {
            let target = flood.target(index);
            (target, String::from_utf8_lossy(flood.call(index).unwrap().bytes).into_owned())
        };
        for (index, target, line, host) in [
            (0, 0, "GET /here", "127.0.0.1:8080"),
            (1, 0, "GET /too", "127.0.0.1:8080"),
            (2, 1, "GET /there", "b.example"),
            (7, 2, "GET /other", "b.example"),
        ] {
            assert_eq!(sent(index), (target, format!("{line} HTTP/1.1\r\nHost: {host}\r\n{AGENT}\r\n")));
        }
        let same = Options { url_lines: Some(lines("/a\nhttp://127.0.0.1:8080/b\n")), ..Options::default() };
        assert!(Requests::prepare(&same, &plan(), |_| None).unwrap().targets().is_empty());
    }

    #[test]
    fn large_bodies_are_parts_of_what_all_requests_share() {
        let long = "x".repeat(LARGE_BODY_BYTES);
        let options = Options { body_lines: Some(lines(&format!("a\n{long}\n"))), ..Options::default() };
        let requests = Arc::new(Requests::prepare(&options, &plan(), |_| None).unwrap());
        let mut flood = Flood::new(Arc::clone(&requests));
        assert_eq!(flood.call(0).unwrap().tail, None);
        let message = flood.call(1).unwrap();
        let head = String::from_utf8_lossy(message.bytes);
        assert!(head.ends_with(&format!("Content-Length: {LARGE_BODY_BYTES}\r\n\r\n")), "{head}");
        let tail = message.tail.unwrap();
        assert_eq!(tail.bytes(), long.as_bytes());
        assert!(Arc::ptr_eq(tail.of, requests.bodies.bytes().unwrap()));
    }

    #[test]
    fn random_order_depends_on_the_index_alone() {
        let options = Options { url_lines: Some(lines("/1\n/2\n/3\n")), order: Order::Random, ..Options::default() };
        let all = requests(&options, 0..300).unwrap();
        assert_eq!(requests(&options, 100..101).unwrap()[0], all[100]);
        for path in ["/1", "/2", "/3"] {
            let n = all.iter().filter(|request| request.starts_with(&format!("GET {path} "))).count();
            assert!((60..140).contains(&n), "{path}: {n}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_file_and_line() {
        for (content, expected) in [
            ("/a\n/b c d\n", "file.txt, line 2: the method '/b', column 1"),
            ("/a\nGET /b c\n", "file.txt, line 2: '/b c', column 3: ' ' cannot stand in a URL"),
            ("/a\nftp://example.org/\n", "file.txt, line 2: 'ftp://example.org' is not http:// or https://"),
            ("b\n", "file.txt, line 1: expected a path that begins with /"),
            ("/a\n{\"url\": 1}\n", "file.txt, line 2: expected a request in JSON"),
            ("{\"url\": \"/\", \"headers\": {\"X\": \"a\\r\\nY: b\"}}\n", "file.txt, line 1: "),
            ("{\"url\": \"/\", \"method\": \"A B\"}\n", "file.txt, line 1: the method 'A B', column 2"),
            ("\n# x\n", "file.txt: there is no URL in it"),
        ] {
            let error = requests(&Options { url_lines: Some(lines(content)), ..Options::default() }, 0..1).unwrap_err();
            assert!(error.starts_with(expected), "{content}: {error}");
        }
    }

    #[test]
    fn nothing_can_be_smuggled_through_a_header() {
        for header in [Header::new("X", "a\r\nY: b"), Header::new("X\r\nY", "a"), Header::new("", "a")] {
            assert!(requests(&Options { headers: vec![header], ..Options::default() }, 0..1).is_err());
        }
        let unset = Options { headers: vec![Header::new("X", "@NOPE")], ..Options::default() };
        assert!(requests(&unset, 0..1).unwrap_err().contains("NOPE, which is not set"));
    }
}
