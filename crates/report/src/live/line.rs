//! A line of a live view: pieces of text, each with its role.

use ratatui_core::buffer::Buffer;

use crate::columns;
use crate::style::Role;

/// A line of pieces, each with its role.
#[derive(Debug, Default, Clone)]
pub(super) struct Line(Vec<(Role, String)>);

impl Line {
    pub(super) fn new(role: Role, text: impl Into<String>) -> Self {
        Self::default().add(role, text)
    }

    pub(super) fn add(mut self, role: Role, text: impl Into<String>) -> Self {
        self.0.push((role, text.into()));
        self
    }

    /// This line and then `next`.
    pub(super) fn joined(mut self, next: Self) -> Self {
        self.0.extend(next.0);
        self
    }

    /// Pads with spaces up to `column`; with two where the line is that long already.
    pub(super) fn at(self, column: usize) -> Self {
        let missing = column.saturating_sub(self.width());
        let gap = if missing == 0 && self.width() > 0 { 2 } else { missing };
        self.add(Role::Plain, " ".repeat(gap))
    }

    pub(super) fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| columns::width(text)).sum()
    }

    /// Draws the line from column `x` of row `y` on, at most `width` columns of it; a longer one ends in `…`.
    pub(super) fn draw(&self, canvas: &mut Buffer, x: usize, y: usize, width: usize) {
        let is_cut = self.width() > width;
        let mut room = if is_cut { width.saturating_sub(1) } else { width };
        let mut column = x;
        for (role, text) in &self.0 {
            let text = columns::cut(text, room);
            put(canvas, column, y, *role, text);
            (room, column) = (room - columns::width(text), column + columns::width(text));
        }
        if is_cut && width > 0 {
            put(canvas, column, y, Role::Faint, "…");
        }
    }
}

/// Draws `text` from column `x` of row `y` on; parts outside of the canvas are left out.
pub(super) fn put(canvas: &mut Buffer, x: usize, y: usize, role: Role, text: &str) {
    let area = *canvas.area();
    let (Ok(x), Ok(y)) = (u16::try_from(x), u16::try_from(y)) else { return };
    if x < area.width && y < area.height {
        canvas.set_stringn(x, y, text, usize::from(area.width - x), role.style());
    }
}
