//! wrk's Lua scripts: hooks that make requests and see answers, as wrk's own documentation gives them.
//!
//! Each worker has a Lua state, and there is a main one; all of them run the script. [`WrkScript`] goes through the
//! time before the load, in wrk's order. For each worker it calls `setup(thread)` in the main state, then `init(args)`
//! in the worker's own, and then makes its first request, so that mistakes show while nothing is lost. During the load,
//! `user` calls `request`, `response` and `delay` on the worker's thread. After it,
//! [`Session::done`](brunt_script::Session::done) calls `done` in the main state.
//!
//! Lua runs on separate threads that can be left behind: a hook that never returns ends the run, not brunt.

mod address;
mod answers;
mod misspelt;
mod ready_made;
mod session;
mod start;
mod state;
mod stats;
#[cfg(test)]
mod tests;
mod thread;
mod traced;
mod user;
mod values;

pub use self::misspelt::misspelt;
pub(crate) use self::session::WrkScript;
