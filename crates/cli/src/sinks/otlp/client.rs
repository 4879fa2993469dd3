//! Sequential requests over HTTP, each until it is accepted, refused, or out of time
//! (<https://opentelemetry.io/docs/specs/otlp/#otlphttp-response>).

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result};
use brunt_metrics::otlp::{self, Taken};
use brunt_proxy::Trust;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::uri::Scheme;
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::super::backlog::now_unix_ns;
use super::GRACE;
use super::endpoint::Endpoint;
use crate::https::{self, Pool, innermost};

/// The pause before a request is sent again, which doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest of such pauses.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The longest pause that a receiver may ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(300);
/// The longest answer that is read, in bytes.
const LONGEST_ANSWER: usize = 64 * 1024;
/// The longest text of a receiver that is shown, in characters.
const LONGEST_TOLD: usize = 200;

/// Sends requests to an endpoint.
pub(super) struct Client {
    pool: Pool,
    endpoint: Endpoint,
    /// The deadline; `None` while the run goes on.
    deadline: watch::Receiver<Option<Instant>>,
}

/// The result of one request.
#[derive(Debug, PartialEq, Eq)]
enum Attempt {
    Taken(Taken),
    /// Refused for good.
    Refused(String),
    /// To be repeated, after the requested time.
    Later(Option<Duration>, String),
}

impl Client {
    pub(super) fn new(endpoint: Endpoint, deadline: watch::Receiver<Option<Instant>>) -> Result<Self> {
        let is_secure = [&endpoint.metrics, &endpoint.logs].iter().any(|uri| uri.scheme() == Some(&Scheme::HTTPS));
        let trust = endpoint.authorities.clone().map(Trust::Authorities).or(is_secure.then_some(Trust::System));
        let pool = https::pool(trust.as_ref(), endpoint.timeout).context("OTEL_EXPORTER_OTLP_CERTIFICATE")?;
        Ok(Self { pool, endpoint, deadline })
    }

    /// Sends `body` until it is accepted; with `patience`, while that lasts.
    ///
    /// # Errors
    /// The reason for which it was not accepted: it was refused, or the time is over.
    pub(super) async fn deliver(
        &mut self,
        uri: &Uri,
        body: Vec<u8>,
        patience: Option<Duration>,
    ) -> Result<Taken, String> {
        let body = self.encoded(body);
        let began = Instant::now();
        let mut pause = FIRST_PAUSE;
        let mut problem = format!("no answer within {}s after the run", GRACE.as_secs());
        loop {
            let Some(attempt) = self.until_deadline(self.post(uri, body.clone())).await else { return Err(problem) };
            let asked = match attempt {
                Attempt::Taken(taken) => return Ok(Taken { message: self.told(&taken.message), ..taken }),
                Attempt::Refused(why) => return Err(self.told(&why)),
                Attempt::Later(asked, why) => {
                    problem = self.told(&why);
                    asked
                }
            };
            let wait = asked.unwrap_or_else(|| jittered(pause));
            let is_over = patience.is_some_and(|patience| began.elapsed() + wait > patience);
            if is_over || !self.wait(wait).await {
                return Err(problem);
            }
            pause = if self.deadline.borrow().is_some() { FIRST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
        }
    }

    pub(super) const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn encoded(&self, body: Vec<u8>) -> Bytes {
        if !self.endpoint.gzip {
            return body.into();
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        // Writing to a Vec cannot fail; an empty body would be refused.
        let compressed = encoder.write_all(&body).and_then(|()| encoder.finish());
        compressed.unwrap_or_default().into()
    }

    /// The result of a future; `None` if the time is over before.
    async fn until_deadline<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut deadline = self.deadline.clone();
        let over = async move {
            // Its sender lives as long as the run.
            let at = match deadline.wait_for(Option::is_some).await {
                Ok(at) => *at,
                Err(_) => None,
            };
            sleep_until(at.unwrap_or_else(Instant::now)).await;
        };
        tokio::select! {
            biased;
            done = future => Some(done),
            () = over => None,
        }
    }

    /// Waits before another attempt; `false` if there will be none. The end of the run ends a pause, since time is
    /// short then.
    async fn wait(&mut self, pause: Duration) -> bool {
        let known = *self.deadline.borrow_and_update();
        if let Some(deadline) = known {
            if Instant::now() + pause >= deadline {
                return false;
            }
            sleep(pause).await;
            return true;
        }
        tokio::select! {
            () = sleep(pause) => {}
            _ = self.deadline.changed() => {}
        }
        true
    }

    async fn post(&self, uri: &Uri, body: Bytes) -> Attempt {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri.clone();
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, http::HeaderValue::from_static("application/x-protobuf"));
        headers.insert(USER_AGENT, http::HeaderValue::from_static(concat!("brunt/", env!("CARGO_PKG_VERSION"))));
        if self.endpoint.gzip {
            headers.insert(CONTENT_ENCODING, http::HeaderValue::from_static("gzip"));
        }
        for (name, value) in &self.endpoint.headers {
            headers.insert(name, value.clone());
        }
        let answered = async {
            let (head, body) = self.pool.request(request).await.map_err(|error| innermost(&error))?.into_parts();
            let body = Limited::new(body, LONGEST_ANSWER).collect().await.map(http_body_util::Collected::to_bytes);
            Ok::<_, String>((head.status, head.headers, body.unwrap_or_default()))
        };
        match timeout(self.endpoint.timeout, answered).await {
            Ok(Ok((status, headers, body))) => outcome(status, &headers, &body),
            Ok(Err(why)) => Attempt::Later(None, why),
            Err(_) => Attempt::Later(None, format!("no answer in {}ms", self.endpoint.timeout.as_millis())),
        }
    }

    /// A text of the receiver for display.
    fn told(&self, text: &str) -> String {
        let hidden = self.endpoint.secrets.hide(text);
        let mut plain: String = hidden.chars().filter(|c| !c.is_control()).collect();
        if let Some((end, _)) = plain.char_indices().nth(LONGEST_TOLD) {
            plain.truncate(end);
            plain.push('…');
        }
        plain
    }
}

fn outcome(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Attempt {
    let why = format!("HTTP {status}");
    match status.as_u16() {
        200..=299 => Attempt::Taken(otlp::taken(body)),
        429 | 502 | 503 | 504 => {
            let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
            Attempt::Later(seconds.map(|seconds| Duration::from_secs(seconds).min(LONGEST_ASKED)), why)
        }
        _ => Attempt::Refused(why),
    }
}

/// Between half and all of a pause, so that many runs do not retry at once.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(0.5 + (now_unix_ns() % 1000) as f64 / 2000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_worth_another_request_is_what_the_specification_says() {
        let of = |status: u16, retry_after: Option<&'static str>| {
            let headers = retry_after.map(|value| (RETRY_AFTER, http::HeaderValue::from_static(value)));
            outcome(StatusCode::from_u16(status).unwrap(), &headers.into_iter().collect(), b"")
        };
        for status in [200, 202] {
            assert_eq!(of(status, None), Attempt::Taken(Taken::default()));
        }
        for status in [429, 502, 503, 504] {
            assert!(matches!(of(status, None), Attempt::Later(None, _)), "{status}");
            assert!(matches!(of(status, Some("7")), Attempt::Later(Some(wait), _) if wait.as_secs() == 7), "{status}");
        }
        assert!(matches!(of(429, Some("99999999")), Attempt::Later(Some(wait), _) if wait == LONGEST_ASKED));
        assert!(matches!(of(503, Some("Thu, 26 Nov 2026 07:00:00 GMT")), Attempt::Later(None, _)));
        for status in [301, 400, 401, 404, 413, 500, 501] {
            assert!(matches!(of(status, Some("7")), Attempt::Refused(_)), "{status}");
        }
    }

    #[test]
    fn pauses_differ_and_are_never_longer_than_asked() {
        assert!((0..100).map(|_| jittered(FIRST_PAUSE)).all(|pause| (FIRST_PAUSE / 2..=FIRST_PAUSE).contains(&pause)));
    }
}
