//! HTTP archives (HAR 1.2), as browsers save them: requests, answers and their times.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::clock;
use crate::encoded::{component, decoded, origin_and_path};
use crate::value::Value;

/// The most bytes of an answer's body that are searched.
const MOST_BODY: usize = 2 << 20;

/// A recording.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    /// Pages: their ids and titles.
    pub(crate) pages: Vec<(String, String)>,
    pub(crate) entries: Vec<Entry>,
}

/// A request with its answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entry {
    /// Its number in the archive, from 1.
    pub(crate) number: usize,
    pub(crate) page: Option<String>,
    /// When it began, in milliseconds since 1970.
    pub(crate) began_ms: Option<f64>,
    pub(crate) took_ms: f64,
    pub(crate) method: String,
    pub(crate) url: String,
    /// Scheme, host and port.
    pub(crate) origin: String,
    /// The path with its query.
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) cookies: Vec<(String, String)>,
    pub(crate) sent: Option<Sent>,
    pub(crate) status: u16,
    /// Whether the archive has an answer, if only one that never came.
    pub(crate) has_answer: bool,
    pub(crate) answer_headers: Vec<(String, String)>,
    pub(crate) content_type: String,
    /// The body of the answer, if it is text.
    pub(crate) body: Option<String>,
    /// The version of HTTP to ask for; `None` for HTTP/1.1.
    pub(crate) http: Option<&'static str>,
    /// The target of a redirect.
    pub(crate) redirect: Option<String>,
    /// The kind of resource that the browser requested: `document`, `fetch`, `script`, ….
    pub(crate) kind: Option<String>,
}

/// The body of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sent {
    pub(crate) content_type: String,
    pub(crate) bytes: Vec<u8>,
    /// The fields of a form, where the archive has them: name, value, filename, content type.
    pub(crate) fields: Vec<(String, String, Option<String>, Option<String>)>,
}

impl Entry {
    /// The name of the entry in lists and comments.
    pub(crate) fn place(&self) -> String {
        format!("entry {}, {} {}", self.number, self.method, self.path_alone())
    }

    /// The path without the query.
    pub(crate) fn path_alone(&self) -> &str {
        self.path.split('?').next().unwrap_or(&self.path)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }
}

fn find<'h>(headers: &'h [(String, String)], name: &str) -> Option<&'h str> {
    headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// The recording in a document; `None` if it is not a HAR file.
pub(crate) fn read(document: &Value) -> Option<Archive> {
    let log = document.get("log")?;
    log.get("entries")?;
    let title = |page: &Value| {
        let title = page.text_at("title").filter(|title| !title.trim().is_empty());
        Some((page.text_at("id")?.to_owned(), title.unwrap_or_default().to_owned()))
    };
    let pages = log.list_at("pages").iter().filter_map(title).collect();
    let read = log.list_at("entries").iter().enumerate().map(|(place, value)| entry(place + 1, value));
    let mut entries: Vec<Entry> = read.collect();
    // Firefox orders entries by their ends.
    entries.sort_by(|one, other| one.began_ms.unwrap_or(0.0).total_cmp(&other.began_ms.unwrap_or(0.0)));
    Some(Archive { pages, entries })
}

fn entry(number: usize, value: &Value) -> Entry {
    let (request, response) =
        (value.get("request").unwrap_or(&Value::Null), value.get("response").unwrap_or(&Value::Null));
    let url = request.text_at("url").unwrap_or_default().to_owned();
    let (origin, mut path) = origin_and_path(&url).unwrap_or_default();
    // Some clients write a URL's query in the list alone.
    if !path.contains('?') {
        let listed = pairs(request, "queryString").into_iter();
        let fields: Vec<_> =
            listed.map(|(name, value)| format!("{}={}", component(&name), component(&value))).collect();
        path = if fields.is_empty() { path } else { format!("{path}?{}", fields.join("&")) };
    }
    let content = response.get("content").unwrap_or(&Value::Null);
    let mut headers = pairs(request, "headers");
    if let Some(user) = user_in(&url).filter(|_| find(&headers, "authorization").is_none()) {
        headers.push(("Authorization".to_owned(), format!("Basic {}", STANDARD.encode(user))));
    }
    let mut cookies = pairs(request, "cookies");
    if cookies.is_empty() {
        cookies = find(&headers, "cookie").map(cookies_of).unwrap_or_default();
    }
    let answer_headers = pairs(response, "headers");
    let redirect = response.text_at("redirectURL").filter(|url| !url.is_empty());
    let number_at = |value: &Value, name: &str| match value.get(name) {
        Some(Value::Number(number)) => number.as_f64(),
        _ => None,
    };
    Entry {
        number,
        page: value.text_at("pageref").map(str::to_owned),
        began_ms: value.text_at("startedDateTime").and_then(clock::milliseconds),
        took_ms: number_at(value, "time").filter(|took| *took > 0.0).unwrap_or(0.0),
        method: request.text_at("method").unwrap_or_default().to_owned(),
        origin,
        path,
        url,
        cookies,
        sent: sent(request),
        status: number_at(response, "status").filter(|status| (100.0..1000.0).contains(status)).unwrap_or(0.0) as u16,
        has_answer: value.get("response").is_some_and(|response| *response != Value::Null),
        content_type: content.text_at("mimeType").unwrap_or_default().to_ascii_lowercase(),
        body: body(content),
        http: response.text_at("httpVersion").or(request.text_at("httpVersion")).and_then(version_of),
        redirect: redirect.or_else(|| find(&answer_headers, "location")).map(str::to_owned),
        kind: value.text_at("_resourceType").map(str::to_ascii_lowercase).or_else(|| destination(&headers)),
        headers,
        answer_headers,
    }
}

/// The user and the password that a URL names (RFC 3986, section 3.2.1): its client sends them as a header field.
fn user_in(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, password) = authority.rsplit_once('@').map(|(user, _)| user.split_once(':').unwrap_or((user, "")))?;
    Some(format!("{}:{}", decoded(user), decoded(password)))
}

/// The version to ask for where a browser has used one of this name; `None` for HTTP/1.1.
fn version_of(name: &str) -> Option<&'static str> {
    match name.to_ascii_lowercase().as_str() {
        "h2" | "http/2" | "http/2.0" => Some("auto"),
        "h3" | "http/3" | "http/3.0" => Some("3"),
        _ => None,
    }
}

/// The kind of the requested resource by the browser's Fetch Metadata, under the names in Chromium's archives.
fn destination(headers: &[(String, String)]) -> Option<String> {
    let kind = match find(headers, "sec-fetch-dest")? {
        "document" => "document",
        "empty" => "fetch",
        "style" => "stylesheet",
        "audio" | "video" | "track" => "media",
        "worker" | "sharedworker" | "serviceworker" | "script" => "script",
        "image" => "image",
        "font" => "font",
        "manifest" => "manifest",
        _ => return None,
    };
    Some(kind.to_owned())
}

/// Names and values from an archive, without the pseudo-header fields of HTTP/2 (RFC 9113, section 8.3).
fn pairs(value: &Value, name: &str) -> Vec<(String, String)> {
    let pair = |one: &Value| Some((one.text_at("name")?.to_owned(), one.get("value")?.shown()?));
    value.list_at(name).iter().filter_map(pair).filter(|(name, _)| !name.starts_with(':')).collect()
}

/// The cookies in a header field.
fn cookies_of(field: &str) -> Vec<(String, String)> {
    let pairs = field.split(';').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
}

fn sent(request: &Value) -> Option<Sent> {
    let data = request.get("postData")?;
    let text = data.text_at("text").unwrap_or_default();
    let bytes = match data.text_at("encoding") {
        Some("base64") => STANDARD.decode(text).unwrap_or_else(|_| text.as_bytes().to_vec()),
        _ => text.as_bytes().to_vec(),
    };
    let field = |one: &Value| {
        let text = |name: &str| one.text_at(name).map(str::to_owned);
        Some((text("name")?, text("value").unwrap_or_default(), text("fileName"), text("contentType")))
    };
    let fields: Vec<_> = data.list_at("params").iter().filter_map(field).collect();
    if bytes.is_empty() && fields.is_empty() {
        return None;
    }
    Some(Sent { content_type: data.text_at("mimeType").unwrap_or_default().to_owned(), bytes, fields })
}

fn body(content: &Value) -> Option<String> {
    let text = content.text_at("text")?;
    let mut text = if content.text_at("encoding") == Some("base64") {
        String::from_utf8(STANDARD.decode(text).ok()?).ok()?
    } else {
        text.to_owned()
    };
    if text.len() > MOST_BODY {
        let end = (0..=MOST_BODY).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
    }
    Some(text)
}
