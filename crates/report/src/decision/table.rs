//! Tables: aligned for people, piped for Markdown.

use crate::columns;
use crate::style::Paint;

/// A cell with its colour.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub text: String,
    pub role: crate::style::Role,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), role: crate::style::Role::Plain }
    }
}

impl Cell {
    pub fn as_(self, role: crate::style::Role) -> Self {
        Self { role, ..self }
    }
}

/// Rows under a header.
#[derive(Debug, Default)]
pub(crate) struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub fn new(header: impl IntoIterator<Item = &'static str>) -> Self {
        Self { header: header.into_iter().collect(), rows: Vec::new() }
    }

    pub fn push(&mut self, row: impl IntoIterator<Item = Cell>) {
        self.rows.push(row.into_iter().collect());
    }

    /// Adds a column on the right, with a cell for each row.
    pub fn add_column(&mut self, name: &'static str, cells: impl IntoIterator<Item = Cell>) {
        self.header.push(name);
        for (row, cell) in self.rows.iter_mut().zip(cells) {
            row.push(cell);
        }
    }

    /// Its header, and its rows.
    pub fn parts(&self) -> (&[&'static str], &[Vec<Cell>]) {
        (&self.header, &self.rows)
    }

    /// As text: columns are aligned to the right, except the last, which may hold text and is not padded.
    pub fn text(&self, paint: Paint) -> Vec<String> {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| columns::width(&cell.text));
            let header = self.header.get(column).map_or(0, |name| columns::width(name));
            cells.max().unwrap_or(0).max(header)
        };
        let widths: Vec<_> = (0..self.header.len()).map(width).collect();
        let last = self.header.len().saturating_sub(1);
        let line = |cells: &mut dyn Iterator<Item = (String, crate::style::Role)>| {
            let mut line = String::new();
            for (at, ((text, role), &width)) in cells.zip(&widths).enumerate() {
                let padded = if at == last { text } else { columns::padded_left(&text, width) };
                line.push_str("  ");
                line.push_str(&if padded.trim().is_empty() { padded } else { paint.as_(role, padded) });
            }
            line.trim_end().to_owned()
        };
        let header = line(&mut self.header.iter().map(|name| ((*name).to_owned(), crate::style::Role::Faint)));
        let rows = self.rows.iter().map(|row| line(&mut row.iter().map(|cell| (cell.text.clone(), cell.role))));
        std::iter::once(header).chain(rows).collect()
    }

    /// As Markdown (GFM, section 4.10).
    pub fn markdown(&self) -> String {
        let line = |cells: &mut dyn Iterator<Item = String>| {
            let cells: Vec<_> = cells.map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let mut text = line(&mut self.header.iter().map(|name| (*name).to_owned()));
        let last = self.header.len().saturating_sub(1);
        let rule = (0..self.header.len()).map(|at| if at == last { "---" } else { "---:" }.to_owned());
        text += &line(&mut rule.collect::<Vec<_>>().into_iter());
        for row in &self.rows {
            text += &line(&mut row.iter().map(|cell| cell.text.clone()));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_aligned_and_text_is_not_padded() {
        let mut table = Table::new(["rate", "p99", "why"]);
        table.push(["5".into(), "1.00ms".into(), "".into()]);
        table.push(["1,000".into(), "2.00ms".into(), "a|b".into()]);
        assert_eq!(table.text(Paint(false)), ["   rate     p99  why", "      5  1.00ms", "  1,000  2.00ms  a|b"]);
        assert_eq!(
            table.markdown(),
            "| rate | p99 | why |\n| ---: | ---: | --- |\n| 5 | 1.00ms |  |\n| 1,000 | 2.00ms | a\\|b |\n"
        );
    }
}
