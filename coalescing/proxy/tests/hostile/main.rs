//! The proxy against clients and upstreams that mean harm, or break: each on connections within this process and on made-up
//! time, so that nothing here sleeps, and a limit of an hour takes none.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]
#![allow(clippy::indexing_slicing, reason = "a test fails by a panic")]

mod coalescing;
mod followers;
mod http2;
mod interim;
mod smuggling;
mod stages;
mod upstreams;
mod wire;
mod world;
