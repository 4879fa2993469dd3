//! What services have in common: a service with its clones, or all services of a shared layer.

use std::any::Any;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::header::RANGE;

use crate::answer::Judge;
use crate::counters::{Event, Tally};
use crate::flight::{Answering, HeldBytes, Limits, Table};
use crate::mark::Mark;
use crate::request::Eligible;
use crate::writes::Epochs;

/// The settings of a layer, and what it shares with the layers separated from it.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) limits: Limits,
    pub(crate) eligible: Eligible,
    pub(crate) no_cache: bool,
    pub(crate) mark: Mark,
    pub(crate) max_wait: Option<Duration>,
    pub(crate) tally: Tally,
    pub(crate) held: Arc<HeldBytes>,
}

impl Settings {
    pub(crate) fn realm(&self) -> Realm {
        Realm { settings: self.clone(), epochs: Arc::new(Epochs::new()), flights: Flights::default() }
    }

    fn judge(&self) -> Judge {
        Judge {
            longest: self.limits.flight_bytes as u64,
            ranges: self.eligible.key_headers.contains(&RANGE),
            no_cache: self.no_cache,
        }
    }
}

/// Flights that a request may join, with the settings that they were made by.
pub(crate) struct Realm {
    pub(crate) settings: Settings,
    pub(crate) epochs: Arc<Epochs>,
    flights: Flights,
}

impl Realm {
    /// The flights of calls of this type. Each type of service, and each type of its requests' bodies, has its own.
    #[inline]
    pub(crate) fn flights<F: Answering>(&self) -> &Arc<Shared<F>> {
        self.flights.of(|| {
            let settings = &self.settings;
            settings.tally.count(Event::ServiceMade);
            let held = Arc::clone(&settings.held);
            let table = Arc::new(Table::new(settings.limits, settings.judge(), settings.tally.clone(), held));
            Arc::new(Shared { table, max_wait: settings.max_wait })
        })
    }
}

/// What every call needs.
pub(crate) struct Shared<F: Answering> {
    pub(crate) table: Arc<Table<F>>,
    pub(crate) max_wait: Option<Duration>,
}

/// One value of each type that is asked for: a list, as most services have one type of calls, and it is found first.
#[derive(Default)]
struct Flights {
    value: OnceLock<Box<dyn Any + Send + Sync>>,
    next: OnceLock<Box<Flights>>,
}

impl Flights {
    #[inline]
    fn of<T: Any + Send + Sync>(&self, make: impl Fn() -> T) -> &T {
        let mut at = self;
        loop {
            let value: &(dyn Any + Send + Sync) = &**at.value.get_or_init(|| Box::new(make()));
            if let Some(found) = value.downcast_ref() {
                return found;
            }
            at = at.next.get_or_init(Box::default);
        }
    }
}
