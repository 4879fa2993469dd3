//! Response times: a histogram of calls that are ok and those that are not, and the times of ever fewer, slower calls.

mod histogram;
mod spectrum;

use super::super::shown::Shown;
use crate::json::Histograms;
use crate::page::{Section, Tool};

pub(super) fn distribution(shown: Shown<'_>) -> Section {
    let mut section = Section::new("distribution", "How long calls took");
    let limits = super::super::over_time::limits(shown);
    let times = Histograms::from_snapshot(&shown.summary.total);
    let html = &mut section.body;
    if let Some(histogram) = histogram::Histogram::of_calls(&times.times) {
        section.tools.push(Tool::csv("histogram", &histogram.csv()));
        histogram.write(html, &limits);
    }
    if let Some(spectra) = spectrum::Spectra::new(shown.summary, &times.times) {
        section.tools.push(Tool::csv("spectrum", &spectra.csv()));
        spectra.write(html);
    }
    section.is_drawn = true;
    section
}
