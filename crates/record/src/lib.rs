//! What happened in a run of brunt: plain data and arithmetic, without I/O, clock or async.
//!
//! Workers fill a [`snapshot::Snapshot`] each second. [`snapshot::Snapshot::merge`] adds up workers, seconds and machines
//! alike. A [`live::Live`] is one second of the whole run, shown to an [`observer::Observer`] while the run goes on; a
//! [`series::Series`] keeps the seconds; a [`recording::Recording`] is the record of a finished run. Nothing here knows
//! what the plan asked for, or judges it.
//!
//! Times are nanoseconds (`_ns`) since the start of the run, from one monotonic clock.
//!
//! To count something new, declare it in the [`catalogue`] and count where it happens: merging, storing, the bus and the views follow from the declaration.
//!
//! ```
//! use brunt_record::histogram::Histogram;
//!
//! let mut fast = Histogram::new();
//! fast.record_n(2_000_000, 99);
//! let mut slow = Histogram::new();
//! slow.record(900_000_000);
//! fast.merge(&slow);
//! assert_eq!((fast.count(), fast.max()), (100, Some(900_000_000)));
//! // Values are kept to 1 in 1024.
//! let p50 = fast.quantile(0.5).unwrap();
//! assert!((1_998_000..=2_002_000).contains(&p50), "{p50}");
//! ```

pub mod addresses;
pub mod agents;
pub mod bytes;
pub mod call_timeline;
pub mod catalogue;
pub mod change;
pub mod counts;
pub mod delivery;
pub mod drilldown;
pub mod examples;
pub mod figures;
pub mod histogram;
pub mod instrument;
pub mod interval;
pub mod kinds;
pub mod live;
pub mod machine;
pub mod messages;
pub mod observer;
pub mod outcome;
pub mod packed;
pub mod recording;
pub mod redaction;
pub mod replayed;
pub mod samples;
#[cfg(feature = "schema")]
mod schema;
pub mod series;
pub mod slowest;
pub mod snapshot;
pub mod time;
pub mod timeline;
pub mod watched;

/// One second in nanoseconds.
pub const SECOND_NS: u64 = 1_000_000_000;

/// The receive buffer that brunt asks the system for, for each UDP socket, in bytes: a burst of answers must not be lost there. Linux gives as
/// much as `net.core.rmem_max` allows.
pub const RECEIVE_BUFFER_BYTES: u64 = 4 << 20;
