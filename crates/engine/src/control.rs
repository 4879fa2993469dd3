//! Changes of a run's load while it goes on.
//!
//! A change takes effect at a time of the run, a little after it is asked for. Each worker looks for changes after it
//! has read the clock and before it takes a call that is due by then. So calls due at that time or later always follow
//! the new timetable, however late a worker hears of the change.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brunt_plan::plan::{Load, Plan};
use brunt_plan::profile::HIGHEST_RATE;
use brunt_plan::scenario::{MOST_ALIVE, Scenarios, Step};
use brunt_plan::units::Clock as Shown;
use brunt_record::change::{Action, Author, Change, LONGEST_MARK, MOST_CHANGES, pauses};
use brunt_record::time::{MeasuredTime, Tick};

use crate::transport::Clock;

/// How far ahead a change takes effect, in nanoseconds: longer than a worker sleeps, so that each begins it in time.
const AHEAD_NS: i64 = 100_000_000;
/// The same where other machines carry out the run: longer than the time that they are allowed to go ahead.
const AHEAD_ELSEWHERE_NS: i64 = 2_500_000_000;

/// A change that a run does not take.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ControlError {
    /// The run's load has not begun.
    #[error("the load has not begun: ask again once it has")]
    NotBegun,
    /// The run is over.
    #[error("the load is over")]
    Over,
    /// The run ends before the change could take effect.
    #[error("the load ends at {}, before the change could take effect", Shown(*.end_ns))]
    EndsBefore {
        /// When, in nanoseconds of the measured part.
        end_ns: u64,
    },
    /// The run has no rate.
    #[error("the run has no rate that could change: {why}")]
    NoRate {
        /// What it has in place of one.
        why: &'static str,
    },
    /// The number is out of range.
    #[error("a rate is above 0 and at most 10M calls a second, not {rate}; 'pause' lets nothing be due")]
    Rate {
        /// The rate that was asked for.
        rate: f64,
    },
    /// The run is paused already.
    #[error("the run is paused already, since {}", Shown(u64::try_from(*.since_ns).unwrap_or(0)))]
    Paused {
        /// The start of the pause, in nanoseconds after the beginning of the measured part.
        since_ns: i64,
    },
    /// The run is not paused.
    #[error("the run is not paused")]
    NotPaused,
    /// Its number of virtual users cannot change.
    #[error("the number of virtual users cannot change: {why}")]
    NoUsers {
        /// Why.
        why: &'static str,
    },
    /// The run cannot have this many virtual users.
    #[error("a run of these users has 1 to {most} of them, not {users}")]
    Users {
        /// The number that was asked for.
        users: u64,
        /// The most that there may be.
        most: u64,
    },
    /// There were too many.
    #[error("the run has taken {MOST_CHANGES} changes, and takes no more")]
    TooMany,
    /// The text of a mark cannot be shown.
    #[error("a mark has a text of 1 to {LONGEST_MARK} characters, none of them a control character")]
    Mark,
    /// Whoever carries the run out does not answer.
    #[error("the run does not answer")]
    Silent,
}

/// Whether a run of a plan has a rate and a number of virtual users that can change. Any can be paused, and have its moments marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changeable {
    /// [`Action::Rate`].
    pub rate: bool,
    /// [`Action::Users`].
    pub users: bool,
}

impl Changeable {
    /// What can change of a run of `plan`.
    pub fn from_plan(plan: &Plan) -> Self {
        let ChangeLimits { rate, users, .. } = ChangeLimits::of(plan);
        Self { rate: rate.is_ok(), users: users.is_ok() }
    }
}

/// What can be changed about a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ChangeLimits {
    rate: Result<(), &'static str>,
    /// The most virtual users.
    users: Result<u64, &'static str>,
    end_ns: Option<u64>,
}

impl ChangeLimits {
    fn of(plan: &Plan) -> Self {
        let users = most_users(plan);
        let throttled = |scenarios: &Scenarios| match (&scenarios.throttle, users) {
            (Some(_), _) => Ok(()),
            (None, Ok(_)) => {
                Err("its virtual users call as their script says; type 'brunt ctl users 50' for more or fewer of them")
            }
            (None, Err(_)) => {
                Err("its virtual users call as their script says; brunt.throttle there gives them a rate")
            }
        };
        let rate = match (&plan.load, &plan.scenarios) {
            (_, Some(scenarios)) => throttled(scenarios),
            (_, None) if plan.own_times => Err(
                "its calls are those of conversations, or of a trace, at times of their own; start it with another rate",
            ),
            (Load::Open { .. }, None) => Ok(()),
            (Load::Replay(_), None) => {
                Err("its calls are due when the log has them; start it with another --speed or --scale")
            }
            (Load::Closed {}, None) => Err("its connections call as soon as they are answered; start it with -r"),
        };
        Self { rate, users, end_ns: plan.duration_ns().filter(|_| plan.scenarios.is_none()) }
    }
}

/// The most virtual users that a run may be changed to; the reason where their number cannot change.
fn most_users(plan: &Plan) -> Result<u64, &'static str> {
    let Some(scenarios) = &plan.scenarios else {
        return Err(match plan.load {
            Load::Closed {} => {
                "a flood has connections (-c), whose number stays. 'brunt ctl rate 5k' changes the load of one with -r, 'brunt ctl \
                 users 50' that of 'brunt run FILE'"
            }
            Load::Open { .. } => "its calls are due at a rate: type 'brunt ctl rate 5k'",
            Load::Replay(_) => "its sessions are those of the log: start it with another --speed or --scale",
        });
    };
    let [population] = scenarios.populations.as_slice() else {
        return Err("its users come by several injections, and each has a number of its own");
    };
    if population.is_open() {
        return Err("its users come at times of their own, each for one iteration");
    }
    if !population.steps.iter().all(|step| matches!(step, Step::Users { .. })) {
        return Err("its users are there for a number of iterations, and not for a time");
    }
    Ok(population.most_alive.unwrap_or(MOST_ALIVE))
}

/// The changes of one run, made from any thread while it goes on.
///
/// ```
/// use brunt_engine::{Control, ControlError};
/// use brunt_record::change::{Action, Author};
///
/// let control = Control::default();
/// // Before a run begins there is nothing to change.
/// assert_eq!(control.ask(Action::Rate(5000.0), Author::Ctl), Err(ControlError::NotBegun));
/// ```
#[derive(Clone, Default)]
pub struct Control(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// The number of changes.
    known: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    changes: Vec<Change>,
    stage: Stage,
    /// How far other machines may go by what they were told, in nanoseconds of the measured part; `None` where this
    /// machine carries out the run.
    granted_ns: Option<i64>,
}

#[derive(Default)]
enum Stage {
    #[default]
    Waiting,
    /// The run has these terms and this clock, and its load has not begun.
    Ready(ChangeLimits, Clock),
    /// The measured part begins at this time of the clock.
    Running(ChangeLimits, Clock, Tick),
    Over,
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("changes", &self.lock().changes).finish_non_exhaustive()
    }
}

impl Control {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `plan` is about to be carried out by this clock.
    pub(crate) fn ready(&self, plan: &Plan, clock: Clock) {
        let mut state = self.lock();
        if matches!(state.stage, Stage::Waiting) {
            state.stage = Stage::Ready(ChangeLimits::of(plan), clock);
        }
    }

    /// The load begins, and its measured part at `began` on the clock. Each worker calls this, and the first call
    /// counts.
    pub(crate) fn begin(&self, began: Tick) {
        let mut state = self.lock();
        if let Stage::Ready(terms, clock) = &state.stage {
            state.stage = Stage::Running(*terms, Arc::clone(clock), began);
        }
    }

    /// The load is over: nothing can be changed any more.
    pub(crate) fn end(&self) {
        self.lock().stage = Stage::Over;
    }

    /// Changes the run, or marks a moment of it. Returns the change with its time.
    ///
    /// # Errors
    /// When the run does not allow it, with the reason.
    pub fn ask(&self, action: Action, by: Author) -> Result<Change, ControlError> {
        let mut state = self.lock();
        let (terms, now_ns) = match &state.stage {
            Stage::Waiting | Stage::Ready(..) => return Err(ControlError::NotBegun),
            Stage::Over => return Err(ControlError::Over),
            Stage::Running(terms, clock, began) => (*terms, clock().measured_from(*began).ns()),
        };
        // No machine has gone further than that, or will before it hears of the change.
        let earliest_ns = match state.granted_ns {
            None => now_ns.saturating_add(AHEAD_NS),
            Some(granted_ns) => granted_ns.max(now_ns.saturating_add(AHEAD_ELSEWHERE_NS)),
        };
        let change = next(&state.changes, &terms, (now_ns, earliest_ns), action, by)?;
        state.changes.push(change.clone());
        self.0.known.store(state.changes.len() as u64, Ordering::Release);
        Ok(change)
    }

    /// `plan` is about to be carried out by other machines. They hear of a change whenever they are told how far they
    /// may go ([`Control::grant`]). `clock` returns the time in nanoseconds.
    pub fn ready_elsewhere(&self, plan: &Plan, clock: impl Fn() -> u64 + Send + Sync + 'static) {
        self.ready(plan, Arc::new(move || Tick::from_ns(clock())));
    }

    /// The measured part of a run on other machines begins after this many nanoseconds.
    pub fn begins_in(&self, ns: u64) {
        let mut state = self.lock();
        if let Stage::Ready(terms, clock) = &state.stage {
            let began = clock().saturating_add(ns);
            state.stage = Stage::Running(*terms, Arc::clone(clock), began);
            state.granted_ns = Some(i64::MIN);
        }
    }

    /// Lets another machine make calls that are due before `until_ns` of the measured part, and returns the changes
    /// that it needs to know for that. A later change takes effect at `until_ns` or after it.
    pub fn grant(&self, until_ns: i64) -> Vec<Change> {
        let mut state = self.lock();
        state.granted_ns = Some(state.granted_ns.unwrap_or(i64::MIN).max(until_ns));
        let is_load = |change: &&Change| !matches!(change.action, Action::Mark(_));
        state.changes.iter().filter(is_load).cloned().collect()
    }

    /// Takes over all changes of a run from elsewhere, the ones already known first.
    pub fn take(&self, changes: &[Change]) {
        let mut state = self.lock();
        if let Some(new) = changes.get(state.changes.len()..) {
            state.changes.extend_from_slice(new);
            self.0.known.store(state.changes.len() as u64, Ordering::Release);
        }
    }

    /// All changes so far, in the order of their times.
    pub fn changes(&self) -> Vec<Change> {
        self.lock().changes.clone()
    }

    /// The number of changes.
    fn known(&self) -> u64 {
        self.0.known.load(Ordering::Acquire)
    }
}

/// The change for a request at `now_ns`. It takes effect at `earliest_ns`, but not before earlier changes do.
fn next(
    changes: &[Change],
    terms: &ChangeLimits,
    (now_ns, earliest_ns): (i64, i64),
    action: Action,
    by: Author,
) -> Result<Change, ControlError> {
    let paused_since = pauses(changes).last().filter(|(_, until)| until.is_none()).map(|(since_ns, _)| *since_ns);
    // A pause is never without its end.
    let ends_pause = action == Action::Resume && paused_since.is_some();
    if changes.len() >= MOST_CHANGES && !ends_pause {
        return Err(ControlError::TooMany);
    }
    match &action {
        Action::Rate(_) if let Err(why) = terms.rate => return Err(ControlError::NoRate { why }),
        Action::Rate(rate) if !(*rate > 0.0 && *rate <= HIGHEST_RATE) => {
            return Err(ControlError::Rate { rate: *rate });
        }
        Action::Users(users) => match terms.users {
            Err(why) => return Err(ControlError::NoUsers { why }),
            Ok(most) if !(1..=most).contains(users) => return Err(ControlError::Users { users: *users, most }),
            Ok(_) => {}
        },
        Action::Pause if let Some(since_ns) = paused_since => return Err(ControlError::Paused { since_ns }),
        Action::Resume if paused_since.is_none() => return Err(ControlError::NotPaused),
        Action::Mark(text) => {
            let length = text.chars().count();
            if length == 0 || length > LONGEST_MARK || text.chars().any(char::is_control) {
                return Err(ControlError::Mark);
            }
        }
        Action::Rate(_) | Action::Pause | Action::Resume => {}
    }
    // Changes stay in their order. A mark names the moment at which it was asked for.
    let last_ns = changes.iter().map(|change| change.at_ns).max().unwrap_or(i64::MIN);
    let at_ns = if matches!(action, Action::Mark(_)) { now_ns } else { earliest_ns.max(last_ns) };
    if let Some(end_ns) = terms.end_ns.filter(|end_ns| at_ns >= 0 && at_ns as u64 >= *end_ns) {
        return Err(ControlError::EndsBefore { end_ns });
    }
    Ok(Change { at_ns, action, by })
}

/// The changes of a run as one worker has heard of them.
#[derive(Debug, Default)]
pub(crate) struct AppliedChanges {
    control: Control,
    known: u64,
    changes: Vec<Change>,
}

impl From<Control> for AppliedChanges {
    fn from(control: Control) -> Self {
        Self { control, known: 0, changes: Vec::new() }
    }
}

impl AppliedChanges {
    /// Looks for changes. Returns whether there are new ones.
    #[inline]
    pub(crate) fn look(&mut self) -> bool {
        self.control.known() != self.known && self.learn()
    }

    #[cold]
    fn learn(&mut self) -> bool {
        self.changes = self.control.changes();
        self.known = self.changes.len() as u64;
        true
    }

    /// The pauses on the run's clock, on which the measured part begins at `began`.
    pub(crate) fn pauses(&self, began: Tick) -> Vec<(Tick, Tick)> {
        let on_clock = |at_ns: i64| MeasuredTime::from_ns(at_ns).on_clock(began);
        pauses(&self.changes)
            .into_iter()
            .map(|(from, until)| (on_clock(from), until.map_or(Tick::NEVER, on_clock)))
            .collect()
    }

    /// Whether the run is paused, or will be, without a known end.
    pub(crate) fn is_paused(&self) -> bool {
        pauses(&self.changes).last().is_some_and(|(_, until)| until.is_none())
    }

    /// The numbers of virtual users, each with the time from which it holds on the run's clock, on which the measured
    /// part begins at `began`.
    pub(crate) fn users(&self, began: Tick) -> Vec<(Tick, u64)> {
        let users = |change: &Change| match change.action {
            Action::Users(users) => Some((MeasuredTime::from_ns(change.at_ns).on_clock(began), users)),
            Action::Rate(_) | Action::Pause | Action::Resume | Action::Mark(_) => None,
        };
        self.changes.iter().filter_map(users).collect()
    }

    /// The changes heard of so far.
    pub(crate) fn changes(&self) -> &[Change] {
        &self.changes
    }
}
