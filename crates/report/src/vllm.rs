//! The result file of vLLM's `bench serve`, for dashboards that read it: of runs against language models.
//!
//! The names are those of vLLM 0.10. Its formulas are kept as far as brunt has them: `ttft` is from when a request was sent (brunt's `ttft`
//! is from when it was due), `itl` is the time between two events, and not between tokens; `tpot` and `e2el` are alike. What brunt did not
//! measure is `null`.

use std::io::{self, Write};

use brunt_judge::distribution::Distribution;
use brunt_judge::summary::Summary;
use brunt_plan::plan::{Load, Plan};
use brunt_record::catalogue::Counter;
use brunt_record::figures::OwnFigures;
use brunt_record::histogram::Percentile;
use serde_json::{Map, Value, json};

use crate::dates;
use crate::style::Style;

/// Writes `summary` as vLLM would.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(out: &mut impl Write, summary: &Summary, _style: Style) -> io::Result<()> {
    let own = |name: &str| summary.breakdown.own.iter().find(|own| own.name == name);
    let sum = |name: &str| own(name).and_then(|own| own.figures.sum());
    let per_s = |name: &str| own(name).and_then(|own| own.per_s);
    let (plan, run) = (&summary.plan, &summary.run);
    let options = plan.protocol.shown();
    let numbers = &summary.total.numbers;
    let ok = summary.total.ok(summary.ok_status());
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    put("date", date(run.started_unix_ms / 1000).into());
    put("backend", "brunt".into());
    put("model_id", options.get("model").cloned().unwrap_or_default());
    put("tokenizer_id", Value::Null);
    put("num_prompts", numbers.get(Counter::Due).into());
    put("request_rate", rate(plan));
    put("max_concurrency", if plan.load.is_open() { Value::Null } else { plan.connections.most().into() });
    put("duration", (run.measured_ns as f64 / 1e9).into());
    put("completed", ok.into());
    put("failed", summary.not_ok.into());
    put("total_input_tokens", sum("input_tokens").into());
    put("total_output_tokens", sum("output_tokens").into());
    put("request_throughput", summary.rates.ok_per_s.into());
    put("request_goodput", per_s("goodput").filter(|_| options.get("objectives").is_some()).into());
    put("output_throughput", per_s("output_tokens").into());
    let both = per_s("input_tokens").zip(per_s("output_tokens"));
    put("total_token_throughput", both.map(|(input, output)| input + output).into());
    let times = [("ttft", "ttft_sent"), ("tpot", "tpot"), ("itl", "chunk_gap")];
    for (theirs, name) in times {
        let of = own(name).map(|own| &own.figures);
        statistics(theirs, &mut put, &|what| of.and_then(|figures| value(figures, what)));
    }
    let latency = summary.times.service.as_ref().or(summary.times.response.as_ref());
    statistics("e2el", &mut put, &|what| latency.and_then(|times| milliseconds(times, what)));
    put("brunt_verdict", serde_json::to_value(summary.verdict.judgement).unwrap_or_default());
    writeln!(out, "{}", Value::from(fields))
}

/// A moment as `20260101-000000`.
fn date(unix_s: u64) -> String {
    let written = dates::iso_8601(unix_s);
    let digits = |c: char| match c {
        'T' => Some('-'),
        c => c.is_ascii_digit().then_some(c),
    };
    written.chars().filter_map(digits).collect()
}

/// The rate that was asked for, as vLLM writes it: `"inf"` where requests follow answers.
fn rate(plan: &Plan) -> Value {
    match &plan.load {
        Load::Open { profile, .. } => json!(profile.first_rate()),
        Load::Closed {} | Load::Replay(_) => "inf".into(),
    }
}

/// What vLLM says of each time, in milliseconds.
#[derive(Debug, Clone, Copy)]
enum Statistic {
    Mean,
    Stdev,
    At(Percentile),
}

fn statistics(name: &str, put: &mut impl FnMut(&str, Value), value: &dyn Fn(Statistic) -> Option<f64>) {
    put(&format!("mean_{name}_ms"), value(Statistic::Mean).into());
    put(&format!("median_{name}_ms"), value(Statistic::At(Percentile::P50)).into());
    put(&format!("std_{name}_ms"), value(Statistic::Stdev).into());
    for percentile in [Percentile::P90, Percentile::P95, Percentile::P99] {
        put(&format!("{percentile}_{name}_ms"), value(Statistic::At(percentile)).into());
    }
}

/// Of requests that ended, as vLLM has it.
fn value(figures: &OwnFigures, what: Statistic) -> Option<f64> {
    let figures = figures.known();
    match what {
        Statistic::Mean => figures.mean(),
        Statistic::Stdev => figures.stdev(),
        Statistic::At(percentile) => figures.quantile(percentile.share()),
    }
    .map(|value| value.value)
}

fn milliseconds(times: &Distribution, what: Statistic) -> Option<f64> {
    Some(match what {
        Statistic::Mean => times.mean.value / 1e6,
        Statistic::Stdev => times.stdev.value / 1e6,
        Statistic::At(percentile) => times.quantile(percentile)?.value as f64 / 1e6,
    })
}
