//! Scenarios in a plan: the script with all of its files, and the users who carry it out.
//!
//! A *population* is the users of one injection; each of them carries out one of its scenarios. Injections are open
//! (users come at times of their own, each for one iteration) or closed (a number of users is there, each iterating).

use std::collections::BTreeMap;
use std::fmt;

use brunt_record::SECOND_NS;
use brunt_record::figures::{OwnKind, ScenarioFigures};
use serde::{Deserialize, Serialize, Serializer};

use crate::arrivals::Spread;
use crate::content::Content;
use crate::hosts::Hosts;
use crate::profile::Profile;
use crate::secret::{Template, shown_url};

/// The most users of one step of an injection, at a time or alive at once.
pub const MOST_USERS: f64 = 1e7;
/// The most users of a population alive at once, unless the script sets another limit.
pub const MOST_ALIVE: u64 = 100_000;
/// The most users, or iterations, a second.
pub const HIGHEST_RATE: f64 = 1e7;
/// How long setup, or teardown, may take unless a plan says otherwise, in nanoseconds.
pub const ASIDE_TIMEOUT_NS: u64 = 60 * SECOND_NS;
/// The longest that a step may last, in seconds: 720 hours.
pub const LONGEST_SECONDS: f64 = 720.0 * 3600.0;

#[expect(clippy::ref_option, reason = "serde gives it so")]
fn without_secrets<S: Serializer>(url: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    url.as_deref().map(shown_url).serialize(serializer)
}

/// The scenarios of a run, and the number of their users.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Scenarios {
    /// The script, the modules that it requires and the data that it reads: the script first.
    pub files: Vec<File>,
    /// The files that the script streams from disk, which do not travel with the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streamed: Vec<Streamed>,
    /// The values of `brunt.env`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, String>"))]
    pub env: BTreeMap<String, Template>,
    /// Replaces the base of the script's first client, and of those with the same base.
    ///
    /// Stored without secrets, see [`shown_url`].
    #[serde(default, serialize_with = "without_secrets")]
    pub base_url: Option<String>,
    /// The populations: who comes when.
    pub populations: Vec<Population>,
    /// The most calls a second, over all users.
    #[serde(default)]
    pub throttle: Option<Profile>,
    /// Connections of the smallest pool that a client of the script shares among all users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_pool: Option<u32>,
    /// Hosts that others stand for, and hosts that nobody may call.
    #[serde(default, skip_serializing_if = "Hosts::is_empty")]
    pub hosts: Hosts,
    /// The figures that the script declares for itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<DeclaredFigure>,
    /// The share of calls that have a `traceparent`, above 0 and up to 1; `None` for no calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_ratio: Option<f64>,
    /// How long the script's setup may take, in nanoseconds; 60 s if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup_timeout_ns: Option<u64>,
    /// How long the script's teardown may take, in nanoseconds; 60 s if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teardown_timeout_ns: Option<u64>,
}

/// A figure that a script declares for itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "independent properties, each a field of the plan")]
pub struct DeclaredFigure {
    /// Its name.
    pub name: String,
    /// Its kind: `counter`, `rate`, `trend` or `gauge`.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub kind: OwnKind,
    /// The unit of its values; empty for plain numbers. The limits of figures in `s`, `ms` or `us` may be durations.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// Whether a report begins with it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub leads: bool,
    /// Whether charts have it: over time in a run, and over the load in several.
    #[serde(default, skip_serializing_if = "is_false")]
    pub drawn: bool,
    /// Whether it counts good calls, which stop growing with the load at some point: the knee that decisions name.
    #[serde(default, skip_serializing_if = "is_false")]
    pub has_knee: bool,
    /// The remark that reports make on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<DeclaredRemark>,
    /// Whether only the whole report shows it (`-v`).
    #[serde(default, skip_serializing_if = "is_false")]
    pub minor: bool,
    /// Whether its thresholds hold where nothing was recorded.
    #[serde(default, skip_serializing_if = "is_false")]
    pub holds_unrecorded: bool,
}

/// A remark on a figure of a protocol's own that makes up a large share of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DeclaredRemark {
    /// The figure that the share is of: its sum, or its number of values where it has no sum.
    pub of: String,
    /// The share, in percent, from which reports make the remark.
    pub from_percent: u32,
    /// The observation, behind the share: `17% ` and this.
    pub message: String,
}

impl DeclaredFigure {
    /// A figure among the others of a report, whose thresholds fail where nothing was recorded.
    pub fn new(name: &str, kind: OwnKind, unit: &str) -> Self {
        let (name, unit) = (name.to_owned(), unit.to_owned());
        Self {
            name,
            kind,
            unit,
            leads: false,
            drawn: false,
            has_knee: false,
            remark: None,
            minor: false,
            holds_unrecorded: false,
        }
    }

    /// Whether this is its name, or the name of its values with some tags: `basket{page=a}` of `basket`.
    pub fn is_called(&self, name: &str) -> bool {
        let tags = name.strip_prefix(self.name.as_str());
        tags.is_some_and(|tags| tags.is_empty() || tags.starts_with('{') && tags.ends_with('}'))
    }
}

impl fmt::Debug for Scenarios {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            files,
            streamed,
            env,
            base_url,
            populations,
            throttle,
            smallest_pool,
            hosts,
            own,
            trace_ratio,
            setup_timeout_ns,
            teardown_timeout_ns,
        } = self;
        f.debug_struct("Scenarios")
            .field("files", files)
            .field("streamed", streamed)
            .field("env", env)
            .field("base_url", &base_url.as_deref().map(shown_url))
            .field("populations", populations)
            .field("throttle", throttle)
            .field("smallest_pool", smallest_pool)
            .field("hosts", hosts)
            .field("own", own)
            .field("trace_ratio", trace_ratio)
            .field("setup_timeout_ns", setup_timeout_ns)
            .field("teardown_timeout_ns", teardown_timeout_ns)
            .finish()
    }
}

/// A file that travels with the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Its name in the script; for the script itself, the name as given.
    pub name: String,
    /// Its content.
    pub content: Content,
}

/// A file that is read from disk, row by row, where the plan is carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Streamed {
    /// Its name in the script: a path beside the script.
    pub name: String,
    /// Its size, which tells it from another file of this name.
    pub bytes: u64,
}

/// The users of one injection.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Population {
    /// Their scenarios: each user carries out one of these, chosen by weight.
    pub scenarios: Vec<Weighted>,
    /// The steps of their arrival, one after the other.
    pub steps: Vec<Step>,
    /// How the arrivals of rates are spread.
    #[serde(default)]
    pub arrivals: Spread,
    /// The most of them alive at once; a user who comes when there is no place is not admitted.
    #[serde(default)]
    pub most_alive: Option<u64>,
    /// The index of the population after whose end this one begins.
    #[serde(default)]
    pub after: Option<usize>,
    /// Open: an arrival is an iteration of a user that has ended its last one, with its state and its connections; only
    /// where none is idle does a new user come. Users end when nobody arrives any more.
    #[serde(default, skip_serializing_if = "is_false")]
    pub reuse_users: bool,
    /// How long it waits before it begins, in seconds: after the load began, or after the population before it ended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub start_seconds: f64,
    /// Iterations: how long after its beginning the last of them may begin, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_seconds: Option<f64>,
    /// How long iterations may go on after its end before they are cut off, in seconds. Without it, arrivals and counted
    /// iterations are waited for, and other users have as long as the run's drain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_seconds: Option<f64>,
    /// How long a user that is wanted no more, as the number of users falls, may go on before its iteration is cut off, in
    /// seconds. Without it, its iteration is waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramp_down_grace_seconds: Option<f64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(seconds: &f64) -> bool {
    *seconds == 0.0
}

/// A scenario by its name, with its weight: the share of a population's users who carry it out, relative to the other
/// weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Weighted {
    /// The scenario's name.
    pub scenario: String,
    /// Above 0.
    pub weight: f64,
}

/// A step of an injection.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum Step {
    /// No arrivals.
    NothingFor {
        /// How long.
        seconds: f64,
    },
    /// Open: all users come in the same moment.
    AtOnce {
        /// How many.
        users: f64,
    },
    /// Open: users come at a rate, which is constant or changes linearly.
    Rate {
        /// Users a second where it begins.
        from: f64,
        /// Users a second where it ends.
        to: f64,
        /// How long.
        seconds: f64,
    },
    /// Open: users come slowly, then fast, then slowly again: their number follows 3x² − 2x³.
    Peak {
        /// How many.
        users: f64,
        /// How long.
        seconds: f64,
    },
    /// Closed: this many users are there, constant or changing linearly; each begins anew when it has ended.
    Users {
        /// Their number where it begins.
        from: f64,
        /// Their number where it ends.
        to: f64,
        /// How long.
        seconds: f64,
    },
    /// Closed: each user makes this many iterations. The only step of its injection.
    IterationsEach {
        /// How many users.
        users: f64,
        /// How often each.
        iterations: f64,
    },
    /// Closed: users share this many iterations. The only step of its injection.
    IterationsShared {
        /// How many users.
        users: f64,
        /// How many iterations in all.
        iterations: f64,
    },
}

/// A constant load that takes the place of a script's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ConstantLoad {
    /// Iterations begin at this rate, whatever they take.
    Iterations {
        /// How many a second.
        per_s: f64,
        /// The most users alive at once; `None` for the script's limit.
        most_alive: Option<u64>,
        /// As in [`Population`]; users that are reused already still are.
        reuse_users: bool,
    },
    /// This many users are there, each beginning anew when it has ended.
    Users(f64),
}

/// An injection that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InjectionError(String);

impl Step {
    /// Its length in seconds; 0 for iterations, as their duration is unknown.
    pub fn seconds(&self) -> f64 {
        match *self {
            Self::NothingFor { seconds }
            | Self::Rate { seconds, .. }
            | Self::Peak { seconds, .. }
            | Self::Users { seconds, .. } => seconds,
            Self::AtOnce { .. } | Self::IterationsEach { .. } | Self::IterationsShared { .. } => 0.0,
        }
    }

    fn is_open(&self) -> Option<bool> {
        match self {
            Self::NothingFor { .. } => None,
            Self::AtOnce { .. } | Self::Rate { .. } | Self::Peak { .. } => Some(true),
            Self::Users { .. } | Self::IterationsEach { .. } | Self::IterationsShared { .. } => Some(false),
        }
    }

    fn counts_iterations(&self) -> bool {
        matches!(self, Self::IterationsEach { .. } | Self::IterationsShared { .. })
    }

    fn validate(&self) -> Result<(), InjectionError> {
        let within = |what: &str, value: f64, least: f64, most: f64| {
            if (least..=most).contains(&value) {
                return Ok(());
            }
            Err(InjectionError(format!("{what} must be between {least} and {most}, not {value}")))
        };
        let length = |seconds: f64| {
            if seconds > 0.0 && seconds <= LONGEST_SECONDS {
                return Ok(());
            }
            Err(InjectionError(format!("a length must be above 0 and at most 720h, not {seconds} seconds")))
        };
        match *self {
            Self::NothingFor { seconds } => length(seconds),
            Self::AtOnce { users } => within("users", users, 1.0, MOST_USERS),
            Self::Rate { from, to, seconds } => within("a rate", from, 0.0, HIGHEST_RATE)
                .and_then(|()| within("a rate", to, 0.0, HIGHEST_RATE))
                .and_then(|()| length(seconds)),
            Self::Peak { users, seconds } => within("users", users, 1.0, 1e9).and_then(|()| length(seconds)),
            Self::Users { from, to, seconds } => within("users", from, 0.0, MOST_USERS)
                .and_then(|()| within("users", to, 0.0, MOST_USERS))
                .and_then(|()| length(seconds)),
            Self::IterationsEach { users, iterations } | Self::IterationsShared { users, iterations } => {
                within("users", users, 1.0, MOST_USERS).and_then(|()| within("iterations", iterations, 1.0, 1e12))
            }
        }
    }

    /// Multiplies users, rates and shared iterations by `factor`.
    fn scaled(self, factor: f64) -> Self {
        let count = |n: f64| (n * factor).round().max(1.0);
        match self {
            Self::NothingFor { .. } => self,
            Self::AtOnce { users } => Self::AtOnce { users: count(users) },
            Self::Rate { from, to, seconds } => Self::Rate { from: from * factor, to: to * factor, seconds },
            Self::Peak { users, seconds } => Self::Peak { users: count(users), seconds },
            Self::Users { from, to, seconds } => {
                Self::Users { from: (from * factor).round(), to: (to * factor).round(), seconds }
            }
            Self::IterationsEach { users, iterations } => Self::IterationsEach { users: count(users), iterations },
            Self::IterationsShared { users, iterations } => {
                Self::IterationsShared { users: count(users), iterations: count(iterations) }
            }
        }
    }

    /// Multiplies its length by `factor`: rates and numbers of users stay the same, and so do users who come at once.
    fn stretched(mut self, factor: f64) -> Self {
        match &mut self {
            Self::NothingFor { seconds }
            | Self::Rate { seconds, .. }
            | Self::Peak { seconds, .. }
            | Self::Users { seconds, .. } => *seconds *= factor,
            Self::AtOnce { .. } | Self::IterationsEach { .. } | Self::IterationsShared { .. } => {}
        }
        self
    }
}

impl Population {
    /// The names of its scenarios: `a`, or `a, b` of a mix.
    pub fn name(&self) -> String {
        self.scenarios.iter().map(|one| one.scenario.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Whether its users come at times of their own, each for one iteration.
    pub fn is_open(&self) -> bool {
        self.steps.iter().find_map(Step::is_open).unwrap_or(true)
    }

    /// How long its injection lasts, in seconds, from its start; 0 for iterations and users who come at once.
    pub fn seconds(&self) -> f64 {
        self.steps.iter().map(Step::seconds).sum()
    }

    /// Whether its users make a number of iterations.
    pub fn counts_iterations(&self) -> bool {
        self.steps.iter().any(Step::counts_iterations)
    }

    /// Its highest rate, or its most users at a time.
    fn peak(&self) -> f64 {
        let of = |step: &Step| match *step {
            Step::NothingFor { .. } => 0.0,
            Step::AtOnce { users }
            | Step::Peak { users, .. }
            | Step::IterationsEach { users, .. }
            | Step::IterationsShared { users, .. } => users,
            Step::Rate { from, to, .. } | Step::Users { from, to, .. } => from.max(to),
        };
        self.steps.iter().map(of).fold(0.0, f64::max)
    }

    /// Replaces its steps by its share of a constant load.
    fn make_constant(&mut self, load: ConstantLoad, share: f64, seconds: f64) {
        let whole = |n: f64| (n * share).round().max(1.0);
        let step = match load {
            ConstantLoad::Iterations { per_s, most_alive, reuse_users } => {
                self.most_alive = most_alive.map(|most| whole(most as f64) as u64).or(self.most_alive);
                self.reuse_users |= reuse_users;
                Step::Rate { from: per_s * share, to: per_s * share, seconds }
            }
            ConstantLoad::Users(users) => {
                self.most_alive = None;
                Step::Users { from: whole(users), to: whole(users), seconds }
            }
        };
        (self.steps, self.after, self.start_seconds) = (vec![step], None, 0.0);
        self.leave_out_what_does_not_fit();
    }

    /// Drops options that are for other steps than it has.
    fn leave_out_what_does_not_fit(&mut self) {
        let (is_open, counts) = (self.is_open(), self.counts_iterations());
        self.reuse_users &= is_open;
        self.longest_seconds = self.longest_seconds.filter(|_| counts);
        self.ramp_down_grace_seconds = self.ramp_down_grace_seconds.filter(|_| !is_open && !counts);
    }

    fn validate(&self) -> Result<(), InjectionError> {
        if self.steps.iter().all(|step| matches!(step, Step::NothingFor { .. })) {
            return Err(InjectionError(
                "nobody ever comes: give it a step such as brunt.users(10, \"30s\")".to_owned(),
            ));
        }
        self.steps.iter().try_for_each(Step::validate)?;
        let kinds: Vec<_> = self.steps.iter().filter_map(Step::is_open).collect();
        if kinds.iter().any(|open| Some(open) != kinds.first()) {
            return Err(InjectionError(
                "open steps (at_once, rate, …) and closed ones (users, iterations, …) cannot go together: the former say \
                 when users come, the latter how many there are"
                    .to_owned(),
            ));
        }
        if self.steps.len() > 1 && self.counts_iterations() {
            return Err(InjectionError(
                "iterations are the only step of their injection: start = \"10s\" lets them begin later".to_owned(),
            ));
        }
        if self.scenarios.is_empty() || self.scenarios.iter().any(|one| one.weight.is_nan() || one.weight <= 0.0) {
            return Err(InjectionError("a weight must be above 0".to_owned()));
        }
        if self.most_alive == Some(0) {
            return Err(InjectionError("the most users alive must be above 0".to_owned()));
        }
        let lengths = [
            ("start", Some(self.start_seconds), 0.0),
            ("longest", self.longest_seconds, 1e-9),
            ("grace", self.grace_seconds, 0.0),
            ("ramp_down_grace", self.ramp_down_grace_seconds, 0.0),
        ];
        for (name, seconds, least) in lengths {
            if seconds.is_some_and(|seconds| !(least..=LONGEST_SECONDS).contains(&seconds)) {
                return Err(InjectionError(format!("{name} must be a length of at most 720h")));
            }
        }
        let refused = [
            (self.reuse_users && !self.is_open(), "reuse_users is for users who arrive: closed steps keep theirs"),
            (self.reuse_users && self.scenarios.len() > 1, "reuse_users is for one scenario, and not for a mix"),
            (self.longest_seconds.is_some() && !self.counts_iterations(), "longest is for steps that count iterations"),
            (
                self.ramp_down_grace_seconds.is_some() && (self.is_open() || self.counts_iterations()),
                "ramp_down_grace is for numbers of users, such as brunt.ramp_users(10, 0, \"30s\")",
            ),
        ];
        refused.iter().find(|(is_so, _)| *is_so).map_or(Ok(()), |(_, why)| Err(InjectionError((*why).to_owned())))
    }
}

impl Scenarios {
    /// Checks what can be checked without the script.
    ///
    /// # Errors
    /// Says which population is wrong and how.
    pub fn validate(&self) -> Result<(), InjectionError> {
        if self.files.is_empty() {
            return Err(InjectionError("there is no script".to_owned()));
        }
        if self.populations.is_empty() {
            return Err(InjectionError(
                "nobody ever comes: give a scenario users, such as :inject{ brunt.users(10, \"30s\") }".to_owned(),
            ));
        }
        self.hosts.validate().map_err(InjectionError)?;
        for (place, population) in self.populations.iter().enumerate() {
            let named = |problem: &str| InjectionError(format!("scenario {}: {problem}", population.name()));
            population.validate().map_err(|e| named(&e.0))?;
            if population.after.is_some_and(|after| after >= place) {
                return Err(named("what comes after another must be injected after it"));
            }
        }
        Ok(())
    }

    /// The users of this scenario who came, by its figures. Where users are reused, each iteration is an arrival.
    pub fn came(&self, name: &str, figures: &ScenarioFigures) -> u64 {
        let reuses = |population: &Population| {
            population.reuse_users && population.scenarios.iter().any(|one| one.scenario == name)
        };
        if self.populations.iter().any(reuses) { figures.iterations_begun() } else { figures.users_started }
    }

    /// The most workers, on all machines, that can keep the script's limits, and the limit behind that. Each worker
    /// keeps its own share of a limit, and needs at least one user, or one connection.
    pub fn most_workers(&self) -> Option<(u32, &'static str)> {
        let alive = self.populations.iter().filter_map(|population| population.most_alive).min();
        let alive = alive.map(|most| (u32::try_from(most).unwrap_or(u32::MAX), "most_alive"));
        let pool = self.smallest_pool.map(|most| (most, "pool"));
        alive.into_iter().chain(pool).min_by_key(|(most, _)| *most)
    }

    /// Replaces all users by one, who goes through each of the scenarios `names` once.
    pub fn make_single(&mut self, names: &[String]) {
        let once = |(place, name): (usize, &String)| Population {
            scenarios: vec![Weighted { scenario: name.clone(), weight: 1.0 }],
            steps: vec![Step::IterationsEach { users: 1.0, iterations: 1.0 }],
            after: place.checked_sub(1),
            ..Population::default()
        };
        self.populations = names.iter().enumerate().map(once).collect();
        self.throttle = None;
    }

    /// Keeps only the users who carry out one of the scenarios `names`. Populations that were to follow removed ones
    /// begin at once.
    pub fn keep(&mut self, names: &[String]) {
        let mut places = Vec::new();
        let mut kept = Vec::new();
        for mut population in std::mem::take(&mut self.populations) {
            if !names.contains(&population.name()) {
                population.scenarios.retain(|one| names.contains(&one.scenario));
            }
            let stays = !population.scenarios.is_empty();
            places.push(stays.then_some(kept.len()));
            if stays {
                population.after = population.after.and_then(|after| places.get(after).copied().flatten());
                kept.push(population);
            }
        }
        self.populations = kept;
    }

    /// Replaces the script's steps for the scenario `name`, or for the mix of that name (`a, b`), by these. A scenario
    /// that is part of a mix is taken out of it.
    pub fn inject(&mut self, name: &str, steps: Vec<Step>) {
        if let Some(population) = self.populations.iter_mut().find(|population| population.name() == name) {
            population.steps = steps;
            population.leave_out_what_does_not_fit();
            return;
        }
        for population in &mut self.populations {
            population.scenarios.retain(|one| one.scenario != name);
        }
        self.populations.push(Population {
            scenarios: vec![Weighted { scenario: name.to_owned(), weight: 1.0 }],
            steps,
            ..Population::default()
        });
    }

    /// Replaces the load by a constant one of `seconds`, which begins at once. Populations share it as they share the load that
    /// they have: by their highest rates, or by their most users.
    ///
    /// # Errors
    /// When one population has a rate and another a number of users: nothing says how they share one load.
    pub fn make_constant(&mut self, load: ConstantLoad, seconds: f64) -> Result<(), InjectionError> {
        if let [first, rest @ ..] = self.populations.as_slice()
            && let Some(other) = rest.iter().find(|other| other.is_open() != first.is_open())
        {
            let (open, closed) = if first.is_open() { (first, other) } else { (other, first) };
            return Err(InjectionError(format!(
                "scenario {} has a rate and {} a number of users, which one load cannot replace: choose one with --only {}",
                open.name(),
                closed.name(),
                open.name()
            )));
        }
        let whole: f64 = self.populations.iter().map(Population::peak).sum();
        for population in &mut self.populations {
            let share = if whole > 0.0 { population.peak() / whole } else { 1.0 };
            population.make_constant(load, share, seconds);
        }
        Ok(())
    }

    /// Multiplies the load by `factor`: users, rates, shared iterations and the throttle.
    pub fn scale(&mut self, factor: f64) {
        for population in &mut self.populations {
            for step in &mut population.steps {
                *step = step.scaled(factor);
            }
            population.most_alive = population.most_alive.map(|most| ((most as f64 * factor).round() as u64).max(1));
        }
        if let Some(throttle) = &self.throttle
            && let Ok(scaled) = throttle.scaled(factor)
        {
            self.throttle = Some(scaled);
        }
    }

    /// Changes the length to `seconds`, with every step and start in proportion, if any step has a length.
    pub fn stretch(&mut self, seconds: f64) {
        let whole = self.seconds();
        if whole > 0.0 {
            for population in &mut self.populations {
                population.start_seconds *= seconds / whole;
                for step in &mut population.steps {
                    *step = step.stretched(seconds / whole);
                }
            }
        }
    }

    /// The least length of all injections, in seconds: populations that come after others begin when these have ended.
    pub fn seconds(&self) -> f64 {
        let mut ends: Vec<f64> = Vec::new();
        for population in &self.populations {
            let begin = population.after.and_then(|after| ends.get(after)).copied().unwrap_or(0.0);
            let lasts = population.seconds();
            // What begins later and has no length of its own gives the run none.
            ends.push(begin + if lasts > 0.0 { population.start_seconds + lasts } else { 0.0 });
        }
        ends.into_iter().fold(0.0, f64::max)
    }
}

#[cfg(test)]
pub(crate) mod tests;
