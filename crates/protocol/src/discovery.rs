//! Calls that a protocol makes to the target before the load, to learn something that the load needs: a schema, say.
//!
//! A protocol does no I/O here either. It describes the call by options of its own, as a plan has them, and is given
//! the answer. Its caller connects as the run will.

use brunt_plan::plan::ProtocolOptions;

use crate::client::KeptAnswer;

/// The answer to a call that was made before the load.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiscoveryReply {
    /// The protocol's own status.
    pub status: u16,
    /// The answer as the connection's client kept it.
    pub kept: KeptAnswer,
}

/// Makes the first call that these options describe, to the target of the run. Returns its answer, or in words why
/// there is none.
///
/// Each call has a connection of its own, with the timeouts and the TLS of the run. It blocks.
///
/// ```
/// use brunt_protocol::discovery::{DiscoveryReply, Inquiry};
/// use brunt_protocol::write_options;
///
/// fn version(ask: &Inquiry<'_>) -> Result<String, String> {
///     let call = write_options(&"VERSION").map_err(|error| error.to_string())?;
///     Ok(String::from_utf8_lossy(&ask(&call)?.kept.body).into_owned())
/// }
///
/// let target = |_: &_| Ok(DiscoveryReply { status: 0, kept: brunt_protocol::KeptAnswer { head: Vec::new(), body: b"7".to_vec() } });
/// assert_eq!(version(&target).as_deref(), Ok("7"));
/// ```
pub type Inquiry<'a> = dyn Fn(&ProtocolOptions) -> Result<DiscoveryReply, String> + 'a;

/// Makes content from the target's answers, under a name. Where the plan has content of this name already, that is
/// returned and the target is not asked. So what was learned once travels in the plan.
pub type Discovery<'a> = dyn Fn(&str, &dyn Fn(&Inquiry<'_>) -> Result<Vec<u8>, String>) -> Result<Vec<u8>, String> + 'a;
