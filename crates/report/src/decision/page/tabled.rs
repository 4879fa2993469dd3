//! Tables of the views as text, on a page.

use super::super::table::Table as TextTable;
use crate::page::{Cell, Column, Section, Table};
use crate::style::Role;

/// The columns that hold words.
const WORDS: [&str; 4] = ["verdict", "not met because", "differs", "95%"];

/// `table` as a section of its own, whose first cells link to `hrefs`.
pub(super) fn tabled(
    id: &'static str,
    title: &str,
    caption: &str,
    table: &TextTable,
    hrefs: &[Option<String>],
) -> Section {
    let (head, rows) = table.parts();
    let column = |(at, name): (usize, &&'static str)| match *name {
        "" if at == 0 => Column::words("value"),
        "" => Column::words("note"),
        name if at == 0 || WORDS.contains(&name) => Column::words(name),
        name => Column::figure(name),
    };
    let mut shown = Table::new(id, caption, head.iter().enumerate().map(column).collect());
    for (nth, row) in rows.iter().enumerate() {
        let cells = row.iter().enumerate().map(|(at, cell)| {
            let href = hrefs.get(nth).cloned().flatten().filter(|_| at == 0);
            Cell::new(cell.text.replace("**", "")).classed(class(cell.role)).leading_to(href)
        });
        shown.push(cells.collect());
    }
    let mut section = Section::new(id, title);
    section.tools.push(shown.csv());
    shown.write(&mut section.body);
    section
}

/// How a role looks on a page.
pub(super) const fn class(role: Role) -> &'static str {
    match role {
        Role::Plain | Role::Chart => "",
        Role::Strong => "strong",
        Role::Faint => "faint",
        Role::Good => "good",
        Role::Warning => "warning",
        Role::Bad => "bad",
    }
}
