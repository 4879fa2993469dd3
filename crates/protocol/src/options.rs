//! A plan's `protocol` part: how a protocol's options are written into it and read from it.

use brunt_plan::plan::{Plan, ProtocolOptions};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Something in a plan's `protocol` part is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OptionsError(pub String);

/// Reads the plan's `protocol` part, which is one of the protocol that is called `name`.
///
/// # Errors
/// When it is not.
pub fn read_options<T: DeserializeOwned>(plan: &Plan, name: &str) -> Result<T, OptionsError> {
    T::deserialize(plan.protocol.reveal()).map_err(|e| {
        // What came may be a secret: what was expected is enough.
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

/// A plan's `protocol` part of options. What secret flags gave is left out of what is shown of it
/// ([`Flag::secret`](crate::flags::Flag::secret)).
///
/// # Errors
/// When they cannot be written as JSON.
pub fn write_options(options: &impl Serialize) -> Result<ProtocolOptions, OptionsError> {
    let value = serde_json::to_value(options).map_err(|e| OptionsError(e.to_string()))?;
    Ok(ProtocolOptions::without_secrets(value))
}
