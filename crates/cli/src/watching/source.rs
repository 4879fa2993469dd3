//! A watched source: a process, a page of metrics, or a query.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use brunt_plan::watch::{self, Watch};
use brunt_proxy::Trust;

use super::endpoint::{Endpoint, escaped};
use super::page::Pages;
use super::process::Process;
use super::{Board, of_watch, query};
use crate::https::{self, Pool};

/// How long making a connection may take.
const CONNECT: Duration = Duration::from_millis(800);
/// The media types that are read.
const TEXT: &str = "text/plain;version=0.0.4, text/plain;q=0.5, */*;q=0.1";

/// The result of the first request.
pub enum Asked {
    /// A value, now or the next time.
    There,
    /// An answer without a value so far.
    Without(String),
    /// No answer.
    Failed(String),
}

/// One source, and the numbers of its figures.
pub struct Source {
    kind: Kind,
    /// The watch, for its name.
    watch: Watch,
}

enum Kind {
    Process {
        process: Process,
        first: usize,
    },
    /// Pages of one URL, and the figures in each.
    Metrics {
        endpoint: Endpoint,
        pool: Arc<Pool>,
        url: String,
        began: Instant,
        pages: Vec<(usize, Watch, Pages)>,
    },
    Query {
        endpoint: Endpoint,
        pool: Arc<Pool>,
        figure: usize,
    },
}

/// The sources of these watches: a page with several figures is requested once.
///
/// # Errors
/// When the system's certificates cannot be read.
pub fn all(watches: &[Watch]) -> Result<Vec<Source>> {
    let (mut sources, mut number) = (Vec::<Source>::new(), 0);
    let trust = watches.iter().any(|watch| is_secure(watch.source())).then_some(Trust::System);
    let mut pool: Option<Arc<Pool>> = None;
    for watch in watches {
        let mut pooled = || {
            if let Some(pool) = &pool {
                return anyhow::Ok(Arc::clone(pool));
            }
            let made = Arc::new(https::pool(trust.as_ref(), CONNECT).context("--watch")?);
            Ok(Arc::clone(pool.insert(made)))
        };
        let wrong = |error: anyhow::Error| of_watch(watch, &format!("{error:#}"));
        let kind = match watch.source() {
            watch::Source::Process(pid) => Some(Kind::Process { process: Process::new(*pid), first: number }),
            watch::Source::Metrics { url, expression } => {
                let part = (number, watch.clone(), Pages::new(expression.clone()));
                let same = sources.iter_mut().find_map(|source| match &mut source.kind {
                    Kind::Metrics { url: known, pages, .. } if known == url => Some(pages),
                    _ => None,
                });
                if let Some(pages) = same {
                    pages.push(part);
                    None
                } else {
                    let endpoint = Endpoint::new(url, "", "", TEXT).map_err(wrong)?;
                    let (url, began) = (url.clone(), Instant::now());
                    Some(Kind::Metrics { endpoint, pool: pooled()?, url, began, pages: vec![part] })
                }
            }
            watch::Source::Prometheus { url, query } => {
                let query = format!("query={}", escaped(query));
                let endpoint = Endpoint::new(url, "api/v1/query", &query, "application/json").map_err(wrong)?;
                Some(Kind::Query { endpoint, pool: pooled()?, figure: number })
            }
        };
        sources.extend(kind.map(|kind| Source { kind, watch: watch.clone() }));
        number += watch.figures().len();
    }
    Ok(sources)
}

/// Whether what is asked speaks TLS.
fn is_secure(source: &watch::Source) -> bool {
    match source {
        watch::Source::Process(_) => false,
        watch::Source::Metrics { url, .. } | watch::Source::Prometheus { url, .. } => {
            url.get(.."https://".len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"))
        }
    }
}

impl Source {
    /// How long before the end of a second to ask, so that the value is there by then.
    pub const fn lead(&self) -> Duration {
        match self.kind {
            Kind::Process { .. } => Duration::from_millis(20),
            Kind::Metrics { .. } | Kind::Query { .. } => Duration::from_millis(150),
        }
    }

    /// Asks, and stores the values.
    pub async fn sample(&mut self, board: &Board) -> Asked {
        match &mut self.kind {
            Kind::Process { process, first } => {
                let now = Instant::now();
                let values = process.look(now);
                let failed = match &values[1] {
                    Some(Err(problem)) => Asked::Failed(format!("{}: {problem}", self.watch)),
                    _ => Asked::There,
                };
                for (place, value) in values.into_iter().enumerate() {
                    if let Some(value) = value {
                        board.put(*first + place, now, value);
                    }
                }
                failed
            }
            Kind::Metrics { endpoint, pool, began, pages, .. } => {
                let sent = Instant::now();
                let page = endpoint.get(pool).await;
                let now = Instant::now();
                // The value was read somewhere in between.
                let made = sent + (now - sent) / 2;
                let mut asked = Asked::There;
                for (figure, watch, of) in pages {
                    let value = match &page {
                        Ok(page) => of.value(page, made.saturating_duration_since(*began)),
                        Err(problem) => Some(Err(problem.clone())),
                    };
                    if let Some(Err(problem)) = &value {
                        let text = format!("{watch}: {problem}");
                        asked = if page.is_err() { Asked::Failed(text) } else { Asked::Without(text) };
                    }
                    if let Some(value) = value {
                        board.put(*figure, now, value);
                    }
                }
                asked
            }
            Kind::Query { endpoint, pool, figure } => {
                let answer = endpoint.get(pool).await;
                let has_answer = answer.is_ok();
                let value = answer.and_then(|answer| query::value(&answer)).map_err(|why| endpoint.told(&why));
                let asked = match &value {
                    Ok(_) => Asked::There,
                    Err(problem) if has_answer => Asked::Without(format!("{}: {problem}", self.watch)),
                    Err(problem) => Asked::Failed(format!("{}: {problem}", self.watch)),
                };
                board.put(*figure, Instant::now(), value);
                asked
            }
        }
    }
}
