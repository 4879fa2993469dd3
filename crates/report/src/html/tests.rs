#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use brunt_record::catalogue::Counter;
use brunt_record::histogram::{Censored, Histogram};
use serde_json::{Value, json};

use super::*;
use crate::json;

/// A result as it was kept: a shop with names, users and every kind of figure.
fn shop() -> Document {
    json::read(include_bytes!("../../tests/golden/shop.json")).unwrap()
}

fn data(document: &Document) -> Value {
    serde_json::from_str(&embedded_text(document)).unwrap()
}

fn embedded_text(document: &Document) -> String {
    embedded(&Data::new(Shown { document, summary: &document.summary() }, None)).unwrap()
}

#[test]
fn nothing_in_the_data_can_end_its_element() {
    let mut document = shop();
    let hostile = "</script><script>alert(1)</script><!--<script>";
    document.plan.target.path = hostile.into();
    document.thresholds[0].threshold = hostile.into();
    let text = embedded_text(&document);
    assert!(!text.contains('<'));
    let data: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(data["thresholds"][0]["threshold"], hostile);
    assert!(data["title"].as_str().unwrap().ends_with(hostile));
}

#[test]
fn the_page_gets_the_documents_figures() {
    let document = shop();
    let data = data(&document);
    assert_eq!(data["outcomes"]["due"], document.outcomes.numbers.get(Counter::Due));
    assert_eq!(data["rates"]["answered_per_s"], document.rates.answered_per_s);
    let response = document.times.response.as_ref().unwrap();
    assert_eq!(data["times"][0][0], "response");
    assert_eq!(data["quantiles"][4], *response.quantiles[4].name);
    assert_eq!(data["times"][0][1]["quantiles_ns"][4], response.quantiles[4].value_ns);
    assert_eq!(data["series"]["users"], json!([15, 24, 32]));
    let p99 = document.series[1].response.unpack().quantile(0.99);
    assert_eq!(data["series"]["p99_ns"][1].as_u64(), p99);
    let names = document.names.as_ref().unwrap();
    assert_eq!(data["names"]["requests"].as_array().unwrap().len(), names.requests.len());
    let busy = json!({"status": 503, "name": "Busy", "count": 1, "ok": false});
    assert_eq!(data["outcomes"]["statuses"][1], busy);
    let statuses = &data["names"]["requests"][0]["statuses"];
    assert_eq!((&statuses[0]["name"], &statuses[1]["name"]), (&json!(null), &json!("Busy")));
}

#[test]
fn lower_bounds_stay_lower_bounds() {
    let document = json::read(include_bytes!("../../tests/golden/open.json")).unwrap();
    let data = data(&document);
    let max = document.times.response.as_ref().unwrap().max;
    assert!(max.at_least);
    assert_eq!(data["times"][0][1]["max_ns"], json!([max.value]));
    let last = data["spectra"][0]["points"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last[1], json!([max.value]));
}

/// Nothing from elsewhere becomes markup, wherever it is shown.
#[test]
fn the_first_screen_shows_hostile_text_as_text() {
    let mut document = shop();
    let hostile = "</section><script>alert(1)</script>\u{202e}\" onload=\"x";
    document.plan.target.path = hostile.into();
    document.plan.origin.name = Some(hostile.into());
    document.plan.origin.tags.insert(hostile.into(), hostile.into());
    document.thresholds[0].threshold = hostile.into();
    document.thresholds[0].got = hostile.into();
    document.statements[0].text = hostile.into();
    document.statements[0].advice = hostile.into();
    let screen = data(&document)["first_screen"].as_str().unwrap().to_owned();
    assert!(!screen.contains("<script") && !screen.contains("\" onload=\"x"), "{screen}");
    assert!(screen.matches("&lt;script&gt;").count() >= 6);
    assert!(!screen.contains('\u{202e}'), "nothing turns the direction of writing");
}

#[test]
fn a_run_over_time_is_drawn_without_a_script() {
    for name in ["shop", "open", "failing", "clean"] {
        let path = format!("{}/tests/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let document = json::read(&std::fs::read(path).unwrap()).unwrap();
        let screen = data(&document)["first_screen"].as_str().unwrap().to_owned();
        for (open, close) in [("<svg", "</svg>"), ("<section", "</section>"), ("<text", "</text>"), ("<p", "</p>")] {
            let opened = screen.matches(&format!("{open} ")).count() + screen.matches(&format!("{open}>")).count();
            assert_eq!(opened, screen.matches(close).count(), "{name}: {open}");
        }
        assert!(screen.contains("class=\"p99\" d=\"M") && screen.contains("Ok calls a second"), "{name}");
        assert!(!screen.contains("NaN") && !screen.contains("inf"), "{name}");
        let unended = [Counter::Unsent, Counter::Unfinished].map(|counter| document.outcomes.numbers.get(counter));
        let is_failing = document.outcomes.not_ok > unended.iter().sum();
        assert_eq!(screen.contains("class=\"failed\""), is_failing, "{name}");
    }
}

#[test]
fn a_spectrum_goes_from_the_smallest_to_the_largest() {
    let mut known = Histogram::new();
    (1..=1000).for_each(|ms| known.record(ms * 1_000_000));
    let spectrum = distribution::Spectrum::new("x", &Censored { known, ..Censored::default() }).unwrap();
    let spectrum = serde_json::to_value(spectrum).unwrap();
    let points = spectrum["points"].as_array().unwrap();
    assert_eq!(points.len(), 49);
    assert!(
        points
            .windows(2)
            .all(|two| two[0][0].as_f64() > two[1][0].as_f64() && two[0][1].as_u64() <= two[1][1].as_u64())
    );
    assert_eq!(points[48], json!([0.001, 1_000_000_000_u64]));
    // One in ten took longer than 900 ms.
    assert!((points[16][1].as_f64().unwrap() / 900e6 - 1.0).abs() < 0.001, "{}", points[16]);
    assert!(distribution::Spectrum::new("x", &Censored::default()).is_none());
}

/// Whether this build has the page or not, what it says of itself is true.
#[test]
fn without_a_page_it_says_how_to_get_one() {
    let written = write_document(&mut Vec::new(), &shop());
    assert_eq!(written.is_ok(), check().is_ok());
    assert_eq!(PAGE.is_some(), check().is_ok(), "the page has no place for the data: run `make page`");
    assert!(NoPage.to_string().contains("run `make page`"));
    if let Err(error) = written {
        assert!(error.to_string().contains("built without the report page"));
    }
}
