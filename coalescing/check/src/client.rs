//! A small HTTP client that keeps whole answers.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client as Pool;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::task::JoinHandle;

use crate::error::{AskError, CheckError};
use crate::{CheckOptions, ShowUrl};

/// The longest answer that is kept, in bytes.
const LONGEST: usize = 16 * 1024 * 1024;

/// A request of a probe.
#[derive(Debug, Clone)]
pub(crate) struct Probe {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// Whether it is sent from [another address](Client::has_another_address) of this machine.
    pub(crate) from_elsewhere: bool,
}

impl Probe {
    pub(crate) fn get(uri: &Uri) -> Self {
        Self { method: Method::GET, uri: uri.clone(), headers: Vec::new(), from_elsewhere: false }
    }
}

/// A whole answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Bytes,
    pub(crate) took: Duration,
}

impl Answer {
    /// Whether this text is anywhere in it.
    pub(crate) fn contains(&self, text: &str) -> bool {
        let within = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        within(&self.body) || self.headers.values().any(|value| within(value.as_bytes()))
    }
}

/// Connections to a server.
type Connections = Pool<HttpsConnector<HttpConnector>, Empty<Bytes>>;

/// An address that a client on this machine may have beside 127.0.0.1.
const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// Asks.
#[derive(Clone)]
pub(crate) struct Client {
    pool: Connections,
    /// From another address of this machine, if it has one for this server.
    elsewhere: Option<Connections>,
    timeout: Duration,
    headers: Arc<[(HeaderName, HeaderValue)]>,
    shown: ShowUrl,
}

impl Client {
    pub(crate) fn new(asked: &CheckOptions) -> Result<Self, CheckError> {
        let connections = |from| -> Result<Connections, CheckError> {
            let mut connector = HttpConnector::new();
            connector.enforce_http(false);
            connector.set_nodelay(true);
            connector.set_connect_timeout(Some(asked.timeout));
            connector.set_local_address(from);
            let connector = HttpsConnector::from((connector, brunt_proxy::client_tls(&asked.trust)?));
            Ok(Pool::builder(TokioExecutor::new()).build(connector))
        };
        let is_near =
            asked.url.host().and_then(|host| host.parse().ok()).is_some_and(|host: Ipv4Addr| host.is_loopback());
        // Some systems have a single address there.
        let has_another = is_near && TcpListener::bind((ELSEWHERE, 0)).is_ok();
        Ok(Self {
            pool: connections(None)?,
            elsewhere: has_another.then(|| connections(Some(ELSEWHERE))).transpose()?,
            timeout: asked.timeout,
            headers: asked.headers.as_slice().into(),
            shown: asked.shown,
        })
    }

    /// Whether requests can be sent from two addresses.
    pub(crate) fn has_another_address(&self) -> bool {
        self.elsewhere.is_some()
    }

    /// A request as it may be shown.
    pub(crate) fn shown(&self, probe: &Probe) -> String {
        let mut text = format!("{} {}", probe.method, (self.shown)(&probe.uri.to_string()));
        for (name, value) in &probe.headers {
            // Writing to a String cannot fail.
            let _ = write!(text, " | {name}: {}", String::from_utf8_lossy(value.as_bytes()));
        }
        if probe.from_elsewhere {
            let _ = write!(text, " | from {ELSEWHERE}");
        }
        text
    }

    /// Asks, and reads the whole answer.
    pub(crate) async fn ask(&self, probe: &Probe) -> Result<Answer, CheckError> {
        let mut request = Request::new(Empty::new());
        *request.method_mut() = probe.method.clone();
        *request.uri_mut() = probe.uri.clone();
        for (name, value) in self.headers.iter().chain(&probe.headers) {
            request.headers_mut().append(name, value.clone());
        }
        let began = Instant::now();
        let pool = self.elsewhere.as_ref().filter(|_| probe.from_elsewhere).unwrap_or(&self.pool);
        let answered = async {
            let (head, body) = pool.request(request).await?.into_parts();
            let body = Limited::new(body, LONGEST).collect().await;
            let body = body.map_err(|error| AskError::BrokenOff(error.to_string()))?.to_bytes();
            Ok(Answer { status: head.status, headers: head.headers, body, took: began.elapsed() })
        };
        match tokio::time::timeout(self.timeout, answered).await {
            Ok(answer) => answer.map_err(|source| CheckError::Request { request: self.shown(probe), source }),
            Err(source) => Err(CheckError::TimedOut { within: self.timeout, source }),
        }
    }

    /// Asks while other things go on.
    pub(crate) fn starts(&self, probe: &Probe) -> Asking {
        let (client, probe) = (self.clone(), probe.clone());
        Asking(tokio::spawn(async move { client.ask(&probe).await }))
    }

    /// Asks all of these at once; the answers in the same order.
    pub(crate) async fn ask_at_once(&self, probes: &[Probe]) -> Result<Vec<Answer>, CheckError> {
        let asking: Vec<_> = probes.iter().map(|probe| self.starts(probe)).collect();
        let mut answers = Vec::with_capacity(probes.len());
        for one in asking {
            answers.push(one.answer().await?);
        }
        Ok(answers)
    }

    /// The number on a page.
    pub(crate) async fn count(&self, page: &Uri) -> Result<u64, CheckError> {
        let answer = self.ask(&Probe::get(page)).await?;
        if !answer.status.is_success() {
            return Err(CheckError::CountStatus(answer.status));
        }
        let text = String::from_utf8_lossy(&answer.body);
        let digits: String =
            text.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
        digits.parse().map_err(|_| CheckError::NoCount(text.trim().to_owned()))
    }
}

/// A request under way.
pub(crate) struct Asking(JoinHandle<Result<Answer, CheckError>>);

impl Asking {
    /// Whether its answer is there.
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_finished()
    }

    pub(crate) async fn answer(self) -> Result<Answer, CheckError> {
        self.0.await?
    }
}
