//! Logs of requests, as brunt replays them.
//!
//! A log goes through these modules, in this order:
//!
//! | module | does |
//! | --- | --- |
//! | [`input`] | opens and unpacks the log, and cuts it into lines; `merging.rs` makes one log of several |
//! | [`mod@format`] | reads a line: an [`Entry`](entry::Entry), nothing, or a [`Skip`](entry::Skip) by name |
//! | [`neighbours`] | skips lines with stray times |
//! | [`select`] | selects entries, and changes them |
//! | [`order`] | sorts by time, and spreads whole seconds |
//! | [`request`] | composes the requests to send |
//! | [`schedule`] | gives due times by a speed and a scale |
//! | [`log`] | runs all this in a thread that reads ahead (`reader.rs`) |
//! | [`progress`] | tells the progress by the [`position`], and what is left |
//! | [`worker`] | hands a worker its calls, and compares their answers with the log ([`against`]) |
//!
//! Where several machines read the log, [`fingerprint`] tells whether all have the same one, and [`listing`] serves the
//! machine that keeps account of all calls. [`planned`] reads all these settings from a plan.
//!
//! All but [`fingerprint`], [`input`], [`position`], [`progress`] and [`log`] are pure.
//!
//! ```
//! use brunt_replay::format::{Format, Options, Parser};
//!
//! let line = br#"10.0.0.1 - - [30/Nov/2026:10:00:00 +0000] "GET /a?b=1 HTTP/1.1" 200 512 "-" "curl/8.1""#;
//! assert_eq!(Format::recognise(line), Some(Format::Combined));
//! let entry = Parser::new(Format::Combined, Options::default()).unwrap().line(line).unwrap().unwrap();
//! assert_eq!((entry.method.as_str(), entry.url.as_str(), entry.status), ("GET", "/a?b=1", Some(200)));
//! ```

pub mod against;
pub mod config;
pub mod entry;
pub mod fingerprint;
pub mod folding;
pub mod format;
pub mod input;
pub mod jar;
pub mod listing;
pub mod log;
mod merging;
pub mod neighbours;
pub mod order;
pub mod planned;
pub mod position;
pub mod progress;
pub mod queue;
mod reader;
pub mod request;
pub mod schedule;
pub mod select;
pub mod stamp;
pub mod watch;
pub mod worker;
