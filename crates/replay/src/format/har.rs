//! HTTP archives (HAR 1.2), as browsers save them. An archive is read whole, within a limit.

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
    post_data: Option<PostData>,
}

#[derive(Deserialize)]
struct Pair {
    name: String,
    value: String,
}

#[derive(Deserialize)]
struct PostData {
    #[serde(default)]
    text: String,
    #[serde(default)]
    encoding: Option<String>,
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
    let headers: Vec<_> = headers.map(|field| (field.name, field.value)).collect();
    let body = entry.request.post_data.and_then(|data| match data.encoding.as_deref() {
        Some("base64") => STANDARD.decode(data.text).ok(),
        _ => Some(data.text.into_bytes()),
    });
    let session = match &options.session {
        // An archive is of one browser.
        SessionBy::Client => Some("browser".to_owned()),
        SessionBy::Cookie(name) => header(&headers, "cookie").and_then(|f| cookie(f, name)).map(str::to_owned),
        SessionBy::Field(name) if name == "pageref" => entry.pageref,
        SessionBy::Field(name) => header(&headers, name).map(str::to_owned),
        SessionBy::None => None,
    };
    checked(Entry {
        at: Some(stamp::read(&entry.started_date_time, options.zone_s).ok_or(Skip::BadTime)?),
        method: entry.request.method,
        url: entry.request.url,
        host: None,
        headers,
        body: body.filter(|body| !body.is_empty()),
        session,
        status: u16::try_from(entry.response.status).ok().filter(|status| *status > 0),
        bytes: u64::try_from(entry.response.content.size).ok(),
        duration_ns: (entry.time.is_finite() && entry.time >= 0.0).then_some((entry.time * 1e6) as u64),
    })
}
