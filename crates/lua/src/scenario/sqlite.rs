//! Rows of a query on an `SQLite` file: read once, while the script is loaded.

use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Map, Value};

/// The largest whole number that a number of Lua holds exactly.
const EXACT: u64 = 1 << 53;
/// The most bytes of a query's rows as JSON.
const MOST_BYTES: usize = 1 << 30;

/// The rows of `query` on the file at `path`, called `name` in the script: JSON, one on each line.
///
/// # Errors
/// The problem with the file, the query or a value.
pub(super) fn rows(path: &Path, name: &str, query: &str) -> Result<Vec<u8>, String> {
    let wrong = |error: rusqlite::Error| format!("{name}: {error}");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(wrong)?;
    let mut statement = connection.prepare(query).map_err(wrong)?;
    let columns: Vec<_> = statement.column_names().into_iter().map(str::to_owned).collect();
    if columns.is_empty() || !statement.readonly() {
        return Err(format!("{name}: the query must only read, and give columns: SELECT …"));
    }
    let mut found = statement.query([]).map_err(wrong)?;
    let mut text = Vec::new();
    while let Some(row) = found.next().map_err(wrong)? {
        let mut fields = Map::new();
        for (at, column) in columns.iter().enumerate() {
            let value = json(row.get_ref(at).map_err(wrong)?);
            let value = value.map_err(|problem| format!("{name}: the column {column} {problem}"))?;
            fields.insert(column.clone(), value);
        }
        serde_json::to_writer(&mut text, &fields).map_err(|e| format!("{name}: {e}"))?;
        text.push(b'\n');
        if text.len() > MOST_BYTES {
            return Err(format!("{name}: the query's rows have more than 1 GiB: select fewer columns or rows"));
        }
    }
    Ok(text)
}

fn json(value: ValueRef<'_>) -> Result<Value, &'static str> {
    match value {
        ValueRef::Null => Ok(Value::Null),
        ValueRef::Integer(number) if number.unsigned_abs() <= EXACT => Ok(number.into()),
        // A number too large for Lua becomes a text, so that no digit is lost.
        ValueRef::Integer(number) => Ok(number.to_string().into()),
        ValueRef::Real(number) => Ok(number.into()),
        ValueRef::Text(text) => {
            let text = std::str::from_utf8(text).map_err(|_| "has a text that is not UTF-8: select hex(…) of it")?;
            Ok(text.into())
        }
        ValueRef::Blob(_) => Err("has a BLOB: select hex(…) of it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_gives_rows_and_changes_nothing() {
        let path = std::env::temp_dir().join(format!("brunt-sqlite-{}.db", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let made = Connection::open(&path).unwrap();
        made.execute_batch(
            "CREATE TABLE users (id INTEGER, name TEXT, rate REAL, picture BLOB);
             INSERT INTO users VALUES (1, 'ann', 1.5, NULL), (9007199254740993, 'bo\"b', 2, NULL);",
        )
        .unwrap();
        drop(made);
        let ask = |query: &str| rows(&path, "u.db", query).map(|text| String::from_utf8(text).unwrap());
        assert_eq!(
            ask("SELECT id, name, rate FROM users ORDER BY id").unwrap(),
            "{\"id\":1,\"name\":\"ann\",\"rate\":1.5}\n{\"id\":\"9007199254740993\",\"name\":\"bo\\\"b\",\"rate\":2.0}\n"
        );
        assert_eq!(ask("SELECT picture AS p FROM users LIMIT 1").unwrap(), "{\"p\":null}\n");
        let error = |query: &str| ask(query).unwrap_err();
        assert!(error("SELECT nmae FROM users").contains("u.db: no such column: nmae"));
        assert_eq!(error("SELECT x'00' AS b"), "u.db: the column b has a BLOB: select hex(…) of it");
        for writing in ["DELETE FROM users", "INSERT INTO users (id) VALUES (3) RETURNING id", "ATTACH '/tmp/x' AS x"] {
            assert!(error(writing).contains("must only read"), "{writing}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(error("SELECT 1").contains("unable to open database file"));
        assert!(!path.exists());
    }
}
