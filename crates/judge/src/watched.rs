//! Summaries of figures watched beside a run.

use brunt_plan::plan::Plan;
use brunt_plan::watch::Watch;
use brunt_record::recording::Recording;
use brunt_record::watched::{WatchedFigure, WatchedUnit};
use serde::{Deserialize, Serialize};

/// A watched figure over the measured part. Its values are in its unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchedSummary {
    /// Its name; thresholds know it as `watch.NAME`.
    pub name: String,
    /// Where its values come from, without secrets.
    pub source: String,
    /// The unit of its values.
    pub unit: WatchedUnit,
    /// Seconds that have a value.
    pub seconds: u64,
    /// Seconds without a value.
    pub missed_seconds: u64,
    /// The reason of the last missed value; left out if none was missed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub problem: String,
    /// The mean of the values; this and the next three are `null` without values.
    pub mean: Option<f64>,
    /// The least value.
    pub min: Option<f64>,
    /// The greatest value.
    pub max: Option<f64>,
    /// The last value.
    pub last: Option<f64>,
    /// For a figure in `cores`: the CPU time for each answered call, in nanoseconds. Left out where no call was
    /// answered, and where a tenth of the seconds or more has no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_per_call_ns: Option<f64>,
}

impl WatchedSummary {
    /// The summaries of a run by `plan`, in the order in which the figures were asked for.
    pub fn all(plan: &Plan, run: &Recording) -> Vec<Self> {
        let source = |watch: &Watch| watch.shown_source();
        let asked =
            plan.watches.iter().flat_map(|watch| watch.figures().into_iter().map(move |figure| (watch, figure)));
        asked
            .map(|(watch, asked)| {
                let nothing = WatchedFigure::of_unit(asked.unit);
                let figure = run.measured.watched.get(&asked.name).unwrap_or(&nothing);
                Self {
                    source: source(watch),
                    unit: figure.unit,
                    seconds: figure.seconds,
                    missed_seconds: figure.missed,
                    problem: figure.problem.clone(),
                    mean: figure.mean(),
                    min: figure.min(),
                    max: figure.max(),
                    last: figure.last(),
                    cpu_per_call_ns: cpu_per_call(figure, run),
                    name: asked.name,
                }
            })
            .collect()
    }
}

/// CPU time for each call that was answered, in nanoseconds.
fn cpu_per_call(figure: &WatchedFigure, run: &Recording) -> Option<f64> {
    let answered = run.measured.statuses.total();
    let is_known = figure.unit == WatchedUnit::Cores && answered > 0 && figure.missed * 9 <= figure.seconds;
    figure.mean().filter(|_| is_known).map(|cores| cores * run.measured_ns as f64 / answered as f64)
}

#[cfg(test)]
mod tests {
    use brunt_record::figures::FigureByName as _;

    use super::*;
    use crate::fixtures::run;
    use crate::summary::Summary;
    use crate::thresholds::ThresholdResult;

    fn watched(thresholds: &[&str], values: &[Option<f64>]) -> Summary {
        let (plan, mut run) = run();
        for value in values {
            let figure = value.map_or_else(
                || WatchedFigure::missed(WatchedUnit::Cores, "no process 7"),
                |value| WatchedFigure::value(WatchedUnit::Cores, value),
            );
            run.measured.watched.named("cpu").merge(&figure);
        }
        let plan = Plan {
            watches: vec!["pid:7".parse().unwrap()],
            thresholds: thresholds.iter().map(|text| text.parse().unwrap()).collect(),
            ..plan
        };
        Summary::new(plan, run)
    }

    #[test]
    fn cpu_of_the_target_is_told_for_each_call() {
        // 1999 answers in 2 s.
        let summary = watched(&[], &[Some(0.5), Some(1.0)]);
        let [cpu, memory, descriptors] = summary.watched.as_slice() else { panic!("{:?}", summary.watched) };
        assert_eq!((cpu.mean, cpu.min, cpu.max, cpu.last), (Some(0.75), Some(0.5), Some(1.0), Some(1.0)));
        assert!((cpu.cpu_per_call_ns.unwrap() - 1.5e9 / 1999.0).abs() < 1e-6);
        assert_eq!((memory.unit, memory.seconds, memory.mean), (WatchedUnit::Bytes, 0, None));
        assert_eq!((descriptors.name.as_str(), descriptors.source.as_str()), ("descriptors", "pid:7"));
        let gaps = watched(&[], &[Some(0.5), None]);
        assert_eq!((gaps.watched[0].cpu_per_call_ns, gaps.watched[0].missed_seconds), (None, 1));
    }

    #[test]
    fn thresholds_judge_what_is_watched_and_never_what_was_missed() {
        let judged = |text: &str, values: &[Option<f64>]| {
            let summary = watched(&[text], values);
            let ThresholdResult { got, held, .. } = summary.thresholds[0].clone();
            (got.to_string(), held)
        };
        let values = [Some(0.5), None, Some(0.95)];
        for (text, got, held) in [
            ("watch.cpu:max<90%", "95.0%; no value in 1 of 3 seconds", false),
            ("watch.cpu:max<96%", "95.0%; no value in 1 of 3 seconds", true),
            ("watch.cpu<90%", "72.5%; no value in 1 of 3 seconds", true),
            ("watch.cpu:min>=50%", "50.0%; no value in 1 of 3 seconds", true),
            ("watch.cpu:last>0.9", "95.0%; no value in 1 of 3 seconds", true),
            ("watch.memory:max<1GB", "no value", false),
        ] {
            assert_eq!(judged(text, &values), (got.to_owned(), held), "{text}");
        }
        assert_eq!(judged("watch.cpu:max<90%", &[None, None]), ("no value".to_owned(), false));
        let ended = judged("watch.cpu:max<90%", &[Some(0.5), None, None]);
        assert_eq!(ended, ("50.0%; no value in 2 of 3 seconds".to_owned(), false), "it ended in the first half");
        assert_eq!(judged("watch.cpu:max<90%", &[Some(0.5)]), ("50.0%".to_owned(), true));
    }
}
