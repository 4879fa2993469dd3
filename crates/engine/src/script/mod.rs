//! wrk's Lua scripts: hooks that make requests and see answers, as wrk's own documentation gives them.
//!
//! There is one Lua state for each worker and a main one, and all of them run the script. `begin` goes through what
//! comes before the load, in wrk's order: for each worker `setup(thread)` in the main state, then `init(args)` in the
//! worker's own, then its first request, so that what is wrong shows while nothing is lost. While the load is on,
//! `user` calls `request`, `response` and `delay` on the worker's thread. After it, [`Session::done`] calls `done` in the
//! main state.
//!
//! Lua runs on threads of its own that can be left behind: a hook that never returns ends the run, not brunt.

mod address;
mod answers;
mod error;
mod hook;
pub mod scenario;
mod session;
mod state;
mod stats;
#[cfg(test)]
mod tests;
mod thread;
mod user;
mod values;

pub use self::error::ScriptError;
pub(crate) use self::hook::name as hook_name;
pub use self::session::Session;
pub(crate) use self::session::{Beginning, Begun, Scripted, begin};
pub(crate) use self::state::check;

/// What a script's requests are made from where it does not say otherwise: the fields of the table `wrk`.
#[derive(Clone, PartialEq, Eq)]
pub struct Start {
    /// `wrk.scheme`.
    pub scheme: String,
    /// `wrk.host`.
    pub host: String,
    /// `wrk.port`, if the URL names one.
    pub port: Option<u16>,
    /// `wrk.path`, with the query.
    pub path: String,
    /// `wrk.method`.
    pub method: String,
    /// `wrk.headers`, secrets and all.
    pub headers: Vec<(String, String)>,
    /// `wrk.body`.
    pub body: Option<Vec<u8>>,
}
