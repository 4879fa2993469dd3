//! The plan of a run, so that the run can be repeated.

use std::fmt::Write as _;

use brunt_judge::summary::Summary;
use brunt_plan::plan::{ArrivalTimes, Load, Origin, Plan};
use brunt_plan::scenario::{Population, Scenarios, Step};
use brunt_plan::units::{Duration, ExactDuration};
use brunt_record::catalogue::Counter;
use brunt_record::machine::Machine;
use brunt_record::recording::Ending;
use unicode_width::UnicodeWidthStr as _;

use super::fitting::{Rank, Section};
use super::{UNBROKEN, WIDTH, wrapped};
use crate::columns;
use crate::dates::iso_8601;
use crate::numbers::{brief, clean, count, counted, percent};
use crate::style::Paint;

pub(super) fn section(summary: &Summary, is_dated: bool, paint: Paint) -> Section {
    let mut section = Section::new("Plan").apart();
    plan_lines(&mut section, summary, paint);
    let plan = &summary.plan;
    let label = origin_lines(&plan.origin, Some(summary.run.started_unix_ms), is_dated, paint);
    section.add(Rank::Figure, label);
    section.add(Rank::Always, machine_lines(summary.run.machine.as_ref(), &summary.run.brunt_version, is_dated, paint));
    section.add(Rank::Cause, traceback(summary, paint));
    section
}

/// What was run, and how.
fn plan_lines(section: &mut Section, summary: &Summary, paint: Paint) {
    let plan = &summary.plan;
    if let Some(scenarios) = &plan.scenarios {
        return of_scenarios(section, plan, scenarios, paint);
    }
    let command = match &plan.load {
        Load::Replay(replay) if !plan.own_times => format!("brunt replay {}", replay.logs.join(" ")),
        Load::Open { .. } | Load::Closed {} | Load::Replay(_) => "brunt".to_owned(),
    };
    let what = format!("{} {}", paint.strong(clean(&command)), paint.strong(clean(&plan.target.url())));
    section.add(Rank::Always, [what]);
    let mut words = in_words(plan);
    if plan.connections.is_growing()
        && summary.total.numbers.get(Counter::ConnectionsMade) > 0
        && let Some(connections) = words.first_mut()
    {
        let made = summary.total.numbers.get(Counter::ConnectionsMade);
        let opened = format!("{} opened as needed", counted(made, "connection"));
        *connections = connections.replace(&connections_of(plan), &opened);
    }
    let how = words.join(", ");
    // Broken after commas only.
    let how = how.replace(' ', UNBROKEN).replace(&format!(",{UNBROKEN}"), ", ");
    section.add(Rank::Always, wrapped("  ", "  ", &how, WIDTH).into_iter().map(|line| paint.faint(line)));
}

/// The name of a run or decision, its tags and when it began: if it has a name or tags, or `is_dated`.
pub(crate) fn origin_lines(origin: &Origin, started_unix_ms: Option<u64>, is_dated: bool, paint: Paint) -> Vec<String> {
    let has_label = origin.name.is_some() || !origin.tags.is_empty();
    if !has_label && !is_dated {
        return Vec::new();
    }
    let text = label_words(origin, started_unix_ms);
    if text.is_empty() {
        return Vec::new();
    }
    wrapped("  ", "  ", &text, WIDTH).into_iter().map(|line| paint.faint(line)).collect()
}

/// Such as `brunt 0.1.0 on bench-3, AMD EPYC, 8 cores, Linux 6.1.0`, in one line unless it `is_whole`; nothing where it is unknown.
pub(crate) fn machine_lines(machine: Option<&Machine>, version: &str, is_whole: bool, paint: Paint) -> Vec<String> {
    let Some(machine) = machine else { return Vec::new() };
    let text = format!("brunt {} on {}", clean(version), clean(&machine.to_string()));
    let mut lines = wrapped("  ", "  ", &text, WIDTH);
    if !is_whole && lines.len() > 1 {
        lines = vec![format!("  {}…", columns::cut(&text, WIDTH - 3).trim_end())];
    }
    lines.into_iter().map(|line| paint.faint(line)).collect()
}

/// Such as `2026-01-31 09:30:00 UTC`.
pub(crate) fn moment(unix_ms: u64) -> String {
    iso_8601(unix_ms / 1000).replace('T', " ").replace('Z', " UTC")
}

/// Such as `nightly, branch=main, 2026-01-31 09:30:00 UTC`.
fn label_words(origin: &Origin, started_unix_ms: Option<u64>) -> String {
    let name = origin.name.as_deref().map(brief);
    let tags = origin.tags.iter().map(|(key, value)| brief(&format!("{key}={value}")));
    let began = started_unix_ms.map(moment);
    name.into_iter().chain(tags).chain(began).collect::<Vec<_>>().join(", ")
}

/// The traceback of the script that failed, whose first line is the headline.
fn traceback(summary: &Summary, paint: Paint) -> Vec<String> {
    match &summary.run.ending {
        // Each line is shown by itself.
        Ending::Failed(reason) => {
            reason.lines().skip(1).map(|line| paint.warning(format!("  {}", clean(line)))).collect()
        }
        _ => Vec::new(),
    }
}

/// The plan in a line: the URL, or the file with the scenarios and the URL of its first base, if it has one.
pub(crate) fn heading(plan: &Plan) -> String {
    let url = if plan.target.host.is_empty() { None } else { Some(plan.target.url()) };
    let script = plan.scenarios.as_ref().and(plan.script_name()).map(|file| format!("run {file}"));
    script.into_iter().chain(url).collect::<Vec<_>>().join("  ")
}

/// A plan's main settings, part by part.
pub fn in_words(plan: &Plan) -> Vec<String> {
    if let Some(scenarios) = &plan.scenarios {
        return scenarios_in_words(plan, scenarios);
    }
    let script = plan.script_name().map(|file| format!("script {}", clean(file)));
    let seed = format!("seed {}", plan.seed);
    let how = [Some(connections(plan)), Some(load(plan)), Some(stop(plan)), script, via(plan), Some(seed)];
    // The end of a replay is its log's.
    how.into_iter().flatten().filter(|part| !part.is_empty()).collect()
}

/// The scenarios of users, and when users come.
fn of_scenarios(section: &mut Section, plan: &Plan, scenarios: &Scenarios, paint: Paint) {
    /// The most populations that are listed.
    const MOST: usize = 8;
    let file = scenarios.files.first().map_or("", |file| file.name.as_str());
    let target = if plan.target.host.is_empty() { String::new() } else { format!("  {}", plan.target.url()) };
    section.add(Rank::Always, [format!("{}{}", paint.strong(format!("brunt run {}", clean(file))), clean(&target))]);
    for population in scenarios.populations.iter().take(MOST) {
        let text = format!("{}: {}", names(population), population_text(population, &scenarios.populations));
        let lines: Vec<_> = wrapped("  ", "    ", &text, WIDTH).into_iter().map(|line| paint.faint(line)).collect();
        section.add_whole(Rank::Figure, &lines);
    }
    if scenarios.populations.len() > MOST {
        let more = paint.faint(format!("  … and {} more", scenarios.populations.len() - MOST));
        section.add(Rank::Minor, [more]);
    }
    section.add(Rank::Minor, [paint.faint(format!("  {}", how_they_run(plan, scenarios).join(", ")))]);
}

/// When users come, and on which connections.
fn scenarios_in_words(plan: &Plan, scenarios: &Scenarios) -> Vec<String> {
    let populations = scenarios.populations.iter();
    let who = populations.map(|each| format!("{}: {}", names(each), population_text(each, &scenarios.populations)));
    who.chain(how_they_run(plan, scenarios)).collect()
}

/// The scenarios of a script by name, each with its users, for people.
pub fn scenario_list(all: &[String], scenarios: &Scenarios) -> String {
    let shown: Vec<_> = all.iter().map(|name| brief(name)).collect();
    let width = shown.iter().map(|name| name.width()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, shown) in all.iter().zip(&shown) {
        let users = scenarios.populations.iter().filter_map(|population| {
            let text = || population_text(population, &scenarios.populations);
            Some(format!("{}{}", share_of(name, population)?, text()))
        });
        let users: Vec<_> = users.collect();
        let users = if users.is_empty() { "nobody".to_owned() } else { users.join("; ") };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{shown}{}  {users}", " ".repeat(width.saturating_sub(shown.width())));
    }
    text
}

/// The part of a population's users that a scenario gets, as a beginning of what they do; empty where it gets all of them, `None` where
/// it gets none.
fn share_of(scenario: &str, population: &Population) -> Option<String> {
    let weight = |name: Option<&str>| -> f64 {
        let of = population.scenarios.iter().filter(|one| name.is_none_or(|name| one.scenario == name));
        of.map(|one| one.weight).sum()
    };
    if !population.scenarios.iter().any(|one| one.scenario == scenario) {
        return None;
    }
    let (own, all) = (weight(Some(scenario)), weight(None));
    Some(if own < all { format!("{} of a mix: ", percent(own / all)) } else { String::new() })
}

fn how_they_run(plan: &Plan, scenarios: &Scenarios) -> Vec<String> {
    let mut how = vec![counted(plan.workers.into(), "thread")];
    how.extend(scenarios.throttle.as_ref().map(|throttle| format!("at most {throttle} calls a second")));
    how.push(format!("seed {}", plan.seed));
    how
}

/// The scenarios of a population, with their weights where there are several.
fn names(population: &Population) -> String {
    let one = population.scenarios.len() == 1;
    let names = population.scenarios.iter().map(|weighted| {
        let name = brief(&weighted.scenario);
        if one { name } else { format!("{name} × {}", weighted.weight) }
    });
    names.collect::<Vec<_>>().join(", ")
}

fn plain_names(population: &Population) -> String {
    population.scenarios.iter().map(|weighted| brief(&weighted.scenario)).collect::<Vec<_>>().join(", ")
}

fn population_text(population: &Population, all: &[Population]) -> String {
    let mut parts: Vec<_> = population.steps.iter().map(step).collect();
    if population.is_open() && population.arrivals.is_random() {
        parts.push(format!("{} arrivals", population.arrivals.in_words()));
    }
    parts.extend(population.most_alive.map(|most| format!("at most {most} alive")));
    parts.extend(population.reuse_users.then(|| "users reused".to_owned()));
    parts.extend(population.longest_seconds.map(|longest| format!("for {} at most", length(longest))));
    let after = population.after.and_then(|place| all.get(place));
    parts.extend(after.map(|before| format!("after {}", plain_names(before))));
    if population.start_seconds > 0.0 {
        parts.push(format!("started {} later", length(population.start_seconds)));
    }
    let graces = [(population.grace_seconds, "at its end"), (population.ramp_down_grace_seconds, "as users go")];
    parts.extend(graces.iter().filter_map(|(grace, when)| Some(format!("{} of grace {when}", length((*grace)?)))));
    let model = if population.is_open() { "open model" } else { "closed model" };
    format!("{model}, {}", parts.join(", "))
}

fn length(seconds: f64) -> String {
    let ns = (seconds * 1e9).round() as u64;
    // A stretched length is seldom a round one.
    if ns.is_multiple_of(1_000_000) { ExactDuration(ns).to_string() } else { Duration(ns).to_string() }
}

/// One step of an injection, for people.
fn step(step: &Step) -> String {
    let users = |n: f64| counted(n.round() as u64, "user");
    match *step {
        Step::NothingFor { seconds } => format!("nobody for {}", length(seconds)),
        Step::AtOnce { users: n } => format!("{} at once", users(n)),
        Step::Rate { from, to, seconds } if from == to => format!("{from} iterations/s for {}", length(seconds)),
        Step::Rate { from, to, seconds } => format!("{from} to {to} iterations/s in {}", length(seconds)),
        Step::Peak { users: n, seconds } => format!("a peak of {} in {}", users(n), length(seconds)),
        Step::Users { from, to, seconds } if from == to => format!("{} for {}", users(from), length(seconds)),
        Step::Users { from, to, seconds } => format!("{from} to {} in {}", users(to), length(seconds)),
        Step::IterationsEach { users: n, iterations } => {
            format!("{}, {} each", users(n), counted(iterations as u64, "iteration"))
        }
        Step::IterationsShared { users: n, iterations } => {
            format!("{} share {}", users(n), counted(iterations as u64, "iteration"))
        }
    }
}

/// Such as `64 connections on 2 threads`.
pub fn concurrency(plan: &Plan) -> String {
    format!("{} on {}", connections_of(plan), counted(plan.workers.into(), "thread"))
}

/// Such as `64 connections`, or `connections as needed (at most 7,058)`.
pub(crate) fn connections_of(plan: &Plan) -> String {
    let most = plan.connections.most().into();
    if plan.connections.is_growing() {
        format!("connections as needed (at most {})", count(most))
    } else {
        counted(most, "connection")
    }
}

fn connections(plan: &Plan) -> String {
    let mut text = concurrency(plan);
    if plan.pipeline > 1 {
        let _ = write!(text, ", {} calls in flight on each", plan.pipeline);
    }
    if plan.reconnect {
        text.push_str(", a fresh one for each call");
    }
    if plan.transport.udp_sockets > 0 {
        let sockets = counted(plan.transport.udp_sockets.into(), "UDP socket");
        let _ = write!(text, ", {sockets} shared on each thread");
    }
    text
}

fn load(plan: &Plan) -> String {
    match &plan.load {
        Load::Closed {} if plan.own_times => "closed model of conversations".to_owned(),
        Load::Closed {} => "closed model".to_owned(),
        Load::Open { profile, arrivals } => {
            let of = if plan.own_times { " of conversations" } else { "" };
            format!("open model, rate {profile}{of}, {} arrivals", arrivals.in_words())
        }
        Load::Replay(replay) => clean(&replay.title()).into_owned(),
    }
}

/// The load in a few words: `300 requests/s for 8s`, `20 connections for 4s, each with a request at a time`; `None` where it takes more.
pub(crate) fn in_short(plan: &Plan) -> Option<String> {
    if let Some(scenarios) = &plan.scenarios {
        let [only] = scenarios.populations.as_slice() else { return None };
        let steps: Vec<_> = only.steps.iter().map(step).collect();
        return Some(format!("{}: {}", names(only), steps.join(", then ")));
    }
    if plan.own_times {
        return None;
    }
    let stop = stop(plan);
    let length = if plan.duration_ns().is_some() { format!(" for {stop}") } else { format!(", {stop}") };
    match &plan.load {
        Load::Open { profile, .. } => {
            let is_said =
                profile.duration_ns().is_some() && profile.duration_ns() == plan.duration_ns() && plan.warmup_ns == 0;
            Some(format!("{}{}", profile.in_words("requests"), if is_said { "" } else { &length }))
        }
        Load::Closed {} => Some(format!("{}{length}, as fast as they are answered", connections_of(plan))),
        Load::Replay(_) => None,
    }
}

fn stop(plan: &Plan) -> String {
    let length = plan.duration_ns().map(|ns| ExactDuration(ns).to_string());
    let requests = plan.stop.requests.map(|n| counted(n, "request"));
    let mut text = [length, requests].into_iter().flatten().collect::<Vec<_>>().join(" or ");
    if plan.warmup_ns > 0 {
        // A trace ends by itself.
        let blank = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{blank}after {} of warm-up", ExactDuration(plan.warmup_ns));
    }
    text
}

/// The destination of connections, if it differs from the URL.
fn via(plan: &Plan) -> Option<String> {
    let transport = &plan.transport;
    let mut parts = Vec::new();
    if let Some((host, port)) = &transport.connect_to {
        parts.push(format!("connecting to {}:{port}", clean(host)));
    }
    if let Some(proxy) = &transport.proxy {
        parts.push(format!("through the proxy {}:{}", clean(&proxy.host), proxy.port));
    }
    if let Some(path) = &transport.unix_socket {
        parts.push(format!("over {}", clean(&path.to_string_lossy())));
    }
    match transport.source_ips.as_slice() {
        [] => {}
        [one] => parts.push(format!("from {one}")),
        many => parts.push(format!("from {} addresses", many.len())),
    }
    if transport.tls.insecure {
        parts.push("any certificate".to_owned());
    }
    if transport.arrival_times == ArrivalTimes::Read {
        parts.push("times as read".to_owned());
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}
