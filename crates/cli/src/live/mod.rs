//! The report page while a run goes on (`--live`): a thread of its own serves it, and is handed each second through a
//! bounded queue, so that no browser, slow or gone, ever holds the run up.

use std::net::{SocketAddr, TcpListener};
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use brunt_model::live::Live;
use brunt_model::plan::Plan;
use brunt_model::summary::Summary;
use brunt_report::html::{self, Running};
use tokio::sync::{mpsc, oneshot};

mod access;
mod server;

use access::{Token, identity};
use server::{Server, Update};

use crate::args::bench::LiveTls;

/// How many seconds may wait to be taken in; more are left out, and counted.
const QUEUE: usize = 32;

/// A page that is served.
pub struct LivePage {
    url: String,
    fingerprint: Option<String>,
    updates: mpsc::Sender<Update>,
    /// Seconds that there was no room for.
    missed: u64,
    finished: Option<oneshot::Sender<String>>,
    thread: Option<JoinHandle<()>>,
}

impl LivePage {
    /// Serves the page of a run that is about to carry `plan` out on `address`.
    ///
    /// # Errors
    /// When there is no page, or the address cannot be had.
    pub fn of_run(address: SocketAddr, tls: &LiveTls, plan: &Plan) -> Result<Self> {
        let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        Self::start(address, tls, Some(Running::new(plan, started)))
    }

    /// Serves, on `address`, the page of what is decided over several runs.
    ///
    /// # Errors
    /// As [`LivePage::of_run`].
    pub fn of_decision(address: SocketAddr, tls: &LiveTls) -> Result<Self> {
        Self::start(address, tls, None)
    }

    fn start(address: SocketAddr, tls: &LiveTls, running: Option<Running>) -> Result<Self> {
        let page = html::following()?;
        let listener = TcpListener::bind(address)
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .with_context(|| format!("--live: cannot listen on {address}"))?;
        let address = listener.local_addr().context("--live")?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("--live")?;
        let (updates, incoming) = mpsc::channel(QUEUE);
        let (finished, end) = oneshot::channel();
        let identity = identity(tls, address)?;
        let token = (!address.ip().is_loopback()).then(Token::random).transpose()?;
        let scheme = if identity.is_some() { "https" } else { "http" };
        let path = token.as_ref().map_or_else(String::new, |token| format!("{}/", token.as_str()));
        let url = format!("{scheme}://{address}/{path}");
        let fingerprint = identity.as_ref().map(|identity| identity.fingerprint.clone());
        let server = Server::new(token, page, running, identity.map(|identity| identity.config));
        let thread = thread::Builder::new()
            .name("live-page".to_owned())
            .spawn(move || runtime.block_on(server.serve(listener, incoming, end)))
            .context("--live: cannot start a thread")?;
        Ok(Self { url, fingerprint, updates, missed: 0, finished: Some(finished), thread: Some(thread) })
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

    /// Shows the finished report to whoever looks; nobody is waited for.
    pub fn finish(&mut self, summary: &Summary) {
        if let Ok(data) = html::data(summary) {
            self.end(data);
        }
    }

    /// Shows this as the last, and takes no more.
    pub fn end(&mut self, data: String) {
        if let Some(finished) = self.finished.take() {
            // Without its receiver the page is gone already.
            let _ = finished.send(data);
        }
    }
}

impl Drop for LivePage {
    /// Lets browsers take the last of it in, for a bounded time.
    fn drop(&mut self) {
        drop(self.finished.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use brunt_model::snapshot::{Phase, Snapshot};

    use super::*;

    /// What nobody takes is left out, counted, and told with the next that is taken; the run never waits.
    #[test]
    fn a_page_that_falls_behind_holds_nothing_up() {
        let (updates, mut incoming) = mpsc::channel(QUEUE);
        let mut page =
            LivePage { url: String::new(), fingerprint: None, updates, missed: 0, finished: None, thread: None };
        let second = Live {
            phase: Phase::Measured,
            elapsed_ns: 1,
            planned_ns: None,
            planned_requests: None,
            length_ns: 1,
            snapshot: Snapshot::default(),
            open_connections: 0,
            in_flight: 0,
            users: None,
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
