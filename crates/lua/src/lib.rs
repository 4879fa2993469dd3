//! `LuaJIT` for brunt: wrk's scripts, and scenarios of virtual users ([`scenario`]).
//!
//! The engine is given [`LuaJit`], and knows only the contract of `brunt-script`. Both kinds of scripts make calls
//! through the contract of protocols. wrk's scripts write requests of HTTP/1.1 themselves, and begin with the request
//! that the target's protocol would send. Scenarios call by a protocol's own words (a
//! [`Dialect`](brunt_protocol::scenario::Dialect)), or by the names of its flags.
//!
//! | module | has |
//! | --- | --- |
//! | `state.rs`, `memory.rs` | a `LuaJIT` state, its limits, and what a script may reach of it (`sandbox.lua`) |
//! | `wrk` | wrk's functions: `init`, `request`, `delay`, `response`, `done` |
//! | [`scenario`] | users as coroutines, and the library `brunt` (`scenario/library/*.lua`) |
//!
//! ```
//! use brunt_lua::LuaJit;
//! use brunt_script::ScriptHost;
//!
//! /// What the engine is given: it knows no language.
//! static SCRIPTS: &dyn ScriptHost = &LuaJit;
//! ```
//!
//! A word of the library is a function of Lua in `scenario/library`; one that makes a call ends in `core.call`, and the user waits there.

mod error;
mod memory;
pub mod scenario;
mod state;
mod wrk;

pub use self::wrk::misspelt;

use brunt_plan::plan::Plan;
use brunt_plan::scenario::Scenarios;
use brunt_plan::share::Portion;
use brunt_protocol::{Prepared, Registry};
use brunt_script::{FloodScript, Program, ScriptError, ScriptHost};

/// The host of scripts in Lua: wrk's for floods, and scenarios for virtual users.
#[derive(Debug, Clone, Copy, Default)]
pub struct LuaJit;

impl ScriptHost for LuaJit {
    fn flood(&self, plan: &Plan, prepared: &dyn Prepared) -> Result<Option<Box<dyn FloodScript>>, ScriptError> {
        let script = wrk::WrkScript::from_plan(plan, prepared)?;
        Ok(script.map(|script| Box::new(script) as Box<dyn FloodScript>))
    }

    fn program(
        &self,
        plan: &Plan,
        scenarios: &Scenarios,
        registry: &Registry,
        portion: Portion,
    ) -> Result<Box<dyn Program>, ScriptError> {
        Ok(Box::new(scenario::Script::prepare(plan, scenarios, registry, portion)?))
    }
}
