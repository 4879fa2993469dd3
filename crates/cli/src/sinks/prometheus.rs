//! Metrics of a run for Prometheus (`--prometheus`): served at `/metrics`, as text or as protobuf with native
//! histograms. They are made on request; until then seconds wait in a bounded [backlog](super::backlog).

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use brunt_engine::StopHandle;
use brunt_judge::summary::Summary;
use brunt_metrics::{Attributes, Names, Subject, Sums, prometheus};
use brunt_plan::plan::Plan;
use brunt_plan::units;
use brunt_record::live::Live;
use http::header::{ACCEPT, ALLOW};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};

use super::backlog::{Backlog, now_unix_ns};
use super::{Sink, subject};
use crate::args::Output;
use crate::site::{ACCEPT_PAUSE, Body, HEAD, MOST_CONNECTIONS, plain, with};
use crate::{console, signals};

/// How long whoever scrapes has to take the last metrics in.
const GRACE: Duration = Duration::from_secs(2);
/// How long to wait for a last scrape where only one was seen, so that their interval is unknown.
const LINGER: Duration = Duration::from_secs(60);
/// How often to look whether the last scrape has come.
const LOOK: Duration = Duration::from_millis(50);

/// Metrics that are served.
pub struct PrometheusSink {
    address: SocketAddr,
    site: Arc<Site>,
    linger: Option<Duration>,
    tells: bool,
    closed: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl PrometheusSink {
    /// The metrics of the run `run_id` by these flags, if they are asked for. Prints their URL.
    ///
    /// # Errors
    /// When the address is unavailable.
    pub fn from_flags(plan: &Plan, args: &Output, run_id: &str) -> Result<Option<Self>> {
        let Some(address) = args.metrics.prometheus else { return Ok(None) };
        let listener = TcpListener::bind(address)
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .with_context(|| format!("--prometheus: cannot listen on {address}"))?;
        let address = listener.local_addr().context("--prometheus")?;
        let site = Arc::new(Site {
            subject: subject::subject(plan),
            resource: subject::resource(plan, run_id, Vec::new()),
            state: Mutex::default(),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("--prometheus")?;
        let (closed, close) = oneshot::channel();
        let theirs = Arc::clone(&site);
        let thread = thread::Builder::new()
            .name("prometheus".to_owned())
            .spawn(move || runtime.block_on(serve(listener, theirs, close)))
            .context("--prometheus: cannot start a thread")?;
        let tells = !args.quiet;
        if tells {
            console::note(&format!("prometheus: http://{address}/metrics"));
        }
        let linger = args.metrics.prometheus_linger.map(Duration::from_nanos);
        Ok(Some(Self { address, site, linger, tells, closed: Some(closed), thread: Some(thread) }))
    }
}

impl Sink for PrometheusSink {
    fn second(&mut self, live: &Live) {
        self.site.locked(|state| state.backlog.push(live, now_unix_ns()));
    }

    fn written(&mut self, _summary: &Summary, _kept: Option<i64>) {
        let crowded = self.site.locked(|state| {
            state.is_over = true;
            state.names.crowded().collect::<Vec<_>>().join(", ")
        });
        if !crowded.is_empty() {
            console::note(&format!("prometheus: too many names for series of their own: {crowded}"));
        }
    }

    fn linger(&self, stop: &StopHandle) {
        let time = self.linger.unwrap_or_else(|| self.site.locked(|state| state.scrapes.usual_gap()));
        // Whoever has ended the run early does not want to wait.
        if time.is_zero() || stop.is_stopped() {
            return;
        }
        if self.tells {
            console::note(&waits(self.address, time));
        }
        let until = Instant::now() + time;
        while Instant::now() < until && !stop.is_stopped() && !self.site.locked(|state| state.scrapes.has_last) {
            thread::sleep(LOOK);
        }
        signals::forget();
    }
}

fn waits(address: SocketAddr, time: Duration) -> String {
    let shown = units::Duration(time.as_nanos() as u64);
    format!("prometheus: serving http://{address}/metrics for {shown} more, for a last scrape; Ctrl-C stops")
}

impl Drop for PrometheusSink {
    /// Lets the last scrape end, for a bounded time.
    fn drop(&mut self) {
        drop(self.closed.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The times of scrapes.
#[derive(Debug, Default)]
struct Scrapes {
    last: Option<Instant>,
    longest_gap: Option<Duration>,
    /// Whether one came after the end.
    has_last: bool,
}

impl Scrapes {
    fn came(&mut self, now: Instant, is_over: bool) {
        let gap = self.last.map(|last| now.saturating_duration_since(last));
        self.longest_gap = self.longest_gap.max(gap);
        self.last = Some(now);
        self.has_last |= is_over;
    }

    /// How long to wait for the next one: no time if there was none.
    fn usual_gap(&self) -> Duration {
        match (self.last, self.longest_gap) {
            (None, _) => Duration::ZERO,
            (Some(_), None) => LINGER,
            (Some(_), Some(gap)) => (gap * 2).clamp(Duration::from_secs(2), LINGER * 5),
        }
    }
}

#[derive(Debug, Default)]
struct State {
    backlog: Backlog,
    names: Names,
    sums: Sums,
    scrapes: Scrapes,
    is_over: bool,
}

/// The shared state of connections.
#[derive(Debug)]
struct Site {
    subject: Subject,
    resource: Attributes,
    state: Mutex<State>,
}

impl Site {
    fn locked<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn answer(&self, request: &Request<Incoming>) -> Response<Body> {
        if request.method() != Method::GET && request.method() != Method::HEAD {
            let mut answer = plain(StatusCode::METHOD_NOT_ALLOWED, "GET is all there is\n");
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        if request.uri().path() != "/metrics" {
            return plain(StatusCode::NOT_FOUND, "there is nothing here but /metrics\n");
        }
        let accepts = request.headers().get_all(ACCEPT).into_iter().filter_map(|value| value.to_str().ok());
        let accepts = accepts.collect::<Vec<_>>().join(",");
        let sums = self.sums();
        if prometheus::prefers_protobuf(&accepts) {
            with(prometheus::protobuf(&self.resource, sums.metrics()), prometheus::PROTOBUF)
        } else {
            with(prometheus::text(&self.resource, sums.metrics()), prometheus::TEXT)
        }
    }

    /// The sums so far. Waiting seconds are taken out first and then added in this thread, so that the run does not
    /// wait.
    fn sums(&self) -> Sums {
        let (waiting, mut names, mut sums) = self.locked(|state| {
            let over = state.is_over;
            state.scrapes.came(Instant::now(), over);
            let waiting: Vec<_> = std::iter::from_fn(|| state.backlog.pop()).collect();
            (waiting, std::mem::take(&mut state.names), std::mem::take(&mut state.sums))
        });
        for pending in waiting {
            sums.add(self.subject.metrics(&pending.second, pending.interval.to_unix_ns, &mut names));
        }
        let shown = sums.clone();
        self.locked(|state| (state.names, state.sums) = (names, sums));
        shown
    }
}

async fn serve(listener: TcpListener, site: Arc<Site>, mut close: oneshot::Receiver<()>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let connections = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let stream = tokio::select! {
            _ = &mut close => break,
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else {
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                };
                stream
            }
        };
        let Ok(place) = Arc::clone(&room).try_acquire_owned() else { continue };
        let (site, watcher) = (Arc::clone(&site), connections.watcher());
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let answer = site.answer(&request);
                async move { Ok::<_, Infallible>(answer) }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD);
            // A failing connection is its client's affair.
            drop(watcher.watch(http.serve_connection(TokioIo::new(stream), service)).await);
            drop(place);
        });
    }
    drop(listener);
    let _ = timeout(GRACE, connections.shutdown()).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_waits_for_a_last_scrape_as_long_as_scrapes_are_apart() {
        let mut scrapes = Scrapes::default();
        assert_eq!(scrapes.usual_gap(), Duration::ZERO, "nobody scrapes");
        let start = Instant::now();
        scrapes.came(start, false);
        assert_eq!(scrapes.usual_gap(), LINGER);
        for s in [15, 30, 45] {
            scrapes.came(start + Duration::from_secs(s), false);
        }
        assert_eq!((scrapes.usual_gap(), scrapes.has_last), (Duration::from_secs(30), false));
        scrapes.came(start + Duration::from_secs(60), true);
        assert!(scrapes.has_last);
    }

    #[test]
    fn how_long_it_waits_is_told_as_people_tell_times() {
        let mut scrapes = Scrapes::default();
        let start = Instant::now();
        for ns in [0, 7_013_331_207, 14_001_204_111] {
            scrapes.came(start + Duration::from_nanos(ns), false);
        }
        let said = waits(([127, 0, 0, 1], 9090).into(), scrapes.usual_gap());
        let time = said.split(" for ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
        assert!(time.ends_with('s') && time.len() <= 6, "{said}");
    }
}
