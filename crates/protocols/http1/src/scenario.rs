//! HTTP in scenarios: `brunt.http`. Its library is `scenario.lua`; cookies, redirects and forms are made there.

use std::borrow::Cow;

use brunt_plan::target::{self, Target, Url};
use cookie::time::OffsetDateTime;

use super::client::Http1Client;
use super::fields::{fields_of, has_field};
use super::hints::{DISCARD, Streaming, closing_hint, streams_hint};
use super::options::Version;
use super::request::framing::{check_coding, in_chunks};
use super::request::{check_method, is_idempotent};
use super::{content_coding, cookies};
use brunt_protocol::headers::header_fields;
use brunt_protocol::lines::is_same;
use brunt_protocol::messages::{Framing, MessageOptions};
use brunt_protocol::scenario::{
    Caller, ClientSetting, CompleteAnswer, Dialect, Encoded, Fields, LEAST_SHARED_BYTES, Value, shared_body,
};
use brunt_protocol::traced::TraceIds;
use brunt_protocol::{AnswerParts, Client, OptionsError};

/// The flag of an answer that sets cookies.
const SETS_COOKIES: u32 = 1;

/// `brunt.http`.
pub(super) struct HttpDialect;

impl Dialect for HttpDialect {
    fn name(&self) -> &'static str {
        "http"
    }

    fn library(&self) -> &'static str {
        concat!(
            "local authorization = (function(...)\n",
            include_str!("authorization.lua"),
            "\nend)(...)\n",
            include_str!("scenario/sessions.lua"),
            include_str!("scenario/requests.lua"),
            include_str!("scenario/calls.lua"),
            include_str!("scenario/pages.lua")
        )
    }

    fn types(&self) -> &'static str {
        include_str!("types.lua")
    }

    fn client(&self, options: &Value<'_>, setting: &ClientSetting<'_>) -> Result<Box<dyn Caller>, OptionsError> {
        // The other options of `brunt.http` are its library's.
        let fields =
            Fields::parse("brunt.http", options, &["headers", "http", "last_message", "stall_timeout", "is_of_base"])?;
        let version = match fields.text("http")? {
            None => Version::default(),
            Some(name) => {
                Version::named(name).ok_or_else(|| fields.wrong("http", "\"1.1\", \"2\", \"3\" or \"auto\""))?
            }
        };
        let base = setting.base;
        let mut section = Vec::new();
        let (left_out, headers) = without_left_out("brunt.http", fields.value("headers"))?;
        let mut given = header_fields("brunt.http", &headers)?;
        let sets = |name: &str| given.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        // A peer that knows closes the connection itself, and keeps its end of it for a while.
        if setting.closes && version == Version::One && !sets("connection") {
            given.push(("Connection".to_owned(), b"close".into()));
        }
        let sets = |name: &str| given.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        let has_agent = sets("user-agent") || left_out.iter().any(|name| name.eq_ignore_ascii_case("user-agent"));
        if !has_agent {
            field(&mut section, "User-Agent", concat!("brunt/", env!("CARGO_PKG_VERSION")).as_bytes());
        }
        for (name, value) in &given {
            field(&mut section, name, value);
        }
        let own_host = sets("host");
        let host = if own_host { Vec::new() } else { base.map(host_field).unwrap_or_default() };
        let headers = given.into_iter().map(|(name, value)| (name, value.into_owned())).collect();
        if let Some(base) = base.filter(|base| base.path.contains(['?', '#'])) {
            return Err(OptionsError(format!(
                "brunt.http: base '{}' has a query, and paths come behind the base: give query = {{ … }} with each request",
                base.path
            )));
        }
        // The hint of each call has the framing of its answer, if it has one.
        let streaming = Streaming::hinted(&MessageOptions {
            framing: Framing::Sse,
            last: fields.text("last_message")?.map(str::to_owned),
            stall_ns: fields.duration_ns("stall_timeout")?,
        });
        Ok(Box::new(HttpCaller {
            base: base.cloned(),
            headers,
            section,
            host,
            own_host,
            has_agent,
            is_of_base: fields.flag("is_of_base")?.unwrap_or(false),
            streaming,
            version,
        }))
    }
}

/// The caller of one `brunt.http{…}`.
struct HttpCaller {
    base: Option<Target>,
    /// The header fields that the script gave all its calls.
    headers: Vec<(String, Vec<u8>)>,
    /// These, and our own, encoded.
    section: Vec<u8>,
    /// The Host field of the base.
    host: Vec<u8>,
    /// Whether Host is among the header fields given.
    own_host: bool,
    /// Whether User-Agent is among them, or left out.
    has_agent: bool,
    /// Whether Authorization is made of the base's user, and goes to no other origin.
    is_of_base: bool,
    streaming: Streaming,
    version: Version,
}

/// Whether a redirect leads to where HTTP goes: to a path, or to a URL of `http://` or `https://`.
fn is_followed(location: &[u8]) -> bool {
    let scheme = location.windows(3).position(|three| three == b"://").and_then(|end| location.get(..end));
    // Text with a slash before the colon is a path.
    let scheme =
        scheme.filter(|scheme| scheme.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte)));
    scheme.is_none_or(|scheme| scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https"))
}

/// The names of the header fields that a table leaves out by `false`, and the table of the others.
///
/// # Errors
/// When the request would be none without such a field.
fn without_left_out<'v>(
    whose: &str,
    headers: &'v Value<'v>,
) -> Result<(Vec<&'v str>, Cow<'v, Value<'v>>), OptionsError> {
    let is_left_out = |value: &Value<'_>| *value == Value::Boolean(false);
    let left_out: Vec<_> = headers
        .entries()
        .iter()
        .filter(|(_, value)| is_left_out(value))
        .filter_map(|(name, _)| name.as_str())
        .collect();
    if left_out.is_empty() {
        return Ok((left_out, Cow::Borrowed(headers)));
    }
    let needed = ["host", "content-length", "transfer-encoding"];
    if let Some(name) = left_out.iter().find(|name| needed.iter().any(|needed| name.eq_ignore_ascii_case(needed))) {
        return Err(OptionsError(format!("{whose}: {name} cannot be left out: no server could read the request")));
    }
    let others = headers.entries().iter().filter(|(_, value)| !is_left_out(value)).cloned().collect();
    Ok((left_out, Cow::Owned(Value::Table(others))))
}

fn field(section: &mut Vec<u8>, name: &str, value: &[u8]) {
    section.extend_from_slice(name.as_bytes());
    section.extend_from_slice(b": ");
    section.extend_from_slice(value);
    section.extend_from_slice(b"\r\n");
}

fn host_field(target: &Target) -> Vec<u8> {
    format!("Host: {}\r\n", target.authority()).into_bytes()
}

/// The values of a call, in their order.
struct Call<'v> {
    method: &'v str,
    url: &'v str,
    headers: &'v Value<'v>,
    cookies: Option<&'v [u8]>,
    body: Body<'v>,
    content_type: Option<&'v [u8]>,
    discards: bool,
    /// A redirect has led away from where the script went.
    elsewhere: bool,
    /// The framing of its answer's messages, if it has some.
    framing: Option<Framing>,
    /// Whether a redirect is followed.
    follows: bool,
}

/// A body as the script gave it.
enum Body<'v> {
    None,
    Whole(&'v [u8]),
    /// Over HTTP/1.1 each of them is a chunk.
    Pieces(Vec<&'v [u8]>),
}

impl<'v> Body<'v> {
    fn pieces(&self) -> &[&'v [u8]] {
        match self {
            Self::None => &[],
            Self::Whole(body) => std::slice::from_ref(body),
            Self::Pieces(pieces) => pieces,
        }
    }
}

impl<'v> Call<'v> {
    fn from_values(values: &'v [Value<'v>]) -> Result<Self, OptionsError> {
        let value = |at: usize| values.get(at).unwrap_or(&Value::Nil);
        let text = |at: usize, what: &str| {
            let text = value(at).as_str();
            text.ok_or_else(|| OptionsError(format!("{what} must be a string, not {}", value(at).kind())))
        };
        let body = match value(4) {
            Value::Nil => Body::None,
            Value::Text(text) => Body::Whole(text),
            Value::Table(pieces) => Body::Pieces(pieces.iter().filter_map(|(_, piece)| piece.as_bytes()).collect()),
            other => return Err(OptionsError(format!("the body must be a string, not {}", other.kind()))),
        };
        Ok(Self {
            method: text(0, "the method")?,
            url: text(1, "the URL")?,
            headers: value(2),
            cookies: value(3).as_bytes(),
            body,
            content_type: value(5).as_bytes(),
            discards: value(6) == &Value::Boolean(true),
            elsewhere: value(7) == &Value::Boolean(true),
            framing: value(8).as_str().and_then(Framing::from_name),
            follows: value(9) == &Value::Boolean(true),
        })
    }
}

impl Caller for HttpCaller {
    fn connection(&self) -> Box<dyn Client> {
        let is_secure = self.base.as_ref().is_some_and(|base| base.scheme == "https");
        self.version.client(Http1Client::new(true), true, is_secure, self.streaming.clone(), None)
    }

    fn alpn(&self) -> Vec<Vec<u8>> {
        self.version.alpn()
    }

    /// HTTP/2 does; a version that may turn out to be HTTP/2 may.
    fn multiplexes(&self) -> bool {
        self.version != Version::One
    }

    fn encode(&self, values: &[Value<'_>], out: &mut Encoded) -> Result<(), OptionsError> {
        let call = Call::from_values(values)?;
        check_method(call.method)?;
        let other;
        let path = if call.url.starts_with('/') {
            if self.base.is_none() {
                let problem =
                    format!("'{}' needs a base: brunt.http{{ base = \"http://…\" }}, or a whole URL", call.url);
                return Err(OptionsError(problem));
            }
            target::check_path(call.url).map_err(|e| OptionsError(e.to_string()))?;
            call.url.split('#').next().unwrap_or("/")
        } else if call.url.contains("://") {
            other = Url::parse(call.url).map_err(|e| OptionsError(e.to_string()))?.target;
            if !matches!(other.scheme.as_str(), "http" | "https") {
                return Err(OptionsError(format!("'{}' is not http:// or https://", call.url)));
            }
            out.target = Some(other.clone());
            &other.path
        } else {
            let problem = format!("expected a path that begins with / or a whole URL, got '{}'", call.url);
            return Err(OptionsError(problem));
        };
        let bytes = &mut out.bytes;
        bytes.extend_from_slice(call.method.as_bytes());
        bytes.push(b' ');
        bytes.extend_from_slice(path.as_bytes());
        bytes.extend_from_slice(b" HTTP/1.1\r\n");
        let (left_out, headers) = without_left_out("headers", call.headers)?;
        let given = header_fields("headers", &headers)?;
        let given_has = |name: &str| {
            let mut named = given.iter().map(|(given, _)| given.as_str()).chain(left_out.iter().copied());
            named.any(|known| known.eq_ignore_ascii_case(name))
        };
        let has = |name: &str| given_has(name) || self.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        if !self.own_host && !given_has("host") {
            match &out.target {
                None => bytes.extend_from_slice(&self.host),
                Some(target) => bytes.extend_from_slice(&host_field(target)),
            }
        }
        let strays = self.is_of_base
            && out.target.as_ref().zip(self.base.as_ref()).is_some_and(|(target, base)| !is_same(target, base));
        if given.is_empty() && left_out.is_empty() && !call.elsewhere && !strays {
            bytes.extend_from_slice(&self.section);
        } else {
            if !self.has_agent && !given_has("user-agent") {
                field(bytes, "User-Agent", concat!("brunt/", env!("CARGO_PKG_VERSION")).as_bytes());
            }
            let stays = |name: &str| {
                let is_left = (call.elsewhere || strays) && name.eq_ignore_ascii_case("authorization")
                    || call.elsewhere && name.eq_ignore_ascii_case("cookie");
                !(given_has(name) || is_left)
            };
            for (name, value) in self.headers.iter().filter(|(name, _)| stays(name)) {
                field(bytes, name, value);
            }
            for (name, value) in &given {
                field(bytes, name, value);
            }
        }
        if let Some(cookies) = call.cookies {
            field(bytes, "Cookie", cookies);
        }
        if let Some(content_type) = call.content_type
            && !has("content-type")
        {
            field(bytes, "Content-Type", content_type);
        }
        let own = self.headers.iter().map(|(name, value)| (name, value.as_slice()));
        let mut fields = own.chain(given.iter().map(|(name, value)| (name, value.as_ref())));
        let coding = fields.rfind(|(name, _)| name.eq_ignore_ascii_case("transfer-encoding"));
        if let Some((_, coding)) = coding {
            check_coding(coding, has("content-length"), self.version)?;
        }
        let length: usize = call.body.pieces().iter().map(|piece| piece.len()).sum();
        // A method that usually has a body states when it has none (RFC 9110 §8.6).
        let expected = matches!(call.method, "POST" | "PUT" | "PATCH");
        let mut is_chunked = coding.is_some();
        if !is_chunked && !has("content-length") {
            match call.body {
                Body::Pieces(_) if self.version == Version::One => {
                    field(bytes, "Transfer-Encoding", b"chunked");
                    is_chunked = true;
                }
                Body::None if !expected => {}
                _ => field(bytes, "Content-Length", length.to_string().as_bytes()),
            }
        }
        bytes.extend_from_slice(b"\r\n");
        match call.body.pieces() {
            pieces if is_chunked => bytes.extend_from_slice(&in_chunks(pieces)),
            [body] if length >= LEAST_SHARED_BYTES => out.tail = Some(shared_body(body)),
            pieces if length >= LEAST_SHARED_BYTES => out.tail = Some(shared_body(&pieces.concat())),
            pieces => pieces.iter().for_each(|piece| bytes.extend_from_slice(piece)),
        }
        out.follows = call.follows;
        out.idempotent = is_idempotent(call.method.as_bytes());
        out.hint = if call.discards { DISCARD } else { call.framing.map_or(0, streams_hint) };
        out.hint |= closing_hint(bytes);
        Ok(())
    }

    fn traces(&self) -> bool {
        true
    }

    fn add_trace(&self, call: &mut Encoded, ids: &TraceIds) -> bool {
        call.add_traceparent(ids)
    }

    fn flags(&self, answer: &CompleteAnswer<'_>) -> u32 {
        if has_field(answer.parts.head, b"set-cookie") { SETS_COOKIES } else { 0 }
    }

    fn leads_on(&self, call: &Encoded, answer: &CompleteAnswer<'_>) -> Option<&'static str> {
        let redirects = call.follows && matches!(answer.status, 301 | 302 | 303 | 307 | 308);
        if !redirects {
            return None;
        }
        let mut fields = fields_of(answer.parts.head);
        let (_, location) = fields.find(|(name, _)| name.eq_ignore_ascii_case(b"location"))?;
        is_followed(location).then_some("redirect")
    }

    fn shown_answer<'a>(&self, _call: &Encoded, answer: &CompleteAnswer<'a>) -> Cow<'a, [u8]> {
        body_of(&answer.parts).unwrap_or(Cow::Borrowed(answer.parts.body))
    }

    fn shown_message<'a>(&self, _call: &Encoded, message: &CompleteAnswer<'a>) -> Cow<'a, [u8]> {
        let [event, id, data] = message_of(&message.parts);
        let named = |name: &str, value: &[u8]| {
            if value.is_empty() { Vec::new() } else { [name.as_bytes(), value, b": "].concat() }
        };
        Cow::Owned([named("event ", event).as_slice(), &named("id ", id), data].concat())
    }

    fn read<'a>(&self, what: &str, answer: &CompleteAnswer<'a>) -> Result<Value<'a>, OptionsError> {
        let parts = answer.parts;
        match what {
            "body" => Ok(Value::Text(body_of(&parts)?)),
            "headers" => Ok(headers(parts.head)),
            "proto" => Ok(Value::text(if parts.head.starts_with(b"HTTP/2") {
                "HTTP/2.0"
            } else if parts.head.starts_with(b"HTTP/1.0") {
                "HTTP/1.0"
            } else {
                "HTTP/1.1"
            })),
            "sizes" => {
                let sizes =
                    [("head", parts.head.len()), ("received", parts.body.len()), ("body", body_of(&parts)?.len())];
                Ok(Value::Table(sizes.map(|(name, size)| (Value::text(name), Value::Number(size as f64))).to_vec()))
            }
            "message" => {
                let [event, id, data] = message_of(&parts);
                let event = if event.is_empty() { b"message" } else { event };
                let entries = [("event", event), ("id", id), ("data", data)];
                Ok(Value::Table(entries.map(|(name, text)| (Value::text(name), Value::Text(text.into()))).to_vec()))
            }
            "cookies" => {
                let now = OffsetDateTime::now_utc();
                let set = fields_of(parts.head).filter(|(name, _)| name.eq_ignore_ascii_case(b"set-cookie"));
                Ok(Value::list(set.filter_map(|(_, field)| cookies::said(field, now))))
            }
            _ => Err(OptionsError(format!("an answer of HTTP has no '{what}'"))),
        }
    }
}

/// The event, the id and the data of a message, as the parser keeps it.
fn message_of<'a>(parts: &AnswerParts<'a>) -> [&'a [u8]; 3] {
    let mut lines = parts.body.splitn(3, |byte| *byte == b'\n');
    let mut next = || lines.next().unwrap_or(&[]);
    [next(), next(), next()]
}

/// The body, decompressed if it came compressed.
fn body_of<'a>(parts: &AnswerParts<'a>) -> Result<Cow<'a, [u8]>, OptionsError> {
    let codings = fields_of(parts.head).filter(|(name, _)| name.eq_ignore_ascii_case(b"content-encoding"));
    content_coding::decoded(parts.body, codings.map(|(_, value)| value))
}

/// The header fields by their names in lower case. Repeated fields become one list (RFC 9110 §5.3), except cookies,
/// which are separated by line ends.
fn headers(head: &[u8]) -> Value<'_> {
    let mut all: Vec<(Value<'_>, Value<'_>)> = Vec::new();
    for (name, value) in fields_of(head) {
        let name = Value::Text(Cow::Owned(name.to_ascii_lowercase()));
        let separator: &[u8] = if name.as_bytes() == Some(b"set-cookie") { b"\n" } else { b", " };
        match all.iter_mut().find(|(known, _)| *known == name) {
            Some((_, Value::Text(known))) => {
                known.to_mut().extend_from_slice(separator);
                known.to_mut().extend_from_slice(value);
            }
            _ => all.push((name, Value::Text(Cow::Borrowed(value)))),
        }
    }
    Value::Table(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(options: &[(&'static str, Value<'static>)]) -> Box<dyn Caller> {
        let options = Value::Table(options.iter().map(|(name, value)| (Value::text(name), value.clone())).collect());
        let base = Url::parse("http://127.0.0.1:8080/").unwrap().target;
        HttpDialect.client(&options, &ClientSetting::alone(Some(&base))).unwrap()
    }

    fn encoded(caller: &dyn Caller, values: &[Value<'_>]) -> Result<(String, Encoded), String> {
        let mut out = Encoded::default();
        caller.encode(values, &mut out).map_err(|e| e.0)?;
        Ok((String::from_utf8_lossy(&out.bytes).into_owned(), out))
    }

    const AGENT: &str = concat!("User-Agent: brunt/", env!("CARGO_PKG_VERSION"), "\r\n");

    #[test]
    fn a_redirect_that_is_followed_leads_on() {
        let caller = caller(&[]);
        let leads_on = |follows: bool, status: u16, head: &str| {
            let mut values = vec![Value::text("GET"), Value::text("/")];
            values.resize(9, Value::Nil);
            values.push(Value::Boolean(follows));
            let (_, call) = encoded(&*caller, &values).unwrap();
            let head = format!("HTTP/1.1 {status} Any\r\n{head}\r\n");
            caller
                .leads_on(&call, &CompleteAnswer { status, parts: AnswerParts { head: head.as_bytes(), body: &[] } })
                .is_some()
        };
        for location in ["/a", "a?b=http://c", "?x", "//host/", "http://a/", "HTTPS://a/?ftp://b", "/to/ftp://a"] {
            let head = format!("X: 1\r\nlocation: {location}\r\n");
            let followed = [301, 302, 303, 307, 308].map(|status| leads_on(true, status, &head));
            assert_eq!(followed, [true; 5], "{location}");
            assert!(!leads_on(false, 302, &head) && !leads_on(true, 304, &head) && !leads_on(true, 200, &head));
        }
        assert!(!leads_on(true, 302, ""), "it says not where to");
        assert!(!leads_on(true, 302, "Location: ftp://a/\r\n"), "where HTTP does not go");
    }

    #[test]
    fn calls_are_requests() {
        let accept = Value::Table(vec![(Value::text("Accept"), Value::text("text/html"))]);
        let caller = caller(&[("headers", accept)]);
        let (get, call) = encoded(&*caller, &[Value::text("GET"), Value::text("/a?b=c#d")]).unwrap();
        assert_eq!(get, format!("GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n{AGENT}Accept: text/html\r\n\r\n"));
        assert!(call.idempotent && call.target.is_none());
        let own = Value::Table(vec![(Value::text("accept"), Value::text("*/*"))]);
        let values = [
            Value::text("POST"),
            Value::text("https://example.org/x"),
            own,
            Value::text("a=b"),
            Value::text("{}"),
            Value::text("application/json"),
        ];
        let (post, call) = encoded(&*caller, &values).unwrap();
        let expected = format!(
            "POST /x HTTP/1.1\r\nHost: example.org\r\n{AGENT}accept: */*\r\nCookie: a=b\r\n\
             Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
        );
        assert_eq!(post, expected);
        assert_eq!((call.idempotent, call.target.map(|target| target.scheme)), (false, Some("https".to_owned())));
    }

    #[test]
    fn each_piece_of_a_body_is_a_chunk() {
        let large = "x".repeat(100_000);
        let given = |pieces: &[&str], version: &str| {
            let caller = caller(&[("http", Value::text(version).into_owned())]);
            let pieces = Value::list(pieces.iter().map(|piece| Value::text(piece)));
            let values = [Value::text("POST"), Value::text("/"), Value::Nil, Value::Nil, pieces];
            encoded(&*caller, &values).map(|(request, _)| request.split_once(AGENT).unwrap().1.to_owned()).unwrap()
        };
        assert_eq!(given(&["ab", "c"], "1.1"), "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n");
        assert_eq!(given(&[], "1.1"), "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
        assert!(given(&[&large], "1.1").contains("\r\n\r\n10000\r\nxxx"), "no chunk is longer than 64 KiB");
        assert_eq!(given(&["ab", "c"], "2"), "Content-Length: 3\r\n\r\nabc");
        assert_eq!(given(&[], "2"), "Content-Length: 0\r\n\r\n");
    }

    #[test]
    fn calls_that_are_none_are_refused() {
        let caller = caller(&[]);
        let error = |values: &[Value<'_>]| encoded(&*caller, values).map(|_| ()).unwrap_err();
        assert!(error(&[Value::text("GE T"), Value::text("/")]).contains("the method 'GE T', column 3"));
        assert!(error(&[Value::text("GET"), Value::text("/a b")]).contains("write it as %20"));
        assert!(error(&[Value::text("GET"), Value::text("a")]).contains("a path that begins with /"));
        assert!(error(&[Value::text("GET"), Value::text("ftp://a/")]).contains("not http://"));
        assert!(error(&[Value::text("GET"), Value::Nil]).contains("the URL must be a string, not nil"));
        let smuggled = Value::Table(vec![(Value::text("X"), Value::text("a\r\nY: b"))]);
        let smuggled = [Value::text("GET"), Value::text("/"), smuggled];
        assert!(error(&smuggled).contains("control character"));
        assert!(caller.examine(&smuggled).is_err(), "it is known before the load");
        let named = Value::Table(vec![(Value::text("X"), Value::Table(vec![(Value::text("a"), Value::Number(1.0))]))]);
        assert!(error(&[Value::text("GET"), Value::text("/"), named]).contains("not a table of names"));
        let without = HttpDialect.client(&Value::Nil, &ClientSetting::alone(None)).unwrap();
        assert!(encoded(&*without, &[Value::text("GET"), Value::text("/")]).unwrap_err().contains("needs a base"));
    }

    #[test]
    fn answers_are_read_in_parts() {
        let caller = caller(&[]);
        let head = b"HTTP/1.1 200 OK\r\nA: 1\r\na:2\r\nSet-Cookie: x=1\r\nSET-COOKIE: y=2; Path=/\r\n\r\n";
        let answer = CompleteAnswer { status: 200, parts: AnswerParts { head, body: b"hi" } };
        assert_eq!(caller.flags(&answer), SETS_COOKIES);
        let headers = caller.read("headers", &answer).unwrap();
        assert_eq!(headers.get("a").as_str(), Some("1, 2"));
        assert_eq!(headers.get("set-cookie").as_str(), Some("x=1\ny=2; Path=/"));
        assert_eq!(caller.read("body", &answer).unwrap().as_str(), Some("hi"));
        let cookies = caller.read("cookies", &answer).unwrap();
        let name = |(_, cookie): &(Value<'_>, Value<'_>)| cookie.get("name").as_str().map(str::to_owned);
        assert_eq!(cookies.entries().iter().filter_map(name).collect::<Vec<_>>(), ["x", "y"]);
        assert!(caller.read("trailers", &answer).is_err());
        let head = b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\n\r\n";
        let hi = b"\xcb\xc8\x04\x00";
        let answer = CompleteAnswer { status: 200, parts: AnswerParts { head, body: hi } };
        assert_eq!(caller.read("body", &answer).unwrap().as_str(), Some("hi"));
        assert_eq!(&*caller.shown_answer(&Encoded::default(), &answer), b"hi");
        let sizes = caller.read("sizes", &answer).unwrap();
        assert_eq!([sizes.get("received"), sizes.get("body")], [&Value::Number(4.0), &Value::Number(2.0)]);
        let answer = CompleteAnswer { status: 200, parts: AnswerParts { head, body: b"hello" } };
        assert!(caller.read("body", &answer).unwrap_err().0.contains("encoded as deflate"));
        assert_eq!(&*caller.shown_answer(&Encoded::default(), &answer), b"hello");
    }
}
