//! Keys of a live view, and their actions.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use super::line::{Line, put};
use crate::style::Role;

/// The viewer's choices.
#[derive(Debug, Clone, Copy, Default)]
pub struct Chosen {
    /// The view stands still.
    pub is_held: bool,
    /// The last minute instead of the whole run.
    pub is_last_minute: bool,
    /// The keys instead of the panels.
    pub is_help: bool,
    /// The actions on the run.
    pub hands: Hands,
}

/// The actions on a run that goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Hands {
    /// No key can be pressed.
    #[default]
    Off,
    /// Keys can be pressed.
    On,
    /// The run has been told to end.
    Ending,
}

/// The last line: the keys; with that for the last minute in a run that has lasted longer.
pub(super) fn keys(chosen: Chosen, is_long: bool) -> Line {
    if chosen.hands == Hands::Ending {
        let note = "ending early, when calls in flight have ended; Ctrl-C exits at once";
        return Line::new(Role::Warning, note);
    }
    if chosen.hands == Hands::Off {
        return Line::new(Role::Faint, "Ctrl-C stops and reports");
    }
    let mut line = Line::default();
    if chosen.is_held {
        line = line.add(Role::Warning, "HELD").add(Role::Faint, "   space go on   q stop and report");
    } else {
        line = line.add(Role::Faint, "q stop and report   space hold the view");
    }
    let minute = match chosen.is_last_minute {
        _ if !is_long => "",
        true => "   tab whole run",
        false => "   tab last minute",
    };
    let help = if chosen.is_help { "back" } else { "keys" };
    line.add(Role::Faint, format!("{minute}   ? {help}"))
}

/// The help: keys and signs.
pub(super) fn help(canvas: &mut Buffer, room: Rect) {
    const LINES: [(&str, &str); 12] = [
        ("q, Ctrl-C", "stop, and report what was measured; Ctrl-C again: at once"),
        ("space", "hold the view, and let it go on"),
        ("tab", "charts of the last minute, or of the whole run"),
        ("?", "these lines, and back"),
        ("", ""),
        ("▲  ✗", "what happens now, or was found; what is lost"),
        ("≥", "at least: calls that still wait can make it larger"),
        ("├──①──┤", "the seconds of a finding"),
        ("█", "by when calls were due (p99), by when they ended (answered)"),
        ("░", "how long the oldest call has waited that was due then"),
        ("▒", "calls that ended without success"),
        ("┄  ·", "what was due, and what is still to come"),
    ];
    for (row, (sign, text)) in LINES.iter().enumerate().take(room.height.saturating_sub(1).into()) {
        let y = usize::from(room.y) + 1 + row;
        put(canvas, 2, y, Role::Strong, sign);
        Line::new(Role::Plain, *text).draw(canvas, 14, y, usize::from(room.width).saturating_sub(14));
    }
}
