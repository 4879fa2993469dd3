//! `options`: the load, thresholds and the settings of requests.

use std::fmt::Write as _;

use crate::constant::{self, Constant};
use crate::script::Script;
use crate::syntax::Node;
use crate::text::quoted;
use crate::thresholds;

/// The settings in a script's options.
#[derive(Debug, Default)]
pub(crate) struct Load {
    pub(crate) scenarios: Vec<Scenario>,
    /// Figures and their conditions, in Lua.
    pub(crate) thresholds: Vec<(String, String)>,
    /// Further options of the client.
    pub(crate) client: String,
}

/// A scenario in the options.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    /// The function of its users, by its name in the script.
    pub(crate) exec: String,
    /// Its steps, in Lua.
    pub(crate) steps: String,
}

type Fields<'t> = Vec<(String, Node<'t>)>;

/// The load in the options; without options, that of k6's defaults.
pub(crate) fn load<'t>(script: &mut Script<'t>, options: Option<Node<'t>>) -> Load {
    // k6 forgets cookies after each iteration, and uses HTTP/2 where TLS negotiates it.
    let mut load = Load { client: ", cookies = \"iteration\"".to_owned(), ..Load::default() };
    if script.base.as_deref().is_some_and(|base| base.starts_with("https://")) {
        load.client.push_str(", http = \"auto\"");
    }
    let fields = match options.map(|node| (node, script.names.fields_of(node))) {
        None => Vec::new(),
        Some((_, Some(fields))) => fields,
        Some((node, None)) => {
            script.leave(node, "not moved: options that are put together while the script runs");
            Vec::new()
        }
    };
    script.has_scenarios = field(&fields, "scenarios").is_some();
    let mut plain = Vec::new();
    for (name, value) in fields {
        match name.as_str() {
            "vus" | "duration" | "iterations" | "stages" => plain.push((name, value)),
            "scenarios" => scenarios(script, value, &mut load),
            "thresholds" => thresholds::all(script, value, &mut load.thresholds),
            "maxRedirects" => match number(script, value) {
                Some(most) if most > 0.0 => drop(write!(load.client, ", redirects = {most}")),
                Some(_) => load.client.push_str(", redirects = false"),
                None => script.leave(value, "not moved: maxRedirects; write redirects = N in brunt.http"),
            },
            "userAgent" => {
                let agent = script.expression(value);
                let _ = write!(load.client, ", headers = {{ [\"User-Agent\"] = {agent} }}");
            }
            "batch" | "batchPerHost" | "summaryTrendStats" | "summaryTimeUnit" | "noUsageReport"
            | "userAgentOverride" => {}
            _ => script.leave(value, format!("not moved: options.{name}{}", advice(&name))),
        }
    }
    if load.scenarios.is_empty() {
        let steps = plain_steps(script, &plain);
        load.scenarios.push(Scenario { name: "default".to_owned(), exec: "default".to_owned(), steps });
    } else {
        for (name, value) in plain {
            script.leave(value, format!("not moved: options.{name}, beside scenarios"));
        }
    }
    load
}

/// What to write for an option that is a flag in brunt.
fn advice(name: &str) -> &'static str {
    match name {
        "insecureSkipTLSVerify" => "; give --insecure",
        "rps" => "; write brunt.throttle(rps)",
        "discardResponseBodies" => "; write discard = true in each request whose body nobody reads",
        "noConnectionReuse" | "noVUConnectionReuse" => "; an arrival is a new user with connections of its own",
        "setupTimeout" | "teardownTimeout" => "; setup and teardown have no limit",
        "minIterationDuration" => "; write brunt.pacing(length) in the scenario",
        "tags" => "; write tags = { … } in the requests",
        "hosts" => "; give --connect-to",
        "tlsAuth" => "; give --cert and --key",
        _ => "",
    }
}

pub(crate) fn number<'t>(script: &Script<'t>, node: Node<'t>) -> Option<f64> {
    match constant::evaluate(node, &script.names.values) {
        Constant::Number(number) => Some(number),
        _ => None,
    }
}

fn text_of<'t>(script: &Script<'t>, node: Node<'t>) -> Option<String> {
    match constant::evaluate(node, &script.names.values) {
        Constant::Text(text) => Some(text),
        _ => None,
    }
}

fn field<'t>(fields: &Fields<'t>, name: &str) -> Option<Node<'t>> {
    fields.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
}

/// A duration as brunt writes it; a plain number is in milliseconds.
fn length<'t>(script: &Script<'t>, node: Node<'t>) -> Option<String> {
    match constant::evaluate(node, &script.names.values) {
        Constant::Text(text) => Some(quoted(&text)),
        Constant::Number(ms) => Some(format!("{}", ms / 1e3)),
        _ => None,
    }
}

/// A duration in seconds, if it can be read.
fn seconds(text: &str) -> Option<f64> {
    let mut rest = text.trim();
    let mut all = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (number, behind) = rest.split_at_checked(end)?;
        let number: f64 = number.parse().ok()?;
        let (unit, factor) = [("ms", 1e-3), ("us", 1e-6), ("h", 3600.0), ("m", 60.0), ("s", 1.0), ("d", 86_400.0)]
            .into_iter()
            .find(|(unit, _)| behind.starts_with(unit))?;
        all += number * factor;
        rest = behind.get(unit.len()..)?;
    }
    Some(all)
}

/// Steps of `vus`, `duration`, `iterations` and `stages`.
fn plain_steps<'t>(script: &mut Script<'t>, plain: &Fields<'t>) -> String {
    let vus = field(plain, "vus").map_or(Some(1.0), |node| number(script, node));
    let known = |script: &mut Script<'t>, value: Option<String>, node: Option<Node<'t>>, other: &str| {
        value.unwrap_or_else(|| match node {
            Some(node) => script.expression(node),
            None => other.to_owned(),
        })
    };
    let users = known(script, vus.map(|vus| vus.to_string()), field(plain, "vus"), "1");
    if let Some(node) = field(plain, "stages") {
        return stages(script, node, vus.unwrap_or(1.0), 1.0, "ramp_users", "users");
    }
    if let Some(node) = field(plain, "iterations") {
        if let Some(duration) = field(plain, "duration") {
            script.leave(duration, "not moved: a duration that ends the iterations; give --duration");
        }
        let many = number(script, node).map(|many| many.to_string());
        let many = known(script, many, Some(node), "1");
        return format!("brunt.iterations_shared({users}, {many})");
    }
    match field(plain, "duration") {
        Some(node) => {
            let length = length(script, node);
            let length = known(script, length, Some(node), "1");
            format!("brunt.users({users}, {length})")
        }
        None => format!("brunt.iterations_shared({users}, {users})"),
    }
}

/// The steps for stages, beginning at a level: `ramp` where the level changes, `hold` where it stays. `per` is the time
/// unit of levels, in seconds.
fn stages<'t>(script: &mut Script<'t>, node: Node<'t>, from: f64, per: f64, ramp: &str, hold: &str) -> String {
    let Constant::List(all) = constant::evaluate(node, &script.names.values) else {
        script.leave(node, "not moved: stages that are put together while the script runs");
        return format!("brunt.{hold}({from}, 1)");
    };
    let (mut level, mut steps) = (from / per, Vec::new());
    for stage in all {
        let fields = script.names.fields_of(stage).unwrap_or_default();
        let target = field(&fields, "target").and_then(|node| number(script, node)).map(|target| target / per);
        let length_node = field(&fields, "duration");
        let written = length_node.and_then(|node| length(script, node));
        let (Some(target), Some(written)) = (target, written) else {
            script.leave(stage, format!("not moved: the stage {}", stage.shown()));
            continue;
        };
        // A stage of no length is a jump.
        let is_jump = written == "0" || seconds(written.trim_matches('"')) == Some(0.0);
        if is_jump {
            level = target;
            continue;
        }
        if (level - target).abs() < f64::EPSILON {
            steps.push(format!("brunt.{hold}({}, {written})", shown(target)));
        } else {
            steps.push(format!("brunt.{ramp}({}, {}, {written})", shown(level), shown(target)));
        }
        level = target;
    }
    steps.join(", ")
}

/// A number without needless digits.
pub(crate) fn shown(number: f64) -> String {
    let rounded = (number * 1e6).round() / 1e6;
    format!("{rounded}")
}

/// Scenarios by their executors.
fn scenarios<'t>(script: &mut Script<'t>, node: Node<'t>, load: &mut Load) {
    let Some(all) = script.names.fields_of(node) else {
        script.leave(node, "not moved: scenarios that are put together while the script runs");
        return;
    };
    for (name, value) in all {
        let Some(fields) = script.names.fields_of(value) else {
            script.leave(value, format!("not moved: the scenario {name}"));
            continue;
        };
        let exec =
            field(&fields, "exec").and_then(|node| text_of(script, node)).unwrap_or_else(|| "default".to_owned());
        if script.performed(&exec).is_none() {
            script.leave(value, format!("not moved: the scenario {name}, whose function {exec} is not in this file"));
            continue;
        }
        if let Some(steps) = executed(script, value, &fields) {
            load.scenarios.push(Scenario { name, exec, steps });
        }
    }
}

/// The steps of a scenario; `None` if brunt has none for its executor.
fn executed<'t>(script: &mut Script<'t>, node: Node<'t>, fields: &Fields<'t>) -> Option<String> {
    let executor = field(fields, "executor").and_then(|node| text_of(script, node)).unwrap_or_default();
    let say = |script: &mut Script<'t>, name: &str, other: &str| match field(fields, name) {
        Some(value) => number(script, value).map_or_else(|| script.expression(value), shown),
        None => other.to_owned(),
    };
    let users = say(script, "vus", "1");
    let last = |script: &mut Script<'t>| match field(fields, "duration") {
        Some(value) => length(script, value).unwrap_or_else(|| script.expression(value)),
        None => "1".to_owned(),
    };
    let unit = field(fields, "timeUnit").and_then(|node| text_of(script, node)).and_then(|text| seconds(&text));
    let per = unit.unwrap_or(1.0);
    let start = |script: &mut Script<'t>, name: &str, other: f64| {
        field(fields, name).map_or(Some(other), |node| number(script, node)).unwrap_or(other)
    };
    let (mut steps, is_open) = match executor.as_str() {
        "constant-vus" => (format!("brunt.users({users}, {})", last(script)), false),
        "ramping-vus" => {
            let from = start(script, "startVUs", 1.0);
            let stages_node = field(fields, "stages")?;
            (stages(script, stages_node, from, 1.0, "ramp_users", "users"), false)
        }
        "constant-arrival-rate" => {
            let rate = field(fields, "rate")?;
            let rate = match number(script, rate) {
                Some(rate) => shown(rate / per),
                None => format!("{} / {}", script.expression(rate), shown(per)),
            };
            (format!("brunt.rate({rate}, {})", last(script)), true)
        }
        "ramping-arrival-rate" => {
            let from = start(script, "startRate", 0.0);
            let stages_node = field(fields, "stages")?;
            (stages(script, stages_node, from, per, "ramp_rate", "rate"), true)
        }
        "shared-iterations" => (format!("brunt.iterations_shared({users}, {})", say(script, "iterations", "1")), false),
        "per-vu-iterations" => (format!("brunt.iterations_each({users}, {})", say(script, "iterations", "1")), false),
        _ => {
            script.leave(node, format!("not moved: the executor {executor}"));
            return None;
        }
    };
    if let Some(value) = field(fields, "startTime") {
        let later = length(script, value).unwrap_or_else(|| script.expression(value));
        let waits = if is_open { format!("brunt.nothing_for({later})") } else { format!("brunt.users(0, {later})") };
        if executor.ends_with("-iterations") {
            script.leave(value, "not moved: startTime of counted iterations; write after = the scenario before it");
        } else {
            steps = format!("{waits}, {steps}");
        }
    }
    if is_open && let Some(most) = field(fields, "maxVUs").or_else(|| field(fields, "preAllocatedVUs")) {
        let most = number(script, most).map_or_else(|| script.expression(most), shown);
        let _ = write!(steps, ", most_alive = {most}");
    }
    for (name, value) in fields {
        let known = [
            "executor",
            "exec",
            "vus",
            "iterations",
            "duration",
            "stages",
            "startVUs",
            "startTime",
            "rate",
            "timeUnit",
        ];
        let known =
            known.contains(&name.as_str()) || ["startRate", "preAllocatedVUs", "maxVUs"].contains(&name.as_str());
        match name.as_str() {
            _ if known => {}
            "gracefulStop" | "gracefulRampDown" => script.leave(*value, format!("not moved: {name}; give --drain")),
            "maxDuration" => script.leave(*value, "not moved: maxDuration; give --duration"),
            _ => script.leave(*value, format!("not moved: {name} of the scenario")),
        }
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read() {
        assert_eq!(seconds("3m30s"), Some(210.0));
        assert_eq!(seconds("500ms"), Some(0.5));
        assert_eq!(seconds("1h"), Some(3600.0));
        assert_eq!(seconds("soon"), None);
        assert_eq!(shown(1.0 / 3.0), "0.333333");
    }
}
