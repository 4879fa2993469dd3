//! Scripts of virtual users: a program for the run, a library in each worker.

use std::sync::Arc;

use brunt_protocol::Scheme;
use brunt_protocol::plan::hosts::is_one_of;
use brunt_protocol::plan::secret::Template;
use brunt_protocol::plan::target::Target;
use brunt_protocol::record::figures::OwnFigures;
use brunt_protocol::record::time::Tick;
use brunt_protocol::scenario::{Caller, Value};
use brunt_protocol::source::Heartbeat;

use crate::{Operation, Resumption, ScriptError, Verdict};

/// The script of a plan's virtual users, before any worker has run it.
pub trait Program: Send + Sync {
    /// Goes once through the scenarios of these names with made-up answers, without any effect outside of the script.
    ///
    /// # Errors
    /// With file and line of what is misspelt, or that there is no such scenario.
    fn rehearse(&self, scenarios: &[&str]) -> Result<(), ScriptError>;

    /// Runs the script for this worker (its number over all machines), as a state in which users can live.
    ///
    /// # Errors
    /// With file, line and traceback of what is wrong.
    fn begin(&self, worker: u32) -> Result<Box<dyn Library>, ScriptError>;
}

/// How long a connection carries the calls of a client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KeepAlive {
    /// As long as its user lives, or the run, where users share it.
    #[default]
    Kept,
    /// Until its user's iteration ends. Connections that users share, or hold, are kept.
    Iteration,
    /// For one call.
    Call,
}

/// The certificate that a client shows.
#[derive(Clone)]
pub struct Identity {
    /// The certificate chain in PEM.
    pub certificate_pem: String,
    /// Its private key in PEM; `@NAME` takes it from the environment.
    pub key_pem: Template,
    /// The hosts to which it is shown, such as `api.example` or `*.example`; all if there are none.
    pub hosts: Vec<String>,
}

impl Identity {
    /// Whether it is shown to this host.
    pub fn is_for(&self, host: &str) -> bool {
        self.hosts.is_empty() || is_one_of(&self.hosts, host)
    }
}

/// A client that a script has made, with the place that its calls go to.
#[derive(Clone)]
pub struct ScriptClient {
    /// Encodes its calls and reads their answers.
    pub caller: Arc<dyn Caller>,
    /// Where its calls go by default.
    pub base: Option<Target>,
    /// Whether the base was found in a rehearsal, and not declared: where it has no address, calls fail and the run goes on.
    pub is_base_found: bool,
    /// The schemes of its protocol.
    pub schemes: Vec<Scheme>,
    /// The most connections that a user may have to one origin.
    pub per_user: u32,
    /// The number of connections that all users share, over all workers; `None` if each user has its own.
    pub pool: Option<u32>,
    /// Whether shared connections are made one after the other, as the earlier ones are full.
    pub grows: bool,
    /// The most calls in flight on one of its connections, as far as its protocol allows.
    pub pipeline: u32,
    /// The timeout of its calls, in nanoseconds, if it differs from the plan's.
    pub timeout_ns: Option<u64>,
    /// How long its connections carry calls.
    pub keep_alive: KeepAlive,
    /// The certificates that it shows, where it has others than the plan's: to each host the first that is for it.
    pub identities: Vec<Identity>,
}

/// A worker's state of a script, in which its users live. Each user has a slot, and is called by the slot's number.
///
/// A user's iteration begins with [`begin_iteration`](Self::begin_iteration), which returns the first [`Operation`]
/// that the user wants. The engine does it and passes the result to [`resume`](Self::resume), which returns the next
/// operation, until one ends the iteration.
///
/// A library lives on one thread and is called from nowhere else. Its methods take `&self`, since the result that a
/// user is resumed with may be borrowed from something beside the library. They never block. A mistake of the script is
/// an [`Operation::Failed`], not a panic.
pub trait Library: Send {
    /// The clients that the script has made: calls name them by their index. They stay the same from [`Program::begin`]
    /// on.
    fn clients(&self) -> Vec<ScriptClient>;

    /// The number of the scenario with this name.
    ///
    /// # Errors
    /// When there is none.
    fn place(&self, name: &str) -> Result<u32, ScriptError>;

    /// Where the function of the scenario with this number is written, such as `shop.lua:12`; `None` where that is not known.
    fn written_at(&self, _place: u32) -> Option<String> {
        None
    }

    /// Makes `setup` or `teardown` a scenario and returns its number; `None` if the script has no such function.
    ///
    /// # Errors
    /// When the script cannot be asked.
    fn once(&self, which: &str) -> Result<Option<u32>, ScriptError>;

    /// The value that setup has returned, for the other workers and machines.
    ///
    /// # Errors
    /// When it has more than plain values.
    fn given(&self) -> Result<Value<'static>, ScriptError>;

    /// Gives the scenarios the value that setup has returned.
    ///
    /// # Errors
    /// When the script cannot take it.
    fn give(&self, given: &Value<'_>) -> Result<(), ScriptError>;

    /// Reports each check that holds by [`Operation::CheckPassed`], in place of counting them only.
    fn trace(&self);

    /// Takes the heart by which its functions are watched. A language whose functions it can interrupt shows by it that they go on, so that
    /// they are not left behind, and ends by itself those that take too long.
    fn take_heart(&self, _heart: &Heartbeat) {}

    /// Begins an iteration of the user in this slot at `now`, in nanoseconds; of a new one, with this number (from 1) and scenario.
    fn begin_iteration(&self, slot: u32, now: Tick, id: u64, place: u32) -> Operation;

    /// Whether users of some scenario do something last, by [`begin_stop`](Self::begin_stop).
    fn stops(&self) -> bool {
        false
    }

    /// Begins the last function of the user in this slot, as an iteration that is not counted; `None` if its scenario
    /// has no such function, or the user has begun no iteration. `between` says that it stands between two iterations.
    fn begin_stop(&self, _slot: u32, _now: Tick, _between: bool) -> Option<Operation> {
        None
    }

    /// Resumes a user. Returns the operation that it wants next, and whether it ended its iteration and began the next
    /// before it wanted that. It does so only where [`Resumption::Answered`] lets it.
    fn resume(&self, slot: u32, now: Tick, with: Resumption<'_>) -> (Operation, bool);

    /// Shows the judge of a user's call ([`Wanted::judged`](crate::Wanted::judged)) an answer's body, flags and status.
    fn judge(&self, slot: u32, now: Tick, body: &[u8], flags: u32, status: u16) -> Verdict;

    /// Forgets the user in a slot, which another may take. `between` says that the user stands between two iterations.
    fn forget(&self, slot: u32, between: bool);

    /// Ends the groups that a user is in: the number, the time with pauses and the time without, in nanoseconds, of each.
    fn leave_groups(&self, slot: u32, now: Tick) -> Vec<(u32, u64, u64)>;

    /// Counts of checks that have held since the last time, by their numbers. Asked once a second.
    fn take_passes(&self) -> Vec<(u32, u64)>;

    /// The script's own figures since the last time, by their names. Asked once a second.
    fn take_own(&self) -> Vec<(String, OwnFigures)>;

    /// Prints what the script has written so far.
    fn flush(&self);
}
