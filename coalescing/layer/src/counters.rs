//! Counters of events, and a hook for observers with counters of their own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// An event of a request, a flight or a reader of a shared body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// The first request came to a service with flights of its own.
    ServiceMade,
    /// A request went straight to the service: it may not be coalesced.
    Passed,
    /// A request went straight to the service, because its flight has too many waiters or the layer holds too many
    /// bytes.
    Refused,
    /// A request went straight to the service: the last answer to one like it was for its client alone.
    Remembered,
    /// A request found no flight to join, and leads a new one.
    FlightStarted,
    /// A request joined a flight under way, and waits for it.
    Joined,
    /// A flight's answer was complete, or its body failed after the headers were out.
    FlightEnded,
    /// A flight's answer went to its leader alone.
    FlightUnshared,
    /// A flight's last leader failed before its headers.
    FlightFailed,
    /// All requests of a flight were dropped, and its call of the service with them.
    FlightCancelled,
    /// A follower was given the answer.
    Shared,
    /// A follower became leader, because the leader before it failed.
    Promoted,
    /// A follower was answered with an error, because all leaders failed.
    SharedFailure,
    /// A follower went to the service itself: the answer could not be shared with it, or came too late.
    WentAlone,
    /// A follower's client went away while it waited.
    Vanished,
    /// A follower looks for a flight again: its leader's answer varies by a header in which they differ.
    Regrouped,
    /// A reader held up the others of its body, and took too little of it: its body ended with an error.
    CutOff,
    /// A follower waited this long for the head of its answer.
    Waited(Duration),
    /// A follower was sent this many bytes of a body that the service did not have to make again.
    Saved(u64),
}

/// Receives each [`Event`], on the thread where it happens: it must not block.
pub trait Observer: Send + Sync {
    /// Something happened.
    fn observe(&self, event: Event);
}

impl<F: Fn(Event) + Send + Sync> Observer for F {
    fn observe(&self, event: Event) {
        self(event);
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident: $event:pat),+ $(,)?) => {
        #[derive(Debug, Default)]
        struct Live { $($name: AtomicU64,)+ bytes_saved: AtomicU64 }

        /// The number of each event since the layer was made.
        ///
        /// The counters add up: the layer saw `passed + refused + remembered + flights + followers - regrouped` requests.
        /// Once nothing is in flight, `flights = ended + unshared + failed + cancelled` and
        /// `followers = shared + promoted + shared_failures + went_alone + vanished + regrouped`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[non_exhaustive]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)+
            /// Bytes of bodies that followers were sent, which the service did not have to make again.
            pub bytes_saved: u64,
        }

        impl Live {
            fn count(&self, event: Event) {
                match event {
                    Event::Saved(bytes) => self.bytes_saved.fetch_add(bytes, Ordering::Relaxed),
                    Event::Waited(_) => 0,
                    $($event => self.$name.fetch_add(1, Ordering::Relaxed),)+
                };
            }

            fn read(&self) -> Counters {
                Counters {
                    $($name: self.$name.load(Ordering::Relaxed),)+
                    bytes_saved: self.bytes_saved.load(Ordering::Relaxed),
                }
            }
        }

        impl Counters {
            /// Each counter's name with its value.
            pub fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)+ ("bytes_saved", self.bytes_saved)].into_iter()
            }
        }
    };
}

counters! {
    /// Services with flights of their own that have had a request. If this grows with requests or connections, nothing is
    /// coalesced among them: see
    /// [`CoalesceLayer::shared`](crate::CoalesceLayer::shared).
    services: Event::ServiceMade,
    /// Requests that may not be coalesced, and went straight to the service.
    passed: Event::Passed,
    /// Requests that went straight to the service, as their flight had as many waiters as may be, or too much was held.
    refused: Event::Refused,
    /// Requests that went straight to the service, as the last answer to one like them was for its client alone.
    remembered: Event::Remembered,
    /// Flights: requests that led a new flight.
    flights: Event::FlightStarted,
    /// Requests that joined a flight.
    followers: Event::Joined,
    /// Flights whose shared answer ended.
    ended: Event::FlightEnded,
    /// Flights whose answer was for their leader alone.
    unshared: Event::FlightUnshared,
    /// Flights that failed without an answer, after all promotions.
    failed: Event::FlightFailed,
    /// Flights that everyone left.
    cancelled: Event::FlightCancelled,
    /// Followers that were given their leader's answer.
    shared: Event::Shared,
    /// Followers that became leader, because the leader before them failed.
    promoted: Event::Promoted,
    /// Followers that were answered with an error, because their leaders failed.
    shared_failures: Event::SharedFailure,
    /// Followers that went to the service themselves.
    went_alone: Event::WentAlone,
    /// Followers whose clients went away while they waited.
    vanished: Event::Vanished,
    /// Followers that looked for a flight again, as their leader's answer varies by a header in which they differ.
    regrouped: Event::Regrouped,
    /// Readers that held up the others of their body, and took too little of it.
    cut_off: Event::CutOff,
}

/// The outcomes of requests that no other request joined, in one part of a table. They are the most frequent, so the
/// holder of the part's lock counts them, which saves an atomic addition.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct SoloCounters {
    started: AtomicU64,
    ended: AtomicU64,
    unshared: AtomicU64,
    failed: AtomicU64,
}

impl SoloCounters {
    /// Counts a request that comes, and returns the number of those before it. The caller holds the lock.
    #[inline]
    pub(crate) fn comes(&self) -> u64 {
        Self::add(&self.started)
    }

    /// Counts a request that ended. The caller holds the lock.
    #[inline]
    pub(crate) fn count(&self, event: Event) {
        let counter = match event {
            Event::FlightEnded => &self.ended,
            Event::FlightUnshared => &self.unshared,
            _ => &self.failed,
        };
        Self::add(counter);
    }

    #[inline]
    fn add(counter: &AtomicU64) -> u64 {
        let before = counter.load(Ordering::Relaxed);
        counter.store(before + 1, Ordering::Relaxed);
        before
    }

    fn add_to(&self, sum: &mut Counters) {
        sum.flights += self.started.load(Ordering::Relaxed);
        sum.ended += self.ended.load(Ordering::Relaxed);
        sum.unshared += self.unshared.load(Ordering::Relaxed);
        sum.failed += self.failed.load(Ordering::Relaxed);
    }
}

/// The counters of a tally and all its clones.
#[derive(Debug, Default)]
struct SharedCounters {
    live: Live,
    /// The totals of dropped tables, and the counters of each part of the others.
    lone: Mutex<(Counters, Vec<Arc<[SoloCounters]>>)>,
}

/// Counts events, and passes them on to the observer.
#[derive(Default, Clone)]
pub(crate) struct Tally {
    counted: Arc<SharedCounters>,
    observer: Option<Arc<dyn Observer>>,
}

impl Tally {
    pub(crate) fn observed_by(&mut self, observer: Arc<dyn Observer>) {
        self.observer = Some(observer);
    }

    #[inline]
    pub(crate) fn count(&self, event: Event) {
        self.counted.live.count(event);
        self.observe(event);
    }

    /// Passes an event that [`SoloCounters`] counts on to the observer.
    #[inline]
    pub(crate) fn observe(&self, event: Event) {
        if let Some(observer) = &self.observer {
            observer.observe(event);
        }
    }

    /// The counters for a new table with this many parts.
    pub(crate) fn lone(&self, parts: usize) -> Arc<[SoloCounters]> {
        let lone: Arc<[SoloCounters]> = (0..parts).map(|_| SoloCounters::default()).collect();
        self.counted.lone.lock().unwrap_or_else(PoisonError::into_inner).1.push(Arc::clone(&lone));
        lone
    }

    /// Adds the counters of a dropped table to the totals.
    pub(crate) fn retire(&self, lone: &Arc<[SoloCounters]>) {
        let mut guard = self.counted.lone.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, tables) = &mut *guard;
        tables.retain(|table| !Arc::ptr_eq(table, lone));
        lone.iter().for_each(|lone| lone.add_to(before));
    }

    pub(crate) fn read(&self) -> Counters {
        let lone = self.counted.lone.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sum = self.counted.live.read();
        sum.flights += lone.0.flights;
        sum.ended += lone.0.ended;
        sum.unshared += lone.0.unshared;
        sum.failed += lone.0.failed;
        lone.1.iter().flat_map(|table| table.iter()).for_each(|lone| lone.add_to(&mut sum));
        sum
    }
}

impl std::fmt::Debug for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.read().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_table_has_counted_is_kept_when_it_is_no_more() {
        let tally = Tally::default();
        let (one, other) = (tally.lone(2), tally.lone(1));
        for (lone, ended) in
            one.iter().chain(&*other).zip([Event::FlightEnded, Event::FlightUnshared, Event::FlightFailed])
        {
            lone.comes();
            lone.count(ended);
        }
        tally.count(Event::FlightStarted);
        let all = Counters { flights: 4, ended: 1, unshared: 1, failed: 1, ..Counters::default() };
        assert_eq!(tally.read(), all);
        tally.retire(&one);
        assert_eq!(tally.read(), all);
        other.iter().for_each(|lone| assert_eq!(lone.comes(), 1));
        tally.retire(&other);
        assert_eq!(tally.read(), Counters { flights: 5, ..all });
    }
}
