//! The plan of a run of brunt: plain data and arithmetic, without I/O, clock or async.
//!
//! A [`plan::Plan`] is everything that a run needs, validated once. [`wire`] is its form for another machine, with
//! secrets; `Serialize` writes the form for display. [`schedule`], [`arrivals`] and [`injection`] compute when each
//! call or virtual user is due, and [`share`] which of them belong to which worker. [`threshold`] is the grammar of
//! conditions on a run's figures; judging by them takes a record of the run and is done elsewhere.
//!
//! Each text of the command line is parsed here once, into a value:
//!
//! ```
//! use brunt_plan::profile::Profile;
//! use brunt_plan::target::Url;
//! use brunt_plan::threshold::Threshold;
//!
//! let url = Url::parse("https://example.org/items?page=2").unwrap();
//! assert_eq!((url.target.host.as_str(), url.target.url().as_str()), ("example.org", "https://example.org/items?page=2"));
//!
//! // A ramp from 100/s to 200/s over one second makes 150 calls.
//! let ramp: Profile = "100..200/1s".parse().unwrap();
//! assert_eq!(ramp.calls(), 150.0);
//!
//! assert!("p99<50ms".parse::<Threshold>().is_ok());
//! assert!("p99<fast".parse::<Threshold>().unwrap_err().to_string().contains("fast"));
//! ```

pub mod arrivals;
pub mod bodies;
pub mod connections;
pub mod content;
pub mod deal;
pub mod difference;
pub mod environment;
pub mod hosts;
pub mod injection;
pub mod percent;
pub mod plan;
pub mod profile;
pub mod random;
pub mod replay;
pub mod rows;
pub mod scenario;
pub mod schedule;
pub mod secret;
pub mod secrets;
pub mod setting;
pub mod share;
pub mod steps;
pub mod stop;
pub mod target;
pub mod threshold;
pub mod timetable;
pub mod units;
pub mod watch;
pub mod wire;
