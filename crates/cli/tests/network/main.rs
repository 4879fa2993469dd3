//! The program against servers as they are: nginx, and servers that each break the rules in one way. Whatever happens,
//! the accounts add up, and agree with what the server itself wrote down.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

mod accounting;
mod addresses;
mod authorization;
mod broken;
mod coalescing;
mod conversations;
mod credentials;
mod draining;
mod faults;
mod first_minutes;
mod http2;
mod http2_peers;
mod http3;
mod http3_peers;
#[allow(dead_code, reason = "shared with other tests, which use all of it")]
#[path = "../cli/installed.rs"]
mod installed;
mod keep_alive;
mod limits;
mod lives;
mod llm;
mod llm_hostile;
mod llm_times;
mod nginx;
mod once;
mod outages;
#[allow(dead_code, reason = "shared with other tests, which use all of it")]
#[path = "../cli/program.rs"]
mod program;
mod proxy;
mod real_llm;
mod redis;
#[allow(dead_code, reason = "shared with other tests, which use all of it")]
mod report;
mod requests;
mod serve_llm;
mod streams;
mod tls;
mod tunnels;
mod versions;
mod websocket;
