//! What holds for every view, whatever the run.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use brunt_judge::breakdown::CallBreakdown;
use brunt_judge::thresholds::JudgedCondition;
use brunt_judge::trend::{Settled, TrendFigure};
use brunt_judge::verdict::Judgement;
use brunt_plan::units::{Duration, Number};
use brunt_report::{Characters, Detail, Format, Style, columns, render};

mod fixtures;

const COLOURED: Style = Style { colour: true, detail: Detail::Verbose, wrk_latency: true, characters: Characters::All };

fn text(format: Format, summary: &brunt_judge::summary::Summary, style: Style) -> String {
    String::from_utf8(render(format, summary, style).unwrap()).unwrap()
}

/// `text` without ANSI sequences.
fn without_colour(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or("").to_owned();
    parts.fold(first, |plain, part| plain + part.split_once('m').map_or("", |(_, rest)| rest))
}

#[test]
fn colour_changes_nothing_but_colour() {
    for (name, summary) in fixtures::all() {
        for format in Format::ALL {
            let (plain, coloured) =
                (text(format, &summary, Style { colour: false, ..COLOURED }), text(format, &summary, COLOURED));
            assert!(!plain.contains('\u{1b}'), "{name}: an escape sequence without colour");
            assert_eq!(without_colour(&coloured), plain, "{name}");
        }
    }
}

#[test]
fn text_in_ascii_is_ascii_and_as_wide() {
    for (name, summary) in fixtures::all() {
        for format in [Format::Text, Format::Wrk] {
            let plain = text(format, &summary, Style { colour: false, ..COLOURED });
            let ascii = text(format, &summary, Style { colour: false, characters: Characters::Ascii, ..COLOURED });
            assert!(ascii.is_ascii(), "{name}: {ascii}");
            assert_eq!(ascii.lines().count(), plain.lines().count(), "{name}");
            for (ascii, plain) in ascii.lines().zip(plain.lines()) {
                assert_eq!(columns::width(ascii), columns::width(plain), "{name}: {plain}");
            }
        }
        // What programs read stays as it is.
        let [json, same] = [Characters::All, Characters::Ascii]
            .map(|characters| text(Format::Json, &summary, Style { characters, ..COLOURED }));
        assert!(json == same, "{name}");
    }
}

#[test]
fn the_text_fits_a_terminal() {
    for (name, summary) in fixtures::all() {
        let text = text(Format::Text, &summary, Style { detail: Detail::Verbose, ..Style::default() });
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{name}: {line}");
            assert_eq!(line.trim_end(), line, "{name}: spaces at a line's end");
        }
        // Scenarios and messages have sections of their own, which no other run shows.
        let (scenarios, messages) = (!summary.breakdown.scenarios.is_empty(), !summary.total.messages().is_empty());
        let most = 77 + 58 * usize::from(scenarios) + 24 * usize::from(messages);
        assert!(text.lines().count() <= most, "{name}: {} lines", text.lines().count());
    }
}

/// The words of `text`, each behind one space: lines are broken between words.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// 24 lines with the prompt below it, whatever the run; nothing that decides or doubts the outcome is left to `-v`.
#[test]
fn the_default_text_fits_a_screen_and_hides_no_doubt() {
    for (name, summary) in fixtures::all() {
        for detail in [Detail::Brief, Detail::Dated] {
            let text = text(Format::Text, &summary, Style { detail, ..Style::default() });
            assert!(text.lines().count() < 24, "{name}: {} lines:\n{text}", text.lines().count());
            assert!(text.lines().all(|line| columns::width(line) <= 80), "{name}:\n{text}");
            let words = words(&text);
            for remark in brunt_report::remarks(&summary) {
                assert!(words.contains(&self::words(&remark.remark.message.to_string())), "{name}: {remark:?}\n{text}");
            }
            for finding in &summary.verdict.findings {
                assert!(words.contains(&self::words(&finding.message.to_string())), "{name}: {finding:?}\n{text}");
            }
            for failed in summary.thresholds.iter().filter(|result| !result.held) {
                assert!(words.contains(&self::words(&failed.got.to_string())), "{name}: {failed:?}\n{text}");
            }
            if summary.answered() {
                assert!(words.contains("Throughput") && words.contains("Latency"), "{name}:\n{text}");
            }
        }
    }
}

/// What is left out is counted or named, and where nothing is, nothing is said of it.
#[test]
fn what_is_left_out_is_named() {
    let failing = text(Format::Text, &fixtures::failing(), Style::default());
    assert!(failing.contains(" more reasons (-v)\n"), "{failing}");
    let shop = text(Format::Text, &fixtures::shop(), Style::default());
    assert!(shop.lines().last().unwrap().starts_with("More with -v: "), "{shop}");
    let mut many = fixtures::shop();
    let request = many.breakdown.requests.remove(0);
    many.breakdown.requests =
        (0..500).map(|nth| CallBreakdown { name: format!("r{nth}"), ..request.clone() }).collect();
    let many = text(Format::Text, &many, Style::default());
    assert!(many.lines().count() < 24 && many.contains("  r0 ") && many.contains("  r4 "), "{many}");
    assert!(many.contains(" more requests (-v, -o FILE.json)\n"), "{many}");
    let clean = text(Format::Text, &fixtures::clean(), Style::default());
    assert!(!clean.contains("-v") && clean.contains("Measurement"), "{clean}");
}

#[test]
fn the_verdict_stands_in_every_format() {
    let failing = fixtures::failing();
    for (format, sign) in [
        (Format::Text, "brunt was the limit"),
        (Format::Wrk, "brunt was the limit"),
        (Format::Json, "generator_bound"),
        (Format::Csv, "brunt was the limit"),
        (Format::Junit, "name=\"verdict\" value=\"brunt was the limit"),
        (Format::Html, "brunt was the limit"),
    ] {
        assert!(text(format, &failing, Style::default()).contains(sign), "{}", format.name());
    }
    let report = text(Format::Text, &failing, Style { detail: Detail::Verbose, ..Style::default() });
    let advice = report.find("→ give brunt more cores").unwrap();
    assert!(report.find("Throughput").unwrap() < advice && advice < report.find("Latency").unwrap());
    assert!(!text(Format::Wrk, &fixtures::clean(), Style::default()).contains("Verdict"));
}

#[test]
fn every_view_shows_the_same_numbers() {
    let summary = fixtures::clean();
    let p99 = summary.times.response.as_ref().unwrap().quantiles[4].value_ns;
    let rate = summary.rates.answered_per_s;
    let [report, wrk, json, csv, junit] = [Format::Text, Format::Wrk, Format::Json, Format::Csv, Format::Junit]
        .map(|format| text(format, &summary, COLOURED));
    assert!(report.contains(&Duration(p99).to_string()) && report.contains(&Number(rate).to_string()));
    assert!(wrk.contains("99%    5.16ms") && wrk.contains(&format!("Requests/sec:  {rate:.2}")));
    assert!(json.contains(&format!("\"p99\", \"share_ratio\": 0.99, \"value_ns\": {p99}")));
    assert!(junit.contains(&Duration(p99).to_string()));
    let total = csv.lines().find(|line| line.starts_with("total,,,")).unwrap();
    assert!(total.starts_with("total,,,10,366750,366750,0,36675.000,") && total.contains(&p99.to_string()));
}

#[test]
fn every_row_of_the_csv_has_every_column() {
    for (name, summary) in fixtures::all() {
        let csv = text(Format::Csv, &summary, Style::default());
        let columns = csv.lines().next().unwrap().split(',').count();
        for row in csv.lines() {
            // Only the verdict is quoted here.
            let after = |quoted: &str| quoted.rsplit_once('"').map_or(0, |(_, after)| after.matches(',').count());
            let commas = row
                .split_once('"')
                .map_or(row.matches(',').count(), |(before, quoted)| before.matches(',').count() + after(quoted));
            assert_eq!(commas + 1, columns, "{name}: {row}");
        }
    }
}

/// What JSON says above the figures.
fn remarks(summary: &brunt_judge::summary::Summary) -> Vec<String> {
    let json = text(Format::Json, summary, Style { colour: false, ..COLOURED });
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    let all = document["remarks"].as_array().unwrap().iter();
    all.map(|remark| remark["message"].as_str().unwrap().to_owned()).collect()
}

/// A target that warms up gets better: one that gets worse was faster at first.
#[test]
fn a_target_that_slows_down_is_not_warming_up() {
    let (_, mut summary) = fixtures::all().into_iter().find(|(_, summary)| summary.remarks.is_empty()).unwrap();
    for (figure, all, rest, gets_better) in [
        (TrendFigure::P50, 9e6, 4e6, true),
        (TrendFigure::P99, 30e6, 80e6, false),
        (TrendFigure::Rate, 700.0, 900.0, true),
        (TrendFigure::Rate, 900.0, 700.0, false),
    ] {
        summary.verdict.settled = Settled::WarmingUp { until_s: 4, figure, all, rest };
        let told = remarks(&summary);
        let says = |what: &str| told.iter().any(|text| text.starts_with(what));
        assert_eq!(says("still warming up until second 4"), gets_better, "{told:?}");
        assert_eq!(says("not settled: the target was faster until second 4"), !gets_better, "{told:?}");
    }
}

/// Without an answer there is nothing that brunt could have limited.
#[test]
fn brunt_limits_nothing_where_nothing_was_answered() {
    let mut summary = fixtures::failing();
    let is_told = |summary: &_| remarks(summary).iter().any(|text| text.contains("brunt was the limit"));
    summary.verdict.judgement = Judgement::GeneratorBound;
    assert!(is_told(&summary));
    (summary.rates.answered_per_s, summary.rates.ok_per_s) = (0.0, 0.0);
    assert!(!is_told(&summary));
}

#[test]
fn failed_calls_come_before_latency_that_cannot_be_believed() {
    let mut summary = fixtures::failing();
    for result in &mut summary.thresholds {
        if let JudgedCondition::Threshold(threshold) = &result.condition
            && threshold.is_about_errors()
        {
            result.condition = JudgedCondition::Default(threshold.clone());
        }
    }
    let told = remarks(&summary);
    let doubt = told.iter().position(|text| text.starts_with("brunt was the limit"));
    assert!(told[0].starts_with("0.1% of ") || doubt > Some(0), "{told:?}");
    summary.verdict.judgement = Judgement::LatencyUnreliable;
    summary.verdict.findings.clear();
    let told = remarks(&summary);
    let doubt = told.iter().position(|text| *text == summary.verdict.holding());
    assert!(doubt > Some(0), "{told:?}");
}
