//! Sees from outside whether workers' users come back. Debug hooks of an interpreter do not fire in compiled loops, so
//! nothing inside could stop one.

use std::time::{Duration, Instant};

use crate::user::Heart;

/// How long a user may be busy with one thing while the run goes on.
const PATIENCE: Duration = Duration::from_secs(2);
/// The same once the run is to end.
const LAST_PATIENCE: Duration = Duration::from_secs(1);

/// A worker's user, and when it was last seen to move.
#[derive(Debug)]
struct Watched {
    heart: Heart,
    beat: u64,
    since: Instant,
    given_up: bool,
}

/// A user that does not come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stuck {
    /// Its worker.
    pub(crate) worker: u32,
    /// What it is busy with, as it told its heart.
    pub(crate) what: u8,
}

/// Watches over the users of a run.
#[derive(Debug, Default)]
pub(crate) struct Watchdog {
    watched: Vec<Watched>,
}

impl Watchdog {
    /// Watches these, the workers' in their order.
    pub(crate) fn new(hearts: impl IntoIterator<Item = Heart>) -> Self {
        let since = Instant::now();
        let watched = hearts.into_iter().map(|heart| Watched { heart, beat: 0, since, given_up: false });
        Self { watched: watched.collect() }
    }

    /// Whether there is anything to watch.
    pub(crate) fn is_idle(&self) -> bool {
        self.watched.is_empty()
    }

    /// The users that are given up at `now`, each once; `ending` says that the run is to end.
    pub(crate) fn look(&mut self, now: Instant, ending: bool) -> Vec<Stuck> {
        let patience = if ending { LAST_PATIENCE } else { PATIENCE };
        let mut stuck = Vec::new();
        for (worker, watched) in self.watched.iter_mut().enumerate() {
            let (beat, what) = watched.heart.beat();
            if beat != watched.beat || what == 0 {
                (watched.beat, watched.since) = (beat, now);
            } else if !watched.given_up && now.saturating_duration_since(watched.since) >= patience {
                watched.given_up = true;
                stuck.push(Stuck { worker: worker as u32, what });
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

    #[test]
    fn who_moves_is_left_alone_and_who_does_not_is_given_up_once() {
        let hearts = [Heart::default(), Heart::default()];
        let mut watchdog = Watchdog::new(hearts.clone());
        let begin = Instant::now();
        let after = |ms: u64| begin + Duration::from_millis(ms);
        hearts[0].enter(1);
        hearts[1].enter(2);
        assert_eq!(watchdog.look(after(0), false), []);
        hearts[0].leave();
        hearts[0].enter(1);
        assert_eq!(watchdog.look(after(1500), false), []);
        assert_eq!(watchdog.look(after(2100), false), [Stuck { worker: 1, what: 2 }]);
        assert_eq!(watchdog.look(after(2400), false), []);
        assert!(watchdog.has_given_up(1) && !watchdog.has_given_up(0));
        assert_eq!(watchdog.look(after(2600), true), [Stuck { worker: 0, what: 1 }]);
    }

    #[test]
    fn who_is_idle_is_not_stuck() {
        let mut watchdog = Watchdog::new([Heart::default()]);
        let begin = Instant::now();
        assert_eq!(watchdog.look(begin, false), []);
        assert_eq!(watchdog.look(begin + Duration::from_secs(60), true), []);
    }
}
