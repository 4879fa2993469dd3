//! The program as its users see it: arguments in; standard output, standard error, files and an exit status out.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

mod advice;
mod changing;
mod check;
mod compare;
mod corpus;
mod doctor;
mod failures;
mod find;
mod gate;
mod habits;
mod imports;
mod kept;
mod live;
mod metrics;
mod pacing;
mod pages;
mod place;
mod plans;
mod program;
#[allow(dead_code, reason = "shared with tests of agents, which use all of it")]
mod prometheus;
mod receiver;
mod replay;
mod requests;
mod runs;
mod sandbox;
mod serve;
mod settings;
mod signals;
mod sockets;
mod sweep;
mod terminal;
mod told;
mod traced;
mod ui;
mod watch;
mod wrong;
