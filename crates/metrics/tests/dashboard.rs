//! `contrib/grafana/brunt.json`, made from the catalogue of figures: each number of it has a panel, and each panel asks for metrics that
//! there are.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

use std::collections::BTreeSet;
use std::path::Path;

use brunt_metrics::second::CallKind;
use brunt_metrics::{Names, Subject, Sums, prometheus};
use brunt_record::catalogue::{Counter, Merge, Timing, Unit};
use brunt_record::figures::{OwnFigures, OwnKind};
use brunt_record::live::{AgentSecond, Live};
use brunt_record::outcome::Failure;
use brunt_record::snapshot::{Phase, Snapshot};
use brunt_record::watched::{WatchedFigure, WatchedUnit};
use serde_json::{Value, json};

/// Response times, whatever is spoken.
const RESPONSE: &str = "{__name__=~\"(http_client_request|rpc_client_call|brunt_call)_duration_seconds\",OF}";
/// Their classic buckets.
const CLASSIC: &str = "{__name__=~\"(http_client_request|rpc_client_call|brunt_call)_duration_seconds_bucket\",OF}";
/// Which run is shown, without its warm-up.
const OF: &str = "instance=~\"$instance\",brunt_phase=~\"$phase\"";
/// Width and height of a panel, in Grafana's units.
const SIZE: (u64, u64) = (8, 7);

/// A panel: its title, what it tells, its unit, and queries with their legends.
struct Panel {
    title: String,
    description: String,
    unit: &'static str,
    queries: Vec<(String, String)>,
}

fn panel(title: &str, description: &str, unit: &'static str, queries: &[(&str, &str)]) -> Panel {
    let queries = queries.iter().map(|(query, legend)| (query.replace("OF", OF), (*legend).to_owned())).collect();
    Panel { title: title.to_owned(), description: description.to_owned(), unit, queries }
}

/// Quantiles of a distribution, native or classic.
fn quantile(q: &str, native: &str, classic: &str, by: &str) -> String {
    let (by_native, by_classic) = if by.is_empty() {
        (String::new(), "by (le) ".to_owned())
    } else {
        (format!("by ({by}) "), format!("by (le,{by}) "))
    };
    let rate = |of: &str| format!("rate({of}[$__rate_interval])");
    format!(
        "histogram_quantile({q}, sum {by_native}({})) or histogram_quantile({q}, sum {by_classic}({}))",
        rate(native),
        rate(classic)
    )
}

fn main_panels() -> Vec<Panel> {
    let rate = |name: &str| format!("sum(rate({name}{{OF}}[$__rate_interval]))");
    let gauge = |name: &str| format!("sum({name}{{OF}})");
    let (due, ok, not_ok) = (rate("brunt_due_total"), rate("brunt_ok_total"), rate("brunt_not_ok_total"));
    let quantiles: Vec<_> = [("0.5", "p50"), ("0.9", "p90"), ("0.99", "p99"), ("0.999", "p99.9")]
        .map(|(q, name)| (quantile(q, RESPONSE, CLASSIC, ""), name))
        .into();
    let quantiles: Vec<_> = quantiles.iter().map(|(query, name)| (query.as_str(), *name)).collect();
    let share = format!("({not_ok}) / (({ok}) + ({not_ok}))");
    let requests = quantile(
        "0.99",
        "brunt_request_duration_seconds{OF}",
        "brunt_request_duration_seconds_bucket{OF}",
        "brunt_request_name",
    );
    let lag = quantile("0.99", "brunt_lag_duration_seconds{OF}", "brunt_lag_duration_seconds_bucket{OF}", "");
    vec![
        panel(
            "Calls",
            "Calls that were due, and how they ended.",
            "reqps",
            &[(&due, "due"), (&ok, "ok"), (&not_ok, "not ok")],
        ),
        panel("Response time", "From when calls were due to their end.", "s", &quantiles),
        panel("Without success", "Calls without success, of all that ended.", "percentunit", &[(&share, "not ok")]),
        panel(
            "Open calls",
            "Calls in flight, and calls that were due and are not sent.",
            "short",
            &[(&gauge("brunt_calls_in_flight"), "in flight"), (&gauge("brunt_calls_waiting"), "waiting")],
        ),
        panel(
            "Oldest open call",
            "For how long it has been due.",
            "s",
            &[("max(brunt_calls_oldest_seconds{OF})", "oldest")],
        ),
        panel(
            "Connections and users",
            "Connections that are open, and virtual users alive.",
            "short",
            &[(&gauge("brunt_connections_open"), "connections"), (&gauge("brunt_users"), "users")],
        ),
        panel(
            "Answers",
            "Calls that were answered, by status.",
            "reqps",
            &[(
                "sum by (http_response_status_code,rpc_response_status_code,brunt_status) (rate(brunt_answers_total{OF}[$__rate_interval]))",
                "{{http_response_status_code}}{{rpc_response_status_code}}{{brunt_status}}",
            )],
        ),
        panel(
            "Failures",
            "Calls that failed, by the failure.",
            "reqps",
            &[("sum by (error_type) (rate(brunt_failures_total{OF}[$__rate_interval]))", "{{error_type}}")],
        ),
        panel(
            "Checks that failed",
            "Of scenarios.",
            "short",
            &[(
                "sum by (brunt_check_name) (rate(brunt_checks_total{brunt_result=\"fail\",OF}[$__rate_interval]))",
                "{{brunt_check_name}}",
            )],
        ),
        panel("p99 by request", "Response time by name.", "s", &[(&requests, "{{brunt_request_name}}")]),
        panel("Generator lag", "brunt's own delay in sending, at the 99th percentile.", "s", &[(&lag, "p99")]),
        panel(
            "Busiest worker",
            "CPU time over wall time of brunt's busiest worker.",
            "percentunit",
            &[("max(brunt_busiest_worker_cpu_ratio{OF})", "busiest")],
        ),
        panel(
            "Agents",
            "Calls that each agent had answered.",
            "reqps",
            &[(
                "sum by (brunt_agent_name) (rate(brunt_agent_answered_total{OF}[$__rate_interval]))",
                "{{brunt_agent_name}}",
            )],
        ),
        panel(
            "Watched figures",
            "Figures that were watched beside the run, each in its own unit.",
            "short",
            &[("max by (brunt_watch) (brunt_watched_ratio{OF})", "{{brunt_watch}}")],
        ),
    ]
}

/// The name of a number in Prometheus, as the exporter makes it.
fn exposed(counter: Counter) -> String {
    let live = second(Snapshot::with_numbers([(counter, 1)]));
    let plain = ["_ns", "_bytes", "_ratio"].into_iter().find_map(|unit| counter.key().strip_suffix(unit));
    let name = format!("brunt.{}", plain.unwrap_or(counter.key()));
    let mut metrics = Subject::default().metrics(&live, 0, &mut Names::default());
    metrics.retain(|metric| metric.name == name);
    let text = prometheus::text(&Vec::new(), &metrics);
    let line = text.lines().find(|line| line.starts_with("brunt_")).unwrap_or_else(|| panic!("{name}: {text}"));
    line.split('{').next().unwrap().to_owned()
}

fn of_counter(counter: Counter) -> Panel {
    let name = exposed(counter);
    let (query, unit) = match (counter.joins(), counter.unit()) {
        (Merge::Max, _) => (format!("max({name}{{OF}})"), "percentunit"),
        (Merge::Sum, Unit::Bytes) => (format!("sum(rate({name}{{OF}}[$__rate_interval]))"), "Bps"),
        (Merge::Sum, Unit::Nanoseconds) => (format!("sum(rate({name}{{OF}}[$__rate_interval]))"), "short"),
        (Merge::Sum, _) => (format!("sum(rate({name}{{OF}}[$__rate_interval]))"), "cps"),
    };
    panel(counter.key(), counter.sentence(), unit, &[(&query, counter.key())])
}

fn dashboard() -> Value {
    let mut panels = Vec::new();
    let place = |number: u64, row: u64| json!({ "x": number % 3 * SIZE.0, "y": row + number / 3 * SIZE.1, "w": SIZE.0, "h": SIZE.1 });
    let datasource = json!({ "type": "prometheus", "uid": "${datasource}" });
    let shown = |panel: &Panel, id: u64, grid: Value| {
        let targets = panel.queries.iter().zip('A'..).map(|((query, legend), id)| {
            json!({ "refId": id.to_string(), "datasource": datasource, "expr": query, "legendFormat": legend, "range": true })
        });
        let targets: Vec<_> = targets.collect();
        json!({
            "id": id, "type": "timeseries", "title": panel.title, "description": panel.description, "datasource": datasource,
            "gridPos": grid, "targets": targets,
            "fieldConfig": { "defaults": { "unit": panel.unit, "min": 0, "custom": { "fillOpacity": 8, "showPoints": "never" } }, "overrides": [] },
            "options": { "legend": { "showLegend": true, "placement": "bottom", "displayMode": "list", "calcs": [] }, "tooltip": { "mode": "multi", "sort": "desc" } },
        })
    };
    let main = main_panels();
    for (number, panel) in main.iter().enumerate() {
        panels.push(shown(panel, number as u64 + 1, place(number as u64, 0)));
    }
    let below = (main.len() as u64).div_ceil(3) * SIZE.1;
    let all = Counter::ALL
        .into_iter()
        .map(of_counter)
        .enumerate()
        .map(|(number, panel)| shown(&panel, 101 + number as u64, place(number as u64, below + 1)));
    let all: Vec<_> = all.collect();
    panels.push(json!({
        "id": 100, "type": "row", "title": "Every number", "collapsed": true,
        "gridPos": { "x": 0, "y": below, "w": 24, "h": 1 }, "panels": all,
    }));
    let variable = |name: &str, more: Value| {
        let mut variable = json!({ "name": name, "label": name, "hide": 0, "skipUrlSync": false });
        variable.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        variable
    };
    json!({
        "title": "brunt", "uid": "brunt", "description": "A run of brunt while it goes on. Made from its catalogue of figures.",
        "tags": ["brunt", "load"], "editable": true, "graphTooltip": 1, "schemaVersion": 39, "version": 1, "refresh": "5s",
        "time": { "from": "now-15m", "to": "now" }, "timezone": "browser", "annotations": { "list": [] }, "links": [],
        "templating": { "list": [
            variable("datasource", json!({ "type": "datasource", "query": "prometheus", "includeAll": false, "multi": false })),
            variable("instance", json!({
                "type": "query", "datasource": datasource,
                "query": { "qryType": 1, "query": "label_values(brunt_due_total, instance)", "refId": "instance" },
                "refresh": 2, "includeAll": true, "multi": true, "sort": 1, "allValue": ".*",
                "current": { "text": ["All"], "value": ["$__all"] },
            })),
            variable("phase", json!({
                "type": "custom", "query": "measured|drain,warmup,measured,drain", "includeAll": true, "multi": false, "allValue": ".*",
                "current": { "text": "measured|drain", "value": "measured|drain" },
                "options": (["measured|drain", "warmup", "measured", "drain"].iter().map(|value| {
                    json!({ "text": value, "value": value, "selected": *value == "measured|drain" })
                }).collect::<Vec<_>>()),
            })),
        ] },
        "panels": panels,
    })
}

/// A second in which everything happened.
fn second(snapshot: Snapshot) -> Live {
    let agent = AgentSecond {
        name: "a1".into(),
        answered: 1,
        not_ok: 0,
        p99_ns: None,
        lag_p99_ns: None,
        is_saturated: false,
        is_silent: false,
    };
    Live {
        phase: Phase::Measured,
        elapsed_ns: 1,
        planned_ns: None,
        in_log: None,
        planned_requests: None,
        length_ns: 1,
        snapshot,
        open_connections: 1,
        in_flight: 1,
        waiting: 1,
        oldest_ns: 1,
        users: Some(1),
        changes: Vec::new(),
        agents: vec![agent],
    }
}

/// The names of all samples that a run may expose.
fn all_names() -> BTreeSet<String> {
    let mut snapshot = Snapshot::with_numbers(Counter::ALL.map(|counter| (counter, 1)));
    for timing in Timing::ALL {
        snapshot.times.record(timing, 1_000_000);
    }
    snapshot.statuses.record(200);
    snapshot.failures.record(Failure::Timeout, "late");
    let figures = &mut snapshot.figures;
    figures.requests.named("home").answered(200, 1000, 900);
    figures.groups.named("cart").ended(1000, 900, true);
    figures.checks.named("home: ok").passed(Some("home"), "ok");
    figures.scenarios.named("visit").iteration(1000);
    let mut own = OwnFigures::new(OwnKind::Counter, "");
    own.record(1.0, 0);
    *figures.own.named("sold") = own;
    *snapshot.watched.named("cpu") = WatchedFigure::value(WatchedUnit::Number, 0.5);
    let live = second(snapshot);
    let mut names = BTreeSet::new();
    for calls in [CallKind::Http, CallKind::Rpc, CallKind::Other] {
        let mut sums = Sums::default();
        sums.add(Subject { calls, ..Subject::default() }.metrics(&live, 0, &mut Names::default()));
        let text = prometheus::text(&Vec::new(), sums.metrics());
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        names.extend(samples.map(|line| line.split(['{', ' ']).next().unwrap().to_owned()));
        // A native histogram has its own name alone.
        names.extend(sums.metrics().iter().map(|metric| format!("{}_seconds", metric.name.replace('.', "_"))));
    }
    names
}

#[test]
fn the_dashboard_is_made_from_the_catalogue() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/grafana/brunt.json");
    let made = serde_json::to_string_pretty(&dashboard()).unwrap() + "\n";
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "contrib/grafana/brunt.json is old: UPDATE_GOLDEN=1 cargo test -p brunt-metrics writes it anew"
    );
}

#[test]
fn every_query_asks_for_metrics_that_there_are() {
    let names = all_names();
    let text = dashboard().to_string();
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let metrics =
        words.filter(|word| word.starts_with("brunt_") && word.ends_with(['l', 's', 'o', 'g', 't', 'n', 'e', 'd']));
    let labels = [
        "brunt_phase",
        "brunt_result",
        "brunt_request_name",
        "brunt_check_name",
        "brunt_agent_name",
        "brunt_status",
        // A part of the expression for all response times.
        "brunt_call",
    ];
    let asked: BTreeSet<_> = metrics.filter(|word| !labels.contains(word)).collect();
    assert!(asked.len() > Counter::ALL.len(), "{asked:?}");
    for name in asked {
        assert!(names.contains(name), "{name} is no metric: {names:#?}");
    }
}
