//! gRPC against another implementation of it: grpcio, whose core is C++, with classes that its own compiler makes of the `.proto` file.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

mod calls;
mod echo;
mod peers;
#[allow(dead_code, reason = "shared with other tests, which use all of it")]
#[path = "../cli/program.rs"]
mod program;
mod reflection;
#[allow(dead_code, reason = "shared with other tests, which use all of it")]
#[path = "../network/report.rs"]
mod report;
mod scenarios;
mod streams;
mod wrong;
