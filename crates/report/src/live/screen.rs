//! A part of the screen that is drawn anew each second.

use std::collections::VecDeque;

use brunt_model::histogram::{AtLeast, Censored};
use brunt_model::live::Live;
use brunt_model::plan::Plan;
use brunt_model::snapshot::Phase;
use brunt_model::units::{Duration, ExactDuration, Number, Size};

use super::second::{Second, counts_on, has_latency, name};
use crate::chart;
use crate::columns;
use crate::numbers::{bound, clean, count, counted};
use crate::style::{Paint, Role, Style};
use crate::text::connections_of;

/// How many seconds the chart shows.
const SECONDS: usize = 60;
/// The widest progress bar.
const WIDEST_BAR: usize = 40;
/// The width of the names of lines.
const NAME: usize = 9;

/// What is shown of a run that goes on: its last second, what it came to so far, and the last minute. It stays as
/// small however long the run.
#[derive(Debug)]
pub struct Screen {
    title: String,
    ok: brunt_model::outcome::OkStatus,
    last: Option<Last>,
    seconds: VecDeque<Second>,
    answered: u64,
    not_ok: u64,
    response: Censored,
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
            last: None,
            seconds: VecDeque::with_capacity(SECONDS),
            answered: 0,
            not_ok: 0,
            response: Censored::default(),
        }
    }

    /// Takes in the run's last second.
    pub fn push(&mut self, live: &Live) {
        let second = Second::of(live, &self.ok);
        if self.last.as_ref().is_some_and(|last| !counts_on(last.phase, live.phase)) {
            (self.answered, self.not_ok, self.response) = (0, 0, Censored::default());
        }
        self.answered += second.answered;
        self.not_ok += second.not_ok;
        if has_latency(live) {
            self.response.merge(&live.snapshot.response_times());
        }
        if self.seconds.len() >= SECONDS {
            self.seconds.pop_front();
        }
        self.seconds.push_back(second);
        self.last = Some(Last {
            phase: live.phase,
            elapsed_ns: live.elapsed_ns,
            planned_ns: live.planned_ns,
            planned_requests: live.planned_requests,
            open_connections: live.open_connections,
            in_flight: live.in_flight,
            users: live.users,
        });
    }

    /// The lines to show, none longer than `width` characters; always the same number of them.
    pub fn lines(&self, width: usize, style: Style) -> Vec<String> {
        let mut lines = vec![Line::default().add(Role::Strong, &self.title)];
        if let (Some(last), Some(second)) = (&self.last, self.seconds.back()) {
            lines.push(self.progress(last, width));
            lines.push(self.rate(second));
            lines.push(self.latency(second));
            lines.push(self.errors(last, second));
        } else {
            lines.push(Line::named("starting"));
            lines.extend(["rate", "latency", "errors"].map(Line::named));
        }
        lines.extend(self.charts(width));
        lines.into_iter().map(|line| line.painted(width, Paint(style.colour))).collect()
    }

    fn progress(&self, last: &Last, width: usize) -> Line {
        let seconds = |ns: u64| ExactDuration(ns / brunt_model::SECOND_NS * brunt_model::SECOND_NS);
        let by_time = last.planned_ns.filter(|ns| *ns > 0).map(|planned| {
            let left = planned.saturating_sub(last.elapsed_ns).div_ceil(brunt_model::SECOND_NS);
            let text = format!("{} of {}, {left}s left", seconds(last.elapsed_ns), ExactDuration(planned));
            (last.elapsed_ns as f64 / planned as f64, text)
        });
        let by_requests = last.planned_requests.filter(|n| *n > 0 && last.phase == Phase::Measured).map(|planned| {
            let done = self.answered + self.not_ok;
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
        Line::named("rate")
            .add(Role::Strong, &format!("{:<12}", format!("{}/s", Number(second.rate))))
            .add(Role::Faint, &format!(" so far {} answered", count(self.answered)))
            .add(Role::Plain, &format!("   {}/s in, {}/s out", Size(second.in_per_s), Size(second.out_per_s)))
    }

    fn latency(&self, second: &Second) -> Line {
        let both = |p50: Option<AtLeast<u64>>, p99: Option<AtLeast<u64>>| match (p50, p99) {
            (Some(p50), Some(p99)) => format!("p50 {}  p99 {}", short(p50), short(p99)),
            _ => "no answer".to_owned(),
        };
        let [p50, p99] = self.response.quantiles([0.5, 0.99]);
        Line::named("latency")
            .add(Role::Strong, &format!("{:<26}", both(second.p50, second.p99)))
            .add(Role::Faint, &format!(" so far {}", both(p50, p99)))
    }

    fn errors(&self, last: &Last, second: &Second) -> Line {
        let role = if second.not_ok > 0 { Role::Bad } else { Role::Plain };
        let far = if self.not_ok > 0 { Role::Bad } else { Role::Faint };
        Line::named("errors")
            .add(role, &format!("{:<12}", count(second.not_ok)))
            .add(far, &format!(" so far {}", count(self.not_ok)))
            .add(
                Role::Plain,
                &format!(
                    "   {}{} open, {} in flight",
                    last.users.map_or(String::new(), |users| format!("{}, ", counted(users, "user"))),
                    counted(last.open_connections, "connection"),
                    counted(last.in_flight, "call")
                ),
            )
    }

    /// Throughput and p99 of the last minute, the newest on the right.
    fn charts(&self, width: usize) -> [Line; 2] {
        /// Room for what stands to the right of a chart.
        const LEGEND: usize = 16;
        let columns = width.saturating_sub(NAME + 2 + LEGEND).clamp(1, SECONDS);
        let shown = self.seconds.len().min(columns);
        let shown = || self.seconds.iter().skip(self.seconds.len() - shown);
        let chart = |name: &str, role: Role, values: Vec<Option<f64>>, legend: &dyn Fn(f64) -> String| {
            let full = values.iter().flatten().copied().fold(0.0, f64::max);
            let blocks = chart::columns(values, full);
            let legend = if full > 0.0 { format!("  max {}", legend(full)) } else { String::new() };
            Line::named(name).add(role, &format!("{blocks:>columns$}")).add(Role::Faint, &legend)
        };
        let rates = shown().map(|second| Some(second.rate)).collect();
        let p99s = shown().map(|second| second.p99.map(|p99| p99.value as f64)).collect();
        [
            chart("answered", Role::Chart, rates, &|n| format!("{}/s", Number(n.round()))),
            chart("p99", Role::Warning, p99s, &|ns| Duration(ns as u64).to_string()),
        ]
    }
}

fn short(ns: AtLeast<u64>) -> String {
    format!("{}{}", bound(ns.at_least), Duration(ns.value))
}

/// A line of pieces, each with its colour, that can be cut to a width.
#[derive(Debug, Default)]
struct Line(Vec<(Role, String)>);

impl Line {
    fn named(name: &str) -> Self {
        Self::default().add(Role::Faint, &format!("{name:<NAME$}  "))
    }

    fn add(mut self, role: Role, text: &str) -> Self {
        self.0.push((role, text.to_owned()));
        self
    }

    fn painted(self, width: usize, paint: Paint) -> String {
        let mut room = width;
        let mut line = String::new();
        for (role, text) in self.0 {
            let text = columns::cut(&text, room);
            room -= columns::width(text);
            if !text.is_empty() {
                line.push_str(&paint.as_(role, text));
            }
        }
        line
    }
}
