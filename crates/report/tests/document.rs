//! The JSON document: it fits its schema, can be read back, and says why when it cannot.
#![allow(clippy::unwrap_used, reason = "tests")]

use brunt_record::catalogue::Timing;
use brunt_report::{Detail, Format, Style, json, render};
use serde_json::{Value, json as value};

mod fixtures;

fn schema() -> Value {
    serde_json::from_str(brunt_report::schema::RESULT).unwrap()
}

fn document(summary: &brunt_judge::summary::Summary) -> Vec<u8> {
    render(Format::Json, summary, Style::default()).unwrap()
}

fn clean() -> Value {
    serde_json::from_slice(&document(&fixtures::clean())).unwrap()
}

#[test]
fn every_document_fits_the_schema() {
    let schema = schema();
    assert!(jsonschema::draft202012::meta::is_valid(&schema));
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    for (name, summary) in fixtures::all().into_iter().chain(std::iter::once(("secretive", fixtures::secretive()))) {
        let document = serde_json::from_slice(&document(&summary)).unwrap();
        let errors: Vec<_> =
            validator.iter_errors(&document).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}");
    }
}

/// Every field has a doc comment; the tag of a variant has that of the variant.
#[test]
fn every_field_is_described() {
    fn check(schema: &Value, path: &str) {
        if let Some(Value::Object(fields)) = schema.get("properties") {
            for (name, field) in fields {
                let is_variant = schema.get("description").is_some() && fields.len() == 1;
                let is_described = field.get("description").is_some() || field.get("const").is_some() || is_variant;
                assert!(is_described, "{path}/{name} has no description");
            }
        }
        match schema {
            Value::Object(parts) => parts.iter().for_each(|(name, part)| check(part, &format!("{path}/{name}"))),
            Value::Array(parts) => parts.iter().for_each(|part| check(part, path)),
            _ => {}
        }
    }
    check(&schema(), "result");
    check(&serde_json::from_str(brunt_report::schema::DECISION).unwrap(), "decision");
}

#[test]
fn a_broken_document_does_not_fit() {
    let validator = jsonschema::draft202012::new(&schema()).unwrap();
    let broken: [fn(&mut Value); 8] = [
        |doc| doc["surprise"] = value!(1),
        |doc| doc["version"] = value!(3),
        |doc| doc["outcomes"]["due"] = value!(-1),
        |doc| doc["outcomes"]["error_ratio"] = value!(1.5),
        |doc| doc["verdict"]["judgement"] = value!("splendid"),
        |doc| doc["times"]["response"]["p98_ns"] = value!(1),
        |doc| doc["series"][0]["response"]["counts"][0] = value!([1]),
        |doc| _ = doc.as_object_mut().unwrap().remove("rates"),
    ];
    for (i, damage) in broken.iter().enumerate() {
        let mut document = clean();
        damage(&mut document);
        assert!(!validator.is_valid(&document), "damage {i} went unnoticed");
    }
}

/// A result that was written makes the views that its run made.
#[test]
fn every_view_of_a_document_is_that_of_its_summary() {
    // A document does not say of every fixture what its recording says: what was drained, and deliveries.
    let is_whole = |(name, _): &(&str, _)| !["drained", "changed", "lost", "replayed"].contains(name);
    for (name, summary) in fixtures::all().into_iter().filter(is_whole) {
        let restored = json::read_whole(&document(&summary)).unwrap().summary();
        for format in [Format::Text, Format::Wrk, Format::Json, Format::Csv, Format::Junit] {
            for detail in [Detail::Brief, Detail::Verbose] {
                let style = Style { detail, ..Style::default() };
                let [shown, again] =
                    [&summary, &restored].map(|of| String::from_utf8(render(format, of, style).unwrap()).unwrap());
                for (line, other) in shown.lines().zip(again.lines()) {
                    assert_eq!(other, line, "{name}, {}", format.name());
                }
                assert_eq!(again.lines().count(), shown.lines().count(), "{name}, {}", format.name());
            }
        }
    }
}

/// Every key `histogram` or distribution of counts is gone, and every figure is still there.
#[test]
fn without_histograms_figures_stay() {
    fn has_counts(value: &Value) -> bool {
        match value {
            Value::Object(fields) => fields.contains_key("counts") || fields.values().any(has_counts),
            Value::Array(items) => items.iter().any(has_counts),
            _ => false,
        }
    }
    let validator = jsonschema::draft202012::new(&schema()).unwrap();
    for (name, summary) in fixtures::all() {
        let style = Style { no_histograms: true, ..Style::default() };
        let bytes = render(Format::Json, &summary, style).unwrap();
        let light: Value = serde_json::from_slice(&bytes).unwrap();
        assert!(validator.is_valid(&light), "{name}");
        assert!(!has_counts(&light) && light["histograms_left_out"] == true, "{name}");
        let whole: Value = serde_json::from_slice(&document(&summary)).unwrap();
        for key in ["verdict", "rates", "times", "outcomes", "thresholds", "plan"] {
            assert_eq!(light[key], whole[key], "{name}: {key}");
        }
        assert_eq!(light["series"].as_array().map(Vec::len), whole["series"].as_array().map(Vec::len), "{name}");
        assert!(json::read(&bytes).is_ok());
        assert_eq!(json::read_whole(&bytes), Err(json::ReadError::NoHistograms), "{name}");
        assert!(json::read_whole(&document(&summary)).is_ok(), "{name}");
    }
}

#[test]
fn a_document_is_read_back_as_it_was_written() {
    for (name, summary) in fixtures::all() {
        let read = json::read(&document(&summary)).unwrap();
        let expected = json::Document::from_summary(&summary);
        // Page order is not part of a histogram; its JSON is.
        let json = |document: &json::Document| serde_json::to_value(document).unwrap();
        assert_eq!(json(&read), json(&expected), "{name}");
        assert_eq!(
            read.histograms.times.known(Timing::Response).quantile(0.99),
            summary.total.times.known(Timing::Response).quantile(0.99),
            "{name}"
        );
    }
}

#[test]
fn a_field_of_a_later_brunt_does_no_harm() {
    let mut document = clean();
    document["later"] = value!({"more": true});
    document["rates"]["later_per_s"] = value!(1.0);
    assert!(json::read(&serde_json::to_vec(&document).unwrap()).is_ok());
}

#[test]
fn what_cannot_be_read_says_why() {
    let error = |bytes: &[u8]| json::read(bytes).unwrap_err().to_string();
    assert!(error(b"{\"format\": ").starts_with("line 1, column 11: not JSON: "));
    assert!(error(b"").starts_with("line 1, column 0: not JSON: "));
    for other in ["[]", "{}", "7", "{\"format\": \"har\"}", "{\"format\": \"brunt-result\"}"] {
        assert!(error(other.as_bytes()).starts_with("expected a result that brunt wrote as JSON"), "{other}");
    }
    assert_eq!(
        error(b"{\"format\": \"brunt-result\", \"version\": 9}"),
        "the result has format version 9, this brunt reads version 2: read it with the brunt that wrote it"
    );
    assert!(error(b"{\"format\": \"brunt-result\", \"version\": 1}").contains("drafts of brunt wrote"));
    let mut document = clean();
    document["outcomes"]["due"] = value!("many");
    let broken = serde_json::to_vec_pretty(&document).unwrap();
    let text = error(&broken);
    assert!(text.contains("not a whole result: invalid type: string \"many\""), "{text}");
}

#[test]
fn secrets_are_in_no_format() {
    for format in Format::ALL {
        let text = String::from_utf8(render(format, &fixtures::secretive(), Style::default()).unwrap()).unwrap();
        assert!(!text.contains("hunter2"), "{}", format.name());
    }
    let json = String::from_utf8(document(&fixtures::secretive())).unwrap();
    assert!(json.contains("[redacted]"));
}
