//! Logs of one line a request, laid out by a template: `log_format` of nginx, `LogFormat` of Apache.

use super::{Options, SessionBy, cookie, header, request_line};
use crate::entry::{Entry, Skip};
use crate::stamp;

/// `log_format combined` of nginx.
const COMBINED: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \
                        \"$http_referer\" \"$http_user_agent\"";
/// The common log format.
const COMMON: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent";

/// A template that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// It lacks what every replay needs.
    #[error("the format has no {0}, without which nothing can be replayed")]
    Lacks(&'static str),
    /// Two variables follow each other without anything between them.
    #[error("'{0}' follows another variable at once, and nothing tells where it begins")]
    Adjoining(String),
    /// A directive of Apache that is not known.
    #[error("the directive '%{0}' is not known")]
    Directive(String),
}

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Variable(String),
}

/// The layout of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
    /// Whether a time in it is when the request ended, as all of nginx' are.
    stamps_end: bool,
}

impl Template {
    /// The combined format, of which nobody knows whether nginx or Apache wrote it.
    pub(super) fn combined() -> Self {
        Self { pieces: nginx(COMBINED), stamps_end: false }
    }

    /// The common log format.
    pub(super) fn common() -> Self {
        Self { pieces: nginx(COMMON), stamps_end: false }
    }

    /// Reads a `log_format` with variables (`$request`) or a `LogFormat` with directives (`%r`).
    ///
    /// # Errors
    /// When it lacks a time or a request, or cannot be told apart.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let is_nginx = text.contains('$');
        let pieces = if is_nginx { nginx(text) } else { apache(text)? };
        let has = |names: &[&str]| {
            pieces.iter().any(|piece| matches!(piece, Piece::Variable(name) if names.contains(&name.as_str())))
        };
        if !has(&["time_local", "time_iso8601", "msec"]) {
            return Err(TemplateError::Lacks("time"));
        }
        if !has(&["request", "request_uri", "uri"]) {
            return Err(TemplateError::Lacks("request"));
        }
        for pair in pieces.windows(2) {
            if let [Piece::Variable(_), Piece::Variable(second)] = pair
                && !second.starts_with("args")
            {
                return Err(TemplateError::Adjoining(second.clone()));
            }
        }
        Ok(Self { pieces, stamps_end: is_nginx })
    }

    /// Reads a line.
    pub(super) fn read(&self, line: &str, options: &Options) -> Result<Entry, Skip> {
        let mut found = Found::default();
        let mut rest = line;
        let mut pieces = self.pieces.iter().peekable();
        while let Some(piece) = pieces.next() {
            match piece {
                Piece::Text(text) => {
                    let trimmed = text.trim_end();
                    rest = match rest.strip_prefix(text.as_str()) {
                        Some(rest) => rest,
                        None if rest.is_empty() => return Err(Skip::Incomplete),
                        // The end of a line may have lost its spaces.
                        None if rest == trimmed => "",
                        None if text.starts_with(rest) => return Err(Skip::Incomplete),
                        None => return Err(Skip::Malformed),
                    };
                }
                Piece::Variable(name) => {
                    let end = match pieces.peek() {
                        Some(Piece::Text(text)) => end_of(rest, text).ok_or(Skip::Incomplete)?,
                        Some(Piece::Variable(_)) => rest.find('?').unwrap_or(rest.len()),
                        // More may stand behind what a known format has.
                        None => rest.find(' ').unwrap_or(rest.len()),
                    };
                    let (value, behind) = rest.split_at_checked(end).ok_or(Skip::Malformed)?;
                    if value.is_empty() && behind.is_empty() && pieces.peek().is_none() {
                        return Err(Skip::Incomplete);
                    }
                    if value != "-" {
                        found.take(name, value, options)?;
                    }
                    rest = behind;
                }
            }
        }
        found.entry(options, self.stamps_end)
    }
}

/// Where a value ends that this text stands behind: a quote in it may be escaped.
fn end_of(rest: &str, text: &str) -> Option<usize> {
    if !text.starts_with('"') {
        return rest.find(text);
    }
    let mut is_escaped = false;
    for (place, byte) in rest.bytes().enumerate() {
        if byte == b'"' && !is_escaped && rest.get(place..).is_some_and(|rest| rest.starts_with(text)) {
            return Some(place);
        }
        is_escaped = byte == b'\\' && !is_escaped;
    }
    None
}

/// What a line has.
#[derive(Default)]
struct Found {
    entry: Entry,
    request: Option<String>,
    args: Option<String>,
    client: Option<String>,
    cookie: Option<String>,
    field: Option<String>,
    has_msec: bool,
}

impl Found {
    fn take(&mut self, name: &str, value: &str, options: &Options) -> Result<(), Skip> {
        if matches!(&options.session, SessionBy::Field(wanted) if wanted == name) {
            self.field = Some(value.to_owned());
        }
        match name {
            "time_local" | "time_iso8601" | "msec" if !self.has_msec => {
                self.entry.at = Some(stamp::read(value, options.zone_s).ok_or(Skip::BadTime)?);
                // It is the most exact.
                self.has_msec = name == "msec";
            }
            "request" => self.request = Some(unescaped(value)),
            "request_uri" | "uri" => self.entry.url = unescaped(value),
            "request_method" => value.clone_into(&mut self.entry.method),
            "args" | "query_string" => self.args = Some(unescaped(value)),
            "args_with_mark" => self.entry.url.push_str(&unescaped(value)),
            "status" => self.entry.status = value.parse().ok(),
            "body_bytes_sent" => self.entry.bytes = value.parse().ok(),
            "bytes_sent" if self.entry.bytes.is_none() => self.entry.bytes = value.parse().ok(),
            "request_time" => self.entry.duration_ns = duration(value, 1e9),
            "request_time_ms" => self.entry.duration_ns = duration(value, 1e6),
            "request_time_us" => self.entry.duration_ns = duration(value, 1e3),
            "remote_addr" => self.client = Some(value.to_owned()),
            "host" | "http_host" => self.entry.host = Some(value.to_owned()),
            "request_body" => self.entry.body = Some(unescaped(value).into_bytes()),
            _ => {
                if let Some(field) = name.strip_prefix("http_") {
                    self.entry.headers.push((field.replace('_', "-"), unescaped(value)));
                } else if let Some(cookie) = name.strip_prefix("cookie_")
                    && matches!(&options.session, SessionBy::Cookie(wanted) if wanted == cookie)
                {
                    self.cookie = Some(value.to_owned());
                }
            }
        }
        Ok(())
    }

    fn entry(self, options: &Options, stamps_end: bool) -> Result<Entry, Skip> {
        let Self { mut entry, request, args, client, cookie: logged_cookie, field, .. } = self;
        if let Some(request) = request {
            let (method, url) = request_line(&request).ok_or(Skip::NoRequest)?;
            method.clone_into(&mut entry.method);
            if entry.url.is_empty() {
                url.clone_into(&mut entry.url);
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
        entry.session = match &options.session {
            SessionBy::Client => client,
            SessionBy::Cookie(name) => logged_cookie
                .or_else(|| header(&entry.headers, "cookie").and_then(|field| cookie(field, name)).map(str::to_owned)),
            SessionBy::Field(name) => field.or_else(|| header(&entry.headers, name).map(str::to_owned)),
            SessionBy::None => None,
        };
        Ok(entry)
    }
}

/// A duration in units of so many nanoseconds.
fn duration(text: &str, unit_ns: f64) -> Option<u64> {
    let value: f64 = text.parse().ok()?;
    (value.is_finite() && value >= 0.0).then_some((value * unit_ns) as u64)
}

/// What nginx and Apache have escaped: `\x22`, `\"`, `\\`. Bytes that are no UTF-8 stay escaped.
fn unescaped(value: &str) -> String {
    if !value.contains('\\') {
        return value.to_owned();
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
    String::from_utf8(bytes).unwrap_or_else(|_| value.to_owned())
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
            pieces.push(Piece::Variable(name.to_owned()));
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

/// The pieces of a `LogFormat`, with the names that nginx has for the same.
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
        // Conditions (`%!200,304s`) and which of several requests (`%>s`) change no place.
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
                // It brings its brackets along.
                literal.push('[');
                "time_local".to_owned()
            }
            ('t', Some("sec" | "msec" | "usec")) => "msec".to_owned(),
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
        pieces.push(Piece::Variable(name));
        rest = after;
    }
    literal.push_str(rest);
    if !literal.trim_end().is_empty() {
        pieces.push(Piece::Text(literal.trim_end().to_owned()));
    }
    Ok(pieces)
}
