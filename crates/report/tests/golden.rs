//! Views of fixtures, byte for byte. `UPDATE_GOLDEN=1 cargo test -p brunt-report` writes the files anew.
//!
//! The text and the JSON of every fixture are kept; the tests of the report page read them. Of the other views those are kept
//! that together show all that the view can: `shop` has names, users and thresholds of every kind, `failing` failures, findings
//! and events, `streams` messages, `open` lower bounds and lag, `silent` no answer at all. What holds for every fixture in
//! every view is tested in `views.rs`, `document.rs` and `junit.rs`.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::PathBuf;
use std::sync::LazyLock;

use brunt_judge::summary::Summary;
use brunt_record::outcome::OkStatus;
use brunt_report::{Detail, Format, Style, live, render};

mod fixtures;

const PLAIN: Style = Style { colour: false, detail: Detail::Verbose, wrk_latency: true, no_histograms: false };
const COLOURED: Style = Style { colour: true, detail: Detail::Verbose, wrk_latency: true, no_histograms: false };
const BRIEF: Style = Style { colour: false, detail: Detail::Brief, wrk_latency: false, no_histograms: false };

fn check(name: &str, got: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, got).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(expected == got, "{name} is not what was kept; if it is right, set UPDATE_GOLDEN=1\n{got}");
}

fn rendered(format: Format, name: &str, style: Style) -> String {
    static FIXTURES: LazyLock<Vec<(&str, Summary)>> = LazyLock::new(fixtures::all);
    let (_, summary) = FIXTURES.iter().find(|(known, _)| *known == name).unwrap();
    let text = String::from_utf8(render(format, summary, style).unwrap()).unwrap();
    // The files are to outlive a release.
    let version = |version: &str| format!("\"brunt_version\": \"{version}\"");
    text.replace(&version(env!("CARGO_PKG_VERSION")), &version("0.0.0"))
}

fn check_each(names: &[&str], format: Format, extension: &str, style: Style) {
    for name in names {
        check(&format!("{name}.{extension}"), &rendered(format, name, style));
    }
}

/// `text` without ANSI sequences.
fn without_colour(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or("").to_owned();
    parts.fold(first, |plain, part| plain + part.split_once('m').map_or("", |(_, rest)| rest))
}

#[test]
fn text() {
    for (name, _) in fixtures::all() {
        check_each(&[name], Format::Text, "txt", PLAIN);
    }
}

#[test]
fn brief_text() {
    check_each(&["failing", "silent", "shop", "streams"], Format::Text, "brief.txt", BRIEF);
}

#[test]
fn text_in_colour() {
    check_each(&["failing", "shop"], Format::Text, "ansi", COLOURED);
    for (name, _) in fixtures::all() {
        let [coloured, plain] = [COLOURED, PLAIN].map(|style| rendered(Format::Text, name, style));
        assert_eq!(without_colour(&coloured), plain, "{name}: colour changes nothing but colour");
    }
}

#[test]
fn wrk() {
    check_each(&["clean", "failing", "silent"], Format::Wrk, "wrk", PLAIN);
    let without = rendered(Format::Wrk, "clean", Style::default());
    assert!(rendered(Format::Wrk, "clean", PLAIN).contains("  Latency Distribution\n     50%"));
    assert!(!without.contains("Latency Distribution"));
}

#[test]
fn json() {
    for (name, _) in fixtures::all() {
        check_each(&[name], Format::Json, "json", PLAIN);
    }
}

#[test]
fn csv() {
    check_each(&["open", "failing", "shop", "streams"], Format::Csv, "csv", PLAIN);
}

#[test]
fn junit() {
    check_each(&["failing", "silent", "shop"], Format::Junit, "xml", PLAIN);
}

#[test]
fn live_lines() {
    let mut lines = live::Lines::new(OkStatus::default(), PLAIN);
    let text: String = fixtures::live(25).iter().map(|second| lines.push(second)).collect();
    check("live-lines.txt", &text);
    let mut lines = live::Lines::new(OkStatus::default(), PLAIN);
    let mut seconds = fixtures::live(4);
    for (users, second) in (0..).zip(&mut seconds) {
        second.users = (users > 1).then_some(users * 10);
    }
    let text: String = seconds.iter().map(|second| lines.push(second)).collect();
    check("live-lines-users.txt", &text);
}

/// A wide terminal has the last minute and the names beside what a narrow one shows.
#[test]
fn live_screen_side_by_side() {
    let mut screen = live::Screen::new(&fixtures::shop().plan);
    let mut text = screen.lines(200, 50, PLAIN).join("\n") + "\n\n";
    for second in fixtures::shop_live() {
        screen.push(&second);
    }
    let wide = screen.lines(200, 50, PLAIN);
    assert!(wide.len() <= 50 && wide.iter().all(|line| line.chars().count() <= 200), "{wide:#?}");
    assert!(
        wide.iter().any(|line| line.starts_with("rate ") && line.contains("█")),
        "charts stand beside figures: {wide:#?}"
    );
    text += &(wide.join("\n") + "\n\n");
    // The same screen in a terminal that became narrow.
    text += &(screen.lines(80, 24, PLAIN).join("\n") + "\n");
    check("live-screen-wide.txt", &text);
}

#[test]
fn live_screen() {
    let seconds = fixtures::live(70);
    for (name, style, shown) in [("txt", PLAIN, 8..9), ("ansi", COLOURED, 69..73)] {
        let mut screen = live::Screen::new(&fixtures::clean().plan);
        let mut text = screen.lines(80, 24, style).join("\n") + "\n\n";
        for (i, second) in seconds.iter().enumerate() {
            screen.push(second);
            if i == 0 || shown.contains(&i) {
                text += &(screen.lines(80, 24, style).join("\n") + "\n\n");
            }
        }
        check(&format!("live-screen.{name}"), &text);
    }
}
