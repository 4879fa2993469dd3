//! Logs of requests, as brunt replays them.
//!
//! A log goes through these, in this order:
//!
//! | module | does |
//! | --- | --- |
//! | [`input`] | opens and unpacks it, and cuts it into lines |
//! | [`mod@format`] | reads a line: an [`Entry`](entry::Entry), nothing, or a [`Skip`](entry::Skip) by name |
//! | [`select`] | takes what is wanted of it, and changes it |
//! | [`order`] | sorts by time, and spreads whole seconds |
//! | [`request`] | composes what is sent |
//! | [`schedule`] | gives due times by a speed and a scale |
//! | [`log`] | does all this in a thread that reads ahead |
//! | [`progress`] | says how far it is by its [`position`], and what is left |
//! | [`worker`] | hands a worker its calls, and holds what came against the log ([`against`]) |
//!
//! All but [`input`], [`position`], [`progress`] and [`log`] are pure.

pub mod against;
pub mod entry;
pub mod folding;
pub mod format;
pub mod input;
pub mod jar;
pub mod log;
pub mod order;
pub mod position;
pub mod progress;
pub mod queue;
pub mod request;
pub mod schedule;
pub mod select;
pub mod stamp;
pub mod worker;
