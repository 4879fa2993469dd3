//! gRPC against other implementations of it: grpcio, whose core is C++, with classes that its own compiler makes of the `.proto` file;
//! grpc-go, which knows the types by a descriptor set; @grpc/grpc-js.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

mod calls;
mod echo;
#[allow(dead_code, reason = "shared with other tests, which use all of it")]
#[path = "../cli/installed.rs"]
mod installed;
mod others;
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
