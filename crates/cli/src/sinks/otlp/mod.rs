//! Metrics and events of a run to an OTLP receiver (`--otlp`). A thread of its own sends them; the run hands it each
//! second through a bounded [backlog](super::backlog). A receiver that is down, slow or refuses costs the run nothing;
//! the result states what it did not get.

mod client;
mod endpoint;
mod events;
mod inbox;

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result};
use brunt_judge::summary::Summary;
use brunt_metrics::otlp::{self, PointInterval, Sender, Taken, Temporality};
use brunt_metrics::{Names, Subject, Sums};
use brunt_plan::plan::Plan;
use brunt_record::delivery::Delivery;
use brunt_record::live::Live;

use self::client::Client;
use self::endpoint::Endpoint;
use self::inbox::{Inbox, Work};
use super::backlog::Pending;
use super::{Sink, subject};
use crate::args::Output;
use crate::console;

/// How long a receiver has, once the run is over, to accept the rest.
const GRACE: Duration = Duration::from_secs(5);
/// How long events are retried while seconds wait behind them: a receiver may accept metrics and no logs.
const EVENTS_PATIENCE: Duration = Duration::from_secs(5);

/// Metrics and events on their way to a receiver.
pub struct OtlpSink {
    inbox: Arc<Inbox>,
    thread: Option<JoinHandle<Delivery>>,
    /// Its account, once that is known.
    delivery: Option<Delivery>,
}

impl OtlpSink {
    /// The receiver by these flags, if there is one; the run's name there is `run_id`.
    ///
    /// # Errors
    /// When the URL or a variable cannot be read.
    pub fn from_flags(plan: &Plan, args: &Output, run_id: &str) -> Result<Option<Self>> {
        let Some(given) = &args.metrics.otlp else { return Ok(None) };
        let env = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let mut endpoint = Endpoint::new(given, &env)?;
        let resource = subject::resource(plan, run_id, std::mem::take(&mut endpoint.resource));
        let sender = Sender { resource, version: env!("CARGO_PKG_VERSION").into() };
        let delivery =
            Delivery { to: format!("otlp {}", endpoint.shown), run_id: run_id.to_owned(), ..Delivery::default() };
        if !args.quiet {
            console::note(&format!("otlp: run {} to {}", delivery.run_id, endpoint.shown));
        }
        let inbox = Arc::new(Inbox::new());
        inbox.event(events::started(plan));
        let courier = Exporter {
            subject: subject::subject(plan),
            names: Names::default(),
            sums: Sums::default(),
            began_unix_ns: None,
            client: Client::new(endpoint, inbox.deadline())?,
            sender,
            delivery,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("--otlp")?;
        let theirs = Arc::clone(&inbox);
        let thread = thread::Builder::new()
            .name("otlp".to_owned())
            .spawn(move || runtime.block_on(courier.carry(&theirs)))
            .context("--otlp: cannot start a thread")?;
        Ok(Some(Self { inbox, thread: Some(thread), delivery: None }))
    }

    fn finish(&mut self) {
        self.inbox.close(GRACE);
        if let Some(thread) = self.thread.take() {
            self.delivery = thread.join().ok();
        }
    }
}

impl Sink for OtlpSink {
    fn second(&mut self, live: &Live) {
        live.changes.iter().for_each(|change| self.inbox.event(events::changed(change)));
        self.inbox.second(live);
    }

    fn judged(&mut self, summary: &Summary) {
        for event in events::ended(summary) {
            self.inbox.event(event);
        }
        self.finish();
    }

    fn delivery(&self) -> Option<Delivery> {
        self.delivery.clone()
    }

    fn written(&mut self, _summary: &Summary, _kept: Option<i64>) {
        if let Some(note) = self.delivery.as_ref().and_then(shortfall) {
            console::note(&note);
        }
    }
}

impl Drop for OtlpSink {
    /// A failed run is not judged; its figures are sent all the same.
    fn drop(&mut self) {
        self.finish();
    }
}

/// The parts that a receiver lacks, if it lacks some.
fn shortfall(delivery: &Delivery) -> Option<String> {
    let mut parts = Vec::new();
    if delivery.seconds_missed > 0 {
        let all = delivery.seconds_missed + delivery.seconds_delivered;
        parts.push(format!("{} of {all} seconds", delivery.seconds_missed));
    }
    if delivery.points_rejected > 0 {
        parts.push(format!("{} points", delivery.points_rejected));
    }
    if delivery.events_missed > 0 {
        parts.push(format!("{} events", delivery.events_missed));
    }
    let problem = delivery.problem.as_ref().map_or_else(String::new, |problem| format!(": {problem}"));
    let crowded = (!delivery.crowded.is_empty())
        .then(|| format!("too many names for series of their own: {}", delivery.crowded.join(", ")));
    let missed = (!parts.is_empty())
        .then(|| format!("{} did not reach {}{problem}", parts.join(", "), delivery.to.trim_start_matches("otlp ")));
    let all: Vec<_> = missed.into_iter().chain(crowded).collect();
    (!all.is_empty()).then(|| format!("otlp: {}", all.join("; ")))
}

/// Sends seconds and events to the receiver.
struct Exporter {
    subject: Subject,
    names: Names,
    /// Sums so far, if these are sent.
    sums: Sums,
    /// When the first second began.
    began_unix_ns: Option<u64>,
    client: Client,
    sender: Sender,
    delivery: Delivery,
}

impl Exporter {
    async fn carry(mut self, inbox: &Inbox) -> Delivery {
        while let Some(work) = inbox.next().await {
            match work {
                Work::Second(pending) => self.second(*pending).await,
                Work::Events(events) => self.events(&events).await,
            }
        }
        self.delivery.events_missed += inbox.dropped();
        self.delivery.crowded = self.names.crowded().map(str::to_owned).collect();
        self.delivery
    }

    async fn second(&mut self, Pending { second, seconds, interval }: Pending) {
        let metrics = self.subject.metrics(&second, interval.to_unix_ns, &mut self.names);
        let temporality = self.client.endpoint().temporality;
        let body = match temporality {
            Temporality::Delta => otlp::metrics(&self.sender, &metrics, interval, temporality),
            Temporality::Cumulative => {
                let from_unix_ns = *self.began_unix_ns.get_or_insert(interval.from_unix_ns);
                self.sums.add(metrics);
                let interval = PointInterval { from_unix_ns, ..interval };
                otlp::metrics(&self.sender, self.sums.metrics(), interval, temporality)
            }
        };
        let uri = self.client.endpoint().metrics.clone();
        match self.client.deliver(&uri, body, None).await {
            Ok(Taken { rejected, message }) => {
                self.delivery.seconds_delivered += seconds;
                self.delivery.points_rejected += rejected;
                if rejected > 0 {
                    self.delivery.problem = Some(message);
                }
            }
            Err(problem) => {
                self.delivery.seconds_missed += seconds;
                self.delivery.problem = Some(problem);
            }
        }
    }

    async fn events(&mut self, events: &[otlp::Event]) {
        let body = otlp::logs(&self.sender, events, super::backlog::now_unix_ns());
        let uri = self.client.endpoint().logs.clone();
        let (missed, problem) = match self.client.deliver(&uri, body, Some(EVENTS_PATIENCE)).await {
            Ok(Taken { rejected: 0, .. }) => return,
            Ok(Taken { rejected, message }) => (rejected, message),
            Err(problem) => (events.len() as u64, problem),
        };
        self.delivery.events_missed += missed;
        self.delivery.problem = Some(problem);
    }
}
