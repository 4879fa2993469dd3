//! A view of several runs that follow each other.

use std::time::Duration;

use brunt_plan::units::{ExactDuration, Number};
use brunt_record::live::Live;
use brunt_record::outcome::OkStatus;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use super::line::Line;
use super::screen::finished;
use super::second::{Second, name};
use crate::style::{Role, Style};
use crate::{chart, columns, numbers};

/// The widest progress bar.
const WIDEST_BAR: usize = 40;

/// The progress of all runs.
#[derive(Debug, Clone)]
pub struct Overall<'a> {
    /// The command that makes them.
    pub title: &'a str,
    /// The time that they have taken, and an estimate of the rest.
    pub past: Duration,
    /// See `past`.
    pub left: Duration,
    /// The run that goes on.
    pub current: &'a str,
    /// The results of earlier runs.
    pub notes: Vec<&'a str>,
    /// The last line: the keys.
    pub keys: &'a str,
}

impl Overall<'_> {
    /// The whole view in this many columns and lines.
    pub fn draw(&self, width: u16, height: u16, style: Style) -> Buffer {
        let mut canvas = Buffer::empty(Rect::new(0, 0, width, height));
        let (columns, rows) = (usize::from(width), usize::from(height));
        Line::new(Role::Strong, self.progress(columns)).draw(&mut canvas, 0, 0, columns);
        Line::new(Role::Plain, self.current).draw(&mut canvas, 0, 1, columns);
        // Where there is no room for all, the newest are shown.
        let room = rows.saturating_sub(4);
        let shown = self.notes.iter().skip(self.notes.len().saturating_sub(room));
        for (row, note) in shown.enumerate() {
            Line::new(Role::Plain, *note).draw(&mut canvas, 0, 3 + row, columns);
        }
        if rows > 2 {
            Line::new(Role::Faint, self.keys).draw(&mut canvas, 0, rows - 1, columns);
        }
        finished(canvas, style)
    }

    /// The progress of all runs, in a line no longer than `width`.
    fn progress(&self, width: usize) -> String {
        let whole = |time: Duration| ExactDuration((time.as_secs_f64().round() as u64) * brunt_record::SECOND_NS);
        let clock = |time: Duration| match time.as_secs() {
            0..100 => whole(time).to_string(),
            seconds => format!("{}m{:02}s", seconds / 60, seconds % 60),
        };
        let share = self.past.as_secs_f64() / (self.past + self.left).as_secs_f64().max(1e-9);
        let text = format!("  {}, about {} left", clock(self.past), clock(self.left));
        let title = format!("brunt {}  ", self.title);
        let room = width.saturating_sub(columns::width(&title) + columns::width(&text));
        format!("{title}{}{text}", chart::bar(share, room.min(WIDEST_BAR)))
    }
}

/// A run's last second, in a few words.
pub fn brief(live: &Live) -> String {
    let second = Second::from_live(live, &OkStatus::default());
    let p99 = second.p99.map_or(String::new(), |p99| format!(", p99 {}", numbers::duration(p99)));
    format!("{} {}/s{p99}", name(live.phase), Number(second.rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overall(past_s: u64, left_s: u64) -> Overall<'static> {
        let (past, left) = (Duration::from_secs(past_s), Duration::from_secs(left_s));
        Overall { title: "find", past, left, current: "run 9", notes: vec!["a", "b", "c"], keys: "q stop" }
    }

    #[test]
    fn the_line_says_how_much_is_left() {
        let line = overall(30, 90).progress(60);
        assert!(line.starts_with("brunt find  █"), "{line}");
        assert!(line.ends_with("░  30s, about 90s left") && line.chars().count() <= 60, "{line}");
        assert!(overall(0, 150).progress(60).ends_with("0s, about 2m30s left"));
    }

    #[test]
    fn the_newest_notes_are_seen_where_there_is_no_room_for_all() {
        let canvas = overall(1, 2).draw(20, 6, Style::default());
        let text: String = canvas.content.iter().map(ratatui_core::buffer::Cell::symbol).collect();
        assert!(text.contains("run 9") && text.contains('c') && text.contains("q stop"), "{text}");
        assert!(!text.split("run 9").nth(1).is_some_and(|below| below.contains('a')), "{text}");
    }
}
