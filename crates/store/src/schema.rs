//! The tables, and the meaning of `SQLite`'s errors for users of the file.

use std::path::Path;

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use super::StoreError;

/// `brnt`: what `SQLite`'s header says the file is for (<https://www.sqlite.org/fileformat.html#application_id>).
pub(super) const APPLICATION: i64 = 0x6272_6e74;
/// The format that this brunt writes and reads; 1 to 3 were those of drafts before the first release.
pub const FORMAT: i64 = 4;

/// Numbers are never used twice, so that a number that somebody noted stays with its run. Other programs read figures and
/// thresholds, which have tables of their own, and the views in units that people read: `docs/reference.md` describes them.
const TABLES: &str = "
CREATE TABLE runs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT,
    started_unix_ms INTEGER NOT NULL,
    brunt_version TEXT NOT NULL,
    url TEXT NOT NULL,
    verdict TEXT NOT NULL,
    measured_ns INTEGER NOT NULL,
    due INTEGER NOT NULL,
    answered_per_s REAL NOT NULL,
    error_ratio REAL NOT NULL,
    p50_ns INTEGER,
    p99_ns INTEGER,
    at_least INTEGER NOT NULL,
    thresholds INTEGER NOT NULL,
    thresholds_failed INTEGER NOT NULL,
    content_bytes INTEGER NOT NULL,
    content BLOB NOT NULL,
    kind TEXT NOT NULL DEFAULT 'run',
    part_of INTEGER,
    script TEXT,
    sparkline TEXT,
    headline TEXT,
    tone TEXT,
    judgement TEXT
) STRICT;
CREATE INDEX runs_by_name ON runs (name, number);
CREATE TABLE tags (
    run INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (run, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE figures (
    run INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
    figure TEXT NOT NULL,
    value REAL NOT NULL,
    at_least INTEGER NOT NULL,
    PRIMARY KEY (run, figure)
) STRICT, WITHOUT ROWID;
CREATE TABLE limits (
    run INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
    place INTEGER NOT NULL,
    threshold TEXT NOT NULL,
    figure TEXT NOT NULL,
    value REAL NOT NULL,
    got TEXT NOT NULL,
    held INTEGER NOT NULL,
    PRIMARY KEY (run, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX tags_by_value ON tags (key, value, run);
CREATE INDEX runs_by_decision ON runs (part_of, number) WHERE part_of IS NOT NULL;
CREATE INDEX figures_by_name ON figures (figure, run);
CREATE VIEW results AS
    SELECT number AS run, name, kind, part_of, datetime(started_unix_ms / 1000, 'unixepoch') AS begun_utc, url, script,
           verdict, brunt_version, measured_ns / 1e9 AS seconds, due, answered_per_s, error_ratio, p50_ns / 1e6 AS p50_ms,
           p99_ns / 1e6 AS p99_ms, at_least, thresholds, thresholds_failed
    FROM runs;
CREATE VIEW trend AS
    SELECT figures.run, datetime(runs.started_unix_ms / 1000, 'unixepoch') AS begun_utc, runs.name, runs.url,
           runs.brunt_version, figures.figure, figures.value, figures.at_least,
           (SELECT min(limits.value) FROM limits
            WHERE limits.run = figures.run AND limits.figure = figures.figure) AS threshold
    FROM figures JOIN runs ON runs.number = figures.run;
";

/// The program that the file belongs to, and the file's format; both 0 in an empty file.
pub(super) fn identity(connection: &Connection) -> rusqlite::Result<(i64, i64)> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get(0));
    let (application, format) = (pragma("application_id")?, pragma("user_version")?);
    // Another program's database may have no application id.
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(if application == 0 && tables > 0 { (-1, format) } else { (application, format) })
}

/// Makes the tables in an empty file; leaves any other as it is.
pub(super) fn make(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "foreign_keys", true)?;
    if identity(connection)? != (0, 0) {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have made them while this one waited.
    if identity(&transaction)? == (0, 0) {
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", FORMAT)?;
    }
    transaction.commit()
}

/// The meaning of `error` for users of the file.
pub(super) fn explained(error: &rusqlite::Error, path: &Path) -> StoreError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full { path },
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => StoreError::ReadOnly { path },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy { path },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Damaged { path, problem: error.to_string() }
        }
        Some(ErrorCode::CannotOpen) => StoreError::Open { path, problem: error.to_string() },
        _ => StoreError::Other { path, problem: error.to_string() },
    }
}
