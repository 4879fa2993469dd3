//! A line a second, for logs and for watching where there is no terminal.

use std::fmt::Write as _;

use brunt_plan::units::{Number, Size};
use brunt_record::SECOND_NS;
use brunt_record::histogram::AtLeast;
use brunt_record::live::Live;
use brunt_record::outcome::OkStatus;
use brunt_record::snapshot::Phase;

use super::second::{Second, counts_on, name};
use crate::numbers;
use crate::style::{Paint, Style};

/// After how many lines their header is repeated.
const HEADER_EVERY: u32 = 20;

/// Turns seconds into lines.
#[derive(Debug)]
pub struct Lines {
    ok: OkStatus,
    paint: Paint,
    /// Lines since the last header, and whether it named users and messages.
    since_header: u32,
    has_users: bool,
    has_messages: bool,
    phase: Phase,
    answered: u64,
}

impl Lines {
    /// Lines of a run in which statuses are a success as `ok` says.
    pub fn new(ok: OkStatus, style: Style) -> Self {
        let paint = Paint(style.colour);
        Self { ok, paint, since_header: 0, has_users: false, has_messages: false, phase: Phase::Warmup, answered: 0 }
    }

    /// The line of a second, or two with the header before it. The second is named by when it began, counted from 0
    /// at its phase's beginning; `total` is how many calls were answered so far, `errors` how many of this second's
    /// are not a success, `users` how many virtual users are alive at its end, `msgs/s` how many messages came, where answers come as
    /// messages.
    pub fn push(&mut self, live: &Live) -> String {
        let second = Second::from_live(live, &self.ok);
        if !counts_on(self.phase, live.phase) {
            self.answered = 0;
        }
        self.phase = live.phase;
        self.answered += second.answered;
        let mut text = String::new();
        let columns = (live.users.is_some(), self.has_messages || second.messages_per_s > 0.0);
        if self.since_header.is_multiple_of(HEADER_EVERY) || columns != (self.has_users, self.has_messages) {
            self.since_header = 0;
            (self.has_users, self.has_messages) = columns;
            let names = [
                ("second", 6),
                ("total", 12),
                ("req/s", 8),
                ("p50", 9),
                ("p99", 9),
                ("max", 9),
                ("in/s", 9),
                ("out/s", 9),
                ("errors", 7),
            ];
            let names = names.map(|(name, width)| format!("{name:>width$}")).concat();
            let users = if self.has_users { "   users" } else { "" };
            let messages = if self.has_messages { "  msgs/s" } else { "" };
            let _ = writeln!(text, "{}", self.paint.strong(format!("{names}{users}{messages}")));
        }
        self.since_header += 1;
        text.push_str(&self.line(live, &second));
        text.push('\n');
        text
    }

    fn line(&self, live: &Live, second: &Second) -> String {
        let began = live.elapsed_ns.saturating_sub(live.length_ns).saturating_add(SECOND_NS / 2) / SECOND_NS;
        let time = |value: Option<AtLeast<u64>>| value.map_or("-".to_owned(), numbers::duration);
        let errors = format!("{:>7}", numbers::count(second.not_ok));
        let errors = if second.not_ok > 0 { self.paint.bad(errors) } else { errors };
        let users = live.users.map_or(String::new(), |users| format!("{:>8}", numbers::count(users)));
        let messages = Number(second.messages_per_s).to_string();
        let messages = if self.has_messages { format!("{messages:>8}") } else { String::new() };
        let mark = match live.phase {
            Phase::Measured => String::new(),
            phase => format!("  {}", self.paint.faint(format!("({})", name(phase)))),
        };
        format!(
            "{began:>6}{:>12}{:>8}{:>9}{:>9}{:>9}{:>9}{:>9}{errors}{users}{messages}{mark}",
            numbers::count(self.answered),
            Number(second.rate).to_string(),
            time(second.p50),
            time(second.p99),
            time(second.max),
            Size(second.in_per_s).to_string(),
            Size(second.out_per_s).to_string(),
        )
    }
}
