//! Data of the page: a result, with drawn curves in place of its histograms. The page's types are made of it: see [`crate::schema::page`].

use brunt_judge::agent_figures::AgentFigures;
use brunt_judge::summary::{Rates, Times};
use brunt_judge::thresholds::ThresholdResult;
use brunt_judge::verdict::Verdict;
use brunt_plan::plan::Origin;
use brunt_record::catalogue::{Placed, Timing, places};
use brunt_record::counts;
use brunt_record::histogram::QUANTILES;
use schemars::JsonSchema;
use serde::Serialize;

use super::by_due::ByDue;
use super::distribution::{Bars, Distribution, Spectrum};
use super::drilldown::Drilldown;
use super::first_screen::{first_screen, title};
use super::last_second::LastSecond;
use super::names::{NamedStatus, Names};
use super::series::Series;
use super::shown::Shown;
use super::stretches::Stretch;
use crate::headline::statements;
use crate::json::{self, Document};

/// A run as the page shows it. Units are in the names, as in its result.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Data<'a> {
    #[schemars(extend("const" = "run"))]
    kind: &'static str,
    /// Of a run that goes on.
    live: Option<LastSecond>,
    /// The first screen, as HTML; empty where it stands in the page already.
    #[serde(skip_serializing_if = "String::is_empty")]
    first_screen: String,
    /// What its user calls the run, and the command that repeats it.
    origin: &'a Origin,
    /// What was run.
    title: String,
    verdict: &'a Verdict,
    rates: Rates,
    outcomes: Outcomes<'a>,
    measured_bytes: json::Bytes,
    connections: &'a json::Connections,
    health: json::Health,
    thresholds: &'a [ThresholdResult],
    /// The names of the quantiles of every distribution.
    quantiles: Vec<&'static str>,
    times: Vec<(&'static str, Distribution)>,
    series: Series,
    by_due: ByDue,
    drilldown: Option<Drilldown<'a>>,
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
    /// Calls of which nobody knows whether lost agents sent them.
    unknown: u64,
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
    /// A run, `live` if it goes on, with its first screen.
    pub(super) fn new(shown: Shown<'a>, live: Option<LastSecond>) -> Self {
        let document = shown.document;
        let computed;
        let statements = match document.statements.as_slice() {
            [] => {
                computed = statements(shown.summary);
                &computed
            }
            known => known,
        };
        let stretches = Stretch::all(&document.by_due, &document.series);
        Self {
            kind: "run",
            first_screen: first_screen(shown, statements, &stretches, live.as_ref()),
            live,
            origin: &document.plan.origin,
            title: title(document),
            verdict: &document.verdict,
            rates: document.rates,
            outcomes: Outcomes::from_document(document),
            measured_bytes: document.measured.bytes,
            connections: &document.connections,
            health: document.health,
            thresholds: &document.thresholds,
            quantiles: QUANTILES.iter().map(|(name, _)| *name).collect(),
            times: times(&document.times),
            series: Series::from_points(&document.series),
            by_due: ByDue::from_stretches(&stretches),
            drilldown: Drilldown::from_document(document),
            bars: Bars::from_histograms(&document.histograms),
            spectra: spectra(document),
            names: document.names.as_ref().map(Names::from_json),
            agents: document.agents.as_ref().map(Agents::from_json),
        }
    }

    /// What was run, and the first screen, apart from the rest.
    pub(super) fn take_first_screen(&mut self) -> (String, String) {
        (self.title.clone(), std::mem::take(&mut self.first_screen))
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
            unknown: document.agents.as_ref().map_or(0, |agents| agents.unknown),
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
