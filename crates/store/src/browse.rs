//! Kept runs a page at a time, filtered, and figures over runs, for people who look through them.
//!
//! Every query is bounded, and none reads a run's content. A row that cannot be read hides no other.

use brunt_decide::kept::{Filter, KeptFigure, Limit, ListedRun, Page, Sparkline, TrendPoint};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::{Store, StoreError, entry};

/// The most distinct values that are suggested for a filter.
const MOST_SUGGESTIONS: u32 = 200;

/// The `WHERE` conditions of `filter`, and their values.
fn conditions_of(filter: &Filter) -> (String, Vec<Value>) {
    let mut conditions = vec!["1".to_owned()];
    let mut values: Vec<Value> = Vec::new();
    let mut add = |condition: &str, given: &[&str]| {
        conditions.push(condition.to_owned());
        values.extend(given.iter().map(|text| Value::from((*text).to_owned())));
    };
    for (key, value) in &filter.tags {
        add("EXISTS (SELECT 1 FROM tags WHERE run = number AND key = ? AND value = ?)", &[key, value]);
    }
    for (column, text) in [("name", &filter.name), ("url", &filter.target), ("script", &filter.script)] {
        if !text.is_empty() {
            add(&format!("instr(lower({column}), lower(?)) > 0"), &[text]);
        }
    }
    if let Some(kind) = filter.kind {
        add("kind = ?", &[kind.name()]);
    }
    if !filter.with_parts {
        add("part_of IS NULL", &[]);
    }
    (conditions.join(" AND "), values)
}

impl Store {
    /// A page of the runs that `filter` selects, the newest first: at most `most`, after the first `skipped`.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn page(&mut self, filter: &Filter, skipped: u64, most: u32) -> Result<Page, StoreError> {
        self.attempt(|connection| page(connection, filter, skipped, most))
    }

    /// The figures that the runs have which `filter` means, by name.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn figures(&mut self, filter: &Filter) -> Result<Vec<String>, StoreError> {
        self.attempt(|connection| {
            let (conditions, values) = conditions_of(filter);
            let query = format!(
                "SELECT DISTINCT figure FROM figures
                 WHERE run IN (SELECT number FROM runs WHERE {conditions}) ORDER BY figure LIMIT {MOST_SUGGESTIONS}"
            );
            texts(connection, &query, values)
        })
    }

    /// One figure over the newest `most` runs that `filter` selects, the oldest first. The values of the tag `mark`
    /// mark versions.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn trend(
        &mut self,
        filter: &Filter,
        figure: &str,
        mark: &str,
        most: u32,
    ) -> Result<Vec<TrendPoint>, StoreError> {
        self.attempt(|connection| trend(connection, filter, figure, mark, most))
    }

    /// The figures of a run, and its thresholds.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn figures_of(&mut self, number: i64) -> Result<(Vec<KeptFigure>, Vec<Limit>), StoreError> {
        self.attempt(|connection| {
            let mut figures = connection.prepare("SELECT figure, value, at_least FROM figures WHERE run = ?1")?;
            let figures = figures.query_map([number], |row| {
                Ok(KeptFigure { name: row.get(0)?, value: row.get(1)?, at_least: row.get(2)? })
            })?;
            let figures = figures.collect::<rusqlite::Result<_>>()?;
            let mut limits = connection
                .prepare("SELECT threshold, figure, value, got, held FROM limits WHERE run = ?1 ORDER BY place")?;
            let limits = limits.query_map([number], |row| {
                Ok(Limit {
                    threshold: row.get(0)?,
                    figure: row.get(1)?,
                    limit: row.get(2)?,
                    got: row.get(3)?,
                    held: row.get(4)?,
                })
            })?;
            Ok((figures, limits.collect::<rusqlite::Result<_>>()?))
        })
    }

    /// Every tag that a run has, as `key=value`, to choose from; of very many only some.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn tags(&mut self) -> Result<Vec<String>, StoreError> {
        self.attempt(|connection| {
            let query = format!(
                "SELECT key || '=' || value AS tag FROM tags GROUP BY key, value ORDER BY max(run) DESC
                 LIMIT {MOST_SUGGESTIONS}"
            );
            texts(connection, &query, Vec::new())
        })
    }

    /// The entry of a run, with its course, without reading the run.
    ///
    /// # Errors
    /// When there is no such run, or the file cannot be read.
    pub fn listed(&mut self, number: i64) -> Result<ListedRun, StoreError> {
        let found = self.attempt(|connection| {
            let query = format!("SELECT {}, sparkline FROM runs WHERE number = ?1", entry::COLUMNS);
            let mut rows = connection.prepare(&query)?;
            let mut rows = rows.query([number])?;
            let Some(row) = rows.next()? else { return Ok(None) };
            listed(connection, row).map(Some)
        })?;
        found.ok_or_else(|| StoreError::NoSuchRun { which: number.to_string(), path: self.path.clone() })
    }
}

fn texts(connection: &Connection, query: &str, values: Vec<Value>) -> rusqlite::Result<Vec<String>> {
    let mut query = connection.prepare(query)?;
    let texts = query.query_map(params_from_iter(values), |row| row.get(0))?;
    texts.collect()
}

fn listed(connection: &Connection, row: &rusqlite::Row<'_>) -> rusqlite::Result<ListedRun> {
    let mut entry = entry::of_row(row)?;
    let mut tags = connection.prepare("SELECT key, value FROM tags WHERE run = ?1 ORDER BY key")?;
    let tags = tags.query_map([entry.number], |row| Ok((row.get(0)?, row.get(1)?)))?;
    entry.label.tags = tags.collect::<rusqlite::Result<_>>()?;
    let sparkline: Option<String> = row.get("sparkline")?;
    Ok(ListedRun { entry, sparkline: sparkline.and_then(|json| serde_json::from_str(&json).ok()) })
}

fn page(connection: &Connection, filter: &Filter, skipped: u64, most: u32) -> rusqlite::Result<Page> {
    let (conditions, mut values) = conditions_of(filter);
    let count = connection.query_row(
        &format!("SELECT count(*) FROM runs WHERE {conditions}"),
        params_from_iter(values.iter()),
        |row| row.get(0),
    )?;
    let query = format!(
        "SELECT {}, sparkline FROM runs WHERE {conditions} ORDER BY number DESC LIMIT ? OFFSET ?",
        entry::COLUMNS
    );
    values.push(Value::from(most));
    values.push(Value::from(i64::try_from(skipped).unwrap_or(i64::MAX)));
    let mut page = Page { count, ..Page::default() };
    let mut rows = connection.prepare(&query)?;
    let mut rows = rows.query(params_from_iter(values))?;
    while let Some(row) = rows.next()? {
        match listed(connection, row) {
            Ok(listed) => page.runs.push(listed),
            Err(error) if error.sqlite_error_code().is_none() => page.unreadable.push(row.get("number")?),
            Err(error) => return Err(error),
        }
    }
    Ok(page)
}

/// The figure whose interval is kept with a run.
const P99: &str = "p99";

fn trend(
    connection: &Connection,
    filter: &Filter,
    figure: &str,
    mark: &str,
    most: u32,
) -> rusqlite::Result<Vec<TrendPoint>> {
    let (conditions, given) = conditions_of(filter);
    let query = format!(
        "SELECT number, started_unix_ms, figures.value, figures.at_least,
             (SELECT min(limits.value) FROM limits WHERE limits.run = number AND limits.figure = figures.figure),
             (SELECT min(held) FROM limits WHERE limits.run = number AND limits.figure = figures.figure),
             (SELECT tags.value FROM tags WHERE tags.run = number AND tags.key = ?), sparkline
         FROM figures JOIN runs ON number = figures.run
         WHERE figures.figure = ? AND {conditions} ORDER BY number DESC LIMIT ?"
    );
    let mut values = vec![Value::from(mark.to_owned()), Value::from(figure.to_owned())];
    values.extend(given);
    values.push(Value::from(most));
    let mut rows = connection.prepare(&query)?;
    let points = rows.query_map(params_from_iter(values), |row| {
        let sparkline: Option<String> = row.get(7)?;
        let sparkline =
            sparkline.filter(|_| figure == P99).and_then(|json| serde_json::from_str::<Sparkline>(&json).ok());
        let interval = sparkline.and_then(|sparkline| sparkline.p99_interval_ns);
        Ok(TrendPoint {
            number: row.get(0)?,
            started_unix_ms: row.get(1)?,
            value: row.get(2)?,
            at_least: row.get(3)?,
            interval: interval.map(|(low, high)| (low as f64, high.map(|high| high as f64))),
            limit: row.get(4)?,
            held: row.get::<_, Option<bool>>(5)?.unwrap_or(true),
            mark: row.get(6)?,
        })
    })?;
    let mut points = points.collect::<rusqlite::Result<Vec<_>>>()?;
    points.reverse();
    Ok(points)
}
