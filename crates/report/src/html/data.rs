//! Data of the page: a result, with drawn curves in place of its histograms. The page's types are made of it: see [`crate::schema::page`].

use brunt_judge::agent_figures::AgentFigures;
use brunt_judge::summary::{Rates, Times};
use brunt_judge::thresholds::ThresholdResult;
use brunt_judge::verdict::Verdict;
use brunt_plan::plan::{Load, Origin};
use brunt_record::catalogue::{Placed, Timing, places};
use brunt_record::counts;
use brunt_record::histogram::QUANTILES;
use brunt_record::recording::Ending;
use schemars::JsonSchema;
use serde::Serialize;

use super::by_due::ByDue;
use super::distribution::{Bars, Distribution, HeatMap, Spectrum};
use super::drilldown::Drilldown;
use super::last_second::LastSecond;
use super::names::{NamedStatus, Names};
use super::series::Series;
use crate::headline::{Statement, statements};
use crate::json::{self, Document};
use crate::text;

/// A run as the page shows it. Units are in the names, as in its result.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Data<'a> {
    #[schemars(extend("const" = "run"))]
    kind: &'static str,
    /// Of a run that goes on.
    live: Option<LastSecond>,
    brunt_version: &'a str,
    started_unix_ms: u64,
    ending: &'a Ending,
    /// What its user calls the run, and the command that repeats it.
    origin: &'a Origin,
    /// What was run.
    title: String,
    /// The plan in words.
    plan: Vec<String>,
    is_open: bool,
    statements: Vec<Statement>,
    verdict: &'a Verdict,
    rates: Rates,
    outcomes: Outcomes<'a>,
    measured_ns: u64,
    measured_bytes: json::Bytes,
    connections: &'a json::Connections,
    health: json::Health,
    thresholds: &'a [ThresholdResult],
    /// The names of the quantiles of every distribution.
    quantiles: Vec<&'static str>,
    times: Vec<(&'static str, Distribution)>,
    series: Series,
    /// Response times by when calls were due.
    by_due: Option<ByDue>,
    drilldown: Option<Drilldown<'a>>,
    heat_map: Option<HeatMap>,
    /// How many calls took how long.
    bars: Option<Bars>,
    spectra: Vec<Spectrum>,
    names: Option<Names<'a>>,
    /// What each agent did, of a run that agents carried out.
    agents: Option<Agents<'a>>,
}

/// Agents of a run.
#[derive(Debug, Serialize, JsonSchema)]
struct Agents<'a> {
    start_skew_ns: Option<u64>,
    start_skew_uncertainty_ns: Option<u64>,
    list: Vec<Agent<'a>>,
}

/// An agent.
#[derive(Debug, Serialize, JsonSchema)]
struct Agent<'a> {
    name: &'a str,
    cores: u32,
    workers: u32,
    began_ns: i64,
    lost: Option<&'a json::Lost>,
    #[serde(flatten)]
    figures: AgentFigures,
}

impl<'a> Agents<'a> {
    fn from_json(agents: &'a json::Agents) -> Self {
        let list = agents.list.iter().map(|agent| Agent {
            name: &agent.name,
            cores: agent.cores,
            workers: agent.workers,
            began_ns: agent.began_ns,
            lost: agent.lost.as_ref(),
            figures: agent.figures,
        });
        Self {
            start_skew_ns: agents.start_skew_ns,
            start_skew_uncertainty_ns: agents.start_skew_uncertainty_ns,
            list: list.collect(),
        }
    }
}

/// How every call ended.
#[derive(Debug, Serialize, JsonSchema)]
struct Outcomes<'a> {
    #[serde(flatten)]
    numbers: Placed<places::Outcomes>,
    answered: u64,
    failed: u64,
    not_ok: u64,
    error_ratio: f64,
    events: &'a counts::Events,
    held_back: Placed<places::HeldBack>,
    statuses: Vec<Status<'a>>,
    failures: &'a [json::FailureCount],
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Ended")]
struct Status<'a> {
    #[serde(flatten)]
    answers: NamedStatus<'a>,
    ok: bool,
}

impl<'a> Data<'a> {
    pub(super) fn from_document(document: &'a Document) -> Self {
        Self {
            kind: "run",
            live: None,
            brunt_version: &document.brunt_version,
            started_unix_ms: document.started_unix_ms,
            ending: &document.ending,
            origin: &document.plan.origin,
            title: text::plan_heading(&document.plan),
            plan: text::plan_in_words(&document.plan),
            is_open: matches!(document.plan.load, Load::Open { .. }),
            statements: match document.statements.as_slice() {
                [] => statements(&document.summary()),
                known => known.to_vec(),
            },
            verdict: &document.verdict,
            rates: document.rates,
            outcomes: Outcomes::from_document(document),
            measured_ns: document.measured.length_ns,
            measured_bytes: document.measured.bytes,
            connections: &document.connections,
            health: document.health,
            thresholds: &document.thresholds,
            quantiles: QUANTILES.iter().map(|(name, _)| *name).collect(),
            times: times(&document.times),
            series: Series::from_points(&document.series),
            by_due: ByDue::from_timeline(&document.by_due, &document.series),
            drilldown: Drilldown::from_document(document),
            heat_map: HeatMap::from_timeline(&document.by_due, &document.series),
            bars: Bars::from_histograms(&document.histograms),
            spectra: spectra(document),
            names: document.names.as_ref().map(Names::from_json),
            agents: document.agents.as_ref().map(Agents::from_json),
        }
    }
}

impl Data<'_> {
    /// The same of a run that goes on.
    pub(super) fn during(self, state: LastSecond) -> Self {
        Self { live: Some(state), ..self }
    }
}

impl<'a> Outcomes<'a> {
    fn from_document(document: &'a Document) -> Self {
        let ok = &document.plan.ok_status;
        let outcomes = &document.outcomes;
        let named = NamedStatus::all(&outcomes.statuses, &outcomes.status_names).into_iter();
        let statuses = named.map(|answers| Status { ok: ok.holds(answers.status()), answers });
        Self {
            numbers: outcomes.numbers,
            answered: outcomes.answered,
            failed: outcomes.failed,
            not_ok: outcomes.not_ok,
            error_ratio: outcomes.error_ratio,
            events: &outcomes.events,
            held_back: outcomes.held_back,
            statuses: statuses.collect(),
            failures: &outcomes.failures,
        }
    }
}

fn times(times: &Times) -> Vec<(&'static str, Distribution)> {
    let all = [
        ("response", &times.response),
        ("service", &times.service),
        ("first byte", &times.first_byte),
        ("connect", &times.connect),
        ("tls", &times.tls),
        ("handshake", &times.handshake),
        ("first message", &times.first_message),
        ("message gap", &times.message_gap),
        ("each message", &times.each_message),
        ("last message", &times.last_message),
        ("lag", &times.lag),
        ("ok", &times.ok),
        ("not ok", &times.not_ok),
    ];
    all.into_iter().filter_map(|(name, times)| Some((name, Distribution::from_distribution(times.as_ref()?)))).collect()
}

fn spectra(result: &Document) -> Vec<Spectrum> {
    let all = [
        ("service", Timing::Service),
        ("first byte", Timing::FirstByte),
        ("first message", Timing::FirstMessage),
        ("message gap", Timing::MessageGap),
        ("lag", Timing::Lag),
    ];
    let recorded = all.iter().map(|(name, timing)| Spectrum::new(name, result.histograms.times.get(*timing)));
    std::iter::once(Spectrum::new("response", &result.response_times())).chain(recorded).flatten().collect()
}
