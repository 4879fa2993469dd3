//! Differences between the plans of runs that are compared.

use serde_json::Value;

use brunt_plan::connections::Connections;
use brunt_plan::plan::Plan;
use brunt_plan::units::ExactDuration;

/// Parts of a plan that may differ without making it another experiment.
const ASIDE: [&str; 4] = ["version", "seed", "thresholds", "origin"];
/// The longest value that is shown, in characters.
const LONGEST: usize = 60;

/// The differences between two plans, such as `connections 64 and 128`, for people. Targets, seeds and thresholds do
/// not count.
pub fn differences(a: &Plan, b: &Plan) -> Vec<String> {
    let (Ok(Value::Object(a)), Ok(Value::Object(b))) = (serde_json::to_value(a), serde_json::to_value(b)) else {
        return Vec::new();
    };
    let mut names: Vec<_> = a.keys().chain(b.keys()).map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    let counts = |name: &&str| !ASIDE.contains(name) && *name != "target" && a.get(*name) != b.get(*name);
    names.into_iter().filter(counts).flat_map(|name| differences_of(name, a.get(name), b.get(name))).collect()
}

/// The differences of a part of two plans: what ends them and their loads have parts of their own.
fn differences_of(name: &str, a: Option<&Value>, b: Option<&Value>) -> Vec<String> {
    let of = |value: Option<&Value>, part: &str| {
        let value = if name == "load" { value?.get("open") } else { value };
        value?.get(part).cloned()
    };
    let parts: &[&str] = match name {
        "stop" => &["duration_ns", "requests"],
        "load" => &["profile", "arrivals"],
        _ => &[],
    };
    let parts = parts.iter().map(|part| (*part, of(a, part), of(b, part))).filter(|(_, a, b)| a != b);
    // Arrivals are those of a rate.
    let parts = parts.filter(|(part, a, b)| *part != "arrivals" || a.is_some() && b.is_some());
    let parts: Vec<_> = parts
        .map(|(part, a, b)| difference(if part == "profile" { "rate" } else { part }, a.as_ref(), b.as_ref()))
        .collect();
    if parts.is_empty() { vec![difference(name, a, b)] } else { parts }
}

fn difference(name: &str, a: Option<&Value>, b: Option<&Value>) -> String {
    let plain = name.strip_suffix("_ns").unwrap_or(name).replace('_', " ");
    let shown = |value: Option<&Value>| match value {
        None | Some(Value::Null) => Some("none".to_owned()),
        Some(Value::Number(ns)) if name.ends_with("_ns") => ns.as_u64().map(|ns| ExactDuration(ns).to_string()),
        Some(Value::String(text)) => Some(text.clone()),
        Some(value) if name == "connections" => {
            serde_json::from_value::<Connections>(value.clone()).ok().map(|connections| connections.to_string())
        }
        Some(value @ (Value::Number(_) | Value::Bool(_))) => Some(value.to_string()),
        Some(_) => None,
    };
    match (shown(a), shown(b)) {
        (Some(a), Some(b)) if a.chars().count() + b.chars().count() <= LONGEST => format!("{plain} {a} and {b}"),
        _ => format!("another {plain}"),
    }
}

#[cfg(test)]
mod tests {
    use brunt_judge::fixtures::plan;
    use brunt_plan::plan::Load;

    use super::*;

    #[test]
    fn plans_differ_by_what_makes_another_experiment() {
        let mut other = plan();
        (other.seed, other.target.host) = (other.seed + 1, "elsewhere".into());
        other.thresholds = vec!["p99<1s".parse().unwrap()];
        assert_eq!(differences(&plan(), &other), Vec::<String>::new());
        (other.connections, other.warmup_ns) = (Connections::Fixed(2 * plan().connections.most()), 500_000_000);
        other.load = Load::Open { profile: "77".parse().unwrap(), arrivals: brunt_plan::arrivals::Spread::Poisson };
        let expected = format!("connections {} and {}", plan().connections, other.connections);
        assert_eq!(differences(&plan(), &other)[0], expected);
        assert_eq!(differences(&plan(), &other)[1], "rate none and 77");
        let mut slower = other.clone();
        slower.load = Load::Open { profile: "7".parse().unwrap(), arrivals: brunt_plan::arrivals::Spread::Uniform };
        slower.stop.duration_ns = Some(1_500_000_000);
        let differing = differences(&slower, &other);
        assert!(
            differing.contains(&"rate 7 and 77".to_owned())
                && differing.iter().any(|of| of.starts_with("duration 1500ms and ")),
            "{differing:?}"
        );
        other.connections = Connections::UpTo(5000);
        assert_eq!(differences(&plan(), &other)[0], "connections 64 and up to 5000");
        other.connections = Connections::Fixed(128);
        assert!(differences(&plan(), &other)[2].ends_with("and 500ms"), "{:?}", differences(&plan(), &other));
    }
}
