//! The rules of the crate's documentation, each with what happens if it is broken. Nothing here sleeps: time is made up,
//! and every step of service and clients is taken by the test.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]
#![allow(clippy::needless_for_each, reason = "a line for each step of a test reads better")]

mod at_once;
mod bounds;
mod browsers;
mod hostile;
mod identity;
mod leader;
mod no_cache;
mod origin;
mod semantics;
mod streaming;
