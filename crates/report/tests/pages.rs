//! Pages of runs that no fixture has, for the tests in a browser. `BRUNT_PAGES` names the directory that they and their results
//! are written into; without it, they are only made.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use brunt_judge::advice::Advice;
use brunt_judge::summary::Summary;
use brunt_judge::verdict::{Finding, Spoils, VerdictCause};
use brunt_plan::threshold::Threshold;
use brunt_record::SECOND_NS;
use brunt_record::agents::AgentEnd;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::counts::Statuses;
use brunt_record::examples::{ExampleEnd, Examples, FailedExample};
use brunt_record::figures::{CallFigures, Example, NamedFigures};
use brunt_record::histogram::Percentile;
use brunt_record::outcome::Failure;
use brunt_record::recording::Ending;
use brunt_record::series::Series;
use brunt_record::snapshot::Snapshot;
use brunt_report::{Format, Style, render};

mod fixtures;

/// Texts that a page must not take for markup.
const HOSTILE: [&str; 6] = [
    "</script><script>window.hacked = 1</script>",
    "<!--<script>window.hacked = 1//",
    "<img src=x onerror='window.hacked = 1'>",
    "]]><svg onload=window.hacked=1>",
    "{{constructor.constructor('window.hacked=1')()}} ${window.hacked = 1}",
    "__proto__",
];

/// The summary of a run that was changed.
fn again(summary: Summary, change: impl FnOnce(&mut Summary)) -> Summary {
    let mut summary = summary;
    change(&mut summary);
    Summary::new(summary.plan, summary.run)
}

fn thresholds(texts: &[&str]) -> Vec<Threshold> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// `of` under each of these names, and under no other.
fn named(of: &CallFigures, names: impl IntoIterator<Item = String>) -> NamedFigures<CallFigures> {
    let mut all = NamedFigures::default();
    names.into_iter().for_each(|name| *all.named(&name) = of.clone());
    all
}

/// The figures of the first request of the shop.
fn first_request(summary: &Summary) -> CallFigures {
    summary.run.measured.figures.requests.iter().next().unwrap().1.clone()
}

fn articles() -> impl Iterator<Item = String> {
    (0..500).map(|i| format!("GET /articles/{i}"))
}

/// Every answer was 500.
fn no_success() -> Summary {
    again(fixtures::tls(), |summary| {
        let measured = &mut summary.run.measured;
        measured.statuses = Statuses::from_counts([(500, measured.statuses.total())]);
        measured.numbers.set(Counter::EndedOk, 0);
        summary.plan.max_error_rate = 1.0;
    })
}

/// An agent that was lost, with users that it never started; its name and the reason are hostile.
fn agent_lost() -> Summary {
    again(fixtures::lost(), |summary| {
        let part = summary.run.agents.last_mut().unwrap();
        "<i>a2</i>".clone_into(&mut part.name);
        if let AgentEnd::Lost { reason, users_missed, .. } = &mut part.ended {
            "<b>gone</b>".clone_into(reason);
            *users_missed = 1234;
        }
    })
}

/// Percentiles of which it is known otherwise than usual how far they may be off.
fn off() -> Summary {
    let mut summary = fixtures::clean();
    for quantile in &mut summary.times.response.as_mut().unwrap().quantiles {
        let Some(interval) = &mut quantile.interval else { continue };
        (interval.low_ns, interval.high_ns, interval.is_spoiled) = match quantile.name {
            Percentile::P50 => (1_900_000, Some(2_600_000), false),
            Percentile::P99 => (4_000_000, Some(6_000_000), true),
            Percentile::P99_9 => (5_000_000, None, false),
            _ => continue,
        };
    }
    summary
}

/// Percentiles of which nobody knows how far they may be off.
fn exact() -> Summary {
    let mut summary = fixtures::clean();
    let times = &mut summary.times;
    for times in [&mut times.response, &mut times.service, &mut times.first_byte, &mut times.connect, &mut times.lag] {
        times.iter_mut().flat_map(|times| &mut times.quantiles).for_each(|quantile| quantile.interval = None);
    }
    summary
}

fn limits() -> Summary {
    again(fixtures::failing(), |summary| {
        summary.plan.thresholds = thresholds(&["p99 < 5ms", "p50<20ms", "p90 < 1h", "home:p99 < 1us"]);
    })
}

fn few() -> Summary {
    let mut summary = fixtures::clean();
    summary.times.response.as_mut().unwrap().count = 66;
    summary
}

/// As many seconds as `clean`, at the end of which 64 connections are open.
fn constant() -> Summary {
    again(fixtures::clean(), |summary| {
        summary.run.series = Series::default();
        for _ in 0..10 {
            summary.run.series.push(SECOND_NS, &fixtures::usual_second(), &summary.plan.ok_status);
            summary.run.series.connections_open(64);
        }
    })
}

/// 500 names, of which one is worse than the others.
fn many_names() -> Summary {
    again(fixtures::shop(), |summary| {
        let mut one = CallFigures::default();
        for _ in 0..10 {
            one.due();
            one.answered(200, 4_000_000, 4_000_000);
        }
        summary.run.measured.figures.requests = named(&one, articles());
        let worst = summary.run.measured.figures.requests.named("GET /articles/250");
        worst.due();
        worst.failed(Failure::Timeout, SECOND_NS, Some(SECOND_NS));
    })
}

fn hostile() -> Summary {
    let mut summary = again(fixtures::shop(), |summary| {
        let one = first_request(summary);
        let measured = &mut summary.run.measured;
        measured.figures.requests = named(&one, HOSTILE.map(str::to_owned));
        measured.figures.tags = NamedFigures::default();
        let example = || Example { status: Some(200), body: HOSTILE[2].to_owned() };
        measured.figures.checks.named(HOSTILE[0]).failed(None, HOSTILE[0], example);
        measured.figures.scenarios.named("checkout").script_error(HOSTILE[1]);
        measured.failures.record(Failure::Protocol, HOSTILE[3]);
        summary.run.ending = Ending::Failed(HOSTILE[0].to_owned());
        "/</script><script>window.hacked=1</script>".clone_into(&mut summary.plan.target.path);
    });
    summary.thresholds[0].condition = brunt_judge::thresholds::JudgedCondition::FailIf(HOSTILE[2].to_owned());
    (summary.thresholds[0].got, summary.thresholds[0].held) = (HOSTILE[0].into(), false);
    let (message, advice) = (HOSTILE[0].into(), Advice::LeaveOutAgent { name: HOSTILE[2].to_owned() });
    let (cause, spoils) = (VerdictCause::Lag, Spoils::Latency);
    summary.verdict.findings = vec![Finding { cause, spoils, message, advice, decisive: true, seconds: Vec::new() }];
    summary
}

fn turned() -> Summary {
    again(fixtures::shop(), |summary| {
        let name = "a\u{202e}b\u{0}c\u{1b}[31m".to_owned();
        summary.run.measured.figures.requests = named(&first_request(summary), [name]);
    })
}

/// A series of `points` stretches, `seconds` long each.
fn long(summary: &mut Summary, points: u64, seconds: u64, second: impl Fn(u64) -> Snapshot) {
    let run = &mut summary.run;
    (run.series, run.measured_ns) = (Series::default(), points * seconds * SECOND_NS);
    for at in 0..points {
        run.series.push(seconds * SECOND_NS, &second(at), &summary.plan.ok_status);
    }
    (run.measured.timeline, run.drained.timeline) = Default::default();
}

/// Ten minutes of 500 names, each second with 500 distinct times over three decades.
fn ten_minutes() -> Summary {
    again(fixtures::shop(), |summary| {
        summary.run.measured.figures.requests = named(&first_request(summary), articles());
        long(summary, 600, 1, |at| {
            let mut second = Snapshot::default();
            for i in 0..500_u64 {
                let ns = (100_000.0 * 1.014_f64.powi(i as i32)) as u64 + at % 50;
                for timing in [Timing::Response, Timing::Service, Timing::Lag] {
                    second.times.record_n(timing, ns, 1 + (i * 7919 + at) % 97);
                }
            }
            second.figures.scenarios.named("checkout").users_started = 1;
            second
        });
    })
}

fn hour() -> Summary {
    again(fixtures::clean(), |summary| {
        let usual = fixtures::usual_second();
        long(summary, 3600, 1, |_| usual.clone());
    })
}

/// An hour of 500 names, each in every thirtieth second.
fn hour_of_names() -> Summary {
    again(fixtures::shop(), |summary| {
        let one = first_request(summary);
        let usual = fixtures::usual_second();
        let mut with_names = usual.clone();
        with_names.figures.requests = named(&one, articles());
        summary.run.measured.figures.requests = named(&one, articles());
        long(summary, 3600, 1, |at| if at % 30 == 0 { with_names.clone() } else { usual.clone() });
    })
}

fn refused() -> Summary {
    again(fixtures::failing(), |summary| {
        summary.plan.thresholds = thresholds(&["p99 < 5ms"]);
        summary.run.measured.times.record_n(Timing::Refused, 6_000_000, 10);
    })
}

/// The shop, in which a request fails for two reasons.
fn reasons() -> Summary {
    fixtures::shop_with(|at, second| {
        for (reason, calls) in [("no answer in 10s", [1, 0, 4]), ("no answer in 2s", [0, 2, 3])] {
            (0..calls[at]).for_each(|_| second.failures.record(Failure::Timeout, reason));
            second.numbers.add(Counter::Due, calls[at]);
        }
    })
}

fn examples() -> Summary {
    again(fixtures::failing(), |summary| {
        summary.run.measured.examples = Examples::default();
        for second in 1..=3 {
            let said = "<script>window.hacked = 1</script>\n\u{1b}[31m{\"error\":\"db\"}".to_owned();
            let (due_ns, request) = (second * SECOND_NS, "GET /<b>".to_owned());
            let call = FailedExample { due_ns, took_ns: 600_000, request, said, ..FailedExample::default() };
            summary.run.measured.examples.add(ExampleEnd::Status(503), call);
        }
    })
}

#[test]
fn every_page_is_made() {
    let made = [
        ("no-success", no_success as fn() -> Summary),
        ("agent-lost", agent_lost),
        ("off", off),
        ("exact", exact),
        ("limits", limits),
        ("few", few),
        ("constant", constant),
        ("many-names", many_names),
        ("hostile", hostile),
        ("turned", turned),
        ("ten-minutes", ten_minutes),
        ("hour", hour),
        ("hour-of-names", hour_of_names),
        ("refused", refused),
        ("reasons", reasons),
        ("examples", examples),
    ];
    let directory = std::env::var_os("BRUNT_PAGES").map(std::path::PathBuf::from);
    for (name, summary) in made {
        let summary = summary();
        for format in [Format::Html, Format::Json] {
            let text = String::from_utf8(render(format, &summary, Style::default()).unwrap()).unwrap();
            let is_sound = !text.contains("NaN") && !text.contains("<script>window.hacked");
            assert!(is_sound || format == Format::Json, "{name}");
            if let Some(directory) = &directory {
                std::fs::write(directory.join(name).with_extension(format.name()), text).unwrap();
            }
        }
    }
}
