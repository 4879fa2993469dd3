//! What is known of a kept run without reading it.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use brunt_model::plan::Plan;
use brunt_model::summary::Summary;
use rusqlite::{Connection, Row, params};
use serde::{Serialize, Serializer};

use super::schema;
use crate::decision::{self, Decided};

/// The kind of a single run.
pub(super) const RUN: &str = "run";

/// What a user calls a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Label {
    /// Its name; of several with one name the newest is meant.
    pub name: Option<String>,
    /// Keys and values.
    #[serde(serialize_with = "as_object")]
    pub tags: Vec<(String, String)>,
}

fn as_object<S: Serializer>(tags: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(tags.iter().map(|(key, value)| (key, value)))
}

/// A run as a user names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The newest.
    Last,
    /// The one with this number.
    Number(i64),
    /// The newest with this name.
    Name(String),
}

impl FromStr for Which {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.parse() {
            Ok(number) => Self::Number(number),
            Err(_) if text == "last" => Self::Last,
            Err(_) => Self::Name(text.to_owned()),
        })
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Last => f.write_str("at all"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Name(name) => write!(f, "'{name}'"),
        }
    }
}

/// A kept run in a line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// Its number.
    pub number: i64,
    /// `run`; or `sweep`, `capacity` or `comparison` of what was decided over several.
    pub kind: String,
    /// The number of the decision that rests on it, if one does.
    pub part_of: Option<i64>,
    /// What its user calls it.
    #[serde(flatten)]
    pub label: Label,
    /// When it began, in milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// Its target.
    pub url: String,
    /// The script that it ran, if it ran one, by its file's name.
    pub script: Option<String>,
    /// Whether its figures can be believed.
    pub verdict: String,
    /// How long its measured part took, in nanoseconds.
    pub measured_ns: u64,
    /// Calls that were due.
    pub due: u64,
    /// Calls answered a second.
    pub answered_per_s: f64,
    /// Calls that were not ok over those that were due.
    pub error_ratio: f64,
    /// Half of the calls' response times were no longer, in nanoseconds.
    pub p50_ns: Option<u64>,
    /// 99 % of the calls' response times were no longer, in nanoseconds.
    pub p99_ns: Option<u64>,
    /// Whether the p99 is a lower bound.
    pub at_least: bool,
    /// How many thresholds there were.
    pub thresholds: u64,
    /// How many of them failed.
    pub thresholds_failed: u64,
    /// The room that it takes, in bytes.
    pub content_bytes: u64,
}

impl Entry {
    /// The line of a run that is about to be kept; it has no number yet.
    pub(super) fn of(summary: &Summary, label: &Label) -> Self {
        let quantiles = summary.times.response.as_ref().map(|times| times.quantiles);
        let [p50, .., p99, _, _] = quantiles.map_or([None; 7], |all| all.map(Some));
        Self {
            number: 0,
            kind: RUN.to_owned(),
            part_of: None,
            label: label.clone(),
            started_unix_ms: summary.run.started_unix_ms,
            url: summary.run.plan.target.url(),
            script: summary.run.plan.script_name().map(str::to_owned),
            verdict: summary.verdict.sentence(),
            measured_ns: summary.run.measured_ns,
            due: summary.total.due,
            answered_per_s: summary.rates.answered_per_s,
            error_ratio: summary.error_rate,
            p50_ns: p50.map(|value| value.value),
            p99_ns: p99.map(|value| value.value),
            at_least: p99.is_some_and(|value| value.at_least),
            thresholds: summary.thresholds.len() as u64,
            thresholds_failed: summary.thresholds.iter().filter(|threshold| !threshold.held).count() as u64,
            content_bytes: 0,
        }
    }

    /// The line of a decision that is about to be kept.
    pub(super) fn of_decision(decided: &Decided, label: &Label) -> Self {
        let decision = decided.decision();
        let runs: Vec<_> = decision::evidence(decision).into_iter().map(|(_, run)| run).collect();
        let (due, failed) = runs.iter().fold((0, 0), |(due, failed), run| (due + run.due, failed + run.failed));
        let of_plan = |plan: &Plan| (plan.target.url(), plan.script_name().map(str::to_owned));
        let (kind, (url, script)) = match decided {
            Decided::Sweep(plan, _) => ("sweep", of_plan(plan)),
            Decided::Capacity(plan, _) => ("capacity", of_plan(plan)),
            Decided::Comparison(compared) => ("comparison", (format!("{} and {}", compared.a, compared.b), None)),
        };
        Self {
            number: 0,
            kind: kind.to_owned(),
            part_of: None,
            label: label.clone(),
            started_unix_ms: runs.iter().map(|run| run.started_unix_ms).min().unwrap_or(0),
            url,
            script,
            verdict: decision::conclusion(decision),
            measured_ns: runs.iter().map(|run| run.measured_ns).sum(),
            due,
            answered_per_s: 0.0,
            error_ratio: if due > 0 { failed as f64 / due as f64 } else { 0.0 },
            p50_ns: None,
            p99_ns: None,
            at_least: false,
            thresholds: 0,
            thresholds_failed: 0,
            content_bytes: 0,
        }
    }

    fn of_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            number: row.get("number")?,
            kind: row.get("kind")?,
            part_of: row.get("part_of")?,
            label: Label { name: row.get("name")?, tags: Vec::new() },
            started_unix_ms: row.get("started_unix_ms")?,
            url: row.get("url")?,
            script: row.get("script")?,
            verdict: row.get("verdict")?,
            measured_ns: row.get("measured_ns")?,
            due: row.get("due")?,
            answered_per_s: row.get("answered_per_s")?,
            error_ratio: row.get("error_ratio")?,
            p50_ns: row.get("p50_ns")?,
            p99_ns: row.get("p99_ns")?,
            at_least: row.get("at_least")?,
            thresholds: row.get("thresholds")?,
            thresholds_failed: row.get("thresholds_failed")?,
            content_bytes: row.get("content_bytes")?,
        })
    }
}

/// Puts a run in; its number.
pub(super) fn insert(connection: &Connection, entry: &Entry, content: &[u8]) -> rusqlite::Result<i64> {
    connection.execute(
        "INSERT INTO runs (name, started_unix_ms, brunt_version, url, verdict, measured_ns, due, answered_per_s,
             error_ratio, p50_ns, p99_ns, at_least, thresholds, thresholds_failed, content_bytes, content, kind, script)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)",
        params![
            entry.label.name,
            entry.started_unix_ms,
            env!("CARGO_PKG_VERSION"),
            entry.url,
            entry.verdict,
            entry.measured_ns,
            entry.due,
            entry.answered_per_s,
            entry.error_ratio,
            entry.p50_ns,
            entry.p99_ns,
            entry.at_least,
            entry.thresholds,
            entry.thresholds_failed,
            content.len() as u64,
            content,
            entry.kind,
            entry.script,
        ],
    )?;
    let number = connection.last_insert_rowid();
    for (key, value) in &entry.label.tags {
        connection.execute("INSERT INTO tags (run, key, value) VALUES (?1, ?2, ?3)", params![number, key, value])?;
    }
    Ok(number)
}

/// Every run, the newest first.
pub(super) fn all(connection: &Connection) -> rusqlite::Result<Vec<Entry>> {
    let mut runs = connection.prepare(&format!(
        "SELECT number, name, started_unix_ms, url, script, verdict, measured_ns, due, answered_per_s, error_ratio,
             p50_ns, p99_ns, at_least, thresholds, thresholds_failed, content_bytes, kind, part_of
         FROM {} ORDER BY number DESC",
        schema::runs(connection)?
    ))?;
    let mut tags = connection.prepare("SELECT key, value FROM tags WHERE run = ?1 ORDER BY key")?;
    let entries = runs.query_map([], Entry::of_row)?;
    entries
        .map(|entry| {
            let mut entry = entry?;
            let of_run = tags.query_map([entry.number], |row| Ok((row.get(0)?, row.get(1)?)))?;
            entry.label.tags = of_run.collect::<rusqlite::Result<_>>()?;
            Ok(entry)
        })
        .collect()
}

/// Forgets the oldest runs, so that at most `most_runs` are left and these take at most `most_bytes`. How many went.
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
