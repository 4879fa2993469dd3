//! Protocols.

pub mod http1;

/// The protocols that a plan's scheme may name.
pub struct Registry;

impl Registry {
    /// The protocols that come with brunt.
    pub fn built_in() -> Self {
        Self
    }
}
