//! Lines of a run that goes on, for logs and where there is no terminal: one every few seconds, and one at once when
//! the state changes.

use std::fmt::Write as _;

use brunt_judge::summary::Summary;
use brunt_plan::plan::Plan;
use brunt_plan::units::{Clock, Duration, counted};
use brunt_record::SECOND_NS;
use brunt_record::catalogue::Counter;
use brunt_record::live::Live;
use brunt_record::outcome::OkStatus;
use brunt_record::snapshot::{Phase, Snapshot};

use super::figures::{Waiting, short, times_of};
use super::in_log;
use super::screen::Screen;
use super::second::{counts_on, whole};
use super::state::{self, Now};
use crate::ascii;
use crate::changes;
use crate::headline::{self, InReports, Toned};
use crate::numbers::count;
use crate::style::{Characters, Paint, Role, Style};

/// The width of the time before the figures.
const TIME: usize = 8;
const WORD: usize = 10;

/// Turns seconds into lines.
#[derive(Debug)]
pub struct Lines {
    screen: Screen,
    ok: OkStatus,
    plan: Plan,
    style: Style,
    every_ns: u64,
    /// The figures since the last line.
    since: Snapshot,
    since_ns: u64,
    phase: Option<Phase>,
    /// When the last second ended, on the clock of the lines.
    at_ns: i64,
    /// Whether the second before ended in a stall or an outage.
    was_still: bool,
    /// Findings that have had their line.
    reported: Vec<Reported>,
}

/// A finding that has had its line.
#[derive(Debug)]
struct Reported {
    /// As it was in its last line.
    told: Toned,
    /// As it was a second ago.
    before: Toned,
}

/// By how much the beginning of a finding may move once more calls of its stretch have ended, in nanoseconds.
const MOVES_NS: u64 = SECOND_NS / 2;

impl Reported {
    fn new(remark: &Toned) -> Self {
        Self { told: remark.clone(), before: remark.clone() }
    }

    /// Whether a remark is about the same finding: figures of one that goes on grow.
    fn is_about(&self, remark: &Toned) -> bool {
        let (before, now) = (&self.before.remark, &remark.remark);
        let is_near = match (before.from_ns, now.from_ns) {
            (Some(one), Some(other)) => one.abs_diff(other) < MOVES_NS,
            (one, other) => one == other,
        };
        is_near
            && before.about == now.about
            && before.request == now.request
            && self.before.thresholds == remark.thresholds
    }
}

/// The figures that grow while a finding goes on: its end, its calls, the longest of them.
const fn figures(Toned { remark, .. }: &Toned) -> (Option<u64>, Option<u64>, Option<u64>) {
    (remark.to_ns, remark.calls, remark.worst_ns)
}

impl Lines {
    /// The lines of a run by `plan`, one each `every_ns` nanoseconds.
    pub fn new(plan: &Plan, every_ns: u64, style: Style) -> Self {
        Self {
            screen: Screen::new(plan),
            ok: plan.ok_status.clone(),
            plan: plan.clone(),
            style,
            every_ns,
            since: Snapshot::default(),
            since_ns: 0,
            phase: None,
            at_ns: 0,
            was_still: false,
            reported: Vec::new(),
        }
    }

    /// The lines that a second adds; often empty.
    pub fn push(&mut self, live: &Live) -> String {
        let mut text = String::new();
        if self.phase.is_none() {
            let title = self.screen.title().to_owned();
            self.add(&mut text, live.span(self.plan.warmup_ns).0, Role::Strong, "start", &title);
        }
        if self.phase.is_some_and(|last| !counts_on(last, live.phase)) {
            (self.since, self.since_ns) = (Snapshot::default(), 0);
        }
        self.phase = Some(live.phase);
        self.screen.push(live);
        // One clock for the whole run: below 0 in the warm-up, and in the drain as it went on.
        let at_ns = match live.phase {
            Phase::Warmup => live.span(self.plan.warmup_ns).1,
            Phase::Measured | Phase::Drain => i64::try_from(self.screen.now_ns()).unwrap_or(i64::MAX),
        };
        self.at_ns = at_ns;
        self.screen.conclude();
        self.since.merge(&live.snapshot);
        self.since_ns += live.length_ns;
        let now = self.screen.last().map_or(Now::Steady, |(_, now)| now);
        let is_still = now != Now::Steady;
        if is_still && !self.was_still {
            let (role, words) = self.screen.state();
            self.add(&mut text, at_ns, role, "", &words);
        }
        self.was_still = is_still;
        for change in &live.changes {
            self.add(&mut text, at_ns, Role::Strong, "", &changes::sentence(change));
        }
        for remark in self.news() {
            let words = format!("{}{}", state::sign(&remark), remark.remark.message);
            self.add(&mut text, at_ns, remark.tone.role(), "", &words);
        }
        if self.is_due(live) {
            let (role, word, words) = self.figures(live, now);
            self.add(&mut text, at_ns, role, word, &words);
            (self.since, self.since_ns) = (Snapshot::default(), 0);
        }
        text
    }

    /// The lines of a finished run: findings whose last line had other figures, and its report's headline.
    pub fn end(&mut self, summary: &Summary) -> String {
        let mut text = String::new();
        let headline = headline::headline(summary);
        let remarks = headline::remarks(summary);
        let measured_ns = i64::try_from(summary.run.measured_ns).unwrap_or(i64::MAX);
        let at_ns = self.at_ns.max(measured_ns);
        for remark in &remarks {
            let reported = self.reported.iter().find(|finding| finding.is_about(remark));
            let is_new = reported.is_some_and(|finding| finding.told.remark.message != remark.remark.message);
            if is_new {
                let words = format!("{}{}", state::sign(remark), remark.remark.message);
                self.add(&mut text, at_ns, remark.tone.role(), "", &words);
            }
        }
        let role = remarks.first().map_or(Role::Plain, |first| first.tone.role());
        self.add(&mut text, at_ns, role, "end", &headline.line);
        text
    }

    /// Whether a line of figures is due: at each multiple of the interval, and where a phase ends.
    fn is_due(&self, live: &Live) -> bool {
        // A second may be a little shorter or longer than a whole one.
        let number = |ns: u64| (ns + SECOND_NS / 2) / self.every_ns.max(1);
        let before = live.elapsed_ns.saturating_sub(self.since_ns);
        number(live.elapsed_ns) > number(before) || live.planned_ns.is_some_and(|planned| live.elapsed_ns >= planned)
    }

    /// New findings since the last second, and those whose figures have settled on others than were reported: calls that a
    /// freeze held up are known once they end. A finding on a stretch that goes on is shown when it begins.
    fn news(&mut self) -> Vec<Toned> {
        let mut news = Vec::new();
        for remark in self.screen.found() {
            match self.reported.iter_mut().find(|finding| finding.is_about(remark)) {
                None => {
                    self.reported.push(Reported::new(remark));
                    news.push(remark.clone());
                }
                Some(reported) => {
                    let is_as = |known: &Toned| known.remark.message == remark.remark.message;
                    // One that is over has its figures, though its words are others.
                    let is_over = remark.stretch().is_some() && figures(&reported.before) == figures(remark);
                    if (is_over || is_as(&reported.before)) && !is_as(&reported.told) {
                        reported.told.clone_from(remark);
                        news.push(remark.clone());
                    }
                    reported.before.clone_from(remark);
                }
            }
        }
        news
    }

    /// What happened since the last line: `500/s of 500/s due  p50 4.00ms  p99 6.00ms  0 failed  2 wait`.
    fn figures(&self, live: &Live, now: Now) -> (Role, &'static str, String) {
        let per_s = |n: u64| whole(n as f64 * 1e9 / self.since_ns.max(1) as f64);
        let stall = match now {
            Now::Stalled(stall) => Some(stall),
            _ => None,
        };
        let now_ns = stall.map_or(0, |stall| stall.from_ns + stall.silent_ns);
        let waiting = Waiting { calls: live.in_flight + live.waiting, oldest_ns: live.oldest_ns, stall, now_ns };
        let [p50, _, p99, _] = waiting.percentiles(&times_of(&self.since), &self.plan, self.since_ns);
        let mut words = format!("{}/s", per_s(self.since.numbers.get(Counter::EndedAnswered)));
        if self.plan.load.is_open() {
            let _ = write!(words, " of {}/s due", per_s(self.since.numbers.get(Counter::Due)));
        }
        for (name, value) in [("p50", p50), ("p99", p99)] {
            let _ = write!(words, "  {name} {}", value.map_or("–".to_owned(), short));
        }
        let failed = self.since.not_ok(&self.ok);
        let _ = write!(words, "  {} failed  {} wait", count(failed), count(waiting.calls));
        if waiting.calls > 0 && live.oldest_ns >= SECOND_NS {
            let _ = write!(words, ", oldest {}", Duration(live.oldest_ns));
        }
        if let Some(users) = live.users {
            let _ = write!(words, "  {}", counted(users, "user"));
        }
        let messages = self.since.numbers.get(Counter::EndedMessages);
        if messages > 0 {
            let _ = write!(words, "  {} messages/s", per_s(messages));
        }
        if let Some(in_log) = in_log::words(live) {
            let _ = write!(words, "  {in_log}");
        }
        let (role, word) = match (now, live.phase) {
            (Now::Stalled(_) | Now::Starved, _) => (Role::Warning, "▲ stalled"),
            (Now::Out(_), _) => (Role::Bad, "✗ out"),
            (Now::Steady, Phase::Warmup) => (Role::Faint, "warm-up"),
            (Now::Steady, Phase::Drain) => (Role::Faint, "draining"),
            (Now::Steady, Phase::Measured) if failed > 0 => (Role::Plain, "failing"),
            (Now::Steady, Phase::Measured) => (Role::Plain, "steady"),
        };
        (role, word, words)
    }

    fn add(&self, text: &mut String, at_ns: i64, role: Role, word: &str, words: &str) {
        let line = if word.is_empty() {
            format!("{:<TIME$}{words}", clock(at_ns))
        } else {
            format!("{:<TIME$}{} {words}", clock(at_ns), crate::columns::padded(word, WORD))
        };
        let line = if self.style.characters == Characters::Ascii { ascii::folded(&line).into_owned() } else { line };
        let _ = writeln!(text, "{}", Paint(self.style.colour).as_(role, line.trim_end()));
    }
}

/// Such as `0:05.0`: all are as wide. In the warm-up `-0:05.0` is five seconds before the measured part.
fn clock(ns: i64) -> String {
    let text = Clock(ns.unsigned_abs()).to_string();
    let sign = if ns < 0 { "-" } else { "" };
    if text.contains('.') { format!("{sign}{text}") } else { format!("{sign}{text}.0") }
}
