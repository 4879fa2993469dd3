//! The report page while a run goes on (`--live`): a thread of its own serves it, and is handed each second through a
//! bounded queue, so that no browser, slow or gone, ever holds the run up.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use brunt_engine::{Control, StopHandle};
use brunt_judge::summary::Summary;
use brunt_plan::plan::Plan;
use brunt_plan::units::ExactDuration;
use brunt_record::live::Live;
use brunt_report::html::{self, Running};
use tokio::sync::{mpsc, oneshot};

mod server;

use server::{End, Server, Update};

use crate::args::bench::LiveServing;
use crate::site::{Token, identity};
use crate::{console, signals};

/// How many seconds may wait to be taken in; more are left out, and counted.
const QUEUE: usize = 32;
/// How long a page stays after the end where nobody says how long.
const LINGER: Duration = Duration::from_secs(60);
/// How often it is looked whether somebody has said that it may go.
const LOOK: Duration = Duration::from_millis(50);

/// A page that is served.
pub struct LivePage {
    url: String,
    fingerprint: Option<String>,
    updates: mpsc::Sender<Update>,
    /// Seconds that there was no room for.
    missed: u64,
    finished: Option<oneshot::Sender<End>>,
    /// Dropped to take the page away.
    closed: Option<oneshot::Sender<()>>,
    /// How many browsers follow it.
    audience: Arc<AtomicUsize>,
    linger: Option<Duration>,
    thread: Option<JoinHandle<()>>,
}

impl LivePage {
    /// Serves the page of a run that is about to carry `plan` out on `address`. Its reader changes the run by `control`.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub fn of_run(address: SocketAddr, serving: &LiveServing, plan: &Plan, control: &Control) -> Result<Self> {
        let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        Self::start(address, serving, Some(Running::new(plan, started)), Some(control.clone()))
    }

    /// Serves, on `address`, the page of what is decided over several runs.
    ///
    /// # Errors
    /// As [`LivePage::of_run`].
    pub fn of_decision(address: SocketAddr, serving: &LiveServing) -> Result<Self> {
        Self::start(address, serving, None, None)
    }

    fn start(
        address: SocketAddr,
        serving: &LiveServing,
        running: Option<Running>,
        control: Option<Control>,
    ) -> Result<Self> {
        let page = html::following();
        let listener = TcpListener::bind(address)
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .with_context(|| format!("--live: cannot listen on {address}"))?;
        let address = listener.local_addr().context("--live")?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("--live")?;
        let (updates, incoming) = mpsc::channel(QUEUE);
        let (finished, end) = oneshot::channel();
        let (closed, close) = oneshot::channel();
        let audience = Arc::<AtomicUsize>::default();
        let identity = identity(serving, address)?;
        let token = (!address.ip().is_loopback()).then(Token::random).transpose()?;
        let scheme = if identity.is_some() { "https" } else { "http" };
        let path = token.as_ref().map_or_else(String::new, |token| format!("{}/", token.as_str()));
        let url = format!("{scheme}://{address}/{path}");
        let fingerprint = identity.as_ref().map(|identity| identity.fingerprint.clone());
        let linger = serving.linger.map(Duration::from_nanos);
        let config = identity.map(|identity| identity.config);
        let server = Server::new(token, page, running, control, config, Arc::clone(&audience));
        let thread = thread::Builder::new()
            .name("live-page".to_owned())
            .spawn(move || runtime.block_on(server.serve(listener, incoming, end, close)))
            .context("--live: cannot start a thread")?;
        Ok(Self {
            url,
            fingerprint,
            updates,
            missed: 0,
            finished: Some(finished),
            closed: Some(closed),
            audience,
            linger,
            thread: Some(thread),
        })
    }

    /// Where it is, for people: with its token, if it needs one, and with the fingerprint of a certificate of its own.
    pub fn place(&self) -> String {
        let fingerprint = self.fingerprint.as_ref().map(|print| format!("\n      SHA-256 of its certificate: {print}"));
        format!("live: {}{}", self.url, fingerprint.unwrap_or_default())
    }

    /// Shows the run's last second, or leaves it out where there are too many waiting already.
    pub fn second(&mut self, live: &Live) {
        let Ok(place) = self.updates.try_reserve() else {
            self.missed += 1;
            return;
        };
        place.send(Update::Second { second: Box::new(live.clone()), missed: std::mem::take(&mut self.missed) });
    }

    /// Shows this of a decision, unless there is too much waiting already: what follows has it, too.
    pub fn show(&mut self, data: String) {
        let _ = self.updates.try_send(Update::Decision(data));
    }

    /// Shows the finished report, of a run that is kept under the number `kept`.
    pub fn finish(&mut self, summary: &Summary, kept: Option<i64>) {
        if let Ok(data) = html::data(summary) {
            self.end(data, kept);
        }
    }

    /// Shows this as the last, and takes no more. What is shown is kept under the number `kept`.
    pub fn end(&mut self, data: String, kept: Option<i64>) {
        if let Some(finished) = self.finished.take() {
            // Without its receiver the page is gone already.
            let _ = finished.send(End { data, kept });
        }
    }

    /// Serves the finished page until `stop` asks for its end or its time is over. `tells` says whether a note on standard
    /// error names its address.
    pub fn linger(&self, stop: &StopHandle, tells: bool) {
        let is_wanted = console::stderr_redraws() || self.audience.load(Ordering::Relaxed) > 0;
        let time = self.linger.unwrap_or(if is_wanted { LINGER } else { Duration::ZERO });
        // Who has ended the run early has said so.
        if time.is_zero() || stop.is_stopped() {
            return;
        }
        if tells {
            let shown = ExactDuration(time.as_nanos() as u64);
            console::note(&format!("live: finished; {} stays for {shown}, Ctrl-C ends it", self.url));
        }
        let until = Instant::now() + time;
        while Instant::now() < until && !stop.is_stopped() {
            thread::sleep(LOOK);
        }
        signals::forget();
    }
}

impl Drop for LivePage {
    /// Lets browsers take the last of it in, for a bounded time.
    fn drop(&mut self) {
        drop(self.finished.take());
        drop(self.closed.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use brunt_record::snapshot::{Phase, Snapshot};

    use super::*;

    /// What nobody takes is left out, counted, and told with the next that is taken; the run never waits.
    #[test]
    fn a_page_that_falls_behind_holds_nothing_up() {
        let (updates, mut incoming) = mpsc::channel(QUEUE);
        let mut page = LivePage {
            url: String::new(),
            fingerprint: None,
            updates,
            missed: 0,
            finished: None,
            closed: None,
            audience: Arc::default(),
            linger: None,
            thread: None,
        };
        let second = Live {
            phase: Phase::Measured,
            elapsed_ns: 1,
            planned_ns: None,
            in_log: None,
            planned_requests: None,
            length_ns: 1,
            snapshot: Snapshot::default(),
            open_connections: 0,
            in_flight: 0,
            waiting: 0,
            oldest_ns: 0,
            users: None,
            changes: Vec::new(),
            agents: Vec::new(),
        };
        (0..QUEUE + 5).for_each(|_| page.second(&second));
        assert_eq!(page.missed, 5);
        let missed = |update| match update {
            Update::Second { missed, .. } => missed,
            Update::Decision(data) => panic!("{data}"),
        };
        let taken: Vec<_> = std::iter::from_fn(|| incoming.try_recv().ok()).map(missed).collect();
        assert_eq!(taken, [0; QUEUE]);
        page.second(&second);
        assert_eq!((missed(incoming.try_recv().unwrap()), page.missed), (5, 0));
        // Once its thread is gone, too.
        drop(incoming);
        page.second(&second);
        assert_eq!(page.missed, 1);
    }
}
