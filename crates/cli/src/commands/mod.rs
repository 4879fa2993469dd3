//! What brunt does: one file for each subcommand.

pub mod agent;
pub mod agents;
pub mod bench;
pub mod coalescing;
pub mod compare;
pub mod completions;
pub mod demo;
pub mod find;
pub mod grpc;
pub mod help;
pub mod man;
pub mod manifest;
pub mod new;
pub mod report;
pub mod run;
pub mod runs;
pub mod schema;
pub mod serve;
pub mod show;
pub mod sweep;
pub mod types;
pub mod ui;
pub mod wrk;
