//! Panels of a live view: requests, failures, findings, thresholds, agents, and brunt itself.

use std::cmp::Reverse;

use brunt_judge::summary::Summary;
use brunt_judge::verdict::Judgement;
use brunt_plan::plan::Plan;
use brunt_plan::units::{Duration, Size, counted, percent};
use brunt_plan::watch::shown_value;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::figures::CallFigures;
use brunt_record::histogram::AtLeast;
use brunt_record::live::{AgentSecond, Live};
use brunt_record::outcome::Failure;
use brunt_record::watched::WatchedFigure;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use super::charts::rule;
use super::figures::{Waiting, short, times_of};
use super::line::Line;
use super::second::whole;
use super::state;
use crate::headline::{InReports, Toned};
use crate::numbers::{brief, clean, count};
use crate::style::Role;
use crate::text;

/// The gap between panels side by side.
pub(super) const GAP: usize = 2;

/// Lines under a title.
#[derive(Debug)]
pub(super) struct Panel {
    title: &'static str,
    lines: Vec<Line>,
    /// How many lines have no room.
    left_out: usize,
}

impl Panel {
    /// A panel of these lines; `none` is its text without lines.
    fn new(title: &'static str, mut lines: Vec<Line>, none: &str) -> Self {
        if lines.is_empty() {
            lines.push(Line::new(Role::Faint, format!("  {none}")));
        }
        Self { title, lines, left_out: 0 }
    }

    /// Removes a line; the last line has the number of those left out.
    fn shorten(&mut self) {
        self.lines.pop();
        self.left_out += 1;
    }

    fn rows(&self) -> usize {
        self.lines.len() + usize::from(self.left_out > 0) + 1
    }
}

/// The rows that panels take below each other.
pub(super) fn rows(panels: &[Panel]) -> usize {
    panels.iter().map(Panel::rows).sum()
}

/// Draws sides of panels beside each other.
pub(super) fn draw(canvas: &mut Buffer, area: Rect, sides: Vec<Vec<Panel>>) {
    let n = sides.len().max(1);
    let width = (usize::from(area.width) - GAP * (n - 1)) / n;
    for (place, mut panels) in sides.into_iter().enumerate() {
        fit(&mut panels, area.height.into());
        let x = place * (width + GAP);
        let mut y = usize::from(area.y);
        for panel in panels {
            rule(canvas, Rect::new(x as u16, y as u16, width as u16, 1), panel.title, &[], &[]);
            y += 1;
            let more = Line::new(Role::Faint, format!("  … {} more", panel.left_out));
            for line in panel.lines.iter().chain((panel.left_out > 0).then_some(&more)) {
                line.draw(canvas, x, y, width);
                y += 1;
            }
        }
    }
}

/// Shortens the longest panels, then drops the last ones, until all fit into this many rows.
fn fit(panels: &mut Vec<Panel>, most: usize) {
    while rows(panels) > most {
        match panels.iter_mut().max_by_key(|panel| panel.lines.len()).filter(|panel| panel.lines.len() > 1) {
            Some(panel) => panel.shorten(),
            None => drop(panels.pop()),
        }
    }
}

/// Requests by name, those with the most errors and then the most calls first; one line without names.
pub(super) fn requests(summary: Option<&Summary>, plan: &Plan, waiting: &Waiting) -> Panel {
    let mut lines = Vec::new();
    let header = format!("  {:>10}{:>8}{:>9}{:>10}  request", "ok", "failed", "waiting", "p99");
    if let Some(summary) = summary {
        lines.push(Line::new(Role::Faint, header));
        let named = named(summary);
        if named.is_empty() {
            let total = Calls::of_all(summary, plan, waiting);
            lines.push(total.line(&plan_name(plan)));
        }
        lines.extend(named.into_iter().map(|(name, calls)| Calls::of_named(calls, summary).line(name)));
    }
    Panel::new("requests", lines, "none so far")
}

/// Requests that have names, the worst first.
fn named(summary: &Summary) -> Vec<(&str, &CallFigures)> {
    let mut named: Vec<_> = summary.total.figures.requests.iter().collect();
    let ok = summary.ok_status();
    named.sort_by_key(|(name, calls)| {
        (Reverse(calls.not_ok(ok)), Reverse(calls.numbers.get(Counter::Due)), (*name).to_owned())
    });
    named
}

/// The outcomes of one request's calls.
struct Calls {
    ok: u64,
    failed: u64,
    waiting: Option<u64>,
    p99: Option<AtLeast<u64>>,
}

impl Calls {
    fn of_all(summary: &Summary, plan: &Plan, waiting: &Waiting) -> Self {
        let [.., p99, _] = waiting.percentiles(&times_of(&summary.total), plan, u64::MAX);
        let ok = summary.total.ok(summary.ok_status());
        Self { ok, failed: summary.not_ok, waiting: Some(waiting.calls), p99 }
    }

    fn of_named(calls: &CallFigures, summary: &Summary) -> Self {
        let failed = calls.not_ok(summary.ok_status());
        let ended = calls.response_times().count();
        Self { ok: ended.saturating_sub(failed), failed, waiting: None, p99: calls.response_times().quantile(0.99) }
    }

    fn line(&self, name: &str) -> Line {
        let p99 = self.p99.map_or("–".to_owned(), short);
        let is_bound = self.p99.is_some_and(|p99| p99.at_least);
        let waiting = self.waiting.map_or_else(String::new, count);
        Line::new(Role::Plain, format!("  {:>10}", count(self.ok)))
            .add(if self.failed > 0 { Role::Bad } else { Role::Plain }, format!("{:>8}", count(self.failed)))
            .add(Role::Plain, format!("{waiting:>9}"))
            .add(if is_bound { Role::Warning } else { Role::Plain }, format!("{p99:>10}"))
            .add(Role::Plain, format!("  {}", brief(name)))
    }
}

/// The name of the call in a plan without names.
fn plan_name(plan: &Plan) -> String {
    let method = plan.protocol.shown().get("method").and_then(|method| method.as_str()).unwrap_or("");
    let path = if plan.target.path.is_empty() { "/" } else { plan.target.path.as_str() };
    let path = path.split(['?', '#']).next().unwrap_or(path);
    format!("{method} {path}").trim_start().to_owned()
}

/// The worst request in one line.
pub(super) fn worst_request(summary: Option<&Summary>, plan: &Plan, waiting: &Waiting) -> Line {
    let Some(summary) = summary else { return Line::new(Role::Faint, "  nothing measured yet") };
    let named = named(summary);
    let (name, calls) = match named.first() {
        Some((name, calls)) => (brief(name), Calls::of_named(calls, summary)),
        None => (brief(&plan_name(plan)), Calls::of_all(summary, plan, waiting)),
    };
    let more = if named.len() > 1 { format!(" (of {})", named.len()) } else { String::new() };
    let line = Line::new(Role::Plain, format!("  {name}{more}")).at(26);
    let line = line.add(Role::Plain, format!("{} ok", count(calls.ok))).at(40);
    let role = if calls.failed > 0 { Role::Bad } else { Role::Plain };
    let line = line.add(role, format!("{} failed", count(calls.failed))).at(54);
    let line = match calls.waiting {
        Some(waiting) => line.add(Role::Plain, format!("{} waiting", count(waiting))),
        None => line,
    };
    let p99 = calls.p99.map_or("–".to_owned(), short);
    line.at(69).add(Role::Plain, format!("p99 {p99}"))
}

/// Failures, the most frequent first: unsuccessful statuses, and failures with their most frequent reason.
fn failed(summary: &Summary) -> Vec<Line> {
    let (total, ok) = (&summary.total, summary.ok_status());
    let statuses = total.statuses.sorted().into_iter().filter(|(status, _)| *status != 0 && !ok.holds(*status));
    let statuses = statuses.map(|(status, n)| (n, status.to_string(), String::new()));
    let reason = |failure: Failure| {
        let first = total.failures.reasons(failure).first().map(|(reason, _)| brief(reason));
        first.filter(|reason| !reason.is_empty()).map_or_else(String::new, |reason| format!("  {reason}"))
    };
    let failures = total.failures.counted();
    let failures = failures.map(|(failure, n)| (n, failure.name().to_owned(), reason(failure)));
    let mut all: Vec<_> = statuses.chain(failures).collect();
    all.sort_by_key(|(n, ..)| Reverse(*n));
    let line = |(n, name, reason): (u64, String, String)| {
        Line::new(Role::Bad, format!("  {} × {name}", count(n))).add(Role::Plain, reason)
    };
    all.into_iter().map(line).collect()
}

pub(super) fn failures(summary: Option<&Summary>) -> Panel {
    Panel::new("failures", summary.map(failed).unwrap_or_default(), "none so far")
}

/// The most frequent failure in one line.
pub(super) fn worst_failure(summary: Option<&Summary>) -> Line {
    let failed = summary.map(failed).unwrap_or_default();
    failed.into_iter().next().unwrap_or_else(|| Line::new(Role::Faint, "  no failures"))
}

/// Findings, each with its number on the charts; a stall that goes on has no number yet.
pub(super) fn findings(found: &[Toned], waiting: &Waiting, width: usize) -> Panel {
    let mut lines = Vec::new();
    let mut with_place = 0;
    for remark in found {
        let mut sign = state::sign(remark);
        if remark.stretch().is_some() {
            sign = text::sign(with_place);
            with_place += 1;
        }
        let wrapped = text::wrapped(&format!("  {} ", sign.trim()), "    ", &remark.remark.message.to_string(), width);
        lines.extend(wrapped.into_iter().map(|line| Line::new(remark.tone.role(), line)));
    }
    if let Some(stall) = waiting.stall {
        let from = brunt_plan::units::Clock(stall.from_ns);
        let text = format!("  ▶ nothing answered since {from}; {} waiting", counted(waiting.calls, "call"));
        lines.push(Line::new(Role::Warning, text));
    }
    Panel::new("findings", lines, "none so far")
}

/// Thresholds with their figures so far; `None` without explicit thresholds.
pub(super) fn thresholds(summary: Option<&Summary>) -> Option<Panel> {
    let summary = summary.filter(|summary| !summary.plan.thresholds.is_empty())?;
    let standing = summary.standing();
    let line = |threshold| {
        let result = standing.judge(threshold);
        let text = clean(&result.condition.to_string()).into_owned();
        Line::new(Role::Plain, format!("  {text}")).at(30).add(Role::Plain, clean(&result.got.to_string()).into_owned())
    };
    Some(Panel::new("thresholds, so far", summary.plan.thresholds.iter().map(line).collect(), ""))
}

/// Figures watched beside the run: in the last second, and in the measured part so far; `None` without any.
pub(super) fn watched(summary: Option<&Summary>, live: &Live) -> Option<Panel> {
    let header = format!("  {:>11}{:>11}{:>11}  watched", "now", "mean", "max");
    let line = |(name, figure): (&str, &WatchedFigure)| {
        let so_far = summary.and_then(|summary| summary.watched.iter().find(|one| one.name == name));
        let (mean, max) = so_far.map_or((None, None), |so_far| (so_far.mean, so_far.max));
        let cells = [figure.last(), mean, max].map(|value| {
            let shown = value.map_or_else(|| "–".to_owned(), |value| shown_value(figure.unit, value));
            format!("{shown:>11}")
        });
        let role = if figure.last().is_some() { Role::Plain } else { Role::Warning };
        Line::new(role, format!("  {}  {}", cells.concat(), clean(name)))
    };
    let mut lines = vec![Line::new(Role::Faint, header)];
    lines.extend(live.snapshot.watched.iter().map(line));
    (lines.len() > 1).then(|| Panel::new("target", lines, ""))
}

/// The agents, silent ones first and then the slowest; `None` where this machine carries out the run.
pub(super) fn agents(live: &Live) -> Option<Panel> {
    let mut agents: Vec<_> = live.agents.iter().collect();
    agents.sort_by_key(|agent| Reverse((agent.is_silent, agent.p99_ns.map(|p99| p99.value))));
    let header = format!("  {:>9}{:>10}{:>10}{:>9}  agent", "answered", "p99", "lag p99", "not ok");
    let line = |agent: &AgentSecond| {
        let name = format!("  {}", clean(&agent.name));
        if agent.is_silent {
            return Line::new(Role::Bad, format!("{:>40}{name}", "nothing reported"));
        }
        let p99 = agent.p99_ns.map_or("–".to_owned(), short);
        let lag = agent.lag_p99_ns.map_or("–".to_owned(), |lag| short(AtLeast::exactly(lag)));
        let (wrong, busy) = (if agent.not_ok > 0 { Role::Bad } else { Role::Plain }, agent.is_saturated);
        Line::new(Role::Plain, format!("  {:>9}{p99:>10}{lag:>10}", count(agent.answered)))
            .add(wrong, format!("{:>9}", count(agent.not_ok)))
            .add(if busy { Role::Warning } else { Role::Plain }, name)
            .add(Role::Warning, if busy { " (no CPU left)" } else { "" })
    };
    let mut lines = vec![Line::new(Role::Faint, header)];
    lines.extend(agents.into_iter().map(line));
    (!live.agents.is_empty()).then(|| Panel::new("agents, last second", lines, ""))
}

/// Whether brunt kept up, in one line.
pub(super) fn brunt_in_brief(summary: Option<&Summary>, live: &Live) -> Line {
    let numbers = &live.snapshot.numbers;
    let (lag, busiest) = match summary {
        Some(summary) => {
            let total = &summary.total;
            (total.times.known(Timing::Lag).quantile(0.99), total.numbers.ratio(Counter::BusiestWorker))
        }
        None => (live.snapshot.times.known(Timing::Lag).quantile(0.99), numbers.ratio(Counter::BusiestWorker)),
    };
    let lag = lag.map_or_else(String::new, |lag| format!("lag p99 {}, ", Duration(lag)));
    let (role, words) = match summary.map(|summary| &summary.verdict) {
        Some(verdict) if verdict.judgement == Judgement::GeneratorBound => {
            (Role::Bad, "brunt is the limit: ".to_owned())
        }
        Some(verdict) if verdict.judgement == Judgement::LatencyUnreliable => {
            (Role::Bad, format!("{}: ", verdict.holding()))
        }
        _ => (Role::Faint, "brunt keeps up: ".to_owned()),
    };
    Line::new(role, format!("{words}{lag}{} of a CPU", percent(busiest)))
}

pub(super) fn brunt(summary: Option<&Summary>, live: &Live, width: usize) -> Panel {
    let per_s = |n: u64| n as f64 * 1e9 / live.length_ns.max(1) as f64;
    let numbers = &live.snapshot.numbers;
    let mut parts = vec![counted(live.open_connections, "connection")];
    parts.extend(live.users.map(|users| counted(users, "user")));
    if live.waiting > 0 {
        parts.push(format!("{} due and not sent", counted(live.waiting, "call")));
    }
    let messages = live.snapshot.numbers.get(Counter::EndedMessages);
    if messages > 0 {
        parts.push(format!("{} messages/s", whole(per_s(messages))));
    }
    let [read, written] = [Counter::WireIn, Counter::WireOut].map(|counter| Size(per_s(numbers.get(counter))));
    parts.push(format!("{read}/s in, {written}/s out"));
    let first = brunt_in_brief(summary, live);
    let mut lines = vec![Line::new(Role::Plain, "  ").joined(first)];
    let rest = text::wrapped("  ", "  ", &parts.join(", "), width);
    lines.extend(rest.into_iter().map(|line| Line::new(Role::Faint, line)));
    Panel::new("brunt", lines, "")
}
