//! Tables of pages: whole without a script, which adds sorting, a search, and opening what stands below a row.

use super::section::Tool;
use crate::csv::Row as CsvRow;
use crate::markup::Html;
use crate::numbers::clean;

/// A column.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    name: String,
    is_words: bool,
    /// The unit of its raw values; the suffix of its name where it is exported (`_ns`).
    unit: &'static str,
}

impl Column {
    /// A column of figures.
    pub(crate) fn figure(name: impl Into<String>) -> Self {
        Self { name: name.into(), is_words: false, unit: "" }
    }

    /// A column of times; what they are sorted by is in nanoseconds.
    pub(crate) fn time(name: impl Into<String>) -> Self {
        Self { unit: "_ns", ..Self::figure(name) }
    }

    /// A column of words, or of drawings.
    pub(crate) fn words(name: impl Into<String>) -> Self {
        Self { is_words: true, ..Self::figure(name) }
    }
}

/// A cell: what it shows, what it is sorted by, how it looks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    text: String,
    /// In smaller letters below it.
    note: String,
    class: &'static str,
    sort: Option<f64>,
    /// What is said of it to who points at it.
    title: String,
    /// Where it leads.
    href: Option<String>,
    drawing: Option<Html>,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A cell sorted by `value`.
    pub(crate) fn sorted(text: impl Into<String>, value: f64) -> Self {
        Self { sort: Some(value), ..Self::new(text) }
    }

    /// A count.
    pub(crate) fn count(n: u64) -> Self {
        Self::sorted(crate::numbers::count(n), n as f64)
    }

    /// A count of what should not be: marked where there is any.
    pub(crate) fn wrong(n: u64) -> Self {
        Self::count(n).classed(if n > 0 { "bad" } else { "" })
    }

    /// A place without a value: it is sorted below all others.
    pub(crate) fn none() -> Self {
        Self::sorted("–", -1.0)
    }

    pub(crate) fn drawn(drawing: Html) -> Self {
        Self { drawing: Some(drawing), ..Self::default() }
    }

    pub(crate) fn classed(self, class: &'static str) -> Self {
        Self { class, ..self }
    }

    pub(crate) fn noted(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }

    pub(crate) fn titled(self, title: impl Into<String>) -> Self {
        Self { title: title.into(), ..self }
    }

    pub(crate) fn leading_to(self, href: Option<String>) -> Self {
        Self { href, ..self }
    }

    fn write(&self, html: &mut Html) {
        match &self.href {
            Some(href) => {
                html.raw("<a href=\"").text(href).raw("\">").text(&clean(&self.text)).raw("</a>");
            }
            None => {
                html.text(&clean(&self.text));
            }
        }
        if let Some(drawing) = &self.drawing {
            html.html(drawing);
        }
        if !self.note.is_empty() {
            html.raw("<small>").text(&clean(&self.note)).raw("</small>");
        }
    }
}

/// A row: its cells, what it is called in links to it, and what stands below it when it is opened.
#[derive(Debug, Default)]
struct Row {
    id: String,
    cells: Vec<Cell>,
    below: Option<Html>,
    /// Whether it is shown only where all rows are.
    is_minor: bool,
}

/// A table whose first column says what each row is about.
#[derive(Debug)]
pub(crate) struct Table {
    id: &'static str,
    caption: String,
    columns: Vec<Column>,
    rows: Vec<Row>,
    is_sortable: bool,
}

impl Table {
    pub(crate) fn new(id: &'static str, caption: impl Into<String>, columns: Vec<Column>) -> Self {
        Self { id, caption: caption.into(), columns, rows: Vec::new(), is_sortable: false }
    }

    /// A table whose rows a reader may put into another order.
    pub(crate) fn sortable(self) -> Self {
        Self { is_sortable: true, ..self }
    }

    pub(crate) fn push(&mut self, cells: Vec<Cell>) {
        self.rows.push(Row { cells, ..Row::default() });
    }

    /// A row that is folded away until all are asked for, by [`Table::write_choice`].
    pub(crate) fn push_minor(&mut self, cells: Vec<Cell>) {
        self.rows.push(Row { cells, is_minor: true, ..Row::default() });
    }

    /// Writes the choice between the main rows and all of them.
    pub(crate) fn write_choice(&self, html: &mut Html) {
        html.raw("<p class=\"choice\"><label><input type=\"checkbox\" class=\"all-rows\" id=\"")
            .raw(self.id)
            .raw("-all\"> all ");
        html.text(&self.rows.len().to_string()).raw(" rows</label></p>");
    }

    /// A row called `id`, with what stands below it.
    pub(crate) fn push_opening(&mut self, id: String, cells: Vec<Cell>, below: Option<Html>) {
        self.rows.push(Row { id, cells, below, is_minor: false });
    }

    /// Whether a phone is too narrow for it, and shows each row as lines of named figures. Of many rows that would make a long page.
    fn is_wide(&self) -> bool {
        self.columns.len() > 5 && self.rows.len() <= 40
    }

    /// Writes it; it scrolls sideways where it is wider than the page.
    pub(crate) fn write(&self, html: &mut Html) {
        html.raw("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"")
            .raw(self.id)
            .raw(": ")
            .text(&self.caption);
        html.raw("\"><table id=\"").raw(self.id).raw("-table\"");
        html.raw(if self.is_sortable { " data-sortable" } else { "" });
        html.raw(if self.is_wide() { " class=\"wide\"" } else { "" });
        html.raw("><caption>").text(&self.caption).raw("</caption><thead><tr>");
        let kinds: Vec<_> = (0..self.columns.len()).map(|at| self.kind(at)).collect();
        for (column, kind) in self.columns.iter().zip(&kinds) {
            html.raw("<th scope=\"col\" class=\"").raw(kind).raw("\">").text(&column.name).raw("</th>");
        }
        html.raw("</tr></thead><tbody>");
        for row in &self.rows {
            self.write_row(html, row, &kinds);
        }
        html.raw("</tbody></table></div>");
    }

    fn kind(&self, at: usize) -> &'static str {
        if self.is_drawn(at) {
            "words drawn"
        } else if at == 0 || self.columns.get(at).is_some_and(|column| column.is_words) {
            "words"
        } else {
            "figure"
        }
    }

    /// Whether there are drawings in the column at this place.
    fn is_drawn(&self, at: usize) -> bool {
        self.rows.iter().any(|row| row.cells.get(at).is_some_and(|cell| cell.drawing.is_some()))
    }

    fn write_row(&self, html: &mut Html, row: &Row, kinds: &[&'static str]) {
        html.raw("<tr");
        if !row.id.is_empty() {
            html.raw(" id=\"").text(&row.id).raw("\"");
        }
        html.raw(if row.is_minor { " class=\"minor\">" } else { ">" });
        for (at, cell) in row.cells.iter().enumerate() {
            html.raw(if at == 0 { "<th scope=\"row\" class=\"" } else { "<td class=\"" })
                .raw(kinds.get(at).copied().unwrap_or("figure"));
            if !cell.class.is_empty() {
                html.raw(" ").raw(cell.class);
            }
            html.raw("\"");
            if let Some(column) = self.columns.get(at).filter(|_| at > 0 && self.is_wide()) {
                html.raw(" data-name=\"").text(&column.name).raw("\"");
            }
            if let Some(sort) = cell.sort {
                html.raw(" data-sort=\"").text(&sort.to_string()).raw("\"");
            }
            if !cell.title.is_empty() {
                html.raw(" title=\"").text(&cell.title).raw("\"");
            }
            html.raw(">");
            cell.write(html);
            html.raw(if at == 0 { "</th>" } else { "</td>" });
        }
        html.raw("</tr>");
        if let Some(below) = &row.below {
            html.raw("<tr class=\"below\"><td colspan=\"").text(&self.columns.len().to_string());
            html.raw("\"><div class=\"drill\">").html(below).raw("</div></td></tr>");
        }
    }

    /// The table as a CSV file (RFC 4180): the sort keys of cells that have some, and the texts of the others.
    pub(crate) fn csv(&self) -> Tool {
        let kept: Vec<usize> = (0..self.columns.len()).filter(|at| !self.is_drawn(*at)).collect();
        let mut head = CsvRow::default();
        for column in kept.iter().filter_map(|at| self.columns.get(*at)) {
            head.put(format_args!("{}{}", column.name, column.unit));
        }
        let mut text = head.line();
        for row in &self.rows {
            let mut line = CsvRow::default();
            for cell in kept.iter().map(|at| row.cells.get(*at)) {
                match cell.map(|cell| (cell.sort, cell)) {
                    Some((Some(value), cell)) if value >= 0.0 || cell.text != "–" => line.put(value),
                    Some((None, cell)) => line.put(clean(&cell.text)),
                    _ => line.put(""),
                }
            }
            text.push_str(&line.line());
        }
        Tool::csv(self.id, &text)
    }
}
