//! The plan of a run of brunt: plain data and arithmetic, without I/O, clock or async.
//!
//! A [`plan::Plan`] is everything that a run needs, validated once. [`wire`] is its form for another machine, with
//! secrets; `Serialize` writes the form for display. [`schedule`], [`arrivals`] and [`injection`] compute when each
//! call or virtual user is due, and [`share`] which of them belong to which worker. [`threshold`] is the grammar of
//! conditions on a run's figures; judging by them takes a record of the run and is done elsewhere.

pub mod arrivals;
pub mod bodies;
pub mod connections;
pub mod content;
pub mod deal;
pub mod environment;
pub mod hosts;
pub mod injection;
pub mod percent;
pub mod plan;
pub mod profile;
pub mod random;
pub mod replay;
pub mod rows;
pub mod scenario;
pub mod schedule;
pub mod secret;
pub mod secrets;
pub mod setting;
pub mod share;
pub mod stop;
pub mod target;
pub mod threshold;
pub mod timetable;
pub mod units;
pub mod watch;
pub mod wire;
