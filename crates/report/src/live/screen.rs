//! A run that goes on, drawn over a whole terminal.

use brunt_judge::summary::Summary;
use brunt_plan::plan::{Load, Plan};
use brunt_plan::units::{Clock, ExactDuration, counted};
use brunt_record::SECOND_NS;
use brunt_record::catalogue::Timing;
use brunt_record::live::Live;
use brunt_record::series::Point;
use brunt_record::snapshot::Phase;
use brunt_record::timeline::{FlowPoint, TICK_NS, Timeline};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use super::charts::{self, BEFORE, rule};
use super::course::{Column, Course, Open};
use super::figures::{self, Waiting};
use super::in_log;
use super::keys::{Chosen, help, keys};
use super::line::Line;
use super::panels::{self, Panel};
use super::second::counts_on;
use super::so_far::SoFar;
use super::state::{self, Moment, Now};
use crate::headline::Toned;
use crate::numbers::{clean, count};
use crate::style::{Characters, Role, Style};
use crate::{ascii, text};

/// The width from which on panels stand side by side.
const WIDE: usize = 100;
/// The width of the progress bar, with enough room and without.
const BAR: usize = 16;
const SHORT_BAR: usize = 6;
/// The stretches shown for a run of unknown length, in seconds: the first one that it fits into.
const SPANS: [u64; 12] = [10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400];
/// The stretch shown when the last minute is asked for, in nanoseconds.
const MINUTE_NS: u64 = 60 * SECOND_NS;

/// A run while it goes on: its last second and its totals so far. Its memory does not grow with the run.
#[derive(Debug)]
pub struct Screen {
    title: String,
    so_far: SoFar,
    /// Outcomes of calls by when they were due, the drain's included.
    timeline: Timeline,
    last: Option<Last>,
    /// How long calls have found no server, in nanoseconds.
    out_ns: u64,
    /// When a call last ended in the warm-up, which has no timeline.
    warmed_ns: u64,
    concluded: Option<Concluded>,
}

/// The last second, with the state at its end.
#[derive(Debug)]
struct Last {
    live: Live,
    now_ns: u64,
    now: Now,
}

/// Derived values of everything so far.
#[derive(Debug)]
struct Concluded {
    summary: Summary,
    found: Vec<Toned>,
    flow: Vec<FlowPoint>,
}

impl Screen {
    /// The screen of a run that carries out `plan`.
    pub fn new(plan: &Plan) -> Self {
        Self {
            title: title(plan),
            so_far: SoFar::undrilled(plan),
            timeline: Timeline::default(),
            last: None,
            out_ns: 0,
            warmed_ns: 0,
            concluded: None,
        }
    }

    /// Takes in the run's last second.
    pub fn push(&mut self, live: &Live) {
        if self.last.as_ref().is_some_and(|last| !counts_on(last.live.phase, live.phase)) {
            self.out_ns = 0;
        }
        self.so_far.push(live);
        let measured_ns = self.so_far.run.measured_ns;
        let now_ns = match live.phase {
            Phase::Drain => measured_ns.saturating_add(live.elapsed_ns),
            Phase::Warmup | Phase::Measured => live.elapsed_ns,
        };
        if live.phase == Phase::Warmup {
            self.warmed_ns = if live.snapshot.ended() > 0 { now_ns } else { self.warmed_ns };
        } else {
            self.timeline.merge(&live.snapshot.timeline);
        }
        let times = if live.phase == Phase::Warmup { &live.snapshot.times } else { &self.so_far.run.measured.times };
        let known = times.known(Timing::Response);
        let moment = Moment {
            now_ns,
            last_completion_ns: match live.phase {
                Phase::Warmup => self.warmed_ns,
                Phase::Measured | Phase::Drain => self.timeline.last_completion_ns(),
            },
            waiting: live.in_flight + live.waiting,
            oldest_ns: live.oldest_ns,
            median_ns: known.quantile(0.5),
        };
        let now = Now::new(&self.so_far.plan, live, &moment, known);
        self.out_ns = match now {
            Now::Out(_) => (self.out_ns + live.length_ns).max(state::out_ns(&self.timeline, now_ns)),
            _ => 0,
        };
        self.last = Some(Last { live: live.clone(), now_ns, now });
    }

    /// Derives figures and findings of everything so far, which [`Screen::draw`] shows. This costs milliseconds in a
    /// long run.
    pub fn conclude(&mut self) {
        let is_measured = self.last.as_ref().is_some_and(|last| last.live.phase != Phase::Warmup);
        let now_ns = self.now_ns();
        self.concluded = is_measured.then(|| {
            let summary = self.so_far.summary();
            let mut found = state::found(&summary);
            // The findings on calls of a stall are known when it is over: until then it looks like an overload.
            if let Some(Now::Stalled(stall)) = self.last.as_ref().map(|last| last.now) {
                found.retain(|remark| remark.stretch().is_none_or(|(_, to_ns)| to_ns <= stall.from_ns + TICK_NS));
            }
            let points = self.so_far.run.series.points();
            let flow = self.timeline.flow(now_ns, points.iter().map(Point::ended_ok)).unwrap_or_default();
            Concluded { summary, found, flow }
        });
    }

    /// A number for the kind of state: when it changes, the state has changed.
    pub fn kind(&self) -> u8 {
        match self.last.as_ref().map(|last| (last.now, last.live.phase)) {
            None => 0,
            Some((Now::Steady, Phase::Warmup)) => 1,
            Some((Now::Steady, _)) => 2,
            Some((Now::Stalled(_), _)) => 3,
            Some((Now::Out(_), _)) => 4,
            Some((Now::Starved, _)) => 5,
        }
    }

    pub(super) fn title(&self) -> &str {
        &self.title
    }

    /// The end of the last second on the run's clock, in nanoseconds: the warm-up has a clock of its own, the drain goes on where the
    /// measured part ended. 0 before the first second.
    pub(super) fn now_ns(&self) -> u64 {
        self.last.as_ref().map_or(0, |last| last.now_ns)
    }

    /// The last second, with the state at its end.
    pub(super) fn last(&self) -> Option<(&Live, Now)> {
        self.last.as_ref().map(|last| (&last.live, last.now))
    }

    /// The findings so far.
    pub(super) fn found(&self) -> &[Toned] {
        self.concluded.as_ref().map_or(&[], |concluded| &concluded.found)
    }

    /// The state in words, with its sign.
    pub(super) fn state(&self) -> (Role, String) {
        match &self.last {
            None => (Role::Plain, "  Starting: the first figures come after a second".to_owned()),
            Some(last) => state::words(last.now, &last.live, self.out_ns, self.found()),
        }
    }

    /// The whole view in this many columns and lines.
    pub fn draw(&self, width: u16, height: u16, chosen: Chosen, style: Style) -> Buffer {
        let mut canvas = Buffer::empty(Rect::new(0, 0, width, height));
        let (columns, rows) = (usize::from(width), usize::from(height));
        self.heading(&mut canvas, columns);
        let (role, state) = self.state();
        let state = Line::new(role, state);
        state.draw(&mut canvas, 0, 1, columns);
        if let Some(words) = self.last.as_ref().and_then(|last| in_log::words(&last.live)) {
            let words = Line::new(Role::Plain, words);
            if state.width() + 2 + words.width() <= columns {
                words.draw(&mut canvas, columns - words.width(), 1, columns);
            }
        }
        let room = Rect::new(0, 2, width, height.saturating_sub(3));
        if chosen.is_help {
            help(&mut canvas, room);
        } else if let Some(last) = &self.last {
            self.below(&mut canvas, room, last, chosen);
        }
        if rows > 2 {
            let is_long = self.last.as_ref().is_some_and(|last| last.now_ns > MINUTE_NS);
            keys(chosen, is_long).draw(&mut canvas, 0, rows - 1, columns);
        }
        finished(canvas, style)
    }

    /// The plan, on the left, and the progress, on the right.
    fn heading(&self, canvas: &mut Buffer, width: usize) {
        let bar = |bar| self.last.as_ref().map_or_else(Line::default, |last| self.progress(&last.live, bar));
        let fits = |right: &Line| width >= 80 && crate::columns::width(&self.title) + 2 + right.width() <= width;
        let right = Some(bar(BAR)).filter(fits).unwrap_or_else(|| bar(SHORT_BAR));
        let room = width.saturating_sub(right.width() + 2);
        Line::new(Role::Strong, &self.title).draw(canvas, 0, 0, room);
        right.draw(canvas, width.saturating_sub(right.width()), 0, width);
    }

    fn progress(&self, live: &Live, bar: usize) -> Line {
        let by_time = live.end().filter(|(ns, _)| *ns > 0).map(|(end, is_estimate)| {
            let about = if is_estimate { "about " } else { "" };
            let text = format!("{} of {about}{}", Clock(live.elapsed_ns), Clock(end));
            (live.elapsed_ns as f64 / end as f64, text)
        });
        let requests = live.planned_requests.filter(|n| *n > 0 && live.phase == Phase::Measured);
        let by_requests = requests.map(|planned| {
            let done = self.so_far.run.measured.ended();
            (done as f64 / planned as f64, format!("{} of {}", count(done), counted(planned, "request")))
        });
        let phase = match live.phase {
            Phase::Warmup => "warm-up ",
            Phase::Measured => "",
            Phase::Drain => "draining ",
        };
        // Whichever end is nearer ends the run.
        let Some((share, text)) = by_time.into_iter().chain(by_requests).max_by(|a, b| a.0.total_cmp(&b.0)) else {
            return Line::new(Role::Plain, format!("{phase}{}", Clock(live.elapsed_ns)));
        };
        let done = ((share.clamp(0.0, 1.0) * bar as f64).round() as usize).min(bar);
        Line::new(Role::Plain, format!("{phase}{text}  "))
            .add(Role::Chart, "━".repeat(done))
            .add(Role::Faint, "─".repeat(bar - done))
    }

    /// Figures, charts and panels: as many as fit.
    fn below(&self, canvas: &mut Buffer, room: Rect, last: &Last, chosen: Chosen) {
        let (width, height) = (usize::from(room.width), usize::from(room.height));
        // A gap before figures and after them, where they need not give way for it.
        let gaps = [usize::from(height >= 17), usize::from(height >= 27)];
        let mut y = usize::from(room.y) + gaps[0];
        let waiting = Self::waiting(last);
        let summary = self.concluded.as_ref().map(|concluded| &concluded.summary);
        // The drain's calls are in the summary alone.
        let total = match last.live.phase {
            Phase::Warmup => None,
            Phase::Measured => Some(&self.so_far.run.measured),
            Phase::Drain => summary.map(|summary| &summary.total),
        };
        for line in figures::lines(total, &last.live, &waiting, &self.so_far.plan, width) {
            if y < usize::from(room.y) + height {
                line.draw(canvas, 0, y, width);
            }
            y += 1;
        }
        y += gaps[1];
        let left = (usize::from(room.y) + height).saturating_sub(y);
        let panels = self.panels(&waiting, width, left);
        let most = match left {
            0..12 => 0,
            12..20 => 3,
            _ => left * 2 / 5,
        };
        let bottom = panels.as_ref().map_or(3, |sides| sides.iter().map(|side| panels::rows(side)).max().unwrap_or(0));
        let bottom = bottom.min(most);
        self.charts(canvas, Rect::new(0, y as u16, room.width, (left - bottom) as u16), last, chosen);
        let area = Rect::new(0, (y + left - bottom) as u16, room.width, bottom as u16);
        match panels {
            _ if bottom == 0 => {}
            None => self.two_lines(canvas, area, &waiting),
            Some(sides) => panels::draw(canvas, area, sides),
        }
    }

    /// Calls that have not ended.
    fn waiting(last: &Last) -> Waiting {
        let calls = last.live.in_flight + last.live.waiting;
        let stall = match last.now {
            Now::Stalled(stall) => Some(stall),
            _ => None,
        };
        Waiting { calls, oldest_ns: last.live.oldest_ns, stall, now_ns: last.now_ns }
    }

    /// The stretch that charts show, in nanoseconds of the measured part.
    fn stretch(&self, last: &Last, chosen: Chosen) -> (u64, u64) {
        let is_measured = last.live.phase != Phase::Warmup;
        let now_ns = if is_measured { last.now_ns } else { 0 };
        if chosen.is_last_minute && now_ns > MINUTE_NS {
            return (now_ns - MINUTE_NS, now_ns);
        }
        let open_end = || SPANS.into_iter().map(|s| s * SECOND_NS).find(|span| *span >= now_ns).unwrap_or(now_ns);
        let plan = &self.so_far.plan;
        let planned = plan.duration_ns().filter(|_| plan.stop.requests.is_none()).unwrap_or_else(open_end);
        (0, planned.max(now_ns).max(SECOND_NS))
    }

    fn charts(&self, canvas: &mut Buffer, area: Rect, last: &Last, chosen: Chosen) {
        let columns = usize::from(area.width).saturating_sub(BEFORE);
        let height = usize::from(area.height);
        if height < 3 || columns < 10 {
            return;
        }
        let (from_ns, to_ns) = self.stretch(last, chosen);
        let is_measured = last.live.phase != Phase::Warmup;
        let waiting = Self::waiting(last);
        let open = Open {
            calls: waiting.calls,
            oldest_ns: waiting.oldest_ns,
            stalled_from_ns: waiting.stall.map(|stall| stall.from_ns),
        };
        let course = Course {
            timeline: &self.timeline,
            flow: self.concluded.as_ref().map_or(&[], |concluded| &concluded.flow),
            plan: &self.so_far.plan,
            open: if is_measured { open } else { Open::default() },
            now_ns: if is_measured { last.now_ns } else { 0 },
            from_ns,
            to_ns,
        };
        let shown = course.columns(columns);
        let (x, width, mut y) = (area.x, area.width, area.y);
        let mut part = |rows: usize| {
            let area = Rect::new(x, y, width, rows as u16);
            y += rows as u16;
            area
        };
        let heights = Heights::new(height);
        let marks = self.marks(&waiting, from_ns, to_ns, columns);
        rule(canvas, part(1), "p99 by due time", &marks, &shade_notes(&shown));
        charts::times(canvas, part(heights.times), &shown);
        if heights.rates > 0 {
            rule(canvas, part(1), "answered a second", &[], &[due_note(&shown)]);
            charts::rates(canvas, part(heights.rates), &shown);
        }
        if heights.waiting > 0 {
            rule(canvas, part(1), "calls waiting", &[], &[]);
            charts::waiting(canvas, part(heights.waiting), &shown);
        }
        if heights.has_axis {
            charts::axis(canvas, part(1), from_ns, to_ns);
        }
    }

    /// Where findings have their place, and the stall that goes on.
    fn marks(&self, waiting: &Waiting, from_ns: u64, to_ns: u64, columns: usize) -> Vec<(usize, char)> {
        let mut marks: Vec<(usize, char)> = text::marks(self.found(), from_ns, to_ns, columns);
        if let Some(stall) = waiting.stall {
            let place = |ns: u64| {
                (u128::from(ns.saturating_sub(from_ns)) * columns as u128 / u128::from((to_ns - from_ns).max(1)))
                    as usize
            };
            let (first, end) = (place(stall.from_ns), place(waiting.now_ns).min(columns.saturating_sub(1)));
            let inner = (first + 1..end).map(|at| (at, '─'));
            marks.extend([(first, '├')].into_iter().chain(inner).chain([(end.max(first), '▶')]));
        }
        marks
    }

    /// Panels below the charts, on two sides where there is room; `None` where only two lines are left.
    fn panels(&self, waiting: &Waiting, width: usize, left: usize) -> Option<Vec<Vec<Panel>>> {
        if left < 20 {
            return None;
        }
        let plan = &self.so_far.plan;
        let live = self.last.as_ref().map(|last| &last.live)?;
        let summary = self.concluded.as_ref().map(|concluded| &concluded.summary);
        let side = if width >= WIDE { (width - panels::GAP) / 2 } else { width };
        let requests = panels::requests(summary, plan, waiting);
        let found = panels::findings(self.found(), waiting, side);
        let failures = panels::failures(summary);
        let brunt = panels::brunt(summary, live, side);
        let more = panels::watched(summary, live).into_iter().chain(panels::thresholds(summary));
        let more = more.chain(panels::agents(live));
        Some(if width >= WIDE {
            vec![vec![requests, found], [failures].into_iter().chain(more).chain([brunt]).collect()]
        } else {
            vec![[requests, failures, found].into_iter().chain(more).chain([brunt]).collect()]
        })
    }

    /// The worst request, failures and brunt itself, where there is no room for panels.
    fn two_lines(&self, canvas: &mut Buffer, area: Rect, waiting: &Waiting) {
        let Some(live) = self.last.as_ref().map(|last| &last.live) else { return };
        let summary = self.concluded.as_ref().map(|concluded| &concluded.summary);
        let width = usize::from(area.width);
        rule(canvas, Rect { height: 1, ..area }, "requests · failures · brunt", &[], &[]);
        let y = usize::from(area.y);
        panels::worst_request(summary, &self.so_far.plan, waiting).draw(canvas, 0, y + 1, width);
        let brunt = panels::brunt_in_brief(summary, live);
        let brunt_at = width.saturating_sub(brunt.width());
        brunt.draw(canvas, brunt_at, y + 2, width - brunt_at);
        panels::worst_failure(summary).draw(canvas, 0, y + 2, brunt_at.saturating_sub(2));
    }
}

/// The heights of charts.
struct Heights {
    times: usize,
    rates: usize,
    waiting: usize,
    has_axis: bool,
}

impl Heights {
    /// The heights of charts in this many rows, with titles and axis.
    fn new(rows: usize) -> Self {
        if rows < 9 {
            return Self { times: rows - 1, rates: 0, waiting: 0, has_axis: false };
        }
        let inner = rows - 3;
        if rows < 20 {
            let rates = (inner * 3 / 11).max(2);
            return Self { times: inner - rates, rates, waiting: 0, has_axis: true };
        }
        let (rates, waiting) = ((inner - 1) * 3 / 10, ((inner - 1) / 6).max(3));
        Self { times: inner - 1 - rates - waiting, rates, waiting, has_axis: true }
    }
}

/// Explains the shade, if there is some, in more words or fewer.
fn shade_notes(shown: &[Column]) -> Vec<Line> {
    if shown.iter().all(|column| column.waited_ns.is_none()) {
        return Vec::new();
    }
    let note = |words: &str| Line::new(Role::Warning, "░").add(Role::Faint, words);
    vec![note(" oldest call still waiting"), note(" oldest call waiting"), note(" waiting")]
}

/// Explains the marks among the rates, if there are some.
fn due_note(shown: &[Column]) -> Line {
    let mut line = Line::default();
    if shown.iter().any(|column| column.ended.is_some_and(|(_, not_ok)| not_ok > 0.0)) {
        line = line.add(Role::Bad, "▒").add(Role::Faint, " not ok");
    }
    if shown.iter().any(|column| column.planned.is_some()) {
        let gap = if line.width() > 0 { "  " } else { "" };
        line = line.add(Role::Faint, format!("{gap}┄ due"));
    }
    line
}

/// The plan: `GET http://shop.test/cart   500/s for 12s`.
fn title(plan: &Plan) -> String {
    let method = plan.protocol.shown().get("method").and_then(|method| method.as_str());
    let method = method.filter(|_| plan.scenarios.is_none()).map_or_else(String::new, |method| format!("{method} "));
    let load = match &plan.load {
        _ if plan.scenarios.is_some() => String::new(),
        Load::Open { profile, .. } if profile.is_constant() => format!("   {profile}/s"),
        Load::Open { profile, .. } => format!("   {profile}"),
        Load::Closed {} => format!("   {}", text::connections_of(plan)),
        Load::Replay(replay) => format!("   {}", replay.title()),
    };
    let is_in_profile = matches!(&plan.load, Load::Open { profile, .. } if !profile.is_constant());
    let length = plan.duration_ns().filter(|_| !is_in_profile && plan.scenarios.is_none());
    let length = length.map_or_else(String::new, |ns| format!(" for {}", ExactDuration(ns)));
    let requests = plan.stop.requests.filter(|_| plan.scenarios.is_none());
    let requests = requests.map_or_else(String::new, |n| format!(", {}", counted(n, "request")));
    clean(&format!("{method}{}{load}{length}{requests}", text::plan_heading(plan))).into_owned()
}

/// `canvas` as `style` asks for.
pub(super) fn finished(mut canvas: Buffer, style: Style) -> Buffer {
    for cell in &mut canvas.content {
        if !style.colour {
            cell.set_style(ratatui_core::style::Style::reset());
        }
        if style.characters == Characters::Ascii && !cell.symbol().is_ascii() {
            let folded = ascii::folded(cell.symbol()).into_owned();
            cell.set_symbol(&folded);
        }
    }
    canvas
}
