//! When users arrive, and whether they iterate again.

use brunt_plan::injection::{Curve, UserArrivals, population_seed};
use brunt_plan::plan::Plan;
use brunt_plan::random;
use brunt_plan::scenario::{MOST_ALIVE, Population, Step};
use brunt_plan::share::Share;
use brunt_record::figures::NameId;
use brunt_record::time::Tick;

use super::absences::Presence;
use super::{Doing, Outcome, VirtualUsers, Wake};
use crate::network::Recorder;
use crate::pace::Quota;
use brunt_script::{Library, ScriptError};

/// How the number of users is determined.
enum Kind {
    /// Users arrive at their own due times, each for one iteration. `next` is the next due time, from the beginning.
    Open { arrivals: Box<UserArrivals>, next: Option<u64> },
    /// A number of users that follows a curve over time.
    Closed { curve: Curve, target: usize, changes: Changes },
    /// A fixed number of users, each with a fixed number of iterations.
    Each { users: u64, iterations: u64 },
    /// A fixed number of users who share a number of iterations.
    Shared { users: u64, quota: Quota },
}

/// Changed numbers of users: from which time of the run's clock on, and how many users, in the order of time.
type Changes = Vec<(Tick, u64)>;

/// A scenario that users of a population may carry out.
struct Choice {
    place: u32,
    name: String,
    id: Option<NameId>,
    /// The sum of the weights up to and including this choice.
    weight: f64,
}

/// A worker's share of a population.
pub(super) struct Crowd {
    kind: Kind,
    choices: Vec<Choice>,
    most_alive: usize,
    after: Option<usize>,
    share: Share,
    /// The seed of its users' choices, and the number of choices made.
    seed: u64,
    chosen: u64,
    began: Option<Tick>,
    /// Whether it was looked after at least once since it began.
    looked: bool,
    pub(super) alive: usize,
    /// Whether no user comes any more, and present users end with their iteration.
    pub(super) closed: bool,
    /// Whether the other workers were told that it has ended here.
    pub(super) announced: bool,
}

impl Crowd {
    /// One worker's share of the population at this place in the plan.
    pub(super) fn new(
        population: &Population,
        place: usize,
        library: &dyn Library,
        plan: &Plan,
        share: Share,
        quota: Option<Quota>,
    ) -> Result<Self, ScriptError> {
        let own = |users: f64| share.part_of(users as u64);
        let seed = population_seed(plan.seed, place);
        let mut weight = 0.0;
        let mut choices = Vec::new();
        for one in &population.scenarios {
            weight += one.weight;
            let place = library.place(&one.scenario)?;
            choices.push(Choice { place, name: one.scenario.clone(), id: None, weight });
        }
        let kind = match (population.steps.first(), quota) {
            (Some(Step::IterationsEach { users, iterations }), _) => {
                Kind::Each { users: own(*users), iterations: *iterations as u64 }
            }
            (Some(Step::IterationsShared { users, .. }), Some(quota)) => Kind::Shared { users: own(*users), quota },
            _ if population.is_open() => {
                let mut arrivals = UserArrivals::for_population(population, place, plan.seed, share);
                let next = arrivals.next();
                Kind::Open { arrivals: Box::new(arrivals), next }
            }
            _ => Kind::Closed { curve: Curve::new(&population.steps), target: 0, changes: Vec::new() },
        };
        let most = population.most_alive.unwrap_or(MOST_ALIVE);
        Ok(Self {
            kind,
            choices,
            most_alive: share.part_of(most) as usize,
            after: population.after,
            share,
            seed: seed ^ 0xca11,
            chosen: 0,
            began: None,
            looked: false,
            alive: 0,
            closed: false,
            announced: false,
        })
    }

    /// One user for one iteration.
    pub(super) fn once(place: u32, name: &str) -> Self {
        Self {
            kind: Kind::Each { users: 1, iterations: 1 },
            choices: vec![Choice { place, name: name.to_owned(), id: None, weight: 1.0 }],
            most_alive: 1,
            after: None,
            share: Share::WHOLE,
            seed: 0,
            chosen: 0,
            began: None,
            looked: false,
            alive: 0,
            closed: false,
            announced: false,
        }
    }

    /// Takes changed numbers of users, each from a time on. Only populations with a given number of users follow them.
    pub(super) fn change(&mut self, users: &[(Tick, u64)]) {
        if let Kind::Closed { changes, .. } = &mut self.kind {
            *changes = users.to_vec();
        }
    }

    /// The name of its scenario at this place in the script.
    pub(super) fn scenario(&self, place: u32) -> Option<&str> {
        self.choices.iter().find(|choice| choice.place == place).map(|choice| choice.name.as_str())
    }

    /// Begins with the load, unless it follows another population.
    pub(super) fn begin_first(&mut self, now: Tick) {
        if self.after.is_none() {
            self.began = Some(now);
        }
    }

    /// Whether the last user has come and gone.
    pub(super) fn is_over(&self) -> bool {
        self.closed && self.alive == 0
    }

    /// The population whose end it waits for.
    pub(super) fn follows(&self) -> Option<usize> {
        if self.began.is_none() { self.after } else { None }
    }

    /// The time at which iterations stop, where a time stops them.
    pub(super) fn ends(&self) -> Option<Tick> {
        match (&self.kind, self.began) {
            (Kind::Closed { curve, .. }, Some(began)) => Some(began + nanoseconds(curve.seconds())),
            _ => None,
        }
    }

    /// Whether every present user iterates again, as far as that is certain without asking for each.
    pub(super) fn wants_all(&self) -> bool {
        matches!(&self.kind, Kind::Closed { target, .. } if !self.closed && self.alive <= *target)
    }

    /// The time at which a user comes, or may have to go.
    pub(super) fn next_wake(&self, now: Tick) -> Tick {
        let Some(began) = self.began else { return Tick::NEVER };
        if self.closed {
            return Tick::NEVER;
        }
        match &self.kind {
            Kind::Open { next, .. } => next.map_or(Tick::NEVER, |next| began + next),
            Kind::Closed { .. } if !self.looked => began,
            Kind::Closed { curve, changes, .. } => {
                let curves = began + nanoseconds(curve.next_change(seconds(now.since(began))));
                let change = changes.iter().map(|(at, _)| *at).find(|at| *at > now);
                change.map_or(curves, |at| at.min(curves))
            }
            Kind::Each { .. } | Kind::Shared { .. } => now,
        }
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / brunt_record::SECOND_NS as f64
}

/// Rounds up, so that the result is never before the given time.
fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).ceil() as u64
}

impl VirtualUsers {
    /// Admits the users who are due at `now`.
    pub(super) fn admit(&mut self, now: Tick, recorder: &mut Recorder) {
        for place in 0..self.crowds.len() {
            let after = self.crowds.get(place).and_then(|crowd| crowd.after);
            let may_begin = after.is_none_or(|after| self.among.is_over(after));
            let Some(crowd) = self.crowds.get_mut(place) else { continue };
            if crowd.began.is_none() && may_begin {
                crowd.began = Some(now);
            }
            if crowd.began.is_some_and(|began| began <= now) && !crowd.closed {
                crowd.looked = true;
                self.admit_to(place, now, recorder);
            }
            if let Some(crowd) = self.crowds.get_mut(place)
                && crowd.is_over()
                && !crowd.announced
            {
                crowd.announced = true;
                self.among.ended(place);
            }
        }
    }

    /// Admits the users arriving at a rate who were due before `until`, which has passed: a second has all users that
    /// were due in it, however late it is closed.
    pub(super) fn admit_before(&mut self, until: Tick, recorder: &mut Recorder) {
        let comes = |crowd: &Crowd| {
            matches!(crowd.kind, Kind::Open { .. }) && crowd.began.is_some_and(|began| began < until) && !crowd.closed
        };
        for place in 0..self.crowds.len() {
            if self.crowds.get(place).is_some_and(comes) {
                self.admit_to(place, until.before(1), recorder);
            }
        }
    }

    fn admit_to(&mut self, place: usize, now: Tick, recorder: &mut Recorder) {
        while let Some(crowd) = self.crowds.get_mut(place) {
            let Some(began) = crowd.began else { return };
            let mut iterations = None;
            let due = match &mut crowd.kind {
                Kind::Open { arrivals, next } => {
                    let Some(at) = *next else {
                        crowd.closed = true;
                        return;
                    };
                    if began + at > now {
                        return;
                    }
                    *next = arrivals.next();
                    if self.reach.is_paused(began + at) {
                        // A user who would have come during a pause is not due, and keeps its number.
                        crowd.chosen += 1;
                        continue;
                    }
                    if crowd.alive >= crowd.most_alive {
                        self.refuse(place, recorder);
                        continue;
                    }
                    Some(began + at)
                }
                Kind::Closed { curve, target, changes } => {
                    let at = seconds(now - began);
                    if at >= curve.seconds() {
                        (*target, crowd.closed) = (0, true);
                        return self.call_in(place);
                    }
                    // A ramp between whole numbers of users may compute a number just below a whole one.
                    let planned = (curve.users_at(at) + 1e-6) as u64;
                    let wanted = changes.iter().rfind(|(at, _)| *at <= now).map_or(planned, |(_, users)| *users);
                    *target = crowd.share.part_of(wanted) as usize;
                    if crowd.alive >= (*target).min(crowd.most_alive) {
                        return;
                    }
                    None
                }
                Kind::Each { users, iterations: each } => {
                    if *users == 0 {
                        crowd.closed = true;
                        return;
                    }
                    *users -= 1;
                    iterations = Some(*each);
                    None
                }
                Kind::Shared { users, quota } => {
                    if *users == 0 || quota.take().is_none() {
                        crowd.closed = true;
                        return;
                    }
                    *users -= 1;
                    None
                }
            };
            self.spawn(place, due, iterations, recorder);
        }
    }

    /// Tells users between two iterations that no other iteration follows.
    fn call_in(&mut self, crowd: usize) {
        for slot in 0..self.users.len() as u32 {
            if self.user(slot).is_some_and(|user| user.crowd == crowd && user.doing == Doing::Nothing) {
                self.make_ready(slot, Wake::Begin);
            }
        }
    }

    /// Whether there are more users than wanted, so that this one begins no other iteration.
    #[inline]
    pub(super) fn is_surplus(&mut self, user: u32) -> bool {
        let crowd = self.user(user).map(|user| user.crowd);
        let crowd = crowd.and_then(|crowd| self.crowds.get(crowd));
        crowd.is_some_and(|crowd| match &crowd.kind {
            Kind::Closed { target, .. } => crowd.closed || crowd.alive > *target,
            Kind::Open { .. } | Kind::Each { .. } | Kind::Shared { .. } => false,
        })
    }

    /// The scenario for the next user of a population: its place in the script, and the name by which it is counted.
    fn choose(&mut self, crowd: usize, recorder: &mut Recorder) -> (u32, Option<NameId>) {
        let Some(crowd) = self.crowds.get_mut(crowd) else { return (0, None) };
        let all = crowd.choices.last().map_or(0.0, |choice| choice.weight);
        // Drawn by the user's number over all workers, so that a user makes the same choice on any worker.
        let number = crowd.share.number(crowd.chosen).unwrap_or(crowd.chosen);
        crowd.chosen += 1;
        let drawn = random::unit(crowd.seed, number) * all;
        let Some(choice) = crowd.choices.iter_mut().find(|choice| drawn < choice.weight) else { return (0, None) };
        let id = *choice.id.get_or_insert_with(|| recorder.snapshot.figures.scenarios.id(&choice.name));
        (choice.place, Some(id))
    }

    /// Counts a user who arrives and finds no free place.
    fn refuse(&mut self, crowd: usize, recorder: &mut Recorder) {
        if let (_, Some(id)) = self.choose(crowd, recorder) {
            recorder.snapshot.figures.scenarios.at(id).not_admitted += 1;
        }
    }

    fn spawn(&mut self, crowd: usize, due: Option<Tick>, iterations: Option<u64>, recorder: &mut Recorder) {
        let (place, scenario) = self.choose(crowd, recorder);
        let Some(scenario) = scenario else { return };
        recorder.snapshot.figures.scenarios.at(scenario).users_started += 1;
        let id = self.next_id;
        self.next_id += self.share.count();
        let presence = Presence::new(due.is_none());
        let slot = self.settle(id, crowd, place, scenario);
        if let Some(user) = self.user(slot) {
            (user.arrived, user.iterations, user.presence) = (due, iterations, presence);
        }
        self.alive += 1;
        let figures = &mut recorder.snapshot.figures;
        figures.most_users = figures.most_users.max(self.among.came());
        if let Some(crowd) = self.crowds.get_mut(crowd) {
            crowd.alive += 1;
        }
        self.make_ready(slot, Wake::Begin);
    }

    /// Whether a user whose iteration ended with `outcome` begins another.
    pub(super) fn goes_on(&mut self, user: u32, outcome: Outcome) -> bool {
        let Some(user) = self.users.get_mut(user) else { return false };
        let Some(crowd) = self.crowds.get_mut(user.crowd) else { return false };
        if outcome == Outcome::Left {
            return false;
        }
        match &mut crowd.kind {
            Kind::Open { .. } => false,
            Kind::Closed { target, .. } => !crowd.closed && crowd.alive <= *target,
            Kind::Each { .. } => {
                let left = user.iterations.unwrap_or(0).saturating_sub(1);
                user.iterations = Some(left);
                left > 0
            }
            Kind::Shared { quota, .. } => quota.take().is_some(),
        }
    }

    /// Closes a population whose data is used up: no user joins it any more, and present users end with their
    /// iteration.
    pub(super) fn exhaust(&mut self, user: u32) {
        let crowd = self.users.get(user).map(|user| user.crowd);
        if let Some(crowd) = crowd.and_then(|crowd| self.crowds.get_mut(crowd)) {
            crowd.closed = true;
            match &mut crowd.kind {
                Kind::Open { next, .. } => *next = None,
                Kind::Closed { target, .. } => *target = 0,
                Kind::Each { users, .. } | Kind::Shared { users, .. } => *users = 0,
            }
        }
    }
}
