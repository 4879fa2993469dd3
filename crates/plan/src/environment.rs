//! Values that a plan brings along for its references to the environment.

use std::collections::BTreeMap;
use std::fmt;

/// Values for references (`@NAME`) in a plan. A name without a value here is looked up in the environment of the
/// process that carries out the plan.
///
/// A plan for this machine brings none. A plan for other machines brings the values of this machine's environment,
/// unless each of those has to use its own.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// The variables of these names that this process's environment has.
    pub fn here(names: impl IntoIterator<Item = String>) -> Self {
        let set = |name: String| std::env::var(&name).ok().map(|value| (name, value));
        Self(names.into_iter().filter_map(set).collect())
    }

    /// Placeholders for those of these names that this process's environment lacks; other machines may have them.
    pub(crate) fn made_up(names: impl IntoIterator<Item = String>) -> Self {
        let unset = names.into_iter().filter(|name| std::env::var(name).is_err());
        Self(unset.map(|name| (name, "unknown".to_owned())).collect())
    }

    /// The value of this name.
    pub fn value(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned().or_else(|| std::env::var(name).ok())
    }

    /// Whether it brings no value.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All values by their names, to be sent.
    pub(crate) fn reveal(&self) -> &BTreeMap<String, String> {
        &self.0
    }

    /// Values that were sent.
    pub(crate) fn arrived(values: BTreeMap<String, String>) -> Self {
        Self(values)
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_brings_stands_before_what_is_set_here() {
        let environment = Environment::arrived([("PATH".to_owned(), "elsewhere".to_owned())].into());
        assert_eq!(environment.value("PATH").as_deref(), Some("elsewhere"));
        assert_eq!(Environment::default().value("PATH"), std::env::var("PATH").ok());
        let made_up = Environment::made_up(["PATH".to_owned(), "BRUNT_NO_SUCH".to_owned()]);
        assert_eq!(made_up.value("PATH"), std::env::var("PATH").ok());
        assert_eq!(made_up.value("BRUNT_NO_SUCH").as_deref(), Some("unknown"));
    }
}
