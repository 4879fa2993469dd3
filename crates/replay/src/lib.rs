//! Logs of requests, as brunt replays them.
//!
//! [`format`] reads lines, [`entry`] is what they hold. Everything here is pure but for the threads and files that say so.

pub mod against;
pub mod entry;
pub mod folding;
pub mod format;
pub mod input;
pub mod jar;
pub mod log;
pub mod order;
pub mod request;
pub mod schedule;
pub mod select;
pub mod stamp;
pub mod worker;
