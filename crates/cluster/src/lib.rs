//! One run on many machines, over NATS.
//!
//! A *controller* is a brunt that lets agents carry out its runs ([`Cluster`]); an *agent* waits on the bus and carries
//! out its part ([`serve`]). The agents' workers are numbered through, so that due times, rows of data, users and
//! random choices are those of one machine with as many workers ([`Portion`](brunt_plan::share::Portion)). Each
//! second's figures come back and merge as those of one machine's workers do ([`brunt_engine::gather`]).
//!
//! | subject | who publishes | what |
//! | --- | --- | --- |
//! | `brunt.hello` | controllers | who is there? |
//! | `brunt.to.AGENT.INSTANCE` | controllers | what an agent is to do |
//! | `brunt.from.AGENT.here` | agents | who they are |
//! | `brunt.from.AGENT.CONTROLLER` | agents | what they have to say to a controller |
//! | `brunt.echo.CONTROLLER` | controllers | what a controller says to itself, to know whether the bus lets anything through |
//! | `brunt.name.AGENT` | agents | whether one that lives has the name |
//!
//! The subject identifies the sender, and is guarded by the server's permissions. No message is answered to its reply
//! subject.
//!
//! Core NATS promises little, so `link.rs` makes messages arrive once and in order.
//!
//! ```
//! use std::sync::Arc;
//!
//! use brunt_cluster::{AgentOptions, Bus, BusError, serve};
//! use brunt_plan::stop::StopHandle;
//! use brunt_protocol::Registry;
//! use brunt_script::ScriptHost;
//!
//! /// What `brunt agent` does: it waits for controllers, and carries out what they hand over, until it is stopped.
//! fn agent(bus: &Bus, options: AgentOptions, scripts: &'static dyn ScriptHost, stop: &StopHandle) -> Result<(), BusError> {
//!     serve(bus, options, Arc::new(Registry::default()), scripts, stop, &mut |_event| ())
//! }
//! ```

mod agent;
mod bus;
mod clock;
mod controller;
mod frame;
mod limits;
mod link;
mod loss;
mod lost_log_calls;
mod messages;
mod name_claim;
mod post;
mod roster;
mod rules;
#[cfg(test)]
mod simulation;

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

pub use agent::{AgentEvent, AgentOptions, PartEnded, PartSamples, serve};
pub use bus::{Bus, BusError, token_of};
pub use clock::Offset;
pub use controller::{Awaited, Cluster, ClusterError, ClusterOptions, Notice, OnLost, Outcome, Waiting, list};
pub use frame::CLUSTER_VERSION;
pub use messages::Announcement;
pub use roster::{RosterError, WantedAgents, WantedError, Workers};

/// How long an agent waits for a message of its controller before it gives up the run. Its calls have ended before:
/// they reach no further than the controller has granted.
pub const PATIENCE: Duration = Duration::from_secs(15);
/// How long an agent may be silent before it counts as lost, while others speak.
pub const SILENCE: Duration = Duration::from_secs(3);

/// [`PATIENCE`] and [`SILENCE`] in nanoseconds.
pub(crate) const PATIENCE_NS: u64 = PATIENCE.as_nanos() as u64;
pub(crate) const SILENCE_NS: u64 = SILENCE.as_nanos() as u64;

/// A number that nobody else has.
fn random_number() -> u64 {
    // Keyed by the operating system's random numbers.
    RandomState::new().build_hasher().finish().max(1)
}

/// The id of a session, which cannot be guessed.
fn random_session() -> u128 {
    u128::from(random_number()) << 64 | u128::from(random_number())
}
