//! HTTP archives (HAR 1.2), as browsers save them. An archive is read whole, within a limit.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::{Options, SessionBy, checked, cookie, header};
use crate::entry::{Entry, Skip};
use crate::stamp;

/// The most bytes of an archive.
pub const MOST_BYTES: u64 = 256 << 20;

#[derive(Deserialize)]
struct Archive {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    #[serde(default)]
    entries: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HarEntry {
    #[serde(default)]
    started_date_time: String,
    #[serde(default)]
    time: f64,
    #[serde(default)]
    pageref: Option<String>,
    request: Request,
    #[serde(default)]
    response: Response,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<Pair>,
    #[serde(default)]
    query_string: serde_json::Value,
    #[serde(default)]
    post_data: Option<PostData>,
}

#[derive(Deserialize)]
struct Pair {
    name: String,
    value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PostData {
    #[serde(default)]
    mime_type: String,
    #[serde(default)]
    params: Vec<Param>,
    #[serde(default)]
    text: String,
    #[serde(default)]
    encoding: Option<String>,
}

/// A field of a form.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Param {
    name: String,
    #[serde(default)]
    value: String,
    #[serde(default)]
    file_name: Option<String>,
    #[serde(default)]
    content_type: Option<String>,
}

#[derive(Default, Deserialize)]
struct Response {
    #[serde(default)]
    status: i64,
    #[serde(default)]
    content: Content,
}

#[derive(Default, Deserialize)]
struct Content {
    #[serde(default)]
    size: i64,
}

/// The entries of an archive: each is a request, or the reason for skipping it.
///
/// # Errors
/// When it is not an archive.
pub fn entries(archive: &[u8], options: &Options) -> Result<Vec<Result<Entry, Skip>>, String> {
    let archive = archive.strip_prefix("\u{feff}".as_bytes()).unwrap_or(archive);
    let archive: Archive = serde_json::from_slice(archive)
        .map_err(|error| format!("line {}, column {}: not an HTTP archive", error.line(), error.column()))?;
    Ok(archive.log.entries.into_iter().map(|entry| read(entry, options)).collect())
}

fn read(entry: serde_json::Value, options: &Options) -> Result<Entry, Skip> {
    let entry: HarEntry = serde_json::from_value(entry).map_err(|_| Skip::Malformed)?;
    if entry.started_date_time.is_empty() {
        return Err(Skip::NoTime);
    }
    // Pseudo-header fields of HTTP/2 belong to its framing (RFC 9113 §8.3).
    let headers = entry.request.headers.into_iter().filter(|field| !field.name.starts_with(':'));
    let mut headers: Vec<_> = headers.map(|field| (field.name, field.value)).collect();
    let body = match entry.request.post_data {
        None => None,
        // The archive has the fields of a form in place of its text (HAR 1.2, postData).
        Some(data) if data.text.is_empty() && !data.params.is_empty() => Some(form(&data, &mut headers)?),
        Some(data) if data.encoding.as_deref() == Some("base64") => {
            Some(STANDARD.decode(data.text).map_err(|_| Skip::Malformed)?)
        }
        Some(data) => Some(data.text.into_bytes()),
    };
    let session = match &options.session {
        // An archive is of one browser.
        SessionBy::Client => Some("browser".to_owned()),
        SessionBy::Cookie(name) => header(&headers, "cookie").and_then(|f| cookie(f, name)).map(str::to_owned),
        SessionBy::Field(name) if name == "pageref" => entry.pageref,
        SessionBy::Field(name) => header(&headers, name).map(str::to_owned),
        SessionBy::None => None,
    };
    let mut url = entry.request.url;
    // Some clients write a URL's query in the list alone.
    if !url.contains('?') {
        url.truncate(url.find('#').unwrap_or(url.len()));
        let listed = entry.request.query_string.as_array().into_iter().flatten();
        for (place, field) in listed.enumerate() {
            let text = |name: &str| encoded(field.get(name).and_then(serde_json::Value::as_str).unwrap_or_default());
            let _ = write!(url, "{}{}={}", if place == 0 { '?' } else { '&' }, text("name"), text("value"));
        }
    }
    checked(Entry {
        at: Some(stamp::read(&entry.started_date_time, options.zone_s).ok_or(Skip::BadTime)?),
        method: entry.request.method,
        url,
        host: None,
        headers,
        body: body.filter(|body| !body.is_empty()),
        session,
        status: u16::try_from(entry.response.status).ok().filter(|status| *status > 0),
        bytes: u64::try_from(entry.response.content.size).ok(),
        duration_ns: (entry.time.is_finite() && entry.time >= 0.0).then_some((entry.time * 1e6) as u64),
        has_unread_duration: entry.time < -1.0,
    })
}

/// The body of a form whose fields an archive has. Browsers write them as they stand in the body, or without escapes.
fn form(data: &PostData, headers: &mut Vec<(String, String)>) -> Result<Vec<u8>, Skip> {
    let content_type = header(headers, "content-type").unwrap_or(&data.mime_type).to_owned();
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if kind != "multipart/form-data" {
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            headers.push(("Content-Type".to_owned(), "application/x-www-form-urlencoded".to_owned()));
        }
        let fields = data.params.iter().map(|one| format!("{}={}", encoded(&one.name), encoded(&one.value)));
        return Ok(fields.collect::<Vec<_>>().join("&").into_bytes());
    }
    let known = content_type.split(';').skip(1).find_map(|part| part.trim().strip_prefix("boundary="));
    let boundary = known.map_or_else(|| "brunt-replayed-form".to_owned(), |known| known.trim_matches('"').to_owned());
    if known.is_none() {
        headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
        headers.push(("Content-Type".to_owned(), format!("multipart/form-data; boundary={boundary}")));
    }
    let mut body = String::new();
    for one in &data.params {
        // A file that the archive has not got cannot be sent as it was.
        if one.file_name.is_some() && one.value.is_empty() {
            return Err(Skip::Incomplete);
        }
        let quoted = |text: &str| text.replace('"', "%22").replace(['\r', '\n'], " ");
        let _ = write!(body, "--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"", quoted(&one.name));
        if let Some(name) = &one.file_name {
            let _ = write!(body, "; filename=\"{}\"", quoted(name));
        }
        if let Some(kind) = &one.content_type {
            let _ = write!(body, "\r\nContent-Type: {}", kind.replace(['\r', '\n'], " "));
        }
        let _ = write!(body, "\r\n\r\n{}\r\n", one.value);
    }
    let _ = write!(body, "--{boundary}--\r\n");
    Ok(body.into_bytes())
}

/// A name or a value in a form. One that has the escapes of a form is encoded already.
fn encoded(text: &str) -> String {
    let is_encoded = !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~*+%".contains(&byte))
        && text.contains('%');
    if is_encoded {
        return text.to_owned();
    }
    let mut made = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' ' => made.push('+'),
            _ if byte.is_ascii_alphanumeric() || b"-._~*".contains(&byte) => made.push(char::from(byte)),
            _ => {
                let _ = write!(made, "%{byte:02X}");
            }
        }
    }
    made
}
