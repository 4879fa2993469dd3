//! What holds for every view, whatever the run.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use brunt_plan::units::{Duration, Number};
use brunt_record::outcome::{Failure, OkStatus};
use brunt_report::{Detail, Format, Style, live, render};

mod fixtures;

const COLOURED: Style = Style { colour: true, detail: Detail::Verbose, wrk_latency: true, no_histograms: false };

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
fn the_text_fits_a_terminal() {
    for (name, summary) in fixtures::all() {
        let text = text(Format::Text, &summary, Style { detail: Detail::Verbose, ..Style::default() });
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{name}: {line}");
            assert_eq!(line.trim_end(), line, "{name}: spaces at a line's end");
        }
        // Scenarios and messages have sections of their own, which no other run shows.
        let (scenarios, messages) = (!summary.breakdown.scenarios.is_empty(), !summary.total.messages().is_empty());
        let most = 76 + 58 * usize::from(scenarios) + 24 * usize::from(messages);
        assert!(text.lines().count() <= most, "{name}: {} lines", text.lines().count());
    }
}

#[test]
fn a_report_without_findings_fits_a_screen() {
    // One with a remark on brunt itself takes a little more, and one with a freeze and calls that never ended a few lines.
    let fixtures: [(fn() -> _, _); 4] =
        [(fixtures::clean, 25), (fixtures::tls, 26), (fixtures::interrupted, 25), (fixtures::open, 30)];
    for (fixture, most) in fixtures {
        let text = text(Format::Text, &fixture(), Style::default());
        assert!(text.lines().count() <= most, "{} lines:\n{text}", text.lines().count());
    }
}

#[test]
fn the_verdict_stands_in_every_format() {
    let failing = fixtures::failing();
    for (format, sign) in [
        (Format::Text, "generator-bound"),
        (Format::Wrk, "generator-bound"),
        (Format::Json, "generator_bound"),
        (Format::Csv, "generator-bound"),
        (Format::Junit, "name=\"verdict\" value=\"generator-bound"),
        (Format::Html, "generator-bound"),
    ] {
        assert!(text(format, &failing, Style::default()).contains(sign), "{}", format.name());
    }
    let report = text(Format::Text, &failing, Style::default());
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

#[test]
fn the_screen_keeps_to_its_width_and_height() {
    let mut screen = live::Screen::new(&fixtures::open().plan);
    for second in fixtures::live(70) {
        screen.push(&second);
        for (width, height) in [(0, 0), (1, 1), (10, 5), (40, 12), (80, 23), (200, 49), (300, 1000)] {
            let lines = screen.lines(width, height, Style::default());
            assert!(lines.len() <= height, "{width}×{height}: {lines:#?}");
            assert!(lines.iter().all(|line| line.chars().count() <= width), "{width}×{height}: {lines:#?}");
            let coloured = screen.lines(width, height, COLOURED);
            assert!(coloured.iter().map(|line| without_colour(line)).eq(lines), "{width}×{height}");
        }
    }
}

/// A run with names, failures and thresholds, as it is seen.
fn busy_screen() -> live::Screen {
    let shop = fixtures::shop();
    let mut screen = live::Screen::new(&shop.plan);
    let mut second = fixtures::live(3).remove(3);
    second.snapshot.merge(&shop.total);
    for (failure, n) in [(Failure::Timeout, 3), (Failure::Closed, 1)] {
        (0..n).for_each(|_| second.snapshot.failures.record(failure, "a reason"));
    }
    (second.waiting, second.oldest_ns) = (1_936, 2_500_000_000);
    screen.push(&second);
    screen
}

#[test]
fn a_classic_terminal_shows_what_matters_and_a_large_one_more() {
    let small = busy_screen().lines(80, 23, Style::default());
    let text = small.join("\n");
    for part in
        ["1,936 due and not sent, the oldest for 2.50s", "threshold", "statuses", "200 ×", "timeout × 3  a reason"]
    {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert!(text.contains("response times so far") && text.contains("  request\n"), "{text}");
    assert!(small.len() <= 23, "{text}");
    let large = busy_screen().lines(200, 49, Style::default());
    let bars = |lines: &[String]| lines.iter().filter(|line| line.contains('█') && line.contains("s  ")).count();
    assert!(large.len() > small.len() && bars(&large) > bars(&small), "{}", large.join("\n"));
    // Where there is no room, the figures of the last second stay.
    let tiny = busy_screen().lines(80, 6, Style::default()).join("\n");
    assert!(tiny.contains("latency") && tiny.contains("the oldest for"), "{tiny}");
}

#[test]
fn nothing_is_red_before_there_is_a_figure() {
    let plan = fixtures::shop().plan;
    assert!(!plan.thresholds.is_empty());
    let red = |screen: &live::Screen| screen.lines(80, 23, COLOURED).iter().any(|line| line.contains("\u{1b}[31m"));
    let mut screen = live::Screen::new(&plan);
    let first = screen.lines(80, 23, COLOURED).join("\n");
    assert!(first.contains("running") && !red(&screen), "{first}");
    // A second in which nothing ended is no failure yet.
    let mut silent = fixtures::live(1).remove(2);
    silent.snapshot = brunt_record::snapshot::Snapshot::with_numbers([(brunt_record::catalogue::Counter::Due, 100)]);
    (silent.waiting, silent.oldest_ns) = (36, 900_000_000);
    screen.push(&silent);
    assert!(!red(&screen), "{:#?}", screen.lines(80, 23, COLOURED));
}

#[test]
fn nothing_of_the_warm_up_counts_on() {
    let mut lines = live::Lines::new(OkStatus::default(), Style::default());
    let shown: Vec<_> = fixtures::live(1).iter().map(|second| lines.push(second)).collect();
    assert!(shown[0].contains("second       total") && shown[0].contains("20,000") && shown[0].contains("(warm-up)"));
    assert!(shown[1].contains("40,000"));
    assert!(shown[2].starts_with("     0      33,000") && !shown[2].contains("warm-up"));
    assert!(shown[3].contains("33,000") && shown[3].contains("(draining)"));
}
