//! Terminal output that turns one view into the next.

use std::fmt::Write as _;

use anstyle::{Color, Style};
use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::style;

use crate::columns;

/// The output that replaces `shown` by `next` (ECMA-48: CUP, SGR, ED). Where their sizes differ the terminal is cleared
/// first.
pub fn changes(shown: &Buffer, next: &Buffer) -> String {
    let mut text = String::new();
    let blank = Buffer::empty(*next.area());
    let shown = if shown.area() == next.area() {
        shown
    } else {
        text.push_str("\x1b[0m\x1b[2J");
        &blank
    };
    let (mut at, mut style) = (None, Style::new());
    for (x, y, cell) in shown.diff(next) {
        if at != Some((x, y)) {
            let _ = write!(text, "\x1b[{};{}H", y + 1, x + 1);
        }
        let its = ansi(cell);
        if its != style {
            let _ = write!(text, "\x1b[0m{its}");
            style = its;
        }
        text.push_str(cell.symbol());
        at = Some((x + columns::width(cell.symbol()) as u16, y));
    }
    if style != Style::new() {
        text.push_str("\x1b[0m");
    }
    text
}

/// How a cell looks.
fn ansi(cell: &Cell) -> Style {
    let colour = |colour: style::Color| (colour != style::Color::Reset).then(|| Color::from(colour));
    Style::new().fg_color(colour(cell.fg)).bg_color(colour(cell.bg)).effects(cell.modifier.into())
}

#[cfg(test)]
mod tests {
    use ratatui_core::layout::Rect;

    use super::*;
    use crate::live::line::put;
    use crate::style::Role;

    fn canvas(width: u16, lines: &[(Role, &str)]) -> Buffer {
        let mut canvas = Buffer::empty(Rect::new(0, 0, width, 2));
        lines.iter().enumerate().for_each(|(y, (role, text))| put(&mut canvas, 0, y, *role, text));
        canvas
    }

    #[test]
    fn only_what_differs_is_written() {
        let first = canvas(9, &[(Role::Plain, "p99 4ms"), (Role::Bad, "✗")]);
        let cleared = "\x1b[0m\x1b[2J";
        assert_eq!(
            changes(&Buffer::default(), &first),
            format!("{cleared}\x1b[1;1Hp99\x1b[1;5H4ms\x1b[2;1H\x1b[0m\x1b[1m\x1b[31m✗\x1b[0m")
        );
        let second = canvas(9, &[(Role::Plain, "p99 5ms"), (Role::Bad, "✗")]);
        assert_eq!(changes(&first, &second), "\x1b[1;5H5");
        assert_eq!(changes(&second, &second), "");
        // The terminal has become narrower.
        assert!(changes(&second, &canvas(5, &[])).starts_with(cleared));
        assert_eq!(changes(&first, &canvas(9, &[(Role::Plain, "検4ms")])), "\x1b[1;1H検4ms  \x1b[2;1H ");
    }
}
