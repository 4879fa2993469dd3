//! The contract between brunt and a protocol: all that an author of a protocol needs.
//!
//! A protocol does no I/O. It is given the bytes that arrived and says what they meant; it is given a call and says
//! which bytes to send. Connecting, TLS, timeouts, pacing and measuring are the worker's, and the same for all.
//!
//! | trait | what it stands for | lives |
//! | --- | --- | --- |
//! | [`Protocol`] | schemes, flags, options | as long as the program |
//! | [`Prepared`] | the protocol made ready for one plan | as long as the run |
//! | [`Client`] | the state of one connection | as long as its connection |
//! | [`RequestSource`](source::RequestSource) | the source of calls on one worker | as long as the run |
//! | [`Meter`](meter::Meter) | what the protocol measures by itself on one worker; optional | as long as the run |
//! | [`WorkerReplay`](replay::WorkerReplay) | the calls of a log on one worker | as long as the run |
//! | [`Dialect`](scenario::Dialect), [`Caller`](scenario::Caller) | the protocol's own words in scenarios; optional | |
//!
//! [`Protocol`] has a whole example, [`Client`] one of reading answers, [`Dialect`](scenario::Dialect) one for scenarios.
//!
//! A program with more protocols than the built-in ones adds its own to a [`Registry`] and hands that to brunt's main
//! function.

pub mod arguments;
mod client;
pub mod discovery;
pub mod flags;
pub mod headers;
pub mod lines;
mod message;
pub mod messages;
pub mod meter;
mod options;
mod protocol;
mod registry;
pub mod replay;
pub mod request_names;
pub mod scenario;
pub mod source;
pub mod traced;

/// The plain data that the contract uses: the plan of a run, and the record of it.
pub use {brunt_plan as plan, brunt_record as record};

pub use self::client::{
    Answer, AnswerParts, Client, Direction, FailedCall, KeptAnswer, Malformed, Opening, Pending, Progress, Started,
};
pub use self::options::{OptionsError, read_options, write_options};
pub use self::protocol::{
    Narration, Narrator, OwnTimes, Prepared, Protocol, RTT, RTT_UNIT, Scheme, is_over_quic, options_of, quic_figures,
    redact_loaded,
};
pub use self::registry::{Registry, UnknownScheme};
