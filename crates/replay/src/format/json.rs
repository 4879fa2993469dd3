//! Logs of one JSON value a line, whose fields are found by their names.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::{Options, SessionBy, cookie, header, request_line};
use crate::entry::{Entry, Skip, Took};
use crate::stamp;

/// The roles of a log's fields, as `--fields` names them.
const ROLES: [&str; 13] = [
    "time", "method", "url", "path", "query", "host", "status", "bytes", "duration", "client", "session", "headers",
    "body",
];

/// The places of a log's fields: for each role the names to look for, in this order. A name with dots leads into
/// objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JsonFields {
    names: Vec<(&'static str, Vec<String>)>,
    /// The unit of a duration, in nanoseconds.
    unit_ns: u64,
    /// Whether the log has the times at which requests ended.
    stamps_end: bool,
    /// The prefix of the names of fields that hold header fields.
    header_prefix: Option<&'static str>,
    /// Whether bodies are in base64.
    is_base64: bool,
}

const SECOND_NS: u64 = 1_000_000_000;

impl JsonFields {
    fn of(names: &[(&'static str, &[&str])]) -> Self {
        let names = names.iter().map(|(role, names)| (*role, names.iter().map(|&name| name.to_owned()).collect()));
        Self { names: names.collect(), unit_ns: SECOND_NS, ..Self::default() }
    }

    /// The fields of Caddy's log.
    pub fn caddy() -> Self {
        Self {
            stamps_end: true,
            ..Self::of(&[
                ("time", &["ts", "time"]),
                ("method", &["request.method"]),
                ("url", &["request.uri"]),
                ("host", &["request.host"]),
                ("status", &["status"]),
                ("bytes", &["size"]),
                ("duration", &["duration"]),
                ("client", &["request.client_ip", "request.remote_ip"]),
                ("headers", &["request.headers"]),
            ])
        }
    }

    /// The fields of Traefik's log.
    pub fn traefik() -> Self {
        Self {
            unit_ns: 1,
            header_prefix: Some("request_"),
            ..Self::of(&[
                ("time", &["StartUTC", "StartLocal"]),
                ("method", &["RequestMethod"]),
                ("url", &["RequestPath"]),
                ("host", &["RequestHost", "RequestAddr"]),
                ("status", &["DownstreamStatus", "OriginStatus"]),
                ("bytes", &["DownstreamContentSize"]),
                ("duration", &["Duration"]),
                ("client", &["ClientHost", "ClientAddr"]),
            ])
        }
    }

    /// The fields of Envoy's usual JSON.
    pub fn envoy() -> Self {
        Self {
            unit_ns: 1_000_000,
            ..Self::of(&[
                ("time", &["start_time", "startTime"]),
                ("method", &["method", ":method", "requestMethod"]),
                ("url", &["x-envoy-original-path", "x_envoy_original_path", "path", ":path"]),
                ("host", &["authority", ":authority"]),
                ("status", &["response_code", "responseCode"]),
                ("bytes", &["bytes_sent", "bytesSent"]),
                ("duration", &["duration", "response_duration"]),
                (
                    "client",
                    &[
                        "x_forwarded_for",
                        "x-forwarded-for",
                        "downstream_remote_address_without_port",
                        "downstream_remote_address",
                    ],
                ),
            ])
        }
    }

    /// The fields of the access log of `brunt proxy`.
    pub fn proxy() -> Self {
        Self {
            unit_ns: 1000,
            stamps_end: true,
            ..Self::of(&[
                ("time", &["unix_ms"]),
                ("method", &["method"]),
                ("url", &["target"]),
                ("status", &["status"]),
                ("bytes", &["body_bytes"]),
                ("duration", &["took_us"]),
                ("client", &["client"]),
            ])
        }
    }

    /// The fields of brunt's own format (docs/replay.md).
    pub fn own() -> Self {
        Self::own_named("duration_s")
    }

    fn own_named(duration: &str) -> Self {
        Self::of(&[
            ("time", &["time"]),
            ("method", &["method"]),
            ("url", &["url"]),
            ("host", &["host"]),
            ("status", &["status"]),
            ("bytes", &["bytes"]),
            ("duration", &[duration]),
            ("client", &["client"]),
            ("session", &["session"]),
            ("headers", &["headers"]),
            ("body", &["body"]),
        ])
    }

    /// The fields that columns of W3C's format become.
    pub(super) fn w3c() -> Self {
        Self { stamps_end: true, ..Self::own_named("duration") }
    }

    /// The fields of vegeta's targets and results.
    pub fn vegeta() -> Self {
        Self {
            unit_ns: 1,
            is_base64: true,
            ..Self::of(&[
                ("time", &["timestamp"]),
                ("method", &["method"]),
                ("url", &["url"]),
                ("status", &["code"]),
                ("bytes", &["bytes_in"]),
                ("duration", &["latency"]),
                ("headers", &["header"]),
                ("body", &["body"]),
            ])
        }
    }

    /// Reads `time=ts,path=request.uri,duration=took:ms`. The suffix `:s`, `:ms`, `:us` or `:ns` is the unit of a
    /// duration; `time=ts:end` means that the time is the end of the request.
    ///
    /// # Errors
    /// The wrong part, and what is allowed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut fields = Self { unit_ns: SECOND_NS, ..Self::default() };
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (role, name) = part.split_once('=').ok_or_else(|| format!("expected ROLE=FIELD, got '{part}'"))?;
            let role = ROLES
                .iter()
                .find(|known| **known == role)
                .ok_or_else(|| format!("expected one of {} before the =, got '{role}'", ROLES.join(", ")))?;
            let name = match (*role, name.rsplit_once(':')) {
                ("duration", Some((name, unit))) => {
                    fields.unit_ns = match unit {
                        "s" => SECOND_NS,
                        "ms" => 1_000_000,
                        "us" => 1000,
                        "ns" => 1,
                        _ => {
                            return Err(format!(
                                "expected the unit s, ms, us or ns, got '{unit}' in duration={name}:{unit}"
                            ));
                        }
                    };
                    name
                }
                ("time", Some((name, "end"))) => {
                    fields.stamps_end = true;
                    name
                }
                _ => name,
            };
            fields.names.push((role, vec![name.to_owned()]));
        }
        if !fields.has("time") || !(fields.has("url") || fields.has("path")) {
            return Err(format!("expected at least time=FIELD and path=FIELD (or url=FIELD), got '{text}'"));
        }
        Ok(fields)
    }

    fn has(&self, role: &str) -> bool {
        self.names.iter().any(|(known, _)| *known == role)
    }

    fn find<'a>(&self, role: &str, row: &'a Map<String, Value>) -> Option<&'a Value> {
        let (_, names) = self.names.iter().find(|(known, _)| *known == role)?;
        names.iter().find_map(|name| lookup(row, name)).filter(|value| !value.is_null())
    }

    fn text(&self, role: &str, row: &Map<String, Value>) -> Option<String> {
        self.find(role, row).and_then(text).filter(|text| !text.is_empty() && text != "-")
    }

    /// Reads a line of JSON.
    pub(super) fn read_line(&self, line: &str, options: &Options) -> Result<Entry, Skip> {
        if !line.starts_with('{') {
            return Err(Skip::Malformed);
        }
        let row: Map<String, Value> = serde_json::from_str(line)
            .map_err(|error| if error.is_eof() { Skip::Incomplete } else { Skip::Malformed })?;
        self.read(&row, options)
    }

    /// Reads the fields of a request.
    pub(super) fn read(&self, row: &Map<String, Value>, options: &Options) -> Result<Entry, Skip> {
        let mut entry = Entry { method: self.text("method", row).unwrap_or_default(), ..Entry::default() };
        entry.url = self.text("url", row).or_else(|| self.text("path", row)).ok_or(Skip::NoRequest)?;
        if let Some((method, url)) = request_line(&entry.url).map(|(m, u)| (m.to_owned(), u.to_owned())) {
            (entry.method, entry.url) = (method, url);
        }
        if let Some(query) = self.text("query", row)
            && !entry.url.contains('?')
        {
            entry.url = format!("{}?{}", entry.url, query.trim_start_matches('?'));
        }
        if entry.method.is_empty() {
            "GET".clone_into(&mut entry.method);
        }
        entry.at = match self.text("time", row) {
            Some(time) => Some(stamp::read(&time, options.zone_s).ok_or(Skip::BadTime)?),
            // Targets of vegeta have no times.
            None if self.is_base64 => None,
            None => return Err(Skip::NoTime),
        };
        entry.host = self.text("host", row);
        entry.status = self.text("status", row).and_then(|text| text.parse().ok()).filter(|status| *status > 0);
        entry.bytes = self.text("bytes", row).and_then(|text| text.parse().ok());
        if let Some(text) = self.text("duration", row) {
            entry.took(Took::read(&text, self.unit_ns as f64));
        }
        if let (true, Some(at), Some(took)) = (self.stamps_end, entry.at.as_mut(), entry.duration_ns) {
            at.ns = at.ns.saturating_sub_unsigned(took);
        }
        if let Some(headers) = self.find("headers", row) {
            entry.headers = header_fields(headers);
        }
        if let Some(prefix) = self.header_prefix {
            let fields =
                row.iter().filter_map(|(name, value)| Some((name.strip_prefix(prefix)?.to_owned(), text(value)?)));
            entry.headers.extend(fields);
        }
        entry.body = match self.find("body", row) {
            // A body that cannot be read is no empty one.
            Some(Value::String(text)) if self.is_base64 => Some(STANDARD.decode(text).map_err(|_| Skip::Malformed)?),
            Some(Value::String(text)) => (!text.is_empty()).then(|| text.clone().into_bytes()),
            Some(json) => Some(json.to_string().into_bytes()),
            None => None,
        };
        entry.session = match &options.session {
            SessionBy::Client => self.text("session", row).or_else(|| self.text("client", row)),
            SessionBy::Cookie(name) => {
                header(&entry.headers, "cookie").and_then(|field| cookie(field, name)).map(str::to_owned)
            }
            SessionBy::Field(name) => {
                lookup(row, name).and_then(text).or_else(|| header(&entry.headers, name).map(str::to_owned))
            }
            SessionBy::None => None,
        };
        Ok(entry)
    }
}

/// A field by its name, or the names that lead to it.
fn lookup<'a>(row: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    if let Some(value) = row.get(name) {
        return Some(value);
    }
    let (first, rest) = name.split_once('.')?;
    lookup(row.get(first)?.as_object()?, rest)
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Header fields of an object whose values are texts or lists of texts; the object may be JSON in a text.
fn header_fields(value: &Value) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                match value {
                    Value::Array(values) => fields.extend(values.iter().filter_map(text).map(|v| (name.clone(), v))),
                    value => fields.extend(text(value).map(|value| (name.clone(), value))),
                }
            }
        }
        Value::String(json) if json.starts_with('{') => {
            if let Ok(Value::Object(map)) = serde_json::from_str(json) {
                return header_fields(&Value::Object(map));
            }
        }
        _ => {}
    }
    fields
}
