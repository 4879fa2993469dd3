//! The requests of a flood: encoded before the load begins where they are all alike, otherwise assembled from parts.

pub(super) mod framing;
mod turns;

use std::ops::Range;
use std::sync::Arc;

use brunt_plan::plan::Plan;
use brunt_plan::random::choice;
use brunt_plan::secret::{REDACTED, Template};
use brunt_plan::target::{self, Target};

use brunt_protocol::OptionsError;
use brunt_protocol::headers::{Header, authorization, check_token, header_value};

use self::framing::{Framing, in_chunks};
use super::hints::{KEEPS, asks_to_close, closing_hint};
use super::line::Line;
use super::options::{Lines, Options, RequestOrder};
use brunt_protocol::lines::{is_same, place_of};
use brunt_protocol::request_names;
use brunt_protocol::source::{Message, RequestSource, SourceEnd, Tail};
use brunt_protocol::traced::{TRACEPARENT, TraceIds, Tracing};

/// The source of every request of a run, shared by the workers.
#[derive(Debug)]
pub(super) struct Requests {
    asked: RequestLines,
    /// Header fields of requests whose lines have none, each with its line end.
    headers: Vec<u8>,
    /// Whether some request asks its peer to close the connection.
    may_close: bool,
    bodies: Bodies,
    /// The same bodies in chunks; none where no request is framed so.
    chunked: Bodies,
    order: RequestOrder,
    seed: u64,
    /// Which calls are traced, if some are.
    tracing: Option<Tracing>,
    /// Which requests of a script are traced: it writes them, and what it begins with is not sent.
    script_tracing: Option<Tracing>,
}

/// The requests, line by line.
#[derive(Debug, Default)]
struct RequestLines {
    /// The request of each line, or the only one, for the target.
    lines: Vec<RequestLine>,
    /// The texts that `lines` point into.
    text: Vec<u8>,
    /// The lines in the order of their use, where some are used more often than others; otherwise empty.
    turns: Vec<u32>,
    /// Where the lines go, if not all to the plan's target.
    targets: Vec<Target>,
    /// The names of the lines' requests, and the index of each line's name; empty where they are not told apart.
    names: Vec<String>,
    named: Vec<u32>,
}

impl RequestLines {
    /// The header fields of a line that has some of its own.
    fn own_headers(&self, line: &RequestLine) -> Option<&[u8]> {
        self.text.get(line.headers.clone()?)
    }
}

/// The parts of one line's request, as ranges in the text.
#[derive(Debug, Clone)]
struct RequestLine {
    method: Range<usize>,
    path: Range<usize>,
    /// Header fields that replace those of all requests.
    headers: Option<Range<usize>>,
    /// A body of its own.
    body: Option<Range<usize>>,
    framing: Framing,
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
    /// The bytes that the bodies are parts of.
    fn bytes(&self) -> Option<&Arc<[u8]>> {
        match self {
            Self::None => None,
            Self::One(bytes) | Self::Lines { content: bytes, .. } => Some(bytes),
        }
    }

    /// The same bodies, each in chunks.
    fn in_chunks(&self) -> Self {
        match self {
            // A request that announces chunks has to end them (RFC 9112 §7.1).
            Self::None => Self::One(in_chunks(&[]).into()),
            Self::One(body) => Self::One(in_chunks(&[body]).into()),
            Self::Lines { content, lines } => {
                let mut framed = Vec::with_capacity(content.len() + lines.len() * 16);
                let body = |range: &Range<usize>| content.get(range.clone()).unwrap_or(&[]);
                let lines = lines.iter().map(|range| append(&mut framed, &in_chunks(&[body(range)]))).collect();
                Self::Lines { content: framed.into(), lines }
            }
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
        check_method(&options.method)?;
        if plan.script.is_some() && (options.url_lines.is_some() || options.body_lines.is_some()) {
            let problem = "a script makes every request, so there are none for --url-lines or --body-lines to make: \
                           read the file in the script (io.lines)";
            return Err(OptionsError(problem.to_owned()));
        }
        target::check_path(&plan.target.path).map_err(|e| OptionsError(e.to_string()))?;
        let asked = match &options.url_lines {
            Some(lines) => url_lines(lines, options, plan, &env)?,
            None => one_line(options, plan)?,
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
        let chunks = |line: &RequestLine| line.framing == Framing::Chunked;
        let chunked = if asked.lines.iter().any(chunks) { bodies.in_chunks() } else { Bodies::None };
        let tracing = tracing(options)?;
        let headers = header_section(options, plan, &plan.target, &env)?;
        let own_headers = asked.lines.iter().filter_map(|line| asked.own_headers(line));
        Ok(Self {
            may_close: asks_to_close(&headers) || own_headers.into_iter().any(asks_to_close),
            asked,
            headers,
            bodies,
            chunked,
            order: options.order,
            seed: plan.seed,
            tracing: tracing.filter(|_| plan.script.is_none()),
            script_tracing: tracing.filter(|_| plan.script.is_some()),
        })
    }

    /// Which requests of a script are traced.
    pub(super) fn script_tracing(&self) -> Option<Tracing> {
        self.script_tracing
    }

    /// Where requests go, if not all to the plan's target.
    pub(super) fn targets(&self) -> &[Target] {
        &self.asked.targets
    }

    /// Which of `count` lines the call with this number takes.
    fn pick(&self, index: u64, count: usize) -> usize {
        let number = match self.order {
            RequestOrder::Sequential => index,
            RequestOrder::Random => choice(self.seed, index),
        };
        (number % (count.max(1) as u64)) as usize
    }

    /// The line that the call with this number takes.
    fn line(&self, index: u64) -> usize {
        let RequestLines { lines, turns, .. } = &self.asked;
        if turns.is_empty() {
            return self.pick(index, lines.len());
        }
        turns.get(self.pick(index, turns.len())).map_or(0, |line| *line as usize)
    }

    /// The hint of the request with this number.
    fn hint(&self, index: u64) -> u32 {
        if !self.may_close {
            return KEEPS;
        }
        let line = self.asked.lines.get(self.line(index));
        closing_hint(line.and_then(|line| self.asked.own_headers(line)).unwrap_or(&self.headers))
    }

    /// Whether every request is the same.
    fn is_static(&self) -> bool {
        self.asked.lines.len() == 1 && !matches!(&self.bodies, Bodies::Lines { .. })
    }

    /// Writes the request with this number, except for a large body, which is returned.
    fn encode(&self, index: u64, out: &mut Vec<u8>) -> Encoded {
        let text = |range: &Range<usize>| self.asked.text.get(range.clone()).unwrap_or(&[]);
        let Some(line) = self.asked.lines.get(self.line(index)) else {
            return Encoded::default();
        };
        let method = text(&line.method);
        out.extend_from_slice(method);
        out.push(b' ');
        out.extend_from_slice(text(&line.path));
        out.extend_from_slice(b" HTTP/1.1\r\n");
        out.extend_from_slice(line.headers.as_ref().map_or(&self.headers, text));
        let is_chunked = line.framing == Framing::Chunked;
        let mut encoded = Encoded { idempotent: is_idempotent(method), large_body: None, is_chunked };
        if let Some(body) = line.body.as_ref().map(text) {
            if line.framing == Framing::Length {
                out.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
            }
            out.extend_from_slice(b"\r\n");
            out.extend_from_slice(body);
            return encoded;
        }
        let bodies = self.bodies(is_chunked);
        let body = match bodies {
            Bodies::None => None,
            Bodies::One(body) => Some(0..body.len()),
            Bodies::Lines { lines, .. } => lines.get(self.pick(index, lines.len())).cloned(),
        };
        // A method that usually has a body states when it has none (RFC 9110 §8.6).
        let expected = matches!(method, b"POST" | b"PUT" | b"PATCH");
        if line.framing == Framing::Length && (body.is_some() || expected) {
            out.extend_from_slice(format!("Content-Length: {}\r\n", body.as_ref().map_or(0, Range::len)).as_bytes());
        }
        out.extend_from_slice(b"\r\n");
        match body {
            Some(body) if body.len() >= LARGE_BODY_BYTES => encoded.large_body = Some(body),
            Some(body) => out.extend_from_slice(bodies.bytes().and_then(|bytes| bytes.get(body)).unwrap_or(&[])),
            None => {}
        }
        encoded
    }

    /// Whether all requests may go as early data. Those of a script are not known.
    pub(super) fn are_safe(&self) -> bool {
        let text = |range: &Range<usize>| self.asked.text.get(range.clone()).unwrap_or(&[]);
        let are_made_here = self.asked.lines.iter().all(|line| line.framing != Framing::Own);
        are_made_here && self.asked.lines.iter().all(|line| goes_early(text(&line.method)))
    }

    /// The bodies of requests that are framed by chunks, or by a length.
    fn bodies(&self, is_chunked: bool) -> &Bodies {
        if is_chunked { &self.chunked } else { &self.bodies }
    }
}

/// What a request needs besides its bytes.
#[derive(Debug, Clone, Default)]
struct Encoded {
    idempotent: bool,
    /// The part of the shared bodies that follows the request's bytes.
    large_body: Option<Range<usize>>,
    /// Whether its body is in chunks.
    is_chunked: bool,
}

/// Whether a method is one that goes as early data (RFC 8470, section 4): GET and HEAD.
fn goes_early(method: &[u8]) -> bool {
    matches!(method, b"GET" | b"HEAD")
}

/// Whether a method is idempotent (RFC 9110, section 9.2.2).
pub(super) fn is_idempotent(method: &[u8]) -> bool {
    matches!(method, b"GET" | b"HEAD" | b"PUT" | b"DELETE" | b"OPTIONS" | b"TRACE")
}

fn one_line(options: &Options, plan: &Plan) -> Result<RequestLines, OptionsError> {
    let mut text = Vec::new();
    let method = append(&mut text, options.method.as_bytes());
    let path = append(&mut text, plan.target.path.as_bytes());
    let framing = match Framing::of(&options.headers, options.http)? {
        Framing::Chunked if plan.script.is_some() => {
            let problem = "a script writes whole requests, and brunt puts no chunks around them: leave -H \
                           'Transfer-Encoding: chunked' out, and frame the body in the script";
            return Err(OptionsError(problem.to_owned()));
        }
        // The script writes the request, with its length.
        _ if plan.script.is_some() && options.body.is_none() => Framing::Own,
        framing => framing,
    };
    let line = RequestLine { method, path, headers: None, body: None, framing, target: 0 };
    Ok(RequestLines { lines: vec![line], text, ..RequestLines::default() })
}

fn url_lines(
    lines: &Lines,
    options: &Options,
    plan: &Plan,
    env: &impl Fn(&str) -> Option<String>,
) -> Result<RequestLines, OptionsError> {
    let mut text = options.method.as_bytes().to_vec();
    let (mut request_lines, mut weights) = (Vec::new(), Vec::new());
    let mut targets: Vec<Target> = Vec::new();
    // The header fields for lines to each target that have none of their own.
    let mut sections = Vec::new();
    let all_framing = Framing::of(&options.headers, options.http)?;
    for (number, line) in lines.requests() {
        let error = |problem: String| lines.wrong(number, &problem);
        let line = line.map_err(error)?;
        if line.contains(REDACTED) {
            return Err(error("a secret was left out of it when the plan was written; put it back".to_owned()));
        }
        let Line { method, url, mut headers, body, is_json, weight } = Line::read(line).map_err(error)?;
        weights.push(weight);
        let is_typed =
            || options.headers.iter().chain(&headers).any(|field| field.name().eq_ignore_ascii_case("content-type"));
        if is_json && !is_typed() {
            headers.push(Header::new("Content-Type", "application/json"));
        }
        if let Some(method) = &method {
            check_method(method).map_err(|e| error(e.0))?;
        }
        let (target, path, user) = place_of(&url, &plan.target, ["http", "https"]).map_err(error)?;
        // A line's own user goes before the user and the Authorization field of all lines, and behind a field of its own.
        if let Some(user) = user
            && !headers.iter().any(|field| field.name().eq_ignore_ascii_case("authorization"))
        {
            let user = if user.contains(':') { user } else { format!("{user}:") };
            headers.push(Header::new("Authorization", authorization(&Template::literal(&user), env)?));
        }
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
        let (headers, framing) = match targets.get(number) {
            Some(target) if !headers.is_empty() => {
                let own = with_headers(options, headers);
                let section = header_section(&own, plan, target, env).map_err(|e| error(e.0))?;
                (Some(append(&mut text, &section)), Framing::of(&own.headers, options.http).map_err(|e| error(e.0))?)
            }
            _ => (sections.get(number).cloned(), all_framing),
        };
        let body = body.map(|body| match framing {
            Framing::Chunked => append(&mut text, &in_chunks(&[&body])),
            Framing::Length | Framing::Own => append(&mut text, &body),
        });
        request_lines.push(RequestLine { method, path, headers, body, framing, target: number });
    }
    if request_lines.is_empty() {
        return Err(OptionsError(format!("{}: there is no URL in it", lines.file)));
    }
    let is_elsewhere = targets.len() > 1 || targets.first().is_some_and(|target| !is_same(target, &plan.target));
    let part = |range: &Range<usize>| String::from_utf8_lossy(text.get(range.clone()).unwrap_or(&[]));
    // Without the query, which may have a secret.
    let called = |line: &RequestLine| {
        let place = match targets.get(line.target) {
            Some(target) if !is_same(target, &plan.target) => format!("{}://{}", target.scheme, target.authority()),
            _ => String::new(),
        };
        let path = part(&line.path);
        format!("{} {place}{}", part(&line.method), path.split('?').next().unwrap_or_default())
    };
    let (names, named) = request_names::names(|| request_lines.iter().map(called));
    let targets = if is_elsewhere { targets } else { Vec::new() };
    let turns = turns::turns(&weights).map_err(|problem| OptionsError(format!("{}: {problem}", lines.file)))?;
    Ok(RequestLines { lines: request_lines, text, turns, targets, names, named })
}

/// The options with these header fields replacing those of the same names.
fn with_headers(options: &Options, fields: Vec<Header>) -> Options {
    let is_replaced = |header: &&Header| fields.iter().any(|field| field.name().eq_ignore_ascii_case(header.name()));
    let kept: Vec<_> = options.headers.iter().filter(|header| !is_replaced(header)).cloned().collect();
    let authorizes = fields.iter().any(|field| field.name().eq_ignore_ascii_case("authorization"));
    let (basic, user) = if authorizes { (None, None) } else { (options.basic.clone(), options.user.clone()) };
    Options { headers: kept.into_iter().chain(fields).collect(), basic, user, ..Options::default() }
}

fn append(text: &mut Vec<u8>, part: &[u8]) -> Range<usize> {
    let start = text.len();
    text.extend_from_slice(part);
    start..text.len()
}

/// Which calls are traced: none where requests have a `traceparent` of their own.
fn tracing(options: &Options) -> Result<Option<Tracing>, OptionsError> {
    let Some(share) = options.trace_ratio else { return Ok(None) };
    if !(share > 0.0 && share <= 1.0) {
        return Err(OptionsError(format!("trace_ratio must be above 0 and up to 1, not {share}")));
    }
    let is_it = |name: &str| name.eq_ignore_ascii_case(TRACEPARENT);
    let in_lines = |lines: &Lines| {
        lines.content.0.to_ascii_lowercase().windows(TRACEPARENT.len()).any(|part| part == TRACEPARENT.as_bytes())
    };
    let has_own =
        options.headers.iter().any(|header| is_it(header.name())) || options.url_lines.as_ref().is_some_and(in_lines);
    Ok((!has_own).then(|| Tracing::of_share(share)))
}

/// Checks a method: a token (RFC 9110 §9.1), which is no standard one in other letters, since methods have a case.
///
/// # Errors
/// Says what was expected.
pub(super) fn check_method(method: &str) -> Result<(), OptionsError> {
    check_token("the method", method)?;
    match standard_method(method) {
        Some(standard) if standard != method => {
            Err(OptionsError(format!("the method '{method}': expected {standard}, since methods are case-sensitive")))
        }
        _ => Ok(()),
    }
}

/// The standard method of this name, whatever its case.
fn standard_method(method: &str) -> Option<&'static str> {
    let standard = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];
    standard.into_iter().find(|standard| standard.eq_ignore_ascii_case(method))
}

fn body_lines(lines: &Lines) -> Result<Bodies, OptionsError> {
    let ranges: Vec<_> = lines.ranges().map(|(_, range)| range).collect();
    if ranges.is_empty() {
        return Err(OptionsError(format!("{}: there is no body in it", lines.file)));
    }
    Ok(Bodies::Lines { content: lines.content.0.as_slice().into(), lines: ranges })
}

/// The header fields of all requests. Where a script makes the requests, only those that were asked for, as with wrk.
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
    // Whoever the target's URL names is known there alone. `--basic` and `-H` are for every target that the user names.
    let user = options.user.as_ref().filter(|_| is_same(target, &plan.target) && !sets("authorization"));
    if let Some(basic) = options.basic.as_ref().or(user) {
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
    /// The bytes of the request made last; the only one where all are alike.
    bytes: Vec<u8>,
    /// What it needs besides.
    encoded: Encoded,
    /// Its hint.
    hint: u32,
    is_static: bool,
    /// Whether `bytes` are all that a call sends, without a large body behind them and without a `traceparent` to add.
    is_whole: bool,
    /// Memory for a request with a `traceparent`.
    traced: Vec<u8>,
}

impl Flood {
    pub(super) fn new(requests: Arc<Requests>) -> Self {
        let mut bytes = Vec::new();
        let encoded = requests.encode(0, &mut bytes);
        let is_static = requests.is_static();
        let is_whole = is_static && encoded.large_body.is_none() && requests.tracing.is_none();
        Self { is_static, is_whole, hint: requests.hint(0), requests, bytes, encoded, traced: Vec::new() }
    }
}

impl RequestSource for Flood {
    fn names(&self) -> &[String] {
        &self.requests.asked.names
    }

    fn name(&self, index: u64) -> usize {
        let named = &self.requests.asked.named;
        named.get(self.requests.line(index)).map_or(0, |name| *name as usize)
    }

    fn target(&mut self, index: u64) -> usize {
        let lines = &self.requests.asked.lines;
        lines.get(self.requests.line(index)).map_or(0, |line| line.target)
    }

    fn request(&mut self, index: u64) -> Result<Message<'_>, SourceEnd> {
        let idempotent = self.encoded.idempotent;
        if self.is_whole {
            return Ok(Message { bytes: &self.bytes, idempotent, hint: self.hint, ..Message::default() });
        }
        if !self.is_static {
            self.bytes.clear();
            self.hint = self.requests.hint(index);
            self.encoded = self.requests.encode(index, &mut self.bytes);
        }
        let Encoded { idempotent, large_body, is_chunked } = &self.encoded;
        let tail = match (large_body, self.requests.bodies(*is_chunked).bytes()) {
            (Some(part), Some(of)) => Some(Tail { of, from: part.start, to: part.end }),
            _ => None,
        };
        let bytes = match self.requests.tracing.as_ref().and_then(|tracing| tracing.ids(index)) {
            Some(ids) if ids.add_to_request(&self.bytes, &mut self.traced) => &self.traced,
            _ => &self.bytes,
        };
        Ok(Message { bytes, tail, idempotent: *idempotent, hint: self.hint, more: false })
    }

    fn trace(&self, index: u64) -> Option<TraceIds> {
        self.requests.tracing?.ids(index)
    }

    fn traces(&self) -> bool {
        self.requests.tracing.is_some()
    }
}

#[cfg(test)]
mod tests;
