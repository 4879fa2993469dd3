//! Thresholds: k6's metrics, by brunt's figures.

use crate::constant::{self, Constant};
use crate::names::Metric;
use crate::script::Script;
use crate::syntax::Node;
use crate::text::quoted;

/// The thresholds of options, as figures and conditions in Lua.
pub(crate) fn all<'t>(script: &mut Script<'t>, node: Node<'t>, thresholds: &mut Vec<(String, String)>) {
    let Some(fields) = script.names.fields_of(node) else {
        script.leave(node, "not moved: thresholds that are put together while the script runs");
        return;
    };
    for (metric, value) in fields {
        let conditions = match constant::evaluate(value, &script.names.values) {
            Constant::List(all) => all,
            _ => vec![value],
        };
        for condition in conditions {
            match one(script, &metric, condition) {
                Some(threshold) => thresholds.push(threshold),
                None => script.leave(condition, format!("not moved: the threshold {metric}: {}", condition.shown())),
            }
        }
    }
}

/// One threshold; none where brunt has no such figure.
fn one<'t>(script: &mut Script<'t>, metric: &str, node: Node<'t>) -> Option<(String, String)> {
    let (text, aborts) = match constant::evaluate(node, &script.names.values) {
        Constant::Text(text) => (text, false),
        Constant::Object(fields) => {
            let get = |name: &str| fields.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
            let Constant::Text(text) = constant::evaluate(get("threshold")?, &script.names.values) else { return None };
            if let Some(delay) = get("delayAbortEval") {
                script.leave(delay, "not moved: delayAbortEval; brunt aborts once a threshold can no longer hold");
            }
            let aborts = match get("abortOnFail").map(|flag| constant::evaluate(flag, &script.names.values)) {
                None => false,
                Some(Constant::Flag(aborts)) => aborts,
                Some(_) => return None,
            };
            (text, aborts)
        }
        _ => return None,
    };
    let (what, sign, value) = read(&text)?;
    let (base, conditions) = match metric.split_once('{') {
        Some((base, rest)) => (base.trim(), rest.trim_end().trim_end_matches('}')),
        None => (metric.trim(), ""),
    };
    let (figure, value) = figure(script, node, base, conditions, what, value)?;
    let condition = quoted(&format!("{sign} {value}"));
    let condition = if aborts { format!("{{ {condition}, abort = true }}") } else { condition };
    Some((figure, condition))
}

/// `p(95)<500`: what, sign and value.
fn read(text: &str) -> Option<(&str, &'static str, f64)> {
    let at = text.find(['<', '>', '=', '!'])?;
    let (what, rest) = text.split_at_checked(at)?;
    let signs = [("<=", "<="), (">=", ">="), ("===", "=="), ("==", "=="), ("<", "<"), (">", ">")];
    let (written, sign) = signs.into_iter().find(|(written, _)| rest.starts_with(written))?;
    let value = rest.get(written.len()..)?.trim().parse().ok()?;
    Some((what.trim(), sign, value))
}

/// `p(95)`, `avg`, `med` as brunt calls them.
fn of_times(what: &str) -> Option<String> {
    let percentile = what.strip_prefix("p(").and_then(|rest| rest.strip_suffix(')'));
    if let Some(percentile) = percentile {
        return Some(format!("p{percentile}"));
    }
    Some(match what {
        "avg" => "mean".to_owned(),
        "med" => "p50".to_owned(),
        "min" | "max" => what.to_owned(),
        _ => return None,
    })
}

fn percent(share: f64) -> String {
    format!("{}%", (share * 1e8).round() / 1e6)
}

fn figure<'t>(
    script: &mut Script<'t>,
    node: Node<'t>,
    base: &str,
    conditions: &str,
    what: &str,
    value: f64,
) -> Option<(String, String)> {
    let own = script.names.metrics.values().find(|(name, ..)| name == base).cloned();
    if let Some((name, metric, is_time)) = own {
        return of_own((&name, metric, is_time), conditions, what, value);
    }
    let place = if conditions.is_empty() { String::new() } else { format!("{{{}}}:", of_calls(conditions)?) };
    let time = |name: &str| Some((format!("{place}{name}{}", of_times(what)?), format!("{value}ms")));
    match (base, what) {
        ("http_req_duration", _) => time("service."),
        ("http_req_waiting", _) => time("first_byte."),
        ("http_req_connecting", _) => time("connect."),
        ("http_req_tls_handshaking", _) => time("tls."),
        ("http_req_failed", "rate") => {
            script.leave(node, "http_req_failed: error_rate counts calls with a failed check, too");
            Some((format!("{place}error_rate"), percent(value)))
        }
        ("http_reqs", "count") => Some((format!("{place}due"), value.to_string())),
        ("checks", "rate") if conditions.is_empty() => Some(("checks".to_owned(), percent(value))),
        ("group_duration", _) => {
            let group = conditions.strip_prefix("group:")?.trim_start_matches("::").replace("::", "/");
            Some((format!("group {group}:with_pauses.{}", of_times(what)?), format!("{value}ms")))
        }
        ("iteration_duration", _) => {
            let scenario = scenario_of(script, conditions)?;
            Some((format!("scenario {scenario}:duration.{}", of_times(what)?), format!("{value}ms")))
        }
        ("iterations", "count") => {
            Some((format!("scenario {}:iterations", scenario_of(script, conditions)?), value.to_string()))
        }
        ("vus" | "vus_max", "max" | "value") => Some(("users".to_owned(), value.to_string())),
        _ => None,
    }
}

/// The scenario that is meant; none where those of all are.
fn scenario_of<'c>(script: &Script<'_>, conditions: &'c str) -> Option<&'c str> {
    if conditions.is_empty() {
        (!script.has_scenarios).then_some("default")
    } else {
        conditions.strip_prefix("scenario:")
    }
}

/// `name:a,group:::cart::pay` as conditions on calls.
fn of_calls(conditions: &str) -> Option<String> {
    let mut all = Vec::new();
    for condition in split(conditions) {
        let (key, value) = condition.split_once(':')?;
        let value = value.trim();
        let value = match key.trim() {
            // How a request was made, and whether its status was expected, brunt tells no calls apart by.
            "expected_response" | "method" | "url" | "proto" | "tls_version" | "error" | "error_code" | "check" => {
                return None;
            }
            "group" => value.trim_start_matches("::").replace("::", "/"),
            _ => value.to_owned(),
        };
        let value = if value.contains(',') { format!("\"{value}\"") } else { value };
        all.push(format!("{}={value}", key.trim()));
    }
    Some(all.join(","))
}

fn split(conditions: &str) -> impl Iterator<Item = &str> {
    conditions.split(',').map(str::trim).filter(|condition| !condition.is_empty())
}

/// Of a figure of the script's own.
fn of_own(
    (name, metric, is_time): (&str, Metric, bool),
    conditions: &str,
    what: &str,
    value: f64,
) -> Option<(String, String)> {
    let tags: Option<Vec<String>> = split(conditions)
        .map(|one| one.split_once(':').map(|(key, value)| format!("{}={}", key.trim(), value.trim())))
        .collect();
    let tags = tags?;
    let name = if tags.is_empty() { name.to_owned() } else { format!("{name}{{{}}}", tags.join(",")) };
    let unit = if is_time { "ms" } else { "" };
    Some(match (metric, what) {
        (Metric::Counter, "count") => (format!("{name}:sum"), value.to_string()),
        (Metric::Counter, "rate") => (format!("{name}:rate"), value.to_string()),
        (Metric::Rate, "rate") => (format!("{name}:share"), percent(value)),
        (Metric::Gauge, "value") => (format!("{name}:last"), value.to_string()),
        (Metric::Trend, _) => (format!("{name}:{}", of_times(what)?), format!("{value}{unit}")),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_read() {
        assert_eq!(read("p(95)<500"), Some(("p(95)", "<", 500.0)));
        assert_eq!(read("rate >= 0.99"), Some(("rate", ">=", 0.99)));
        assert_eq!(read("rate"), None);
        assert_eq!(of_times("p(99.9)").as_deref(), Some("p99.9"));
        assert_eq!(percent(0.01), "1%");
        assert_eq!(percent(0.001), "0.1%");
        assert_eq!(of_calls("name:a, group:::cart::pay").as_deref(), Some("name=a,group=cart/pay"));
        assert_eq!(of_calls("expected_response:true"), None);
    }
}
