//! The pages by path. All paths are in one folder, and name runs by their numbers only.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Result, anyhow};
use brunt_decide::kept::KeptKind;
use brunt_report::browse::{self, List, Report, TrendTable};
use brunt_report::decision::{self, Decision, Runs};
use brunt_report::{Format, Style, csv, json};
use brunt_store::{RunSelector, Store, StoreError, StoredResult};
use http::StatusCode;

use super::query::Query;
use crate::stored;
use crate::wording::{self, Settings};

/// How many runs a page of the list has.
const PAGE: u32 = 50;
/// The most runs that are skipped, far more than are ever kept.
const MOST_SKIPPED: u64 = 1 << 40;
/// Limit on one export, in bytes.
const MOST_EXPORTED: usize = 256 << 20;
/// The most runs of a trend.
const TREND: u32 = 300;

/// The policy of our own pages: style only, and forms sent here.
const POLICY: &str =
    "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// Report pages run their own script, isolated from these pages: they can send no form and read nothing here.
const REPORT_POLICY: &str = "frame-ancestors 'none'; sandbox allow-scripts allow-downloads";

/// An answer to a request.
#[derive(Debug)]
pub(super) struct Answer {
    pub status: StatusCode,
    pub kind: &'static str,
    pub content: Vec<u8>,
    pub policy: Option<&'static str>,
    /// The `Content-Disposition` of a download.
    pub download: Option<String>,
    /// Where to go on.
    pub location: Option<&'static str>,
}

impl Answer {
    fn new(kind: &'static str, content: Vec<u8>) -> Self {
        Self { status: StatusCode::OK, kind, content, policy: None, download: None, location: None }
    }

    fn page(html: String) -> Self {
        Self { policy: Some(POLICY), ..Self::new("text/html; charset=utf-8", html.into_bytes()) }
    }

    fn report(page: Vec<u8>) -> Self {
        Self { policy: Some(REPORT_POLICY), ..Self::new("text/html; charset=utf-8", page) }
    }

    fn problem(status: StatusCode, title: &str, problem: &str) -> Self {
        Self { status, ..Self::page(browse::problem(title, problem)) }
    }
}

/// The pages of the runs in a file.
#[derive(Debug)]
pub(super) struct Pages {
    store: PathBuf,
    token: String,
}

impl Pages {
    pub fn new(store: PathBuf, token: String) -> Self {
        Self { store, token }
    }

    /// The page at `path`.
    pub fn show(&self, path: &str, query: &Query) -> Answer {
        let shown = match path {
            "/" => self.list(query),
            "/style.css" => Ok(Answer::new("text/css; charset=utf-8", browse::STYLE.as_bytes().to_vec())),
            "/run" => self.run(query),
            "/trend" => self.trend(query),
            "/compare" => self.compare(query),
            "/forget" => self.forget(query),
            "/export" => self.export(query),
            _ => return Answer::problem(StatusCode::NOT_FOUND, "Nothing here", "There is no such page."),
        };
        shown.unwrap_or_else(|error| failed(&error))
    }

    /// Forgets the run that `form` names, and goes on with the list.
    pub fn delete(&self, form: &Query) -> Answer {
        let deleted = number(form)
            .and_then(|number| Ok(self.open()?.number(&RunSelector::Number(number)).map(|_| number)?))
            .and_then(|number| Ok(Store::open(&self.store)?.remove(&[RunSelector::Number(number)])?));
        match deleted {
            Ok(_) => {
                let answer = Answer::new("text/plain; charset=utf-8", Vec::new());
                Answer { status: StatusCode::SEE_OTHER, location: Some("./"), ..answer }
            }
            Err(error) => failed(&error),
        }
    }

    fn open(&self) -> Result<Store> {
        Ok(Store::open_kept(&self.store)?)
    }

    fn list(&self, query: &Query) -> Result<Answer> {
        let (filter, skipped) = (query.filter(), query.get("skip").parse().unwrap_or(0).min(MOST_SKIPPED));
        let (page, tags) = match Store::open_kept(&self.store) {
            Ok(mut store) => (store.page(&filter, skipped, PAGE)?, store.tags()?),
            // The first run may be kept at any time.
            Err(StoreError::Nothing { .. }) => Default::default(),
            Err(error) => return Err(error.into()),
        };
        let file = self.store.display().to_string();
        let list = List { page: &page, filter: &filter, skipped, most: PAGE, tags: &tags, file: &file };
        Ok(Answer::page(browse::list(&list)))
    }

    /// The report of a run or decision, with the ways on from it.
    fn run(&self, query: &Query) -> Result<Answer> {
        let number = number(query)?;
        let mut store = self.open()?;
        let listed = store.listed(number)?;
        let kept = match store.kept(&RunSelector::Number(number)) {
            Ok(kept) => kept,
            Err(error) => {
                let content = browse::unreadable(number, &wording::render_error(&error.into(), Settings::Flags));
                return Ok(Answer { status: StatusCode::INTERNAL_SERVER_ERROR, ..Answer::page(content) });
            }
        };
        let mut page = Vec::new();
        match &kept {
            StoredResult::Run(summary) => browse::write_kept(&mut page, Report::Run(summary), Some(&listed.entry))?,
            StoredResult::Decision(decided, runs) => {
                let report = Report::Decision(decided.decision(), linked(runs));
                browse::write_kept(&mut page, report, Some(&listed.entry))?;
            }
        }
        Ok(Answer::report(page))
    }

    /// The question whether to delete.
    fn forget(&self, query: &Query) -> Result<Answer> {
        let number = number(query)?;
        let is_run = self.open()?.listed(number)?.entry.kind == KeptKind::Run;
        Ok(Answer::page(browse::forget(number, !is_run, &self.token)))
    }

    fn trend(&self, query: &Query) -> Result<Answer> {
        let filter = query.filter();
        let figure = Some(query.get("figure").trim()).filter(|figure| !figure.is_empty()).unwrap_or("p99");
        let mark = Some(query.get("mark").trim()).filter(|mark| !mark.is_empty()).unwrap_or("version");
        let mut store = self.open()?;
        let points = store.trend(&filter, figure, mark, TREND)?;
        let (figures, tags) = (store.figures(&filter)?, store.tags()?);
        let trend = TrendTable { figure, mark, filter: &filter, points: &points, figures: &figures, tags: &tags };
        Ok(Answer::page(browse::trend(&trend)))
    }

    fn compare(&self, query: &Query) -> Result<Answer> {
        let numbers: Vec<i64> = query.all("run").filter_map(|number| number.parse().ok()).collect();
        let &[a, b] = numbers.as_slice() else {
            let ticked = format!("Tick two runs to compare; {} were ticked.", numbers.len());
            return Ok(Answer::problem(StatusCode::UNPROCESSABLE_ENTITY, "Compare", &ticked));
        };
        // The older one is the baseline.
        let (a, b) = (a.min(b), a.max(b));
        let compared = stored::compare_kept(&mut self.open()?, a, b)?;
        let decision = Decision::Comparison(&compared);
        let mut page = Vec::new();
        browse::write_kept(&mut page, Report::Decision(decision, linked(&[a, b])), None)?;
        Ok(Answer::report(page))
    }

    fn export(&self, query: &Query) -> Result<Answer> {
        if query.number().is_none() {
            return self.export_several(query);
        }
        let number = number(query)?;
        let (kind, extension) = match query.get("format") {
            "csv" => ("text/csv; charset=utf-8", "csv"),
            "junit" => ("application/xml", "xml"),
            "markdown" => ("text/markdown; charset=utf-8", "md"),
            _ => ("application/json", "json"),
        };
        let format = if extension == "json" { "json" } else { query.get("format") };
        let content = match self.open()?.kept(&RunSelector::Number(number))? {
            StoredResult::Run(summary) => brunt_report::render(format.parse::<Format>()?, &summary, Style::default())?,
            StoredResult::Decision(decided, _) => {
                decision::render(format.parse::<decision::DecisionFormat>()?, decided.decision(), Style::default())?
            }
        };
        let download = Some(format!("attachment; filename=\"brunt-{number}.{extension}\""));
        Ok(Answer { download, ..Answer::new(kind, content) })
    }

    /// The selected runs as one file.
    fn export_several(&self, query: &Query) -> Result<Answer> {
        let mut numbers: Vec<i64> = query.all("run").filter_map(|number| number.parse().ok()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        if numbers.is_empty() {
            let none = "Tick the runs to export; none was ticked.";
            return Ok(Answer::problem(StatusCode::UNPROCESSABLE_ENTITY, "Export", none));
        }
        let mut store = self.open()?;
        let runs = numbers.iter().map(|number| {
            let summary = store.load(&RunSelector::Number(*number)).map_err(io::Error::other)?;
            Ok((*number, summary))
        });
        let mut out = Bounded::default();
        let (kind, extension, written) = match query.get("format") {
            "csv" => ("text/csv; charset=utf-8", "csv", csv::write_several(&mut out, runs)),
            _ => ("application/json", "json", json::write_several(&mut out, runs)),
        };
        // The store's errors, and ours, came through a writer.
        written.map_err(|error| match error.downcast::<StoreError>() {
            Ok(error) => anyhow::Error::from(error),
            Err(error) => error.into(),
        })?;
        let download = Some(format!("attachment; filename=\"brunt-{}-runs.{extension}\"", numbers.len()));
        Ok(Answer { download, ..Answer::new(kind, out.0) })
    }
}

/// Room that fills up.
#[derive(Debug, Default)]
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MOST_EXPORTED {
            return Err(io::Error::other(TOO_MUCH));
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An export was too large.
const TOO_MUCH: &str = "together these runs are more than 256 MiB: export fewer at once";

fn number(query: &Query) -> Result<i64> {
    query.number().ok_or_else(|| anyhow!("expected the number of a run"))
}

/// Runs that have pages here.
fn linked(kept: &[i64]) -> Runs<'_> {
    Runs { kept, address: "run?number=", ..Runs::default() }
}

fn failed(error: &anyhow::Error) -> Answer {
    let status = match error.downcast_ref() {
        Some(StoreError::NoSuchRun { .. } | StoreError::Nothing { .. }) => StatusCode::NOT_FOUND,
        Some(StoreError::Busy { .. }) => StatusCode::SERVICE_UNAVAILABLE,
        Some(_) => StatusCode::INTERNAL_SERVER_ERROR,
        None => StatusCode::UNPROCESSABLE_ENTITY,
    };
    Answer::problem(status, "This cannot be shown", &wording::render_error(error, Settings::Flags))
}
