//! Runs that were asked of agents and not made.

use brunt_decide::short::Lacking;
use brunt_judge::asked::Asked;

use crate::made;

/// Sentences about runs that were asked of agents and not made.
pub(super) fn not_made(lacking: &Lacking) -> impl Iterator<Item = String> {
    lacking.short.iter().filter(|made| made.of != Asked::Level).map(made::sentence)
}
