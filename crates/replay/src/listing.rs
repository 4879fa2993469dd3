//! All calls of a log in their order, for an account of the calls without making them.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, TryRecvError};

use brunt_protocol::replay::{LogTimetable, LoggedCall, Upcoming};

use crate::worker::{Item, Read};

/// The calls that the reading thread hands out, without the requests.
pub struct Listing {
    read: Receiver<Read>,
    items: VecDeque<Item>,
    end: Option<Upcoming>,
}

impl Listing {
    /// The listing of the calls that come through `read`.
    pub(crate) fn new(read: Receiver<Read>) -> Self {
        Self { read, items: VecDeque::new(), end: None }
    }
}

impl LogTimetable for Listing {
    fn next(&mut self) -> Upcoming {
        loop {
            if let Some(Item { call, .. }) = self.items.pop_front() {
                return Upcoming::Call(LoggedCall { number: call.session.unwrap_or(call.number), ..call });
            }
            if let Some(end) = &self.end {
                return end.clone();
            }
            match self.read.try_recv() {
                Ok(Read::Items(items)) => self.items.extend(items),
                Ok(Read::Failed(reason)) => self.end = Some(Upcoming::Failed(reason)),
                Ok(Read::Over) | Err(TryRecvError::Disconnected) => self.end = Some(Upcoming::Over),
                Err(TryRecvError::Empty) => return Upcoming::NotYet,
            }
        }
    }
}
