//! One run of brunt, judged: plain arithmetic, without I/O, clock or async.
//!
//! [`summary::Summary`] derives every figure of a plan and its recording once; views print it and compute nothing.
//! [`thresholds`] judges it by the plan's thresholds, and [`abort`] ends a run whose thresholds can no longer pass.
//! [`verdict`] says whether the figures can be believed: the error that the generator itself can have caused in each
//! ([`uncertainty`]), the difference that another run of this length may show ([`sampling`]), and whether the run had
//! settled ([`trend`]).
//!
//! A view is given a summary and nothing else:
//!
//! ```
//! use brunt_judge::summary::Summary;
//! use brunt_plan::plan::Plan;
//! use brunt_record::recording::Recording;
//!
//! fn passed(plan: Plan, run: Recording) -> bool {
//!     let summary = Summary::new(plan, run);
//!     summary.answered() && summary.thresholds_held()
//! }
//! ```
//!
//! What is said of a run ([`remarks`]) is a value with a cause and an advice; its words are `brunt-report`'s.

pub mod abort;
pub mod advice;
pub mod agent_figures;
pub mod asked;
mod back_off;
pub mod breakdown;
pub mod distribution;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
mod guard;
pub mod phrase;
pub mod remarks;
pub mod sampling;
pub mod statistics;
pub mod summary;
pub mod thresholds;
pub mod trend;
pub mod uncertainty;
pub mod verdict;
pub mod watched;
