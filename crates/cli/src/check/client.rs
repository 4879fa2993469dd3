//! A small HTTP client that keeps whole answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use brunt_proxy::Trust;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client as Pool;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::task::JoinSet;

/// The longest answer that is kept, in bytes.
const LONGEST: usize = 16 * 1024 * 1024;

/// A request of a probe.
#[derive(Debug, Clone)]
pub struct Probe {
    pub method: Method,
    pub uri: Uri,
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

impl std::fmt::Display for Probe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, brunt_model::secret::shown_url(&self.uri.to_string()))?;
        for (name, value) in &self.headers {
            write!(f, " | {name}: {}", String::from_utf8_lossy(value.as_bytes()))?;
        }
        Ok(())
    }
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub took: Duration,
}

impl Answer {
    /// Whether this text is anywhere in it.
    pub fn contains(&self, text: &str) -> bool {
        let within = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        within(&self.body) || self.headers.values().any(|value| within(value.as_bytes()))
    }

    pub fn header(&self, name: &HeaderName) -> Option<&HeaderValue> {
        self.headers.get(name)
    }
}

/// Asks.
#[derive(Clone)]
pub struct Client {
    pool: Pool<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    timeout: Duration,
    headers: Arc<[(HeaderName, HeaderValue)]>,
}

impl Client {
    pub fn new(trust: &Trust, timeout: Duration, headers: &[(HeaderName, HeaderValue)]) -> Result<Self> {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(timeout));
        let connector = HttpsConnector::from((connector, brunt_proxy::client_tls(trust)?));
        let pool = Pool::builder(TokioExecutor::new()).build(connector);
        Ok(Self { pool, timeout, headers: headers.into() })
    }

    /// Asks, and reads the whole answer.
    pub async fn ask(&self, probe: &Probe) -> Result<Answer> {
        let mut request = Request::new(Empty::new());
        *request.method_mut() = probe.method.clone();
        *request.uri_mut() = probe.uri.clone();
        for (name, value) in self.headers.iter().chain(&probe.headers) {
            request.headers_mut().append(name, value.clone());
        }
        let began = Instant::now();
        let answered = async {
            let (head, body) = self.pool.request(request).await?.into_parts();
            let body = Limited::new(body, LONGEST).collect().await;
            let body = body.map_err(|error| anyhow::anyhow!("{error}")).context("the answer broke off")?.to_bytes();
            anyhow::Ok(Answer { status: head.status, headers: head.headers, body, took: began.elapsed() })
        };
        let patience = tokio::time::timeout(self.timeout, answered).await;
        patience.with_context(|| format!("no answer within {:?}", self.timeout))?.with_context(|| probe.to_string())
    }

    /// Asks all of these at once; the answers in the same order.
    pub async fn ask_at_once(&self, probes: &[Probe]) -> Result<Vec<Answer>> {
        let mut tasks = JoinSet::new();
        for (at, probe) in probes.iter().cloned().enumerate() {
            let client = self.clone();
            tasks.spawn(async move { (at, client.ask(&probe).await) });
        }
        let mut answers: Vec<Option<Answer>> = vec![None; probes.len()];
        while let Some(done) = tasks.join_next().await {
            let (at, answer) = done.context("a request's task failed")?;
            if let Some(place) = answers.get_mut(at) {
                *place = Some(answer?);
            }
        }
        answers.into_iter().collect::<Option<_>>().context("an answer is missing")
    }

    /// The number on a page.
    pub async fn count(&self, page: &Uri) -> Result<u64> {
        let answer = self.ask(&Probe { method: Method::GET, uri: page.clone(), headers: Vec::new() }).await?;
        ensure!(answer.status.is_success(), "--origin-count: the page is answered with {}", answer.status);
        let text = String::from_utf8_lossy(&answer.body);
        let digits: String =
            text.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
        match digits.parse() {
            Ok(count) => Ok(count),
            Err(_) => bail!("--origin-count: expected a number on the page, got '{}'", text.trim()),
        }
    }
}
