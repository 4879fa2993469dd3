//! What happened: counters, and a hook for those who count themselves.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Something that happened to a request, a flight or a reader of its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// A request went straight to the service: it may not be coalesced.
    Passed,
    /// A request went straight to the service: its flight had as many waiters as may be, or too much is held.
    Refused,
    /// A request found nobody to wait for: it leads a flight.
    FlightStarted,
    /// A request waits for a flight that was under way.
    Joined,
    /// A flight's answer was complete, or its body failed after the headers were out.
    FlightEnded,
    /// A flight's answer went to its leader alone.
    FlightUnshared,
    /// A flight's last leader failed before its headers.
    FlightFailed,
    /// Nobody waited for a flight any more, and its call of the service was dropped.
    FlightCancelled,
    /// A follower was given the answer.
    Shared,
    /// A follower became leader, because the one before failed.
    Promoted,
    /// A follower was answered with an error, because leader after leader failed.
    SharedFailure,
    /// A follower went to the service itself: the answer was not for it, or did not come in time.
    WentAlone,
    /// A follower's client went away while it waited.
    Vanished,
    /// A reader fell behind by more than may be held, and its body ended with an error.
    CutOff,
    /// A follower was sent this many bytes of a body that the service did not have to make again.
    Saved(u64),
}

/// Is told of each [`Event`], on the thread where it happens: it must not block.
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

        /// How often what happened, since the layer was made.
        ///
        /// They add up: every request that the layer saw is one of `passed + refused + flights + followers`. Once
        /// nothing is in flight, `flights = ended + unshared + failed + cancelled` and
        /// `followers = shared + promoted + shared_failures + went_alone + vanished`.
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
    /// Requests that may not be coalesced, and went straight to the service.
    passed: Event::Passed,
    /// Requests that went straight to the service, as their flight had as many waiters as may be, or too much was held.
    refused: Event::Refused,
    /// Flights: requests that became leader of one as they came.
    flights: Event::FlightStarted,
    /// Requests that joined a flight.
    followers: Event::Joined,
    /// Flights whose answer was shared, to its end.
    ended: Event::FlightEnded,
    /// Flights whose answer was for their leader alone.
    unshared: Event::FlightUnshared,
    /// Flights that failed before they had an answer, and all promotions with them.
    failed: Event::FlightFailed,
    /// Flights that everyone left.
    cancelled: Event::FlightCancelled,
    /// Followers that were given their leader's answer.
    shared: Event::Shared,
    /// Followers that became leader, because the one before failed.
    promoted: Event::Promoted,
    /// Followers that were told that their leaders failed.
    shared_failures: Event::SharedFailure,
    /// Followers that went to the service themselves.
    went_alone: Event::WentAlone,
    /// Followers whose clients went away while they waited.
    vanished: Event::Vanished,
    /// Readers that fell too far behind, in the middle of a body.
    cut_off: Event::CutOff,
}

/// What became of requests that met nobody, in one part of a table. They are most of all, so they are counted where each has a
/// lock anyway: by who holds it, and for everyone to read, which costs no atomic addition.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct SoloCounters {
    started: AtomicU64,
    ended: AtomicU64,
    unshared: AtomicU64,
    failed: AtomicU64,
}

impl SoloCounters {
    /// Counts one that comes; how many came before. The caller holds the lock.
    #[inline]
    pub(crate) fn comes(&self) -> u64 {
        Self::add(&self.started)
    }

    /// Counts how one ended. The caller holds the lock.
    #[inline]
    pub(crate) fn count(&self, event: Event) {
        let counter = match event {
            Event::FlightEnded => &self.ended,
            Event::FlightUnshared => &self.unshared,
            _ => &self.failed,
        };
        Self::add(counter);
    }

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

/// What all clones of a tally count together.
#[derive(Debug, Default)]
struct SharedCounters {
    live: Live,
    /// Of tables that are, for each of their parts; and what those that are no more had.
    lone: Mutex<(Counters, Vec<Arc<[SoloCounters]>>)>,
}

/// Counts, and passes on to who else wants to know.
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

    /// Passes on what [`SoloCounters`] has counted.
    #[inline]
    pub(crate) fn observe(&self, event: Event) {
        if let Some(observer) = &self.observer {
            observer.observe(event);
        }
    }

    /// Where a table of so many parts counts.
    pub(crate) fn lone(&self, parts: usize) -> Arc<[SoloCounters]> {
        let lone: Arc<[SoloCounters]> = (0..parts).map(|_| SoloCounters::default()).collect();
        self.counted.lone.lock().unwrap_or_else(PoisonError::into_inner).1.push(Arc::clone(&lone));
        lone
    }

    /// Keeps what a table has counted that is no more.
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
