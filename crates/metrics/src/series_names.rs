//! Names with series of their own: a limited number of each kind, the first ones to come.

use std::collections::{BTreeMap, BTreeSet};

/// The most names of one kind that are told apart; further ones count together, as [`OTHERS`].
pub const MOST_SERIES: usize = 64;
/// The name for everything beyond [`MOST_SERIES`].
pub const OTHERS: &str = brunt_record::figures::OTHERS;

/// The names of a run with series of their own, by kind, over all its seconds.
#[derive(Debug, Clone, Default)]
pub struct Names {
    known: BTreeMap<&'static str, BTreeSet<String>>,
    crowded: BTreeSet<&'static str>,
}

impl Names {
    /// `name` if it has a series of its own among those of `kind`, or [`OTHERS`].
    pub fn series<'a>(&mut self, kind: &'static str, name: &'a str) -> &'a str {
        let known = self.known.entry(kind).or_default();
        if known.contains(name) {
            return name;
        }
        if name != OTHERS && known.len() < MOST_SERIES {
            known.insert(name.to_owned());
            return name;
        }
        self.crowded.insert(kind);
        OTHERS
    }

    /// The kinds that have names without a series of their own.
    pub fn crowded(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.crowded.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_names_keep_their_series_and_the_others_share_one() {
        let mut names = Names::default();
        for n in 0..2 * MOST_SERIES {
            names.series("request", &format!("GET /{n}"));
        }
        assert_eq!(names.series("request", "GET /0"), "GET /0");
        assert_eq!(names.series("request", &format!("GET /{MOST_SERIES}")), OTHERS);
        assert_eq!(names.series("check", "status is 200"), "status is 200", "each kind has its own");
        assert_eq!(names.crowded().collect::<Vec<_>>(), ["request"]);
    }

    #[test]
    fn what_the_run_counts_together_is_told_apart_by_nobody() {
        let mut names = Names::default();
        assert_eq!(names.series("request", OTHERS), OTHERS);
        assert_eq!(names.crowded().collect::<Vec<_>>(), ["request"]);
    }
}
