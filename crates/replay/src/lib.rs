//! Logs of requests, as brunt replays them.
//!
//! [`format`] reads lines, [`entry`] is what they hold. Everything here is pure but for the threads and files that say so.

pub mod entry;
pub mod folding;
pub mod format;
pub mod input;
pub mod order;
pub mod schedule;
pub mod select;
pub mod stamp;
