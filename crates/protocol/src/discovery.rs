//! Calls that a protocol makes to the target before there is any load, to learn what the load is made of: a schema, say.
//!
//! A protocol does no I/O here either. It says what to call by options of its own, as a plan has them, and is given the answer; who
//! put it to work connects, as the run will.

use brunt_plan::plan::ProtocolOptions;

use crate::client::KeptAnswer;

/// The answer to a call that was made before the load.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// The protocol's own status.
    pub status: u16,
    /// What its connection's client kept of it.
    pub kept: KeptAnswer,
}

/// Makes the first call that these options describe, to the target of the run, and gives its answer; in words why there is none.
///
/// Each is one call on a connection of its own, with the timeouts and the TLS of the run. It blocks.
///
/// ```
/// use brunt_protocol::discovery::{Inquiry, Reply};
/// use brunt_protocol::write_options;
///
/// fn version(ask: &Inquiry<'_>) -> Result<String, String> {
///     let call = write_options(&"VERSION").map_err(|error| error.to_string())?;
///     Ok(String::from_utf8_lossy(&ask(&call)?.kept.body).into_owned())
/// }
///
/// let target = |_: &_| Ok(Reply { status: 0, kept: brunt_protocol::KeptAnswer { head: Vec::new(), body: b"7".to_vec() } });
/// assert_eq!(version(&target).as_deref(), Ok("7"));
/// ```
pub type Inquiry<'a> = dyn Fn(&ProtocolOptions) -> Result<Reply, String> + 'a;

/// Makes content of what the target says. Called with a name for it: where a plan has content of this name, that is given and nothing is
/// asked. So what was learned once travels in the plan.
pub type Discovery<'a> = dyn Fn(&str, &dyn Fn(&Inquiry<'_>) -> Result<Vec<u8>, String>) -> Result<Vec<u8>, String> + 'a;
