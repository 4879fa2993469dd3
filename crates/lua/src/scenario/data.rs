//! Data for users: read once, shared by the workers, given out row by row.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brunt_plan::random::Random;
pub(super) use brunt_plan::rows::Order;
use brunt_plan::share::Portion;
use mlua::{Lua, Value as LuaValue};

use super::stream::Stream;
use super::table::{Kind, Table, wrong_cells, wrong_record};
use super::value;
use brunt_protocol::scenario::Value;

/// Rows of data.
#[derive(Debug)]
pub(super) enum Rows {
    /// Cells of a table with named columns, row by row, as places in the text.
    Cells { columns: Vec<String>, cells: Vec<Range<usize>>, text: Vec<u8> },
    /// Values.
    Values(Vec<serde_json::Value>),
    /// Lines, as places in the text.
    Lines { lines: Vec<Range<usize>>, text: Vec<u8> },
    /// Rows that are read from their file when they are taken.
    Streamed(Arc<Stream>),
    /// A number of rows that each worker's script holds itself.
    Elsewhere(u64),
}

impl Rows {
    /// Reads the file `name` with this content.
    ///
    /// # Errors
    /// The line and what is wrong in it.
    pub(super) fn read(kind: Kind, name: &str, content: &[u8], options: &Value<'_>) -> Result<Self, String> {
        let rows = match kind {
            Kind::Csv => csv(name, content, options)?,
            Kind::Json => {
                let value =
                    serde_json::from_slice(without_mark(content)).map_err(|e| format!("{name} is not JSON: {e}"))?;
                match value {
                    serde_json::Value::Array(values) => Self::Values(values),
                    _ => return Err(format!("{name}: expected an array of rows")),
                }
            }
            Kind::JsonLines => {
                let mut values = Vec::new();
                for (number, range) in lines(content) {
                    let line = content.get(range).unwrap_or(&[]);
                    let value = serde_json::from_slice(if number == 1 { without_mark(line) } else { line });
                    values.push(value.map_err(|e| format!("{name}, line {number} is not JSON: {e}"))?);
                }
                Self::Values(values)
            }
            Kind::Lines => {
                let text = without_mark(content).to_vec();
                Self::Lines { lines: lines(&text).map(|(_, range)| range).collect(), text }
            }
        };
        if rows.len() == 0 {
            return Err(format!("{name}: there is no row in it"));
        }
        Ok(rows)
    }

    /// The number of rows.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Cells { columns, cells, .. } => (cells.len() / columns.len().max(1)) as u64,
            Self::Values(values) => values.len() as u64,
            Self::Lines { lines, .. } => lines.len() as u64,
            Self::Streamed(stream) => stream.rows(),
            Self::Elsewhere(rows) => *rows,
        }
    }

    /// The names of the columns, if there are any, for the error about an unknown column.
    pub(super) fn columns(&self) -> Option<String> {
        match self {
            Self::Cells { columns, .. } => Some(columns.join(", ")),
            Self::Streamed(stream) if stream.kind() == Kind::Csv => Some(stream.table().columns.join(", ")),
            _ => None,
        }
    }

    /// The row with this number from 1, in Lua.
    pub(super) fn to_lua(&self, lua: &Lua, number: u64) -> mlua::Result<LuaValue> {
        let at = number.saturating_sub(1) as usize;
        match self {
            Self::Cells { columns, cells, text } => {
                let row = lua.create_table_with_capacity(0, columns.len())?;
                let cells = cells.get(at * columns.len()..).unwrap_or(&[]);
                for (column, cell) in columns.iter().zip(cells) {
                    row.raw_set(column.as_str(), lua.create_string(text.get(cell.clone()).unwrap_or(&[]))?)?;
                }
                Ok(LuaValue::Table(row))
            }
            Self::Values(values) => {
                let Some(row) = values.get(at) else { return Ok(LuaValue::Nil) };
                let text = serde_json::to_vec(row).map_err(mlua::Error::external)?;
                value::json_to_lua(lua, &text).map_err(mlua::Error::runtime)
            }
            Self::Lines { lines, text } => {
                let line = lines.get(at).and_then(|range| text.get(range.clone())).unwrap_or(&[]);
                Ok(LuaValue::String(lua.create_string(line)?))
            }
            Self::Streamed(stream) => streamed(lua, stream, number.saturating_sub(1)),
            Self::Elsewhere(_) => Ok(LuaValue::Nil),
        }
    }
}

/// The row with this number, from 0, of a file.
fn streamed(lua: &Lua, stream: &Stream, number: u64) -> mlua::Result<LuaValue> {
    match stream.kind() {
        Kind::Csv => {
            let columns = &stream.table().columns;
            let row = lua.create_table_with_capacity(0, columns.len())?;
            let cells = stream.cells(number).map_err(mlua::Error::runtime)?;
            for (column, cell) in columns.iter().zip(cells.iter()) {
                row.raw_set(column.as_str(), lua.create_string(cell)?)?;
            }
            Ok(LuaValue::Table(row))
        }
        Kind::JsonLines => {
            let line = stream.line(number).map_err(mlua::Error::runtime)?;
            value::json_to_lua(lua, &line).map_err(mlua::Error::runtime)
        }
        Kind::Json | Kind::Lines => {
            let line = stream.line(number).map_err(mlua::Error::runtime)?;
            Ok(LuaValue::String(lua.create_string(line)?))
        }
    }
}

/// A text without the byte order mark that some editors write before it.
pub(super) fn without_mark(content: &[u8]) -> &[u8] {
    content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content)
}

/// The lines that are not empty, with their numbers from 1.
fn lines(content: &[u8]) -> impl Iterator<Item = (usize, Range<usize>)> + '_ {
    let mut start = 0;
    content.split(|&byte| byte == b'\n').enumerate().filter_map(move |(number, line)| {
        let range = start..start + line.strip_suffix(b"\r").unwrap_or(line).len();
        start += line.len() + 1;
        (!range.is_empty()).then_some((number + 1, range))
    })
}

/// A table in the format of RFC 4180, with names in its first line unless `columns` gives them.
fn csv(name: &str, content: &[u8], options: &Value<'_>) -> Result<Rows, String> {
    let mut table = Table::from_options(name, options)?;
    let mut reader =
        csv::ReaderBuilder::new().delimiter(table.separator).has_headers(false).from_reader(without_mark(content));
    let (mut cells, mut text) = (Vec::new(), Vec::new());
    for record in reader.byte_records() {
        let record = record.map_err(|e| wrong_record(name, &e))?;
        if table.columns.is_empty() {
            table.name_columns(name, &record)?;
            continue;
        }
        if record.len() != table.columns.len() {
            return Err(wrong_cells(name, record.position(), record.len(), table.columns.len()));
        }
        for cell in &record {
            cells.push(text.len()..text.len() + cell.len());
            text.extend_from_slice(cell);
        }
    }
    Ok(Rows::Cells { columns: table.columns, cells, text })
}

/// Hands rows out to all workers.
#[derive(Debug)]
pub(super) struct Feeder {
    order: Order,
    rows: u64,
    seed: u64,
    /// The workers that get the rows, and the number of rows handed out.
    portion: Portion,
    taken: AtomicU64,
}

impl Feeder {
    /// Hands out `rows` rows in this order, to the workers of this portion.
    pub(super) fn new(order: Order, rows: u64, seed: u64, portion: Portion) -> Self {
        Self { order, rows: rows.max(1), seed, portion, taken: AtomicU64::new(0) }
    }

    /// The number of the next row, from 1; `None` when a queue is empty.
    pub(super) fn next(&self) -> Option<u64> {
        let index = self.portion.number(self.taken.fetch_add(1, Ordering::Relaxed))?;
        Some(self.order.row(self.rows, self.seed, index)? + 1)
    }
}

/// The seed of Lua's random numbers in a worker's script.
pub(super) fn lua_seed(seed: u64, worker: u32) -> f64 {
    (Random::new(seed ^ 0x5ce7, u64::from(worker)).next_u64() >> 12) as f64
}

/// A feeder as the workers share it.
pub(super) type SharedFeeder = Arc<Feeder>;

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(order: Order, rows: u64, count: usize) -> Vec<u64> {
        let feeder = Feeder::new(order, rows, 7, Portion::whole(1));
        std::iter::from_fn(|| feeder.next()).take(count).collect()
    }

    #[test]
    fn rows_are_given_out_in_their_order() {
        assert_eq!(taken(Order::Circular, 3, 5), [1, 2, 3, 1, 2]);
        assert_eq!(taken(Order::Queue, 3, 5), [1, 2, 3]);
        let random = taken(Order::Random, 3, 300);
        assert!((1..=3).all(|row| random.iter().filter(|taken| **taken == row).count() > 60));
        let shuffled = taken(Order::Shuffled, 100, 200);
        assert_eq!(shuffled[..100], shuffled[100..]);
        assert_ne!(shuffled[..100], taken(Order::Circular, 100, 100)[..]);
    }

    fn read(kind: Kind, content: &str, options: &Value<'_>) -> Result<String, String> {
        let rows = Rows::read(kind, "f", content.as_bytes(), options)?;
        let lua = Lua::new();
        value::prepare_arrays(&lua).unwrap();
        let row = rows.to_lua(&lua, rows.len()).unwrap();
        let row = value::lua_to_json(&lua, &row).unwrap();
        Ok(format!("{} {}", rows.len(), String::from_utf8_lossy(&row)))
    }

    #[test]
    fn files_are_rows() {
        let csv = "\u{feff}name, age\r\nann,1\n\"b, \"\"b\"\"\",2\n";
        assert_eq!(read(Kind::Csv, csv, &Value::Nil).unwrap(), "2 {\"age\":\"2\",\"name\":\"b, \\\"b\\\"\"}");
        let named = Value::Table(vec![
            (Value::text("columns"), Value::list([Value::text("x"), Value::text("y")])),
            (Value::text("separator"), Value::text(";")),
        ]);
        assert_eq!(read(Kind::Csv, "1;2\n", &named).unwrap(), "1 {\"x\":\"1\",\"y\":\"2\"}");
        assert_eq!(read(Kind::Json, "[{\"a\":[1]}]", &Value::Nil).unwrap(), "1 {\"a\":[1]}");
        assert_eq!(read(Kind::JsonLines, "1\n\n{\"a\":null}\n", &Value::Nil).unwrap(), "2 {\"a\":null}");
        assert_eq!(read(Kind::Lines, "a\r\n\nb", &Value::Nil).unwrap(), "2 \"b\"");
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_with_its_line() {
        let error = |kind, content| read(kind, content, &Value::Nil).unwrap_err();
        assert_eq!(error(Kind::Csv, "a,b\n1,2\n3\n"), "f, line 3: it has 1 cells, and there are 2 columns");
        assert_eq!(error(Kind::Csv, "a,b\n"), "f: there is no row in it");
        assert!(error(Kind::Json, "{}").contains("expected an array"));
        assert!(error(Kind::JsonLines, "1\nx\n").starts_with("f, line 2 is not JSON"));
        assert_eq!(error(Kind::Lines, "\n"), "f: there is no row in it");
    }
}
