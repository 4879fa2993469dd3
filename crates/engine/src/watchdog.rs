//! Watches from outside whether workers' users return. Debug hooks of an interpreter do not fire in compiled loops, so
//! a script cannot be stopped from inside.

use brunt_record::SECOND_NS;
use brunt_record::time::Tick;

use brunt_protocol::source::Heartbeat;
use brunt_script::Hook;

/// How long a user may stay in one function while the run goes on, in nanoseconds.
const PATIENCE_NS: u64 = 2 * SECOND_NS;
/// How long it may once the run is to end, in nanoseconds.
pub(crate) const LAST_PATIENCE_NS: u64 = SECOND_NS;

/// The most time that counts between two looks, in nanoseconds. A watchdog that looks later than this has stood still
/// too: a stopped process, or a machine that sleeps. Users cannot have moved in that time either.
const LONGEST_STEP_NS: u64 = 100_000_000;

/// A worker's user, with the time since it last moved.
#[derive(Debug)]
struct Watched {
    heart: Heartbeat,
    beat: u64,
    busy_ns: u64,
    given_up: bool,
}

/// A user that does not return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stuck {
    /// Its worker.
    pub(crate) worker: u32,
    /// The function that it is in, as it told its heart, and the number of the scenario whose function that is.
    pub(crate) what: u8,
    pub(crate) whose: u32,
    /// Calls that it had made.
    pub(crate) calls: u64,
}

/// Watches over the users of a run.
#[derive(Debug, Default)]
pub(crate) struct Watchdog {
    watched: Vec<Watched>,
    /// The functions of scenarios, by the scenarios' numbers.
    functions: Vec<(u32, String)>,
    /// When it last looked, on the run's clock.
    looked: Option<Tick>,
}

impl Watchdog {
    /// Watches these, the workers' in their order.
    pub(crate) fn new(hearts: impl IntoIterator<Item = Heartbeat>) -> Self {
        let watched = hearts.into_iter().map(|heart| Watched { heart, beat: 0, busy_ns: 0, given_up: false });
        Self { watched: watched.collect(), ..Self::default() }
    }

    /// Knows the functions of scenarios, by the scenarios' numbers.
    pub(crate) fn knowing(self, functions: Vec<(u32, String)>) -> Self {
        Self { functions, ..self }
    }

    /// The function that a user does not return from, in words.
    pub(crate) fn function(&self, stuck: &Stuck) -> &str {
        let known =
            self.functions.iter().find(|(place, _)| *place == stuck.whose && stuck.what == Hook::Scenario as u8);
        known.map_or_else(|| Hook::name(stuck.what), |(_, function)| function)
    }

    /// Whether there is anything to watch.
    pub(crate) fn is_idle(&self) -> bool {
        self.watched.is_empty()
    }

    /// The users to give up at `now`, each once; `ending` says that the run is to end. Call this more often than
    /// [`LONGEST_STEP_NS`].
    pub(crate) fn look(&mut self, now: Tick, ending: bool) -> Vec<Stuck> {
        let patience = if ending { LAST_PATIENCE_NS } else { PATIENCE_NS };
        let step = self.looked.map_or(0, |looked| now.since(looked)).min(LONGEST_STEP_NS);
        self.looked = Some(now);
        let mut stuck = Vec::new();
        for (worker, watched) in self.watched.iter_mut().enumerate() {
            let (beat, what) = watched.heart.beat();
            if beat != watched.beat || what == 0 {
                (watched.beat, watched.busy_ns) = (beat, 0);
                continue;
            }
            watched.busy_ns += step;
            if !watched.given_up && watched.busy_ns >= patience {
                watched.given_up = true;
                let (whose, calls) = watched.heart.last_seen();
                stuck.push(Stuck { worker: worker as u32, what, whose, calls });
            }
        }
        stuck
    }

    /// Whether this worker was given up.
    pub(crate) fn has_given_up(&self, worker: u32) -> bool {
        self.watched.get(worker as usize).is_some_and(|watched| watched.given_up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A watchdog that looks every 50 ms of made-up time.
    struct Watching {
        watchdog: Watchdog,
        now: Tick,
    }

    impl Watching {
        fn over(hearts: &[Heartbeat]) -> Self {
            Self { watchdog: Watchdog::new(hearts.iter().cloned()), now: Tick::EPOCH }
        }

        /// Who is given up in so many milliseconds.
        fn pass(&mut self, ms: u64, ending: bool) -> Vec<Stuck> {
            let mut stuck = Vec::new();
            for _ in 0..ms / 50 {
                self.now += 50_000_000;
                stuck.extend(self.watchdog.look(self.now, ending));
            }
            stuck
        }
    }

    #[test]
    fn who_moves_is_left_alone_and_who_does_not_is_given_up_once() {
        let hearts = [Heartbeat::default(), Heartbeat::default()];
        let mut watching = Watching::over(&hearts);
        hearts[0].enter(1);
        hearts[1].enter(2);
        assert_eq!(watching.pass(1500, false), []);
        hearts[0].leave();
        hearts[0].has_made(7);
        hearts[0].enter_scenario(1, 3);
        assert_eq!(watching.pass(600, false), [Stuck { worker: 1, what: 2, whose: 0, calls: 0 }]);
        assert_eq!(watching.pass(300, false), []);
        assert!(watching.watchdog.has_given_up(1) && !watching.watchdog.has_given_up(0));
        assert_eq!(watching.pass(200, true), [Stuck { worker: 0, what: 1, whose: 3, calls: 7 }]);
    }

    #[test]
    fn when_all_stands_still_nobody_is_given_up_for_it() {
        let heart = Heartbeat::default();
        let mut watching = Watching::over(std::slice::from_ref(&heart));
        heart.enter(1);
        assert_eq!(watching.pass(1000, false), []);
        // The process was stopped, or the machine slept.
        watching.now += 3600 * SECOND_NS;
        assert_eq!(watching.pass(500, false), []);
        assert_eq!(watching.pass(500, false), [Stuck { worker: 0, what: 1, whose: 0, calls: 0 }]);
    }

    #[test]
    fn who_is_idle_is_not_stuck() {
        let mut watching = Watching::over(&[Heartbeat::default()]);
        assert_eq!(watching.pass(60_000, true), []);
    }
}
