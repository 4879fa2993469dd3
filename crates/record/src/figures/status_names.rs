//! Names of statuses.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::redaction::Secrets;

/// The most bytes of names for one status.
const MOST: usize = 200;

/// What protocols call statuses. Calls of one name may go to several services, so that a status may have several names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StatusNames(BTreeMap<u16, BTreeSet<String>>);

impl StatusNames {
    /// Adds a name of a status; beyond some hundred bytes none.
    pub fn add(&mut self, status: u16, name: &str) {
        let names = self.0.entry(status).or_default();
        if !names.contains(name) && names.iter().map(String::len).sum::<usize>() + name.len() < MOST {
            names.insert(name.to_owned());
        }
    }

    /// Adds those of others.
    pub fn merge(&mut self, other: &Self) {
        for (&status, names) in &other.0 {
            for name in names {
                self.add(status, name);
            }
        }
    }

    /// Whether no status has a name.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names as they are shown, `Busy or Gone`, by status.
    pub fn shown(&self) -> BTreeMap<u16, String> {
        let shown = |names: &BTreeSet<String>| names.iter().map(String::as_str).collect::<Vec<_>>().join(" or ");
        self.0.iter().map(|(&status, names)| (status, shown(names))).collect()
    }

    pub(super) fn hide(&mut self, secrets: &Secrets) {
        for names in self.0.values_mut() {
            *names = std::mem::take(names)
                .into_iter()
                .map(|mut name| {
                    secrets.hide_in(&mut name);
                    name
                })
                .collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_may_have_several_names() {
        let (mut some, mut others) = (StatusNames::default(), StatusNames::default());
        some.add(1, "Gone");
        // A name may have the word in it that stands between names.
        for name in ["Busy", "Gone", "Busy", "Lost or stolen"] {
            others.add(1, name);
        }
        some.merge(&others);
        assert_eq!(some.shown(), BTreeMap::from([(1, "Busy or Gone or Lost or stolen".to_owned())]));
        assert_eq!(some.0[&1].len(), 3);
        (0..1000).for_each(|n| some.add(1, &n.to_string()));
        assert!(some.shown()[&1].len() < 600);
    }
}
