//! `handleSummary`: what the script makes of a run's result.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use brunt_plan::plan::Plan;
use brunt_plan::scenario::Scenarios;
use brunt_protocol::scenario::Value as Plain;
use brunt_record::figures::{Figures, OwnFigures, OwnKind};
use brunt_script::ScriptError;
use serde_json::{Map, Value, json};

use crate::options::{CHECK, Options};
use crate::program::{Probed, Source};
use crate::shared::SUMMARY;

/// Statistics of a trend that a summary has where the script chooses none.
const STATISTICS: [&str; 6] = ["avg", "min", "med", "max", "p(90)", "p(95)"];

/// The metric of iterations for which no VU was free.
const DROPPED: &str = "dropped_iterations";

/// The result of a run, as far as a summary tells of it.
#[derive(Debug, Clone)]
pub struct RunResult<'r> {
    /// What was counted by name.
    pub figures: &'r Figures,
    /// The conditions, as written in the plan, and whether they held.
    pub conditions: Vec<(String, bool)>,
    /// How long the measured part took, in nanoseconds.
    pub measured_ns: u64,
    /// Whether standard output is a terminal.
    pub is_terminal: bool,
}

/// What the script's `handleSummary` is given of the run's result; `None` where the script has no such function.
///
/// # Errors
/// The file and line of an error at the script's top.
pub fn summary_data(
    plan: &Plan,
    scenarios: &Scenarios,
    result: &RunResult<'_>,
) -> Result<Option<Plain<'static>>, ScriptError> {
    // A script that does not mention it costs nothing.
    let is_mentioned = |text: &[u8]| text.windows(SUMMARY.len()).any(|word| word == SUMMARY.as_bytes());
    if !scenarios.files.iter().any(|file| is_mentioned(&file.content.0)) {
        return Ok(None);
    }
    let probed = Source::of_plan(plan, scenarios)?.probe(false)?;
    Ok(probed.has_summary.then(|| Plain::Text(described(result, &probed).to_string().into_bytes().into())))
}

/// The texts that `handleSummary` has left, by the names of their files.
#[must_use]
pub fn summary_texts(left: &Plain<'_>) -> BTreeMap<String, Vec<u8>> {
    let packed: BTreeMap<String, String> =
        serde_json::from_slice(left.as_bytes().unwrap_or_default()).unwrap_or_default();
    packed.into_iter().map(|(name, text)| (name, STANDARD.decode(text).unwrap_or_default())).collect()
}

/// The result as `library/summary.js` takes it.
fn described(result: &RunResult<'_>, probed: &Probed) -> Value {
    let options: Value = serde_json::from_str(&probed.options.json).unwrap_or_default();
    let chosen: Option<Vec<String>> =
        options.get("summaryTrendStats").and_then(|chosen| serde_json::from_value(chosen.clone()).ok());
    let statistics = chosen.unwrap_or_else(|| STATISTICS.map(str::to_owned).to_vec());
    let seconds = result.measured_ns as f64 / 1e9;
    let thresholds = |name: &str, kind: Option<OwnKind>| {
        let of_metric = probed.options.thresholds.iter().filter(|asked| asked.name() == *name);
        let judged = of_metric.filter_map(|asked| {
            let condition = asked.condition(kind).ok()?.to_string();
            let ok = result.conditions.iter().find(|(known, _)| *known == condition).is_none_or(|(_, held)| *held);
            Some(json!({ "source": asked.text, "ok": ok }))
        });
        judged.collect::<Vec<_>>()
    };
    let metric = |(name, own): (&str, &OwnFigures)| {
        json!({
            "name": tagged(name), "kind": own.kind.name(), "contains": contains(name, own), "values": values(own, seconds, &statistics),
            "thresholds": thresholds(name, Some(own.kind)),
        })
    };
    let names = |path: &str| path.split('/').map(str::to_owned).collect::<Vec<_>>();
    let (checks, metrics): (Vec<_>, Vec<_>) = result.figures.own.iter().partition(|(name, _)| name.starts_with(CHECK));
    let check = |(name, own): (&str, &OwnFigures)| {
        let mut path: Vec<&str> = name.get(CHECK.len()..).unwrap_or_default().split("::").skip(1).collect();
        let name = path.pop();
        let (passes, fails) = passes(own);
        json!({ "group": path, "name": name, "passes": passes, "fails": fails })
    };
    let mut metrics: Vec<_> = metrics.into_iter().map(metric).collect();
    let most = result.figures.most_users;
    metrics.extend(["vus", "vus_max"].map(|name| {
        let values = json!({ "value": most, "min": most, "max": most });
        json!({ "name": name, "kind": "gauge", "contains": "default", "values": values, "thresholds": thresholds(name, None) })
    }));
    let dropped: u64 = result.figures.scenarios.iter().map(|(_, scenario)| scenario.not_admitted).sum();
    let judged = thresholds(DROPPED, None);
    if dropped > 0 || !judged.is_empty() {
        let values = json!({ "count": dropped, "rate": per_second(dropped as f64, seconds) });
        metrics.push(
            json!({ "name": DROPPED, "kind": "counter", "contains": "default", "values": values, "thresholds": judged }),
        );
    }
    json!({
        "metrics": metrics,
        "groups": result.figures.groups.iter().map(|(path, _)| names(path)).collect::<Vec<_>>(),
        "checks": checks.into_iter().map(check).collect::<Vec<_>>(),
        "options": options,
        "isStdOutTTY": result.is_terminal,
        "isStdErrTTY": result.is_terminal,
        "testRunDurationMs": result.measured_ns as f64 / 1e6,
    })
}

fn per_second(sum: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { sum / seconds } else { 0.0 }
}

/// A figure's name as k6 writes that of a metric: `checks{group:a}`.
fn tagged(name: &str) -> String {
    name.split_once('{')
        .map_or_else(|| name.to_owned(), |(metric, tags)| format!("{metric}{{{}", tags.replace('=', ":")))
}

/// What a metric's values are.
fn contains(name: &str, own: &OwnFigures) -> &'static str {
    let metric = name.split('{').next().unwrap_or(name);
    match (Options::is_time(metric), metric) {
        (true, _) => "time",
        (_, "data_sent" | "data_received") => "data",
        _ if own.unit == "ms" => "time",
        _ => "default",
    }
}

/// How often a rate was not 0, and how often it was.
fn passes(own: &OwnFigures) -> (u64, u64) {
    let passes = (own.share().unwrap_or(0.0) * own.count as f64).round() as u64;
    (passes, own.count.saturating_sub(passes))
}

/// The values of a metric by k6's names.
fn values(own: &OwnFigures, seconds: f64, statistics: &[String]) -> Value {
    match own.kind {
        OwnKind::Counter => {
            let sum = own.sum().unwrap_or(0.0);
            json!({ "count": sum, "rate": per_second(sum, seconds) })
        }
        OwnKind::Rate => {
            let (passes, fails) = passes(own);
            json!({ "rate": own.share().unwrap_or(0.0), "passes": passes, "fails": fails })
        }
        OwnKind::Gauge => json!({ "value": own.last(), "min": own.min(), "max": own.max().map(|most| most.value) }),
        OwnKind::Trend => {
            let of = |name: &String| {
                let value = match name.as_str() {
                    "avg" => own.mean().map(|mean| mean.value),
                    "min" => own.min(),
                    "max" => own.max().map(|most| most.value),
                    "med" => quantile(own, 0.5),
                    "count" => Some(own.count as f64),
                    other => {
                        let percentile = other.strip_prefix("p(")?.strip_suffix(')')?.parse::<f64>().ok()?;
                        quantile(own, percentile / 100.0)
                    }
                };
                Some((name.clone(), Value::from(value.unwrap_or(0.0))))
            };
            Value::Object(statistics.iter().filter_map(of).collect::<Map<_, _>>())
        }
    }
}

/// The value at the place `q × (count − 1)` of a trend's values in their order, interpolated between its neighbours, as k6 has it.
fn quantile(own: &OwnFigures, q: f64) -> Option<f64> {
    let count = own.count as f64;
    let place = q.clamp(0.0, 1.0) * (count - 1.0).max(0.0);
    // Half a rank away from its neighbours, so that no rounding error leads to them.
    let value = |place: f64| own.quantile((place + 0.5) / count).map(|value| value.value);
    let below = value(place.floor())?;
    let share = place.fract();
    if share == 0.0 { Some(below) } else { Some(below + (value(place.floor() + 1.0)? - below) * share) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_between_their_neighbours() {
        let mut own = OwnFigures::new(OwnKind::Trend, "");
        assert_eq!(quantile(&own, 0.5), None);
        own.record(40.0, 1);
        assert_eq!(quantile(&own, 0.99), Some(40.0));
        for value in [10.0, 30.0, 20.0] {
            own.record(value, 2);
        }
        for (q, value) in [(0.0, 10.0), (0.5, 25.0), (0.9, 37.0), (1.0, 40.0)] {
            assert!(quantile(&own, q).is_some_and(|got| (got / value - 1.0).abs() < 0.001), "{q}");
        }
    }
}
