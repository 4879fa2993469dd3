//! The contract between the engine and the languages that scripts are written in.
//!
//! A plan may carry a script. What it says of a run is carried out by the engine, which knows no language: it talks to what a [`ScriptHost`] makes
//! of the plan's files. `brunt-lua` and `brunt-javascript` are the hosts of the program.
//!
//! | trait | what it stands for | lives |
//! | --- | --- | --- |
//! | [`ScriptHost`] | languages: makes scripts of files | as long as the program |
//! | [`FloodScript`] | a script that makes the requests of a flood | as long as the run |
//! | [`Session`] | what such a script has left to do after the load | from the first worker to the last word |
//! | [`Program`] | a script of virtual users | as long as the run |
//! | [`Library`] | a worker's state of it, in which users live | as long as the worker |
//!
//! A flood's requests come from a [`RequestSource`](brunt_protocol::source::RequestSource), as those of a protocol do: a script is one that may fail, stop, pause, and not come
//! back ([`Heartbeat`](brunt_protocol::source::Heartbeat), [`Hook`]). A virtual user wants an [`Operation`] and is resumed with what came of it, a [`Resumption`]. The
//! user's side is a virtual call each time, and nothing else on the way of a call.
//!
//! What belongs here is what both sides say. How a script is read from disk, what its words are and what it may do is its language's; when users come,
//! connections, timeouts and figures are the engine's.

mod error;
mod files;
mod flood;
mod hook;
mod host;
mod loading;
mod operation;
mod outline;
mod program;

pub use self::error::ScriptError;
pub use self::files::{Files, is_inside, outside, read_inside};
pub use self::flood::{Begun, Errors, FloodPlace, FloodScript, Scripted, Session, Totals};
pub use self::hook::Hook;
pub use self::host::{NoScripts, ScriptHost};
pub use self::loading::{AskAt, Asking, ClientKind, LoadOptions, Loaded, OwnRules};
pub use self::operation::{Labelled, Operation, Placement, Resumption, Verdict, Wanted};
pub use self::outline::{AssignedLocal, EndedEarly, Met, MetKind, Outline, UnlikelyValue, Unreached, UnsetGlobal};
pub use self::program::{Identity, KeepAlive, Library, Program, ScriptClient};
