//! A plan's `protocol` part: how a protocol's options are written into it and read from it.

use brunt_plan::plan::{Plan, ProtocolOptions};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Something in a plan's `protocol` part is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OptionsError(pub String);

/// Reads the plan's `protocol` part as options of the protocol `name`.
///
/// # Errors
/// When it is not one of this protocol.
pub fn read_options<T: DeserializeOwned>(plan: &Plan, name: &str) -> Result<T, OptionsError> {
    T::deserialize(plan.protocol.reveal()).map_err(|e| {
        // The value may be a secret: the error says only what was expected.
        let problem = e.to_string();
        let problem = match (problem.find('"'), problem.rfind('"')) {
            (Some(from), Some(to)) if from < to => {
                let around = problem.get(..from).zip(problem.get(to + 1..));
                around.map_or_else(String::new, |(before, behind)| format!("{before}…{behind}"))
            }
            _ => problem,
        };
        OptionsError(format!("the plan's protocol part is not one of {name}: {problem}"))
    })
}

/// Writes options as a plan's `protocol` part. Its form for display leaves out what secret flags gave
/// ([`Flag::secret`](crate::flags::Flag::secret)).
///
/// # Errors
/// When they cannot be written as JSON.
pub fn write_options(options: &impl Serialize) -> Result<ProtocolOptions, OptionsError> {
    let value = serde_json::to_value(options).map_err(|e| OptionsError(e.to_string()))?;
    Ok(ProtocolOptions::without_secrets(value))
}
