//! The queue between the run and the sending thread.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use brunt_metrics::otlp::Event;
use brunt_record::live::Live;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::super::backlog::{Backlog, Pending, now_unix_ns};

/// The most waiting events.
const MOST_EVENTS: usize = 256;

/// The next thing to send.
#[derive(Debug)]
pub(super) enum Work {
    Second(Box<Pending>),
    Events(Vec<Event>),
}

/// Waiting seconds and events, and whether more will come.
#[derive(Debug)]
pub(super) struct Inbox {
    waiting: Mutex<Waiting>,
    wake: Notify,
    /// Until when to try, once no more comes.
    deadline: watch::Sender<Option<Instant>>,
}

#[derive(Debug, Default)]
struct Waiting {
    seconds: Backlog,
    events: Vec<Event>,
    /// Events that there was no room for.
    dropped: u64,
}

impl Inbox {
    pub(super) fn new() -> Self {
        Self { waiting: Mutex::default(), wake: Notify::new(), deadline: watch::Sender::new(None) }
    }

    pub(super) fn second(&self, second: &Live) {
        self.locked(|waiting| waiting.seconds.push(second, now_unix_ns()));
    }

    pub(super) fn event(&self, event: Event) {
        self.locked(|waiting| match waiting.events.len() {
            MOST_EVENTS.. => waiting.dropped += 1,
            _ => waiting.events.push(event),
        });
    }

    /// Nothing more will come: the sender has this long.
    pub(super) fn close(&self, grace: Duration) {
        self.deadline.send_if_modified(|deadline| {
            let is_first = deadline.is_none();
            *deadline = deadline.or(Some(Instant::now() + grace));
            is_first
        });
        self.wake.notify_one();
    }

    /// The next thing to send; `None` once nothing more will come.
    pub(super) async fn next(&self) -> Option<Work> {
        loop {
            if let Some(work) = self.take() {
                return Some(work);
            }
            if self.deadline.borrow().is_some() {
                // It came between the two.
                return self.take();
            }
            self.wake.notified().await;
        }
    }

    fn take(&self) -> Option<Work> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pending) = waiting.seconds.pop() {
            return Some(Work::Second(Box::new(pending)));
        }
        let events = std::mem::take(&mut waiting.events);
        (!events.is_empty()).then_some(Work::Events(events))
    }

    /// Events that there was no room for.
    pub(super) fn dropped(&self) -> u64 {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).dropped
    }

    pub(super) fn deadline(&self) -> watch::Receiver<Option<Instant>> {
        self.deadline.subscribe()
    }

    fn locked(&self, change: impl FnOnce(&mut Waiting)) {
        change(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        self.wake.notify_one();
    }
}
