//! Thrift against other implementations of it: Apache Thrift's own Python library, with code that its compiler made, and
//! thriftpy2. Every type is echoed in each protocol over each transport; the servers answer only if a value came as it
//! was meant, and brunt compares what it gets back.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

mod answers;
mod echo;
#[allow(dead_code, reason = "shared with other tests, which use all of it")]
#[path = "../cli/installed.rs"]
mod installed;
mod peers;
#[allow(dead_code, reason = "shared with other tests, which use all of it")]
#[path = "../cli/program.rs"]
mod program;
#[allow(dead_code, reason = "shared with other tests, which use all of it")]
#[path = "../network/report.rs"]
mod report;
mod scenarios;
mod types;
mod wrong;
