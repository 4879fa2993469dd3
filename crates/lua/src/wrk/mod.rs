//! wrk's Lua scripts: hooks that make requests and see answers, as wrk's own documentation gives them.
//!
//! There is one Lua state for each worker and a main one, and all of them run the script. [`WrkScript`] goes through what
//! comes before the load, in wrk's order: for each worker `setup(thread)` in the main state, then `init(args)` in the
//! worker's own, then its first request, so that what is wrong shows while nothing is lost. While the load is on,
//! `user` calls `request`, `response` and `delay` on the worker's thread. After it, [`Session::done`](brunt_script::Session::done) calls `done` in the
//! main state.
//!
//! Lua runs on threads of its own that can be left behind: a hook that never returns ends the run, not brunt.

mod address;
mod answers;
mod ready_made;
mod session;
mod start;
mod state;
mod stats;
#[cfg(test)]
mod tests;
mod thread;
mod user;
mod values;

pub(crate) use self::session::WrkScript;
