//! The report page during a run (`--live`). A separate thread serves it, and is handed each second through a bounded
//! queue, so that no browser, slow or gone, ever delays the run.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use brunt_engine::{Changeable, Control, StopHandle};
use brunt_judge::summary::Summary;
use brunt_plan::plan::Plan;
use brunt_plan::units::ExactDuration;
use brunt_record::live::Live;
use brunt_report::html::{self, Running};
use tokio::sync::{mpsc, oneshot};

mod server;

use server::{Changing, End, Server, Update};

use crate::args::bench::LiveServing;
use crate::site::{Token, identity};
use crate::{console, signals};

/// The most seconds that may wait in the queue; further ones are left out, and counted.
const QUEUE: usize = 32;
/// The default time for which the page stays after the end.
const LINGER: Duration = Duration::from_secs(60);
/// The time between two checks whether the page may go.
const LOOK: Duration = Duration::from_millis(50);

/// A page being served.
pub struct LivePage {
    url: String,
    fingerprint: Option<String>,
    updates: mpsc::Sender<Update>,
    /// The number of seconds for which the queue had no room.
    missed: u64,
    finished: Option<oneshot::Sender<End>>,
    /// Dropped to close the page.
    closed: Option<oneshot::Sender<()>>,
    /// The number of browsers that follow the page.
    audience: Arc<AtomicUsize>,
    linger: Option<Duration>,
    thread: Option<JoinHandle<()>>,
}

impl LivePage {
    /// Serves the page of a run that is about to carry out `plan`, on `address`. A reader of the page changes the run
    /// through `control`.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub fn of_run(address: SocketAddr, serving: &LiveServing, plan: &Plan, control: &Control) -> Result<Self> {
        let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        let changing = Changing::new(control.clone(), Changeable::from_plan(plan));
        Self::start(address, serving, Some(Running::new(plan, started)), Some(changing))
    }

    /// Serves, on `address`, the page of a decision over several runs.
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
        changing: Option<Changing>,
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
        let server = Server::new(token, page, running, changing, config, Arc::clone(&audience));
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

    /// The address of the page, for people: with its token, if it needs one, and with the fingerprint of a self-signed
    /// certificate.
    pub fn place(&self) -> String {
        let fingerprint = self.fingerprint.as_ref().map(|print| format!("\n      SHA-256 of its certificate: {print}"));
        format!("live: {}{}", self.url, fingerprint.unwrap_or_default())
    }

    /// Shows the run's last second, or leaves it out where too many are waiting already.
    pub fn second(&mut self, live: &Live) {
        let Ok(place) = self.updates.try_reserve() else {
            self.missed += 1;
            return;
        };
        place.send(Update::Second { second: Box::new(live.clone()), missed: std::mem::take(&mut self.missed) });
    }

    /// Shows a new state of a decision, unless too many are waiting already: later states include it.
    pub fn show(&mut self, data: String) {
        let _ = self.updates.try_send(Update::Decision(data));
    }

    /// Shows the finished report of a run that is kept under the number `kept`.
    pub fn finish(&mut self, summary: &Summary, kept: Option<i64>) {
        if let Ok(data) = html::data(summary) {
            self.end(data, kept);
        }
    }

    /// Shows the last state, kept under the number `kept`, and accepts no more.
    pub fn end(&mut self, data: String, kept: Option<i64>) {
        if let Some(finished) = self.finished.take() {
            // The receiver is missing if the page is closed already.
            let _ = finished.send(End { data, kept });
        }
    }

    /// Serves the finished page until `stop` asks for its end or its time is over. `tells`: whether a note on standard
    /// error gives its address.
    pub fn linger(&self, stop: &StopHandle, tells: bool) {
        let is_wanted = console::stderr_redraws() || self.audience.load(Ordering::Relaxed) > 0;
        let time = self.linger.unwrap_or(if is_wanted { LINGER } else { Duration::ZERO });
        // A user who ended the run early does not want the page any longer.
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
    /// Lets browsers load the last state, for a bounded time.
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

    /// Updates that nobody takes are left out, counted, and reported with the next one that is taken; the run never
    /// waits.
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
        let second = Live::new(Phase::Measured, 1, Snapshot::default());
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
        // The same holds once its thread is gone.
        drop(incoming);
        page.second(&second);
        assert_eq!(page.missed, 1);
    }
}
