//! Views of fixtures, byte for byte. `UPDATE_GOLDEN=1 cargo test -p brunt-report` writes the files anew.
//!
//! Every fixture is kept in every format but the page, so that a change of the record shows in each, and in the text as it is
//! without `-v`. In other styles of the text
//! those are kept that together show all that it can: `shop` has names, users and thresholds of every kind, `failing` failures,
//! findings and events, `streams` messages, `open` lower bounds and lag, `silent` no answer at all. What holds for every
//! fixture in every view is tested in `views.rs`, `document.rs` and `junit.rs`.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::PathBuf;
use std::sync::LazyLock;

use brunt_judge::summary::Summary;
use brunt_report::{Characters, Detail, Format, Style, render};

mod fixtures;

const PLAIN: Style = Style { colour: false, detail: Detail::Verbose, wrk_latency: true, characters: Characters::All };
const COLOURED: Style = Style { colour: true, detail: Detail::Verbose, wrk_latency: true, characters: Characters::All };
const BRIEF: Style = Style { colour: false, detail: Detail::Brief, wrk_latency: false, characters: Characters::All };

fn path_of(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn check(name: &str, got: &str) {
    let path = path_of(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, got).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    // Another version of the compressor may write a recording otherwise; that the kept one is read is a test of its own.
    let is_same =
        |(one, other): (&str, &str)| one == other || [one, other].iter().all(|line| line.starts_with(RECORDING));
    let are_same = expected.split('\n').count() == got.split('\n').count()
        && expected.split('\n').zip(got.split('\n')).all(is_same);
    assert!(are_same, "{name} is not what was kept; if it is right, set UPDATE_GOLDEN=1\n{got}");
}

/// How the line of the recording begins in a result.
const RECORDING: &str = "  \"recording\": ";

static FIXTURES: LazyLock<Vec<(&str, Summary)>> = LazyLock::new(fixtures::all);

fn rendered(format: Format, name: &str, style: Style) -> String {
    let (_, summary) = FIXTURES.iter().find(|(known, _)| *known == name).unwrap();
    String::from_utf8(render(format, summary, style).unwrap()).unwrap()
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
    for (name, _) in FIXTURES.iter() {
        check_each(&[name], Format::Text, "brief.txt", BRIEF);
    }
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
            (Format::Markdown, "md"),
        ] {
            check_each(&[name], format, extension, PLAIN);
        }
    }
}

/// Results that were written before are read, and say what they said.
#[test]
fn kept_results_are_read() {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        return;
    }
    for (name, _) in FIXTURES.iter() {
        let kept = std::fs::read(path_of(&format!("{name}.json"))).unwrap();
        let text = render(Format::Text, &brunt_report::json::read(&kept).unwrap(), PLAIN).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), rendered(Format::Text, name, PLAIN), "{name}");
    }
}

#[test]
fn wrk_shows_percentiles_if_asked() {
    let without = rendered(Format::Wrk, "clean", Style::default());
    assert!(rendered(Format::Wrk, "clean", PLAIN).contains("  Latency Distribution\n     50%"));
    assert!(!without.contains("Latency Distribution"));
}
