//! `LuaJIT` for brunt: wrk's scripts ([`Session`]) and scenarios of virtual users ([`scenario`]).
//!
//! Both make calls through the contract of protocols alone. wrk's scripts write requests of HTTP/1.1 themselves, and
//! begin with what the target's protocol would send ([`Start`]). Scenarios call through what a protocol offers them (a
//! [`Dialect`](brunt_protocol::scenario::Dialect)), or by the names of its flags.

mod error;
mod memory;
pub mod scenario;
mod state;
mod wrk;

pub use self::error::ScriptError;
pub use self::wrk::{Beginning, Begun, Errors, IN_SCENARIO, Scripted, Session, Start, Totals, begin, check, hook_name};
