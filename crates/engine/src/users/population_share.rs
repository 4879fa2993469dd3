//! When users arrive, and whether they iterate again.

use std::collections::VecDeque;

use brunt_plan::deal::Deal;
use brunt_plan::injection::{Curve, UserArrivals, population_seed};
use brunt_plan::plan::Plan;
use brunt_plan::scenario::{MOST_ALIVE, Population, Step};
use brunt_plan::share::Share;
use brunt_record::figures::NameId;
use brunt_record::time::Tick;

use super::among_workers::AmongWorkers;
use super::ids::UserId;
use super::loading::Loading;
use super::user::{Outcome, UserIdentity};
use crate::network::Recorder;
use crate::pace::Quota;
use brunt_plan::scenario::Scenarios;
use brunt_script::{Library, ScriptError};

/// The time between two looks at whether a population has ended on the other workers, in nanoseconds.
const LOOK_NS: u64 = 1_000_000;

/// How the number of users is determined.
enum Kind {
    /// Users arrive at their own due times, each for one iteration. `next` is the next due time, from the beginning.
    Open { arrivals: Box<UserArrivals>, next: Option<u64>, lasts_ns: u64 },
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
}

/// How long a population waits, and how long its iterations may go on, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Limits {
    /// How long it waits before it begins.
    start_ns: u64,
    /// How long after its beginning iterations that are counted may begin.
    longest_ns: Option<u64>,
    /// How long iterations may go on after its end.
    grace_ns: Option<u64>,
    /// How long users may go on who are wanted no more, in seconds.
    ramp_down_grace: Option<f64>,
}

impl Limits {
    /// Whether no time stops an iteration, or cuts one off.
    #[inline]
    fn stop_nobody(&self) -> bool {
        self.longest_ns.is_none() && self.grace_ns.is_none() && self.ramp_down_grace.is_none()
    }
}

/// A worker's share of a population.
#[expect(clippy::struct_excessive_bools, reason = "each stands for an event of its own that happens once")]
struct PopulationShare {
    kind: Kind,
    limits: Limits,
    /// Whether an arrival takes a user who is idle; and those who are, the one that has been so for longest first.
    reuses: bool,
    idle: VecDeque<UserId>,
    choices: Vec<Choice>,
    most_alive: usize,
    after: Option<usize>,
    share: Share,
    /// The number of scenarios that its users have taken, or would have.
    chosen: u64,
    /// The scenarios of the users of all workers, and how many of them were dealt.
    deal: Deal,
    dealt: u64,
    began: Option<Tick>,
    /// Whether it was polled since its start.
    looked: bool,
    alive: usize,
    /// Whether no user comes any more, and present users end with their iteration.
    closed: bool,
    /// Whether users between two iterations were told that their time is up.
    called_in: bool,
    /// Whether the other workers were told that it has ended here.
    announced: bool,
}

impl PopulationShare {
    /// One worker's share of the population at this place in the plan.
    fn new(
        population: &Population,
        place: usize,
        library: &dyn Library,
        plan: &Plan,
        share: Share,
        quota: Option<Quota>,
    ) -> Result<Self, ScriptError> {
        let own = |users: f64| share.part_of(users as u64);
        let seed = population_seed(plan.seed, place);
        let mut choices = Vec::new();
        for one in &population.scenarios {
            let place = library.place(&one.scenario)?;
            choices.push(Choice { place, name: one.scenario.clone(), id: None });
        }
        let weights: Vec<_> = population.scenarios.iter().map(|one| one.weight).collect();
        let kind = match (population.steps.first(), quota) {
            (Some(Step::IterationsEach { users, iterations }), _) => {
                Kind::Each { users: own(*users), iterations: *iterations as u64 }
            }
            (Some(Step::IterationsShared { users, .. }), Some(quota)) => Kind::Shared { users: own(*users), quota },
            _ if population.is_open() => {
                let mut arrivals = UserArrivals::for_population(population, place, plan.seed, share);
                let next = arrivals.next();
                Kind::Open { arrivals: Box::new(arrivals), next, lasts_ns: nanoseconds(population.seconds()) }
            }
            _ => Kind::Closed { curve: Curve::new(&population.steps), target: 0, changes: Vec::new() },
        };
        let most = population.most_alive.unwrap_or(MOST_ALIVE);
        Ok(Self {
            limits: Limits {
                start_ns: nanoseconds(population.start_seconds),
                longest_ns: population.longest_seconds.map(nanoseconds),
                grace_ns: population.grace_seconds.map(nanoseconds),
                ramp_down_grace: population.ramp_down_grace_seconds,
            },
            reuses: population.reuse_users,
            most_alive: share.part_of(most) as usize,
            after: population.after,
            ..Self::of(kind, choices, share, Deal::new(&weights, seed ^ 0xca11))
        })
    }

    fn of(kind: Kind, choices: Vec<Choice>, share: Share, deal: Deal) -> Self {
        Self {
            kind,
            limits: Limits::default(),
            reuses: false,
            idle: VecDeque::new(),
            choices,
            most_alive: 1,
            after: None,
            share,
            chosen: 0,
            deal,
            dealt: 0,
            began: None,
            looked: false,
            alive: 0,
            closed: false,
            called_in: false,
            announced: false,
        }
    }

    /// One user for one iteration.
    fn once(place: u32, name: &str) -> Self {
        let choices = vec![Choice { place, name: name.to_owned(), id: None }];
        Self::of(Kind::Each { users: 1, iterations: 1 }, choices, Share::WHOLE, Deal::new(&[1.0], 0))
    }

    /// Takes changed numbers of users, each from a time on. Only populations with a given number of users follow them.
    fn change(&mut self, users: &[(Tick, u64)]) {
        if let Kind::Closed { changes, .. } = &mut self.kind {
            *changes = users.to_vec();
        }
    }

    /// The name of its scenario at this place in the script.
    fn scenario(&self, place: u32) -> Option<&str> {
        self.choices.iter().find(|choice| choice.place == place).map(|choice| choice.name.as_str())
    }

    /// Its scenarios: their places in the script, and their names.
    fn scenarios(&self) -> impl Iterator<Item = (u32, &str)> {
        self.choices.iter().map(|choice| (choice.place, choice.name.as_str()))
    }

    /// Begins with the load, unless it follows another population.
    fn begin_first(&mut self, now: Tick) {
        if self.after.is_none() {
            self.begin(now);
        }
    }

    /// Begins once its start has passed.
    fn begin(&mut self, now: Tick) {
        self.began = Some(now.saturating_add(self.limits.start_ns));
    }

    /// Whether its users come at a rate.
    fn is_open(&self) -> bool {
        matches!(self.kind, Kind::Open { .. })
    }

    /// Whether the last user has come and gone.
    fn is_over(&self) -> bool {
        self.closed && self.alive == 0
    }

    /// The population whose end it waits for.
    fn follows(&self) -> Option<usize> {
        if self.began.is_none() { self.after } else { None }
    }

    /// The time at which iterations stop, where a time stops them.
    fn ends(&self) -> Option<Tick> {
        let lasts_ns = match &self.kind {
            Kind::Closed { curve, .. } => Some(nanoseconds(curve.seconds())),
            Kind::Open { lasts_ns, .. } => Some(*lasts_ns),
            Kind::Each { .. } | Kind::Shared { .. } => self.limits.longest_ns,
        };
        Some(self.began?.saturating_add(lasts_ns?))
    }

    /// The time at which iterations under way are cut off, where its users have a grace.
    fn cut(&self) -> Option<Tick> {
        Some(self.ends()?.saturating_add(self.limits.grace_ns?))
    }

    /// Whether the time for counted iterations is up.
    fn is_out_of_time(&self, now: Tick) -> bool {
        self.limits.longest_ns.is_some() && self.ends().is_some_and(|end| now >= end)
    }

    /// How many of its users have had their grace at `now`: all of them, or those by which there are more than were
    /// wanted at any time of a grace. A changed number of users takes none away.
    fn beyond_grace(&self, now: Tick) -> CutOffUsers {
        if self.limits.stop_nobody() {
            return CutOffUsers::Nobody;
        }
        if self.alive > 0 && self.cut().is_some_and(|cut| now >= cut) {
            return CutOffUsers::All;
        }
        let (Kind::Closed { curve, target, changes }, Some(began), Some(grace)) =
            (&self.kind, self.began, self.limits.ramp_down_grace)
        else {
            return CutOffUsers::Nobody;
        };
        if self.alive <= *target || !changes.is_empty() {
            return CutOffUsers::Nobody;
        }
        let at = seconds(now.since(began));
        let wanted = self.share.part_of((curve.most_users(at - grace, at) + 1e-6) as u64);
        match self.alive.saturating_sub(wanted as usize) {
            0 => CutOffUsers::Nobody,
            users => CutOffUsers::Some(users),
        }
    }

    /// When iterations have to be stopped, or cut off, next.
    fn next_limit(&self, now: Tick) -> Tick {
        if self.limits.stop_nobody() {
            return Tick::NEVER;
        }
        let cut = self.cut().filter(|_| self.alive > 0);
        let end = self.ends().filter(|_| self.limits.longest_ns.is_some() && !self.called_in);
        let falls = match (&self.kind, self.began, self.limits.ramp_down_grace) {
            (Kind::Closed { curve, target, .. }, Some(began), Some(grace)) if self.alive > *target => {
                let next = curve.next_change((seconds(now.since(began)) - grace).max(0.0));
                Some(began + nanoseconds(next + grace)).filter(|at| *at > now)
            }
            _ => None,
        };
        [cut, end, falls].into_iter().flatten().fold(Tick::NEVER, Tick::min)
    }

    /// Whether every present user iterates again, as far as that is certain without asking for each.
    fn wants_all(&self) -> bool {
        matches!(&self.kind, Kind::Closed { target, .. } if !self.closed && self.alive <= *target)
    }

    /// The time at which a user comes, or may have to go.
    fn next_wake(&self, now: Tick) -> Tick {
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
            Kind::Each { .. } | Kind::Shared { .. } => began.max(now),
        }
    }

    /// The scenario for its next user: its place in the script, and the name by which it is counted.
    fn choose(&mut self, recorder: &mut Recorder) -> (u32, Option<NameId>) {
        let mut part = 0;
        if self.choices.len() > 1 {
            // Dealt by the user's number over all workers, so that a user has the same scenario on any worker.
            let number = self.share.number(self.chosen).unwrap_or(self.chosen);
            while self.dealt <= number {
                part = self.deal.next_part();
                self.dealt += 1;
            }
        }
        self.chosen += 1;
        let Some(choice) = self.choices.get_mut(part) else { return (0, None) };
        let id = *choice.id.get_or_insert_with(|| recorder.snapshot.figures.scenarios.id(&choice.name));
        (choice.place, Some(id))
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / brunt_record::SECOND_NS as f64
}

/// Rounds up, so that the result is never before the given time.
fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).ceil() as u64
}

/// A user who comes.
pub(super) struct Arrival {
    pub(super) who: UserIdentity,
    /// The user who comes again, if it was there before.
    pub(super) again: Option<UserId>,
    /// When it was due, if it comes at a rate.
    pub(super) due: Option<Tick>,
    /// The number of its iterations, if they are counted.
    pub(super) iterations: Option<u64>,
}

/// The users whose iterations are cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CutOffUsers {
    Nobody,
    /// So many of those in an iteration.
    Some(usize),
    All,
}

/// What a population does next.
pub(super) enum Admission {
    /// A user comes.
    Comes(Arrival),
    /// Its time is over: users between two iterations are told that no other follows.
    CallsIn,
    /// Nobody arrives any more: these users, who are idle, end.
    Retires(VecDeque<UserId>),
    /// Nothing for now.
    Nothing,
}

/// A worker's shares of all populations.
pub(super) struct PopulationShares {
    list: Vec<PopulationShare>,
    /// What the shares of all workers have in common.
    among: AmongWorkers,
    /// The number of the next user, and the worker's share, by which users are numbered.
    next_id: u64,
    share: Share,
    /// Users alive, of all populations.
    alive: usize,
    /// How long users may go on after the end of a closed injection, in nanoseconds.
    grace_ns: u64,
}

impl PopulationShares {
    /// One worker's share of the populations.
    ///
    /// # Errors
    /// When the script has none of the scenarios that the plan names.
    pub(super) fn new(
        scenarios: &Scenarios,
        library: &dyn Library,
        plan: &Plan,
        share: Share,
        among: &AmongWorkers,
    ) -> Result<Self, ScriptError> {
        let mut list = Vec::new();
        for (place, population) in scenarios.populations.iter().enumerate() {
            list.push(PopulationShare::new(population, place, library, plan, share, among.quota(place))?);
        }
        Ok(Self { list, among: among.clone(), next_id: share.index() + 1, share, alive: 0, grace_ns: plan.drain_ns })
    }

    /// One user, who goes once through the scenario with this place in the script.
    pub(super) fn once(place: u32, name: &str, plan: &Plan) -> Self {
        Self {
            list: vec![PopulationShare::once(place, name)],
            among: AmongWorkers::of_one(),
            next_id: 1,
            share: Share::WHOLE,
            alive: 0,
            grace_ns: plan.drain_ns,
        }
    }

    /// The populations that follow no other begin.
    pub(super) fn begin(&mut self, began: Tick) {
        self.list.iter_mut().for_each(|population| population.begin_first(began));
    }

    /// Takes changed numbers of users, each from a time on.
    pub(super) fn change(&mut self, users: &[(Tick, u64)]) {
        self.list.iter_mut().for_each(|population| population.change(users));
    }

    /// The scenarios of all populations: their places in the script, and their names.
    pub(super) fn scenarios(&self) -> impl Iterator<Item = (u32, &str)> {
        self.list.iter().flat_map(PopulationShare::scenarios)
    }

    /// The name of a user's scenario.
    pub(super) fn scenario(&self, who: &UserIdentity) -> Option<&str> {
        self.list.get(who.population)?.scenario(who.place)
    }

    /// The places of all populations.
    pub(super) fn places(&self) -> std::ops::Range<usize> {
        0..self.list.len()
    }

    /// Whether users of a population may come at `now`. It begins if what it waits for has ended.
    pub(super) fn opens(&mut self, place: usize, now: Tick) -> bool {
        let after = self.list.get(place).and_then(|population| population.after);
        let may_begin = after.is_none_or(|after| self.among.is_over(after));
        let Some(population) = self.list.get_mut(place) else { return false };
        if population.began.is_none() && may_begin {
            population.begin(now);
        }
        let opens = population.began.is_some_and(|began| began <= now) && !population.closed;
        population.looked |= opens;
        opens
    }

    /// Whether users of a population came at a rate before `until`.
    pub(super) fn came_before(&self, place: usize, until: Tick) -> bool {
        let comes = |population: &PopulationShare| {
            population.is_open() && population.began.is_some_and(|began| began < until) && !population.closed
        };
        self.list.get(place).is_some_and(comes)
    }

    /// Whether the time for counted iterations of a population is up. True once.
    pub(super) fn runs_out_of_time(&mut self, place: usize, now: Tick) -> bool {
        let Some(population) = self.list.get_mut(place) else { return false };
        !population.called_in && population.is_out_of_time(now) && {
            (population.closed, population.called_in) = (true, true);
            true
        }
    }

    /// How many users of a population have had their grace at `now`.
    pub(super) fn beyond_grace(&self, place: usize, now: Tick) -> CutOffUsers {
        self.list.get(place).map_or(CutOffUsers::Nobody, |population| population.beyond_grace(now))
    }

    /// Tells the other workers, once, that a population has ended here.
    pub(super) fn announce(&mut self, place: usize) {
        if let Some(population) = self.list.get_mut(place)
            && population.is_over()
            && !population.announced
        {
            population.announced = true;
            self.among.ended(place);
        }
    }

    /// What a population does next at `now`.
    pub(super) fn admit(&mut self, place: usize, now: Tick, loading: &Loading, recorder: &mut Recorder) -> Admission {
        while let Some(population) = self.list.get_mut(place) {
            let Some(began) = population.began else { return Admission::Nothing };
            let mut iterations = None;
            let is_late = population.is_out_of_time(now);
            let due = match &mut population.kind {
                Kind::Open { arrivals, next, .. } => {
                    let Some(at) = *next else {
                        population.closed = true;
                        return Admission::Retires(std::mem::take(&mut population.idle));
                    };
                    if began + at > now {
                        return Admission::Nothing;
                    }
                    *next = arrivals.next();
                    if loading.is_paused(began + at) {
                        // A user who would have come during a pause is not due, and keeps its number.
                        population.chosen += 1;
                        continue;
                    }
                    if population.alive >= population.most_alive && population.idle.is_empty() {
                        if let (_, Some(id)) = population.choose(recorder) {
                            recorder.snapshot.figures.scenarios.at(id).not_admitted += 1;
                        }
                        continue;
                    }
                    Some(began + at)
                }
                Kind::Closed { curve, target, changes } => {
                    let at = seconds(now - began);
                    if at >= curve.seconds() {
                        (*target, population.closed) = (0, true);
                        return Admission::CallsIn;
                    }
                    // A ramp between whole numbers of users may compute a number just below a whole one.
                    let planned = (curve.users_at(at) + 1e-6) as u64;
                    let wanted = changes.iter().rfind(|(at, _)| *at <= now).map_or(planned, |(_, users)| *users);
                    *target = population.share.part_of(wanted) as usize;
                    if population.alive >= (*target).min(population.most_alive) {
                        return Admission::Nothing;
                    }
                    None
                }
                Kind::Each { users, iterations: each } => {
                    if *users == 0 || is_late {
                        population.closed = true;
                        return Admission::Nothing;
                    }
                    *users -= 1;
                    iterations = Some(*each);
                    None
                }
                Kind::Shared { users, quota } => {
                    if *users == 0 || is_late || quota.take().is_none() {
                        population.closed = true;
                        return Admission::Nothing;
                    }
                    *users -= 1;
                    None
                }
            };
            let (in_script, Some(scenario)) = population.choose(recorder) else { continue };
            let who = UserIdentity { id: self.next_id, population: place, place: in_script, scenario };
            if let Some(user) = population.idle.pop_front() {
                return Admission::Comes(Arrival { who, again: Some(user), due, iterations });
            }
            population.alive += 1;
            self.alive += 1;
            self.next_id += self.share.count();
            let figures = &mut recorder.snapshot.figures;
            figures.scenarios.at(scenario).users_started += 1;
            figures.most_users = figures.most_users.max(self.among.came());
            return Admission::Comes(Arrival { who, again: None, due, iterations });
        }
        Admission::Nothing
    }

    /// A user of a population is gone.
    pub(super) fn went(&mut self, place: usize) {
        self.alive -= 1;
        self.among.went();
        if let Some(population) = self.list.get_mut(place) {
            population.alive -= 1;
        }
    }

    /// Whether there are more users than wanted, or their time is up, so that one between two iterations begins no other.
    #[inline]
    pub(super) fn has_surplus(&self, place: usize, now: Tick) -> bool {
        self.list.get(place).is_some_and(|population| match &population.kind {
            Kind::Closed { target, .. } => population.closed || population.alive > *target,
            Kind::Open { .. } => false,
            Kind::Each { .. } | Kind::Shared { .. } => population.is_out_of_time(now),
        })
    }

    /// Keeps a user whose iteration ended with `outcome` for a later arrival, where its population reuses users. Returns
    /// whether it does.
    pub(super) fn keeps(&mut self, place: usize, user: UserId, outcome: Outcome) -> bool {
        let Some(population) = self.list.get_mut(place) else { return false };
        let keeps = population.reuses && !population.closed && outcome != Outcome::Left;
        if keeps {
            population.idle.push_back(user);
        }
        keeps
    }

    /// Whether every present user iterates again, as far as that is certain without asking for each.
    pub(super) fn wants_all(&self, place: usize) -> bool {
        self.list.get(place).is_some_and(PopulationShare::wants_all)
    }

    /// Whether a user whose iteration ended with `outcome` begins another, of which it had this many `left` if they are
    /// counted.
    pub(super) fn goes_on(&mut self, place: usize, outcome: Outcome, left: &mut Option<u64>, now: Tick) -> bool {
        let Some(population) = self.list.get_mut(place) else { return false };
        if outcome == Outcome::Left || population.is_out_of_time(now) {
            return false;
        }
        match &mut population.kind {
            Kind::Open { .. } => false,
            Kind::Closed { target, .. } => !population.closed && population.alive <= *target,
            Kind::Each { .. } => {
                let others = left.unwrap_or(0).saturating_sub(1);
                *left = Some(others);
                others > 0
            }
            Kind::Shared { quota, .. } => quota.take().is_some(),
        }
    }

    /// Closes a population whose data is used up: no user joins it any more, and present users end with their
    /// iteration. Returns those who are idle.
    pub(super) fn exhaust(&mut self, place: usize) -> VecDeque<UserId> {
        let Some(population) = self.list.get_mut(place) else { return VecDeque::new() };
        population.closed = true;
        match &mut population.kind {
            Kind::Open { next, .. } => *next = None,
            Kind::Closed { target, .. } => *target = 0,
            Kind::Each { users, .. } | Kind::Shared { users, .. } => *users = 0,
        }
        std::mem::take(&mut population.idle)
    }

    /// When a population has to be looked at, at the latest.
    pub(super) fn next_wake(&self, now: Tick) -> Tick {
        let wake = |population: &PopulationShare| {
            let before = population.follows().and_then(|before| Some((before, self.list.get(before)?)));
            match before {
                _ if population.is_over() && !population.announced => now,
                Some((place, before)) if before.is_over() => {
                    if self.among.is_over(place) {
                        now
                    } else {
                        now + LOOK_NS
                    }
                }
                _ => population.next_wake(now).min(population.next_limit(now)),
            }
        };
        self.list.iter().map(wake).fold(Tick::NEVER, Tick::min)
    }

    /// Whether every population has ended and its users are gone, or had their time to finish.
    pub(super) fn have_ended(&self, now: Tick) -> bool {
        let over = self.list.iter().all(PopulationShare::is_over);
        let cut = |population: &PopulationShare| {
            let is_timed = matches!(population.kind, Kind::Closed { .. }) && population.limits.grace_ns.is_none();
            population.is_over() || is_timed && population.ends().is_some_and(|end| now >= end + self.grace_ns)
        };
        over && self.alive == 0 || self.list.iter().all(cut)
    }
}
