//! Kept runs by their names, and their entries in the tables.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use brunt_decide::kept::{Digest, Entry, Label};
use rusqlite::types::Type;
use rusqlite::{Connection, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A run as a user names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunSelector {
    /// The newest.
    Last,
    /// The run with this number.
    Number(i64),
    /// The newest with this name.
    Name(String),
}

impl FromStr for RunSelector {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.parse() {
            Ok(number) => Self::Number(number),
            Err(_) if text == "last" => Self::Last,
            Err(_) => Self::Name(text.to_owned()),
        })
    }
}

impl fmt::Display for RunSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Last => f.write_str("at all"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Name(name) => write!(f, "'{name}'"),
        }
    }
}

/// The columns of an entry.
pub(super) const COLUMNS: &str =
    "number, name, started_unix_ms, url, script, headline, tone, verdict, judgement, measured_ns, due,
     answered_per_s, error_ratio, p50_ns, p99_ns, at_least, thresholds, thresholds_failed, content_bytes, kind, part_of";

/// The name of a value in JSON.
fn name_of(value: impl Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}

/// The value that a column names; `None` where it is empty.
fn word<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<T>> {
    let name: Option<String> = row.get(column)?;
    let read = |name: String| T::deserialize(serde_json::Value::String(name));
    name.map(read).transpose().map_err(|_| unknown(column))
}

/// The error of a column with a word that is not known.
fn unknown(column: &str) -> rusqlite::Error {
    rusqlite::Error::InvalidColumnType(0, column.to_owned(), Type::Text)
}

/// The entry in a row of [`COLUMNS`], without its tags.
pub(super) fn of_row(row: &Row<'_>) -> rusqlite::Result<Entry> {
    Ok(Entry {
        number: row.get("number")?,
        kind: word(row, "kind")?.ok_or_else(|| unknown("kind"))?,
        part_of: row.get("part_of")?,
        label: Label { name: row.get("name")?, tags: Vec::new() },
        started_unix_ms: row.get("started_unix_ms")?,
        url: row.get("url")?,
        script: row.get("script")?,
        headline: row.get("headline")?,
        tone: word(row, "tone")?,
        verdict: row.get("verdict")?,
        judgement: word(row, "judgement")?,
        measured_ns: row.get("measured_ns")?,
        due: row.get("due")?,
        answered_per_s: row.get("answered_per_s")?,
        error_rate: row.get("error_ratio")?,
        p50_ns: row.get("p50_ns")?,
        p99_ns: row.get("p99_ns")?,
        at_least: row.get("at_least")?,
        thresholds: row.get("thresholds")?,
        thresholds_failed: row.get("thresholds_failed")?,
        content_bytes: row.get("content_bytes")?,
    })
}

/// Inserts a run. Returns its number.
pub(super) fn insert(connection: &Connection, entry: &Entry, digest: &Digest, content: &[u8]) -> rusqlite::Result<i64> {
    let sparkline = serde_json::to_string(&digest.sparkline).ok();
    connection.execute(
        "INSERT INTO runs (name, started_unix_ms, brunt_version, url, verdict, measured_ns, due, answered_per_s,
             error_ratio, p50_ns, p99_ns, at_least, thresholds, thresholds_failed, content_bytes, content, kind, script,
             sparkline, headline, tone, judgement)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)",
        params![
            entry.label.name,
            entry.started_unix_ms,
            env!("CARGO_PKG_VERSION"),
            entry.url,
            entry.verdict,
            entry.measured_ns,
            entry.due,
            entry.answered_per_s,
            entry.error_rate,
            entry.p50_ns,
            entry.p99_ns,
            entry.at_least,
            entry.thresholds,
            entry.thresholds_failed,
            content.len() as u64,
            content,
            entry.kind.name(),
            entry.script,
            sparkline,
            entry.headline,
            entry.tone.map(name_of),
            entry.judgement.map(name_of),
        ],
    )?;
    let number = connection.last_insert_rowid();
    for (key, value) in &entry.label.tags {
        connection.execute("INSERT INTO tags (run, key, value) VALUES (?1, ?2, ?3)", params![number, key, value])?;
    }
    for figure in &digest.figures {
        connection.execute(
            "INSERT INTO figures (run, figure, value, at_least) VALUES (?1, ?2, ?3, ?4)",
            params![number, figure.name, figure.value, figure.at_least],
        )?;
    }
    for (place, limit) in (0_i64..).zip(&digest.limits) {
        connection.execute(
            "INSERT INTO limits (run, place, threshold, figure, value, got, held) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![number, place, limit.threshold, limit.figure, limit.limit, limit.got, limit.held],
        )?;
    }
    Ok(number)
}

/// Every run, the newest first.
pub(super) fn all(connection: &Connection) -> rusqlite::Result<Vec<Entry>> {
    let mut runs = connection.prepare(&format!("SELECT {COLUMNS} FROM runs ORDER BY number DESC"))?;
    let mut tags = connection.prepare("SELECT key, value FROM tags WHERE run = ?1 ORDER BY key")?;
    let entries = runs.query_map([], of_row)?;
    entries
        .map(|entry| {
            let mut entry = entry?;
            let of_run = tags.query_map([entry.number], |row| Ok((row.get(0)?, row.get(1)?)))?;
            entry.label.tags = of_run.collect::<rusqlite::Result<_>>()?;
            Ok(entry)
        })
        .collect()
}

/// Deletes the oldest runs, so that at most `most_runs` are left and these take at most `most_bytes`. Returns how many
/// it deleted.
pub(super) fn bound(connection: &Connection, most_runs: u64, most_bytes: u64) -> rusqlite::Result<usize> {
    let as_integer = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    connection.execute(
        "DELETE FROM runs WHERE number IN (
             SELECT number FROM (
                 SELECT number, row_number() OVER newest AS place, sum(content_bytes) OVER newest AS bytes
                 FROM runs WINDOW newest AS (ORDER BY number DESC)
             ) WHERE place > ?1 OR bytes > ?2
         )",
        params![as_integer(most_runs), as_integer(most_bytes)],
    )
}
