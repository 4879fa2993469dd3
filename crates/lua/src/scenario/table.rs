//! Kinds of data files, and the layout of tables.

use brunt_protocol::scenario::{Fields, Value};

/// The kind of a data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Csv,
    Json,
    JsonLines,
    Lines,
}

impl Kind {
    /// Its name in `brunt`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Json => "json",
            Self::JsonLines => "jsonl",
            Self::Lines => "lines",
        }
    }

    /// The kind of this name in `brunt`.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "csv" => Some(Self::Csv),
            "json" => Some(Self::Json),
            "jsonl" => Some(Self::JsonLines),
            "lines" => Some(Self::Lines),
            _ => None,
        }
    }
}

/// The layout of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    /// The names of its columns; empty if they are in its first line.
    pub(super) columns: Vec<String>,
    /// The separator between two cells.
    pub(super) separator: u8,
}

impl Table {
    /// The layout that the options of `brunt.csv` describe.
    ///
    /// # Errors
    /// The wrong option and its possible values.
    pub(super) fn from_options(name: &str, options: &Value<'_>) -> Result<Self, String> {
        let whose = format!("brunt.csv of {name}");
        let fields = Fields::parse(&whose, options, &["columns", "separator", "stream"]).map_err(|e| e.0)?;
        let separator = match fields.text("separator").map_err(|e| e.0)? {
            None => b',',
            Some(text) => match *text.as_bytes() {
                [one] => one,
                _ => return Err(fields.wrong("separator", "one letter such as ;").0),
            },
        };
        let columns = fields.value("columns").entries().iter().filter_map(|(_, c)| c.as_str().map(str::to_owned));
        Ok(Self { columns: columns.collect(), separator })
    }

    /// Takes the names of the columns from the first line.
    ///
    /// # Errors
    /// When two columns have one name: a row could hold one of the two values alone.
    pub(super) fn name_columns(&mut self, name: &str, record: &csv::ByteRecord) -> Result<(), String> {
        let names = record.iter().map(|cell| String::from_utf8_lossy(cell.trim_ascii()).into_owned());
        self.columns = names.collect();
        for (place, column) in self.columns.iter().enumerate() {
            if self.columns.iter().take(place).any(|earlier| earlier == column) {
                return Err(format!(
                    "{name}, line 1: two columns are called '{column}', and a row holds one value by that name: rename one, \
                     or name all columns by columns = {{ … }}"
                ));
            }
        }
        Ok(())
    }
}

/// The error about a row whose number of cells differs from that of the columns.
pub(super) fn wrong_cells(name: &str, place: Option<&csv::Position>, got: usize, expected: usize) -> String {
    let line = place.map_or(0, csv::Position::line);
    format!("{name}, line {line}: it has {got} cells, and there are {expected} columns")
}

/// The error about a broken table, with its line.
pub(super) fn wrong_record(name: &str, error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
            wrong_cells(name, pos.as_ref(), *len as usize, *expected_len as usize)
        }
        _ => format!("{name}: {error}"),
    }
}
