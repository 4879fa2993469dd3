//! The protocols of a program, found by the schemes of their URLs.

use std::sync::Arc;

use crate::protocol::{Protocol, Scheme};

/// No protocol has this scheme.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no protocol is called '{scheme}'; there are {known}")]
pub struct UnknownScheme {
    /// The scheme asked for.
    pub scheme: String,
    /// The schemes that are known, separated by commas.
    pub known: String,
}

/// The protocols that a plan's scheme may name.
#[derive(Clone, Default)]
pub struct Registry {
    protocols: Vec<Arc<dyn Protocol>>,
}

impl Registry {
    /// Adds a protocol. It replaces earlier ones for the schemes that they share.
    pub fn register(&mut self, protocol: impl Protocol + 'static) {
        self.protocols.insert(0, Arc::new(protocol));
    }

    /// The protocol for a scheme, and what that scheme means.
    ///
    /// # Errors
    /// When no protocol has the scheme; the error lists the known ones.
    pub fn named(&self, scheme: &str) -> Result<(&dyn Protocol, Scheme), UnknownScheme> {
        self.find(scheme).ok_or_else(|| UnknownScheme { scheme: scheme.to_owned(), known: self.schemes().join(", ") })
    }

    /// Every protocol, in the order in which they are asked.
    pub fn protocols(&self) -> impl Iterator<Item = &Arc<dyn Protocol>> {
        self.protocols.iter()
    }

    /// The protocol for a scheme, and what that scheme means.
    pub fn find(&self, scheme: &str) -> Option<(&dyn Protocol, Scheme)> {
        self.protocols.iter().find_map(|protocol| {
            let scheme = *protocol.schemes().iter().find(|known| known.name == scheme)?;
            Some((protocol.as_ref(), scheme))
        })
    }

    /// Every scheme that can be named, sorted.
    pub fn schemes(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.protocols.iter().flat_map(|p| p.schemes()).map(|scheme| scheme.name).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}
