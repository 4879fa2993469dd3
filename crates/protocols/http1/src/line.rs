//! A line of a file of URLs: a URL, a method and a URL, or a whole request in JSON.

use brunt_plan::bodies::shown_body;
use brunt_plan::secret::{REDACTED, shown_url};
use brunt_protocol::headers::{Header, is_token};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The greatest weight of a line.
const MOST_WEIGHT: u32 = 1000;

/// A request as a line describes it; parts that it leaves out are as for all requests.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) method: Option<String>,
    pub(super) url: String,
    pub(super) headers: Vec<Header>,
    pub(super) body: Option<Vec<u8>>,
    /// Whether the body was written as JSON and not as a text.
    pub(super) is_json: bool,
    /// How often it is used for each use of a line without a weight.
    pub(super) weight: u32,
}

/// A request in JSON: `{"method": "POST", "url": "/cart", "headers": {"X-Shop": "1"}, "body": {"sku": 7}}`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InJson {
    method: Option<String>,
    url: String,
    #[serde(default)]
    headers: Map<String, Value>,
    /// A text, or JSON that is sent as it is.
    body: Option<Value>,
    weight: Option<u32>,
}

impl Line {
    /// Reads a line that is neither empty nor a comment.
    ///
    /// # Errors
    /// Says what is wrong, without parts that may be secret.
    pub(super) fn read(line: &str) -> Result<Self, String> {
        if line.starts_with('{') {
            return Self::of_json(line);
        }
        let (method, url) = match line.split_once([' ', '\t']) {
            Some((method, url)) => (Some(method.to_owned()), url.trim_start()),
            None => (None, line),
        };
        Ok(Self { method, url: url.to_owned(), headers: Vec::new(), body: None, is_json: false, weight: 1 })
    }

    fn of_json(line: &str) -> Result<Self, String> {
        let InJson { method, url, headers, body, weight } = serde_json::from_str(line).map_err(|error| {
            let expected = "expected a request in JSON such as {\"method\": \"POST\", \"url\": \"/a\", \"headers\": \
                            {\"K\": \"V\"}, \"body\": \"…\"}";
            // The reader's own words would quote values.
            match error.classify() {
                serde_json::error::Category::Data => {
                    format!("{expected}: a field is missing, unknown or of another type")
                }
                _ => format!("{expected}, got no JSON from column {} on", error.column()),
            }
        })?;
        let mut fields = Vec::new();
        for (name, value) in headers {
            match value {
                Value::String(value) => fields.push(Header::new(name, value)),
                Value::Array(values) if values.iter().all(Value::is_string) => {
                    fields.extend(values.iter().filter_map(Value::as_str).map(|value| Header::new(&*name, value)));
                }
                _ => return Err(format!("the header field '{name}': expected a text, or a list of texts")),
            }
        }
        let is_json = body.as_ref().is_some_and(|body| !body.is_string());
        let body = body.map(|body| match body {
            Value::String(text) => text.into_bytes(),
            json => json.to_string().into_bytes(),
        });
        let method = method.or_else(|| body.as_ref().map(|_| "POST".to_owned()));
        let weight = weight.unwrap_or(1);
        if !(1..=MOST_WEIGHT).contains(&weight) {
            return Err(format!("the weight: expected a number between 1 and {MOST_WEIGHT}, got {weight}"));
        }
        Ok(Self { method, url, headers: fields, body, is_json, weight })
    }
}

/// Converts a file of targets in vegeta's format, with header fields in the lines below each target, to lines of
/// requests in JSON. Every line keeps its number. `None` where no line is a header field.
///
/// # Errors
/// When a line names a file for a body: lines of requests in JSON contain theirs.
pub(super) fn with_fields(content: &[u8]) -> Result<Option<Vec<u8>>, String> {
    let text = String::from_utf8_lossy(content);
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    if !lines.iter().any(|line| field(line).is_some()) {
        return Ok(None);
    }
    let mut out: Vec<String> = Vec::with_capacity(lines.len());
    let mut request: Option<(usize, Line, Map<String, Value>)> = None;
    let close = |request: Option<(usize, Line, Map<String, Value>)>, out: &mut Vec<String>| {
        let Some((at, line, fields)) = request.filter(|(_, _, fields)| !fields.is_empty()) else { return };
        if let Some(place) = out.get_mut(at) {
            let method = line.method.unwrap_or_else(|| "GET".to_owned());
            *place = json!({ "method": method, "url": line.url, "headers": fields }).to_string();
        }
    };
    for (number, line) in lines.into_iter().enumerate() {
        match (field(line), request.as_mut()) {
            (Some((name, value)), Some((_, _, fields))) => {
                let values = fields.entry(name).or_insert_with(|| Value::Array(Vec::new()));
                if let Value::Array(values) = values {
                    values.push(value.into());
                }
                out.push(String::new());
            }
            (None, Some(_)) if line.starts_with('@') => {
                return Err(format!(
                    "line {}: a body from a file stands in a request in JSON, as \"body\"",
                    number + 1
                ));
            }
            _ => {
                close(request.take(), &mut out);
                if !line.is_empty() && !line.starts_with(['#', '{']) {
                    request = Some((number, Line::read(line)?, Map::new()));
                }
                out.push(line.to_owned());
            }
        }
    }
    close(request, &mut out);
    Ok(Some(out.join("\n").into_bytes()))
}

/// Name and value of a header field, `Name: value` or `Name:value`; `None` for a URL.
fn field(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    let is_field = !name.is_empty() && name.chars().all(is_token) && !value.starts_with("//");
    is_field.then(|| (name.to_owned(), value.trim().to_owned()))
}

/// A line for display: without secrets in its URL, header fields and body.
pub(super) fn shown(line: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(line);
    if !text.trim_start().starts_with('{') {
        return shown_url(&text).into_owned().into_bytes();
    }
    let Ok(InJson { method, url, headers, body, weight }) = serde_json::from_str(&text) else {
        return REDACTED.as_bytes().to_vec();
    };
    let header = |name: &str, value: &Value| match value {
        Value::String(value) => Value::from(Header::new(name, value.as_str()).value().shown()),
        Value::Array(values) => {
            let shown = values
                .iter()
                .map(|value| Value::from(Header::new(name, value.as_str().unwrap_or(REDACTED)).value().shown()));
            shown.collect()
        }
        _ => REDACTED.into(),
    };
    let headers: Map<_, _> = headers.iter().map(|(name, value)| (name.clone(), header(name, value))).collect();
    let body = body.map(|body| match body {
        Value::String(text) => Value::from(String::from_utf8_lossy(&shown_body(text.as_bytes()))),
        json => {
            let shown = shown_body(json.to_string().as_bytes()).into_owned();
            serde_json::from_slice(&shown).unwrap_or_else(|_| REDACTED.into())
        }
    });
    let mut shown = Map::new();
    shown.extend(method.map(|method| ("method".to_owned(), method.into())));
    shown.insert("url".to_owned(), Value::from(shown_url(&url)));
    if !headers.is_empty() {
        shown.insert("headers".to_owned(), headers.into());
    }
    shown.extend(body.map(|body| ("body".to_owned(), body)));
    shown.extend(weight.map(|weight| ("weight".to_owned(), weight.into())));
    json!(shown).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_in_json() {
        let line = r#"{"url": "/cart", "headers": {"X": "1", "Y": ["2", "3"]}, "body": {"sku": 7}}"#;
        let read = Line::read(line).unwrap();
        let fields: Vec<_> = read.headers.iter().map(|field| (field.name(), field.value().as_written())).collect();
        assert_eq!(fields, [("X", "1"), ("Y", "2"), ("Y", "3")]);
        assert!(read.is_json);
        assert_eq!((read.method.as_deref(), read.url.as_str()), (Some("POST"), "/cart"));
        assert_eq!(read.body.as_deref(), Some(br#"{"sku":7}"#.as_slice()));
        let plain = Line::read(r#"{"method": "PUT", "url": "/a", "body": "hi"}"#).unwrap();
        assert_eq!((plain.method.as_deref(), plain.body.as_deref()), (Some("PUT"), Some(b"hi".as_slice())));
        assert!(plain.headers.is_empty() && !plain.is_json);
    }

    #[test]
    fn header_fields_below_a_request_are_its_own() {
        let file =
            b"# targets\nGET http://a.test/b?c=d: e\nX-Id: 1\nX-Id: 2\n\nPOST /c\nAuthorization: Bearer a:b\n/plain\n";
        let joined = String::from_utf8(with_fields(file).unwrap().unwrap()).unwrap();
        let lines: Vec<&str> = joined.lines().collect();
        assert_eq!(lines.len(), 8, "{joined}");
        let read = Line::read(lines[1]).unwrap();
        let fields: Vec<_> = read.headers.iter().map(|field| (field.name(), field.value().as_written())).collect();
        assert_eq!((read.method.as_deref(), read.url.as_str()), (Some("GET"), "http://a.test/b?c=d: e"));
        assert_eq!(fields, [("X-Id", "1"), ("X-Id", "2")]);
        assert_eq!(Line::read(lines[5]).unwrap().headers[0].value().as_written(), "Bearer a:b");
        assert_eq!((lines[0], lines[2], lines[7]), ("# targets", "", "/plain"));
        assert_eq!(with_fields(b"GET http://a.test:80/\nhttp://b.test/: c\n"), Ok(None));
        let close = String::from_utf8(with_fields(b"PUT /a\nx.b_c:d\nX!:e:f\n").unwrap().unwrap()).unwrap();
        let read = Line::read(close.lines().next().unwrap()).unwrap();
        let fields: Vec<_> = read.headers.iter().map(|field| (field.name(), field.value().as_written())).collect();
        assert_eq!(fields, [("X!", "e:f"), ("x.b_c", "d")], "without a space, and with all signs of a token");
        assert!(with_fields(b"POST /a\nX: 1\n@body.json\n").unwrap_err().starts_with("line 3: "));
    }

    #[test]
    fn what_is_wrong_is_said_without_values() {
        for line in [
            r#"{"url": "/a", "headers": {"Authorization": 17}}"#,
            r#"{"url": "/a", "token": "t0p"}"#,
            r#"{"url": "/a", "body": "t0p"#,
            r#"{"body": "t0p"}"#,
        ] {
            let error = Line::read(line).unwrap_err();
            assert!(error.contains("expected") && !error.contains("t0p"), "{line}: {error}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let line =
            br#"{"url": "/a?token=t0p", "headers": {"Authorization": "Bearer t0p", "X-Api-Key": ["t0p"], "X": "1"},
            "body": {"password": "t0p", "sku": 7}}"#;
        let text = String::from_utf8(shown(line)).unwrap();
        assert!(!text.contains("t0p") && text.contains("\"sku\":7") && text.contains("\"X\":\"1\""), "{text}");
        assert_eq!(shown(br#"{"url": "/a", "body": "t0p"#), REDACTED.as_bytes());
        assert_eq!(
            shown(br#"{"url": "/a", "headers": {"X": {"t0p": 1}}}"#),
            br#"{"headers":{"X":"[redacted]"},"url":"/a"}"#
        );
    }
}
