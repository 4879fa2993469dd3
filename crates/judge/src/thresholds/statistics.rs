//! Statistics of a distribution, or of a script's own figure.

use brunt_plan::threshold::{OfOwn, OfWatched, Statistic};
use brunt_record::figures::OwnFigures;
use brunt_record::histogram::{AtLeast, Censored};
use brunt_record::watched::WatchedFigure;

/// The subject of a threshold does not have this figure: a check has no percentiles.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoSuchFigure;

/// The `statistic` of `times`, in nanoseconds.
pub(super) fn of_times(statistic: Statistic, times: &Censored) -> Option<AtLeast<f64>> {
    let lower = times.lower();
    let bounded = |value: f64| AtLeast { value, at_least: !times.bounds.is_empty() };
    match statistic {
        Statistic::Quantile(q) => times.quantile(q).map(|value| value.map(|ns| ns as f64)),
        Statistic::Mean => lower.mean().map(bounded),
        Statistic::Stdev => lower.stdev().map(bounded),
        Statistic::Min => times.min().map(|ns| AtLeast::exactly(ns as f64)),
        Statistic::Max => lower.max().map(|ns| bounded(ns as f64)),
    }
}

/// The value of a watched figure; `None` where no second has one.
pub(super) fn of_watched(figure: OfWatched, watched: &WatchedFigure) -> Option<f64> {
    match figure {
        OfWatched::Mean => watched.mean(),
        OfWatched::Min => watched.min(),
        OfWatched::Max => watched.max(),
        OfWatched::Last => watched.last(),
    }
}

/// The value of `own`, in its unit. A counter or a rate without records is 0; a trend or a gauge then has no value.
///
/// # Errors
/// When figures of this kind do not have it.
pub(super) fn of_own(figure: OfOwn, own: &OwnFigures, measured_s: f64) -> Result<Option<AtLeast<f64>>, NoSuchFigure> {
    if !figure.is_of(own.kind) {
        return Err(NoSuchFigure);
    }
    let exact = match figure {
        OfOwn::Count => Some(own.count as f64),
        OfOwn::Sum => own.sum(),
        OfOwn::Rate => own.sum().filter(|_| measured_s > 0.0).map(|sum| sum / measured_s),
        OfOwn::Share => own.share().or(Some(0.0)),
        OfOwn::Last => own.last(),
        OfOwn::Statistic(Statistic::Min) => own.min(),
        OfOwn::Statistic(Statistic::Max) => return Ok(own.max()),
        OfOwn::Statistic(Statistic::Mean) => return Ok(own.mean()),
        OfOwn::Statistic(Statistic::Stdev) => return Ok(own.stdev()),
        OfOwn::Statistic(Statistic::Quantile(q)) => return Ok(own.quantile(q)),
    };
    Ok(exact.map(AtLeast::exactly))
}
