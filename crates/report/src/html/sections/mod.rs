//! The parts of a run's page below its first screen, a file each.

mod agents;
mod distribution;
mod latency;
mod load;
mod measurement;
mod names;
mod outcomes;
mod replay;
mod requests;
mod running;

use super::last_second::LastSecond;
use super::over_time::Moment;
use super::shown::Shown;
use super::stretches::Stretch;
use crate::page::{Section, repeat};

pub(super) use load::each;
pub(super) use running::state;

/// All sections, in their order.
pub(super) fn sections(
    shown: Shown<'_>,
    stretches: &[Stretch],
    moments: &[Moment],
    live: Option<&LastSecond>,
) -> Vec<Section> {
    let mut sections =
        vec![requests::requests(shown), outcomes::outcomes(shown, live), distribution::distribution(shown)];
    sections.push(replay::replay(shown));
    sections.extend(names::names(shown));
    sections.extend([
        latency::latency(shown),
        agents::agents(shown, live),
        requests::tags(shown),
        measurement::measurement(shown, live),
        load::load(stretches, moments, &shown.summary.run.changes),
        repeat(&shown.summary.plan.origin.command),
    ]);
    sections
}
