//! Data of the page: a result, with drawn curves in place of its histograms. `web/src/data.ts` reads it.

use brunt_model::histogram::Censored;
use brunt_model::plan::{Load, Origin};
use brunt_model::remarks::Remark;
use brunt_model::snapshot;
use brunt_model::summary::{Ending, QUANTILES};
use brunt_model::verdict::Judgement;
use serde::Serialize;

use super::distribution::{Bars, Distribution, HeatMap, Spectrum};
use super::drilldown::Drilldown;
use super::live::State;
use super::names::{NamedStatus, Names};
use super::series::Series;
use crate::json::{self, Document};
use crate::text;

/// See the module's text. Units are in the names, as in [`json`].
#[derive(Debug, Serialize)]
pub(super) struct Data<'a> {
    kind: &'static str,
    /// Of a run that goes on.
    live: Option<State>,
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
    verdict: &'a json::Verdict,
    remarks: &'a [Remark],
    rates: json::Rates,
    outcomes: Outcomes<'a>,
    measured_ns: u64,
    measured_bytes: json::Bytes,
    connections: &'a json::Connections,
    health: json::Health,
    thresholds: &'a [json::Threshold],
    /// The names of the quantiles of every distribution.
    quantiles: Vec<&'static str>,
    times: Vec<(&'static str, Distribution)>,
    series: Series,
    drilldown: Option<Drilldown<'a>>,
    heat_map: Option<HeatMap>,
    /// How many calls took how long.
    bars: Option<Bars>,
    spectra: Vec<Spectrum>,
    names: Option<Names<'a>>,
    /// What each agent did, of a run that agents carried out.
    agents: Option<Agents<'a>>,
}

/// See [`json::Agents`].
#[derive(Debug, Serialize)]
struct Agents<'a> {
    start_skew_ns: Option<u64>,
    start_skew_uncertainty_ns: Option<u64>,
    list: Vec<Agent<'a>>,
}

/// See [`json::Agent`].
#[derive(Debug, Serialize)]
struct Agent<'a> {
    name: &'a str,
    cores: u32,
    workers: u32,
    began_ns: i64,
    lost: Option<&'a json::Lost>,
    due: u64,
    not_ok: u64,
    answered_per_s: f64,
    response_p99_ns: Option<u64>,
    lag_p99_ns: Option<u64>,
    judgement: Judgement,
}

impl<'a> Agents<'a> {
    fn of(agents: &'a json::Agents) -> Self {
        let list = agents.list.iter().map(|agent| Agent {
            name: &agent.name,
            cores: agent.cores,
            workers: agent.workers,
            began_ns: agent.began_ns,
            lost: agent.lost.as_ref(),
            due: agent.due,
            not_ok: agent.not_ok,
            answered_per_s: agent.answered_per_s,
            response_p99_ns: agent.response_p99_ns,
            lag_p99_ns: agent.lag_p99_ns,
            judgement: agent.judgement,
        });
        Self {
            start_skew_ns: agents.start_skew_ns,
            start_skew_uncertainty_ns: agents.start_skew_uncertainty_ns,
            list: list.collect(),
        }
    }
}

/// See [`json::Outcomes`].
#[derive(Debug, Serialize)]
struct Outcomes<'a> {
    due: u64,
    answered: u64,
    failed: u64,
    unfinished: u64,
    unsent: u64,
    not_ok: u64,
    error_ratio: f64,
    waited_for_connection: u64,
    unasked: u64,
    events: &'a snapshot::Events,
    held_back: &'a snapshot::HeldBack,
    statuses: Vec<Status<'a>>,
    failures: &'a [json::FailureCount],
}

#[derive(Debug, Serialize)]
struct Status<'a> {
    #[serde(flatten)]
    answers: NamedStatus<'a>,
    ok: bool,
}

impl<'a> Data<'a> {
    pub(super) fn of(document: &'a Document) -> Self {
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
            verdict: &document.verdict,
            remarks: &document.remarks,
            rates: document.rates,
            outcomes: Outcomes::of(document),
            measured_ns: document.measured.length_ns,
            measured_bytes: document.measured.bytes,
            connections: &document.connections,
            health: document.health,
            thresholds: &document.thresholds,
            quantiles: QUANTILES.iter().map(|(name, _)| *name).collect(),
            times: times(&document.times),
            series: Series::of(&document.series),
            drilldown: Drilldown::of(document),
            heat_map: HeatMap::of(&document.series),
            bars: Bars::of(&document.histograms),
            spectra: spectra(&document.histograms),
            names: document.names.as_ref().map(Names::of),
            agents: document.agents.as_ref().map(Agents::of),
        }
    }
}

impl Data<'_> {
    /// The same of a run that goes on.
    pub(super) fn during(self, state: State) -> Self {
        Self { live: Some(state), ..self }
    }
}

impl<'a> Outcomes<'a> {
    fn of(document: &'a Document) -> Self {
        let ok = &document.plan.ok_status;
        let outcomes = &document.outcomes;
        let named = NamedStatus::all(&outcomes.statuses, &outcomes.status_names).into_iter();
        let statuses = named.map(|answers| Status { ok: ok.holds(answers.status()), answers });
        Self {
            due: outcomes.due,
            answered: outcomes.answered,
            failed: outcomes.failed,
            unfinished: outcomes.unfinished,
            unsent: outcomes.unsent,
            not_ok: outcomes.not_ok,
            error_ratio: outcomes.error_ratio,
            waited_for_connection: outcomes.waited_for_connection,
            unasked: outcomes.unasked,
            events: &outcomes.events,
            held_back: &outcomes.held_back,
            statuses: statuses.collect(),
            failures: &outcomes.failures,
        }
    }
}

fn times(times: &json::Times) -> Vec<(&'static str, Distribution)> {
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
        ("failed", &times.failed),
    ];
    all.into_iter().filter_map(|(name, times)| Some((name, Distribution::of(times.as_ref()?)))).collect()
}

fn spectra(histograms: &json::Histograms) -> Vec<Spectrum> {
    let known = |known: &brunt_model::histogram::Histogram| Censored { known: known.clone(), ..Censored::default() };
    let all = [
        ("response", Censored { known: histograms.response.clone(), bounds: histograms.response_bounds.clone() }),
        ("service", Censored { known: histograms.service.clone(), bounds: histograms.service_bounds.clone() }),
        ("first byte", known(&histograms.first_byte)),
        (
            "first message",
            Censored { known: histograms.first_message.clone(), bounds: histograms.first_message_bounds.clone() },
        ),
        (
            "message gap",
            Censored { known: histograms.message_gap.clone(), bounds: histograms.message_gap_bounds.clone() },
        ),
        ("lag", known(&histograms.lag)),
    ];
    all.iter().filter_map(|(name, times)| Spectrum::of(name, times)).collect()
}
