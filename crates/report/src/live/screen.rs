//! A part of the screen that is drawn anew each second.

use std::collections::VecDeque;

use brunt_judge::thresholds::{Standing, ThresholdResult};
use brunt_plan::plan::Plan;
use brunt_plan::scenario::DeclaredFigure;
use brunt_plan::threshold::Threshold;
use brunt_plan::units::{Duration, ExactDuration, Number, Size};
use brunt_record::catalogue::Counter;
use brunt_record::figures::CallFigures;
use brunt_record::histogram::{AtLeast, Censored};
use brunt_record::live::{AgentSecond, Live};
use brunt_record::outcome::{Failure, OkStatus};
use brunt_record::snapshot::{Phase, Snapshot};

use super::line::{GAP, Line, NAME};
use super::second::{Second, counts_on, has_latency, name};
use crate::chart;
use crate::columns;
use crate::numbers::{bound, clean, count, counted};
use crate::style::{Paint, Role, Style};
use crate::text::connections_of;

/// How many seconds the chart shows.
const SECONDS: usize = 60;
/// From so many columns and lines on two columns of figures stand side by side.
const WIDE: (usize, usize) = (140, 24);
/// The most that the left one takes: as much as a terminal of usual width.
const WIDEST_LEFT: usize = 80;
/// The most lines of a chart that has room.
const TALLEST: usize = 8;
/// The widest progress bar.
const WIDEST_BAR: usize = 40;
/// The fewest bins that a histogram is shown with, and the most.
const LEAST_BINS: usize = 4;
const MOST_BINS: usize = 16;
/// From when on a call that has not ended is one to look at, in nanoseconds.
const LONG_NS: u64 = brunt_record::SECOND_NS;

/// What is shown of a run that goes on: its last second, what it came to so far, and the last minute. It keeps as
/// little however long the run.
#[derive(Debug)]
pub struct Screen {
    title: String,
    ok: OkStatus,
    thresholds: Vec<Threshold>,
    /// The figures that the script declares.
    own: Vec<DeclaredFigure>,
    flood_connections: Option<u32>,
    last: Option<Last>,
    seconds: VecDeque<Second>,
    /// Every call so far, of the warm-up or of what follows it.
    total: Snapshot,
    /// How long that took, in nanoseconds.
    measured_ns: u64,
    most_users: u64,
    /// What each agent did in the last second.
    agents: Vec<AgentSecond>,
}

/// What only the last second tells.
#[derive(Debug)]
struct Last {
    phase: Phase,
    elapsed_ns: u64,
    planned_ns: Option<u64>,
    planned_requests: Option<u64>,
    open_connections: u64,
    in_flight: u64,
    waiting: u64,
    oldest_ns: u64,
    users: Option<u64>,
}

impl Screen {
    /// The screen of a run that carries out `plan`.
    pub fn new(plan: &Plan) -> Self {
        let threads = counted(plan.workers.into(), "thread");
        let title = if let Some(script) = plan.scenarios.as_ref().and_then(|scenarios| scenarios.files.first()) {
            format!("{}  {threads}", clean(&script.name))
        } else {
            let connections = connections_of(plan);
            format!("{}  {connections}, {threads}", clean(&plan.target.url()))
        };
        Self {
            title,
            ok: plan.ok_status.clone(),
            thresholds: plan.thresholds.clone(),
            flood_connections: Standing::flood_connections(plan),
            own: plan.scenarios.as_ref().map(|scenarios| scenarios.own.clone()).unwrap_or_default(),
            last: None,
            seconds: VecDeque::with_capacity(SECONDS),
            total: Snapshot::default(),
            measured_ns: 0,
            most_users: 0,
            agents: Vec::new(),
        }
    }

    /// Takes in the run's last second.
    pub fn push(&mut self, live: &Live) {
        let second = Second::from_live(live, &self.ok);
        if self.last.as_ref().is_some_and(|last| !counts_on(last.phase, live.phase)) {
            (self.total, self.measured_ns, self.most_users) = (Snapshot::default(), 0, 0);
        }
        self.total.merge(&live.snapshot);
        if live.phase != Phase::Drain {
            self.measured_ns += live.length_ns;
        }
        self.most_users = self.most_users.max(live.users.unwrap_or(0));
        if self.seconds.len() >= SECONDS {
            self.seconds.pop_front();
        }
        self.seconds.push_back(second);
        self.agents.clone_from(&live.agents);
        self.last = Some(Last {
            phase: live.phase,
            elapsed_ns: live.elapsed_ns,
            planned_ns: live.planned_ns,
            planned_requests: live.planned_requests,
            open_connections: live.open_connections,
            in_flight: live.in_flight,
            waiting: live.waiting,
            oldest_ns: live.oldest_ns,
            users: live.users,
        });
    }

    /// The lines to show, none longer than `width` columns and at most `height` of them: what matters most first, and as much
    /// of the rest as there is room for.
    pub fn lines(&self, width: usize, height: usize, style: Style) -> Vec<String> {
        let mut lines = if width >= WIDE.0 && height >= WIDE.1 {
            self.side_by_side(width, height)
        } else {
            let mut lines = self.beginning(width);
            lines.extend(self.charts(width));
            lines.extend(self.details(height.saturating_sub(lines.len())));
            lines
        };
        lines.truncate(height);
        lines.into_iter().map(|line| line.painted(width, Paint(style.colour))).collect()
    }

    /// In a wide terminal the last second, the run so far and its histogram stand on the left, the last minute and the requests
    /// by name on the right.
    fn side_by_side(&self, width: usize, height: usize) -> Vec<Line> {
        let left_width = ((width - GAP) / 2).min(WIDEST_LEFT);
        let mut lines = self.beginning(width);
        // What names the run and says how far it is takes the whole width.
        let below = lines.split_off(lines.len().min(2));
        let room = height.saturating_sub(lines.len());
        let outcomes = below.into_iter().chain(self.outcomes(room)).collect();
        let mut left = self.with_histogram(outcomes, room);
        let mut right = self.tall_charts(width - left_width - GAP, (room / 4).clamp(1, TALLEST));
        right.extend(self.agents(room.saturating_sub(right.len()) / 2));
        right.extend(self.names(room.saturating_sub(right.len())));
        let longer = left.len().max(right.len()).min(room);
        left.resize_with(longer, Line::default);
        right.resize_with(longer, Line::default);
        lines.extend(left.into_iter().zip(right).map(|(left, right)| left.beside(left_width, right)));
        lines
    }

    /// What the run is, how far it is, and its last second.
    fn beginning(&self, width: usize) -> Vec<Line> {
        let mut lines = vec![Line::default().add(Role::Strong, &self.title)];
        if let (Some(last), Some(second)) = (&self.last, self.seconds.back()) {
            lines.push(self.progress(last, width));
            lines.push(self.rate(second));
            lines.push(self.latency(second));
            lines.push(self.errors(last, second));
            lines.push(calls(last));
        } else {
            lines.push(Line::named("running").add(Role::Faint, "the first figures come after a second"));
            lines.extend(["rate", "latency", "errors", "calls"].map(Line::named));
        }
        lines
    }

    /// Thresholds, statuses, failures, the histogram and names, in so many lines.
    fn details(&self, room: usize) -> Vec<Line> {
        let outcomes = self.outcomes(room);
        let mut names = self.agents(room.saturating_sub(outcomes.len()) / 3);
        names.extend(self.names(room.saturating_sub(outcomes.len()) / 3));
        let mut lines = self.with_histogram(outcomes, room.saturating_sub(names.len()));
        lines.extend(names);
        lines
    }

    /// Thresholds, statuses and failures in a part of so many lines.
    fn outcomes(&self, room: usize) -> Vec<Line> {
        let mut lines = self.thresholds(room / 4);
        lines.extend(self.statuses());
        lines.extend(self.failures((room / 6).max(1)));
        lines
    }

    /// The histogram takes what is left of so many lines, and nothing rather than too little.
    fn with_histogram(&self, mut lines: Vec<Line>, room: usize) -> Vec<Line> {
        let left = room.saturating_sub(lines.len());
        if left > LEAST_BINS {
            lines.extend(self.histogram((left - 1).min(MOST_BINS)));
        }
        lines
    }

    fn thresholds(&self, most: usize) -> Vec<Line> {
        let standing = Standing {
            total: &self.total,
            measured: &self.total,
            measured_ns: self.measured_ns,
            ok: &self.ok,
            most_users: self.most_users,
            flood_connections: self.flood_connections,
            own: &self.own,
        };
        let is_measured = self.last.as_ref().is_some_and(|last| last.phase != Phase::Warmup);
        let has_figures = is_measured && self.total.ended() > 0;
        let judged = self.thresholds.iter().map(|threshold| {
            let text = clean(&threshold.to_string()).into_owned();
            (text, has_figures.then(|| standing.judge(threshold)))
        });
        let mut judged: Vec<_> = judged.collect();
        // Where there is not room for all, those that fail are seen.
        judged.sort_by_key(|(_, result)| result.as_ref().is_some_and(|result| result.held));
        let line = |(text, result): (String, Option<ThresholdResult>)| {
            let line = Line::named("threshold");
            let Some(result) = result else { return line.add(Role::Faint, &format!("· {text}")) };
            let (role, sign) = if result.held { (Role::Good, "✓") } else { (Role::Bad, "✗") };
            line.add(role, sign).add(Role::Plain, &format!(" {text}  {}", clean(&result.got)))
        };
        shortened(judged.into_iter().map(line), most, "thresholds")
    }

    /// Answers by status; of protocols that have some.
    fn statuses(&self) -> Option<Line> {
        let statuses = self.total.statuses.sorted();
        let mut line = Line::named("statuses");
        for (at, (status, n)) in statuses.iter().filter(|(status, _)| *status != 0).enumerate() {
            let role = if self.ok.holds(*status) { Role::Plain } else { Role::Bad };
            line = line.add(role, &format!("{}{status} × {}", if at > 0 { ", " } else { "" }, count(*n)));
        }
        statuses.iter().any(|(status, _)| *status != 0).then_some(line)
    }

    /// Failures by name with their most frequent reason, the most frequent first.
    fn failures(&self, most: usize) -> Vec<Line> {
        let failures = &self.total.failures;
        let mut counted: Vec<_> = failures.counted().collect();
        counted.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        let line = |(failure, n): (Failure, u64)| {
            let reason =
                failures.reasons(failure).first().map_or(String::new(), |(reason, _)| format!("  {}", clean(reason)));
            Line::named("failed")
                .add(Role::Bad, &format!("{} × {}", failure.name(), count(n)))
                .add(Role::Plain, &reason)
        };
        shortened(counted.into_iter().map(line), most, "failures")
    }

    /// The agents, those that are silent first and then the slowest, under a line that says what is what.
    fn agents(&self, most: usize) -> Vec<Line> {
        if self.agents.is_empty() || most < 2 {
            return Vec::new();
        }
        let mut agents: Vec<_> = self.agents.iter().collect();
        agents.sort_by_key(|agent| std::cmp::Reverse((agent.is_silent, agent.p99_ns.map(|p99| p99.value))));
        let header = format!("{:>10}{:>10}{:>10}{:>9}  agent", "answered", "p99", "lag p99", "not ok");
        let line = |agent: &AgentSecond| {
            let name = format!("  {}", clean(&agent.name));
            if agent.is_silent {
                return Line::default().add(Role::Bad, &format!("{:>39}{name}", "nothing reported"));
            }
            let p99 = agent.p99_ns.map_or("–".to_owned(), short);
            let lag = agent.lag_p99_ns.map_or("–".to_owned(), |lag| short(AtLeast::exactly(lag)));
            let (wrong, busy) = (if agent.not_ok > 0 { Role::Bad } else { Role::Plain }, agent.is_saturated);
            Line::default()
                .add(Role::Plain, &format!("{:>10}{p99:>10}{lag:>10}", count(agent.answered)))
                .add(wrong, &format!("{:>9}", count(agent.not_ok)))
                .add(if busy { Role::Warning } else { Role::Plain }, &name)
                .add(Role::Warning, if busy { " (no CPU left)" } else { "" })
        };
        let mut lines = vec![Line::default().add(Role::Faint, &header)];
        lines.extend(shortened(agents.into_iter().map(line), most - 1, "agents"));
        lines
    }

    /// Requests by name, those with the most errors and then the most calls first, under a line that says what is what.
    fn names(&self, most: usize) -> Vec<Line> {
        let requests = &self.total.figures.requests;
        let mut named: Vec<_> = requests.iter().collect();
        if named.is_empty() || most < 2 {
            return Vec::new();
        }
        named.sort_by_key(|(name, calls)| {
            (
                std::cmp::Reverse(calls.not_ok(&self.ok)),
                std::cmp::Reverse(calls.numbers.get(Counter::Due)),
                name.to_owned(),
            )
        });
        let header = format!("{:>10}{:>10}{:>10}{:>9}  request", "calls", "p50", "p99", "errors");
        let line = |(name, calls): (&str, &CallFigures)| {
            let [p50, p99] =
                calls.response_times().quantiles([0.5, 0.99]).map(|value| value.map_or("–".to_owned(), short));
            let errors = calls.not_ok(&self.ok);
            let role = if errors > 0 { Role::Bad } else { Role::Plain };
            Line::default()
                .add(Role::Plain, &format!("{:>10}{p50:>10}{p99:>10}", count(calls.numbers.get(Counter::Due))))
                .add(role, &format!("{:>9}", count(errors)))
                .add(Role::Plain, &format!("  {}", clean(name)))
        };
        let mut lines = vec![Line::default().add(Role::Faint, &header)];
        lines.extend(shortened(named.into_iter().map(line), most - 1, "requests"));
        lines
    }

    /// Response times so far in so many bins, each as much longer than the one before, under a line that names them.
    fn histogram(&self, bins: usize) -> Vec<Line> {
        let times = self.total.response_times();
        let lower = times.lower();
        let (Some(low), Some(high)) = (lower.min(), lower.max()) else { return Vec::new() };
        let low = low.max(1);
        let bins = if high > low { bins } else { 1 };
        let ratio = (high as f64 / low as f64).powf(1.0 / bins as f64);
        let end = |bin: usize| if bin + 1 == bins { high } else { (low as f64 * ratio.powi(bin as i32 + 1)) as u64 };
        let mut counts = vec![0_u64; bins];
        let mut bin = 0;
        for (value, n) in lower.values() {
            while bin + 1 < bins && value > end(bin) {
                bin += 1;
            }
            if let Some(count) = counts.get_mut(bin) {
                *count += n;
            }
        }
        let most = counts.iter().copied().max().unwrap_or(0).max(1);
        let mut lines = vec![Line::default().add(Role::Faint, "response times so far, up to")];
        lines.extend(counts.iter().enumerate().map(|(bin, n)| {
            let bar = chart::filled(*n as f64 / most as f64, WIDEST_BAR);
            Line::default()
                .add(Role::Plain, &format!("{:>NAME$}  ", Duration(end(bin)).to_string()))
                .add(Role::Chart, &format!("{bar} "))
                .add(Role::Faint, &if *n > 0 { count(*n) } else { String::new() })
        }));
        lines
    }

    fn progress(&self, last: &Last, width: usize) -> Line {
        let seconds = |ns: u64| ExactDuration(ns / brunt_record::SECOND_NS * brunt_record::SECOND_NS);
        let by_time = last.planned_ns.filter(|ns| *ns > 0).map(|planned| {
            let left = planned.saturating_sub(last.elapsed_ns).div_ceil(brunt_record::SECOND_NS);
            let text = format!("{} of {}, {left}s left", seconds(last.elapsed_ns), ExactDuration(planned));
            (last.elapsed_ns as f64 / planned as f64, text)
        });
        let by_requests = last.planned_requests.filter(|n| *n > 0 && last.phase == Phase::Measured).map(|planned| {
            let done = self.total.ended();
            (done as f64 / planned as f64, format!("{} of {}", count(done), counted(planned, "request")))
        });
        // Whichever end is nearer ends the run.
        let nearest = by_time.into_iter().chain(by_requests).max_by(|a, b| a.0.total_cmp(&b.0));
        let line = Line::named(name(last.phase));
        match nearest {
            Some((share, text)) => {
                let room = width.saturating_sub(NAME + 2 + 2 + columns::width(&text));
                let bar = chart::bar(share, room.min(WIDEST_BAR));
                line.add(Role::Chart, &bar).add(Role::Plain, &format!("  {text}"))
            }
            None => line.add(Role::Plain, &seconds(last.elapsed_ns).to_string()),
        }
    }

    fn rate(&self, second: &Second) -> Line {
        let messages = Number(second.messages_per_s);
        let messages =
            if self.total.messages().is_empty() { String::new() } else { format!("   {messages} messages/s") };
        Line::named("rate")
            .add(Role::Strong, &format!("{:<12}", format!("{}/s", Number(second.rate))))
            .add(Role::Strong, &messages)
            .add(Role::Faint, &format!(" so far {} answered", count(self.total.statuses.total())))
            .add(Role::Plain, &format!("   {}/s in, {}/s out", Size(second.in_per_s), Size(second.out_per_s)))
    }

    fn latency(&self, second: &Second) -> Line {
        let both = |p50: Option<AtLeast<u64>>, p99: Option<AtLeast<u64>>| match (p50, p99) {
            (Some(p50), Some(p99)) => format!("p50 {}  p99 {}", short(p50), short(p99)),
            _ => "no answer".to_owned(),
        };
        let times = if has_latency(&self.total) { self.total.response_times() } else { Censored::default() };
        let [p50, p99] = times.quantiles([0.5, 0.99]);
        Line::named("latency")
            .add(Role::Strong, &format!("{:<26}", both(second.p50, second.p99)))
            .add(Role::Faint, &format!(" so far {}", both(p50, p99)))
    }

    fn errors(&self, last: &Last, second: &Second) -> Line {
        let role = if second.not_ok > 0 { Role::Bad } else { Role::Plain };
        let so_far = self.total.not_ok(&self.ok);
        let far = if so_far > 0 { Role::Bad } else { Role::Faint };
        Line::named("errors")
            .add(role, &format!("{:<12}", count(second.not_ok)))
            .add(far, &format!(" so far {}", count(so_far)))
            .add(
                Role::Plain,
                &format!(
                    "   {}{} open",
                    last.users.map_or(String::new(), |users| format!("{}, ", counted(users, "user"))),
                    counted(last.open_connections, "connection"),
                ),
            )
    }

    /// Throughput and p99 of the last minute in a line each, the newest on the right.
    fn charts(&self, width: usize) -> Vec<Line> {
        self.tall_charts(width, 1)
    }

    /// The same in so many lines each.
    fn tall_charts(&self, width: usize, lines: usize) -> Vec<Line> {
        /// Room for what stands to the right of a chart.
        const LEGEND: usize = 16;
        let columns = width.saturating_sub(NAME + 2 + LEGEND).clamp(1, SECONDS);
        let shown = self.seconds.len().min(columns);
        let shown = || self.seconds.iter().skip(self.seconds.len() - shown);
        let chart = |name: &str, role: Role, values: &[Option<f64>], legend: &dyn Fn(f64) -> String| {
            let full = values.iter().flatten().copied().fold(0.0, f64::max);
            let blocks = chart::tall_columns(values, full, lines);
            // The name stands at the foot of its columns, the greatest value at their top.
            let last = blocks.len().saturating_sub(1);
            let line = |(at, blocks): (usize, String)| {
                let legend = if full > 0.0 && at == 0 { format!("  max {}", legend(full)) } else { String::new() };
                let name = if at == last { name } else { "" };
                Line::named(name).add(role, &format!("{blocks:>columns$}")).add(Role::Faint, &legend)
            };
            blocks.into_iter().enumerate().map(line).collect::<Vec<_>>()
        };
        let rates: Vec<_> = shown().map(|second| Some(second.rate)).collect();
        let p99s: Vec<_> = shown().map(|second| second.p99.map(|p99| p99.value as f64)).collect();
        let rates = chart("answered", Role::Chart, &rates, &|n| format!("{}/s", Number(n.round())));
        let p99s = chart("p99", Role::Warning, &p99s, &|ns| Duration(ns as u64).to_string());
        rates.into_iter().chain(p99s).collect()
    }
}

/// What is under way: calls in flight, the backlog, and how long the oldest of them has waited. It is seen at once where a target
/// stalls, while nothing is answered that a percentile could tell of.
fn calls(last: &Last) -> Line {
    let line = Line::named("calls").add(Role::Plain, &format!("{} in flight", count(last.in_flight)));
    let role = if last.waiting > 0 { Role::Warning } else { Role::Faint };
    let line = line.add(role, &format!(", {} due and not sent", count(last.waiting)));
    if last.oldest_ns == 0 {
        return line;
    }
    let role = if last.oldest_ns >= LONG_NS { Role::Warning } else { Role::Plain };
    line.add(role, &format!(", the oldest for {}", Duration(last.oldest_ns)))
}

/// At most `most` of `lines`; the last says how many more there are.
fn shortened(lines: impl ExactSizeIterator<Item = Line>, most: usize, what: &str) -> Vec<Line> {
    let there = lines.len();
    let shown = if there <= most { there } else { most.saturating_sub(1) };
    let mut shown: Vec<_> = lines.take(shown).collect();
    if there > most && most > 0 {
        shown.push(Line::named("").add(Role::Faint, &format!("… {} more {what}", there - shown.len())));
    }
    shown
}

fn short(ns: AtLeast<u64>) -> String {
    format!("{}{}", bound(ns.at_least), Duration(ns.value))
}
