//! brunt's plain data and arithmetic: no I/O, no clock, no async.
//!
//! A [`plan::Plan`] says what a run does. While it runs, workers fill [`snapshot::Snapshot`]s, which merge:
//! workers, seconds and machines are all added up by [`snapshot::Snapshot::merge`]. When it is over,
//! [`summary::Summary`] derives every figure once, [`threshold`] judges them and [`verdict`] says whether they
//! can be believed: how wrong the generator itself can have made each ([`instrument`]), how far another run of this length
//! may be off ([`sampling`]), and whether the run had settled ([`trend`]). What is decided over several runs rests on an [`evidence::Evidence`] of each: the highest rate
//! that a target bears ([`capacity`]), whether one is slower than another ([`compare`]), and how one scales ([`sweep`]). All times are nanoseconds (`_ns`) since the start of the run, from one monotonic
//! clock.

pub mod agents;
pub mod arrivals;
pub mod breakdown;
pub mod capacity;
pub mod compare;
pub mod connections;
pub mod content;
pub mod decision;
pub mod drilldown;
pub mod environment;
pub mod evidence;
pub mod figures;
pub mod histogram;
pub mod injection;
pub mod instrument;
pub mod interval;
pub mod kept;
pub mod live;
pub mod messages;
pub mod outcome;
pub mod outline;
pub mod plan;
pub mod profile;
pub mod random;
pub mod remarks;
pub mod rows;
pub mod sampling;
pub mod scenario;
pub mod schedule;
pub mod secret;
pub mod series;
pub mod setting;
pub mod share;
pub mod snapshot;
pub mod statistics;
pub mod stop;
pub mod summary;
pub mod sweep;
pub mod target;
pub mod threshold;
pub mod trend;
pub mod uncertainty;
pub mod units;
pub mod verdict;
pub mod wire;

/// One second in nanoseconds.
pub const SECOND_NS: u64 = 1_000_000_000;
