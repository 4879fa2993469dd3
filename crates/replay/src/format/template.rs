//! Logs of one line a request, laid out by a template: `log_format` of nginx, `LogFormat` of Apache.

use std::borrow::Cow;

use memchr::memchr;

use super::{Options, SessionBy, cookie, header, request_line};
use crate::entry::{Entry, Skip, Stamp, Took};
use crate::stamp;

/// `log_format combined` of nginx.
const COMBINED: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \
                        \"$http_referer\" \"$http_user_agent\"";
/// The common log format.
const COMMON: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent";

/// A template that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// It lacks a variable that every replay needs.
    #[error("the format has no {0}, without which nothing can be replayed")]
    Lacks(&'static str),
    /// Two variables follow each other without anything between them.
    #[error("'{0}' follows another variable at once, and nothing tells where it begins")]
    Adjoining(String),
    /// An unknown directive of Apache.
    #[error("the directive '%{0}' is not known")]
    Directive(String),
}

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Variable(Variable),
}

/// A variable of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Variable {
    name: String,
    role: Role,
}

/// The meaning of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Role {
    /// A time; one in milliseconds takes precedence over others.
    Time {
        is_msec: bool,
    },
    Request,
    Url,
    Method,
    Args,
    /// The query with its question mark.
    MarkedArgs,
    Status,
    BodyBytes,
    AllBytes,
    /// A duration in units of this many nanoseconds.
    Duration(u32),
    Client,
    Host,
    Body,
    /// The header field of this name.
    Header(String),
    /// The cookie of this name.
    Cookie(String),
    Other,
}

impl Role {
    /// The role of the variable with this name in nginx.
    fn from_variable(name: &str) -> Self {
        match name {
            "time_local" | "time_iso8601" => Self::Time { is_msec: false },
            "msec" => Self::Time { is_msec: true },
            "request" => Self::Request,
            "request_uri" | "uri" => Self::Url,
            "request_method" => Self::Method,
            "args" | "query_string" => Self::Args,
            "args_with_mark" => Self::MarkedArgs,
            "status" => Self::Status,
            "body_bytes_sent" => Self::BodyBytes,
            "bytes_sent" => Self::AllBytes,
            "request_time" => Self::Duration(1_000_000_000),
            "request_time_ms" => Self::Duration(1_000_000),
            "request_time_us" => Self::Duration(1000),
            "remote_addr" => Self::Client,
            "host" | "http_host" => Self::Host,
            "request_body" => Self::Body,
            _ => match (name.strip_prefix("http_"), name.strip_prefix("cookie_")) {
                (Some(field), _) => Self::Header(field.replace('_', "-")),
                (None, Some(cookie)) => Self::Cookie(cookie.to_owned()),
                (None, None) => Self::Other,
            },
        }
    }
}

impl Variable {
    fn named(name: impl Into<String>) -> Self {
        let name = name.into();
        Self { role: Role::from_variable(&name), name }
    }
}

/// The layout of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
    /// Whether its time is the end of the request, as in nginx.
    stamps_end: bool,
    /// Whether it lays out JSON, whose escapes its values have.
    is_json: bool,
    times: LastTime,
}

/// The last time that was read: many lines of a log have the same one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct LastTime(Option<(String, Stamp)>);

impl LastTime {
    fn read(&mut self, text: &str, zone_s: i32) -> Result<Stamp, Skip> {
        if let Some((_, stamp)) = self.0.as_ref().filter(|(last, _)| last == text) {
            return Ok(*stamp);
        }
        let stamp = stamp::read(text, zone_s).ok_or(Skip::BadTime)?;
        let (last, of_last) = self.0.get_or_insert_with(|| (String::new(), stamp));
        text.clone_into(last);
        *of_last = stamp;
        Ok(stamp)
    }
}

impl Template {
    /// The combined format, which nginx or Apache may have written.
    pub(super) fn combined() -> Self {
        Self { pieces: nginx(COMBINED), stamps_end: false, is_json: false, times: LastTime::default() }
    }

    /// The common log format.
    pub(super) fn common() -> Self {
        Self { pieces: nginx(COMMON), stamps_end: false, is_json: false, times: LastTime::default() }
    }

    /// Reads a `log_format` with variables (`$request`) or a `LogFormat` with directives (`%r`).
    ///
    /// # Errors
    /// When it lacks a time or a request, or its variables cannot be told apart.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let is_nginx = text.contains('$');
        // A server's configuration escapes the quotes within its own.
        let text = &text.replace("\\\"", "\"");
        let pieces = if is_nginx { nginx(text) } else { apache(text)? };
        let has = |names: &[&str]| {
            pieces
                .iter()
                .any(|piece| matches!(piece, Piece::Variable(variable) if names.contains(&variable.name.as_str())))
        };
        if !has(&["time_local", "time_iso8601", "msec"]) {
            return Err(TemplateError::Lacks("time"));
        }
        if !has(&["request", "request_uri", "uri"]) {
            return Err(TemplateError::Lacks("request"));
        }
        for pair in pieces.windows(2) {
            if let [Piece::Variable(_), Piece::Variable(second)] = pair
                && !second.name.starts_with("args")
            {
                return Err(TemplateError::Adjoining(second.name.clone()));
            }
        }
        Ok(Self {
            pieces,
            stamps_end: is_nginx,
            is_json: text.trim_start().starts_with('{'),
            times: LastTime::default(),
        })
    }

    /// Reads a line.
    pub(super) fn read(&mut self, line: &str, options: &Options) -> Result<Entry, Skip> {
        let mut found = Found { is_json: self.is_json, ..Found::default() };
        let mut rest = line;
        let mut pieces = self.pieces.iter().peekable();
        while let Some(piece) = pieces.next() {
            match piece {
                Piece::Text(text) => {
                    rest = match rest.strip_prefix(text.as_str()) {
                        Some(rest) => rest,
                        None if rest.is_empty() => return Err(Skip::Incomplete),
                        // The end of a line may have lost its spaces.
                        None if rest == text.trim_end() => "",
                        None if text.starts_with(rest) => return Err(Skip::Incomplete),
                        None => return Err(Skip::Malformed),
                    };
                }
                Piece::Variable(variable) => {
                    // A line that is cut in its first piece has no part in the right format.
                    let cut = if rest.len() == line.len() { Skip::Malformed } else { Skip::Incomplete };
                    let end = match pieces.peek() {
                        Some(Piece::Text(text)) if variable.name.starts_with("upstream_") => {
                            end_of_list(rest, text).ok_or(cut)?
                        }
                        Some(Piece::Text(text)) => end_of(rest, text).ok_or(cut)?,
                        Some(Piece::Variable(_)) => rest.find('?').unwrap_or(rest.len()),
                        // Lines of a known format may have further fields.
                        None => rest.find(' ').unwrap_or(rest.len()),
                    };
                    let (value, behind) = rest.split_at_checked(end).ok_or(Skip::Malformed)?;
                    if value.is_empty() && behind.is_empty() && pieces.peek().is_none() {
                        return Err(Skip::Incomplete);
                    }
                    if value != "-" {
                        found.take(variable, value, options, &mut self.times)?;
                    }
                    rest = behind;
                }
            }
        }
        found.entry(options, self.stamps_end)
    }
}

/// The end of a value that is followed by this text: a quote in it may be escaped.
fn end_of(rest: &str, text: &str) -> Option<usize> {
    let bytes = rest.as_bytes();
    let first = *text.as_bytes().first()?;
    let mut from = 0;
    loop {
        let at = from + memchr(first, bytes.get(from..)?)?;
        let is_escaped = first == b'"' && is_escaped(bytes, at);
        if !is_escaped && rest.get(at..).is_some_and(|rest| rest.starts_with(text)) {
            return Some(at);
        }
        from = at + 1;
    }
}

/// The end of a value of nginx about upstreams: of several that were asked it writes a list, `0.1, 0.2 : 0.3`, whose blanks
/// are no ends.
fn end_of_list(rest: &str, text: &str) -> Option<usize> {
    let mut end = end_of(rest, text)?;
    loop {
        let (before, behind) = rest.split_at_checked(end)?;
        let goes_on = before.ends_with(',') || before.ends_with(" :") || behind.starts_with(" : ");
        if !goes_on || !text.starts_with(' ') {
            return Some(end);
        }
        end += 1 + end_of(behind.get(1..)?, text)?;
    }
}

/// Whether this byte is escaped by a backslash that is not escaped itself.
fn is_escaped(bytes: &[u8], at: usize) -> bool {
    let before = bytes.get(..at).unwrap_or_default();
    before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// The values found in a line.
#[derive(Default)]
struct Found<'a> {
    entry: Entry,
    request: Option<Cow<'a, str>>,
    args: Option<Cow<'a, str>>,
    client: Option<&'a str>,
    cookie: Option<&'a str>,
    field: Option<&'a str>,
    has_msec: bool,
    is_json: bool,
}

impl<'a> Found<'a> {
    fn take(
        &mut self,
        variable: &Variable,
        value: &'a str,
        options: &Options,
        times: &mut LastTime,
    ) -> Result<(), Skip> {
        if matches!(&options.session, SessionBy::Field(wanted) if *wanted == variable.name) {
            self.field = Some(value);
        }
        let is_json = self.is_json;
        let entry = &mut self.entry;
        match &variable.role {
            Role::Time { is_msec } => {
                if !self.has_msec {
                    entry.at = Some(times.read(value, options.zone_s)?);
                    self.has_msec = *is_msec;
                }
            }
            Role::Request => self.request = Some(unescaped_url(value, is_json)),
            Role::Url => entry.url = unescaped_url(value, is_json).into_owned(),
            Role::Method => value.clone_into(&mut entry.method),
            Role::Args => self.args = Some(unescaped_url(value, is_json)),
            Role::MarkedArgs => entry.url.push_str(&unescaped_url(value, is_json)),
            Role::Status => entry.status = value.parse().ok(),
            Role::BodyBytes => entry.bytes = value.parse().ok(),
            Role::AllBytes => entry.bytes = entry.bytes.or_else(|| value.parse().ok()),
            Role::Duration(unit_ns) => entry.took(Took::read(value, f64::from(*unit_ns))),
            Role::Client => {
                // What stands before the address is of a container runtime, of syslog, or the virtual host.
                let (before, client) = value.rsplit_once(' ').unwrap_or(("", value));
                self.client = Some(client);
                let is_host = !before.is_empty() && before.contains(['.', ':']) && !before.contains([' ', '/', '<']);
                if is_host && stamp::read(before, 0).is_none() {
                    entry.host.get_or_insert_with(|| before.to_owned());
                }
            }
            Role::Host => entry.host = Some(value.to_owned()),
            Role::Body => entry.body = Some(unescaped(value, is_json).into_owned()),
            Role::Header(name) => {
                // A header field is text here: one that is not cannot be sent as it was.
                let text = String::from_utf8(unescaped(value, is_json).into_owned()).map_err(|_| Skip::Binary)?;
                entry.headers.push((name.clone(), text));
            }
            Role::Cookie(name) => {
                if matches!(&options.session, SessionBy::Cookie(wanted) if wanted == name) {
                    self.cookie = Some(value);
                }
            }
            Role::Other => {}
        }
        Ok(())
    }

    fn entry(self, options: &Options, stamps_end: bool) -> Result<Entry, Skip> {
        let Self { mut entry, request, args, client, cookie: logged_cookie, field, .. } = self;
        if let Some(request) = request {
            let (method, url) = request_line(&request).ok_or(Skip::NoRequest)?;
            entry.method = String::from(method);
            if entry.url.is_empty() {
                entry.url = String::from(url);
            }
        }
        if entry.url.is_empty() {
            return Err(Skip::NoRequest);
        }
        if entry.method.is_empty() {
            "GET".clone_into(&mut entry.method);
        }
        if let Some(args) = args
            && !entry.url.contains('?')
        {
            entry.url = format!("{}?{args}", entry.url);
        }
        let at = entry.at.as_mut().ok_or(Skip::NoTime)?;
        if stamps_end && let Some(took) = entry.duration_ns {
            at.ns = at.ns.saturating_sub_unsigned(took);
        }
        let session = match &options.session {
            SessionBy::Client => client,
            SessionBy::Cookie(name) => {
                logged_cookie.or_else(|| header(&entry.headers, "cookie").and_then(|field| cookie(field, name)))
            }
            SessionBy::Field(name) => field.or_else(|| header(&entry.headers, name)),
            SessionBy::None => None,
        };
        entry.session = session.map(str::to_owned);
        Ok(entry)
    }
}

/// The bytes of a value, with the escapes of nginx and Apache undone: `\x22`, `\"`, `\\`; or those of JSON.
fn unescaped(value: &str, is_json: bool) -> Cow<'_, [u8]> {
    if memchr(b'\\', value.as_bytes()).is_none() {
        return Cow::Borrowed(value.as_bytes());
    }
    if is_json && let Ok(text) = serde_json::from_str::<String>(&format!("\"{value}\"")) {
        return Cow::Owned(text.into_bytes());
    }
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        match behind {
            [b'x', high, low, after @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or(0) as u8;
                bytes.push(digit(*high) * 16 + digit(*low));
                rest = after;
            }
            [escaped @ (b'"' | b'\\' | b'/'), after @ ..] => {
                bytes.push(*escaped);
                rest = after;
            }
            _ => bytes.push(b'\\'),
        }
    }
    Cow::Owned(bytes)
}

/// The text of a request line, a path or a query. Bytes that are not UTF-8 stand in it as `%E9`, as URLs have them.
fn unescaped_url(value: &str, is_json: bool) -> Cow<'_, str> {
    let bytes = match unescaped(value, is_json) {
        Cow::Borrowed(_) => return Cow::Borrowed(value),
        Cow::Owned(bytes) => bytes,
    };
    match String::from_utf8(bytes) {
        Ok(text) => Cow::Owned(text),
        Err(error) => {
            let escaped = error
                .as_bytes()
                .iter()
                .map(|byte| if byte.is_ascii() { char::from(*byte).to_string() } else { format!("%{byte:02X}") });
            Cow::Owned(escaped.collect())
        }
    }
}

/// The pieces of a `log_format`: `$name` and `${name}` are variables.
fn nginx(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(place) = rest.find('$') {
        let (before, behind) = rest.split_at(place);
        literal.push_str(before);
        let behind = behind.strip_prefix('$').unwrap_or_default();
        let plain = || {
            let end = behind.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(behind.len());
            behind.split_at(end)
        };
        let braced = behind.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let (name, after) = braced.unwrap_or_else(plain);
        if name.is_empty() {
            literal.push('$');
        } else {
            if !literal.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut literal)));
            }
            pieces.push(Piece::Variable(Variable::named(name)));
        }
        rest = after;
    }
    literal.push_str(rest);
    let literal = literal.trim_end();
    if !literal.is_empty() {
        pieces.push(Piece::Text(literal.to_owned()));
    }
    pieces
}

/// The pieces of a `LogFormat`, under nginx's names for the same variables.
fn apache(text: &str) -> Result<Vec<Piece>, TemplateError> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(place) = rest.find('%') {
        let (before, behind) = rest.split_at(place);
        literal.push_str(before);
        let behind = behind.strip_prefix('%').unwrap_or_default();
        if let Some(after) = behind.strip_prefix('%') {
            literal.push('%');
            rest = after;
            continue;
        }
        // Conditions (`%!200,304s`) and the choice among internal redirects (`%>s`) do not move the field.
        let behind = behind.trim_start_matches(|c: char| matches!(c, '<' | '>' | '!' | ',') || c.is_ascii_digit());
        let (argument, behind) = match behind.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            Some((argument, behind)) => (Some(argument), behind),
            None => (None, behind),
        };
        let behind = behind.trim_start_matches(['<', '>']);
        let letter = behind.chars().next().unwrap_or(' ');
        let after = behind.get(letter.len_utf8()..).unwrap_or_default();
        let name = match (letter, argument) {
            ('h' | 'a', _) => "remote_addr".to_owned(),
            ('t', None) => {
                // Apache writes the time in brackets.
                literal.push('[');
                "time_local".to_owned()
            }
            ('t', Some("sec" | "msec" | "usec" | "%s")) => "msec".to_owned(),
            ('t', Some("msec_frac" | "usec_frac")) => "other_t".to_owned(),
            // A time as strftime writes it.
            ('t', Some(_)) => "time_iso8601".to_owned(),
            ('r', _) => "request".to_owned(),
            ('m', _) => "request_method".to_owned(),
            ('U', _) => "uri".to_owned(),
            ('q', _) => "args_with_mark".to_owned(),
            ('s', _) => "status".to_owned(),
            ('b' | 'B', _) => "body_bytes_sent".to_owned(),
            ('O', _) => "bytes_sent".to_owned(),
            ('D', _) | ('T', Some("us")) => "request_time_us".to_owned(),
            ('T', Some("ms")) => "request_time_ms".to_owned(),
            ('T', _) => "request_time".to_owned(),
            ('v' | 'V', _) => "host".to_owned(),
            ('i', Some(name)) => format!("http_{}", name.to_ascii_lowercase()),
            ('C', Some(name)) => format!("cookie_{name}"),
            ('l' | 'u' | 'p' | 'P' | 'I' | 'X' | 'k' | 'H' | 'f' | 'L' | 'A' | 'o' | 'e' | 'n' | 'R', _) => {
                format!("other_{letter}")
            }
            _ => return Err(TemplateError::Directive(behind.chars().take(1).collect())),
        };
        if !literal.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut literal)));
        }
        if name == "time_local" {
            literal.push(']');
        }
        pieces.push(Piece::Variable(Variable::named(name)));
        rest = after;
    }
    literal.push_str(rest);
    if !literal.trim_end().is_empty() {
        pieces.push(Piece::Text(literal.trim_end().to_owned()));
    }
    Ok(pieces)
}
