//! The parts of a run's page below its first screen, a file each.

mod agents;
mod distribution;
mod latency;
mod load;
mod measurement;
mod outcomes;
mod replay;
mod requests;
mod running;
mod script_figures;
mod timelines;

use super::last_second::LastSecond;
use super::over_time::Moment;
use super::shown::Shown;
use super::stretches::Stretch;
use crate::page::{Section, repeat};
use crate::text::are_of_protocol;

pub(super) use load::each;
pub(super) use running::state;

/// All sections, in their order.
pub(super) fn sections(
    shown: Shown<'_>,
    stretches: &[Stretch],
    moments: &[Moment],
    live: Option<&LastSecond>,
) -> Vec<Section> {
    let own = script_figures::own_figures(shown);
    let of_protocol = are_of_protocol(shown.summary);
    // What a protocol measures is what its users look for first.
    let (first, last) = if of_protocol { (Some(own), None) } else { (None, Some(own)) };
    let mut sections: Vec<_> = first.into_iter().collect();
    sections.push(timelines::timelines(shown));
    sections.extend([requests::requests(shown), outcomes::outcomes(shown, live), distribution::distribution(shown)]);
    sections.push(replay::replay(shown));
    sections.extend(script_figures::names(shown));
    sections.extend(last);
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
