//! Scripts of floods: each worker's requests come from a script, which sees the answers.

use std::net::SocketAddr;

use brunt_protocol::plan::stop::StopHandle;
use brunt_protocol::record::histogram::Histogram;
use brunt_protocol::source::{Heartbeat, RequestSource};

use crate::ScriptError;

/// The script of one plan, checked and not yet run.
///
/// ```text
/// ScriptHost::flood ──▶ FloodScript::begin ──▶ a Session, and a User for each worker ──▶ Session::done
///   (checked)             (before the load)         (while the load is on)                 (after it)
/// ```
pub trait FloodScript: Send + Sync {
    /// Runs the part of the script that comes before the load, for each worker of the run, and makes its first request.
    /// Blocks; a script that has not returned a while after `stop` is left behind.
    ///
    /// # Errors
    /// When the script is wrong, or was left behind.
    fn begin(&self, place: &FloodPlace, stop: &StopHandle) -> Result<Begun, ScriptError>;
}

/// Where the load of a script goes, and from where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FloodPlace {
    /// The target's addresses; empty where connections do not go to an address.
    pub addresses: Vec<SocketAddr>,
    /// Host and port that the addresses belong to.
    pub host: (String, u16),
    /// The number of workers.
    pub workers: u32,
}

/// A script whose workers can begin.
pub struct Begun {
    /// The part of the script that comes after the load.
    pub session: Box<dyn Session>,
    /// The workers' own parts, in their order.
    pub workers: Vec<Scripted>,
}

/// A worker's part of a script.
pub struct Scripted {
    /// Makes its requests and sees their answers, on the worker's thread. Its methods are on the way of every call: they do not allocate where the
    /// script makes the same request again.
    pub user: Box<dyn RequestSource>,
    /// Shows whether the script returns. The user enters it with the number of a [`Hook`](crate::Hook) before each.
    pub heart: Heartbeat,
    /// The address of its connections, if the script chooses one.
    pub address: Option<SocketAddr>,
}

/// The part of a flood's script that comes after its load.
pub trait Session: Send {
    /// Worker `number` (from 0) never returned: its state must not be waited for any more, not even to drop it.
    fn give_up(&mut self, number: u32);

    /// Whether the script has a function for the result.
    fn has_done(&self) -> bool;

    /// Calls the script's function for the result. What it prints is printed when this returns.
    ///
    /// # Errors
    /// When it fails, or has not returned a while after `stop`. A stop before the call does not count.
    fn done(self: Box<Self>, totals: Totals, stop: &StopHandle) -> Result<(), ScriptError>;
}

/// The totals of a run, as a script is told of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Totals {
    /// How long the measured part took, in nanoseconds.
    pub measured_ns: u64,
    /// Calls answered in it.
    pub answered: u64,
    /// Bytes received in it, after decryption.
    pub bytes_in: u64,
    /// Calls that failed, and answers whose status is an error.
    pub errors: Errors,
    /// Response times of all calls, in nanoseconds.
    pub response: Histogram,
    /// Answers a second of one thread: a sample for each second of the measured part.
    pub rates: Vec<u64>,
}

/// Errors as wrk counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Errors {
    /// No connection could be made.
    pub connect: u64,
    /// An answer could not be read.
    pub read: u64,
    /// A call could not be sent.
    pub write: u64,
    /// The status was above 399.
    pub status: u64,
    /// No answer came in time.
    pub timeout: u64,
}
