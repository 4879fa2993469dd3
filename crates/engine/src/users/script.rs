//! The script in which a worker's users live, and the time that its functions take.

use std::cell::Cell;
use std::time::{Duration, Instant};

use brunt_protocol::source::Heartbeat;
use brunt_script::{Hook, Library};

/// The state of a worker's heart while a script's function runs.
const IN_SCENARIO: u8 = Hook::Scenario as u8;
/// One step of users in this many is timed.
const TIMED: u32 = 16;

/// A script, each of whose steps is seen by the watchdog.
pub(super) struct Script {
    library: Box<dyn Library>,
    heart: Heartbeat,
    steps: Cell<u32>,
    /// Measured calls begun so far, optional ones aside.
    calls: u64,
    /// How long the timed steps took since that was last asked.
    busy: Cell<Duration>,
}

impl Script {
    pub(super) fn new(library: Box<dyn Library>) -> Self {
        let heart = Heartbeat::default();
        library.take_heart(&heart);
        Self { library, heart, steps: Cell::new(0), calls: 0, busy: Cell::new(Duration::ZERO) }
    }

    /// Runs a function of the script, for a user of the scenario with the number `whose`, which may be slow and may never return.
    #[inline]
    pub(super) fn step<R>(&self, whose: u32, run: impl FnOnce(&dyn Library) -> R) -> R {
        self.heart.enter_scenario(IN_SCENARIO, whose);
        let steps = self.steps.get().wrapping_add(1);
        self.steps.set(steps);
        let began = steps.is_multiple_of(TIMED).then(Instant::now);
        let result = run(self.library.as_ref());
        self.heart.leave();
        if let Some(began) = began {
            self.busy.set(self.busy.get() + began.elapsed());
        }
        result
    }

    /// The library, for what runs no function of the script.
    pub(super) fn library(&self) -> &dyn Library {
        self.library.as_ref()
    }

    /// A measured call begins.
    pub(super) fn call_begins(&mut self) {
        self.calls += 1;
        self.heart.has_made(self.calls);
    }

    /// Shows whether the script returns.
    pub(super) fn heart(&self) -> Heartbeat {
        self.heart.clone()
    }

    /// About how long scripts were busy since the last call, in nanoseconds.
    pub(super) fn take_busy_ns(&mut self) -> u64 {
        self.busy.take().as_nanos() as u64 * u64::from(TIMED)
    }

    pub(super) fn into_library(self) -> Box<dyn Library> {
        self.library
    }
}
