//! Views of fixtures, byte for byte. `UPDATE_GOLDEN=1 cargo test -p brunt-report` writes the files anew.
//!
//! Every fixture is kept in every format but the page, so that a change of the record shows in each. In other styles of the text
//! those are kept that together show all that it can: `shop` has names, users and thresholds of every kind, `failing` failures,
//! findings and events, `streams` messages, `open` lower bounds and lag, `silent` no answer at all. What holds for every
//! fixture in every view is tested in `views.rs`, `document.rs` and `junit.rs`.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::PathBuf;
use std::sync::LazyLock;

use brunt_judge::summary::Summary;
use brunt_report::{Characters, Detail, Format, Style, render};

mod fixtures;

const PLAIN: Style = Style {
    colour: false,
    detail: Detail::Verbose,
    wrk_latency: true,
    no_histograms: false,
    characters: Characters::All,
};
const COLOURED: Style = Style {
    colour: true,
    detail: Detail::Verbose,
    wrk_latency: true,
    no_histograms: false,
    characters: Characters::All,
};
const BRIEF: Style = Style {
    colour: false,
    detail: Detail::Brief,
    wrk_latency: false,
    no_histograms: false,
    characters: Characters::All,
};

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
fn text_in_ascii() {
    let style = Style { characters: Characters::Ascii, ..BRIEF };
    check_each(&["failing", "open", "shop"], Format::Text, "ascii.txt", style);
}

#[test]
fn every_fixture_in_every_format() {
    for (name, _) in fixtures::all() {
        for (format, extension) in [
            (Format::Text, "txt"),
            (Format::Json, "json"),
            (Format::Wrk, "wrk"),
            (Format::Csv, "csv"),
            (Format::Junit, "xml"),
        ] {
            check_each(&[name], format, extension, PLAIN);
        }
    }
}

#[test]
fn wrk_shows_percentiles_if_asked() {
    let without = rendered(Format::Wrk, "clean", Style::default());
    assert!(rendered(Format::Wrk, "clean", PLAIN).contains("  Latency Distribution\n     50%"));
    assert!(!without.contains("Latency Distribution"));
}
