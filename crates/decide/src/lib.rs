//! What several runs of brunt decide: plain arithmetic, without I/O, clock or async.
//!
//! A decision rests on an [`evidence::Evidence`] of each run: the highest rate that a target bears ([`capacity`]), whether one
//! target is slower than another ([`compare`]), how one scales ([`sweep`]), and where good answers become no more ([`knee`]); and that the runs were made as they were to be ([`short`]). [`kept`] is what lists show of runs and decisions that
//! are kept, [`packing`] how these are written.
//!
//! Making the runs is the caller's; what is here is given their figures, so that kept runs decide as live ones do:
//!
//! ```
//! use brunt_decide::compare::{ComparedFigures, Comparison, FailIf};
//!
//! fn is_worse(rounds: &[(ComparedFigures, ComparedFigures)]) -> Option<bool> {
//!     let condition: FailIf = "p99 > 1.05x".parse().ok()?;
//!     let comparison = Comparison::of_rounds(rounds)?;
//!     Some(comparison.judge(&condition).failed)
//! }
//! ```

pub mod capacity;
pub mod compare;
pub mod decision;
pub mod evidence;
pub mod kept;
pub mod knee;
pub mod outline;
pub mod packing;
pub mod short;
pub mod sweep;
