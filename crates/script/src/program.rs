//! Scripts of virtual users: a program for the run, a library in each worker.

use std::sync::Arc;

use brunt_protocol::Scheme;
use brunt_protocol::plan::target::Target;
use brunt_protocol::record::figures::OwnFigures;
use brunt_protocol::scenario::{Caller, Value};

use crate::{Operation, Resumption, ScriptError, Verdict};

/// The script of a plan's virtual users, before any worker has run it.
pub trait Program: Send + Sync {
    /// Goes once through the scenarios of these names with made-up answers, and does nothing outside of the script.
    ///
    /// # Errors
    /// With file and line of what is misspelt, or that there is no such scenario.
    fn rehearse(&self, scenarios: &[&str]) -> Result<Rehearsed, ScriptError>;

    /// Runs the script for this worker (its number over all machines), as a state in which users can live.
    ///
    /// # Errors
    /// With file, line and traceback of what is wrong.
    fn begin(&self, worker: u32) -> Result<Box<dyn Library>, ScriptError>;
}

/// What a rehearsal has shown of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rehearsed {
    /// Whether a feeder of the script gives each row of its data out only once.
    pub gives_rows_once: bool,
}

/// A client that a script has made: where its calls go, and how.
#[derive(Clone)]
pub struct ScriptClient {
    /// Encodes its calls and reads their answers.
    pub caller: Arc<dyn Caller>,
    /// Where its calls go unless they say otherwise.
    pub base: Option<Target>,
    /// The schemes of its protocol.
    pub schemes: Vec<Scheme>,
    /// The most connections that a user may have to one origin.
    pub per_user: u32,
    /// How many connections all users share, over all workers, if they share them.
    pub pool: Option<u32>,
    /// Whether those are made one after the other, as the others are full.
    pub grows: bool,
    /// The most calls in flight on one of its connections, as far as its protocol allows.
    pub pipeline: u32,
    /// How long its calls may take, in nanoseconds, if not as long as the plan says.
    pub timeout_ns: Option<u64>,
}

/// A worker's state of a script, in which its users live. Each stands in a slot, by whose number it is called.
///
/// A user's iteration begins by [`begin_iteration`](Self::begin_iteration), which gives the first [`Operation`] that it wants. The engine does
/// it and tells what came of it by [`resume`](Self::resume), which gives the next, until one ends the iteration.
///
/// A library lives on one thread and is called from nowhere else. Its methods take `&self`, since what a user is resumed with may be borrowed from what
/// stands beside the library. They never block. What a script does wrong is an [`Operation::Failed`], not a panic.
///
/// [`crate::native`] is a whole implementation.
pub trait Library: Send {
    /// The clients that the script has made: calls name them by their places here, from 0. They stay the same from [`Program::begin`] on.
    fn clients(&self) -> Vec<ScriptClient>;

    /// The number of the scenario with this name.
    ///
    /// # Errors
    /// When there is none.
    fn place(&self, name: &str) -> Result<u32, ScriptError>;

    /// Makes `setup` or `teardown` a scenario, of this number; none if the script has none.
    ///
    /// # Errors
    /// When the script cannot be asked.
    fn once(&self, which: &str) -> Result<Option<u32>, ScriptError>;

    /// What setup has returned, for the other workers and machines.
    ///
    /// # Errors
    /// When it is more than plain values.
    fn given(&self) -> Result<Value<'static>, ScriptError>;

    /// Gives the scenarios what setup has returned.
    ///
    /// # Errors
    /// When the script cannot take it.
    fn give(&self, given: &Value<'_>) -> Result<(), ScriptError>;

    /// Lets the script tell of each check that holds, by [`Operation::CheckPassed`], and not only count them.
    fn trace(&self);

    /// Begins an iteration of the user in this slot at `now`, in nanoseconds; of a new one, with this number (from 1) and scenario.
    fn begin_iteration(&self, slot: u32, now: u64, id: u64, place: u32) -> Operation;

    /// Whether users of some scenario do something last, by [`begin_stop`](Self::begin_stop).
    fn stops(&self) -> bool {
        false
    }

    /// Begins what the user in this slot does last, as an iteration that is not counted; none if its scenario has nothing of the kind, or the user
    /// has begun no iteration. `between` says that it stands between two iterations.
    fn begin_stop(&self, _slot: u32, _now: u64, _between: bool) -> Option<Operation> {
        None
    }

    /// Goes on with a user: what it wants next, and whether it has ended its iteration and begun the next before it wanted that. The latter happens
    /// only where [`Resumption::Answered`] lets it.
    fn resume(&self, slot: u32, now: u64, with: Resumption<'_>) -> (Operation, bool);

    /// Shows the judge of a user's call ([`Wanted::judged`](crate::Wanted::judged)) an answer's body, flags and status.
    fn judge(&self, slot: u32, now: u64, body: &[u8], flags: u32, status: u16) -> Verdict;

    /// Forgets the user in a slot, which another may take. `between` says that it stands between two iterations.
    fn forget(&self, slot: u32, between: bool);

    /// Ends the groups that a user is in: the number, the time with pauses and the time without, in nanoseconds, of each.
    fn leave_groups(&self, slot: u32, now: u64) -> Vec<(u32, u64, u64)>;

    /// How often checks have held since this was last asked, by their numbers. It is asked once a second.
    fn take_passes(&self) -> Vec<(u32, u64)>;

    /// What was recorded of the script's own figures since this was last asked, by their names. It is asked once a second.
    fn take_own(&self) -> Vec<(String, OwnFigures)>;

    /// Lets what the script has printed go where it belongs.
    fn flush(&self);
}
