//! One run on many machines, over NATS.
//!
//! A *controller* is a brunt that was told to let agents carry its runs out ([`Cluster`]); an *agent* waits on the bus and carries
//! out its part ([`serve`]). The agents' workers are numbered through, so that due times, rows of data, users and random choices are
//! those of one machine with as many workers ([`Portion`](brunt_plan::share::Portion)). Each second's figures come back and merge as
//! those of one machine's workers do ([`brunt_engine::gather`]).
//!
//! | subject | who publishes | what |
//! | --- | --- | --- |
//! | `brunt.hello` | controllers | who is there? |
//! | `brunt.to.AGENT` | controllers | what an agent is to do |
//! | `brunt.from.CONTROLLER` | agents | what they have to say to it |
//! | `brunt.name.AGENT` | agents | whether one that lives has the name |
//!
//! Core NATS promises little, so `link.rs` makes sure that what is said arrives once and in order.

mod agent;
mod bus;
mod clock;
mod controller;
mod frame;
mod ledger;
mod link;
mod loss;
mod names;
mod roster;
mod takeover;
mod words;

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

pub use agent::{AgentEvent, AgentOptions, PartEnded, serve};
pub use bus::{Bus, BusError, token_of};
pub use clock::Offset;
pub use controller::{Cluster, ClusterError, OnLost, Outcome, Terms, list};
pub use frame::CLUSTER_VERSION;
pub use roster::{RosterError, Wanted, WantedError, Workers};
pub use words::Announcement;

/// How long an agent goes on without a word of its controller.
pub const LEASE: Duration = Duration::from_secs(5);
/// How long an agent may be silent before it counts as lost.
pub const SILENCE: Duration = Duration::from_secs(2);

/// A number that nobody else has.
fn random_number() -> u64 {
    // Keyed by the operating system's random numbers.
    RandomState::new().build_hasher().finish().max(1)
}
