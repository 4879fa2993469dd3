//! A line of the screen: pieces of text, each with its colour.

use crate::columns;
use crate::style::{Paint, Role};

/// What stands between them.
pub(super) const GAP: usize = 4;
/// The width of the names of lines.
pub(super) const NAME: usize = 9;

/// A line of pieces, each with its colour, that can be cut to a width.
#[derive(Debug, Default)]
pub(super) struct Line(Vec<(Role, String)>);

impl Line {
    pub(super) fn named(name: &str) -> Self {
        Self::default().add(Role::Faint, &format!("{name:<NAME$}  "))
    }

    pub(super) fn add(mut self, role: Role, text: &str) -> Self {
        self.0.push((role, text.to_owned()));
        self
    }

    /// This line cut or filled up to `width` columns, and then `right`.
    pub(super) fn beside(self, width: usize, right: Self) -> Self {
        let mut room = width;
        let mut line = Self::default();
        for (role, text) in self.0 {
            let text = columns::cut(&text, room);
            room -= columns::width(text);
            line = line.add(role, text);
        }
        if right.0.iter().all(|(_, text)| text.trim().is_empty()) {
            return line;
        }
        line = line.add(Role::Plain, &" ".repeat(room + GAP));
        line.0.extend(right.0);
        line
    }

    pub(super) fn painted(self, width: usize, paint: Paint) -> String {
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
