//! A URL that is requested once a second, with its credentials and the limits of its answers.

use std::error::Error;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use brunt_plan::percent::percent_decoded;
use brunt_plan::secret::is_secret_field;
use brunt_plan::target::Url;
use brunt_record::redaction::Secrets;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, USER_AGENT};
use http::{HeaderValue, Request, Uri};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Body as _;
use tokio::time::timeout;

use crate::https::{Pool, innermost};

/// How long an answer may take: less than the time until the next question.
const PATIENCE: Duration = Duration::from_millis(900);
/// The longest answer that is read, in bytes.
const LONGEST: usize = 8 << 20;

/// See the module's text.
#[derive(Debug)]
pub struct Endpoint {
    uri: Uri,
    authorization: Option<HeaderValue>,
    accept: &'static str,
    secrets: Secrets,
}

impl Endpoint {
    /// The endpoint at `url`; `below` is added to its path and `query` to its query.
    ///
    /// # Errors
    /// When it is no URL.
    pub fn new(url: &str, below: &str, query: &str, accept: &'static str) -> Result<Self> {
        let Url { mut target, user } = Url::parse(url).map_err(|error| anyhow!("{error}"))?;
        let (path, given) = target.path.split_once('?').unwrap_or((&target.path, ""));
        let mut secrets = Vec::new();
        for (name, value) in given.split(['&', ';']).filter_map(|field| field.split_once('=')) {
            if is_secret_field(name) {
                secrets.extend([value.to_owned(), percent_decoded(value)]);
            }
        }
        let path = if below.is_empty() { path.to_owned() } else { format!("{}/{below}", path.trim_end_matches('/')) };
        let fields: Vec<_> = [given, query].into_iter().filter(|field| !field.is_empty()).collect();
        target.path = if fields.is_empty() { path } else { format!("{path}?{}", fields.join("&")) };
        let authorization = user.map(|user| {
            let credentials = STANDARD.encode(&user);
            let mut value = HeaderValue::try_from(format!("Basic {credentials}")).context("its user")?;
            value.set_sensitive(true);
            secrets.extend(user.split_once(':').map(|(_, password)| password.to_owned()));
            secrets.push(credentials);
            anyhow::Ok(value)
        });
        Ok(Self {
            uri: target.whole_url().parse().context("its URL")?,
            authorization: authorization.transpose()?,
            accept,
            secrets: Secrets::new(secrets),
        })
    }

    /// Asks the endpoint once, and returns the body of its answer.
    ///
    /// # Errors
    /// Says in a few words, without secrets, why no answer came or why it cannot be used.
    pub async fn get(&self, pool: &Pool) -> Result<String, String> {
        let mut request = Request::new(Full::new(Bytes::new()));
        *request.uri_mut() = self.uri.clone();
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static(self.accept));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("brunt/", env!("CARGO_PKG_VERSION"))));
        headers.extend(self.authorization.clone().map(|value| (AUTHORIZATION, value)));
        let answered = async {
            let (head, body) = pool.request(request).await.map_err(|error| innermost(&error))?.into_parts();
            // One that says how long it is need not be read for that.
            if body.size_hint().lower() > LONGEST as u64 {
                return Err(too_long());
            }
            let body = Limited::new(body, LONGEST).collect().await.map_err(|error| broken(error.as_ref()))?;
            // A Prometheus says in its answer what is wrong.
            match head.status.as_u16() {
                200..=299 | 400 | 422 => Ok((head.status, body.to_bytes())),
                status => Err(format!("HTTP {status}")),
            }
        };
        let (status, body) = match timeout(PATIENCE, answered).await {
            Ok(answered) => answered.map_err(|why| self.told(&why))?,
            Err(_) => return Err(format!("no answer in {}ms", PATIENCE.as_millis())),
        };
        if !status.is_success() && !body.starts_with(b"{") {
            return Err(format!("HTTP {}", status.as_u16()));
        }
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    /// A text from elsewhere, for display.
    pub fn told(&self, text: &str) -> String {
        self.secrets.hide(text).chars().filter(|c| !c.is_control()).take(200).collect()
    }
}

/// Why an answer was not read to its end.
fn broken(error: &(dyn Error + 'static)) -> String {
    if error.is::<LengthLimitError>() { too_long() } else { innermost(error) }
}

fn too_long() -> String {
    format!("its answer is longer than {} MiB: let a Prometheus read it, and ask that", LONGEST >> 20)
}

/// A text as it stands in the query of a URL (RFC 3986, section 2.1).
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => escaped.push(char::from(byte)),
            // Writing to a String cannot fail.
            _ => drop(write!(escaped, "%{byte:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_asked_as_it_is_with_what_is_added() {
        let of = |url: &str, below: &str, query: &str| Endpoint::new(url, below, query, "*/*").unwrap().uri.to_string();
        assert_eq!(of("http://h:9100/metrics", "", ""), "http://h:9100/metrics");
        assert_eq!(of("http://h:9100/metrics?a=1", "", ""), "http://h:9100/metrics?a=1");
        assert_eq!(of("http://h:9090", "api/v1/query", "query=a"), "http://h:9090/api/v1/query?query=a");
        assert_eq!(of("http://h/prom/?k=1", "api/v1/query", "query=a"), "http://h/prom/api/v1/query?k=1&query=a");
        assert_eq!(escaped("a{b=\"ä c\"}"), "a%7Bb%3D%22%C3%A4%20c%22%7D");
    }

    #[test]
    fn credentials_go_into_a_header_and_are_told_to_nobody() {
        let endpoint = Endpoint::new("http://me:hunter2@h/metrics?token=s3cr3t", "", "", "*/*").unwrap();
        assert_eq!(endpoint.authorization.as_ref().unwrap(), "Basic bWU6aHVudGVyMg==");
        let told = endpoint.told("401 for hunter2, bWU6aHVudGVyMg== and s3cr3t\n\u{1b}[31m");
        assert_eq!(told, "401 for [redacted], [redacted] and [redacted][31m");
        assert!(!format!("{endpoint:?}").contains("hunter2"));
    }
}
