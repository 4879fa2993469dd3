//! Tables of comma-separated values (RFC 4180), without line breaks in cells.

use serde_json::{Map, Value};

use crate::entry::Skip;

/// Whether a line is the head of a table of requests.
pub(super) fn is_header(line: &str) -> bool {
    let Some(cells) = cells(line.trim_start_matches('\u{feff}').trim_end()) else { return false };
    ["time", "url"].iter().all(|name| cells.iter().any(|cell| cell.trim() == *name))
}

/// The cells of a line; `None` where a quote is not closed.
pub(super) fn cells(line: &str) -> Option<Vec<String>> {
    let mut cells = Vec::new();
    let mut rest = line;
    loop {
        let (cell, behind) = if let Some(quoted) = rest.strip_prefix('"') {
            quoted_cell(quoted)?
        } else {
            let (cell, behind) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
            (cell.to_owned(), behind)
        };
        cells.push(cell);
        if behind.is_empty() {
            return Some(cells);
        }
        rest = behind.strip_prefix(',')?;
    }
}

/// A cell whose opening quote was read, and the text behind its closing quote.
fn quoted_cell(text: &str) -> Option<(String, &str)> {
    let mut cell = String::new();
    let mut rest = text;
    loop {
        let (part, behind) = rest.split_once('"')?;
        cell.push_str(part);
        match behind.strip_prefix('"') {
            Some(behind) => {
                cell.push('"');
                rest = behind;
            }
            None => return Some((cell, behind)),
        }
    }
}

/// The cells of a line by the names of their columns, without the empty ones.
pub(super) fn row(line: &str, columns: &[String]) -> Result<Map<String, Value>, Skip> {
    let cells = cells(line).ok_or(Skip::Incomplete)?;
    if cells.len() != columns.len() {
        return Err(if cells.len() < columns.len() { Skip::Incomplete } else { Skip::Malformed });
    }
    let named = columns.iter().zip(cells).filter(|(_, cell)| !cell.is_empty());
    Ok(named.map(|(name, cell)| (name.trim().to_owned(), Value::String(cell))).collect())
}
