//! Agents and their controller, as processes, over a real nats-server. Whatever breaks, the accounts close.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

mod breaking;
mod bus;
mod changing;
mod claims;
mod collector;
mod forged;
mod guide;
#[allow(dead_code, reason = "shared with other tests, which use all of it")]
#[path = "../cli/installed.rs"]
mod installed;
mod leaks;
mod lost;
mod manifest;
mod metrics;
mod outage;
mod payload;
#[allow(dead_code, reason = "shared with other tests, which use all of it")]
#[path = "../cli/place.rs"]
mod place;
#[allow(dead_code, reason = "shared with other tests, which use all of it")]
#[path = "../cli/program.rs"]
mod program;
#[allow(dead_code, reason = "shared with other tests, which use all of it")]
#[path = "../cli/prometheus.rs"]
mod prometheus;
#[allow(dead_code, reason = "shared with other tests, which use all of it")]
#[path = "../cli/receiver.rs"]
mod receiver;
mod replaying;
mod safety;
mod standing;
mod surroundings;
mod together;
mod unequal;
mod waits;
