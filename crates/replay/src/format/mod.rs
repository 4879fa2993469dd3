//! Formats of logs: their list, their recognition, and the parsing of lines into entries.

pub mod har;
mod json;
mod table;
mod template;
mod tokens;
mod w3c;

use std::borrow::Cow;

use memchr::{memchr, memrchr};

use tokens::Layout;
use w3c::Columns;

use crate::entry::{Entry, Skip, Stamp};
pub use json::JsonFields;
pub use template::{Template, TemplateError};

/// The most bytes of a line.
pub const MOST_LINE_BYTES: usize = 1 << 20;
/// The bytes of a log's beginning by which its format is recognised.
pub const SAMPLE_BYTES: usize = 64 << 10;
/// The most lines of it that are read.
const SAMPLE_LINES: usize = 50;

/// A format of logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The combined format of Apache and nginx; further fields are ignored.
    Combined,
    /// The common log format.
    Common,
    /// A given format of nginx (`$request`) or Apache (`%r`).
    Template,
    /// W3C's extended format, as IIS and `CloudFront` write it.
    W3c,
    /// HAProxy's `option httplog`.
    Haproxy,
    /// Access logs of AWS's load balancers, ELB and ALB.
    Elb,
    /// Server access logs of S3.
    S3,
    /// Caddy's access log, in JSON.
    Caddy,
    /// Traefik's access log, in JSON.
    Traefik,
    /// Envoy's access log, in JSON, in its default format or in Istio's.
    Envoy,
    /// The access log of `brunt proxy`, in JSON.
    Proxy,
    /// Lines of JSON with the fields that docs/replay.md names.
    Ndjson,
    /// Targets or results of vegeta, in JSON.
    Vegeta,
    /// A table with the names of its columns in the first line.
    Csv,
    /// An HTTP archive, as browsers save it.
    Har,
}

impl Format {
    /// The formats that can be chosen by name.
    pub const ALL: [Self; 14] = [
        Self::Combined,
        Self::Common,
        Self::W3c,
        Self::Haproxy,
        Self::Elb,
        Self::S3,
        Self::Caddy,
        Self::Traefik,
        Self::Envoy,
        Self::Proxy,
        Self::Ndjson,
        Self::Vegeta,
        Self::Csv,
        Self::Har,
    ];

    /// The name of the format.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Combined => "combined",
            Self::Common => "common",
            Self::Template => "log_format",
            Self::W3c => "w3c",
            Self::Haproxy => "haproxy",
            Self::Elb => "elb",
            Self::S3 => "s3",
            Self::Caddy => "caddy",
            Self::Traefik => "traefik",
            Self::Envoy => "envoy",
            Self::Proxy => "proxy",
            Self::Ndjson => "ndjson",
            Self::Vegeta => "vegeta",
            Self::Csv => "csv",
            Self::Har => "har",
        }
    }

    /// The format of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Whether its lines may lack a time.
    pub const fn is_untimed(self) -> bool {
        matches!(self, Self::Vegeta)
    }

    /// The format in which most of the first lines of a log can be read, and with which `sample` begins. The last line
    /// may be cut.
    pub fn recognise(sample: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(sample);
        let begin = text.trim_start_matches('\u{feff}').trim_start();
        if begin.starts_with('{') && is_har(begin) {
            return Some(Self::Har);
        }
        if begin.starts_with('#') && begin.lines().take(SAMPLE_LINES).any(|line| line.starts_with("#Fields:")) {
            return Some(Self::W3c);
        }
        let lines: Vec<&str> = text.lines().filter(|line| !is_nothing(line.as_bytes())).take(SAMPLE_LINES).collect();
        let first = lines.first()?;
        if table::is_header(first) {
            return Some(Self::Csv);
        }
        let reads = |format: &Self| {
            let Ok(mut parser) = Parser::new(*format, Options::default()) else { return 0 };
            // A line that cannot be sent as it was is laid out as the others are.
            lines.iter().filter(|line| matches!(parser.line(line.as_bytes()), Ok(Some(_)) | Err(Skip::Binary))).count()
        };
        let has_own = reads(&Self::Ndjson) > 0;
        let known = Self::ALL.into_iter().filter(|format| match format {
            Self::Csv | Self::Har | Self::W3c => false,
            // Its targets have no times: lines without one would make it of a log that has them.
            Self::Vegeta => !has_own,
            _ => true,
        });
        // Of formats that read as many lines, the first is the one that reads most of each line.
        let best = known.map(|format| (reads(&format), format)).rev().max_by_key(|(count, _)| *count)?;
        (best.0 > 0).then_some(best.1)
    }
}

/// Whether JSON begins as an HTTP archive does.
fn is_har(begin: &str) -> bool {
    let inner = begin.trim_start_matches('{').trim_start();
    inner.starts_with("\"log\"")
        && inner.trim_start_matches("\"log\"").trim_start().trim_start_matches(':').trim_start().starts_with('{')
}

/// The property that the requests of a session share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SessionBy {
    /// The format's field for sessions, or otherwise the client's address.
    #[default]
    Client,
    /// A cookie of this name.
    Cookie(String),
    /// A field of the format, or a header field, of this name.
    Field(String),
    /// Nothing: calls share connections.
    None,
}

impl SessionBy {
    /// Reads `client`, `cookie:NAME`, `field:NAME` or `none`.
    ///
    /// # Errors
    /// The expected form.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("cookie", name)) if !name.is_empty() => Ok(Self::Cookie(name.to_owned())),
            Some(("field", name)) if !name.is_empty() => Ok(Self::Field(name.to_owned())),
            None if text == "client" => Ok(Self::Client),
            None if text == "none" => Ok(Self::None),
            _ => Err(format!("expected client, cookie:NAME, field:NAME or none, got '{text}'")),
        }
    }
}

/// Options of reading besides the format.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// A `log_format` of nginx or a `LogFormat` of Apache.
    pub template: Option<String>,
    /// Fields by name, instead of the format's own.
    pub fields: Option<JsonFields>,
    /// The property that makes a session.
    pub session: SessionBy,
    /// The offset from UTC of local times without a zone, in seconds.
    pub zone_s: i32,
}

/// Reads lines of one format.
#[derive(Debug, Clone)]
pub struct Parser {
    kind: Kind,
    options: Options,
}

#[derive(Debug, Clone)]
enum Kind {
    Template(Template),
    Json(JsonFields),
    Tokens(Layout),
    /// Envoy's, whose lines are JSON or tokens.
    Envoy(JsonFields),
    W3c(Columns),
    /// The fields, and the columns once the first line was read.
    Table(JsonFields, Option<Vec<String>>),
    Har,
}

impl Parser {
    /// A parser of lines in this format.
    ///
    /// # Errors
    /// When the template cannot be read.
    pub fn new(format: Format, options: Options) -> Result<Self, TemplateError> {
        let fields = || options.fields.clone();
        let kind = match format {
            Format::Combined => Kind::Template(Template::combined()),
            Format::Common => Kind::Template(Template::common()),
            Format::Template => Kind::Template(Template::parse(options.template.as_deref().unwrap_or_default())?),
            Format::W3c => Kind::W3c(Columns::default()),
            Format::Haproxy => Kind::Tokens(Layout::Haproxy),
            Format::Elb => Kind::Tokens(Layout::Elb),
            Format::S3 => Kind::Tokens(Layout::S3),
            Format::Caddy => Kind::Json(fields().unwrap_or_else(JsonFields::caddy)),
            Format::Traefik => Kind::Json(fields().unwrap_or_else(JsonFields::traefik)),
            Format::Envoy => Kind::Envoy(fields().unwrap_or_else(JsonFields::envoy)),
            Format::Proxy => Kind::Json(fields().unwrap_or_else(JsonFields::proxy)),
            Format::Ndjson => Kind::Json(fields().unwrap_or_else(JsonFields::own)),
            Format::Vegeta => Kind::Json(fields().unwrap_or_else(JsonFields::vegeta)),
            Format::Csv => Kind::Table(fields().unwrap_or_else(JsonFields::own), None),
            Format::Har => Kind::Har,
        };
        Ok(Self { kind, options })
    }

    /// Reads a line without its end; `None` for an empty line, a comment or a line of column names.
    ///
    /// # Errors
    /// The reason for skipping the line.
    pub fn line(&mut self, line: &[u8]) -> Result<Option<Entry>, Skip> {
        if line.len() > MOST_LINE_BYTES {
            return Err(Skip::TooLong);
        }
        let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        if is_nothing(line) {
            if let (Kind::W3c(columns), Ok(text)) = (&mut self.kind, std::str::from_utf8(line)) {
                columns.take(text.trim_end());
            }
            return Ok(None);
        }
        let text = std::str::from_utf8(line).map_err(|_| Skip::Binary)?.trim_end();
        if has_control(text) {
            return Err(Skip::Binary);
        }
        let entry = match &mut self.kind {
            Kind::Template(template) => template.read(&unwrapped(text), &self.options)?,
            Kind::Json(fields) => fields.read_line(without_prefix(&unwrapped(text)), &self.options)?,
            Kind::Tokens(layout) => tokens::read(*layout, &unwrapped(text), &self.options)?,
            Kind::Envoy(fields) => {
                let line = unwrapped(text);
                match without_prefix(&line) {
                    json if json.starts_with('{') && json.ends_with('}') => fields.read_line(json, &self.options)?,
                    _ => tokens::read(Layout::Envoy, &line, &self.options)?,
                }
            }
            Kind::W3c(columns) => columns.read(text, &self.options)?,
            Kind::Table(fields, columns) => match columns {
                None => {
                    *columns = Some(table::cells(text).ok_or(Skip::Malformed)?);
                    return Ok(None);
                }
                Some(columns) => fields.read(&table::row(text, columns)?, &self.options)?,
            },
            Kind::Har => return Err(Skip::Malformed),
        };
        checked(entry).map(Some)
    }
}

/// The line of a program that Docker has put into JSON, with the stream that it came from; any other line as it is.
fn unwrapped(line: &str) -> Cow<'_, str> {
    #[derive(serde::Deserialize)]
    struct Wrapped {
        log: String,
        #[serde(rename = "stream")]
        _stream: String,
    }
    if !line.starts_with("{\"log\":") {
        return Cow::Borrowed(line);
    }
    match serde_json::from_str::<Wrapped>(line) {
        Ok(wrapped) => Cow::Owned(wrapped.log.trim_end().to_owned()),
        Err(_) => Cow::Borrowed(line),
    }
}

/// A line of JSON without what a container runtime (CRI) or syslog has written before it.
fn without_prefix(line: &str) -> &str {
    match memchr(b'{', line.as_bytes()) {
        Some(place) if place > 0 && line.get(..place).is_some_and(|before| before.ends_with(' ')) => {
            line.get(place..).unwrap_or(line)
        }
        _ => line,
    }
}

/// Whether a line is empty or a comment.
fn is_nothing(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.is_empty() || line.starts_with(b"#")
}

/// Checks that an entry can be sent: its method is a token (RFC 9110 §9.1), and its URL a path or a URL without spaces
/// and control characters; and that its time, from which a duration may have been subtracted, is no absurd one.
pub(crate) fn checked(mut entry: Entry) -> Result<Entry, Skip> {
    let is_token = |text: &str| {
        !text.is_empty()
            && text.len() <= 32
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
    };
    let kept = memchr(b'#', entry.url.as_bytes()).unwrap_or(entry.url.len());
    let url = entry.url.get(..kept).unwrap_or_default();
    let begins = |with: &str| url.get(..with.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(with));
    let leads_somewhere = url.starts_with('/') || begins("http://") || begins("https://");
    let is_url = leads_somewhere && !has_any(url, |byte| byte <= b' ' || byte == 0x7f);
    if !is_token(&entry.method) || entry.method == "CONNECT" || !is_url {
        return Err(Skip::NoRequest);
    }
    if !entry.at.is_none_or(Stamp::is_in_range) {
        return Err(Skip::BadTime);
    }
    entry.url.truncate(kept);
    // A value with a line break would end the header field early.
    entry.headers.retain(|(name, value)| is_token(name) && !has_any(value, |byte| byte < b' ' && byte != b'\t'));
    Ok(entry)
}

/// Whether text holds a control character other than a tab.
fn has_control(text: &str) -> bool {
    has_any(text, |byte| byte < b' ' && byte != b'\t' || byte == 0x7f)
}

/// Whether `is_such` holds for any byte. It looks at all of them, so that the compiler can process many at a time.
fn has_any(text: &str, is_such: impl Fn(u8) -> bool) -> bool {
    text.bytes().fold(false, |has, byte| has | is_such(byte))
}

/// The method and the URL of a request line, `GET /a HTTP/1.1`; `None` if the URL has a space, as it may in a log.
fn request_line(line: &str) -> Option<(&str, &str)> {
    let (method, rest) = line.split_at_checked(memchr(b' ', line.as_bytes())?)?;
    let rest = rest.get(1..)?;
    let last = memrchr(b' ', rest.as_bytes()).and_then(|place| rest.split_at_checked(place));
    let url = last.filter(|(_, version)| version.starts_with(" HTTP/")).map_or(rest, |(url, _)| url);
    Some((method, url))
}

/// The value of a cookie in a Cookie field.
fn cookie<'a>(field: &'a str, name: &str) -> Option<&'a str> {
    field.split(';').filter_map(|pair| pair.trim().split_once('=')).find(|(known, _)| *known == name).map(|(_, v)| v)
}

/// The value of a header field among these.
fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

#[cfg(test)]
mod tests;
